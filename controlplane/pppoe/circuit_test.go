// SPDX-License-Identifier: Apache-2.0

package pppoe_test

import (
	"encoding/binary"
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/pppoe"
	"isthmus/controlplane/testkit"
)

// by is an access node's circuit id (TR-101 §3.9.2).
func by(circuit string) []byte {
	value := append([]byte{0, 0, 0x0d, 0xe9, 1, byte(len(circuit))}, circuit...)
	return tag(pppoe.TagVendor, value...)
}

// dials begins a session by a circuit; 0: it is refused.
func (w *world) dials(line access.Line, circuit string) uint16 {
	cookie := tag(pppoe.TagCookie, w.cookie(line)...)
	padr := frameOf(line, pppoe.PADR, 0, tag(pppoe.TagService), cookie, by(circuit))
	w.keep, w.seen = true, nil
	w.server.Frame(padr)
	for i := range w.seen {
		if f := &w.seen[i]; f.EtherType == pppoe.EtherDiscovery && f.Payload[1] == pppoe.PADS {
			return binary.BigEndian.Uint16(f.Payload[2:])
		}
	}
	w.t.Fatal("no answer to a PADR")
	return 0
}

// Another circuit with a home's MAC address neither ends its session nor replaces it, unless the port lets homes move.
// Access node tags on an untrusted port do not count.
func TestAnotherCircuit(t *testing.T) {
	for _, r := range []struct {
		name       string
		port       pppoe.Port
		halfOpen   bool
		hangs, may bool // a PADT of the other circuit ends the session; its PADR begins another
	}{
		{"refused", pppoe.Port{Trusted: true}, false, false, false},
		{"half open", pppoe.Port{Trusted: true}, true, true, true},
		{"moves", pppoe.Port{Trusted: true, Moves: true}, false, false, true},
		{"not trusted", pppoe.Port{}, false, true, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			w := newWorld(t, func(c *pppoe.Config) {
				c.PerMAC = 2
				c.PortOf = func(*access.Line) pppoe.Port { return r.port }
			})
			if r.halfOpen {
				w.lost = func(_ bool, f *access.Frame) bool { return f.EtherType == pppoe.EtherSession }
			}
			c := homer(access.PAP)
			c.Vendor = by("eth 0/1")[8:]
			h := w.homeAt(1, 100, c)
			h.Dial()
			w.run(5 * time.Second)
			sessions := func() int {
				all, _ := w.server.Sessions()
				return all
			}
			testkit.Equal(t, sessions(), 1, "sessions")
			if !r.halfOpen && r.port.Trusted { // a restart does not forget
				u := w.users[0]
				w.queue, w.server = nil, pppoe.New(w, w.config, nil)
				u.client = w.server.Restore(u, &u.request, u.state)
			}
			before := len(w.failed)
			testkit.Equal(t, w.dials(h.line, "eth 0/2") != 0, r.may, "another circuit begins a session")
			testkit.Equal(t, len(w.failed)-before == 1, !r.may, "an attempt that is told")
			if r.port.Moves {
				testkit.Equal(t, w.users[0].cause, access.LostCarrier, "cause of the former's end")
				testkit.Equal(t, sessions(), 1, "sessions")
				return
			}
			w.server.Frame(frameOf(h.line, pppoe.PADT, h.ID, by("eth 0/2")))
			want := 1
			if r.hangs {
				want = 0
			}
			if r.may {
				want++
			}
			testkit.Equal(t, sessions(), want, "sessions behind a PADT by another circuit")
			if !r.may {
				testkit.Equal(t, w.users[0].cause, access.Cause(0), "cause of the session's end")
				testkit.Equal(t, w.count("circuit-changed"), 2, "messages refused")
				testkit.Equal(t, w.dials(h.line, "eth 0/1") != 0, true, "the home dials again")
			}
		})
	}
}
