// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/testkit"
)

func times4(m *dhcpv4.DHCPv4) string {
	return fmt.Sprint(m.IPAddressLeaseTime(0), m.IPAddressRenewalTime(0), m.IPAddressRebindingTime(0))
}

// times6 are T1, T2, preferred and valid lifetime of each IA.
func times6(m *dhcpv6.Message) (text string) {
	for _, ia := range m.Options.IANA() {
		a := ia.Options.Addresses()[0]
		text += fmt.Sprint(ia.T1, ia.T2, a.PreferredLifetime, a.ValidLifetime, " ")
	}
	for _, ia := range m.Options.IAPD() {
		p := ia.Options.Prefixes()[0]
		text += fmt.Sprint(ia.T1, ia.T2, p.PreferredLifetime, p.ValidLifetime, " ")
	}
	return text
}

// reply6 is the one DHCPv6 message that came since the last call.
func (h *home) reply6() *dhcpv6.Message {
	h.w.t.Helper()
	var all []*dhcpv6.Message
	for _, d := range h.datagrams6() {
		if d.protocol == protocolUDP {
			all = append(all, must(dhcpv6.MessageFromBytes(d.body)))
		}
	}
	testkit.FatalIf(h.w.t, len(all) != 1, "got %v", all)
	return all[0]
}

// advertised are the lifetimes of a router advertisement: router, prefix (valid, preferred), resolvers, route.
func (h *home) advertised() (text string) {
	h.w.t.Helper()
	all := h.datagrams6()
	testkit.FatalIf(h.w.t, len(all) != 1 || all[0].protocol != protocolICMP, "got %v", all)
	text = fmt.Sprint(binary.BigEndian.Uint16(all[0].body[6:]))
	for b := all[0].body[16:]; len(b) > 0; b = b[8*int(b[1]):] {
		switch b[0] {
		case 3:
			text += fmt.Sprint(" ", binary.BigEndian.Uint32(b[4:]), " ", binary.BigEndian.Uint32(b[8:]))
		case 24, 25:
			text += fmt.Sprint(" ", binary.BigEndian.Uint32(b[4:]))
		}
	}
	return text
}

// Leases end with the session. The session's own end is not a lease's.
func TestNothingOutlivesItsSession(t *testing.T) {
	w := newWorld(t)
	w.plan.SessionTimeout = 20 * time.Second
	h := w.home(1)
	offer := h.ask(dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeDiscover)
	testkit.Equal(t, times4(offer), "20s 10s 17s", "offer")
	testkit.Equal(t, times4(h.join()), "20s 10s 17s", "acknowledgement")
	w.wait(5 * time.Second)
	renew := func() *dhcpv4.DHCPv4 {
		return h.ask(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeRequest, ciaddr(h.ip))
	}
	testkit.Equal(t, times4(renew()), "15s 7s 13s", "renewal")
	h.put6(h.six(dhcpv6.MessageTypeRequest, ours, na(), pd()))
	testkit.Equal(t, times6(h.reply6()), "8s 12s 15s 15s 8s 12s 15s 15s ", "DHCPv6")
	h.solicit()
	testkit.Equal(t, h.advertised(), "15 15 15 15", "advertisement")
	w.wait(14500 * time.Millisecond)
	testkit.Equal(t, times4(renew()), "1s 0s 0s", "the last second")
	h.solicit()
	testkit.Equal(t, h.advertised(), "1 1 1 1", "the last second's advertisement")
	w.wait(10 * time.Second)
	testkit.Equal(t, len(w.live), 1, "sessions that a lease has ended")

	w.live[0].plan.SessionTimeout = 6 * time.Hour // CoA
	w.live[0].client.Replanned()
	testkit.Equal(t, h.advertised(), "1800 7200 3600 1800", "advertisement of a changed session")
	testkit.Equal(t, times4(renew()), "1h0m0s 30m0s 52m30s", "lease of a changed session")
}

// The same of what upstream servers lend.
func TestNothingLentOutlivesItsSession(t *testing.T) {
	for _, proxy := range []bool{false, true} {
		w, s, h := newRelay(t, proxy)
		w.plan.SessionTimeout = 20 * time.Second
		h.put(h.four(dhcpv4.MessageTypeDiscover))
		s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.7")
		offer := h.one(dhcpv4.MessageTypeOffer)
		testkit.Equal(t, times4(offer), "20s 10s 17s", "offer, proxy: %v", proxy)
		h.put(h.four(dhcpv4.MessageTypeRequest, server(offer), wanted(address4(offer.YourIPAddr))))
		s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeAck, "172.16.0.7")
		ack := h.one(dhcpv4.MessageTypeAck)
		testkit.Equal(t, times4(ack), "20s 10s 17s", "acknowledgement, proxy: %v", proxy)
		w.wait(time.Minute)
		testkit.Equal(t, len(w.live), 1, "sessions that a lease has ended, proxy: %v", proxy)
	}
	w, s, h := newRelay6(t)
	w.plan.SessionTimeout = 20 * time.Second
	h.put6(h.six(dhcpv6.MessageTypeSolicit, na(), pd()))
	vendor := &dhcpv6.OptionGeneric{OptionCode: 17, OptionData: []byte{0, 0, 13, 0xe9, 0, 1, 0, 1, 7}}
	lends := append(mods{func(m dhcpv6.DHCPv6) { m.AddOption(vendor) }}, lendBoth...)
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeReply} {
		w.s.FromUpstream6(sixA, answer6(s.take(), kind, lends...))
		m := h.reply6()
		testkit.Equal(t, times6(m), "0s 0s 20s 20s 0s 0s 20s 20s ", "%v", kind)
		testkit.Equal(t, fmt.Sprintf("%x", m.GetOneOption(17).ToBytes()), fmt.Sprintf("%x", vendor.OptionData),
			"what else it has")
		h.put6(h.six(dhcpv6.MessageTypeRequest, theirs, na(), pd()))
	}
	w.wait(time.Minute)
	testkit.Equal(t, len(w.live), 1, "sessions that a lease has ended")
}

// A restart after the clock was put back makes no lease longer.
func TestLeasesOfAClockThatWasPutBack(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	h.join()
	h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na(), pd())
	one := w.live[0]
	w.now, w.s, w.timers = w.now.Add(-24*time.Hour), New(w, w.c), nil
	one.client = w.s.Restore(one, &one.request, one.kept)
	w.wait(59 * time.Minute)
	testkit.Equal(t, one.up.V4, true, "IPv4 before the lease's end")
	w.wait(2 * time.Minute)
	testkit.Equal(t, one.up.V4, false, "IPv4 after it")
	w.wait(time.Hour)
	testkit.Equal(t, len(w.live), 0, "sessions after the end of all leases")

	w, s, h, b := newRelayPPP(t)
	h.join6(s)
	w.now, w.s, w.timers = w.now.Add(-24*time.Hour), New(w, w.c), nil
	b.open()
	w.wait(8*time.Hour + time.Minute)
	b.nothingLeft()
}
