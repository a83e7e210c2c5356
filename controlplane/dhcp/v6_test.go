// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

var iaid = [4]byte{0, 0, 0, 7}

func (h *home) linkLocal() netip.Addr { return linkLocal(h.line.MAC) }

func (h *home) duid() dhcpv6.DUID {
	return &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: h.line.MAC[:]}
}

func na(a ...dhcpv6.Option) dhcpv6.Modifier {
	return func(m dhcpv6.DHCPv6) {
		m.AddOption(&dhcpv6.OptIANA{IaId: iaid, Options: dhcpv6.IdentityOptions{Options: a}})
	}
}

func pd(a ...dhcpv6.Option) dhcpv6.Modifier {
	return func(m dhcpv6.DHCPv6) {
		m.AddOption(&dhcpv6.OptIAPD{IaId: iaid, Options: dhcpv6.PDOptions{Options: a}})
	}
}

func ours(m dhcpv6.DHCPv6) {
	m.AddOption(dhcpv6.OptServerID(must(dhcpv6.DUIDFromBytes(DUID("isthmus")))))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func held(a string) dhcpv6.Option { return &dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(a)} }

// six makes a message of a client.
func (h *home) six(kind dhcpv6.MessageType, change ...dhcpv6.Modifier) []byte {
	m := must(dhcpv6.NewMessage(change...))
	m.MessageType = kind
	m.TransactionID = [3]byte{1, 2, byte(len(h.w.sent))}
	m.AddOption(dhcpv6.OptClientID(h.duid()))
	m.AddOption(dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList))
	return h.udp6(m.ToBytes(), relaysAndServers)
}

func (h *home) udp6(body []byte, to netip.Addr) []byte {
	d := datagram{from: h.linkLocal(), to: to, source: 546, dest: 547, protocol: protocolUDP, body: body}
	return d.packet()
}

func (h *home) put6(packet []byte) {
	if h.ppp != nil {
		h.ppp.Packet(packet)
		return
	}
	h.w.s.Frame(&access.Frame{Line: h.line, Reason: access.DHCPv6, EtherType: ethernetIPv6, Payload: packet})
}

func (h *home) solicit() {
	d := datagram{from: h.linkLocal(), to: allNodes, protocol: protocolICMP, body: make([]byte, 8)}
	d.body[0] = 133
	h.w.s.Frame(&access.Frame{Line: h.line, Reason: access.RouterSolicitation, EtherType: ethernetIPv6,
		Payload: d.packet()})
}

// datagrams6 are those that came to this home since the last call.
func (h *home) datagrams6() (all []datagram) {
	h.w.run()
	h.w.sent = slices.DeleteFunc(h.w.sent, func(f access.Frame) bool {
		if f.Line != h.line || f.EtherType != ethernetIPv6 {
			return false
		}
		d, ok := ipv6(f.Payload)
		testkit.FatalIf(h.w.t, !ok, "malformed answer % x", f.Payload)
		all = append(all, d)
		return true
	})
	return all
}

// ask6 sends a message, and returns the one answer of a kind, as text; 0: there must be none.
func (h *home) ask6(want, kind dhcpv6.MessageType, change ...dhcpv6.Modifier) string {
	h.w.t.Helper()
	h.put6(h.six(kind, change...))
	var all []*dhcpv6.Message
	for _, d := range h.datagrams6() {
		if d.protocol == protocolUDP {
			testkit.FatalIf(h.w.t, d.dest != 546 || d.to != h.linkLocal(), "to %v port %d", d.to, d.dest)
			all = append(all, must(dhcpv6.MessageFromBytes(d.body)))
		}
	}
	if want == 0 {
		testkit.FatalIf(h.w.t, len(all) != 0, "%v is answered: %v", kind, all)
		return ""
	}
	testkit.FatalIf(h.w.t, len(all) != 1 || all[0].MessageType != want, "%v is answered by %v", kind, all)
	return leases(all[0])
}

// leases returns a message's addresses, prefixes and status.
func leases(m *dhcpv6.Message) (text string) {
	say := func(s *dhcpv6.OptStatusCode) {
		if s != nil {
			text += fmt.Sprint(s.StatusCode, " ")
		}
	}
	for _, ia := range m.Options.IANA() {
		for _, a := range ia.Options.Addresses() {
			text += fmt.Sprintf("%v %v ", a.IPv6Addr, a.ValidLifetime)
		}
		say(ia.Options.Status())
	}
	for _, ia := range m.Options.IATA() {
		say(ia.Options.Status())
	}
	for _, ia := range m.Options.IAPD() {
		for _, p := range ia.Options.Prefixes() {
			text += fmt.Sprintf("%v %v ", p.Prefix, p.ValidLifetime)
		}
		say(ia.Options.Status())
	}
	say(m.Options.Status())
	return text
}

const both = "2001:db8:1::1 2h0m0s 2001:db8:100::/56 2h0m0s "

func TestSolicitRequest(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeSolicit, na(), pd()), both, "offered")
	testkit.Equal(t, w.live[0].up, access.Families{}, "passing")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na(), pd()), both, "got")
	testkit.Equal(t, w.live[0].up, access.Families{V6: true, Delegated: true}, "passing")
	testkit.Equal(t, w.live[0].request.Kind, access.IPoE6, "kind")
	w.wait(time.Hour)
	renewed := h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRenew, ours, na(held("2001:db8:1::1")), pd())
	testkit.Equal(t, renewed, both, "renewed")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRebind, na(held("2001:db8:9::1"))),
		"2001:db8:1::1 2h0m0s 2001:db8:9::1 0s ", "rebound, with an address of another life")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeConfirm, na(held("2001:db8:1::1"))),
		"Success ", "")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeConfirm, na(held("2001:db8:9::1"))),
		"NotOnLink ", "")
	h.ask6(0, dhcpv6.MessageTypeConfirm, na())
	w.home(2).ask6(0, dhcpv6.MessageTypeConfirm, na(held("2001:db8:1::1")))
	w.home(2).ask6(0, dhcpv6.MessageTypeRelease, ours, na(held("2001:db8:1::1")))
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRelease, ours, pd()), "Success ", "")
	testkit.Equal(t, w.live[0].up, access.Families{V6: true}, "passing")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRelease, ours, pd()),
		"NoBinding Success ", "")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRelease, ours, na()), "Success ", "")
	testkit.Equal(t, len(w.live), 0, "sessions")
}

func TestRapidCommit6(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	rapid := func(m dhcpv6.DHCPv6) { m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit}) }
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeSolicit, na(), pd(), rapid), both, "got")
	w.wait(2*time.Hour + time.Minute)
	testkit.Equal(t, len(w.live), 0, "sessions when leases are over")
}

// Messages that must name a server, must not, and may be heard at all (RFC 8415 §16).
func TestValid6(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	other := func(m dhcpv6.DHCPv6) { m.AddOption(dhcpv6.OptServerID(h.duid())) }
	h.ask6(0, dhcpv6.MessageTypeRequest, other, na())
	testkit.Equal(t, w.counted("other_server"), 1, "other server")
	h.ask6(0, dhcpv6.MessageTypeRequest, na())
	h.ask6(0, dhcpv6.MessageTypeSolicit, ours, na())
	h.ask6(0, dhcpv6.MessageTypeRebind, ours, na())
	h.ask6(0, dhcpv6.MessageTypeInformationRequest, na())
	h.ask6(0, dhcpv6.MessageTypeReply, ours, na())
	h.ask6(0, dhcpv6.MessageTypeSolicit)
	testkit.Equal(t, w.counted("malformed"), 6, "malformed")
	testkit.Equal(t, w.signIns, 0, "sign-ins")
	b := h.six(dhcpv6.MessageTypeRequest, ours, na())
	d, _ := ipv6(b)
	h.put6(h.udp6(d.body, w.router.LinkLocal))
	m := must(dhcpv6.MessageFromBytes(h.datagrams6()[0].body))
	testkit.Equal(t, leases(m), "UseMulticast ", "unicast")
}

func TestNothingToGive(t *testing.T) {
	w := newWorld(t)
	w.plan.Pool6, w.plan.PoolPD = "", ""
	h := w.home(1)
	h.join()
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeSolicit, na(), pd()),
		"NoAddrsAvail NoPrefixAvail ", "")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na(), pd()),
		"NoAddrsAvail NoPrefixAvail ", "")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRenew, ours, na(), pd()),
		"NoBinding NoBinding ", "")
	h.solicit()
	testkit.Equal(t, len(h.datagrams6()), 0, "advertisements to a subscriber without IPv6")
	testkit.Equal(t, w.live[0].up, access.Families{V4: true}, "passing")
}

func TestDecline6(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	for i := range 3 {
		got := h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na())
		testkit.Equal(t, got, fmt.Sprintf("2001:db8:1::%d 2h0m0s ", i+1), "got")
		h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeDecline, ours, na(held("2001:db8:1::1")))
	}
	h.ask6(0, dhcpv6.MessageTypeSolicit, na())
	testkit.Equal(t, len(w.live), 0, "sessions")
}

// The end of an address withdraws its prefix, and the router only with the last of IPv6 (RFC 4861 §6.2.5).
func TestRouterStays(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	w.c.RA.SLAAC = false
	w.configure()
	h.join()
	h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na(), pd())
	release := func(what dhcpv6.Modifier) []byte {
		h.put6(h.six(dhcpv6.MessageTypeRelease, ours, what))
		all := slices.DeleteFunc(h.datagrams6(), func(d datagram) bool { return d.protocol != protocolICMP })
		testkit.FatalIf(t, len(all) != 1, "%d advertisements at a release", len(all))
		return all[0].body
	}
	body := release(na(held("2001:db8:1::1")))
	testkit.Equal(t, w.live[0].up, access.Families{V4: true, Delegated: true}, "passing")
	testkit.Equal(t, binary.BigEndian.Uint16(body[6:]), uint16(w.c.RA.Lifetime/time.Second),
		"router lifetime beside a delegated prefix")
	testkit.Equal(t, body[32], 3, "the option behind our address and the MTU")
	testkit.Equal(t, binary.BigEndian.Uint64(body[36:]), 0, "lifetimes of the prefix")
	w.live[0].client.Replanned()
	testkit.Equal(t, len(h.datagrams6()), 1, "advertisements of another plan")
	body = release(pd())
	testkit.Equal(t, w.live[0].up, access.Families{V4: true}, "passing")
	testkit.Equal(t, binary.BigEndian.Uint16(body[6:]), 0, "router lifetime without IPv6")
}

// One session, whose families come and go.
func TestDualStack(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.join()
	h.solicit()
	ra := h.datagrams6()
	testkit.FatalIf(t, len(ra) != 1 || ra[0].body[0] != 134, "%v", ra)
	h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, pd())
	testkit.Equal(t, w.live[0].up, access.Families{V4: true, V6: true, Delegated: true}, "passing")
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	h.ask(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	testkit.Equal(t, w.live[0].up, access.Families{V6: true, Delegated: true}, "passing")
	testkit.Equal(t, w.pools.Rows()[0].Used, 0, "IPv4 addresses in use")
	h.join()
	testkit.Equal(t, w.live[0].up, access.Families{V4: true, V6: true, Delegated: true}, "passing")
	testkit.Equal(t, h.ip, netip.MustParseAddr("100.64.0.2"), "the same address again")
	h.datagrams6()
	w.live[0].client.Ended(access.AdminReset)
	last := h.datagrams6()
	testkit.FatalIf(t, len(last) != 1 || last[0].body[0] != 134, "%v", last)
	testkit.Equal(t, binary.BigEndian.Uint16(last[0].body[6:]), 0, "router lifetime of the last advertisement")
}

// An address that the data plane does not release is not reused: the whole session ends.
func TestDropFails(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.join()
	h.solicit()
	h.datagrams6()
	s := w.live[0]
	w.failUp = true
	h.ask(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	testkit.Equal(t, s.down, access.UserRequest, "cause")
	testkit.Equal(t, len(w.live), 0, "sessions")
	w.failUp = false
	h.join()
	testkit.Equal(t, w.signIns, 2, "sign-ins")
}

// An unused offer ends alone; a lease that ends takes SLAAC along, which is no sign of life.
func TestExpiry(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.solicit()
	h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, w.pools.Rows()[0].Used, 1, "IPv4 addresses in use")
	w.wait(2 * time.Minute)
	testkit.Equal(t, w.pools.Rows()[0].Used, 0, "IPv4 addresses in use")
	testkit.Equal(t, w.live[0].up, access.Families{V6: true}, "passing")
	h.join()
	w.wait(time.Hour + time.Minute)
	testkit.Equal(t, w.live[0].up, access.Families{V6: true}, "passing")
	w.wait(3 * w.c.IPoE.KeepAlive.Interval)
	testkit.Equal(t, len(w.live), 0, "sessions")
}

func TestAdvertisement(t *testing.T) {
	w := newWorld(t)
	w.c.RA.Managed = true
	w.configure()
	h := w.home(1)
	w.there = map[access.Line]netip.Addr{h.line: h.linkLocal()}
	h.solicit()
	all := h.datagrams6()
	testkit.FatalIf(t, len(all) != 1, "%d answers", len(all))
	d := all[0]
	testkit.Equal(t, d.to, h.linkLocal(), "to")
	testkit.Equal(t, d.from, w.router.LinkLocal, "from")
	testkit.Equal(t, d.limit, 255, "hop limit")
	testkit.Equal(t, fmt.Sprintf("%x", d.body[4:6]), "40c0", "hop limit, M and O")
	testkit.Equal(t, binary.BigEndian.Uint16(d.body[6:]), 1800, "lifetime")
	options := map[byte]string{}
	for b := d.body[16:]; len(b) > 0; b = b[8*int(b[1]):] {
		options[b[0]] = fmt.Sprintf("%x", b[2:8*int(b[1])])
	}
	testkit.Equal(t, options[1], "02000000aa01", "source link-layer address")
	testkit.Equal(t, options[5], "0000000005dc", "MTU")
	testkit.Equal(t, options[3], "4040"+"00001c20"+"00000e10"+"00000000"+"20010db8000100000000000000000000",
		"prefix")
	testkit.Equal(t, options[25], "0000"+"00000708"+"262000fe0000000000000000000000fe", "resolver (RFC 8106)")
	testkit.Equal(t, w.live[0].up, access.Families{V6: true}, "passing")
	w.live[0].plan.Announced = []netip.Prefix{netip.MustParsePrefix("2001:db8:7::/48"),
		netip.MustParsePrefix("::/0")}
	w.wait(10*time.Minute + time.Second)
	all = h.datagrams6()
	testkit.FatalIf(t, len(all) != 1, "%d advertisements after ten minutes", len(all))
	routes := fmt.Sprintf("%x", all[0].body[len(all[0].body)-24:])
	testkit.Equal(t, routes, "1802300000000708"+"20010db800070000"+"1801000000000708", "routes (RFC 4191)")
	w.wait(time.Hour)
	testkit.Equal(t, len(h.datagrams6()), 6, "advertisements in an hour")
	testkit.Equal(t, len(w.live), 1, "sessions")
}

// From a prefix shorter than a /64, hosts make addresses in its first /64 (RFC 4862 §5.5.3 d).
func TestAdvertisementOfLargePrefix(t *testing.T) {
	for _, row := range []struct{ prefix, want string }{
		{"2001:db8:aa00:100::/56", "0304404000001c2000000e100000000020010db8aa0001000000000000000000"},
		{"2001:db8:aa00:100::7/128", ""},
	} {
		w := newWorld(t)
		h := w.home(1)
		h.solicit()
		h.datagrams6()
		w.live[0].has.IPv6 = netip.MustParsePrefix(row.prefix)
		h.solicit()
		all := h.datagrams6()
		testkit.FatalIf(t, len(all) != 1, "%d answers", len(all))
		got := ""
		for b := all[0].body[16:]; len(b) > 0; b = b[8*int(b[1]):] {
			if b[0] == 3 {
				got += fmt.Sprintf("%x", b[:8*int(b[1])])
			}
		}
		testkit.Equal(t, got, row.want, "prefix of %s", row.prefix)
	}
}

// A subscriber that signs in by DHCPv6 or a packet solicits no router: at a gateway that took over, its former router
// ends with its lifetime.
func TestRouterOfWhoDoesNotAsk(t *testing.T) {
	for _, signIn := range []func(h *home){
		func(h *home) { h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRebind, na(), pd()) },
		func(h *home) { h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRebind, pd()) },
		func(h *home) {
			h.line.Port = "static"
			d := datagram{from: netip.MustParseAddr("2001:db8:1::5"), to: ourselves6, protocol: protocolUDP}
			h.w.s.Frame(&access.Frame{Line: h.line, Reason: access.FirstPacket, EtherType: ethernetIPv6,
				Payload: d.packet()})
		},
		func(h *home) {
			h.line.Port = "static"
			d := datagram{from: h.linkLocal(), to: h.w.router.LinkLocal, protocol: protocolICMP,
				body: append([]byte{neighbourSolicitation, 7: 0}, h.w.router.LinkLocal.AsSlice()...)}
			h.w.s.Frame(&access.Frame{Line: h.line, Reason: access.FirstPacket, EtherType: ethernetIPv6,
				Payload: d.packet()})
		},
	} {
		w := newWorld(t)
		h := w.home(1)
		signIn(h)
		for _, u := range w.s.subscribers {
			w.there = map[access.Line]netip.Addr{h.line: u.peer}
		}
		w.run()
		for _, after := range []time.Duration{0, 10 * time.Minute} {
			w.wait(after)
			all := h.datagrams6()
			testkit.FatalIf(t, len(all) != 1 || all[0].body[0] != 134, "after %v: %v", after, all)
		}
	}
}

// After a change of a port's addresses its homes get an advertisement within seconds. Homes of other ports get none.
func TestRouterChanges(t *testing.T) {
	w := newWorld(t)
	var homes []*home
	for i := range 40 {
		homes = append(homes, w.home(i))
		homes[i].solicit()
		homes[i].datagrams6()
	}
	elsewhere := w.home(50)
	elsewhere.line.Port = "trusted"
	elsewhere.solicit()
	elsewhere.datagrams6()
	w.router.LinkLocal = netip.MustParseAddr("fe80::88")
	w.s.Frame(&access.Frame{Line: access.Line{Port: "access"}, Reason: access.PortChanged})
	w.wait(introduceTime)
	for _, h := range homes {
		all := h.datagrams6()
		testkit.FatalIf(t, len(all) != 1 || all[0].from != w.router.LinkLocal, "%v", all)
	}
	testkit.Equal(t, len(elsewhere.datagrams6()), 0, "advertisements on another port")
}

// RFC 6221: an access node wraps a client's messages; row B9: only an access node, and to a limited depth.
func TestLDRA(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.line.Port = "trusted"
	inner, _ := ipv6(h.six(dhcpv6.MessageTypeSolicit, na(), pd()))
	wrap := func(b []byte, hops byte) []byte {
		out := append([]byte{12, hops}, make([]byte, 16)...)
		peer := h.linkLocal().As16()
		out = option16(append(out, peer[:]...), 9, b)
		out = option16(out, 37, []byte("\x00\x00\x0d\xe9home 7"))
		return option16(out, 18, []byte("eth 0/7"))
	}
	h.put6(h.udp6(wrap(inner.body, 0), relaysAndServers))
	all := h.datagrams6()
	testkit.FatalIf(t, len(all) != 1 || all[0].dest != 547, "%v", all)
	relay := must(dhcpv6.RelayMessageFromBytes(all[0].body))
	testkit.Equal(t, relay.MessageType, dhcpv6.MessageTypeRelayReply, "type")
	testkit.Equal(t, string(relay.Options.InterfaceID()), "eth 0/7", "interface id")
	testkit.Equal(t, relay.PeerAddr.String(), h.linkLocal().String(), "peer")
	testkit.Equal(t, leases(must(relay.GetInnerMessage())), both, "offered")
	a := w.live[0].request.Agent
	testkit.Equal(t, string(a.CircuitID)+string(a.RemoteID), "eth 0/7home 7", "agent")

	b := inner.body
	for i := range 8 {
		b = wrap(b, byte(i))
	}
	h.put6(h.udp6(b, relaysAndServers))
	testkit.Equal(t, len(h.datagrams6()), 1, "eight relays")
	h.put6(h.udp6(wrap(b, 8), relaysAndServers))
	testkit.Equal(t, len(h.datagrams6()), 0, "nine relays")
	testkit.Equal(t, w.counted("hops"), 1, "too many")
	h.line.Port = "access"
	h.put6(h.udp6(wrap(inner.body, 0), relaysAndServers))
	testkit.Equal(t, w.counted("untrusted"), 1, "untrusted")
}

func TestInformation(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.solicit()
	h.datagrams6()
	h.put6(h.six(dhcpv6.MessageTypeInformationRequest))
	m := must(dhcpv6.MessageFromBytes(h.datagrams6()[0].body))
	testkit.Equal(t, fmt.Sprint(m.Options.DNS(), m.Options.DomainSearchList()), "[2620:fe::fe] [example.net]", "")
	testkit.Equal(t, m.Options.InformationRefreshTime(0), 2*time.Hour, "refresh (RFC 8415 §21.23)")
}

// Everything continues after a restart of the control plane.
func TestRestore(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.join()
	h.solicit()
	h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na(), pd())
	s := w.live[0]
	w.s, w.timers = New(w, w.c), nil
	w.wait(30 * time.Minute)
	s.client = w.s.Restore(s, &s.request, s.kept)
	testkit.FatalIf(t, s.client == nil, "not restored")
	h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRenew, ours, na(), pd()), both, "renewed")
	w.wait(10 * time.Minute)
	testkit.Equal(t, len(h.datagrams6()), 1, "advertisements")
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	kept := s.kept
	w.s, w.timers = New(w, w.c), nil
	w.wait(24 * time.Hour)
	for i := range kept {
		testkit.ErrorIf(t, w.s.Restore(s, &s.request, kept[:i]) != nil, "restored from %d bytes", i)
	}
	s.client = w.s.Restore(s, &s.request, kept)
	testkit.FatalIf(t, s.client == nil, "not restored")
	h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	w.wait(3 * time.Hour)
	testkit.Equal(t, len(w.live), 0, "sessions of who did not come back")
}

// RFC 8415 §18.3.2, §18.3.9: there are no temporary addresses here, and requests for them get that status. Other
// requests are served.
func TestTemporaryAddresses(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	ta := dhcpv6.WithIATA([4]byte{0, 0, 0, 9})
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeSolicit, ta), "NoAddrsAvail ", "alone")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, ta), "NoAddrsAvail ", "alone")
	testkit.Equal(t, w.signIns, 0, "sign-ins for nothing")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na(), ta),
		"2001:db8:1::1 2h0m0s NoAddrsAvail ", "beside an IA_NA")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRenew, ours, na(), ta),
		"2001:db8:1::1 2h0m0s NoBinding ", "renewed")
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRelease, ours, ta), "NoBinding Success ", "")
	testkit.Equal(t, w.counted("no_address"), 4, "requests without an address")
}
