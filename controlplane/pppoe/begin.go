// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"bytes"
	"time"

	"isthmus/controlplane/access"
)

// Admission. After a power cut all homes dial at once, faster than they can sign in. If all were answered, each would
// take longer than its client waits, and the work would be wasted. So only as many sign-ins are pending as a part of a
// second completes. The PADI of the others wait: a client accepts a late PADO.

const (
	spokenSlot  = 100 * time.Millisecond
	spokenSlots = 10 // a half-open session silent for so long does not count as pending
	offerSlots  = 2  // a PADO without its PADR for so long

	waitTick    = 10 * time.Millisecond
	waitPart    = 16               // of Begin: most PADO in a tick, since they show only when their PADR come
	mostWaiting = 1 << 15          // PADI
	longPADI    = 1024             // octets of tags; a longer one does not wait
	staleAfter  = 20 * time.Second // without another PADI: its sender has given up

	lineShare   = 4    // a line's part of Begin and mostWaiting: a line with many homes does not block others
	mostSkipped = 1024 // PADI of lines that have their share, in a tick
)

// underWay counts half-open sessions by their last packet's time, and PADO by their sending time.
type underWay struct {
	slot   int64 // now
	of     [spokenSlots]map[lineKey]int
	line   map[lineKey]int // all of a line
	share  int
	count  int             // of each line, its share at most
	offers [offerSlots]int // whose PADR have not come
}

func (u *underWay) setShare(share int) {
	if u.line == nil {
		u.line = map[lineKey]int{}
		for n := range u.of {
			u.of[n] = map[lineKey]int{}
		}
	}
	u.share, u.count = max(share, 1), 0
	for _, n := range u.line {
		u.count += min(n, u.share)
	}
}

func (u *underWay) add(slot int64, line lineKey, n int) {
	before := u.line[line]
	u.count += min(before+n, u.share) - min(before, u.share)
	for _, m := range []map[lineKey]int{u.line, u.of[slot%spokenSlots]} {
		if m[line] += n; m[line] == 0 {
			delete(m, line)
		}
	}
}

// at advances to a time.
func (u *underWay) at(now time.Duration) {
	slot := int64(now / spokenSlot)
	for ; u.slot < slot; u.slot++ {
		u.offers[(u.slot+1)%offerSlots] = 0
		if len(u.line) == 0 && slot-u.slot > offerSlots {
			u.slot = slot - offerSlots - 1
			continue
		}
		for line, n := range u.of[(u.slot+1)%spokenSlots] {
			u.add(u.slot+1, line, -n)
		}
	}
}

// spoke is called when a half-open session sends something, and with leave when it is not half open any more.
func (s *Server) spoke(x *session, leave bool) {
	u := &s.underWay
	u.at(s.now())
	if x.spoke != 0 && u.slot-x.spoke < spokenSlots {
		u.add(x.spoke, x.lineKey, -1)
	}
	if x.spoke = 0; !leave {
		x.spoke = u.slot
		u.add(u.slot, x.lineKey, 1)
	}
}

// hasShare: as many of the line as may be are under way.
func (s *Server) hasShare(line lineKey) bool {
	return s.config.Begin != 0 && s.underWay.line[line] >= s.underWay.share
}

// redeemed is called for a PADR: of one of the latest PADO.
func (u *underWay) redeemed() {
	for n := range int64(offerSlots) {
		if offers := &u.offers[(u.slot+offerSlots-n)%offerSlots]; *offers > 0 {
			*offers--
			return
		}
	}
}

// waiting are PADI, the oldest first.
type waiting struct {
	of    map[peer]int    // its number
	line  map[lineKey]int // how many
	queue []newcomer
	first int // number of queue[0]
	ticks bool
}

type newcomer struct {
	who  peer
	line access.Line
	tags []byte
	at   time.Duration
}

// mayBegin are the sign-ins that there is room for.
func (s *Server) mayBegin() int {
	u := &s.underWay
	u.at(s.now())
	if s.config.Begin == 0 {
		return mostWaiting
	}
	may := s.config.Begin - u.count
	for _, n := range u.offers {
		may -= n
	}
	return may
}

// waits: a peer's PADI waits already; it notes the repetition.
func (s *Server) waits(who peer, tags []byte) bool {
	n, in := s.waiting.of[who]
	if in {
		w := &s.waiting.queue[n-s.waiting.first]
		w.at = s.now()
		if len(tags) <= longPADI {
			w.tags = append(w.tags[:0], tags...)
		}
		s.counts[beginAgain]++
	}
	return in
}

// hold has a PADI wait.
func (s *Server) hold(who peer, line *access.Line, tags []byte) {
	w := &s.waiting
	if len(w.queue) == mostWaiting || w.line[who.lineKey] == mostWaiting/lineShare || len(tags) > longPADI {
		s.counts[beginFull]++
		return
	}
	if w.of == nil {
		w.of, w.line = map[peer]int{}, map[lineKey]int{}
	}
	s.counts[beginWaits]++
	w.push(newcomer{who, *line, bytes.Clone(tags), s.now()})
	if !w.ticks {
		w.ticks = true
		s.host.After(waitTick, s.letBegin)
	}
}

// pop takes the oldest out.
func (w *waiting) pop() newcomer {
	c := w.queue[0]
	w.queue[0] = newcomer{}
	w.queue, w.first = w.queue[1:], w.first+1
	delete(w.of, c.who)
	if w.line[c.who.lineKey]--; w.line[c.who.lineKey] == 0 {
		delete(w.line, c.who.lineKey)
	}
	return c
}

func (w *waiting) push(c newcomer) {
	w.of[c.who] = w.first + len(w.queue)
	w.line[c.who.lineKey]++
	w.queue = append(w.queue, c)
}

// letBegin answers as many waiting peers as there is room for. Lines with a full share wait on, behind the others.
func (s *Server) letBegin() {
	w, now := &s.waiting, s.now()
	n := min(s.mayBegin(), s.config.Begin/waitPart+1)
	for most := min(len(w.queue), n+mostSkipped); most > 0 && (n > 0 || now-w.queue[0].at > staleAfter); most-- {
		c := w.pop()
		switch t, ok := ParseTags(c.tags); {
		case !ok || now-c.at > staleAfter:
			s.counts[beginStale]++
		case s.hasShare(c.who.lineKey):
			w.push(c)
		default:
			s.offer(&c.line, &t)
			n--
		}
	}
	if len(w.queue) == 0 {
		*w = waiting{first: w.first}
		return
	}
	s.host.After(waitTick, s.letBegin)
}
