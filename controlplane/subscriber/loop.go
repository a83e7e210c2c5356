// SPDX-License-Identifier: Apache-2.0

// Package subscriber owns the subscribers that sign in. It passes their frames to the protocols (access.FrontEnd),
// authenticates them, assigns addresses, makes their sessions, counts usage, and ends them.
package subscriber

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/rules"
)

// Frames is the channel to the data plane.
type Frames interface {
	// Next waits for frames. They are the caller's until it calls again.
	Next(ctx context.Context) ([]access.Frame, error)
	// Send copies; a full channel drops, and Lost counts it. Any goroutine.
	Send(f *access.Frame)
	Lost() uint64
	Port(name string) access.PortAddresses
}

// Sessions is the session layer (session.Manager). Callbacks come from another goroutine.
type Sessions interface {
	PutLine(s *rules.Session, record []byte, done func(usage []api.Usage, err error))
	DropLine(seid uint64, record []byte, done func(usage []api.Usage, err error))
	KeepLine(seid uint64, record []byte, done func(err error))
}

// Auth authenticates, and takes accounting records (aaa.AAA). done may be called from any goroutine.
type Auth interface {
	Authenticate(r *access.Request, session string, done func(*access.Verdict))
	UserName(r *access.Request) string
	Account(r *aaa.Record) error
}

// Options are what a loop works with.
type Options struct {
	Frames   Frames
	Sessions Sessions
	Auth     Auth
	Pools    *lease.Pools
	// Notify publishes an event (package events).
	Notify   func(kind, about string, fields ...any)
	Measures *measure.Set
	Resolve  Resolver         // nil: by DNS
	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger
}

// Loop is one goroutine, that of Run, which alone touches what is here. Others post.
type Loop struct {
	opt    Options
	log    *slog.Logger
	set    *Settings
	mail   mail
	timers timers

	pppoe, ipoe access.FrontEnd // nil: there is none

	by index
	handover
	plans     plans
	retired   map[string]*accessList // of former configurations
	gardens   gardens
	admission admission
	window    window
	history   history
	senders   senders
	stats     stats
	draining  bool
	drained   chan struct{}

	boot, former uint64 // of the data plane that sessions are in, and of the one before
}

// New makes a loop with settings that have been checked.
func New(set *Settings, o Options) *Loop {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Resolve == nil {
		o.Resolve = resolve
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Notify == nil {
		o.Notify = func(string, string, ...any) {}
	}
	l := &Loop{opt: o, log: o.Log, set: set, by: newIndex(), plans: newPlans(),
		handover: handover{map[held]*Subscriber{}, map[*Subscriber][]waiter{}},
		mail:     mail{wake: make(chan struct{}, 1)}, drained: make(chan struct{})}
	l.admission.loop, l.window.loop = l, l
	l.gardens = gardens{l, map[gardenKey]*gardenName{}}
	l.history.now = o.Now
	l.timers.from = o.Now()
	l.stats = newStats()
	return l
}

// FrontEnds sets the protocols: before Start.
func (l *Loop) FrontEnds(pppoe, ipoe access.FrontEnd) { l.pppoe, l.ipoe = pppoe, ipoe }

// mail is work posted by others, in order. Its posters bound it: sign-ins, transactions and requests of the API are
// each bounded.
type mail struct {
	lock sync.Mutex
	list []func()
	wake chan struct{}
}

// Post has fn called by the loop's goroutine.
func (l *Loop) Post(fn func()) {
	m := &l.mail
	m.lock.Lock()
	m.list = append(m.list, fn)
	m.lock.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// deliver calls what was posted.
func (m *mail) deliver() {
	m.lock.Lock()
	list := m.list
	m.list = nil
	m.lock.Unlock()
	for _, fn := range list {
		fn()
	}
}

// Ask has fn called by the loop's goroutine, and waits for it.
func (l *Loop) Ask(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	l.Post(func() { fn(); close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Turn does all due work, and returns when more is due. Tests call it in place of Run.
func (l *Loop) Turn() (next time.Time, more bool) {
	l.mail.deliver()
	l.timers.run(l.opt.Now())
	l.mail.deliver()
	return l.timers.next()
}

// Run works until ctx ends. Sessions stay: they are the store's.
func (l *Loop) Run(ctx context.Context) {
	batches, taken := make(chan []access.Frame), make(chan struct{})
	go l.receive(ctx, batches, taken)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, more := l.Turn()
		pause := time.Hour
		if more {
			pause = max(next.Sub(l.opt.Now()), 0)
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case batch := <-batches:
			for i := range batch {
				l.Frame(&batch[i])
			}
			select {
			case taken <- struct{}{}:
			case <-ctx.Done():
				return
			}
		case <-l.mail.wake:
		case <-timer.C:
		}
	}
}

// receive passes frames on, a batch at a time.
func (l *Loop) receive(ctx context.Context, batches chan<- []access.Frame, taken <-chan struct{}) {
	for ctx.Err() == nil {
		batch, err := l.opt.Frames.Next(ctx)
		if err != nil {
			return
		}
		select {
		case batches <- batch:
		case <-ctx.Done():
			return
		}
		select {
		case <-taken:
		case <-ctx.Done():
			return
		}
	}
}

const (
	etherIPv6           = 0x86dd
	etherPPPoEDiscovery = 0x8863
	etherPPPoESession   = 0x8864
)

// Frame gives a frame to the protocol that it is of, if the configuration has that there.
func (l *Loop) Frame(f *access.Frame) {
	port := l.set.Port(&f.Line)
	ppp := f.EtherType == etherPPPoEDiscovery || f.EtherType == etherPPPoESession
	if f.Reason != access.PortChanged {
		l.senders.count(&f.Line, ppp, l.opt.Now())
	}
	switch {
	case f.Reason == access.PortChanged:
		if l.ipoe != nil {
			l.ipoe.Frame(f)
		}
	case port == nil:
		l.stats.frames[frameNoPort]++
		l.unserved(f, ppp, "no entry of access.ports has this port and these tags")
	case ppp && port.PPPoE && l.pppoe != nil:
		l.stats.frames[framePPPoE]++
		l.pppoe.Frame(f)
	case !ppp && port.IPoE && l.ipoe != nil:
		l.stats.frames[frameIPoE]++
		l.ipoe.Frame(f)
	case ppp:
		l.stats.frames[frameNotServed]++
		l.unserved(f, ppp, "pppoe is not served by the line's entry of access.ports")
	default:
		l.stats.frames[frameNotServed]++
		l.unserved(f, ppp, "ipoe is not served by the line's entry of access.ports")
	}
}

// unserved keeps a frame without a receiver in the history alone: with an event for each, every VLAN of a neighbour
// would be heard.
func (l *Loop) unserved(f *access.Frame, ppp bool, why string) {
	kind := access.IPoE4
	switch {
	case ppp:
		kind = access.PPPoE
	case f.EtherType == etherIPv6:
		kind = access.IPoE6
	}
	l.history.note(&access.Request{Kind: kind, Line: f.Line}, "", why)
}

// ---- access.Host ----------------------------------------------------------------------------------------------------

// Now is access.Host's.
func (l *Loop) Now() time.Time { return l.opt.Now() }

// After is access.Host's.
func (l *Loop) After(d time.Duration, fn func()) access.Timer {
	return l.timers.add(l.opt.Now().Add(d), fn)
}

// Send is access.Host's.
func (l *Loop) Send(f *access.Frame) { l.opt.Frames.Send(f) }

// FramesLost are those to subscribers that could not be sent. Any goroutine.
func (l *Loop) FramesLost() uint64 { return l.opt.Frames.Lost() }

// Port is access.Host's.
func (l *Loop) Port(name string) access.PortAddresses { return l.opt.Frames.Port(name) }

// Failed is access.Host's.
func (l *Loop) Failed(r *access.Request, why string) {
	l.stats.failed("protocol")
	l.history.note(r, "", "failed: "+why)
	l.opt.Notify("subscriber.refused", cmp.Or(r.User, macText(r.Line.MAC)), "why", why, "reason", "protocol",
		"line", LineText(&r.Line))
}
