// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

var (
	upstreamA = netip.MustParseAddrPort("10.9.0.1:67")
	upstreamB = netip.MustParseAddrPort("10.9.0.2:67")
	ourselves = netip.MustParseAddr("10.8.0.1")
)

// upstream is what servers were asked.
type upstream struct {
	w     *world
	asked map[netip.AddrPort][]*dhcpv4.DHCPv4
}

func newRelay(t *testing.T, proxy bool) (*world, *upstream, *home) {
	w := newWorld(t)
	w.c.Address.Addr = ourselves
	w.ports["relay"] = Port{V4: true, Upstream: []netip.AddrPort{upstreamA, upstreamB}, Proxy: proxy}
	w.configure()
	s := &upstream{w, map[netip.AddrPort][]*dhcpv4.DHCPv4{}}
	w.s.Upstream = func(server netip.AddrPort, packet []byte) error {
		testkit.FatalIf(t, !sound(packet, 1), "malformed % x", packet)
		s.asked[server] = append(s.asked[server], must(dhcpv4.FromBytes(packet)))
		return nil
	}
	h := w.home(1)
	h.line.Port = "relay"
	return w, s, h
}

// take is the one message that a server was asked.
func (s *upstream) take(server netip.AddrPort) *dhcpv4.DHCPv4 {
	s.w.t.Helper()
	all := s.asked[server]
	s.asked[server] = nil
	testkit.FatalIf(s.w.t, len(all) != 1, "%v was asked %d times", server, len(all))
	return all[0]
}

func (s *upstream) answer(from netip.AddrPort, to *dhcpv4.DHCPv4, kind dhcpv4.MessageType, ip string) {
	s.lends(from, to, kind, ip, 86400)
}

func (s *upstream) lends(from netip.AddrPort, to *dhcpv4.DHCPv4, kind dhcpv4.MessageType, ip string, seconds uint32) {
	m := must(dhcpv4.NewReplyFromRequest(to, dhcpv4.WithMessageType(kind), dhcpv4.WithYourIP(net.ParseIP(ip)),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithRouter(net.IP{172, 16, 0, 1}),
		dhcpv4.WithDNS(net.IP{1, 1, 1, 1}), dhcpv4.WithLeaseTime(seconds),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(from.Addr().AsSlice()))))
	m.Options[82] = to.Options[82]
	s.w.s.FromUpstream(from, m.ToBytes())
}

func (h *home) one(kind dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	h.w.t.Helper()
	all := h.got()
	testkit.FatalIf(h.w.t, len(all) != 1 || all[0].MessageType() != kind, "got %v", all)
	return all[0]
}

func TestRelay(t *testing.T) {
	w, s, h := newRelay(t, false)
	h.put(h.four(dhcpv4.MessageTypeDiscover))
	asked := s.take(upstreamA)
	s.take(upstreamB)
	testkit.Equal(t, address4(asked.GatewayIPAddr), ourselves, "giaddr")
	testkit.Equal(t, asked.HopCount, 1, "hops")
	testkit.Equal(t, string(asked.RelayAgentInfo().Get(dhcpv4.GenericOptionCode(1))), "relay:100.7", "circuit id")
	testkit.Equal(t, w.signIns, 0, "sign-ins before the offer")
	s.answer(netip.MustParseAddrPort("10.9.0.3:67"), asked, dhcpv4.MessageTypeOffer, "172.16.0.66")
	testkit.Equal(t, w.counted("upstream_unknown"), 1, "from somebody else")
	s.answer(upstreamA, asked, dhcpv4.MessageTypeOffer, "172.16.0.7")
	offer := h.one(dhcpv4.MessageTypeOffer)
	testkit.ErrorIf(t, offer.Options.Has(dhcpv4.OptionRelayAgentInformation), "our option 82 goes to the client")
	s.answer(upstreamB, asked, dhcpv4.MessageTypeOffer, "172.16.0.8")
	testkit.Equal(t, len(h.got()), 0, "offers of the second server")
	a := w.live[0].has
	testkit.Equal(t, a.IPv4, netip.MustParseAddr("172.16.0.7"), "the session's address")
	testkit.Equal(t, a.Gateway, netip.MustParseAddr("172.16.0.1"), "gateway")
	h.put(h.four(dhcpv4.MessageTypeRequest, server(offer), wanted(a.IPv4)))
	s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeAck, "172.16.0.7")
	ack := h.one(dhcpv4.MessageTypeAck)
	testkit.Equal(t, ack.IPAddressLeaseTime(0), 24*time.Hour, "lease")
	testkit.Equal(t, w.live[0].up, access.Families{V4: true}, "passing")

	// An address that the server changes takes a new session.
	h.put(h.four(dhcpv4.MessageTypeDiscover))
	s.asked[upstreamB] = nil
	s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.9")
	h.one(dhcpv4.MessageTypeOffer)
	testkit.Equal(t, len(w.live), 1, "sessions")
	testkit.Equal(t, w.live[0].has.IPv4, netip.MustParseAddr("172.16.0.9"), "the session's address")
	h.put(h.four(dhcpv4.MessageTypeRequest, wanted(netip.MustParseAddr("172.16.0.99"))))
	s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeNak, "0.0.0.0")
	h.one(dhcpv4.MessageTypeNak)
	testkit.Equal(t, len(w.live), 0, "sessions after a denial")
}

func TestProxy(t *testing.T) {
	w, s, h := newRelay(t, true)
	h.put(h.four(dhcpv4.MessageTypeDiscover))
	s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.7")
	offer := h.one(dhcpv4.MessageTypeOffer)
	testkit.Equal(t, address4(offer.ServerIdentifier()), ourselves, "server")
	h.put(h.four(dhcpv4.MessageTypeRequest, server(offer), wanted(address4(offer.YourIPAddr))))
	asked := s.take(upstreamA)
	testkit.Equal(t, address4(asked.ServerIdentifier()), upstreamA.Addr(), "server that upstream is told")
	s.answer(upstreamA, asked, dhcpv4.MessageTypeAck, "172.16.0.7")
	ack := h.one(dhcpv4.MessageTypeAck)
	testkit.Equal(t, ack.IPAddressLeaseTime(0), time.Hour, "lease")
	h.ip = address4(ack.YourIPAddr)
	for range 23 { // half of the upstream lease goes by before it is asked again
		w.wait(30 * time.Minute)
		ack = h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
		testkit.Equal(t, ack.IPAddressLeaseTime(0), time.Hour, "lease")
	}
	testkit.Equal(t, len(s.asked[upstreamA]), 0, "asked upstream")
	w.wait(31 * time.Minute)
	h.put(h.four(dhcpv4.MessageTypeRequest, ciaddr(h.ip)))
	s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeAck, "172.16.0.7")
	h.one(dhcpv4.MessageTypeAck)
	h.ask(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	s.take(upstreamA)
	testkit.Equal(t, len(w.live), 0, "sessions")
	testkit.Equal(t, len(w.s.relays), 0, "open relays")
}

// Leases of (almost) no time are none: they sign no subscriber in, and a subscriber on line keeps its former lease.
func TestShortLease(t *testing.T) {
	for _, proxy := range []bool{false, true} {
		w, s, h := newRelay(t, proxy)
		for n, seconds := range []uint32{0, 1, 29} {
			h.put(h.four(dhcpv4.MessageTypeDiscover))
			s.lends(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.7", seconds)
			testkit.Equal(t, len(h.got())+len(w.live), 0, "answers and sessions of %d s", seconds)
			testkit.Equal(t, w.counted("lease_short"), uint64(n+1), "counted")
		}
		h.put(h.four(dhcpv4.MessageTypeDiscover))
		s.lends(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.7", 30)
		offer := h.one(dhcpv4.MessageTypeOffer)
		h.put(h.four(dhcpv4.MessageTypeRequest, server(offer), wanted(address4(offer.YourIPAddr))))
		s.lends(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeAck, "172.16.0.7", 30)
		h.one(dhcpv4.MessageTypeAck)
		w.wait(20 * time.Second)
		h.put(h.four(dhcpv4.MessageTypeRequest, ciaddr(netip.MustParseAddr("172.16.0.7"))))
		s.lends(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeAck, "172.16.0.7", 0)
		testkit.Equal(t, len(h.got()), 0, "answers to a renewal")
		testkit.Equal(t, len(w.live), 1, "sessions")
		w.wait(15 * time.Second)
		testkit.Equal(t, len(w.live), 0, "sessions after the lease")
	}
}

// A silent, late or wrong server holds nothing for ever.
func TestUpstreamSilent(t *testing.T) {
	w, s, h := newRelay(t, false)
	h.put(h.four(dhcpv4.MessageTypeDiscover))
	asked := s.take(upstreamA)
	w.wait(2 * time.Minute)
	testkit.Equal(t, len(w.s.subscribers)+len(w.s.relays), 0, "remembered")
	s.answer(upstreamA, asked, dhcpv4.MessageTypeOffer, "172.16.0.7")
	testkit.Equal(t, w.counted("upstream_unknown"), 1, "late")
	for i := range 300 {
		w.s.FromUpstream(upstreamA, asked.ToBytes()[:i])
	}
	testkit.Equal(t, w.counted("malformed"), 300, "malformed")
}

// Row B10 by a relay: a client that declines each acknowledged address waits, however often it asks.
func TestRelayDeclines(t *testing.T) {
	for n := range 4 {
		proxy, repeats := n&1 != 0, n>>1
		w, s, h := newRelay(t, proxy)
		for range 3 {
			h.put(h.four(dhcpv4.MessageTypeDiscover))
			s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.7")
			offer := h.one(dhcpv4.MessageTypeOffer)
			its := wanted(address4(offer.YourIPAddr))
			for range 1 + repeats {
				h.put(h.four(dhcpv4.MessageTypeRequest, server(offer), its))
				if len(s.asked[upstreamA]) > 0 { // a proxy answers the second itself
					s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeAck, "172.16.0.7")
				}
				h.one(dhcpv4.MessageTypeAck)
			}
			h.put(h.four(dhcpv4.MessageTypeDecline, server(offer), its))
			s.take(upstreamA)
			testkit.Equal(t, len(w.live), 0, "sessions")
		}
		h.ask(0, dhcpv4.MessageTypeDiscover)
		testkit.Equal(t, len(s.asked[upstreamA]), 0, "asked for who declines all: %v, %d", proxy, repeats)
	}
}
