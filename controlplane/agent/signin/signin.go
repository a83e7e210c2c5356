// SPDX-License-Identifier: Apache-2.0

// Package signin assembles sign-in: the loop, its front ends, pools, RADIUS, sockets to DHCP servers. A nil *SignIns
// stands for a configuration without sign-in.
package signin

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dhcp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/session"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/subscriber"
)

// Manager makes the sessions of sign-in.
type Manager interface {
	subscriber.Sessions
	SetLines(to session.Lines) []session.LineRecord
}

// Options are what the parts stand in.
type Options struct {
	Manager  Manager
	DPSocket string
	Store    string // of the sessions; accounting is kept beside it
	Events   *events.Log
	Measures *measure.Set
	Log      *slog.Logger
}

// SignIns is sign-in as a whole. Prepare and its result are for one goroutine.
type SignIns struct {
	Loop *subscriber.Loop
	AAA  *aaa.AAA
	DHCP *dhcp.Server // the loop's goroutine

	opt      Options
	pools    *lease.Pools
	pppoe    *pppoe.Server
	upstream upstreams            // to DHCP servers
	records  []session.LineRecord // of the store, until the loop has them
	accounts *store.Accounts
	group    sync.WaitGroup
}

// accountingEnd is how long we wait for accounting when we end; what is left is in the store.
const accountingEnd = 2 * time.Second

// Open makes what subscribers need to sign in, when a configuration has them.
func Open(c *config.Config, opt Options) (*SignIns, error) {
	if c == nil {
		return nil, nil
	}
	s := &SignIns{opt: opt}
	s.pools = lease.New(lease.Options{Now: time.Now, Event: func(e lease.Event) {
		opt.Events.Publish("pool.watermark", e.Pool, "instance", e.Instance, "level", e.Level, "rising",
			e.Rising, "used", e.Used, "size", e.Size)
	}})
	s.pools.Configure(c.Pools)
	var err error
	if s.accounts, err = store.OpenAccounts(store.AccountsPath(opt.Store), opt.Log); err != nil {
		return nil, err
	}
	s.accounts.Moved.Tell(opt.Events.Publish)
	if err = s.open(c); err != nil {
		s.accounts.Close()
		return nil, err
	}
	s.records = opt.Manager.SetLines(s.Loop)
	for _, r := range s.accounts.Records() {
		if err := s.AAA.Restore(r.Number, r.Data); err != nil { // it is counted
			opt.Log.Error("an accounting record of the store is dropped", "error", err)
			s.accounts.Forget(r.Number)
		}
	}
	return s, nil
}

// open makes the parts that may fail, and their dependencies.
func (s *SignIns) open(c *config.Config) (err error) {
	opt := &s.opt
	told := &gated{events: opt.Events, log: opt.Log, gates: map[string]*events.Gate{}}
	sessions := &lateSessions{}
	s.AAA, err = aaa.New(c, aaa.Options{Sessions: sessions, Store: s.accounts, Notify: told.tell,
		Log: func(format string, args ...any) { opt.Log.Info(fmt.Sprintf(format, args...)) }})
	if err != nil {
		return err
	}
	s.Loop = subscriber.New(subscriber.SettingsOf(c), subscriber.Options{
		Frames: subscriber.NewChannel(opt.DPSocket, opt.Log), Sessions: opt.Manager, Auth: s.AAA,
		Pools: s.pools, Measures: opt.Measures, Log: opt.Log, Notify: told.tell})
	sessions.loop.Store(s.Loop)
	s.DHCP = dhcp.New(s.Loop, dhcpConfig(c))
	s.pppoe = pppoe.New(s.Loop, pppoeConfig(c), func(of access.Session, line access.Line, b access.Bearer,
		was access.BearerState) pppoe.Link6 {
		return s.DHCP.OverPPP(of, line, b, was)
	})
	s.Loop.FrontEnds(s.pppoe, s.DHCP)
	if s.upstream, err = s.openUpstreams(c); err != nil {
		return err
	}
	s.send(s.upstream)
	return nil
}

// Start serves until ctx ends.
func (s *SignIns) Start(ctx context.Context) {
	if s == nil {
		return
	}
	s.Loop.Restore(s.records)
	s.records = nil
	s.listen(ctx, upstreams{})
	s.spawn(func() {
		s.Loop.Run(ctx)
		late, cancel := context.WithTimeout(context.Background(), accountingEnd)
		defer cancel()
		s.AAA.Close(late)
		s.accounts.Close() // behind the last answer
	})
}

// Wait returns when all of Start has ended.
func (s *SignIns) Wait() {
	if s != nil {
		s.group.Wait()
	}
}

// spawn runs fn; Wait waits for it.
func (s *SignIns) spawn(fn func()) {
	s.group.Add(1)
	go func() { defer s.group.Done(); fn() }()
}

// Prepared is what of a plan may fail, done.
type Prepared struct {
	of               *SignIns
	set              *config.Config
	aaa              *aaa.Prepared
	upstream, former upstreams
}

// Prepare does the parts of a plan that may fail; nil: there are none.
func (s *SignIns) Prepare(next *plan.Plan) (*Prepared, error) {
	if s == nil || next.SignIn == nil { // of a plan for the next start
		return nil, next.Check()
	}
	upstream, err := s.openUpstreams(next.SignIn)
	if err != nil {
		return nil, err
	}
	prepared, err := s.AAA.Prepare(next.SignIn)
	if err != nil {
		upstream.closeBut(s.upstream)
		return nil, err
	}
	return &Prepared{s, next.SignIn, prepared, upstream, s.upstream}, nil
}

// Discard gives up what was prepared.
func (p *Prepared) Discard() {
	if p != nil {
		p.aaa.Discard()
		p.upstream.closeBut(p.former)
	}
}

// Take takes the configuration over. ctx is that of Start.
func (p *Prepared) Take(ctx context.Context) {
	if p == nil {
		return
	}
	p.aaa.Take()
	s, c := p.of, p.set
	s.upstream = p.upstream
	s.listen(ctx, p.former)
	p.former.closeBut(p.upstream) // what the loop sends by them meanwhile is lost, and comes again
	set, dial, leased := subscriber.SettingsOf(c), pppoeConfig(c), dhcpConfig(c)
	s.Loop.Post(func() {
		s.pools.Configure(c.Pools)
		s.send(p.upstream)
		s.pppoe.Configure(dial)
		s.DHCP.Configure(leased)
		s.Loop.Configure(set)
	})
}

// lateSessions is aaa.Sessions of a loop that is made later: the CoA server's sockets are open before.
type lateSessions struct {
	loop atomic.Pointer[subscriber.Loop]
}

func (s *lateSessions) Disconnect(sel *aaa.Selector, done aaa.Answer) {
	if loop := s.loop.Load(); loop != nil {
		loop.Disconnect(sel, done)
		return
	}
	done(aaa.NotPossible, "the gateway is starting")
}

func (s *lateSessions) Change(sel *aaa.Selector, c *aaa.Change, done aaa.Answer) {
	if loop := s.loop.Load(); loop != nil {
		loop.Change(sel, c, done)
		return
	}
	done(aaa.NotPossible, "the gateway is starting")
}
