// SPDX-License-Identifier: Apache-2.0

package natlog

import (
	"bytes"
	"encoding/hex"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

func event(kind uint32) *api.Event {
	return &api.Event{
		Type: kind, Rule: 1024<<16 | 1535, SEID: 0x1f, Usage: api.Usage{StartNs: 1767323045006 * 1e6},
		Local: api.FromAddr(netip.MustParseAddr("203.0.113.4")),
		Peer:  api.FromAddr(netip.MustParseAddr("10.45.0.1")),
	}
}

func quiet(string, string, ...any) {}

func listener(t *testing.T) (*net.UDPConn, netip.AddrPort) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	testkit.Must(t, err)
	t.Cleanup(func() { c.Close() })
	testkit.Must(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func next(t *testing.T, c *net.UDPConn) string {
	b := make([]byte, 2048)
	n, err := c.Read(b)
	testkit.Must(t, err)
	return string(b[:n])
}

func TestSyslog(t *testing.T) {
	c, to := listener(t)
	l := New(slog.New(slog.DiscardHandler), quiet)
	testkit.Must(t, l.Configure([]netip.AddrPort{to}, nil))
	if l.Event(&api.Event{Type: api.EventTypeUsage}) {
		t.Error("takes a usage report")
	}
	for _, e := range []struct {
		kind uint32
		word string
	}{{api.EventTypeNATAllocate, "allocate"}, {api.EventTypeNATRelease, "release"}} {
		if !l.Event(event(e.kind)) {
			t.Error("does not take a block")
		}
		got := next(t, c)
		if !strings.HasPrefix(got, "<134>1 2026-01-02T03:04:05.006Z ") ||
			!strings.HasSuffix(got, " NAT44 - block "+e.word+
				" external=203.0.113.4 ports=1024-1535 inside=10.45.0.1 seid=0x1f") {
			t.Error(got)
		}
	}
	other, elsewhere := listener(t) // the former one gets no more
	testkit.Must(t, l.Configure([]netip.AddrPort{elsewhere}, nil))
	l.Event(event(api.EventTypeNATAllocate))
	next(t, other)
	testkit.Must(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if n, _ := c.Read(make([]byte, 10)); n != 0 {
		t.Error("still told")
	}
}

// RFC 7011 §3, octet by octet: the template first, then records alone.
func TestIPFIX(t *testing.T) {
	const (
		set = "00020020" + "01000006" + "01430008" + "00e60001" +
			"00080004" + "00e10004" + "01690002" + "016a0002"
		allocate = "01000019" + "0000019b7ca98c8e" + "10" + "0a2d0001" + "cb007104" + "0400" + "05ff"
		release  = "01000019" + "0000019b7ca98c8e" + "11" + "0a2d0001" + "cb007104" + "0400" + "05ff"
	)
	c, to := listener(t)
	l := New(slog.New(slog.DiscardHandler), quiet)
	testkit.Must(t, l.Configure(nil, []netip.AddrPort{to}))
	for i, r := range []struct {
		kind uint32
		want string
	}{{api.EventTypeNATAllocate, set + allocate}, {api.EventTypeNATRelease, release}} {
		l.Event(event(r.kind))
		got := []byte(next(t, c))
		if h := hex.EncodeToString(got[16:]); h != r.want {
			t.Errorf("%d: %s, want %s", i, h, r.want)
		}
		if got[0] != 0 || got[1] != 10 || int(got[2])<<8|int(got[3]) != len(got) || int(got[11]) != i {
			t.Errorf("%d: header %x of %d octets", i, got[:16], len(got))
		}
	}
}

// network is what a Log dials in a test, and its clock.
type network struct {
	net.Conn
	clock       time.Time
	unreachable bool
	dialled     int
	writes      error
	got         [][]byte
	told        []string // kinds of events
}

func on(n *network) *Log {
	l := New(slog.New(slog.DiscardHandler), func(kind, _ string, _ ...any) { n.told = append(n.told, kind) })
	n.clock = time.Now()
	l.dial, l.now = n.dial, func() time.Time { return n.clock }
	return l
}

// pass has seconds go by.
func (n *network) pass(l *Log, seconds int) {
	for range seconds {
		n.clock = n.clock.Add(time.Second)
		l.retry()
	}
}

func (n *network) dial(string, string) (net.Conn, error) {
	if n.dialled++; n.unreachable {
		return nil, unix.ENETUNREACH
	}
	return n, nil
}

func (n *network) Write(b []byte) (int, error) {
	if n.writes == nil {
		n.got = append(n.got, bytes.Clone(b))
	}
	return len(b), n.writes
}

func (n *network) Close() error { return nil }

var somewhere = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.9:4739")}

// An unreachable collector is tried again, at most 30 s apart, and its state is shown.
func TestUnreachableAtTheStart(t *testing.T) {
	n := &network{unreachable: true}
	l := on(n)
	began := n.clock
	testkit.Refused(t, l.Configure(nil, somewhere), "unreachable")
	n.pass(l, 300)
	testkit.Equal(t, n.dialled, 1+5+8, "tried") // after 1, 2, 4, 8, 16 s, then 30
	l.Event(event(api.EventTypeNATAllocate))
	testkit.Refused(t, l.Configure(nil, somewhere), "unreachable") // a reload tries it, and reports that
	want := State{"192.0.2.9:4739", "ipfix", "down", began, 0, 1, unix.ENETUNREACH.Error()}
	testkit.Equal(t, l.States()[0], want, "while it cannot be reached")
	n.unreachable = false
	n.pass(l, 30)
	l.Event(event(api.EventTypeNATAllocate))
	s := l.States()[0]
	testkit.Equal(t, s.Error, "", "error while it is up")
	testkit.ErrorIf(t, s.State != "up" || s.Sent != 1 || len(n.got) != 1 || len(n.got[0]) < 60, "%+v, %x", s, n.got)
	testkit.ErrorIf(t, !slices.Equal(n.told, []string{"collector.down", "collector.up"}), "%v", n.told)
	dialled := n.dialled
	n.pass(l, 300)
	testkit.Equal(t, n.dialled, dialled, "dialled while up")
	testkit.Must(t, l.Configure(nil, nil))
	testkit.Equal(t, len(l.States()), 0, "collectors")
}

// A later failure is reported once, gets another socket, and is up when records go again.
func TestLostAndBack(t *testing.T) {
	for _, err := range []error{unix.EINVAL, unix.EPERM, unix.ECONNREFUSED} {
		n := &network{}
		l := on(n)
		testkit.Must(t, l.Configure(nil, somewhere))
		n.writes = err
		for range 100 {
			l.Event(event(api.EventTypeNATAllocate))
			n.pass(l, 1)
		}
		s := l.States()[0]
		testkit.ErrorIf(t, s.State != "down" || s.Sent != 0 || s.Lost < 100 || len(n.told) != 1,
			"%v: %+v %v", err, s, n.told)
		testkit.ErrorIf(t, n.dialled < 2 || n.dialled > 10, "%v: dialled %d times", err, n.dialled)
		n.writes = nil
		for range 2 {
			l.Event(event(api.EventTypeNATAllocate))
		}
		s = l.States()[0]
		testkit.ErrorIf(t, s.State != "up" || s.Sent != 2 || len(n.told) != 2 || len(n.got[0]) < 60,
			"%v: %+v %v", err, s, n.told)
	}
}

// A collector that was started again has the template with the first record that it can have.
func TestRestartedCollector(t *testing.T) {
	c, to := listener(t)
	l := New(slog.New(slog.DiscardHandler), quiet)
	testkit.Must(t, l.Configure(nil, []netip.AddrPort{to}))
	l.Event(event(api.EventTypeNATAllocate))
	next(t, c)
	c.Close()
	testkit.Until(t, "refused", func() bool {
		l.Event(event(api.EventTypeNATAllocate))
		return l.States()[0].State == "down"
	})
	again, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(to))
	testkit.Must(t, err)
	defer again.Close()
	l.Event(event(api.EventTypeNATAllocate)) // reports what was refused last, and is sent
	testkit.ErrorIf(t, len(next(t, again)) < 60, "no template")
	l.Event(event(api.EventTypeNATAllocate))
	testkit.Equal(t, l.States()[0].State, "up", "state")
}
