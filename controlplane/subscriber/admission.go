// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/bucket"
)

// patience is how long a sign-in waits for its turn. Clients repeat after some seconds: a later answer would be wasted.
const patience = 5 * time.Second

// admission lets sign-ins through: so many at once, so many a second (row B17). A sign-in that waits too long, or finds
// the queue full, gets no answer, as if the frame were lost: the client tries again.
type admission struct {
	loop    *Loop
	running int
	queue   []*attempt
	pace    bucket.Bucket
	timer   *timer
}

// mostWaiting bounds the queue: with paced front ends it is the homes of two large access nodes.
const mostWaiting = 16384

// burst is how much of a second's rate may come in at once.
const burst = 100 * time.Millisecond

func (a *admission) enter(t *attempt) {
	if len(a.queue) >= mostWaiting {
		t.refuse("busy", &access.Verdict{Silent: true, Why: "too many sign-ins wait"})
		return
	}
	a.queue = append(a.queue, t)
	a.advance()
}

// leave is called once for each that was let through.
func (a *admission) leave() {
	a.running--
	a.advance()
}

func (a *admission) advance() {
	limits, now := &a.loop.set.Limits, a.loop.opt.Now()
	for len(a.queue) > 0 && a.running < int(limits.Pending) {
		t := a.queue[0]
		switch {
		case t.over:
		case now.Sub(t.began) > patience:
			t.refuse("busy", &access.Verdict{Silent: true, Why: "waited too long for its turn"})
		default:
			if wait, ok := a.pace.Take(now, int(limits.Rate), burst); !ok {
				if a.timer == nil || a.timer.place < 0 {
					a.timer = a.loop.timers.add(now.Add(wait+time.Millisecond), a.advance)
				}
				return
			}
			a.running++
			a.queue[0], a.queue = nil, a.queue[1:]
			t.authenticate()
			continue
		}
		a.queue[0], a.queue = nil, a.queue[1:]
	}
	if len(a.queue) == 0 {
		a.queue = nil
	}
}
