// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

var packetSource4, packetSource6 = netip.MustParseAddr("100.64.0.2"), netip.MustParseAddr("2001:db8:1::5")

// packet is of a home that only sends packets.
func (h *home) packet(from netip.Addr) {
	d := datagram{from: from, to: from, protocol: protocolUDP}
	f := access.Frame{Line: h.line, Reason: access.FirstPacket, EtherType: ethernetIPv6, Payload: d.packet()}
	if from.Is4() {
		f.EtherType = ethernetIPv4
	}
	h.w.s.Frame(&f)
}

// deeds of a home. Messages about addresses of others are ignored.
var deeds = []struct {
	name string
	do   func(h *home)
}{
	{"DHCPv4", func(h *home) {
		h.put(h.four(dhcpv4.MessageTypeDiscover))
		for _, m := range h.got() {
			h.ip = address4(m.YourIPAddr)
			h.put(h.four(dhcpv4.MessageTypeRequest, server(m), wanted(h.ip)))
		}
	}},
	{"DISCOVER alone", func(h *home) { h.put(h.four(dhcpv4.MessageTypeDiscover)) }},
	{"IA_NA", func(h *home) { h.put6(h.six(dhcpv6.MessageTypeRequest, ours, na())) }},
	{"IA_PD", func(h *home) { h.put6(h.six(dhcpv6.MessageTypeRequest, ours, pd())) }},
	{"Solicit alone", func(h *home) { h.put6(h.six(dhcpv6.MessageTypeSolicit, na(), pd())) }},
	{"Information-Request", func(h *home) { h.put6(h.six(dhcpv6.MessageTypeInformationRequest)) }},
	{"RS", (*home).solicit},
	{"IPv4 packet", func(h *home) { h.packet(packetSource4) }},
	{"IPv6 packet", func(h *home) { h.packet(packetSource6) }},
	{"release", func(h *home) { h.put(h.four(dhcpv4.MessageTypeRelease, ciaddr(h.ip))) }},
	{"release of IA_NA", func(h *home) { h.put6(h.six(dhcpv6.MessageTypeRelease, ours, na())) }},
	{"release of IA_PD", func(h *home) { h.put6(h.six(dhcpv6.MessageTypeRelease, ours, pd())) }},
	{"decline", func(h *home) { h.put(h.four(dhcpv4.MessageTypeDecline, wanted(h.ip))) }},
	{"decline of IA_NA", func(h *home) { h.put6(h.six(dhcpv6.MessageTypeDecline, ours, na())) }},
	{"two minutes", func(h *home) { h.w.wait(2 * time.Minute) }},
	{"three hours", func(h *home) { h.w.wait(3 * time.Hour) }}, // longer than any lease
}

// Every session has an end, whatever the home did: after it falls silent its session ends with that cause, and nothing
// remains.
func TestEnds(t *testing.T) {
	n := len(deeds)
	for i := range n * n * n {
		lives(t, []int{i / n / n, i / n % n, i % n})
	}
	r := rand.New(rand.NewPCG(5, 28))
	for range 300 {
		life := make([]int, 12)
		for i := range life {
			life[i] = r.IntN(n)
		}
		lives(t, life)
	}
}

func lives(t *testing.T, life []int) {
	t.Helper()
	w, told := newWorld(t), ""
	h := w.home(1)
	h.line.Port, h.ip = "static", packetSource4
	w.there = map[access.Line]netip.Addr{h.line: h.linkLocal()}
	for _, i := range life {
		told += deeds[i].name + ", "
		deeds[i].do(h)
		w.run()
		for _, u := range w.s.subscribers {
			ends := u.timer != nil || u.busy || u.cancel != nil
			testkit.FatalIf(t, !ends, "%swhich nothing will end", told)
		}
		w.sent = w.sent[:0]
	}
	w.there, w.sent = nil, nil
	left := append([]*session(nil), w.live...)
	longest := max(w.c.Lease, w.c.Valid, w.c.Limits.Penalty) + w.c.Limits.Offer
	w.wait(longest + time.Duration(w.c.IPoE.KeepAlive.Count+2)*w.c.IPoE.KeepAlive.Interval)
	testkit.FatalIf(t, len(w.live)+len(w.s.subscribers)+len(w.s.vlans) != 0, "%ssilence: up for ever", told)
	for _, s := range left {
		testkit.FatalIf(t, s.down != access.LostCarrier, "%ssilence: ended for cause %d", told, s.down)
	}
	for _, row := range w.pools.Rows() {
		testkit.FatalIf(t, row.Used != 0, "%ssilence: %d of pool %s are gone", told, row.Used, row.Name)
	}
}

// A home without leases is on line while it answers, and loses its addresses otherwise.
func TestWithoutLease(t *testing.T) {
	for name, begin := range map[string]func(h *home){
		"RS":          (*home).solicit,
		"IPv4 packet": func(h *home) { h.packet(packetSource4) },
		"IPv6 packet": func(h *home) { h.packet(packetSource6) },
		"release": func(h *home) {
			h.join()
			h.solicit()
			h.w.run()
			h.put(h.four(dhcpv4.MessageTypeRelease, ciaddr(h.ip)))
		},
		"expiry": func(h *home) {
			h.put6(h.six(dhcpv6.MessageTypeRequest, ours, na(), pd()))
			h.w.run()
			h.solicit()
		},
	} {
		w := newWorld(t)
		h := w.home(1)
		h.line.Port = "static"
		w.there = map[access.Line]netip.Addr{h.line: h.linkLocal()}
		if name == "IPv6 packet" {
			w.there[h.line] = packetSource6
		}
		begin(h)
		w.run()
		one := w.live[0]
		w.wait(7 * 24 * time.Hour)
		testkit.FatalIf(t, len(w.live) != 1 || w.signIns != 1, "%s: %d sessions", name, len(w.live))
		// While the data plane is away no probe is sent: a missing answer does not count.
		was := w.router
		w.router = access.PortAddresses{}
		w.wait(time.Hour)
		testkit.FatalIf(t, len(w.live) != 1, "%s: ended while the data plane was away", name)
		w.router = was
		w.s, w.timers = New(w, w.c), nil // after a restart as before
		one.client = w.s.Restore(one, &one.request, one.kept)
		w.wait(24 * time.Hour)
		testkit.FatalIf(t, len(w.live) != 1, "%s: ended after a restart", name)
		w.there, w.sent = nil, nil
		w.wait(time.Duration(w.c.IPoE.KeepAlive.Count+1) * w.c.IPoE.KeepAlive.Interval)
		testkit.FatalIf(t, len(w.live) != 0 || one.down != access.LostCarrier, "%s: %d", name, one.down)
		testkit.Equal(t, w.counted("silent"), 1, "silent homes")
		if one.request.Wants.V6 {
			all := h.datagrams6()
			last := fmt.Sprintf("%x", all[len(all)-1].body[:8])
			testkit.Equal(t, last[:2]+last[12:], "860000", "%s: the farewell", name)
		}
	}
}

// An IPv4 address is in use by another host: the session ends, and a home with SLAAC gets a router advertisement for
// it. Its next session has its prefix again without asking.
func TestDeclineWithSLAAC(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.solicit()
	h.join()
	h.datagrams6()
	h.put(h.four(dhcpv4.MessageTypeDecline, wanted(h.ip)))
	all := h.datagrams6()
	testkit.FatalIf(t, len(all) != 1 || all[0].body[6]|all[0].body[7] != 0, "farewell: %+v", all)
	h.join()
	all = h.datagrams6()
	testkit.FatalIf(t, len(all) != 1 || all[0].body[6]|all[0].body[7] == 0, "advertised again: %+v", all)
	testkit.Equal(t, w.live[0].up, access.Families{V4: true, V6: true}, "passing")
}

// Unrequested addresses are not taken; requested and unused ones return to the pool.
func TestHeldForNothing(t *testing.T) {
	used := func(w *world) (n []uint64) {
		for _, row := range w.pools.Rows() {
			n = append(n, uint64(row.Used))
		}
		return n
	}
	for deed, want := range map[string][2]string{ // IPv4, IPv6, delegated: at once, later
		"RS": {"[1 1 0]", "[1 1 0]"}, "Solicit alone": {"[1 1 1]", "[1 0 0]"},
		"Information-Request": {"[1 1 0]", "[1 0 0]"}, "IA_PD": {"[1 0 1]", "[1 0 1]"},
	} {
		w := newWorld(t)
		h := w.home(1)
		h.join()
		for _, one := range deeds {
			if one.name == deed {
				one.do(h)
			}
		}
		w.run()
		testkit.Equal(t, fmt.Sprint(used(w)), want[0], "%s: in use", deed)
		w.wait(3 * time.Minute)
		testkit.Equal(t, fmt.Sprint(used(w)), want[1], "%s: in use later", deed)
	}
}
