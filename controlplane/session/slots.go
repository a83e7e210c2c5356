// SPDX-License-Identifier: Apache-2.0

package session

import "math/bits"

// slots are the low bits of TEIDs in use. A chosen TEID takes the lowest free slot, so that the data plane finds its
// rules side by side, without a look-up (dataplane/modules/flow). The upper bits are random.
type slots struct {
	used  []uint64
	bits  int
	next  uint32 // no slot before it is free, but for those that were given and not used
	count int    // used
}

// newSlots has two for each session: an SGW-U's has as many F-TEIDs. 0: no limit is known.
func newSlots(sessions int) slots {
	if sessions <= 0 {
		sessions = 1 << 16
	}
	n := min(max(bits.Len(uint(2*sessions-1)), 6), 26)
	return slots{used: make([]uint64, 1<<n/64), bits: n}
}

func (s *slots) of(teid uint32) uint32 { return teid & (1<<s.bits - 1) }

func (s *slots) mark(teid uint32, used bool) {
	slot := s.of(teid)
	word, bit := &s.used[slot/64], uint64(1)<<(slot%64)
	switch {
	case used && *word&bit == 0:
		*word |= bit
		s.count++
	case !used && *word&bit != 0:
		*word &^= bit
		s.count--
		s.next = min(s.next, slot) // low ones first: the places of a data plane may be fewer
	}
}

// free returns a slot that nothing uses; any, when all are used.
func (s *slots) free() uint32 {
	for s.count < 1<<s.bits {
		if rest := ^s.used[s.next/64] >> (s.next % 64); rest != 0 {
			s.next += uint32(bits.TrailingZeros64(rest))
			break
		}
		s.next = s.of(s.next/64*64 + 64)
	}
	slot := s.next
	s.next = s.of(s.next + 1)
	return slot
}
