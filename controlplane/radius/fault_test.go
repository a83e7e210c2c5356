// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// A server that answers and is not believed is not reported as silent. Each reason is reported once, however often it
// recurs. A server that falls silent is reported (row B12).
func TestFaults(t *testing.T) {
	unsigned := func(p *Packet) []byte {
		b := []byte{byte(AccessAccept), p.ID, 0, 20, 19: 0}
		copy(b[4:], p.Authenticator[:])
		a := seal(b, []byte(secret))
		copy(b[4:], a[:])
		return b
	}
	of := func(secret string) func(p *Packet) []byte {
		return func(p *Packet) []byte {
			b, _ := (&Packet{Code: AccessAccept, ID: p.ID}).Encode(nil, []byte(secret), &p.Authenticator)
			return b
		}
	}
	good := of(secret)
	other := func(p *Packet) []byte {
		b, _ := (&Packet{Code: AccountingResponse, ID: p.ID}).Encode(nil, []byte(secret), &p.Authenticator)
		return b
	}
	garbled := func(*Packet) []byte { return []byte("HTTP/1.1 400 Bad Request") }
	elsewhere, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)})
	testkit.Must(t, err)
	defer elsewhere.Close()
	type answering struct {
		answer func(p *Packet) []byte
		word   string
	}
	var now atomic.Pointer[answering]
	r := respondRaw(t, func(p *Packet, from netip.AddrPort, conn *net.UDPConn) {
		how := now.Load()
		if how.word == "address" {
			conn = elsewhere
		}
		if how.answer != nil {
			conn.WriteToUDPAddrPort(how.answer(p), from)
		}
	})
	told := make(chan *FaultError, 64)
	one := serverAt("one", r.address, 200*time.Millisecond)
	one.DeadTime = time.Millisecond
	c, err := NewClient([]ServerConfig{one}, func(_ string, is News) {
		if !is.Turned {
			told <- is.Fault
		}
	})
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	for range 3 {
		for _, row := range []answering{{unsigned, "unsigned"}, {signedLate, "signed-late"},
			{of("other"), "authenticator"}, {good, "address"}, {other, "code"}, {garbled, "malformed"}, {nil, ""}} {
			testkit.Until(t, "asked again", c.Alive)
			now.Store(&row)
			err := ask(t, c, request()).err
			var fault *FaultError
			found := errors.As(err, &fault)
			testkit.ErrorIf(t, !errors.Is(err, ErrAway) || found != (row.word != "") || found &&
				(fault.Word() != row.word || fault.Server != "one"), "%q: %v", row.word, err)
		}
		testkit.Until(t, "asked again", c.Alive)
		now.Store(&answering{answer: good})
		testkit.Must(t, ask(t, c, request()).err)
	}
	testkit.Equal(t, len(told), 6, "told")
}

// The reason why a server cannot be asked is reported, for the attempt and for the server given up.
func TestUnreachable(t *testing.T) {
	s := respondTLS(t, welcome)
	s.listener.Close()
	for _, row := range []struct {
		name, text string
		change     func(c *ServerConfig)
	}{
		{"no listener", "connection refused", func(*ServerConfig) {}},
		{"a source that is not ours, TLS", "cannot assign requested address",
			func(c *ServerConfig) { c.Source.Addr = netip.MustParseAddr("192.0.2.1") }},
		{"a source that is not ours, UDP", "cannot assign requested address",
			func(c *ServerConfig) { c.Source.Addr, c.Security = netip.MustParseAddr("192.0.2.1"), nil }},
		{"not reached from its source", "write udp", func(c *ServerConfig) {
			c.Source.Addr, c.Security = netip.MustParseAddr("127.0.0.1"), nil
			c.Address.Addr, c.Port = netip.MustParseAddr("192.0.2.1"), 1812
		}},
	} {
		one := serverAt("one", s.listener.Addr().(*net.TCPAddr).AddrPort(), 50*time.Millisecond)
		one.Security = s.security
		row.change(&one)
		down := make(chan *FaultError, 9)
		c, err := NewClient([]ServerConfig{one}, func(_ string, is News) {
			if is.Turned {
				down <- is.Fault
			}
		})
		testkit.Must(t, err)
		defer c.Close()
		for i := range 2 {
			err = ask(t, c, request()).err
			var fault *FaultError
			testkit.ErrorIf(t, !errors.Is(err, ErrAway) || !errors.As(err, &fault) || fault.Word() != "unreachable" ||
				!strings.Contains(err.Error(), row.text), "%s, request %d: %v", row.name, i, err)
		}
		fault := testkit.Receive(t, down)
		testkit.ErrorIf(t, fault == nil || !strings.Contains(fault.Error(), row.text), "%s: given up: %v", row.name,
			fault)
	}
}
