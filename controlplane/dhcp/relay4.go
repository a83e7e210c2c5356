// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"isthmus/controlplane/access"
)

// relayKey finds the subscriber whose message an upstream server answers. Each has one at most.
type relayKey struct {
	xid dhcpv4.TransactionID
	mac [6]byte
}

// exchange4 is a client's message that upstream servers work at.
type exchange4 struct {
	key     relayKey
	request *request4
	from    netip.AddrPort // who answers
	answer  []byte         // it waits; nil: none
}

func (u v4) forget() {
	if u.upstream4 != nil && u.s.relays[u.upstream4.key] == u.subscriber {
		delete(u.s.relays, u.upstream4.key)
	}
	u.upstream4 = nil
}

// relay passes a client's message on to the upstream servers, or answers it while our lease is young (proxy).
func (u v4) relay(p *Port, r *request4) {
	if u.denied && u.s.host.Now().Before(u.until) {
		u.s.count(refusedBefore)
		return
	}
	mine := netip.Addr{}
	if u.session != nil {
		mine = u.session.Grant().Addresses.IPv4
	}
	switch r.kind {
	case dhcpv4.MessageTypeDiscover:
	case dhcpv4.MessageTypeRequest:
		if id := r.server(); p.Proxy && id.IsValid() && id != u.s.c.Address.Addr {
			u.s.count(otherServer)
			return
		}
		if p.Proxy && u.four.bound && claim(r) == mine && u.s.host.Now().Before(u.four.loan().renew) {
			u.waiting4 = r
			if u.ready(access.Families{V4: true}, true, u.request(r)) {
				u.waiting4 = nil
				u.acknowledge(r, false)
			}
			return
		}
	case dhcpv4.MessageTypeInform:
		if !mine.IsValid() || r.client() != mine {
			u.s.count(notTheirs)
			return
		}
	case dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeDecline:
		if !mine.IsValid() || u.busy || r.client() != mine && r.wanted() != mine {
			u.s.count(notTheirs)
			return
		}
	default:
		u.s.count(malformed)
		return
	}
	u.toUpstream(p, r)
	switch r.kind {
	case dhcpv4.MessageTypeRelease:
		u.four = lease4{}
		u.drop(access.Families{V4: true}, access.UserRequest)
	case dhcpv4.MessageTypeDecline:
		u.declines++
		u.restart(access.UserError)
	}
}

func (u v4) toUpstream(p *Port, r *request4) {
	e := &exchange4{key: relayKey{r.TransactionID, u.line.MAC}, request: r}
	if u.upstream4 != nil {
		e.from, e.answer = u.upstream4.from, u.upstream4.answer
	}
	u.forget()
	u.upstream4 = e
	u.s.relays[e.key] = u.subscriber
	if u.session == nil && u.cancel == nil {
		u.until = u.s.host.Now().Add(u.s.c.Limits.Offer)
	}
	m := *r.DHCPv4
	m.Options = maps.Clone(m.Options)
	m.HopCount++
	m.GatewayIPAddr = slice4(u.s.c.Address.Addr)
	if !m.Options.Has(dhcpv4.OptionRelayAgentInformation) {
		circuit := fmt.Sprintf("%s:%d.%d", u.line.Port, u.line.STag, u.line.CTag)
		value := append([]byte{1, byte(len(circuit))}, circuit...)
		m.Options[82] = append(append(value, 2, 6), u.line.MAC[:]...)
	}
	to := p.Upstream
	if id := r.server(); p.Proxy && id.IsValid() && u.four.loan().id.IsValid() {
		m.Options[54] = u.four.loan().id.AsSlice()
	}
	if (r.server().IsValid() || r.client().IsValid()) && slices.Contains(to, u.four.loan().server) {
		to = []netip.AddrPort{u.four.loan().server}
	}
	packet := m.ToBytes()
	for _, server := range to {
		u.relayed(access.IPoE4, u.s.Upstream(server, packet))
	}
}

// relayed counts a message to an upstream server, which comes again when it is lost.
func (u *subscriber) relayed(kind access.Kind, err error) {
	if err != nil {
		u.refuse(kind, notRelayed, "an upstream server cannot be asked: "+err.Error())
		return
	}
	u.s.count(relayed)
}

// FromUpstream takes what came to Config.Address from a DHCPv4 server. Only servers of the subscriber's port count.
func (s *Server) FromUpstream(server netip.AddrPort, packet []byte) {
	if !sound(packet, 2) {
		s.count(malformed)
		return
	}
	key := relayKey{dhcpv4.TransactionID(packet[4:8]), [6]byte(packet[28:34])}
	u, i := s.relays[key], -1
	if u != nil && address4(packet[24:28]) == s.c.Address.Addr {
		same := func(a netip.AddrPort) bool { return a.Addr() == server.Addr() }
		i = slices.IndexFunc(u.port().Upstream, same)
	}
	if i < 0 {
		s.stranger(access.IPoE4, u, server)
		return
	}
	from := u.port().Upstream[i]
	if u.busy || u.cancel != nil { // the first answer wins
		s.count(waits)
		return
	}
	u.upstream4.from = from
	v4{u}.answer(append([]byte(nil), packet...), false)
}

// stranger has answered a subscriber's message; nil: of no subscriber.
func (s *Server) stranger(kind access.Kind, u *subscriber, server netip.AddrPort) {
	if u == nil {
		s.count(unknownUpstream)
		return
	}
	u.refuse(kind, unknownUpstream, "an answer of "+server.Addr().String()+", which is no upstream server of the "+
		"port, "+
		"or not to our message")
}

// answer signs in a subscriber with an upstream server's address, and passes the answer on. again: the session was
// asked for this address before, so it gets what it has.
func (u v4) answer(packet []byte, again bool) {
	m, err := decode4(packet)
	if err != nil || u.upstream4 == nil {
		u.s.count(malformed)
		return
	}
	r := u.upstream4.request
	yours := address4(m.YourIPAddr)
	switch kind := m.MessageType(); {
	case kind == dhcpv4.MessageTypeNak:
		if u.port().Proxy {
			m.Options[54] = u.s.c.Address.AsSlice()
		}
		u.passOn(r, m)
		if u.four = (lease4{}); u.session != nil {
			u.drop(access.Families{V4: true}, access.UserRequest)
		}
		return
	case kind == dhcpv4.MessageTypeAck && !yours.IsValid() && r.kind == dhcpv4.MessageTypeInform:
		u.passOn(r, m)
		return
	case !yours.IsValid() || kind != dhcpv4.MessageTypeOffer && kind != dhcpv4.MessageTypeAck:
		u.s.count(malformed)
		return
	case m.IPAddressLeaseTime(u.s.c.Lease) < shortest:
		u.refuse(access.IPoE4, leaseShort, words[leaseShort][1])
		return
	case u.session != nil && u.asked.V4 && u.session.Grant().Addresses.IPv4 != yours:
		if again {
			u.s.count(noAddress)
			return
		}
		if kind == dhcpv4.MessageTypeOffer && u.four.loan().xid == m.TransactionID {
			u.s.count(otherServer)
			return
		}
		e := u.upstream4
		u.restart(access.LostService) // it has another address now
		e.key, u.upstream4 = relayKey{m.TransactionID, u.line.MAC}, e
		u.s.relays[e.key] = u.subscriber
	}
	u.upstream4.answer = packet
	request := u.request(r)
	request.Given = given(m)
	ack := m.MessageType() == dhcpv4.MessageTypeAck
	if !u.ready(access.Families{V4: true}, ack, request) {
		return
	}
	u.upstream4.answer = nil
	if u.session.Grant().Addresses.IPv4 != yours {
		u.s.count(noAddress)
		return
	}
	u.lend(m, ack)
	u.passOn(r, m)
}

// given is what a server's message gives.
func given(m *dhcpv4.DHCPv4) *access.Addresses {
	a := &access.Addresses{IPv4: address4(m.YourIPAddr), Mask: 32}
	if mask := m.Options[1]; len(mask) == 4 {
		a.Mask, _ = m.SubnetMask().Size()
	}
	if v := m.Options[3]; len(v) >= 4 {
		a.Gateway = address4(v[:4])
	}
	for v := m.Options[6]; len(v) >= 4 && len(a.DNS) < 4; v = v[4:] {
		if d := address4(v[:4]); d.IsValid() {
			a.DNS = append(a.DNS, d)
		}
	}
	return a
}

// shortest is the shortest accepted lease of an upstream server: with a shorter one the subscriber would renew all the
// time.
const shortest = 30 * time.Second

// lend notes an upstream server's lease, and shortens it for the subscriber: to ours (proxy), to its session.
func (u v4) lend(m *dhcpv4.DHCPv4, ack bool) {
	now := u.s.host.Now()
	lease := m.IPAddressLeaseTime(u.s.c.Lease)
	if lease > 1<<31*time.Second { // "infinite" (RFC 2131 §3.3) is asked for again
		lease = 1 << 31 * time.Second
	}
	lent := u.four.loan()
	lent.server, lent.id, lent.xid = u.upstream4.from, address4(m.Options[54]), m.TransactionID
	u.four.lent = &lent
	held := now.Add(lease)
	if u.port().Proxy {
		m.Options[54] = u.s.c.Address.AsSlice()
		lease = min(lease, u.s.c.Lease)
	}
	if left := u.left(); left < lease || u.port().Proxy {
		times(m, min(lease, left))
	}
	if !ack {
		if !u.four.bound {
			u.four.expires = now.Add(u.s.c.Limits.Offer)
		}
		return
	}
	u.acknowledged(now.Add(lease))
	lent.held, lent.renew = held, now.Add(held.Sub(now)/2)
	u.keep(u.passing)
}

// passOn gives an upstream server's message to the subscriber, as if from us, without our own option.
func (u v4) passOn(r *request4, m *dhcpv4.DHCPv4) {
	if v, ok := r.Options[82]; ok {
		m.Options[82] = v
	} else {
		delete(m.Options, 82)
	}
	if m.MessageType() != dhcpv4.MessageTypeOffer {
		u.forget()
	}
	u.sleep()
	u.s.count(answered)
	u.send(r, m)
}
