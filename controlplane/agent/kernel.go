// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/kernel"
)

// refusals is how many objects of the kernel's a transaction may lose one by one, before all of them are left out.
const refusals = 64

// firstRead bounds how long the start waits for what the kernel has: a million routes take two seconds.
const firstRead = 10 * time.Second

// startKernel reads what the kernel has before anything is sent: a data plane that has it keeps it.
func (a *Agent) startKernel(ctx context.Context) {
	a.kernel.Follow(ctx, a.plan.Clones)
	a.sessions.Announce(a.plan, a.kernel.Sessions)
	wait, cancel := context.WithTimeout(ctx, firstRead)
	defer cancel()
	a.kernel.Known(wait)
	a.overlay.Update(a.kernel.Changes())
}

// followKernel gives the data plane what changed in the kernel. While it is away, the next push has it all.
func (a *Agent) followKernel(ctx context.Context) {
	a.overlay.Update(a.kernel.Changes())
	c := a.client.Load()
	if c != nil && !a.sendOverlay(ctx, c) {
		a.reconcile(ctx, false)
	}
	a.describeKernel()
	a.publish()
}

// sendOverlay sends what is pending; false: the data plane must be compared as a whole.
func (a *Agent) sendOverlay(ctx context.Context, c *dp.Client) bool {
	for range refusals {
		deletes, puts := a.overlay.Pending()
		err := c.Apply(ctx, append(plan.Changes(deletes), plan.Changes(puts)...))
		if err == nil {
			a.overlay.Settled()
			a.state.Changes += uint64(len(deletes) + len(puts))
			return true
		}
		if !a.leaveOut(err) {
			a.log.Warn("the kernel's state is not in the data plane", "error", err)
			return false
		}
	}
	return false
}

// leaveOut leaves an object of the kernel's out that the data plane did not take; false: it was something else.
func (a *Agent) leaveOut(err error) bool {
	var refused *dp.RefusedError
	if !errors.As(err, &refused) || !a.overlay.Refuse(refused.Kind, refused.Key, refused.Text) {
		return false
	}
	a.log.Warn("left out of what the kernel has", "error", err)
	return true
}

// push sends the difference between what is held and the plan with what the kernel adds, without what of that is
// refused.
func (a *Agent) push(ctx context.Context, plan *plan.Plan, all bool) (v1.Result, error) {
	overlay, of := a.overlay, a.overlayOf
	if plan != of {
		a.overlay, a.overlayOf = intent.NewOverlay(plan.Objects, overlay), plan
	}
	for try := 0; ; try++ {
		res, err := a.pushObjects(ctx, plan, a.overlay.Over(plan.Objects), all)
		var refused *dp.RefusedError
		switch {
		case err == nil:
			a.overlay.Settled()
			return res, nil
		case !errors.As(err, &refused) || a.overlay.Empty():
			a.overlay, a.overlayOf = overlay, of
			return res, err
		case try < refusals && a.leaveOut(err):
		default: // the configuration stands by itself
			a.log.Error("what the kernel has is left out, it contradicts the configuration", "error", err)
			a.overlay.Clear()
		}
	}
}

// retryKernel gives what was left out another chance.
func (a *Agent) retryKernel() {
	if len(a.overlayOf.Clones) > 0 {
		st := a.kernel.State()
		a.overlay.Update(kernel.Changes{All: &st})
	}
	a.describeKernel()
}

func (a *Agent) describeKernel() {
	a.state.Kernel = a.kernel.Status()
	before := a.state.KernelRefused
	a.state.KernelRefused, a.state.KernelWhy = a.overlay.Refused()
	if before == 0 && a.state.KernelRefused > 0 {
		a.log.Warn("a part of what the kernel has is left out", "objects", a.state.KernelRefused,
			"why", a.state.KernelWhy)
	}
	a.describeIgnored()
}

// describeIgnored counts the kernel's routes that are not followed, and tells of more of them: of each reason once in a
// while.
func (a *Agent) describeIgnored() {
	now := a.overlay.Ignored()
	for why, n := range a.kernel.Left() {
		now[why] += n
	}
	was := a.state.RoutesIgnored
	a.state.RoutesIgnored = map[string]int{}
	for why, n := range now {
		a.state.RoutesIgnored[why.String()] = n
		if n <= was[why.String()] {
			continue
		}
		a.ignoring[why].Most, a.ignoring[why].Window = 1, ignoredWindow
		if _, open := a.ignoring[why].Open(time.Now()); open {
			a.events.Publish("route.ignored", why.String(), "routes", n, "text", why.Text())
			a.log.Warn("routes of the kernel's are not followed: isthmus show route --ignored",
				"reason", why, "routes", n)
		}
	}
}

// ignoredWindow is how often a reason is told of.
const ignoredWindow = 10 * time.Second
