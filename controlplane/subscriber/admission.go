// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"time"

	"isthmus/controlplane/access"
)

// patience is how long a sign-in waits for its turn. Clients try again after some seconds: an answer to one that gave
// up would be wasted.
const patience = 5 * time.Second

// admission lets sign-ins through: so many at once, so many a second (row B17). Who waits too long, or finds the
// queue full, hears nothing, as if the frame had been lost: it tries again.
type admission struct {
	loop    *Loop
	running int
	queue   []*attempt
	tokens  float64
	filled  time.Time
	timer   *timer
}

// mostWaiting bounds the queue: with paced front ends it is the homes of two large access nodes.
const mostWaiting = 16384

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
	if rate := float64(limits.Rate); rate > 0 {
		most := max(rate/10, 1) // bursts of a tenth of a second
		if a.filled.IsZero() {
			a.tokens = most
		}
		a.tokens = min(a.tokens+now.Sub(a.filled).Seconds()*rate, most)
		a.filled = now
	}
	for len(a.queue) > 0 && a.running < limits.Pending {
		t := a.queue[0]
		switch {
		case t.over:
		case now.Sub(t.began) > patience:
			t.refuse("busy", &access.Verdict{Silent: true, Why: "waited too long for its turn"})
		case limits.Rate > 0 && a.tokens < 1:
			if a.timer == nil || a.timer.place < 0 {
				pause := time.Duration((1-a.tokens)/float64(limits.Rate)*1e9) + time.Millisecond
				a.timer = a.loop.timers.add(now.Add(pause), a.advance)
			}
			return
		default:
			if limits.Rate > 0 {
				a.tokens--
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
