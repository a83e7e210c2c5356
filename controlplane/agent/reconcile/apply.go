// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/kernel"
)

// request asks the owner to do something; it answers exactly once.
type request struct {
	do    func(ctx context.Context) (v1.Result, error)
	reply chan outcome
}

type outcome struct {
	v1.Result
	err error
}

// Do runs fn on the owner's goroutine.
func (r *Reconciler) Do(ctx context.Context, fn func(ctx context.Context) (v1.Result, error)) (v1.Result, error) {
	q := request{do: fn, reply: make(chan outcome, 1)}
	select {
	case r.requests <- q:
	case <-ctx.Done():
		return v1.Result{}, ctx.Err()
	}
	select {
	case o := <-q.reply:
		return o.Result, o.err
	case <-ctx.Done():
		return v1.Result{}, ctx.Err()
	}
}

// Ignored are the kernel's routes that are not followed, at most `most` of each kind.
func (r *Reconciler) Ignored(ctx context.Context, most int) ([]kernel.Ignored, error) {
	var list []kernel.Ignored
	_, err := r.Do(ctx, func(context.Context) (v1.Result, error) {
		list = append(r.kernel.Ignored(most), r.kernel.overlay.IgnoredRoutes(most)...)
		return v1.Result{}, nil
	})
	if err != nil { // the owner may still write the list
		return nil, err
	}
	kernel.SortIgnored(list)
	return list, nil
}

// Reload reads the control plane's own file again and applies it; what `config apply` brought is forgotten.
func (r *Reconciler) Reload(ctx context.Context) (v1.Result, error) {
	next, err := r.Plan().Next(r.opt.File, nil)
	if err != nil {
		auth.Did(ctx, r.events, "config.refused", r.opt.File, err)
		return v1.Result{}, err
	}
	return r.Apply(ctx, next)
}

// Apply makes a plan the running one. When it is refused, nothing has changed.
func (r *Reconciler) Apply(ctx context.Context, next *plan.Plan) (v1.Result, error) {
	var was atomic.Pointer[plan.Plan] // the owner may come to it after we gave up
	res, err := r.Do(ctx, func(ctx context.Context) (v1.Result, error) {
		was.Store(r.plan)
		return r.apply(ctx, next)
	})
	if before := was.Load(); before != nil {
		r.toldApply(ctx, before, next, res, err)
	}
	return res, err
}

// Try is Apply up to the data plane's commit, and changes nothing. It returns what Apply would do.
func (r *Reconciler) Try(ctx context.Context, next *plan.Plan) (v1.Result, error) {
	return r.Do(ctx, func(ctx context.Context) (v1.Result, error) {
		ready, err := r.prepare(next)
		ready.discard()
		if err != nil {
			return v1.Result{}, err
		}
		puts, deletes := intent.Diff(digests(r.plan.Objects), next.Objects)
		if c := r.Client(); c != nil {
			if fixed := next.FixedBy(r.plan); len(fixed) > 0 {
				return v1.Result{}, errors.New("refused while the data plane runs: " + strings.Join(fixed, "; "))
			}
			if err := c.Rehearse(ctx, append(plan.Changes(deletes), plan.Changes(puts)...)); err != nil {
				return v1.Result{}, err
			}
		}
		res := v1.Result{Objects: len(next.Objects), Put: len(puts), Deleted: len(deletes), DryRun: true,
			Note: next.NeedsRestart(r.plan), Keys: next.Differs(r.plan), Here: next.Lacks()}
		res.Changes, res.More = difference(r.plan.Objects, next.Objects)
		return res, nil
	})
}

// apply is Apply in the owner. What may fail comes before the data plane's commit.
func (r *Reconciler) apply(ctx context.Context, next *plan.Plan) (v1.Result, error) {
	ready, err := r.prepare(next)
	if err != nil {
		ready.discard()
		return v1.Result{}, err
	}
	res := v1.Result{Objects: len(next.Objects), Note: "data plane is away; sent when it returns"}
	away := r.Client() == nil
	if !away {
		if res, err = r.push(ctx, next, false); err != nil {
			ready.discard()
			return v1.Result{}, err
		}
	}
	note := next.NeedsRestart(r.plan)
	r.plan = next
	if away {
		r.opt.Sessions.Adopt(next)
	}
	for _, more := range []string{note, r.accepted(ctx, next, ready)} {
		if more != "" {
			res.Note = strings.TrimPrefix(res.Note+"; "+more, "; ")
		}
	}
	if !away {
		r.settled(res, nil)
		r.log.Info("configuration applied", "put", res.Put, "deleted", res.Deleted, "objects", res.Objects)
	}
	return res, nil
}

// prepared is what a plan needs of this machine, which may fail.
type prepared struct {
	sessions plan.Prepared
	files    *plan.Staged // nil: they could not be written
}

// prepare makes what can be made, and returns why the rest cannot.
func (r *Reconciler) prepare(p *plan.Plan) (prepared, error) {
	sessions, noSessions := r.opt.Sessions.Prepare(p)
	files, noFiles := r.opt.Files.Stage(p)
	return prepared{sessions, files}, errors.Join(noSessions, noFiles)
}

func (p *prepared) discard() {
	p.sessions.Discard()
	if p.files != nil {
		p.files.Discard()
	}
}

// accepted publishes a plan as the running one and stores it for a restart; note: what failed.
func (r *Reconciler) accepted(ctx context.Context, p *plan.Plan, ready prepared) (note string) {
	r.state.Applied = time.Now()
	r.describe(p)
	r.kernel.Follow(ctx, p.Clones)
	r.opt.Announcer.Announce(p, r.kernel.Sessions)
	note = ready.sessions.Take(ctx)
	r.publish()
	if ready.files != nil {
		if err := ready.files.Keep(); err != nil { // written before: their folder went
			r.log.Error("the configuration is not kept for a restart of the control plane", "error", err)
			kept := fmt.Sprintf("not kept for a restart of the control plane: %v", err)
			note = strings.TrimPrefix(note+"; "+kept, "; ")
		}
	}
	return note
}

func (r *Reconciler) describe(p *plan.Plan) {
	r.Published.plan.Store(p)
	r.guard.Configure(&p.Control.API)
	r.state.CPUs = p.Placed
	r.state.Objects, r.state.AppliedFile, r.state.DropIns = len(p.Objects), "", p.DropIns
	if p.Applied {
		r.state.AppliedFile, r.state.DropIns = r.opt.Files.Applied, nil
	}
}
