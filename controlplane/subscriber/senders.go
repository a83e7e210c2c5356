// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"cmp"
	"slices"
	"time"

	"isthmus/controlplane/access"
)

// senders are the lines with most frames for the control plane, in two spans of time: the running one and its
// predecessor. The data plane's limits leave a flooding line its own share, which is more than others send: it is among
// the first. Memory is bounded. Where a span is full, a new line takes the place of the one with fewest frames, and
// begins with its count (space-saving: Metwally, Agrawal, El Abbadi).
type senders struct {
	began   time.Time
	is, was map[access.Line]*sender
}

const (
	sendersKept  = 256 // in a span
	sendersShown = 32
	senderSpan   = time.Minute
)

// sender is one pair of tags of a port, with the MAC address that sends most of its frames (Boyer, Moore).
type sender struct {
	mac    [6]byte
	votes  uint64
	frames uint64
	of     uint64 // of others, whose place it took
	pppoe  uint64
	last   time.Time
}

// count takes a frame.
func (s *senders) count(l *access.Line, pppoe bool, now time.Time) {
	if age := now.Sub(s.began); s.is == nil || age >= senderSpan {
		s.was, s.is, s.began = s.is, map[access.Line]*sender{}, now
		if age >= 2*senderSpan {
			s.was = nil
		}
	}
	at := access.Line{Port: l.Port, STag: l.STag, CTag: l.CTag}
	one := s.is[at]
	if one == nil {
		one = &sender{}
		if len(s.is) >= sendersKept {
			one.of = s.displace()
			one.frames = one.of
		}
		s.is[at] = one
	}
	one.frames++
	one.last = now
	if pppoe {
		one.pppoe++
	}
	switch {
	case one.mac == l.MAC:
		one.votes++
	case one.votes == 0:
		one.mac, one.votes = l.MAC, 1
	default:
		one.votes--
	}
}

// displace removes the line with fewest frames, and returns their number.
func (s *senders) displace() uint64 {
	var least *sender
	var line access.Line
	for l, one := range s.is {
		if least == nil || one.frames < least.frames {
			least, line = one, l
		}
	}
	delete(s.is, line)
	return least.frames
}

// SenderRow of `show sender`.
type SenderRow struct {
	Line, MAC     string
	Frames, PPPoE uint64 // at least so many
	Last          time.Time
}

// Senders are the lines with most frames of the last one to two minutes, the most first. Loop's goroutine (Ask).
func (l *Loop) Senders() []SenderRow {
	by := map[access.Line]SenderRow{}
	for _, span := range []map[access.Line]*sender{l.senders.was, l.senders.is} { // the later span's MAC stays
		for at, one := range span {
			r := by[at]
			r.Line, r.MAC, r.Last = LineText(&at), macText(one.mac), one.last
			r.Frames, r.PPPoE = r.Frames+one.frames-one.of, r.PPPoE+one.pppoe
			by[at] = r
		}
	}
	list := make([]SenderRow, 0, len(by))
	for _, r := range by {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b SenderRow) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), cmp.Compare(a.Line, b.Line))
	})
	return list[:min(len(list), sendersShown)]
}
