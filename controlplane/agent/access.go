// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/session"
	"isthmus/controlplane/subscriber"
)

// signIns is what subscribers who sign in take: the loop, and whom it asks.
type signIns struct {
	loop    *subscriber.Loop
	frames  *subscriber.Channel
	aaa     *aaa.AAA
	pools   *lease.Pools
	pppoe   *pppoe.Server
	records []session.LineRecord // of the store, until the loop has them
}

// accountingEnd is how long we wait for accounting when we end; what is left is in the store.
const accountingEnd = 2 * time.Second

// openAccess makes what subscribers need to sign in, when the configuration has them.
func (a *Agent) openAccess() error {
	c := a.plan.SignIn
	if c == nil {
		return nil
	}
	s := &signIns{frames: subscriber.NewChannel(a.opt.DPSocket, a.log)}
	s.pools = lease.New(lease.Options{Now: time.Now, Event: func(e lease.Event) {
		a.events.Publish("pool.watermark", e.Pool, "instance", e.Instance, "level", e.Level, "rising", e.Rising,
			"used", e.Used, "size", e.Size)
	}})
	if err := s.pools.Configure(lease.FromConfig(c.Pools)); err != nil {
		return err
	}
	sessions := &lateSessions{}
	var err error
	s.aaa, err = aaa.New(c, aaa.Options{Sessions: sessions, Store: a.mobile.manager,
		Log: func(format string, args ...any) { a.log.Info(fmt.Sprintf(format, args...)) }})
	if err != nil {
		return err
	}
	s.loop = subscriber.New(subscriber.SettingsOf(c), subscriber.Options{Frames: s.frames, Sessions: a.mobile.manager,
		Auth: s.aaa, Pools: s.pools, Measures: a.measures, Log: a.log,
		Notify: func(kind, about string, args ...any) { a.events.Publish(kind, about, args...) }})
	sessions.loop = s.loop
	s.pppoe = pppoe.New(s.loop, pppoeConfig(c), nil)
	s.loop.FrontEnds(s.pppoe, nil)
	s.records = a.mobile.manager.SetLines(s.loop)
	for _, r := range a.mobile.manager.AccountRecords() {
		if err := s.aaa.Restore(r.Number, r.Data); err != nil {
			a.log.Error("an accounting record of the store is dropped", "error", err)
			a.mobile.manager.Forget(r.Number)
		}
	}
	a.mobile.access = s
	return nil
}

// lateSessions is aaa.Sessions of a loop that is made later; CoA servers are asked only when all is there.
type lateSessions struct{ loop *subscriber.Loop }

func (s *lateSessions) Disconnect(sel *aaa.Selector, done func(aaa.Result)) {
	s.loop.Disconnect(sel, done)
}
func (s *lateSessions) Change(sel *aaa.Selector, c *aaa.Change, done func(aaa.Result)) {
	s.loop.Change(sel, c, done)
}

// run serves until ctx ends.
func (s *signIns) run(ctx context.Context, m *mobile) {
	s.loop.Restore(s.records)
	s.records = nil
	m.spawn(func() {
		s.loop.Run(ctx)
		late, cancel := context.WithTimeout(context.Background(), accountingEnd)
		defer cancel()
		s.aaa.Close(late)
	})
}

// configure takes another configuration over.
func (a *Agent) configureAccess(plan *Plan) {
	c := plan.SignIn
	if a.mobile == nil || a.mobile.access == nil || c == nil {
		return
	}
	s := a.mobile.access
	if err := s.aaa.Replace(c); err != nil {
		a.log.Error("authentication goes on as it was", "error", err)
	}
	set, over := subscriber.SettingsOf(c), pppoeConfig(c)
	s.loop.Post(func() {
		if err := s.pools.Configure(lease.FromConfig(c.Pools)); err != nil {
			a.log.Error("pools go on as they were", "error", err)
		}
		s.pppoe.Configure(over)
		s.loop.Configure(set)
	})
}

// signInOf is the part of a configuration that signing in needs; nil: nobody does.
func signInOf(c *config.Config) *config.Config {
	if !c.Access.Enabled() {
		return nil
	}
	part := *c
	part.Subscribers, part.Ranges = nil, nil
	return &part
}

var methods = map[string]access.Method{"none": access.None, "pap": access.PAP, "chap": access.CHAP, "mschapv2": access.MSCHAPv2}

func pppoeConfig(c *config.Config) pppoe.Config {
	p := &c.Access.PPPoE
	made := pppoe.DefaultConfig()
	made.Name, made.PPP.Name, made.Services = p.ACName, p.ACName, p.Services
	made.KeepAlive = time.Duration(p.KeepAlive.Interval) * time.Second
	made.Unanswered = p.KeepAlive.Count
	made.PerMAC = int(c.Access.Limits.PerLine)
	if len(p.Auth) > 0 {
		made.PPP.Methods = nil
		for _, word := range p.Auth {
			if word != "none" {
				made.PPP.Methods = append(made.PPP.Methods, methods[word])
			}
		}
	}
	made.MaxPayload = map[string]uint16{}
	for i := range c.Ports {
		if port := &c.Ports[i]; port.Role == "access" {
			// Its MTU is that of the IP packet with PPPoE's 8 bytes (RFC 4638).
			made.MaxPayload[string(port.Name)] = uint16(min(port.MTU-8, uint32(p.MRU)))
		}
	}
	return made
}
