// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

const file = `
ports:
  - {name: access, driver: synth, role: access}
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: core, port: core, addresses: [10.6.0.1/24, "2001:db8:6::1/64"]}
  - {name: access, port: access, addresses: [100.64.0.1/16]}
instances:
  - {name: internet, interfaces: [core], lookup: destination}
policers:
  - {name: slow, type: srtcm, cir: 1Mbit}
pools:
  - {name: homes, instance: internet, prefix: 100.64.0.0/16, gateway: 100.64.0.1}
  - {name: six, instance: internet, prefix: "2001:db8:64::/48"}
access:
  ports: [{port: access, pppoe: true, ipoe: true, s_tags: 1-4000, trusted: true}]
  profiles:
    - {name: home, instance: internet, pool_ipv4: homes, pool_ipv6: six,
       uplink_policer: slow, interim: 600, max_sessions: 2}
    - {name: quota, instance: internet, pool_ipv4: homes, quota: 1000, exhausted: redirect,
       redirect: "http://pay.test/"}
    - {name: timed, instance: internet, pool_ipv4: homes, session_timeout: 3600, idle_timeout: 60}
`

// layer is a session layer that answers when the test says so.
type layer struct {
	sessions map[uint64]*rules.Session
	records  map[uint64][]byte
	usage    []api.Usage // of the next answer
	refuse   error
	keepFail error // of KeepLine
	away     bool  // DropLine fails
	puts     int
	hold     bool     // answers of PutLine wait
	late     []func() // them
}

func (y *layer) PutLine(s *rules.Session, record []byte, done func([]api.Usage, error)) {
	if y.refuse != nil {
		done(nil, y.refuse)
		return
	}
	y.puts++
	y.sessions[s.SEID], y.records[s.SEID] = s, record
	answer := func() { done(y.take(), nil) }
	if y.hold {
		y.late = append(y.late, answer)
		return
	}
	answer()
}

func (y *layer) take() (list []api.Usage) {
	list, y.usage = y.usage, nil
	return list
}

func (y *layer) DropLine(seid uint64, record []byte, done func([]api.Usage, error)) {
	if y.away {
		done(nil, errors.New("the data plane is away"))
		return
	}
	delete(y.sessions, seid)
	y.KeepLine(seid, record, func(error) {})
	done(y.take(), nil)
}

func (y *layer) KeepLine(seid uint64, record []byte, done func(error)) {
	if y.keepFail != nil {
		done(y.keepFail)
		return
	}
	if y.records[seid] = record; record == nil {
		delete(y.records, seid)
	}
	done(nil)
}

// judge accepts by default.
type judge struct {
	verdict access.Verdict
	late    []func() // answers that wait, with hold
	hold    bool
	records []aaa.Record
}

func (j *judge) Authenticate(_ *access.Request, _ string, done func(*access.Verdict)) {
	v := j.verdict
	if j.hold {
		j.late = append(j.late, func() { done(&v) })
		return
	}
	done(&v)
}

func (j *judge) UserName(r *access.Request) string { return r.User }
func (j *judge) Account(r *aaa.Record) error {
	j.records = append(j.records, *r)
	return nil
}

// of are the kinds of the records of a session.
func (j *judge) of(id string) (kinds []aaa.Kind) {
	for i := range j.records {
		if j.records[i].Session == id {
			kinds = append(kinds, j.records[i].Kind)
		}
	}
	return kinds
}

func (j *judge) last() *aaa.Record { return &j.records[len(j.records)-1] }

type noFrames struct{ sent []access.Frame }

func (f *noFrames) Next(ctx context.Context) ([]access.Frame, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (f *noFrames) Send(frame *access.Frame) { f.sent = append(f.sent, *frame) }
func (f *noFrames) Lost() uint64             { return 0 }
func (f *noFrames) Port(string) (p access.PortAddresses) {
	return access.PortAddresses{MAC: [6]byte{2}}
}

// home is a subscriber's side and its front end.
type home struct {
	t       testing.TB
	session *Subscriber
	verdict *access.Verdict
	cause   access.Cause
	plans   int
	silent  int
	silence func()
}

func (h *home) signed(s access.Session, v *access.Verdict) {
	h.session, _ = s.(*Subscriber)
	h.verdict = v
}

func (h *home) Ended(c access.Cause) { h.cause = c }
func (h *home) Replanned()           { h.plans++ }
func (h *home) Silent() {
	h.silent++
	if h.silence != nil {
		h.silence()
	}
}

// bench is a loop in virtual time.
type bench struct {
	*Loop
	t      testing.TB
	layer  *layer
	judge  *judge
	pools  *lease.Pools
	now    time.Time
	events []string
	front  *front
	boot   uint64 // of the data plane

	lock  sync.Mutex
	names map[string]string // addresses, by server and name
}

func (b *bench) resolve(_ context.Context, server netip.Addr, name string) (list []netip.Addr, err error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, text := range strings.Fields(b.names[server.String()+" "+name]) {
		list = append(list, netip.MustParseAddr(text))
	}
	if list == nil {
		return nil, errors.New("no such host")
	}
	return list, nil
}

// front is a front end that restores every state.
type front struct {
	restored []*home
	frames   int
	up       bool // it has the same packets pass again
}

func (f *front) Frame(*access.Frame) { f.frames++ }
func (f *front) Restore(s access.Session, _ *access.Request, state []byte) access.Client {
	if len(state) == 0 {
		return nil
	}
	h := &home{session: s.(*Subscriber)}
	f.restored = append(f.restored, h)
	if f.up {
		s.Up(access.Families{V4: true, V6: true}, 1492, access.KeepAlive{}, func(err error) {
			if err != nil {
				s.Down(access.NASError)
			}
		})
	}
	return h
}

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(text))
	testkit.Must(t, err)
	return c
}

// pool gives out IPv4 addresses, or prefixes of 64 bits.
func pool(name, instance, prefix string) config.AddressPool {
	p := config.AddressPool{Name: config.Name(name), Instance: config.Name(instance), Length: 32,
		Prefix: config.Prefix{Prefix: netip.MustParsePrefix(prefix)}}
	if p.Prefix.Addr().Is6() {
		p.Length = 64
	}
	return p
}

func routed(name, instance, prefix, gateway string) config.AddressPool {
	p := pool(name, instance, prefix)
	p.Gateway.Addr = netip.MustParseAddr(gateway)
	return p
}

func start(t testing.TB, change func(*Settings)) *bench {
	b := &bench{t: t, layer: &layer{sessions: map[uint64]*rules.Session{}, records: map[uint64][]byte{}},
		judge: &judge{verdict: access.Verdict{Accept: true}}, now: time.Unix(1e9, 0), front: &front{},
		boot: 5}
	b.open(change)
	return b
}

// open makes the loop, for the first time or after a restart.
func (b *bench) open(change func(*Settings)) {
	set := SettingsOf(parse(b.t, file))
	if change != nil {
		change(set)
	}
	b.pools = lease.New(lease.Options{Now: func() time.Time { return b.now }})
	b.pools.Configure([]config.AddressPool{
		routed("homes", "internet", "10.64.0.0/16", "10.64.0.1"), pool("six", "internet", "2001:db8:100::/48"),
	})
	b.Loop = New(set, Options{Frames: &noFrames{}, Sessions: b.layer, Auth: b.judge, Pools: b.pools,
		Resolve: b.resolve,
		Now:     func() time.Time { return b.now },
		Notify:  func(kind, about string, _ ...any) { b.events = append(b.events, kind+" "+about) }})
	b.FrontEnds(b.front, b.front)
	if b.boot != 0 {
		b.LinesBoot(b.boot)
	}
}

// turn does what is to be done now.
func (b *bench) turn() {
	for range 20 {
		b.Turn()
	}
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	end := b.now.Add(d)
	for {
		b.turn()
		next, more := b.timers.next()
		if !more || next.After(end) {
			break
		}
		b.now = next
	}
	b.now = end
	b.turn()
}

func request(user string, n byte) *access.Request {
	return &access.Request{Kind: access.PPPoE, PPPoE: uint16(n) + 1, Wants: access.Families{V4: true, V6: true},
		Line: access.Line{Port: "access", TPID: 0x88a8, STag: 100, CTag: 1 + uint16(n), MAC: [6]byte{2,
			0, 0, 0, 0, n}},
		Agent:       access.Agent{CircuitID: []byte("dslam 1/" + user)},
		Credentials: access.Credentials{Method: access.PAP, User: user, Password: []byte("secret")}}
}

func (b *bench) signIn(r *access.Request) *home {
	h := &home{t: b.t}
	b.SignIn(r, h, h.signed)
	b.turn()
	return h
}

// up signs in, and has packets of both families pass.
func (b *bench) up(r *access.Request) *home {
	b.t.Helper()
	h := b.signIn(r)
	if h.session == nil {
		b.t.Fatalf("refused: %+v", h.verdict)
	}
	var failed error = errors.New("no answer")
	h.session.Up(access.Families{V4: true, V6: true}, 1492, access.KeepAlive{Magic: 7, Interval: 10 * time.Second,
		Count: 3},
		func(err error) { failed = err })
	b.turn()
	testkit.Must(b.t, failed)
	h.session.Keep([]byte("state"))
	b.turn()
	return h
}

func (b *bench) object(h *home) *rules.Session { return b.layer.sessions[seidOf(h.session.ID())] }

func usage(urr, sequence uint32, up, down uint64, triggers uint32) api.Usage {
	return api.Usage{URR: urr, Sequence: sequence, Triggers: triggers, Bytes: [3]uint64{up + down, up, down},
		Packets: [3]uint64{2, 1, 1}}
}

// reports raises an event of the data plane; it returns whether it was acknowledged.
func (b *bench) reports(h *home, u api.Usage) *bool {
	acked := new(bool)
	u.SEID = seidOf(h.session.ID())
	b.LineEvent(&api.Event{Type: api.EventTypeUsage, SEID: u.SEID, BootID: b.boot, Usage: u},
		func() { *acked = true })
	b.turn()
	return acked
}
