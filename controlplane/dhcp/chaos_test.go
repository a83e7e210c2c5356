// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// Random messages of random homes, with random verdicts, data plane events and commands. Every session ends once, no
// address has two owners, and in the end no address and no line is left.
func TestChaos(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(t)
		w.c.Address.Addr = ourselves
		w.ports["access"] = Port{V4: true, V6: true, Replace: true, FirstPacket: seed%3 == 0}
		w.ports["one"] = Port{V4: true, V6: true, OneToOne: true, Replace: true}
		w.ports["relay"] = Port{V4: true, V6: true, Proxy: seed%2 == 0,
			Upstream: []netip.AddrPort{upstreamA, upstreamB}, Upstream6: []netip.AddrPort{sixA, sixB}}
		w.ports["ppp"] = Port{Upstream6: []netip.AddrPort{sixA, sixB}}
		w.c.Address6.Addr = ourselves6
		w.configure()
		s := &upstream{w, nil}
		w.s.Upstream = func(server netip.AddrPort, packet []byte) error {
			asked := must(dhcpv4.FromBytes(packet))
			kind := []dhcpv4.MessageType{2, 5, 6}[r.IntN(3)] // OFFER, ACK, NAK
			ip := netip.AddrFrom4([4]byte{172, 16, 0, byte(2 + r.IntN(30))}).String()
			w.posted = append(w.posted, func() { s.answer(server, asked, kind, ip) })
			return nil
		}
		w.s.Upstream6 = func(server netip.AddrPort, packet []byte) error {
			b := randomReply(r, packet)
			w.posted = append(w.posted, func() { w.s.FromUpstream6(server, b) })
			return nil
		}
		for range 4000 {
			w.chaos(r)
		}
		w.verdict, w.failUp = nil, false
		w.run()
		for _, b := range w.links {
			if b.s.down == 0 {
				w.wait(24 * time.Hour)
				testkit.Equal(t, b.s.up, onlyFour, "seed %d: passing without leases", seed)
				has := b.s.has.IPv6.IsValid() || b.s.has.Delegated.IsValid()
				testkit.Equal(t, has, false, "seed %d: addresses without leases", seed)
				b.hangUp()
			}
		}
		w.wait(3 * 24 * time.Hour)
		w.run()
		for _, one := range w.live {
			t.Errorf("seed %d: %+v lives for ever", seed, one.up)
		}
		left := len(w.s.subscribers) + len(w.s.vlans) + len(w.s.circuits) + len(w.s.relays) + len(w.s.relays6) +
			w.s.waiting
		testkit.Equal(t, left, 0, "seed %d: what is left", seed)
		for _, row := range w.pools.Rows() {
			testkit.Equal(t, row.Used, 0, "seed %d: used of %s", seed, row.Name)
		}
	}
}

func (w *world) chaos(r *rand.Rand) {
	h := w.home(r.IntN(12))
	h.line.Port = []string{"access", "one", "relay", "ppp"}[r.IntN(4)]
	a := netip.AddrFrom4([4]byte{100, 64, 0, byte(2 + r.IntN(14))})
	if len(w.live) > 0 && r.IntN(2) == 0 {
		one := w.live[r.IntN(len(w.live))]
		h.line = one.request.Line
		if one.has.IPv4.IsValid() {
			a = one.has.IPv4
		}
	}
	if b := w.links[h.line]; h.line.Port == "ppp" {
		if b == nil || b.s.down != 0 {
			w.links[h.line] = h.dial(true)
		} else {
			h.ppp = b.h.ppp
		}
	}
	change := [][]dhcpv4.Modifier{{}, {ciaddr(a)}, {wanted(a)},
		{wanted(a), dhcpv4.WithOption(dhcpv4.OptServerIdentifier([]byte{100, 64, 0, 1}))},
		{dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(80), nil)}}[r.IntN(5)]
	six := [][]dhcpv6.Modifier{{na()}, {pd()}, {na(), pd()}, {ours, na()}, {ours, pd()},
		{ours, na(), pd()}, {ours, na(held(sixAddress(r)))}}[r.IntN(7)]
	switch r.IntN(10) {
	case 0, 1, 2:
		h.put(h.four([]dhcpv4.MessageType{1, 1, 1, 3, 3, 3, 3, 4, 7, 8}[r.IntN(10)], change...))
	case 3, 4, 5:
		h.put6(h.six(dhcpv6.MessageType(1+r.IntN(11)), six...))
	case 6:
		if h.ppp != nil {
			w.links[h.line].negotiate()
			break
		}
		h.solicit()
	case 7:
		w.verdict = nil
		if r.IntN(4) == 0 {
			w.verdict = &access.Verdict{Why: "no", Silent: r.IntN(2) == 0}
		}
		w.failUp = r.IntN(6) == 0
	case 8:
		w.wait(time.Duration(r.IntN(1200)) * time.Second)
	case 9:
		if len(w.live) > 0 && r.IntN(4) == 0 {
			one := w.live[r.IntN(len(w.live))]
			one.client.Ended(access.AdminReset)
			one.Down(access.AdminReset)
		}
		d := datagram{from: a, to: a, protocol: protocolUDP}
		w.s.Frame(&access.Frame{Line: h.line, Reason: access.FirstPacket, EtherType: ethernetIPv4,
			Payload: d.packet()})
	}
	if r.IntN(3) > 0 {
		w.run()
	}
	w.sent = w.sent[:0]
}
