// SPDX-License-Identifier: Apache-2.0

// Package reconcile keeps the data plane in step with a plan, over restarts of either side. One goroutine,
// Reconciler.Run, owns the plan, the data plane's last known state, and the connection. Others ask it through a
// channel, or read what it publishes atomically.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/kernel"
)

// Sessions are those outside of the configuration. Calls come from Run.
type Sessions interface {
	// Prepare does the parts of a plan that may fail. Its result is usable after an error, without the failed
	// parts.
	Prepare(p *plan.Plan) (plan.Prepared, error)
	// Push sends changes(held) as one transaction, and has sessions follow the plan. all: they are compared, too.
	Push(ctx context.Context, c *dp.Client, p *plan.Plan, all bool,
		changes func(held []api.Digest) []dp.Change) (v1.Result, error)
	// Adopt is Push while the data plane is away.
	Adopt(p *plan.Plan)
	// Resync compares sessions with what the data plane holds, beside everything else.
	Resync(ctx context.Context, c *dp.Client)
	// Detach: the data plane is away.
	Detach()
}

// Announcer knows the sessions to announce to routing daemons; to takes the changes (kernel.Kernel.Sessions). Calls
// come from Run.
type Announcer interface {
	Announce(p *plan.Plan, to func(all bool, changes map[string]map[netip.Prefix]bool))
	Reachable(p *plan.Plan, to func(all bool, changes map[string]map[netip.Prefix]bool))
	// ReachableChanged can be read when Reachable has news; nil: never.
	ReachableChanged() <-chan struct{}
}

// Options are what the reconciler stands in.
type Options struct {
	File      string // the control plane's own
	DPSocket  string
	Version   string
	Files     plan.Files
	Spawner   *spawn.Spawner // nil: something else starts the data plane
	Sessions  Sessions
	Announcer Announcer
	Events    *events.Log
	Guard     *auth.Guard
	Log       *slog.Logger
}

// Reconciler keeps the data plane in step.
type Reconciler struct {
	Published
	opt      Options
	log      *slog.Logger
	requests chan request

	// Owned by Run.
	kernel    follower
	plan      *plan.Plan // the wanted one
	confirmed *plan.Plan // the last plan that the data plane held whole
	state     v1.Status
}

// New makes a Reconciler that begins with a plan.
func New(opt Options, start *plan.Plan) *Reconciler {
	r := &Reconciler{opt: opt, log: opt.Log, requests: make(chan request), plan: start,
		kernel: newFollower(start, opt.Events, opt.Log)}
	r.events, r.guard, r.starts = opt.Events, opt.Guard, opt.Spawner
	given, moved := opt.Files.LastGiven(opt.Log)
	r.kernel.Remember(given, opt.Files.KeepGiven)
	opt.Files.Moved.Tell(opt.Events.Publish)
	moved.Tell(opt.Events.Publish)
	now := time.Now()
	r.state = v1.Status{Version: opt.Version, PID: os.Getpid(), File: opt.File, Started: now, Applied: now,
		DataPlane: v1.StateAway, DPSocket: opt.DPSocket}
	r.describe(start)
	r.publish()
	r.turn()
	return r
}

// publish makes a copy of the owner's status visible to all.
func (r *Reconciler) publish() {
	s := r.state
	r.status.Store(&s)
}

// heartPeriod is the longest time between two turns of the loop that nothing holds.
const heartPeriod = 10 * time.Second

// absence is how long after our start an unresponsive data plane counts as forwarding.
const absence = 5 * time.Second

// Run keeps the data plane in step until ctx ends. hangup asks to read the file again (SIGHUP).
func (r *Reconciler) Run(ctx context.Context, hangup <-chan os.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	up := make(chan *dp.Client)
	link := newLink(r.opt.DPSocket, r.opt.Spawner, r.log)
	defer link.wait()
	var reloads sync.WaitGroup // each is audited before the end
	defer reloads.Wait()
	r.startKernel(ctx)
	defer r.kernel.Wait()
	defer cancel() // before all waits: a panic must end the process
	reachable, absent := r.opt.Announcer.ReachableChanged(), time.After(absence)
	link.dial(ctx, up)
	var resync <-chan time.Time // nil, which never comes, without a period
	if period := r.plan.Control.ResyncPeriod; period > 0 {
		resync = time.Tick(period)
	}
	var lost <-chan struct{}
	heart := time.NewTicker(heartPeriod)
	defer heart.Stop()
	for {
		r.turn()
		select {
		case <-heart.C:
		case <-ctx.Done():
			r.opt.Sessions.Detach()
			if c := r.client.Swap(nil); c != nil {
				c.Close()
			}
			return
		case c := <-up:
			lost = c.Done()
			r.connected(ctx, c)
		case <-lost:
			lost = nil
			r.disconnected()
			link.dial(ctx, up)
		case q := <-r.requests:
			res, err := q.do(ctx)
			q.reply <- outcome{res, err}
		case <-hangup:
			// A goroutine, because it asks the owner in turn.
			reloads.Add(1)
			go func() {
				defer reloads.Done()
				if _, err := r.Reload(bySignal(ctx, "SIGHUP")); err != nil {
					r.log.Error("configuration refused, running state unchanged", "error", err)
				}
			}()
		case <-r.kernel.Changed():
			r.FollowKernel(ctx, r.kernel.Changes())
		case <-reachable:
			r.opt.Announcer.Reachable(r.plan, r.kernel.Sessions)
		case <-absent:
			if r.Client() == nil {
				r.kernel.Announce(false)
			}
		case <-resync:
			r.resync(ctx)
		}
	}
}

// resync compares all, and gives what was left out of the kernel's another chance.
func (r *Reconciler) resync(ctx context.Context) {
	r.kernel.retry()
	r.kernel.describe(&r.state)
	if c := r.Client(); c != nil {
		r.reconcile(ctx, false)
		r.opt.Sessions.Resync(ctx, c)
	}
}

func (r *Reconciler) connected(ctx context.Context, c *dp.Client) {
	h := c.Hello()
	r.state.Connects++
	r.state.DPPID, r.state.DPBootID, r.state.DPVersion = h.PID, h.BootID, api.CString(h.Build[:])
	r.state.DPHuge = h.Flags&api.HelloHuge != 0
	r.client.Store(c)
	r.events.Publish("dataplane.up", r.state.DPVersion, "pid", h.PID, "boot", h.BootID, "objects", h.Objects)
	r.log.Info("data plane connected", "pid", h.PID, "objects", h.Objects, "version", r.state.DPVersion)
	r.placeWorkers(ctx, c)
	r.reconcile(ctx, true)
}

func (r *Reconciler) disconnected() {
	r.client.Store(nil)
	r.kernel.Announce(false) // nothing forwards
	r.opt.Sessions.Detach()
	r.state.DataPlane = v1.StateAway
	r.publish()
	r.events.Publish("dataplane.down", r.state.DPVersion, "pid", r.state.DPPID)
	r.log.Warn("data plane connection lost, connecting again")
}

// reconcile brings the data plane to the plan: one transaction with what differs by digest. If a plan accepted without
// a data plane is refused now, the last plan that was held replaces it. all: objects of mobile sessions are compared
// too.
func (r *Reconciler) reconcile(ctx context.Context, all bool) {
	start := time.Now()
	res, err := r.push(ctx, r.plan, all)
	var refused *dp.RefusedError
	if before := r.before(); errors.As(err, &refused) && before != nil {
		r.log.Error("new configuration refused, going back to the one before", "error", err)
		r.plan = before
		back, missing := r.prepare(before)
		if missing != nil {
			r.log.Error("not all goes back to the configuration before", "error", missing)
			err = fmt.Errorf("%w; and not all went back: %w", err, missing)
		}
		r.accepted(ctx, before, back)
		if res, again := r.push(ctx, r.plan, all); again != nil {
			err = fmt.Errorf("%w; and going back failed: %w", err, again)
		} else {
			r.settled(res, nil)
			r.state.LastError = err.Error()
			r.publish()
			return
		}
	}
	r.settled(res, err)
	switch {
	case err != nil:
		r.log.Error("data plane not in step", "error", err)
	case res.Put+res.Deleted > 0:
		r.log.Info("data plane in step", "put", res.Put, "deleted", res.Deleted, "objects", res.Objects,
			"took", time.Since(start).Round(time.Millisecond))
	}
}

// mayAnnounce: no drain has withdrawn the announcements.
func (r *Reconciler) mayAnnounce() bool {
	return r.state.Drain.Since.IsZero() || r.state.Drain.Announced
}

// Drain publishes what is drained, and withdraws the announcements or puts them back. The zero Drain is a resume.
func (r *Reconciler) Drain(ctx context.Context, d v1.Drain) error {
	_, err := r.Do(ctx, func(context.Context) (v1.Result, error) {
		r.state.Drain = d
		if !r.mayAnnounce() {
			r.kernel.Announce(false)
		} else if r.state.DataPlane == v1.StateReady {
			r.kernel.Announce(true)
		}
		r.publish()
		return v1.Result{}, nil
	})
	return err
}

// before returns the plan to fall back to, nil without one. It is the last one held, or the control plane's own file
// when we started with an applied configuration.
func (r *Reconciler) before() *plan.Plan {
	switch {
	case r.confirmed != nil && r.confirmed != r.plan:
		return r.confirmed
	case r.confirmed == nil && r.plan.Applied && r.opt.File != "":
		own, err := r.plan.Next(r.opt.File, nil)
		if err != nil {
			r.log.Error("cannot go back to the file", "error", err)
			return nil
		}
		return own
	}
	return nil
}

// settled records the outcome of a push.
func (r *Reconciler) settled(res v1.Result, err error) {
	if err == nil {
		r.confirmed = r.plan
		r.kernel.Announce(r.mayAnnounce())
		r.state.DataPlane, r.state.LastError, r.state.Reconciled = v1.StateReady, "", time.Now()
		r.state.Changes += uint64(res.Put + res.Deleted)
	} else {
		r.state.LastError = err.Error()
		if r.Client() != nil {
			if r.state.DataPlane != v1.StateRefused {
				r.events.Publish("dataplane.refused", r.state.DPVersion, "error", err)
			}
			r.state.DataPlane = v1.StateRefused
		}
	}
	r.publish()
}

// push sends the difference between the held state and a plan with the kernel's part.
func (r *Reconciler) push(ctx context.Context, p *plan.Plan, all bool) (v1.Result, error) {
	return r.kernel.push(p, func(want intent.State) (v1.Result, error) {
		res := v1.Result{Objects: len(p.Objects)} // as config check and status count: without the kernel's part
		of, err := r.opt.Sessions.Push(ctx, r.Client(), p, all, func(held []api.Digest) []dp.Change {
			changes := plan.Diff(held, want)
			for i := range changes {
				if changes[i].Body == nil {
					res.Deleted++
				} else {
					res.Put++
				}
			}
			return changes
		})
		if err != nil {
			return v1.Result{}, err
		}
		res.Put, res.Deleted, res.Note = res.Put+of.Put, res.Deleted+of.Deleted, of.Note
		return res, nil
	})
}

// startKernel reads the kernel's state before anything is sent: a data plane that has it keeps it.
func (r *Reconciler) startKernel(ctx context.Context) {
	r.kernel.Follow(ctx, r.plan.Clones)
	r.opt.Announcer.Announce(r.plan, r.kernel.Sessions)
	r.kernel.known(ctx)
}

// FollowKernel sends the kernel's changes to the data plane. While that is away, the next push has them all. Run's
// goroutine.
func (r *Reconciler) FollowKernel(ctx context.Context, changes kernel.Changes) {
	r.kernel.overlay.Update(changes)
	if c := r.Client(); c != nil {
		sent, ok := r.kernel.send(ctx, c)
		r.state.Changes += uint64(sent)
		if !ok {
			r.reconcile(ctx, false)
		}
	}
	r.kernel.describe(&r.state)
	r.publish()
}
