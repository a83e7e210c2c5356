// SPDX-License-Identifier: Apache-2.0

// Package dynamic assembles sessions outside of the configuration: their manager, the PFCP server, sign-in, records of
// NAT44. A nil *Sessions stands for a configuration without any.
package dynamic

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/signin"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/natlog"
	"isthmus/controlplane/session"
)

// Options are what the parts stand in.
type Options struct {
	Store    string // of the sessions, where the configuration names none
	DPSocket string
	Events   *events.Log
	Measures *measure.Set
	Log      *slog.Logger
}

// Sessions are those that are no configuration's.
type Sessions struct {
	Manager *session.Manager
	SignIns *signin.SignIns // nil: without sign-in
	Tally   *events.Sessions

	opt         Options
	server      *n4.Server // nil: subscribers sign in alone
	blocks      *natlog.Log
	group       sync.WaitGroup
	indications events.Gate // of the data plane's events; one goroutine's
	comparing   atomic.Bool // Resync is under way
}

// Open opens the store and the sockets, when a plan has PFCP or sign-in. Start serves them.
func Open(p *plan.Plan, opt Options) (*Sessions, error) {
	pfcp := p.PFCP != nil && p.PFCP.Enabled()
	if !pfcp && p.SignIn == nil {
		return nil, nil
	}
	if p.PFCP.Store != "" {
		opt.Store = p.PFCP.Store
	}
	manager, err := session.Open(opt.Store, p.Settings, opt.Log)
	if err != nil {
		return nil, err
	}
	manager.Moved().Tell(opt.Events.Publish)
	manager.SetMeasures(opt.Measures)
	s := &Sessions{Manager: manager, opt: opt, blocks: natlog.New(opt.Log, opt.Events.Publish),
		indications: events.Gate{Most: 5, Window: 10 * time.Second}}
	if pfcp {
		err = s.serve(p)
	}
	if err == nil {
		s.SignIns, err = signin.Open(p.SignIn, signin.Options{Manager: manager, DPSocket: opt.DPSocket,
			Store: opt.Store, Events: opt.Events, Measures: opt.Measures, Log: opt.Log})
	}
	if err != nil {
		manager.Close()
		return nil, err
	}
	manager.ReleaseOrphans()
	s.observe()
	s.logBlocks(p)
	return s, nil
}

// serve makes the PFCP server.
func (s *Sessions) serve(p *plan.Plan) (err error) {
	cfg := p.Server()
	cfg.Measures = s.opt.Measures
	sessions := n4.Sessions{Requests: s.Manager, Groups: s.Manager, Store: s.Manager}
	if s.server, err = n4.New(cfg, sessions, s.opt.Log); err == nil {
		s.Manager.SetReporter(s.server)
	}
	return err
}

// logBlocks sends records of NAT44 to the plan's collectors; note: unreachable ones.
func (s *Sessions) logBlocks(p *plan.Plan) (note string) {
	var syslog, ipfix []netip.AddrPort
	for _, c := range p.NATLog.Syslog {
		syslog = append(syslog, c.Or(514))
	}
	for _, c := range p.NATLog.IPFIX {
		ipfix = append(ipfix, c.Or(4739))
	}
	if err := s.blocks.Configure(syslog, ipfix); err != nil {
		note = "nat_log: " + strings.ReplaceAll(err.Error(), "\n", ", ") +
			"; it is tried again: isthmus show collector"
	}
	return note
}

// Start serves until ctx ends. snapshots: how often usage is read; 0: never.
func (s *Sessions) Start(ctx context.Context, snapshots time.Duration) {
	if s == nil {
		return
	}
	s.spawn(func() { s.Manager.Run(ctx) })
	s.spawn(func() { s.Manager.Follow(ctx, s.opt.DPSocket) })
	if snapshots > 0 {
		s.spawn(func() { s.Manager.Snapshots(ctx, s.opt.DPSocket, snapshots) })
	}
	s.spawn(func() { s.blocks.Run(ctx) })
	if s.server != nil {
		s.spawn(func() { s.server.Run(ctx) })
	}
	s.SignIns.Start(ctx)
}

// spawn runs fn; Wait waits for it.
func (s *Sessions) spawn(fn func()) {
	s.group.Add(1)
	go func() { defer s.group.Done(); fn() }()
}

// Wait returns when all of Start and Resync has ended.
func (s *Sessions) Wait() {
	if s != nil {
		s.group.Wait()
		s.SignIns.Wait()
	}
}

// prepared is plan.Prepared.
type prepared struct {
	of   *Sessions
	plan *plan.Plan
	in   *signin.Prepared
}

// Prepare does the parts of a plan that may fail. Its result is usable after an error, without the failed parts.
func (s *Sessions) Prepare(p *plan.Plan) (plan.Prepared, error) {
	in, err := s.SignedIn().Prepare(p)
	return &prepared{s, p, in}, err
}

func (p *prepared) Take(ctx context.Context) (note string) {
	if p.of != nil {
		note = p.of.logBlocks(p.plan)
	}
	p.in.Take(ctx)
	return note
}

func (p *prepared) Discard() { p.in.Discard() }

// Push sends the difference between a plan with the kernel's part and the held state, as changes makes it, and has
// sessions follow. all: they are compared, too.
func (s *Sessions) Push(ctx context.Context, c *dp.Client, p *plan.Plan, all bool,
	changes func(held []api.Digest) []dp.Change) (res v1.Result, err error) {
	if s == nil {
		held, err := dp.Held(ctx, c, nil)
		if err != nil {
			return res, err
		}
		return res, c.Apply(ctx, changes(held))
	}
	out, err := s.Manager.Synchronise(ctx, c, p.Settings, all, changes)
	if err != nil {
		return res, err
	}
	if out.Ended > 0 {
		res.Note = fmt.Sprintf("%d mobile sessions ended: no network instance is left for them", out.Ended)
	}
	res.Put, res.Deleted = out.Put, out.Deleted
	return res, nil
}

// Detach: the data plane is away.
func (s *Sessions) Detach() {
	if s != nil {
		s.Manager.Attach(nil)
	}
}

// Resync compares the sessions with the data plane's, in the background. With a million that takes longer than a
// period: one comparison at a time. Not together with Wait.
func (s *Sessions) Resync(ctx context.Context, c *dp.Client) {
	if s == nil || !s.comparing.CompareAndSwap(false, true) {
		return
	}
	s.spawn(func() {
		defer s.comparing.Store(false)
		out, err := s.Manager.Resynchronise(ctx, c)
		if err != nil {
			s.opt.Log.Warn("the comparison of sessions ended early", "error", err)
		}
		if out.Put+out.Deleted > 0 {
			s.opt.Log.Info("sessions differed", "sent", out.Put, "deleted", out.Deleted,
				"refused", out.Refused)
		}
	})
}

// Adopt takes a plan's instances and limits over while the data plane is away.
func (s *Sessions) Adopt(p *plan.Plan) {
	if s != nil {
		s.Manager.Configure(p.Settings)
	}
}

// taker takes prefixes that came (true) and went, by the namespace that announces them. all: the list is complete.
type taker = func(all bool, spaces map[string]map[netip.Prefix]bool)

// Announce has the sessions of a plan's instances announced: existing ones at once, so that a start withdraws none.
func (s *Sessions) Announce(p *plan.Plan, to taker) {
	if s == nil {
		return
	}
	by := map[string]session.Announcing{}
	for name, of := range p.Announcing {
		by[name] = of.Sessions
	}
	s.Manager.Announce(by)
	s.Reachable(p, to)
}

// ReachableChanged can be read when sessions came or went that are announced; nil: never.
func (s *Sessions) ReachableChanged() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.Manager.ReachableChanged()
}

// Reachable gives what came and went since the last time.
func (s *Sessions) Reachable(p *plan.Plan, to taker) {
	all, news := s.Manager.Reachable()
	spaces := map[string]map[netip.Prefix]bool{}
	for name, prefixes := range news {
		for _, space := range p.Announcing[name].Namespaces {
			if spaces[space] == nil {
				spaces[space] = map[netip.Prefix]bool{}
			}
			for p, there := range prefixes {
				spaces[space][p] = there
			}
		}
	}
	to(all, spaces)
}
