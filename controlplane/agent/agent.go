// SPDX-License-Identifier: Apache-2.0

// Package agent is the control plane as a process: it owns the intent, keeps the data plane in step with it over
// restarts of either side, and answers the command line. One goroutine (Run) owns plan, confirmed and the connection's
// life; everything else asks it through a channel, or reads what it publishes atomically.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/dynamic"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/page"
	"isthmus/controlplane/view"
)

// Options are what the command line decides; empty values leave it to the file.
type Options struct {
	File          string
	Socket        string
	DPSocket      string
	DPBinary      string
	Metrics       string // "off": none
	MetricsPublic bool   // allow an address that is not of this machine alone
	Restart       string // policy, instead of the file's
	StopBoth      bool   // SIGTERM ends the data plane too
	State         string // folder of what outlives us, instead of the file's
	Version       string
	Log           *slog.Logger
}

func (o *Options) logger() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// Agent is one control plane.
type Agent struct {
	opt      Options
	log      *slog.Logger
	requests chan request
	measures *measure.Set
	client   atomic.Pointer[dp.Client] // nil while the data plane is away
	status   atomic.Pointer[v1.Status]
	current  atomic.Pointer[plan.Plan] // the running one, as the owner published it
	files    plan.Files                // without names: nothing is kept
	cache    snapshots
	events   *events.Log
	guard    *auth.Guard // of the API by TCP
	// of what reads tables for clients of the Unix socket, of TCP; of traces
	shows, remoteShows, traces *httpd.Places
	control                    view.Control      // what we know and the data plane does not
	sessions                   *dynamic.Sessions // nil: the configuration has none
	page                       *page.Page        // nil: there is none; set with the listeners
	// listeners are those of Serve; set before it serves anything
	listeners   []*httpd.Listener
	watchPeriod time.Duration
	upload      int64 // bounds a body
	ignoring    [kernel.Reasons]events.Gate

	// Owned by Run.
	spawner   *spawn.Spawner // nil: something else starts the data plane
	kernel    *kernel.Kernel
	overlay   *intent.Overlay // what the kernel adds to
	overlayOf *plan.Plan
	plan      *plan.Plan // what shall be
	confirmed *plan.Plan // the last plan that the data plane held whole
	state     v1.Status
}

// request asks the owner to do something; it answers exactly once.
type request struct {
	do    func(ctx context.Context) (v1.Result, error)
	reply chan outcome
}

type outcome struct {
	v1.Result
	err error
}

// New loads the file; a refused file is the error of a control plane that has nothing to run with.
func New(opt Options) (*Agent, error) {
	start, files, err := plan.Start(opt.File, opt.State, opt.Socket, opt.logger())
	if err != nil {
		return nil, err
	}
	a := newAgent(opt, start)
	if opt.StopBoth && !a.spawns() {
		return nil, fmt.Errorf("--stop-both: by the policy %s something else starts the data plane", a.opt.Restart)
	}
	a.files = files
	a.kernel.Remember(files.LastGiven(a.log), files.KeepGiven)
	a.sessions, err = dynamic.Open(start, dynamic.Options{Store: a.opt.beside("sessions.db"), DPSocket: a.opt.DPSocket,
		Events: a.events, Measures: a.measures, Log: a.log})
	if err != nil {
		return nil, err
	}
	a.control = newControl(a)
	a.describe(start)
	a.publish()
	return a, nil
}

func newAgent(opt Options, plan *plan.Plan) *Agent {
	a := &Agent{opt: opt, log: opt.logger(), requests: make(chan request), plan: plan,
		kernel: kernel.New(opt.logger()), overlay: intent.NewOverlay(plan.Objects, nil), overlayOf: plan,
		measures: measure.New(),
		events:   newEvents(&opt, plan, opt.logger()), watchPeriod: watchPeriod, upload: maxUpload,
		shows: httpd.NewPlaces(maxShows), remoteShows: httpd.NewPlaces(maxRemoteShows),
		traces: httpd.NewPlaces(maxTraces)}
	a.opt.State = cmp.Or(opt.State, plan.Control.State)
	a.opt.Socket = cmp.Or(opt.Socket, plan.Control.Socket)
	a.opt.DPSocket = cmp.Or(opt.DPSocket, plan.Control.DPSocket)
	a.opt.Metrics = cmp.Or(opt.Metrics, plan.Control.Metrics)
	a.opt.Restart = cmp.Or(opt.Restart, plan.Control.Restart.Policy)
	a.guard = auth.NewGuard(a.events)
	a.control = newControl(a)
	now := time.Now()
	a.state = v1.Status{
		Version: opt.Version, PID: os.Getpid(), File: opt.File, Started: now, Applied: now, Objects: len(plan.Objects),
		DataPlane: v1.StateAway, DPSocket: a.opt.DPSocket,
	}
	a.describe(plan)
	a.publish()
	return a
}

// supervisor starts the data plane as the policy asks for; nil: something else does.
func (a *Agent) supervisor() *spawn.Spawner {
	if !a.spawns() {
		return nil
	}
	r := a.plan.Control.Restart
	return &spawn.Spawner{
		Program:   cmp.Or(a.opt.DPBinary, r.Program),
		Arguments: spawn.Arguments(a.opt.DPSocket, a.plan.HugePages),
		Once:      a.opt.Restart == "never",
		Delay:     time.Duration(r.DelayMS) * time.Millisecond,
		Most:      time.Duration(r.MaxDelay) * time.Millisecond,
		Log:       a.log,
	}
}

// spawns tells that the data plane is ours to start and stop.
func (a *Agent) spawns() bool { return a.opt.Restart == "always" || a.opt.Restart == "never" }

// beside is the name of a file in the folder of what outlives us, or beside the socket where there is none.
func (o *Options) beside(name string) string {
	if o.State == "" {
		return o.Socket + "." + name
	}
	return filepath.Join(o.State, name)
}

// publish makes a copy of the owner's status visible to all.
func (a *Agent) publish() {
	s := a.state
	a.status.Store(&s)
}

// Status returns the last published status.
func (a *Agent) Status() v1.Status {
	s, e := *a.status.Load(), a.events.Stats()
	s.RefusedRequests, s.Events = a.guard.Refused(), e.Published
	s.Followers, s.DroppedFollowers = e.Followers, e.Dropped
	return s
}

// absence is how long after our start a data plane that does not answer counts as one that forwards.
const absence = 5 * time.Second

// Run keeps the data plane in step until ctx ends. hangup asks to read the file again (SIGHUP).
func (a *Agent) Run(ctx context.Context, hangup <-chan os.Signal) error {
	up := make(chan *dp.Client)
	a.spawner = a.supervisor()
	link := newLink(a.opt.DPSocket, a.spawner, a.log)
	defer link.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.sessions.Start(ctx, time.Duration(a.plan.Control.UsagePeriod)*time.Second)
	defer a.sessions.Wait()
	a.events.Publish("control.started", a.opt.Version, "pid", a.state.PID, "file", a.opt.File)
	watched := make(chan struct{})
	go func() { defer close(watched); a.watch(ctx) }()
	defer func() { cancel(); <-watched }()
	var reloads sync.WaitGroup // each is audited before the end
	defer func() { cancel(); reloads.Wait() }()
	a.startKernel(ctx)
	reachable, absent := a.sessions.ReachableChanged(), time.After(absence)
	defer a.kernel.Wait()
	link.dial(ctx, up)
	var resync <-chan time.Time // nil, which never comes, without a period
	if period := time.Duration(a.plan.Control.ResyncPeriod) * time.Second; period > 0 {
		resync = time.Tick(period)
	}
	var lost <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			a.sessions.Detach()
			if c := a.client.Swap(nil); c != nil {
				c.Close()
			}
			return nil
		case c := <-up:
			lost = c.Done()
			a.connected(ctx, c)
		case <-lost:
			lost = nil
			a.disconnected()
			link.dial(ctx, up)
		case r := <-a.requests:
			res, err := r.do(ctx)
			r.reply <- outcome{res, err}
		case <-hangup:
			// A goroutine, because it asks the owner in turn.
			reloads.Add(1)
			go func() {
				defer reloads.Done()
				if _, err := a.Reload(bySignal(ctx, "SIGHUP")); err != nil {
					a.log.Error("configuration refused, running state unchanged", "error", err)
				}
			}()
		case <-a.kernel.Changed():
			a.followKernel(ctx)
		case <-reachable:
			a.sessions.Reachable(a.plan, a.kernel.Sessions)
		case <-absent:
			if a.client.Load() == nil {
				a.kernel.Announce(false)
			}
		case <-resync:
			a.retryKernel()
			if c := a.client.Load(); c != nil {
				a.reconcile(ctx, false)
				a.sessions.Resync(ctx, c)
			}
		}
	}
}

func (a *Agent) connected(ctx context.Context, c *dp.Client) {
	h := c.Hello()
	a.state.Connects++
	a.state.DPPID, a.state.DPBootID, a.state.DPVersion = h.PID, h.BootID, api.CString(h.Build[:])
	a.state.DPHuge = h.Flags&api.HelloHuge != 0
	a.client.Store(c)
	a.events.Publish("dataplane.up", a.state.DPVersion, "pid", h.PID, "boot", h.BootID, "objects", h.Objects)
	a.log.Info("data plane connected", "pid", h.PID, "objects", h.Objects, "version", a.state.DPVersion)
	a.reconcile(ctx, true)
}

func (a *Agent) disconnected() {
	a.client.Store(nil)
	a.kernel.Announce(false) // nobody forwards
	a.sessions.Detach()
	a.state.DataPlane = v1.StateAway
	a.publish()
	a.events.Publish("dataplane.down", a.state.DPVersion, "pid", a.state.DPPID)
	a.log.Warn("data plane connection lost, connecting again")
}

// reconcile brings the data plane to the plan: what differs by digest goes out as one transaction. A plan that was
// accepted while the data plane was away and is refused now gives way to the last one that the data plane held. all:
// what mobile sessions made is compared too.
func (a *Agent) reconcile(ctx context.Context, all bool) {
	start := time.Now()
	res, err := a.push(ctx, a.plan, all)
	var refused *dp.RefusedError
	if before := a.before(); errors.As(err, &refused) && before != nil {
		a.log.Error("new configuration refused, going back to the one before", "error", err)
		a.plan = before
		back, missing := a.prepare(before)
		if missing != nil {
			a.log.Error("not all goes back to the configuration before", "error", missing)
			err = fmt.Errorf("%w; and not all went back: %w", err, missing)
		}
		a.accepted(ctx, before, back)
		if _, again := a.push(ctx, a.plan, all); again != nil {
			err = fmt.Errorf("%w; and going back failed: %w", err, again)
		} else {
			a.settled(res, nil)
			a.state.LastError = err.Error()
			a.publish()
			return
		}
	}
	a.settled(res, err)
	switch {
	case err != nil:
		a.log.Error("data plane not in step", "error", err)
	case res.Put+res.Deleted > 0:
		a.log.Info("data plane in step", "put", res.Put, "deleted", res.Deleted, "objects", res.Objects,
			"took", time.Since(start).Round(time.Millisecond))
	}
}

// before returns what to go back to when the plan is refused, nil when there is nothing: the last one that was held, or
// the control plane's own file when we started with what `config apply` had brought.
func (a *Agent) before() *plan.Plan {
	switch {
	case a.confirmed != nil && a.confirmed != a.plan:
		return a.confirmed
	case a.confirmed == nil && a.plan.Applied && a.opt.File != "":
		own, err := plan.MakeWith(a.opt.File, nil, os.Environ(), a.plan.Placement)
		if err != nil {
			a.log.Error("cannot go back to the file", "error", err)
			return nil
		}
		return own
	}
	return nil
}

// settled records the outcome of a push.
func (a *Agent) settled(res v1.Result, err error) {
	if err == nil {
		a.confirmed = a.plan
		a.kernel.Announce(true)
		a.state.DataPlane, a.state.LastError, a.state.Reconciled = v1.StateReady, "", time.Now()
		a.state.Changes += uint64(res.Put + res.Deleted)
	} else {
		a.state.LastError = err.Error()
		if a.client.Load() != nil {
			if a.state.DataPlane != v1.StateRefused {
				a.events.Publish("dataplane.refused", a.state.DPVersion, "error", err)
			}
			a.state.DataPlane = v1.StateRefused
		}
	}
	a.publish()
}

// pushObjects sends the difference between what is held and what is wanted.
func (a *Agent) pushObjects(ctx context.Context, p *plan.Plan, want intent.State, all bool) (v1.Result, error) {
	res := v1.Result{Objects: len(want)}
	of, err := a.sessions.Push(ctx, a.client.Load(), p, all, func(held []api.Digest) []dp.Change {
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
}

// ask runs fn on the owner's goroutine.
func (a *Agent) ask(ctx context.Context, fn func(ctx context.Context) (v1.Result, error)) (v1.Result, error) {
	r := request{do: fn, reply: make(chan outcome, 1)}
	select {
	case a.requests <- r:
	case <-ctx.Done():
		return v1.Result{}, ctx.Err()
	}
	select {
	case o := <-r.reply:
		return o.Result, o.err
	case <-ctx.Done():
		return v1.Result{}, ctx.Err()
	}
}

// Reload reads the agent's own file again and applies it; what `config apply` brought is forgotten.
func (a *Agent) Reload(ctx context.Context) (v1.Result, error) {
	next, err := plan.MakeWith(a.opt.File, nil, os.Environ(), a.current.Load().Placement)
	if err != nil {
		a.by(ctx, "config.refused", a.opt.File, err)
		return v1.Result{}, err
	}
	return a.Apply(ctx, next)
}

// Apply makes a plan the running one. When it is refused, nothing has changed.
func (a *Agent) Apply(ctx context.Context, next *plan.Plan) (v1.Result, error) {
	var was atomic.Pointer[plan.Plan] // the owner may come to it after we gave up
	res, err := a.ask(ctx, func(ctx context.Context) (v1.Result, error) {
		was.Store(a.plan)
		return a.apply(ctx, next)
	})
	if before := was.Load(); before != nil {
		a.toldApply(ctx, before, next, res, err)
	}
	return res, err
}

// apply is Apply in the owner. What may fail comes before the data plane's commit.
func (a *Agent) apply(ctx context.Context, plan *plan.Plan) (v1.Result, error) {
	ready, err := a.prepare(plan)
	if err != nil {
		ready.discard()
		return v1.Result{}, err
	}
	res := v1.Result{Objects: len(plan.Objects), Note: "data plane is away; sent when it returns"}
	away := a.client.Load() == nil
	if !away {
		if res, err = a.push(ctx, plan, false); err != nil {
			ready.discard()
			return v1.Result{}, err
		}
	}
	note := plan.NeedsRestart(a.plan)
	a.plan = plan
	if away {
		a.sessions.Adopt(plan)
	}
	for _, more := range []string{note, a.accepted(ctx, plan, ready)} {
		if more != "" {
			res.Note = strings.TrimPrefix(res.Note+"; "+more, "; ")
		}
	}
	if !away {
		a.settled(res, nil)
		a.log.Info("configuration applied", "put", res.Put, "deleted", res.Deleted, "objects", res.Objects)
	}
	return res, nil
}

// accepted publishes a plan as the running one and keeps what brings it back after a restart of ours; note: what does
// not succeed.
func (a *Agent) accepted(ctx context.Context, plan *plan.Plan, ready prepared) (note string) {
	a.state.Applied = time.Now()
	a.describe(plan)
	a.kernel.Follow(ctx, plan.Clones)
	a.sessions.Announce(plan, a.kernel.Sessions)
	note = ready.sessions.Take(ctx)
	a.publish()
	if ready.files != nil {
		if err := ready.files.Keep(); err != nil { // written before: their folder went
			a.log.Error("the configuration is not kept for a restart of the control plane", "error", err)
			kept := fmt.Sprintf("not kept for a restart of the control plane: %v", err)
			note = strings.TrimPrefix(note+"; "+kept, "; ")
		}
	}
	return note
}

func (a *Agent) describe(plan *plan.Plan) {
	a.current.Store(plan)
	a.guard.Configure(guardSettings(&plan.Control.API))
	a.state.Objects, a.state.AppliedFile = len(plan.Objects), ""
	if plan.Applied {
		a.state.AppliedFile = a.files.Applied
	}
}

// running returns the plan that runs.
func (a *Agent) running(ctx context.Context) (*plan.Plan, error) {
	var plan *plan.Plan
	_, err := a.ask(ctx, func(context.Context) (v1.Result, error) {
		plan = a.plan
		return v1.Result{}, nil
	})
	return plan, err
}
