// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"container/heap"
	"time"
)

// timers is a heap by time; equal times fire in order of insertion.
type timers struct {
	list  []*timer
	count uint64
	from  time.Time // times count from it: of Options.Now, a monotonic clock
}

type timer struct {
	timers *timers
	at     time.Duration
	order  uint64
	place  int // -1: not waiting
	fn     func()
}

func (t *timers) Len() int { return len(t.list) }
func (t *timers) Less(i, j int) bool {
	a, b := t.list[i], t.list[j]
	if a.at == b.at {
		return a.order < b.order
	}
	return a.at < b.at
}
func (t *timers) Swap(i, j int) {
	t.list[i], t.list[j] = t.list[j], t.list[i]
	t.list[i].place, t.list[j].place = i, j
}
func (t *timers) Push(x any) {
	v := x.(*timer)
	v.place = len(t.list)
	t.list = append(t.list, v)
}
func (t *timers) Pop() any {
	n := len(t.list) - 1
	v := t.list[n]
	t.list[n] = nil
	t.list, v.place = t.list[:n], -1
	return v
}

func (t *timers) add(at time.Time, fn func()) *timer {
	t.count++
	v := &timer{timers: t, at: at.Sub(t.from), order: t.count, fn: fn}
	heap.Push(t, v)
	return v
}

// Stop is access.Timer's. A nil timer never ran.
func (v *timer) Stop() {
	if v != nil && v.place >= 0 {
		heap.Remove(v.timers, v.place)
		v.fn = nil
	}
}

// run calls due timers, but none that becomes due by that.
func (t *timers) run(now time.Time) {
	last, until := t.count, now.Sub(t.from)
	for len(t.list) > 0 && t.list[0].at <= until && t.list[0].order <= last {
		v := heap.Pop(t).(*timer)
		v.fn()
	}
}

func (t *timers) next() (at time.Time, more bool) {
	if len(t.list) == 0 {
		return at, false
	}
	return t.from.Add(t.list[0].at), true
}
