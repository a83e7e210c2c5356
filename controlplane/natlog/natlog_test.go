// SPDX-License-Identifier: Apache-2.0

package natlog

import (
	"encoding/hex"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

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

func collector(t *testing.T) (*net.UDPConn, netip.AddrPort) {
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
	c, to := collector(t)
	l := New(slog.New(slog.DiscardHandler))
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
	other, elsewhere := collector(t) // the former one gets no more
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
	c, to := collector(t)
	l := New(slog.New(slog.DiscardHandler))
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
