// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// through is a DHCPv6 message as an access node passes it on (RFC 6221), with the circuit that it came by.
func (h *home) through(id string, kind dhcpv6.MessageType, change ...dhcpv6.Modifier) []byte {
	inner, _ := ipv6(h.six(kind, change...))
	peer := h.linkLocal().As16()
	out := append(append([]byte{12, 0}, make([]byte, 16)...), peer[:]...)
	out = option16(option16(out, 9, inner.body), 18, []byte(id))
	return h.udp6(out, relaysAndServers)
}

// ask4 is home.ask by one circuit.
type ask4 func(want, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4

// neighbours are two lines of one MAC address on a trusted port, behind two circuits of the access node.
func neighbours(t *testing.T, moves bool) (w *world, here, there ask4, h *home) {
	w = newWorld(t)
	w.ports["trusted"] = Port{V4: true, V6: true, Trusted: true, Moves: moves}
	h = w.home(1)
	h.line.Port = "trusted"
	by := func(id string) ask4 {
		return func(want, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
			t.Helper()
			return h.ask(want, kind, append(change, saying(id))...)
		}
	}
	here, there = by("eth 0/1"), by("eth 0/2")
	offer := here(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover)
	h.ip = address4(offer.YourIPAddr)
	here(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, server(offer), wanted(h.ip))
	w.wait(time.Minute)
	return w, here, there, h
}

// Another circuit with a home's MAC address neither takes over its session nor ends it.
func TestAnotherCircuitIsRefused(t *testing.T) {
	w, here, there, h := neighbours(t, false)
	victim := w.live[0]
	refused := func(n uint64) {
		t.Helper()
		testkit.Equal(t, w.counted("circuit_changed"), n, "messages refused")
		testkit.Equal(t, len(w.live), 1, "sessions")
		testkit.Equal(t, w.live[0] == victim && victim.up.V4, true, "the session is the victim's")
	}
	there(0, dhcpv4.MessageTypeDiscover)
	there(0, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	there(0, dhcpv4.MessageTypeRequest, wanted(h.ip))
	there(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	there(0, dhcpv4.MessageTypeDecline, wanted(h.ip))
	refused(5)
	testkit.Equal(t, len(w.failed), 5, "attempts that are told")
	testkit.Equal(t, string(w.failed[0].Agent.CircuitID), "eth 0/2", "whose attempt")

	// DHCPv6's circuit is learnt from its first message: access nodes may write it in another way.
	solicit := func(id string) int {
		h.put6(h.through(id, dhcpv6.MessageTypeSolicit, na(), pd()))
		return len(h.datagrams6())
	}
	testkit.Equal(t, solicit("port 1"), 1, "answers by the same circuit")
	testkit.Equal(t, solicit("port 2"), 0, "answers by another")
	refused(6)

	// An access node may add no tag to unicast messages.
	h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))

	// A restart does not forget.
	kept := victim.kept
	w.s = New(w, w.c)
	victim.client = w.s.Restore(victim, &victim.request, kept)
	there(0, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	testkit.Equal(t, solicit("port 2"), 0, "answers by another DHCPv6 circuit after a restart")
	refused(2)
	testkit.Equal(t, solicit("port 1"), 1, "answers by the same DHCPv6 circuit after a restart")
	testkit.Equal(t, len(w.s.circuits), 1, "circuits with subscribers")
	here(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))

	// When the session has ended the other circuit is as good as any.
	here(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	there(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, len(w.live), 1, "sessions")
	testkit.Equal(t, len(w.s.circuits), 1, "circuits with subscribers")
}

// A restart forgets no circuit of a home that began with a message without one.
func TestRestoredCircuit(t *testing.T) {
	w := newWorld(t)
	w.ports["trusted"] = Port{V4: true, V6: true, Trusted: true}
	h := w.home(1)
	h.line.Port = "trusted"
	h.solicit()
	h.datagrams6()
	h.put6(h.through("port 1", dhcpv6.MessageTypeSolicit, na()))
	testkit.Equal(t, len(h.datagrams6()), 1, "answers by the first circuit")
	one := w.live[0]
	w.s = New(w, w.c)
	one.client = w.s.Restore(one, &one.request, one.kept)
	h.put6(h.through("port 2", dhcpv6.MessageTypeSolicit, na()))
	testkit.Equal(t, len(h.datagrams6()), 0, "answers by another circuit")
	testkit.Equal(t, w.counted("circuit_changed"), 1, "messages refused")
	testkit.Equal(t, w.s.circuits["trusted\x00port 1"], 1, "subscribers of the circuit")
	h.put6(h.through("port 1", dhcpv6.MessageTypeSolicit, na()))
	testkit.Equal(t, len(h.datagrams6()), 1, "answers by the same circuit")
	one.client.Ended(access.AdminReset)
	testkit.Equal(t, len(w.s.circuits), 0, "circuits with subscribers")
}

// A home that moved signs in by its new circuit, where the port lets homes move.
func TestAnotherCircuitSignsInAnew(t *testing.T) {
	w, _, there, h := neighbours(t, true)
	former := w.live[0]
	there(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	testkit.Equal(t, len(w.live), 1, "another circuit releases nothing")
	there(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	testkit.Equal(t, former.down, access.LostCarrier, "cause of the former session's end")
	testkit.Equal(t, len(w.live), 1, "sessions")
	testkit.Equal(t, string(w.live[0].request.Agent.CircuitID), "eth 0/2", "circuit of the new one")
	testkit.Equal(t, w.signIns, 2, "sign-ins")
	// Two circuits with one MAC address do not throw each other out all the time.
	h.ask(0, dhcpv4.MessageTypeDiscover, saying("eth 0/1"))
	testkit.Equal(t, w.counted("circuit_changed"), 2, "messages refused")

	h.put6(h.through("eth 0/2", dhcpv6.MessageTypeSolicit, na()))
	w.run()
	w.wait(time.Minute)
	h.put6(h.through("eth 0/3", dhcpv6.MessageTypeRenew, ours, na()))
	w.run()
	testkit.Equal(t, w.signIns, 3, "sign-ins by DHCPv6, too")
	testkit.Equal(t, string(w.live[0].request.Agent.CircuitID), "eth 0/3", "circuit")
}

// A refusal by one circuit does not delay a sign-in by another.
func TestRefusedByOneCircuit(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.line.Port = "trusted"
	w.verdict = &access.Verdict{Why: "no"}
	h.ask(0, dhcpv4.MessageTypeDiscover, saying("eth 0/2"))
	w.verdict = nil
	h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover, saying("eth 0/1"))
	testkit.Equal(t, w.live[0].has.IPv4, netip.MustParseAddr("100.64.0.2"), "address")
}
