// SPDX-License-Identifier: Apache-2.0

package pppoe

import "time"

// wheel holds waiting sessions, without memory of its own for each. It turns while sessions wait.
type wheel struct {
	slots   [256]*session
	turned  int64 // ticks that were looked at
	waiting int
}

const tick = 50 * time.Millisecond

// waits is a session's place: in the list of a slot.
type waits struct {
	next, back *session
	at         time.Duration // 0: in none
}

func (w *wheel) slot(at time.Duration) **session { return &w.slots[ticks(at)%int64(len(w.slots))] }

// ticks rounds up: no session wakes early.
func ticks(at time.Duration) int64 { return int64((at + tick - 1) / tick) }

func (w *wheel) remove(x *session) {
	if x.waits.at == 0 {
		return
	}
	if x.waits.back != nil {
		x.waits.back.waits.next = x.waits.next
	} else {
		*w.slot(x.waits.at) = x.waits.next
	}
	if x.waits.next != nil {
		x.waits.next.waits.back = x.waits.back
	}
	x.waits = waits{}
	w.waiting--
}

// put has x wait for a time; a past time counts as the next tick.
func (w *wheel) put(x *session, at time.Duration) {
	w.remove(x)
	if at == 0 {
		return
	}
	at = max(at, time.Duration(w.turned+1)*tick)
	first := w.slot(at)
	x.waits = waits{next: *first, at: at}
	if *first != nil {
		(*first).waits.back = x
	}
	*first = x
	w.waiting++
}

// turn takes out a session whose time has come; nil: none is left.
func (w *wheel) turn(now time.Duration) *session {
	end := int64(now / tick)
	if w.waiting == 0 {
		w.turned = max(w.turned, end)
		return nil
	}
	for w.turned = max(w.turned, end-int64(len(w.slots))+1); ; w.turned++ {
		for x := w.slots[w.turned%int64(len(w.slots))]; x != nil; x = x.waits.next {
			if x.waits.at <= now {
				w.remove(x)
				return x
			}
		}
		if w.turned >= end {
			return nil
		}
	}
}
