// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"bytes"
	"time"

	"isthmus/controlplane/access"
)

// Who may begin. After a power cut all dial at once, faster than anybody is let in. Were all of them answered, each
// would take longer than a client waits, and what was done for those who gave up would be wasted: fewer would come on
// line than if most had waited. So no more sign-ins are under way than are done in a part of a second, and the PADI of
// the others wait: a client takes a PADO that is late.

const (
	spokenSlot  = 100 * time.Millisecond
	spokenSlots = 10 // a half-open session that says nothing for so long is not under way: it keeps nobody out
	offerSlots  = 2  // a PADO whose PADR has not come in so long

	waitTick    = 10 * time.Millisecond
	waitPart    = 16               // of Begin: most PADO in a tick, since they show only when their PADR come
	mostWaiting = 1 << 15          // PADI
	longPADI    = 256              // octets of tags; a longer one does not wait
	staleAfter  = 20 * time.Second // without another PADI: who sent it has given up
)

// underWay counts half-open sessions by the time at which they spoke last, and PADO by the time at which they were
// sent.
type underWay struct {
	slot   int64 // now
	of     [spokenSlots]int
	count  int
	offers [offerSlots]int // whose PADR have not come
}

// at goes on to a time.
func (u *underWay) at(now time.Duration) {
	slot := int64(now / spokenSlot)
	for ; u.slot < slot; u.slot++ {
		u.offers[(u.slot+1)%offerSlots] = 0
		if u.count == 0 && slot-u.slot > offerSlots {
			u.slot = slot - offerSlots - 1
			continue
		}
		oldest := &u.of[(u.slot+1)%spokenSlots]
		u.count -= *oldest
		*oldest = 0
	}
}

// spoke is called for a half-open session that says something, and with leave for one that is not half open any more.
func (s *Server) spoke(x *session, leave bool) {
	u := &s.underWay
	u.at(s.now())
	if x.spoke != 0 && u.slot-x.spoke < spokenSlots {
		u.of[x.spoke%spokenSlots]--
		u.count--
	}
	if x.spoke = 0; !leave {
		x.spoke = u.slot
		u.of[u.slot%spokenSlots]++
		u.count++
	}
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
	of    map[peer]int // its number
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

// waits tells whether a peer's PADI waits already, and notes that it came again.
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
	if len(w.queue) == mostWaiting || len(tags) > longPADI {
		s.counts[beginFull]++
		return
	}
	if w.of == nil {
		w.of = map[peer]int{}
	}
	s.counts[beginWaits]++
	w.of[who] = w.first + len(w.queue)
	w.queue = append(w.queue, newcomer{who, *line, bytes.Clone(tags), s.now()})
	if !w.ticks {
		w.ticks = true
		s.host.After(waitTick, s.letBegin)
	}
}

// letBegin answers those who wait, as many as there is room for.
func (s *Server) letBegin() {
	w, now := &s.waiting, s.now()
	for n := min(s.mayBegin(), s.config.Begin/waitPart+1); n > 0 && len(w.queue) > 0; {
		c := w.queue[0]
		w.queue[0] = newcomer{}
		w.queue, w.first = w.queue[1:], w.first+1
		delete(w.of, c.who)
		if t, ok := ParseTags(c.tags); !ok || now-c.at > staleAfter {
			s.counts[beginStale]++
		} else {
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
