// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// link is pppoe's end of a home's PPP session.
type link struct {
	h     *home
	s     *session
	was   access.BearerState
	asked int // how often packets were to pass
}

func (b *link) SendIPv6(packet []byte) {
	b.h.w.Send(&access.Frame{Line: b.h.line, EtherType: ethernetIPv6, Payload: packet})
}

func (b *link) PassIPv6(f access.Families, done func(error)) {
	b.asked++
	b.was.Passing = f
	b.KeepIPv6()
	b.h.w.posted = append(b.h.w.posted, func() {
		if b.s.down != 0 {
			return
		}
		if b.h.w.failUp { // as pppoe does
			b.hangUp()
			done(errors.New("no"))
			return
		}
		b.s.up = union(access.Families{V4: true}, f)
		done(nil)
	})
}

func (b *link) KeepIPv6() {
	b.was.Kept = nil
	if b.was.Relayed {
		b.was.Kept = b.h.ppp.State()
	}
}

// dial makes a PPP session of a home.
func (h *home) dial(relayed bool) *link {
	b := &link{h: h, s: &session{w: h.w, plan: h.w.plan}, was: access.BearerState{Relayed: relayed}}
	b.s.request.Line = h.line
	b.s.hold(access.Families{V4: true, V6: !relayed, Delegated: !relayed}, &access.Request{})
	b.s.up = access.Families{V4: true}
	b.open()
	return b
}

var ourLinkLocal = netip.MustParseAddr("fe80::1")

func (b *link) open() {
	b.h.ppp = b.h.w.s.OverPPP(b.s, b.h.line, b, b.was)
	b.h.ppp.Opened(ourLinkLocal, b.h.linkLocal())
}

// negotiate has IPv6CP go down and come up.
func (b *link) negotiate() {
	b.h.ppp.Closed(true)
	b.was.Passing, b.was.Kept = access.Families{}, nil
	b.open()
}

func (b *link) hangUp() {
	b.h.ppp.Closed(false)
	if b.s.down == 0 {
		b.s.Down(access.UserRequest)
	}
}

func TestOverPPP(t *testing.T) {
	w := newWorld(t)
	h := w.home(1)
	b := h.dial(false)
	all := h.datagrams6()
	testkit.FatalIf(t, len(all) != 1, "%d advertisements", len(all))
	d := &all[0]
	testkit.FatalIf(t, d.body[0] != 134 || d.from != ourLinkLocal || d.to != h.linkLocal(), "%v", d)
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, pd()),
		"2001:db8:100::/56 2h0m0s ", "got")
	testkit.Equal(t, b.s.up, access.Families{V4: true, V6: true, Delegated: true}, "passing")
	first, asked := h.ppp, b.asked
	b.open()
	testkit.Equal(t, len(h.datagrams6()), 1, "advertisements after a restart")
	h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRenew, ours, pd())
	testkit.Equal(t, b.asked, asked, "how often what passed before a restart was to pass")
	h.ppp.Closed(false)
	h.ppp = first
	w.wait(10*time.Minute + time.Second)
	testkit.Equal(t, len(h.datagrams6()), 1, "advertisements of ten minutes")
	h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRelease, ours, pd())
	h.ppp.Closed(true)
	all = h.datagrams6()
	testkit.FatalIf(t, len(all) != 1, "%d advertisements", len(all))
	testkit.Equal(t, binary.BigEndian.Uint16(all[0].body[6:]), 0, "lifetime of the last one")
	w.wait(time.Hour)
	testkit.Equal(t, len(h.datagrams6()), 0, "packets")
	testkit.Equal(t, b.s.down, 0, "pppoe ends its sessions itself")
}

var onlyFour = access.Families{V4: true}

// newRelayPPP is a home that dialled in on a port whose DHCPv6 is relayed.
func newRelayPPP(t *testing.T) (*world, *upstream6, *home, *link) {
	w, s, h := newRelay6(t)
	w.ports["relay"] = Port{Upstream6: w.ports["relay"].Upstream6} // without IPoE
	b := h.dial(true)
	all := h.datagrams6()
	testkit.FatalIf(t, len(all) != 1, "%d advertisements", len(all))
	testkit.FatalIf(t, all[0].body[0] != 134 || all[0].body[5] != 0xc0, "M is not set: %v", all[0])
	return w, s, h, b
}

// nothingLeft: neither transactions nor addresses of IPv6.
func (b *link) nothingLeft() {
	w := b.h.w
	w.t.Helper()
	testkit.Equal(w.t, b.s.up, onlyFour, "passing")
	testkit.Equal(w.t, b.s.has.IPv6.IsValid() || b.s.has.Delegated.IsValid(), false, "addresses")
	testkit.Equal(w.t, len(w.s.relays6), 0, "transactions")
	for _, row := range w.pools.Rows()[1:] {
		testkit.Equal(w.t, row.Used, 0, "used of %s", row.Name)
	}
	testkit.Equal(w.t, b.s.down, 0, "pppoe ends its sessions itself")
}

func TestRelayOverPPP(t *testing.T) {
	w, s, h, b := newRelayPPP(t)
	testkit.Equal(t, b.asked, 0, "IPv6 passes before there is a lease")
	h.join6(s)
	testkit.Equal(t, b.s.up, access.Families{V4: true, V6: true, Delegated: true}, "passing")
	testkit.Equal(t, b.s.has.IPv6, netip.MustParsePrefix(theirAddress+"/128"), "address")
	testkit.Equal(t, b.s.has.Delegated, netip.MustParsePrefix(theirPrefix), "prefix")
	renew, other := mods{theirs, na(), pd()}, "2001:db8:500::78"
	h.exchange6(s, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeReply,
		"[REPLY "+theirAddress+" 0s "+other+" 1h0m0s "+theirPrefix+" 1h0m0s ]", renew,
		mods{na(lent6(theirAddress, 0), lent6(other, 3600)), pd(delegated6(theirPrefix, 3600))})
	testkit.Equal(t, b.s.has.IPv6, netip.MustParsePrefix(other+"/128"), "address")
	testkit.Equal(t, b.s.has.IPv4.IsValid(), true, "IPv4 stays")
	h.exchange6(s, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeReply,
		"[REPLY NoBinding "+theirPrefix+" 1h0m0s ]", renew,
		mods{na(status(iana.StatusNoBinding, "")), pd(delegated6(theirPrefix, 3600))})
	testkit.Equal(t, b.s.up, access.Families{V4: true, Delegated: true}, "passing")
	h.exchange6(s, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeReply, "[REPLY Success ]",
		mods{theirs, pd(delegated6(theirPrefix, 0))},
		mods{func(m dhcpv6.DHCPv6) { m.AddOption(status(0, "")) }})
	b.nothingLeft()
	h.join6(s)
	w.wait(8*time.Hour + time.Minute) // no renewal
	b.nothingLeft()
	h.join6(s)
	h.put6(h.six(dhcpv6.MessageTypeRenew, theirs, na(), pd()))
	s.take()
	b.hangUp()
	testkit.Equal(t, len(w.s.relays6), 0, "transactions of who is gone")
}

// A lease of another home cannot be taken; a home that declines all addresses waits (row B10).
func TestRelayOverPPPTheirs(t *testing.T) {
	w, s, h, b := newRelayPPP(t)
	h.join6(s)
	second := w.home(2)
	second.line.Port = "relay"
	other := second.dial(true)
	second.datagrams6()
	second.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[]", mods{theirs, na(), pd()},
		lendBoth)
	testkit.Equal(t, w.counted("no_address"), 1, "what another has")
	w.wait(w.c.Limits.Retry)
	second.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[]", mods{theirs, na(), pd()},
		mods{na(lent6("2001:db8:500::78", 3600)), pd(delegated6(theirPrefix, 3600))})
	testkit.Equal(t, other.s.has.IPv6.IsValid(), true, "half of it is there")
	w.wait(2 * time.Minute)
	testkit.Equal(t, other.s.has.IPv6, netip.Prefix{}, "an address without a lease")
	other.hangUp()
	h.ask6(0, dhcpv6.MessageTypeRelease, theirs, na(held("2001:db8:500::78")))
	testkit.Equal(t, w.counted("not_theirs"), 1, "not theirs")
	h.exchange6(s, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeReply, "[REPLY ]",
		mods{theirs, na(held(theirAddress)), pd(delegated6(theirPrefix, 0))}, nil)
	b.nothingLeft()
	for range 3 {
		h.exchange6(s, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeReply, "[REPLY "+theirAddress+" 1h0m0s ]",
			mods{theirs, na()}, mods{na(lent6(theirAddress, 3600))})
		h.exchange6(s, dhcpv6.MessageTypeDecline, dhcpv6.MessageTypeReply, "[REPLY ]",
			mods{theirs, na(held(theirAddress))}, nil)
		b.nothingLeft()
	}
	h.ask6(0, dhcpv6.MessageTypeSolicit, na())
	testkit.Equal(t, len(s.asked), 0, "asked for who declines all")
	w.wait(w.c.Limits.Penalty)
	h.join6(s)
}

// Leases survive a restart, and end when the servers said; a renegotiated link begins without them.
func TestRelayOverPPPRestore(t *testing.T) {
	w, s, h, b := newRelayPPP(t)
	h.join6(s)
	send := w.s.Upstream6
	w.s, w.timers = New(w, w.c), nil
	w.s.Upstream6 = send
	w.wait(2 * time.Hour)
	asked := b.asked
	b.open()
	h.exchange6(s, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeReply, lentBoth, mods{theirs, na(), pd()}, lendBoth)
	testkit.Equal(t, b.asked, asked, "how often what passed before a restart was to pass")
	w.wait(4*time.Hour + time.Minute)
	testkit.Equal(t, b.s.up, access.Families{V4: true, Delegated: true}, "passing")
	w.wait(4 * time.Hour)
	b.nothingLeft()
	h.join6(s)
	b.negotiate()
	h.datagrams6()
	b.nothingLeft()
	h.join6(s)
	testkit.Equal(t, b.s.up, access.Families{V4: true, V6: true, Delegated: true}, "passing")
}

// The servers are taken out of the configuration: the home's next message is answered from the pools.
func TestRelayOverPPPNoMore(t *testing.T) {
	w, s, h, b := newRelayPPP(t)
	h.join6(s)
	w.ports["relay"] = Port{}
	w.configure()
	w.wait(8*time.Hour + time.Minute)
	b.nothingLeft()
	testkit.Equal(t, h.ask6(dhcpv6.MessageTypeReply, dhcpv6.MessageTypeRequest, ours, na(), pd()), both, "lent")
	testkit.Equal(t, b.s.up, access.Families{V4: true, V6: true, Delegated: true}, "passing")
	w.wait(3 * time.Hour)
	b.nothingLeft()
}
