// SPDX-License-Identifier: Apache-2.0

// Package agent is the control plane as a process: it assembles its parts and runs them until a signal. README.md lists
// the owners.
package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"isthmus/controlplane/agent/dynamic"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/agent/serve"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/backup"
	"isthmus/controlplane/events"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/page"
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

// Agent is one control plane.
type Agent struct {
	opt      Options // the command line's, else the file's
	measures *measure.Set
	events   *events.Log
	guard    *auth.Guard       // of the API by TCP
	sessions *dynamic.Sessions // nil: the configuration has none
	spawner  *spawn.Spawner    // nil: something else starts the data plane
	owner    *reconcile.Reconciler
	files    plan.Files // locked until Run ends
	watcher  watcher
	api      *serve.API
	scraper  *serve.Scraper
	probes   *serve.Probes
	page     *page.Page // may be nil; set with the listeners
	// listeners are Serve's; set before it serves
	listeners []*httpd.Listener
}

// New loads the file; a refused file is the error, since there is nothing else to run.
func New(opt Options) (*Agent, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	start, files, err := plan.Start(opt.File, opt.State, opt.Socket, opt.Log)
	if err != nil {
		return nil, err
	}
	a, err := newAgent(opt, start, files)
	if err != nil {
		files.Unlock()
	}
	return a, err
}

func newAgent(opt Options, start *plan.Plan, files plan.Files) (*Agent, error) {
	c := &start.Control
	opt.Socket, opt.DPSocket = cmp.Or(opt.Socket, c.Socket), cmp.Or(opt.DPSocket, c.DPSocket)
	opt.Metrics, opt.Restart = cmp.Or(opt.Metrics, c.Metrics), cmp.Or(opt.Restart, c.Restart.Policy)
	opt.State = cmp.Or(opt.State, c.State)
	if err := writable(opt.State); err != nil {
		return nil, err
	}
	a := &Agent{opt: opt, files: files, measures: measure.New(), spawner: supervisor(&opt, start)}
	if opt.StopBoth && a.spawner == nil {
		return nil, fmt.Errorf("--stop-both: by the policy %s something else starts the data plane",
			opt.Restart)
	}
	a.events = newEvents(&opt)
	if a.spawner != nil {
		a.spawner.Ended = func(e v1.Ended) {
			a.events.Publish("dataplane.ended", e.How, "pid", e.PID, "times", e.Times,
				"since", e.Since.Format(time.RFC3339), "words", e.Words)
		}
	}
	a.guard = auth.NewGuard(a.events)
	var err error
	a.sessions, err = dynamic.Open(start, dynamic.Options{Store: opt.beside("sessions.db"), DPSocket: opt.DPSocket,
		Events: a.events, Measures: a.measures, Log: opt.Log})
	if err != nil {
		return nil, err
	}
	a.owner = reconcile.New(reconcile.Options{File: opt.File, DPSocket: opt.DPSocket, Version: opt.Version,
		Files: files, Spawner: a.spawner, Sessions: a.sessions, Announcer: a.sessions, Events: a.events,
		Guard: a.guard, Log: opt.Log}, start)
	state := &a.owner.Published
	a.watcher = watcher{state: state, sessions: a.sessions, measures: a.measures, events: a.events, log: opt.Log,
		period: watchPeriod}
	a.api = serve.New(serve.Options{State: state, Owner: a.owner, Kernel: a.owner, Sessions: a.sessions,
		SignIns: a.sessions.SignedIn(), Associations: a.sessions, Subscribers: a.sessions.SignedIn(),
		Events: a.events, Guard: a.guard, DPSocket: opt.DPSocket, DPBinary: opt.DPBinary, Kept: opt.kept,
		Log: opt.Log})
	a.scraper = &serve.Scraper{State: state, Sessions: a.sessions, Tables: a.api.Tables, Log: opt.Log,
		Listeners: func() []*httpd.Listener { return a.listeners }}
	a.probes = &serve.Probes{State: state}
	return a, nil
}

// place is where the process keeps what outlives it.
func (o *Options) place() plan.Place { return plan.Place{Folder: o.State, Socket: o.Socket} }

// beside is the name of a file in the state folder, or beside the socket without one.
func (o *Options) beside(name string) string { return o.place().File(name) }

// kept are the files that outlive the process. The environment may have placed them, and is its own.
func (o *Options) kept() (v1.Kept, error) {
	return backup.Kept(o.Version, backup.Place{Config: o.File, Folder: o.State, Socket: o.Socket,
		Environ: os.Environ()})
}

// newEvents makes the log of events. Changes by operators are in a file, too, where control.state names a folder.
func newEvents(opt *Options) *events.Log {
	if opt.State == "" {
		return events.New(nil)
	}
	return events.New(events.NewAudit(opt.beside("audit.log"), opt.Log))
}

// supervisor starts the data plane as the policy asks for; nil: something else does.
func supervisor(opt *Options, start *plan.Plan) *spawn.Spawner {
	if opt.Restart != "always" && opt.Restart != "never" {
		return nil
	}
	r := start.Control.Restart
	return &spawn.Spawner{
		Program:   cmp.Or(opt.DPBinary, r.Program),
		Arguments: spawn.Arguments(opt.DPSocket, start.HugePages),
		Once:      opt.Restart == "never",
		Delay:     r.Delay,
		Most:      r.MaxDelay,
		Log:       opt.Log,
	}
}

// Run keeps the data plane in step until ctx ends. hangup asks to read the file again (SIGHUP).
func (a *Agent) Run(ctx context.Context, hangup <-chan os.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	control := &a.owner.Plan().Control
	a.sessions.Start(ctx, control.UsagePeriod)
	defer a.files.Unlock()
	defer a.sessions.Wait()
	a.events.Publish("control.started", a.opt.Version, "pid", os.Getpid(), "file", a.opt.File)
	watched := make(chan struct{})
	go func() { defer close(watched); a.watcher.run(ctx) }()
	defer func() { <-watched }()
	defer cancel() // before all waits: a panic must end the process
	a.owner.Run(ctx, hangup)
}
