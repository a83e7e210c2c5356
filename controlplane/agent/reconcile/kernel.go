// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/kernel"
)

// refusals is how many kernel objects a transaction may lose singly before all of them are left out.
const refusals = 64

// firstRead bounds how long the start waits for what the kernel has: a million routes take two seconds.
const firstRead = 10 * time.Second

// follower lays what the kernel has over a plan. All but Kernel's own goroutines is the owner's.
type follower struct {
	*kernel.Kernel
	overlay  *intent.Overlay // what the kernel adds
	of       *plan.Plan      // to this plan
	ignoring [kernel.Reasons]events.Gate
	events   *events.Log
	log      *slog.Logger
}

func newFollower(p *plan.Plan, told *events.Log, log *slog.Logger) follower {
	return follower{Kernel: kernel.New(log), overlay: intent.NewOverlay(p.Objects, nil), of: p, events: told,
		log: log}
}

// known waits for what the kernel has.
func (f *follower) known(ctx context.Context) {
	wait, cancel := context.WithTimeout(ctx, firstRead)
	defer cancel()
	f.Known(wait)
	f.overlay.Update(f.Changes())
}

// send sends pending changes, and returns their number; false: the data plane must be compared as a whole.
func (f *follower) send(ctx context.Context, c *dp.Client) (sent int, ok bool) {
	for range refusals {
		deletes, puts := f.overlay.Pending()
		err := c.Apply(ctx, append(plan.Changes(deletes), plan.Changes(puts)...))
		if err == nil {
			f.overlay.Settled()
			return len(deletes) + len(puts), true
		}
		if !f.leaveOut(err) {
			f.log.Warn("the kernel's state is not in the data plane", "error", err)
			return 0, false
		}
	}
	return 0, false
}

// leaveOut leaves out a kernel object that the data plane refused; false: the fault is another.
func (f *follower) leaveOut(err error) bool {
	var refused *dp.RefusedError
	if !errors.As(err, &refused) || !f.overlay.Refuse(refused.Kind, refused.Key, refused.Text) {
		return false
	}
	f.log.Warn("left out of what the kernel has", "error", err)
	return true
}

// push sends a plan with the kernel's part, without refused objects.
func (f *follower) push(p *plan.Plan, send func(want intent.State) (v1.Result, error)) (v1.Result, error) {
	overlay, of := f.overlay, f.of
	if p != of {
		f.overlay, f.of = intent.NewOverlay(p.Objects, overlay), p
	}
	for try := 0; ; try++ {
		res, err := send(f.overlay.Over(p.Objects))
		var refused *dp.RefusedError
		switch {
		case err == nil:
			f.overlay.Settled()
			return res, nil
		case !errors.As(err, &refused) || f.overlay.Empty():
			f.overlay, f.of = overlay, of
			return res, err
		case try < refusals && f.leaveOut(err):
		default: // the configuration alone
			f.log.Error("what the kernel has is left out, it contradicts the configuration", "error", err)
			f.overlay.Clear()
		}
	}
}

// retry gives what was left out another chance.
func (f *follower) retry() {
	if len(f.of.Clones) > 0 {
		st := f.State()
		f.overlay.Update(kernel.Changes{All: &st})
	}
}

// describe adds the followed part of the kernel to the status.
func (f *follower) describe(to *v1.Status) {
	to.Kernel = f.Status()
	before := to.KernelRefused
	to.KernelRefused, to.KernelWhy = f.overlay.Refused()
	if before == 0 && to.KernelRefused > 0 {
		f.log.Warn("a part of what the kernel has is left out", "objects", to.KernelRefused,
			"why", to.KernelWhy)
	}
	f.describeIgnored(to)
}

// describeIgnored counts the kernel's routes that are not followed, and logs new ones, rate limited by reason.
func (f *follower) describeIgnored(to *v1.Status) {
	now := f.overlay.Ignored()
	for why, n := range f.Left() {
		now[why] += n
	}
	was := to.RoutesIgnored
	to.RoutesIgnored = map[string]int{}
	for why, n := range now {
		to.RoutesIgnored[why.String()] = n
		if n <= was[why.String()] {
			continue
		}
		f.ignoring[why].Most, f.ignoring[why].Window = 1, ignoredWindow
		if _, open := f.ignoring[why].Open(time.Now()); open {
			f.events.Publish("route.ignored", why.String(), "routes", n, "text", why.Text())
			f.log.Warn("routes of the kernel's are not followed: isthmus show route --ignored",
				"reason", why, "routes", n)
		}
	}
}

// ignoredWindow is the least time between two logs of a reason.
const ignoredWindow = 10 * time.Second
