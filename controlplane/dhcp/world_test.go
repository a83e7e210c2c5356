// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"cmp"
	"container/heap"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/testkit"
)

// world is a loop with a clock of its own: what is posted runs in run, in order.
type world struct {
	t       testing.TB
	s       *Server
	c       Config
	ports   map[string]Port
	now     time.Time
	timers  timers
	posted  []func()
	sent    []access.Frame
	pools   *lease.Pools
	plan    access.Plan
	verdict *access.Verdict // nil: accept
	live    []*session
	links   map[access.Line]*link
	signIns int
	failUp  bool
	failed  []access.Request // reported by the front end
	whys    []string         // of these
	router  access.PortAddresses
	there   map[access.Line]netip.Addr // homes that answer when they are asked for this IPv6 address, or by ARP
	free    bool                       // packets are thrown away: benchmarks
}

type timer struct {
	at   time.Time
	fn   func()
	dead bool
}

func (t *timer) Stop() { t.dead = true }

type timers []*timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(*timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: time.Unix(1_700_000_000, 0), links: map[access.Line]*link{},
		c: ConfigOf(config.Default[config.Access](), "isthmus"),
		router: access.PortAddresses{MAC: [6]byte{2, 0, 0, 0, 0xaa, 1},
			LinkLocal: netip.MustParseAddr("fe80::77")}}
	w.ports = map[string]Port{
		"access": {V4: true, V6: true, Replace: true}, "trusted": {V4: true, V6: true, Trusted: true},
		"one":    {V4: true, V6: true, OneToOne: true, Replace: true},
		"static": {V4: true, V6: true, FirstPacket: true},
	}
	w.c.PortOf = func(l *access.Line) (Port, bool) { p, ok := w.ports[l.Port]; return p, ok }
	w.c.Domain, w.c.MTU = "example.net", 1500
	w.pools = lease.New(lease.Options{Now: w.Now})
	network := func(s string) config.Prefix { return config.Prefix{Prefix: netip.MustParsePrefix(s)} }
	w.pools.Configure([]config.AddressPool{
		{Name: "v4", Prefix: network("100.64.0.0/16"), Length: 32,
			Gateway: config.Address{Addr: netip.MustParseAddr("100.64.0.1")}},
		{Name: "v6", Prefix: network("2001:db8:1::/48"), Length: 64},
		{Name: "pd", Prefix: network("2001:db8:100::/40"), Length: 56},
	})
	w.plan = access.Plan{Pool4: "v4", Pool6: "v6", PoolPD: "pd", DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9"),
		netip.MustParseAddr("2620:fe::fe")}}
	w.s = New(w, w.c)
	return w
}

func (w *world) configure() { w.s.Configure(w.c) }

func (w *world) Now() time.Time { return w.now }

func (w *world) After(d time.Duration, fn func()) access.Timer {
	t := &timer{at: w.now.Add(d), fn: fn}
	heap.Push(&w.timers, t)
	return t
}

func (w *world) Port(string) access.PortAddresses { return w.router }

// linkLocal is the address that a home makes of its MAC address (RFC 4291 appendix A).
func linkLocal(mac [6]byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe,
		13: mac[3], 14: mac[4], 15: mac[5]})
}

func (w *world) Send(f *access.Frame) {
	if w.free {
		w.sent = w.sent[:0]
	}
	one := *f
	one.Payload = slices.Clone(f.Payload)
	if answer := w.answer(&one); answer != nil {
		w.posted = append(w.posted, func() { w.s.Frame(answer) })
		return
	}
	w.sent = append(w.sent, one)
}

// answer is a present home's reply to ARP or ND.
func (w *world) answer(f *access.Frame) *access.Frame {
	a := &access.Frame{Line: f.Line, Reason: access.NeighbourAnswer, EtherType: f.EtherType}
	switch d, ok := ipv6(f.Payload); {
	case !w.there[f.Line].IsValid():
	case f.EtherType == ethernetARP:
		a.Payload = append([]byte{0, 1, 8, 0, 6, 4, 0, 2}, f.Line.MAC[:]...)
		a.Payload = append(append(a.Payload, f.Payload[24:28]...), f.Payload[8:18]...)
		return a
	case f.EtherType == ethernetIPv6 && ok && d.protocol == protocolICMP && d.body[0] == neighbourSolicitation:
		testkit.ErrorIf(w.t, d.from != w.router.LinkLocal || d.limit != 255 || len(d.body) != 32, "%+v", d)
		target := netip.AddrFrom16([16]byte(d.body[8:24]))
		if target == w.there[f.Line] {
			back := datagram{from: target, to: d.from, protocol: protocolICMP,
				body: append([]byte{136, 0, 0, 0, 0x60, 0, 0, 0}, d.body[8:24]...)}
			a.Payload = back.packet()
			return a
		}
	}
	return nil
}

func (w *world) Failed(r *access.Request, why string) {
	w.failed, w.whys = append(w.failed, *r), append(w.whys, why)
}

// run does what was posted.
func (w *world) run() {
	for len(w.posted) > 0 {
		fn := w.posted[0]
		w.posted = w.posted[1:]
		fn()
	}
	w.posted = w.posted[:0]
}

// wait lets time pass, timers at their moments.
func (w *world) wait(d time.Duration) {
	until := w.now.Add(d)
	for i := 0; len(w.timers) > 0 && !w.timers[0].at.After(until); i++ {
		if i > 1_000_000 {
			w.t.Fatal("timers without end")
		}
		t := heap.Pop(&w.timers).(*timer)
		if t.dead {
			continue
		}
		w.now = t.at
		t.fn()
		w.run()
	}
	w.now = until
}

func (w *world) SignIn(r *access.Request, c access.Client, done func(access.Session, *access.Verdict)) func() {
	cancelled := false
	w.signIns++
	request := *r
	w.posted = append(w.posted, func() {
		if cancelled {
			return
		}
		if w.verdict != nil {
			done(nil, w.verdict)
			return
		}
		s := &session{w: w, client: c, request: request, plan: w.plan, since: w.now}
		w.live = append(w.live, s)
		s.hold(request.Wants, &request)
		done(s, &access.Verdict{Accept: true})
	})
	return func() { cancelled = true }
}

// session is one of the world's.
type session struct {
	w       *world
	client  access.Client
	request access.Request
	plan    access.Plan
	since   time.Time
	has     access.Addresses
	up      access.Families
	kept    []byte
	down    access.Cause
}

func (s *session) Keep(b []byte) { s.kept = slices.Clone(b) }

// Grant is access.Session's: the world ends no session itself.
func (s *session) Grant() access.Grant {
	g := access.Grant{Plan: &s.plan, Addresses: &s.has}
	if s.plan.SessionTimeout > 0 {
		g.Ends = s.since.Add(s.plan.SessionTimeout)
	}
	return g
}

func (s *session) hold(f access.Families, r *access.Request) {
	given, hint := cmp.Or(r.Given, &access.Addresses{}), &r.Hint
	p, who := s.w.pools, lease.Who{MAC: s.request.Line.MAC}
	s.has.DNS = s.plan.DNS
	if f.V4 && !s.has.IPv4.IsValid() {
		var l lease.Lease
		var err error
		switch {
		case given.IPv4.IsValid():
			if l, err = p.TakeThis("", netip.PrefixFrom(given.IPv4, 32), who); err == nil {
				s.has.IPv4, s.has.Mask = given.IPv4, given.Mask
				s.has.Gateway, s.has.DNS = given.Gateway, given.DNS
			}
		case s.plan.IPv4.IsValid():
			l, err = p.TakeThis("", netip.PrefixFrom(s.plan.IPv4, 32), who)
		default:
			l, err = p.Take(s.plan.Pool4, who, hint.IPv4)
		}
		if err == nil && !s.has.IPv4.IsValid() {
			s.has.IPv4, s.has.Mask, s.has.Gateway = l.Prefix.Addr(), l.Mask, l.Gateway
		}
	}
	six := func(wanted bool, has *netip.Prefix, given, hint netip.Prefix, pool string) {
		var l lease.Lease
		var err error
		switch {
		case !wanted || has.IsValid():
			return
		case given.IsValid():
			l, err = p.TakeThis("", given, who)
		default:
			l, err = p.Take(pool, who, hint.Addr())
		}
		if err == nil {
			*has = l.Prefix
		}
	}
	six(f.V6, &s.has.IPv6, given.IPv6, hint.IPv6, s.plan.Pool6)
	six(f.Delegated, &s.has.Delegated, given.Delegated, hint.Delegated, s.plan.PoolPD)
	s.give(access.Families{V4: !f.V4, V6: !f.V6, Delegated: !f.Delegated}, false)
}

func (s *session) give(f access.Families, declined bool) {
	if f.V4 && s.has.IPv4.IsValid() {
		if declined {
			s.w.pools.Decline("", netip.PrefixFrom(s.has.IPv4, 32))
		} else {
			s.w.pools.Release("", netip.PrefixFrom(s.has.IPv4, 32))
		}
		s.has.IPv4 = netip.Addr{}
	}
	if f.V6 && s.has.IPv6.IsValid() {
		s.w.pools.Release("", s.has.IPv6)
		s.has.IPv6 = netip.Prefix{}
	}
	if f.Delegated && s.has.Delegated.IsValid() {
		s.w.pools.Release("", s.has.Delegated)
		s.has.Delegated = netip.Prefix{}
	}
}

func (s *session) Want(f access.Families, r *access.Request, done func(error)) {
	s.w.posted = append(s.w.posted, func() {
		if s.down == 0 {
			s.hold(f, cmp.Or(r, &access.Request{}))
		}
		done(nil)
	})
}

func (s *session) Up(f access.Families, _ uint16, _ access.KeepAlive, done func(error)) {
	s.w.posted = append(s.w.posted, func() {
		if s.w.failUp {
			done(errors.New("no"))
			return
		}
		if s.down == 0 {
			s.up = f
		}
		done(nil)
	})
}

func (s *session) Down(cause access.Cause) {
	if s.down != 0 {
		s.w.t.Errorf("ended twice: %d, %d", s.down, cause)
	}
	s.down, s.up = cause, access.Families{}
	s.give(access.Families{V4: true, V6: true, Delegated: true}, cause == access.UserError)
	s.w.live = slices.DeleteFunc(s.w.live, func(o *session) bool { return o == s })
}

// counted is a counter's value.
func (w *world) counted(name string) uint64 {
	for _, c := range w.s.Counts() {
		if c.Name == name {
			return c.Value
		}
	}
	w.t.Fatalf("there is no counter %s", name)
	return 0
}
