// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// home is a client's side of a line.
type home struct {
	w    *world
	line access.Line
	ip   netip.Addr
	ppp  *PPP // nil: IPoE
}

func (w *world) home(n int) *home {
	mac := [6]byte{2, 1, 0, 0, byte(n >> 8), byte(n)}
	return &home{w: w, line: access.Line{Port: "access", TPID: 0x88a8, STag: 100, CTag: 7, MAC: mac}}
}

// four makes a message of a client.
func (h *home) four(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) []byte {
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(h.line.MAC[:]), dhcpv4.WithMessageType(kind),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer,
			dhcpv4.OptionDomainName, dhcpv4.OptionInterfaceMTU, dhcpv4.OptionClasslessStaticRoute),
		dhcpv4.WithOption(dhcpv4.OptClientIdentifier(append([]byte{1}, h.line.MAC[:]...)))}, change...)...)
	testkit.Must(h.w.t, err)
	return wrap4(m.ToBytes())
}

func (h *home) put(packet []byte) {
	h.w.s.Frame(&access.Frame{Line: h.line, Reason: access.DHCP, EtherType: ethernetIPv4, Payload: packet})
}

// got are the DHCPv4 messages that came to this home since the last call.
func (h *home) got() (all []*dhcpv4.DHCPv4) {
	h.w.run()
	h.w.sent = slices.DeleteFunc(h.w.sent, func(f access.Frame) bool {
		d, ok := ipv4(f.Payload)
		if f.Line != h.line || f.EtherType != ethernetIPv4 {
			return false
		}
		testkit.FatalIf(h.w.t, !ok || d.dest != 68 || !sound(d.body, 2), "malformed answer % x", f.Payload)
		m, err := dhcpv4.FromBytes(d.body)
		testkit.Must(h.w.t, err)
		all = append(all, m)
		return true
	})
	return all
}

// ask sends a message, and returns the one answer of a kind; 0: there must be none.
func (h *home) ask(want, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	h.w.t.Helper()
	h.put(h.four(kind, change...))
	all := h.got()
	if want == 0 {
		testkit.FatalIf(h.w.t, len(all) != 0, "%v is answered: %v", kind, all)
		return nil
	}
	testkit.FatalIf(h.w.t, len(all) != 1 || all[0].MessageType() != want, "%v is answered by %v", kind, all)
	return all[0]
}

func ciaddr(a netip.Addr) dhcpv4.Modifier { return dhcpv4.WithClientIP(a.AsSlice()) }
func wanted(a netip.Addr) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(a.AsSlice()))
}
func server(m *dhcpv4.DHCPv4) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(m.ServerIdentifier()))
}

// join gets an address by the four messages.
func (h *home) join() *dhcpv4.DHCPv4 {
	h.w.t.Helper()
	offer := h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover)
	ack := h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, server(offer),
		wanted(address4(offer.YourIPAddr)))
	testkit.Equal(h.w.t, address4(ack.YourIPAddr), address4(offer.YourIPAddr), "acknowledged is what was offered")
	h.ip = address4(ack.YourIPAddr)
	return ack
}

// Authentication's mask may leave the gateway out of the subnet: then it is on the link.
func TestGatewayOutOfTheSubnet(t *testing.T) {
	for _, mask := range []int{24, 32} {
		w := newWorld(t)
		h := w.home(1)
		h.join()
		s := w.live[0]
		s.has.Mask, s.has.Gateway = mask, netip.MustParseAddr("100.64.9.1")
		ack := h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
		ones, _ := ack.SubnetMask().Size()
		testkit.Equal(t, ones, mask, "option 1")
		testkit.Equal(t, fmt.Sprint(ack.ClasslessStaticRoute()),
			"[route to 100.64.9.1/32 via 0.0.0.0 route to 0.0.0.0/0 via 100.64.9.1]", "option 121")
	}
}

func TestFourMessages(t *testing.T) {
	w := newWorld(t)
	w.c.Routes = []config.DHCPRoute{{Prefix: config.Prefix{Prefix: netip.MustParsePrefix("10.17.0.0/17")}}}
	w.configure()
	h := w.home(1)
	ack := h.join()
	testkit.Equal(t, h.ip, netip.MustParseAddr("100.64.0.2"), "address")
	network := fmt.Sprint(ack.SubnetMask(), ack.Router(), ack.DNS())
	testkit.Equal(t, network, "ffff0000 [100.64.0.1] [9.9.9.9]", "network")
	testkit.Equal(t, fmt.Sprint(ack.ClasslessStaticRoute()),
		"[route to 0.0.0.0/0 via 100.64.0.1 route to 10.17.0.0/17 via 100.64.0.1]", "option 121")
	testkit.Equal(t, ack.IPAddressLeaseTime(0), time.Hour, "lease")
	testkit.Equal(t, ack.IPAddressRenewalTime(0), time.Hour/2, "T1")
	testkit.Equal(t, string(ack.Options[61]), "\x01"+string(h.line.MAC[:]), "client identifier (RFC 6842)")
	s := w.live[0]
	testkit.Equal(t, s.up, access.Families{V4: true}, "passing")
	testkit.Equal(t, s.request.Kind, access.IPoE4, "kind")
	testkit.ErrorIf(t, len(s.kept) == 0 || len(s.kept) > 100, "%d bytes are kept", len(s.kept))

	w.wait(30 * time.Minute)
	h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	w.wait(59 * time.Minute)
	testkit.Equal(t, len(w.live), 1, "sessions before the lease ends")
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	w.wait(2 * time.Minute)
	testkit.Equal(t, len(w.live), 0, "sessions when the lease has ended")
	testkit.Equal(t, s.down, access.LostCarrier, "cause")
	testkit.Equal(t, len(w.s.subscribers)+len(w.s.vlans)+len(w.s.circuits), 0, "what is remembered")
}

// Retransmissions while the verdict is out are one sign-in and one answer.
func TestMerge(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	for range 5 {
		h.put(h.four(dhcpv4.MessageTypeDiscover))
	}
	testkit.Equal(t, len(h.got()), 1, "answers")
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	testkit.Equal(t, w.counted("merged"), 4, "merged")
}

func TestRapidCommit(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	rapid := dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(80), nil)
	ack := h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeDiscover, rapid)
	testkit.ErrorIf(t, !ack.Options.Has(dhcpv4.GenericOptionCode(80)), "no option 80 (RFC 4039 §3.1)")
	testkit.Equal(t, w.live[0].up.V4, true, "passing")
	w.c.RapidCommit = false
	w.configure()
	w.home(2).ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover, rapid)
}

// RFC 2131 §4.3.2, and rows B7, B10.
func TestRequests(t *testing.T) {
	w := newWorld(t)
	h, other := w.home(1), w.home(2)
	h.join()
	other.join()
	foreign, hers := netip.MustParseAddr("192.168.1.7"), other.ip
	h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, wanted(h.ip))    // INIT-REBOOT
	h.ask(dhcpv4.MessageTypeNak, dhcpv4.MessageTypeRequest, wanted(hers))    // another home's
	h.ask(dhcpv4.MessageTypeNak, dhcpv4.MessageTypeRequest, ciaddr(foreign)) // of no subnet
	h.ask(0, dhcpv4.MessageTypeRequest, wanted(h.ip),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{192, 0, 2, 9})))
	h.ask(0, dhcpv4.MessageTypeRelease, ciaddr(hers))
	h.ask(0, dhcpv4.MessageTypeDecline, wanted(hers))
	h.ask(0, dhcpv4.MessageTypeInform, ciaddr(hers))
	inform := h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeInform, ciaddr(h.ip))
	testkit.ErrorIf(t, address4(inform.YourIPAddr).IsValid() || inform.Options.Has(dhcpv4.OptionIPAddressLeaseTime),
		"RFC 2131 §4.3.5: %v", inform)
	testkit.Equal(t, len(w.live), 2, "sessions")
	w.c.Authoritative = false
	w.configure()
	h.ask(0, dhcpv4.MessageTypeRequest, ciaddr(foreign))
	h.ask(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	testkit.Equal(t, len(w.live), 1, "sessions after a release")
	h.ask(0, dhcpv4.MessageTypeRelease, ciaddr(h.ip))
	stranger := w.home(3)
	stranger.ask(0, dhcpv4.MessageTypeRelease, ciaddr(foreign))
	stranger.ask(0, dhcpv4.MessageTypeInform, ciaddr(foreign))
	testkit.Equal(t, w.signIns, 2, "sign-ins")
}

// An unknown renewal signs in, and keeps its address if that is still its own.
func TestRenewalOfTheForgotten(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.join()
	w.live[0].client.Ended(access.AdminReset)
	w.live[0].Down(access.AdminReset)
	h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	testkit.Equal(t, w.live[0].request.Hint.IPv4, h.ip, "hint")
	other := w.home(2)
	other.ask(dhcpv4.MessageTypeNak, dhcpv4.MessageTypeRequest, wanted(h.ip))
	w.verdict = &access.Verdict{Why: "no"}
	w.home(3).ask(dhcpv4.MessageTypeNak, dhcpv4.MessageTypeRequest, wanted(netip.MustParseAddr("100.64.0.77")),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{100, 64, 0, 1})))
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	w.verdict = &access.Verdict{Why: "unknown user"}
	for range 5 {
		h.ask(0, dhcpv4.MessageTypeDiscover)
		w.wait(time.Second)
	}
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	w.verdict = nil
	w.wait(10 * time.Second)
	testkit.Equal(t, len(w.s.subscribers), 0, "remembered")
	h.join()
}

// Row B10: a client that declines every address gets none for a while, and takes few out of use.
func TestDeclines(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	for range 3 { // RFC 2131 §3.1: a client looks for others behind the acknowledgement
		ack := h.join() // and may have lost it
		h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, server(ack), wanted(h.ip))
		h.ask(0, dhcpv4.MessageTypeDecline, wanted(h.ip),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{100, 64, 0, 1})))
	}
	h.ask(0, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, w.counted("refused"), 1, "refused")
	testkit.Equal(t, w.pools.Rows()[0].Used, 3, "addresses that nobody gets")
	testkit.Equal(t, len(w.live), 0, "sessions")

	w = newWorld(t)
	h = w.home(1)
	for range 3 {
		offer := h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover)
		h.ask(0, dhcpv4.MessageTypeDecline, wanted(address4(offer.YourIPAddr)), server(offer))
	}
	h.ask(0, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, w.counted("refused"), 1, "refused")
	w.wait(5*time.Minute + time.Second)
	h.join()
}

// Row B8: refused lines make room for others early; no other lines do.
func TestRefusedMakeRoom(t *testing.T) {
	w := newWorld(t)
	w.c.Limits.Subscribers = 20
	w.configure()
	for n := range 10 {
		w.home(n).join()
	}
	w.verdict = &access.Verdict{Why: "no"}
	for n := range 100 { // a flood, of which the last ten are remembered
		w.home(100+n).ask(0, dhcpv4.MessageTypeDiscover)
	}
	testkit.Equal(t, w.signIns, 110, "sign-ins")
	testkit.Equal(t, len(w.s.subscribers), 20, "lines")
	w.home(199).ask(0, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, w.signIns, 110, "sign-ins of who was refused just now")
	w.verdict = nil
	for n := range 10 {
		w.home(200 + n).join()
	}
	testkit.Equal(t, len(w.live), 20, "sessions")
	w.home(300).ask(0, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, w.counted("limit"), 1, "beyond the limit")
	w.wait(time.Minute)
	testkit.Equal(t, len(w.live), 20, "sessions")
	testkit.Equal(t, len(w.s.refusals), 0, "refusals that are remembered")
}

// Each refusal that is counted is reported once for its message, with the reason.
func TestWhyNothing(t *testing.T) {
	discover := func(h *home) { h.ask(0, dhcpv4.MessageTypeDiscover) }
	for _, row := range []struct {
		count, why string
		do         func(w *world, h *home)
	}{
		{"malformed", "wrong lengths", func(_ *world, h *home) { h.put([]byte{0x45}) }},
		{"malformed", "wrong lengths", func(_ *world, h *home) { h.put6([]byte{0x60}) }},
		{"foreign_mac", "another chaddr", func(w *world, h *home) {
			h.put(w.home(9).four(dhcpv4.MessageTypeDiscover))
		}},
		{"limit", "dhcp.limits.per_vlan", func(w *world, h *home) {
			w.c.Limits.PerVLAN = 0
			w.configure()
			discover(h)
		}},
		{"limit", "dhcp.limits.per_circuit", func(w *world, h *home) {
			w.c.Limits.PerCircuit = 0
			w.configure()
			discover(h)
		}},
		{"limit", "dhcp.limits.subscribers", func(w *world, h *home) {
			w.c.Limits.Subscribers = 0
			w.configure()
			discover(h)
		}},
		{"limit", "dhcp.limits.waiting", func(w *world, h *home) {
			w.c.Limits.Waiting = 0
			w.configure()
			discover(h)
		}},
		{"line_taken", "1:1", func(w *world, h *home) {
			h.line.Port = "one"
			h.join()
			other := w.home(2)
			other.line = h.line
			other.line.MAC[5] ^= 1
			discover(other)
		}},
		{"penalised", "dhcp.limits.penalty", func(w *world, h *home) {
			w.c.Limits.Declines = 1
			w.configure()
			h.join()
			h.ask(0, dhcpv4.MessageTypeDecline, wanted(h.ip))
		}},
	} {
		w := newWorld(t)
		row.do(w, w.home(1))
		w.run()
		testkit.Equal(t, w.counted(row.count), 1, "%s", row.count)
		testkit.ErrorIf(t, len(w.whys) != 1 || !strings.Contains(w.whys[0], row.why), "%s: %q", row.why, w.whys)
	}
}

// A rejected answer of an upstream server appears in the history of the waiting home.
func TestWhyNothingOfUpstream(t *testing.T) {
	for _, row := range []struct {
		count, why string
		from       netip.AddrPort
		lease      uint32
	}{
		{"lease_short", "less than 30 s", upstreamA, 29},
		{"upstream_unknown", "192.0.2.66", netip.MustParseAddrPort("192.0.2.66:67"), 3600},
	} {
		w, s, h := newRelay(t, false)
		h.put(h.four(dhcpv4.MessageTypeDiscover))
		s.lends(row.from, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.7", row.lease)
		testkit.Equal(t, w.counted(row.count), 1, "%s", row.count)
		testkit.ErrorIf(t, len(w.whys) != 1 || !strings.Contains(w.whys[0], row.why), "%s: %q", row.why, w.whys)
	}
}

// An unreachable or silent upstream server is the reason why a home has no address.
func TestWhyNoUpstream(t *testing.T) {
	w, s, h := newRelay(t, false)
	h.put(h.four(dhcpv4.MessageTypeDiscover))
	testkit.Equal(t, w.counted("relayed"), 2, "asked")
	w.wait(2 * time.Minute)
	testkit.Equal(t, strings.Join(w.whys, ", "), "no upstream server has answered with an address", "silence")
	testkit.Equal(t, w.counted("upstream_silent"), 1, "silence")
	s.take(upstreamA)
	w.whys = nil
	w.s.Upstream = func(netip.AddrPort, []byte) error { return syscall.ENETUNREACH }
	h.put(h.four(dhcpv4.MessageTypeDiscover))
	testkit.Equal(t, w.counted("relayed"), 2, "asked")
	testkit.Equal(t, w.counted("relay_failed"), 2, "not asked")
	why := "an upstream server cannot be asked: network is unreachable"
	testkit.Equal(t, fmt.Sprint(w.whys), fmt.Sprint([]string{why, why}), "unreachable")
}

// Row B8: random MACs on a line, and chaddr that is not the frame's source.
func TestStarvation(t *testing.T) {
	w := newWorld(t)
	w.c.Limits.PerVLAN, w.c.Limits.PerCircuit = 8, 2
	w.configure()
	for i := range 1000 {
		w.home(i).put(w.home(i).four(dhcpv4.MessageTypeDiscover))
		w.run()
	}
	testkit.Equal(t, len(w.live), 8, "sessions")
	testkit.Equal(t, w.counted("limit"), 992, "above the limit")
	h := w.home(1)
	liar := w.home(5000)
	h.put(liar.four(dhcpv4.MessageTypeDiscover))
	testkit.Equal(t, w.counted("foreign_mac"), 1, "chaddr")
	for i := range 10 {
		h := w.home(6000 + i)
		h.line.Port, h.line.CTag = "trusted", uint16(i)
		h.put(h.four(dhcpv4.MessageTypeDiscover, saying("eth 0/1")))
	}
	w.run()
	testkit.Equal(t, len(w.live), 10, "sessions of one circuit")
}

func saying(id string) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptRelayAgentInfo(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(1), []byte(id)),
		dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(9),
			[]byte("\x00\x00\x0d\xe9\x0c\x81\x04\x00\x00\x27\x10\x82\x04\x00\x01\x86\xa0"))))
}

// Row B9, RFC 3046.
func TestOption82(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.ask(0, dhcpv4.MessageTypeDiscover, saying("eth 0/1"))
	testkit.Equal(t, w.counted("untrusted"), 1, "untrusted")
	h.ask(0, dhcpv4.MessageTypeDiscover, dhcpv4.WithGatewayIP(net.IP{10, 0, 0, 1}))
	testkit.Equal(t, w.counted("giaddr"), 1, "giaddr")
	testkit.Equal(t, len(w.failed), 2, "refusals that are told")
	h.line.Port = "trusted"
	offer := h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover, saying("eth 0/1"))
	a := w.live[0].request.Agent
	testkit.Equal(t, fmt.Sprintf("%s %x %x", a.CircuitID, a.Of(0x81), a.Of(0x82)),
		"eth 0/1 00002710 000186a0", "agent")
	testkit.Equal(t, string(offer.RelayAgentInfo().Get(dhcpv4.GenericOptionCode(1))), "eth 0/1", "echoed")
	long := make([]byte, 253)
	h = w.home(2)
	h.line.Port = "trusted"
	offer = h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover, dhcpv4.WithGeneric(
		dhcpv4.OptionRelayAgentInformation, append([]byte{1, 253}, long...)))
	testkit.Equal(t, len(offer.Options[82]), 255, "echoed")
}

func TestOneToOne(t *testing.T) {
	w := newWorld(t)
	old, young := w.home(1), w.home(2)
	old.line.Port, young.line.Port = "one", "one"
	old.join()
	young.ask(0, dhcpv4.MessageTypeDiscover) // too soon after the other
	testkit.Equal(t, w.counted("line_taken"), 1, "taken")
	w.wait(time.Minute)
	s := w.live[0]
	young.join()
	testkit.Equal(t, len(w.live), 1, "sessions")
	testkit.Equal(t, s.down, access.LostCarrier, "the old one's end")
	old.ask(0, dhcpv4.MessageTypeRelease, ciaddr(old.ip))
	w.ports["one"] = Port{V4: true, OneToOne: true}
	w.wait(time.Minute)
	old.ask(0, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, w.live[0].request.Line.MAC, young.line.MAC, "who is on the line")
}

func TestFirstPacket(t *testing.T) {
	w := newWorld(t)
	w.plan.IPv4 = netip.MustParseAddr("203.0.113.9")
	h := w.home(1)
	h.line.Port = "static"
	d := datagram{from: w.plan.IPv4, to: netip.MustParseAddr("8.8.8.8"), protocol: protocolUDP}
	f := access.Frame{Line: h.line, Reason: access.FirstPacket, EtherType: ethernetIPv4, Payload: d.packet()}
	w.s.Frame(&f)
	w.s.Frame(&f)
	w.run()
	testkit.Equal(t, w.live[0].request.Hint.IPv4, d.from, "hint")
	testkit.Equal(t, w.live[0].request.Kind, access.Packet, "kind")
	testkit.Equal(t, w.live[0].up, access.Families{V4: true}, "passing")
	liar := w.home(2)
	liar.line.Port = "static"
	f.Line = liar.line
	w.s.Frame(&f)
	w.run()
	testkit.Equal(t, len(w.live), 1, "sessions: the address is in use")
	h.line.Port = "access"
	f.Line = h.line
	w.s.Frame(&f)
	testkit.Equal(t, w.counted("disabled"), 1, "not asked for by the port")
}

func TestDataPlaneFails(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	offer := h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover)
	w.failUp = true
	h.ask(0, dhcpv4.MessageTypeRequest, server(offer), wanted(address4(offer.YourIPAddr)))
	w.failUp = false
	h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, server(offer), wanted(address4(offer.YourIPAddr)))
}

// A client behind loss, repetition and reordering gets its own address in the end.
func TestLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := newWorld(t)
	homes := make([]*home, 40)
	offers := map[int]*dhcpv4.DHCPv4{}
	for i := range homes {
		homes[i] = w.home(i)
	}
	for round := range 400 {
		for i, h := range homes {
			var packet []byte
			switch offer := offers[i]; {
			case h.ip.IsValid():
				packet = h.four(dhcpv4.MessageTypeRequest, ciaddr(h.ip))
			case offer != nil:
				packet = h.four(dhcpv4.MessageTypeRequest, server(offer),
					wanted(address4(offer.YourIPAddr)))
			default:
				packet = h.four(dhcpv4.MessageTypeDiscover)
			}
			for range r.IntN(3) { // lost, or doubled
				h.put(packet)
			}
			if r.IntN(2) == 0 {
				w.run()
			}
		}
		w.run()
		for i, h := range homes {
			for _, m := range h.got() {
				if r.IntN(3) == 0 {
					continue
				}
				switch m.MessageType() {
				case dhcpv4.MessageTypeOffer:
					offers[i] = m
				case dhcpv4.MessageTypeAck:
					h.ip = address4(m.YourIPAddr)
				case dhcpv4.MessageTypeNak:
					h.ip, offers[i] = netip.Addr{}, nil
				}
			}
			if round%50 == 49 && r.IntN(4) == 0 {
				h.ip, offers[i] = netip.Addr{}, nil // rebooted
			}
		}
		w.wait(time.Duration(r.IntN(60)) * time.Second)
	}
	owner := map[netip.Addr]bool{}
	for _, s := range w.live {
		testkit.ErrorIf(t, owner[s.has.IPv4], "%v twice", s.has.IPv4)
		owner[s.has.IPv4] = true
	}
	for i, h := range homes {
		testkit.ErrorIf(t, h.ip.IsValid() && !owner[h.ip], "%d has %v, which is nobody's", i, h.ip)
	}
	testkit.ErrorIf(t, len(owner) < 39, "%d of 40 are on line", len(owner))
}

// Row B6: malformed messages are dropped, whatever is missing.
func TestMalformed4(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	good := h.four(dhcpv4.MessageTypeDiscover)
	options := func(b ...byte) []byte {
		d, _ := ipv4(good)
		d.body = append(slices.Clone(d.body[:240]), b...)
		return d.packet()
	}
	body := func(change func(b []byte) []byte) []byte {
		d, _ := ipv4(good)
		d.body = change(slices.Clone(d.body))
		return d.packet()
	}
	bad := map[string][]byte{
		"hlen 255":               body(func(b []byte) []byte { b[2] = 255; return b }),
		"hlen 0":                 body(func(b []byte) []byte { b[2] = 0; return b }),
		"magic":                  body(func(b []byte) []byte { b[236]++; return b }),
		"no type":                options(255),
		"type of two bytes":      options(53, 2, 1, 1, 255),
		"type twice":             options(53, 1, 1, 53, 1, 3, 255),
		"option without length":  options(53, 1, 1, 12),
		"option past the end":    options(53, 1, 1, 12, 9, 'a'),
		"address of three bytes": options(53, 1, 3, 50, 3, 1, 2, 3, 255),
		"reply":                  body(func(b []byte) []byte { b[0] = 2; return b }),
		"nothing":                {},
		"UDP length 7":           append(append(slices.Clone(good[:24]), 0, 7), good[26:]...),
		"UDP checksum":           append(append(slices.Clone(good[:26]), good[26]+1), good[27:]...),
		"fragment":               append(append(slices.Clone(good[:6]), 0x20), good[7:]...),
	}
	for i := range len(good) {
		bad[fmt.Sprint("cut at ", i)] = good[:i]
	}
	for name, b := range bad {
		before := w.counted("malformed")
		h.put(b)
		testkit.ErrorIf(t, w.counted("malformed") != before+1, "%s is not counted", name)
	}
	testkit.Equal(t, w.signIns, 0, "sign-ins")
	h.put(good)
	testkit.Equal(t, w.signIns, 1, "sign-ins")
	testkit.Equal(t, binary.BigEndian.Uint16(good[2:]), uint16(len(good)), "length")
}

// Clients and servers that leave the End option out (RFC 2132 §3.2) are understood.
func TestWithoutEnd(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	m, _ := ipv4(h.four(dhcpv4.MessageTypeDiscover))
	body := bytes.TrimRight(m.body, "\x00")
	testkit.Equal(t, body[len(body)-1], 255, "the End option")
	h.put(wrap4(body[:len(body)-1]))
	testkit.Equal(t, len(h.got()), 1, "answers to a client without it")
}
