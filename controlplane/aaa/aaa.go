// SPDX-License-Identifier: Apache-2.0

// Package aaa decides whether subscribers are accepted, by local users, RADIUS, or without authentication. It makes
// plans of RADIUS attributes, accounts sessions, and passes on changes that RADIUS servers request.
package aaa

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
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
	// Notify publishes an event (package events): radius.down, radius.up, radius.doubted of a server,
	// radius.change-refused of a client.
	Notify func(kind, about string, fields ...any)
}

// AAA may be used by any goroutine.
type AAA struct {
	Options
	now     atomic.Pointer[setup]
	queue   *queue
	changes *changes
	counts  counts

	mu sync.Mutex // Take, Close
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
	a := &AAA{Options: o, queue: newQueue(o.Store, o.Log), changes: newChanges(o.Sessions, o.Notify)}
	p, err := a.Prepare(c)
	if err != nil {
		return nil, err
	}
	p.Take()
	return a, nil
}

// Check validates a configuration as far as nothing has to stay open.
func Check(c *config.Config) error {
	s, err := newSetup(c, nil, func(string, string, radius.News) {})
	if err != nil {
		return err
	}
	s.discard(nil)
	_, err = withSecrets(c.RADIUS.CoA)
	return err
}

// Prepared is a configuration with its files read and its addresses open. It must be taken or discarded before the next
// is prepared.
type Prepared struct {
	a        *AAA
	old, new *setup
	changing *changing
}

// Prepare does all that may fail. Nothing is in effect before Take.
func (a *AAA) Prepare(c *config.Config) (*Prepared, error) {
	old := a.now.Load()
	s, err := newSetup(c, old, a.changed)
	if err != nil {
		return nil, err
	}
	next, err := a.changes.prepare(&c.RADIUS)
	if err != nil {
		s.discard(old)
		return nil, err
	}
	return &Prepared{a, old, s, next}, nil
}

// Discard gives the configuration up.
func (p *Prepared) Discard() {
	p.new.discard(p.old)
	p.changing.bound.Close()
}

// Take makes it the one in effect. Requests under way end with the old servers.
func (p *Prepared) Take() {
	a, r := p.a, &p.new.config.RADIUS
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.Store(p.new)
	a.changes.use(p.changing)
	a.queue.use(p.new.acct, int(r.Accounting.Queue), int(r.Accounting.Drain))
	if p.old != nil {
		p.old.retire(p.new)
	}
}

// changedFunc is called about a server, as by radius.NewClient.
type changedFunc func(use, name string, is radius.News)

// newSetup makes local users and clients; clients whose servers did not change are taken over.
func newSetup(c *config.Config, old *setup, changed changedFunc) (s *setup, err error) {
	s = &setup{config: c, ignored: &tally{}}
	if old == nil {
		old = &setup{}
	} else {
		s.ignored = old.ignored
	}
	defer func() {
		if err != nil {
			s.discard(old)
		}
	}()
	if slices.Contains(c.AAA.Methods, "local") {
		if s.local, err = newLocal(&c.AAA); err != nil {
			return s, err
		}
	}
	if s.authOf, err = servers(&c.RADIUS, "accounting"); err != nil {
		return s, err
	}
	if s.acctOf, err = servers(&c.RADIUS, "authentication"); err != nil {
		return s, err
	}
	client := func(use string, before *radius.Client, of, is []radius.ServerConfig) (*radius.Client, error) {
		switch {
		case reflect.DeepEqual(of, is):
			return before, nil
		case len(is) == 0:
			return nil, nil
		}
		return radius.NewClient(is, func(name string, is radius.News) { changed(use, name, is) })
	}
	if s.auth, err = client("authentication", old.auth, old.authOf, s.authOf); err == nil {
		s.acct, err = client("accounting", old.acct, old.acctOf, s.acctOf)
	}
	return s, err
}

// changed is called about servers that are given up, back, or not believed.
func (a *AAA) changed(use, name string, is radius.News) {
	if !is.Turned {
		a.Log("%v (%s)", is.Fault, use)
		a.Notify("radius.doubted", name, "use", use, "reason", is.Fault.Word(), "why", is.Fault.Error())
		return
	}
	if !is.Alive {
		reason, why := "silent", "RADIUS server "+name+" does not answer"
		if is.Fault != nil {
			reason, why = is.Fault.Word(), is.Fault.Error()
		}
		a.Log("%s; it is given up for a while (%s)", why, use)
		a.Notify("radius.down", name, "use", use, "reason", reason, "why", why)
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

// Close waits for pending accounting until ctx ends. Unsent records are in the store.
func (a *AAA) Close(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changes.server.Close()
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

// Authenticate decides on a request by the methods in turn. session is its future Acct-Session-Id. The request must not
// change until done, which is called once, perhaps before Authenticate returns or from another goroutine.
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

// refuse is a negative verdict, for MS-CHAPv2 with the text of its Failure packet.
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

// accept accepts every subscriber except by MS-CHAPv2, which is mutual: we do not know the password.
func (t *attempt) accept() *access.Verdict {
	if t.r.Method == access.MSCHAPv2 {
		return refuse(t.r, "MS-CHAPv2 needs to know the password, and method accept does not")
	}
	return &access.Verdict{Accept: true, Plan: access.Plan{Local: true}}
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

// Account queues a copy of a record without waiting. Without an accounting server it does nothing.
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
		a.queue.refused()
		return err
	}
	a.queue.add(r, true)
	return nil
}

// Settled waits until servers have all accounting, or none accepts any, or ctx ends; it returns how many records wait.
func (a *AAA) Settled(ctx context.Context) (waiting int) { return a.queue.settled(ctx.Done()) }

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
