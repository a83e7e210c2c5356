// SPDX-License-Identifier: Apache-2.0

// Package aaa decides whether subscribers are let in, by local users, RADIUS, or without a question; makes plans of
// what RADIUS says; accounts sessions; and passes on what RADIUS servers want changed.
package aaa

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/radius"
)

// Options are what the owner of sessions brings.
type Options struct {
	Sessions Sessions // carries out changes; nil: none are taken
	Store    Store    // keeps accounting records; nil: they live as long as the process
	Log      func(format string, args ...any)
	// Notify publishes an event (package events): radius.down, radius.up of a server.
	Notify func(kind, about string, fields ...any)
}

// AAA may be used by any goroutine.
type AAA struct {
	Options
	now     atomic.Pointer[setup]
	queue   *queue
	changes *changes
	counts  counts

	mu sync.Mutex // Replace, Close
}

// setup is what one configuration made. It does not change.
type setup struct {
	config     *config.Config
	local      *local         // nil: no such method
	auth, acct *radius.Client // nil: no such server
	authOf     []radius.ServerConfig
	acctOf     []radius.ServerConfig
	ignored    *tally
}

type counts struct{ accepted, refused, undecided atomic.Uint64 }

// New starts what a configuration asks for.
func New(c *config.Config, o Options) (*AAA, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Notify == nil {
		o.Notify = func(string, string, ...any) {}
	}
	a := &AAA{Options: o, queue: newQueue(o.Store, o.Log)}
	a.changes = &changes{sessions: o.Sessions}
	if err := a.Replace(c); err != nil {
		a.changes.close()
		return nil, err
	}
	return a, nil
}

// Replace takes another configuration. On an error the old one stays. Requests under way end with the old servers.
func (a *AAA) Replace(c *config.Config) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.now.Load()
	s := &setup{config: c, ignored: &tally{}}
	if old != nil {
		s.ignored = old.ignored
	}
	if err := s.methods(old, a.changed); err != nil {
		return err
	}
	if err := a.changes.use(&c.RADIUS); err != nil {
		s.discard(old)
		return err
	}
	a.now.Store(s)
	a.queue.use(s.acct, int(c.RADIUS.Accounting.Queue), int(c.RADIUS.Accounting.Drain))
	if old != nil {
		old.retire(s)
	}
	return nil
}

// methods makes local users and clients; clients whose servers did not change are taken over.
func (s *setup) methods(old *setup, changed func(use, name string, alive bool)) (err error) {
	of := func(use string) func(string, bool) {
		return func(name string, alive bool) { changed(use, name, alive) }
	}
	for _, m := range s.config.AAA.Methods {
		if m == "local" {
			if s.local, err = newLocal(&s.config.AAA); err != nil {
				return err
			}
		}
	}
	if s.authOf, err = servers(&s.config.RADIUS, "accounting"); err != nil {
		return err
	}
	if s.acctOf, err = servers(&s.config.RADIUS, "authentication"); err != nil {
		return err
	}
	if old != nil && reflect.DeepEqual(old.authOf, s.authOf) {
		s.auth = old.auth
	} else if len(s.authOf) > 0 {
		if s.auth, err = radius.NewClient(s.authOf, of("authentication")); err != nil {
			return err
		}
	}
	if old != nil && reflect.DeepEqual(old.acctOf, s.acctOf) {
		s.acct = old.acct
	} else if len(s.acctOf) > 0 {
		s.acct, err = radius.NewClient(s.acctOf, of("accounting"))
	}
	return err
}

// changed is told of servers that are given up, and of those that are back.
func (a *AAA) changed(use, name string, alive bool) {
	if !alive {
		a.Log("RADIUS server %s does not answer (%s)", name, use)
		a.Notify("radius.down", name, "use", use)
		return
	}
	a.Log("RADIUS server %s answers again, or is tried again (%s)", name, use)
	a.Notify("radius.up", name, "use", use)
	if use == "accounting" {
		a.queue.wake()
	}
}

// discard closes clients of a configuration that is not taken.
func (s *setup) discard(old *setup) {
	for _, c := range []*radius.Client{s.auth, s.acct} {
		if c != nil && (old == nil || c != old.auth && c != old.acct) {
			c.Close()
		}
	}
}

const retirement = time.Minute // longer than a request may take

// retire closes the clients that next did not take over, when their requests are over.
func (s *setup) retire(next *setup) {
	for _, c := range []*radius.Client{s.auth, s.acct} {
		if c != nil && c != next.auth && c != next.acct {
			time.AfterFunc(retirement, c.Close)
		}
	}
}

// Close waits for accounting that is on its way until ctx ends. What was not sent is in the store.
func (a *AAA) Close(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changes.close()
	a.queue.close(ctx.Done())
	a.now.Load().discard(nil)
}

// UserName is the name that a subscriber signs in by: its own, else one made of its line.
func (a *AAA) UserName(r *access.Request) string { return a.now.Load().userName(r) }

func (s *setup) userName(r *access.Request) string {
	if r.Method != access.None {
		return r.User
	}
	return fill(s.config.AAA.Name, r)
}

// Authenticate decides on a request by the methods in turn. session is the Acct-Session-Id that it would have.
// Request and what it points to must not change until done, which is called once, perhaps before Authenticate
// returns, perhaps from another goroutine.
func (a *AAA) Authenticate(r *access.Request, session string, done func(*access.Verdict)) {
	s := a.now.Load()
	name := s.userName(r)
	if name == "" || len(name) > 253 {
		a.decided(refuse(r, fmt.Sprintf("a user name of %d bytes: 1 to 253", len(name))), done)
		return
	}
	t := &attempt{a, s, r, name, session, done}
	t.try(s.config.AAA.Methods, nil)
}

// attempt is one sign-in on its way through the methods.
type attempt struct {
	a             *AAA
	s             *setup
	r             *access.Request
	name, session string
	done          func(*access.Verdict)
}

// try asks the first of the methods. away: no server of an earlier one answered.
func (t *attempt) try(methods []string, away error) {
	verdict := func(v *access.Verdict) { t.a.decided(v, t.done) }
	for i, m := range methods {
		switch m {
		case "accept":
			verdict(t.accept())
			return
		case "local":
			if t.s.local.decide(t.r, t.name, verdict) {
				return
			}
		case "radius":
			t.s.remote(t.r, t.name, t.session, verdict, func(err error) { t.try(methods[i+1:], err) })
			return
		}
	}
	if away != nil {
		verdict(&access.Verdict{Silent: true, Why: away.Error()})
		return
	}
	verdict(refuse(t.r, "unknown user"))
}

// refuse is a verdict, for MS-CHAPv2 with what its Failure packet says.
func refuse(r *access.Request, why string) *access.Verdict {
	v := &access.Verdict{Why: why}
	if r.Method == access.MSCHAPv2 {
		v.Failure = failure(r.Challenge)
	}
	return v
}

// failure is the Failure packet's text (RFC 2759 §6): 691, not to be tried again on this connection.
func failure(challenge []byte) string {
	return fmt.Sprintf("E=691 R=0 C=%X V=3 M=Authentication failed", challenge)
}

// accept lets everybody in who does not want a proof of ours: MS-CHAPv2 is mutual, and we do not know the password.
func (t *attempt) accept() *access.Verdict {
	if t.r.Method == access.MSCHAPv2 {
		return refuse(t.r, "MS-CHAPv2 needs to know the password, and method accept does not")
	}
	return &access.Verdict{Accept: true}
}

func (a *AAA) decided(v *access.Verdict, done func(*access.Verdict)) {
	switch {
	case v.Accept:
		a.counts.accepted.Add(1)
	case v.Silent:
		a.counts.undecided.Add(1)
	default:
		a.counts.refused.Add(1)
	}
	done(v)
}

// Account queues a record, which is copied, and does not wait. Without a server for accounting it does nothing.
func (a *AAA) Account(r *Record) error {
	s := a.now.Load()
	if s.acct == nil {
		return nil
	}
	one, err := encode(r, s)
	if err != nil {
		return fmt.Errorf("accounting: %w", err)
	}
	a.queue.add(one, false)
	return nil
}

// Restore queues a record that the store kept: before the first Account, in ascending order of the ids.
func (a *AAA) Restore(id uint64, kept []byte) error {
	r, err := decode(id, kept)
	if err != nil {
		return err
	}
	a.queue.add(r, true)
	return nil
}

// State is for show and metrics. It has no secrets.
type State struct {
	Methods                      []string
	Accepted, Refused, Undecided uint64
	Authentication, Accounting   []radius.ServerState
	Queue                        QueueCounts
	Changes                      radius.DynamicCounters
	Ignored                      map[string]uint64 // attributes of answers, by name
}

// State of the moment.
func (a *AAA) State() State {
	s := a.now.Load()
	out := State{Methods: s.config.AAA.Methods, Accepted: a.counts.accepted.Load(),
		Refused:   a.counts.refused.Load(),
		Undecided: a.counts.undecided.Load(), Queue: a.queue.state(), Changes: a.changes.counters(),
		Ignored: s.ignored.names()}
	if s.auth != nil {
		out.Authentication = s.auth.State()
	}
	if s.acct != nil {
		out.Accounting = s.acct.State()
	}
	return out
}

var errSecret = errors.New("the secret is empty")
