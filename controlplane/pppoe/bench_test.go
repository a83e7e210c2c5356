// SPDX-License-Identifier: Apache-2.0

package pppoe_test

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/ppp/chap"
	"isthmus/controlplane/pppoe"
	"isthmus/lab/dialer"
)

// plain is a cheap owner of server and clients: a queue of frames and calls, no time.
type plain struct {
	server  *pppoe.Server
	clients map[[6]byte]*dialer.Client
	queue   []work
	up      int
	random  *rand.Rand
	busy    time.Duration // in the server
	timed   bool
	clock   time.Duration
	member  *member
}

type work struct {
	line      access.Line
	etherType uint16
	payload   []byte
	up        bool
	do        func()
}

type member struct{ addresses access.Addresses }

func (m *member) Grant() access.Grant { return access.Grant{Plan: &onePlan, Addresses: &m.addresses} }
func (*member) Keep([]byte)           {}
func (*member) Down(access.Cause)     {}
func (*member) Want(access.Families, *access.Request, func(error)) {
}
func (*member) Up(_ access.Families, _ uint16, _ access.KeepAlive, done func(error)) {
	done(nil)
}

var onePlan access.Plan

func (p *plain) Now() time.Time                           { return time.Unix(1000, 0).Add(p.clock) }
func (p *plain) After(time.Duration, func()) access.Timer { return nil }
func (p *plain) Failed(*access.Request, string)           {}
func (p *plain) Send(f *access.Frame)                     { p.put(f.Line, f.EtherType, f.Payload, false) }
func (p *plain) put(l access.Line, etherType uint16, payload []byte, up bool) {
	p.queue = append(p.queue, work{line: l, etherType: etherType, payload: append([]byte(nil), payload...), up: up})
}

func (p *plain) SignIn(r *access.Request, _ access.Client, done func(access.Session, *access.Verdict)) func() {
	p.queue = append(p.queue, work{do: func() {
		want := chap.MD5(r.Identifier, "secret", r.Challenge)
		if string(want[:]) != string(r.Response) {
			panic("wrong password")
		}
		done(p.member, &access.Verdict{Accept: true})
	}})
	return func() {}
}

// one is a client's Env.
type one struct {
	*plain
	line access.Line
}

func (o *one) Wake(*dialer.Client, time.Duration)         {}
func (o *one) Packet(*dialer.Client, []byte)              {}
func (o *one) Ended(*dialer.Client, access.Cause, string) {}
func (o *one) Send(_ *dialer.Client, etherType uint16, payload []byte) {
	o.put(o.line, etherType, payload, true)
}
func (o *one) Up(_ *dialer.Client, f access.Families) {
	if f.V4 && f.V6 {
		o.plain.up++
	}
}

func newPlain() *plain {
	p := &plain{clients: map[[6]byte]*dialer.Client{}, random: rand.New(rand.NewPCG(1, 2)),
		member: &member{access.Addresses{
			IPv4: netip.MustParseAddr("10.0.0.2"), Gateway: netip.MustParseAddr("10.0.0.1"), InterfaceID: 2,
			IPv6: netip.MustParsePrefix("fd00::/64"), DNS: []netip.Addr{netip.MustParseAddr("9.9.9.9")}}}}
	c := pppoe.ConfigOf(config.Default[config.AccessPPPoE]())
	c.PPP.Methods = []access.Method{access.CHAP}
	p.server = pppoe.New(p, c, nil)
	return p
}

func (p *plain) dial(n int, c *dialer.Config) {
	line := access.Line{Port: "access", TPID: 0x88a8, STag: uint16(n>>12) & 0xfff, CTag: uint16(n & 0xfff),
		MAC: [6]byte{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)}}
	c.PPP.Now, c.PPP.Random = func() time.Duration { return 1 + p.clock }, p.random.Uint64
	client := dialer.New(&one{p, line}, c)
	p.clients[line.MAC] = client
	client.Dial()
	p.work()
}

func (p *plain) work() {
	for i := 0; i < len(p.queue); i++ {
		w := p.queue[i]
		start := time.Time{}
		if p.timed && (w.up || w.do != nil) {
			start = time.Now()
		}
		switch {
		case w.do != nil:
			w.do()
		case w.up:
			p.server.Frame(&access.Frame{Line: w.line, EtherType: w.etherType, Payload: w.payload})
		default:
			if c := p.clients[w.line.MAC]; c != nil {
				c.Receive(w.etherType, w.payload)
			}
		}
		if !start.IsZero() {
			p.busy += time.Since(start)
		}
	}
	p.queue = p.queue[:0]
}

// A sign-in from PADI to both families, by CHAP; each adds a session and a client. ns/op is of both ends. The metric
// server-ns is the server's part, with its owner's copies of frames.
func BenchmarkSignIn(b *testing.B) {
	p := newPlain()
	p.timed = true
	c := homer(access.CHAP)
	b.ReportAllocs()
	for n := range b.N {
		if n%32768 == 32767 { // sessions end, as many as began
			for _, client := range p.clients {
				client.HangUp()
			}
			p.work()
			clear(p.clients)
			p.clock += time.Minute
		}
		p.dial(n, c)
	}
	if p.up != b.N {
		b.Fatalf("%d of %d are on line", p.up, b.N)
	}
	b.ReportMetric(float64(p.busy.Nanoseconds())/float64(b.N), "server-ns/op")
}

// Memory of an open session, without its owner's.
func TestMemory(t *testing.T) {
	const sessions = 40_000
	p := newPlain()
	c := homer(access.CHAP)
	var before, after runtime.MemStats
	for n := range sessions { // clients go, the sessions stay
		if n == 1000 {
			clear(p.clients)
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		p.dial(n, c)
		clear(p.clients)
	}
	p.queue = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	all, half := p.server.Sessions()
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / (sessions - 1000)
	t.Logf("%d octets a session", each)
	if all != sessions || half != 0 || each > 600 {
		t.Errorf("%d sessions, %d half open, %d octets each", all, half, each)
	}
}
