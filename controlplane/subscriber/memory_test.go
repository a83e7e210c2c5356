// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/aaa"
	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dhcp"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
	"isthmus/lab/dialer"
)

// town is many homes on one port: the ends of their lines, and a session layer and accounting that keep nothing.
type town struct {
	*Loop
	at      *dialer.Client // who dials
	line    access.Line
	up      []access.Frame // from the home
	down    []access.Frame
	verdict access.Verdict
	now     time.Time
}

func (w *town) Next(ctx context.Context) ([]access.Frame, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (w *town) Send(f *access.Frame)                 { w.down = append(w.down, copied(f.Line, f.EtherType, f.Payload)) }
func (w *town) Lost() uint64                         { return 0 }
func (w *town) Port(string) (p access.PortAddresses) { return access.PortAddresses{MAC: [6]byte{2}} }

func copied(l access.Line, etherType uint16, payload []byte) access.Frame {
	return access.Frame{Line: l, EtherType: etherType, Payload: append([]byte(nil), payload...)}
}

// void is a session layer that keeps nothing.
type void struct{}

func (void) PutLine(_ *rules.Session, _ []byte, done func([]api.Usage, error)) { done(nil, nil) }
func (void) DropLine(_ uint64, _ []byte, done func([]api.Usage, error))        { done(nil, nil) }
func (void) KeepLine(_ uint64, _ []byte, done func(error))                     { done(nil) }
func (w *town) Account(*aaa.Record) error                                      { return nil }
func (w *town) UserName(r *access.Request) string                              { return r.User }
func (w *town) Authenticate(_ *access.Request, _ string, done func(*access.Verdict)) {
	done(&w.verdict)
}

// end is the end of a line: dialer.Env.
type end struct{ *town }

func (e end) Wake(*dialer.Client, time.Duration)         {}
func (e end) Packet(*dialer.Client, []byte)              {}
func (e end) Ended(*dialer.Client, access.Cause, string) {}
func (e end) Up(*dialer.Client, access.Families)         {}
func (e end) Send(_ *dialer.Client, etherType uint16, payload []byte) {
	e.up = append(e.up, copied(e.line, etherType, payload))
	e.town.up = e.up
}

func newTown(t *testing.T) *town {
	w := &town{verdict: access.Verdict{Accept: true}, now: time.Unix(1e9, 0)}
	now := func() time.Time { return w.now }
	homes := routed("homes", "internet", "10.0.0.0/8", "10.0.0.1")
	homes.DNS = []config.Address{{Addr: netip.MustParseAddr("192.0.2.53")}}
	pools := lease.New(lease.Options{Now: now})
	pools.Configure([]config.AddressPool{
		homes,
		pool("six", "internet", "2001:db8::/40"),
	})
	set := SettingsOf(parse(t, file))
	set.Limits.Rate = 0
	w.Loop = New(set, Options{Frames: w, Sessions: void{}, Auth: w, Pools: pools,
		Now: now})
	c := dhcp.ConfigOf(config.Default[config.Access](), "isthmus")
	c.PortOf = func(*access.Line) (dhcp.Port, bool) { return dhcp.Port{V4: true}, true }
	six := dhcp.New(w.Loop, c)
	p := pppoe.ConfigOf(config.Default[config.AccessPPPoE]())
	p.PPP.Methods = []access.Method{access.PAP}
	w.FrontEnds(pppoe.New(w.Loop, p, func(s access.Session, line access.Line, b access.Bearer,
		was access.BearerState) pppoe.Link6 {
		return six.OverPPP(s, line, b, was)
	}), six)
	return w
}

// dial has home n come on line.
func (w *town) dial(n int) {
	var mac [6]byte
	binary.BigEndian.PutUint32(mac[2:], uint32(n))
	w.line = access.Line{Port: "access", TPID: 0x88a8, STag: uint16(1 + n>>12), CTag: uint16(n & 0xfff), MAC: mac}
	c := dialer.NewConfig(fmt.Sprintf("home-%d@example.net", n), "secret", access.PAP)
	c.PPP.Now, c.PPP.Random = func() time.Duration { return time.Second }, func() uint64 { return 7 }
	w.at = dialer.New(end{w}, c)
	w.at.Dial()
	for range 40 {
		up := w.up
		w.up = nil
		for i := range up {
			w.Frame(&up[i])
		}
		w.Turn()
		down := w.down
		w.down = nil
		for i := range down {
			w.at.Receive(down[i].EtherType, down[i].Payload)
		}
	}
}

// inUse is what of the heap is.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The memory of a home in its front end and in the pools; the session layer's part is in its own test.
func TestMemoryOfHome(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const count, bound = 20_000, 2400
	w := newTown(t)
	const before = 2_000
	for n := range before {
		w.dial(n)
	}
	was := inUse()
	for n := range count {
		w.dial(before + n)
	}
	w.at = nil
	each := (inUse() - was) / count
	up := 0
	for s := range w.by.all {
		if s.families.V4 && s.families.V6 {
			up++
		}
	}
	t.Logf("%d bytes a home, at most %d", each, bound)
	testkit.ErrorIf(t, up != before+count || each > bound, "%d homes up, %d bytes each", up, each)
}
