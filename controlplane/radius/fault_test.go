// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// A server that answers and is not believed is not said to be silent; each reason is told once, however often it comes
// and goes. One that falls silent is said to be (row B12).
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
	var answer atomic.Pointer[func(p *Packet) []byte]
	r := respondRaw(t, func(p *Packet, from netip.AddrPort, conn *net.UDPConn) {
		if f := answer.Load(); f != nil {
			conn.WriteToUDPAddrPort((*f)(p), from)
		}
	})
	told := make(chan *FaultError, 64)
	c, err := NewClient([]ServerConfig{{Name: "one", Address: r.address, Secret: []byte(secret), Policy: First,
		Timeout: 200 * time.Millisecond, Tries: 1, DeadTime: time.Millisecond, Sockets: 1}},
		func(_ string, _ bool, fault *FaultError) {
			if fault != nil {
				told <- fault
			}
		})
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	for range 3 {
		for _, row := range []struct {
			answer func(p *Packet) []byte
			word   string
		}{{unsigned, "unsigned"}, {signedLate, "signed-late"}, {of("other"), "authenticator"}, {nil, ""}} {
			testkit.Until(t, "asked again", c.Alive)
			if answer.Store(&row.answer); row.answer == nil {
				answer.Store(nil)
			}
			err := ask(t, c, request()).err
			var fault *FaultError
			found := errors.As(err, &fault)
			testkit.ErrorIf(t, !errors.Is(err, ErrAway) || found != (row.word != "") || found &&
				(fault.Word() != row.word || fault.Server != "one"), "%q: %v", row.word, err)
		}
		testkit.Until(t, "asked again", c.Alive)
		good := of(secret)
		answer.Store(&good)
		testkit.Must(t, ask(t, c, request()).err)
	}
	testkit.Equal(t, len(told), 3, "told")
}
