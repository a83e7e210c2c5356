// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/testkit"
)

// RFC 2131 §4.3, RFC 8415 §18.3: a gateway that took over knows no lease, and its homes keep their addresses.
func TestNobodyIsRenumbered(t *testing.T) {
	w := newWorld(t)
	ip := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	ack, nak := dhcpv4.MessageTypeAck, dhcpv4.MessageTypeNak
	w.home(1).ask(ack, dhcpv4.MessageTypeRequest, ciaddr(ip("100.64.7.7"))) // RENEWING, REBINDING
	w.home(2).ask(ack, dhcpv4.MessageTypeRequest, wanted(ip("100.64.7.8"))) // INIT-REBOOT
	offer := w.home(3).ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover, wanted(ip("100.64.7.9")))
	testkit.Equal(t, address4(offer.YourIPAddr), ip("100.64.7.9"), "offered")

	for n, a := range []string{"100.64.7.7", "100.64.0.1", "100.64.0.0", "100.64.255.255", "10.0.0.1"} {
		// Another's, ours, the network's, broadcast, of no pool.
		w.home(10+n).ask(nak, dhcpv4.MessageTypeRequest, wanted(ip(a)))
	}
	testkit.Equal(t, w.pools.Rows()[0].Used, 8, "addresses in use")

	// By DHCPv6 the same, of a session that DHCPv4 began.
	h := w.home(1)
	lan := &dhcpv6.OptIAPrefix{Prefix: network(netip.MustParsePrefix("2001:db8:133:4500::/56"))}
	text := h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRebind, na(held("2001:db8:1:77::1")), pd(lan))
	testkit.Equal(t, text, "2001:db8:1:77::1 2h0m0s 2001:db8:133:4500::/56 2h0m0s ", "what a home had")
	text = w.home(2).ask6(dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeSolicit, na(held("2001:db8:1:77::1")))
	testkit.Equal(t, text, "2001:db8:1::1 2h0m0s ", "another's prefix is not given")
}

// A packet from an assigned address signs its home in with that address.
func TestFirstPacketKeepsItsAddress(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.line.Port = "static"
	h.packet(netip.MustParseAddr("100.64.9.9"))
	w.run()
	testkit.Equal(t, w.live[0].has.IPv4, netip.MustParseAddr("100.64.9.9"), "address")
}
