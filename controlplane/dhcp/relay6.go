// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
)

// relayKey6 identifies the subscriber of an upstream server's answer: our Interface-Id, peer-address, and the
// transaction. Each subscriber has one at most.
type relayKey6 struct {
	id   string
	peer netip.Addr
	xid  dhcpv6.TransactionID
}

// exchange6 is exchange4 for DHCPv6.
type exchange6 struct {
	key     relayKey6
	request *request6
	answer  []byte
}

func (u v6) forget() {
	if u.upstream6 != nil && u.s.relays6[u.upstream6.key] == u.subscriber {
		delete(u.s.relays6, u.upstream6.key)
	}
	u.upstream6 = nil
}

// relays: upstream servers handle the subscriber's DHCPv6.
func (u v6) relays() bool {
	return (u.ppp == nil || u.ppp.relayed) && len(u.port().Upstream6) > 0
}

// relay passes a client's message on to the upstream servers, once the subscriber was let in.
func (u v6) relay(r *request6) {
	if r.to != relaysAndServers {
		u.s.count(malformed)
		return
	}
	switch r.MessageType {
	case dhcpv6.MessageTypeConfirm: // the session decides what is on the link
		u.leaving(r)
		return
	case dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		if u.session == nil || u.busy || !u.leaves(r) {
			u.s.count(notTheirs)
			return
		}
	default:
		u.waiting6 = r
		if !u.ready(access.Families{}, false,
			&access.Request{Kind: access.IPoE6, Agent: r.agent, ClientID: r.client}) {
			return
		}
		u.waiting6 = nil
	}
	u.toUpstream(r)
	u.sleep()
}

// leaves notes the leases of a Release or Decline, which end soon even without a server's answer; false: it is about
// leases of others (row B10).
func (u v6) leaves(r *request6) bool {
	a := u.session.Grant().Addresses
	declines := r.MessageType == dhcpv6.MessageTypeDecline
	all := [kinds]bool{}
	for _, ia := range r.Options.IANA() {
		theirs := func(one *dhcpv6.OptIAAddress) bool { return hostPrefix(one.IPv6Addr) != a.IPv6 }
		if !u.bound(address) || u.leased[address].iaid != ia.IaId ||
			slices.ContainsFunc(ia.Options.Addresses(), theirs) {
			return false
		}
		all[address] = true
	}
	for _, ia := range r.Options.IAPD() {
		theirs := func(one *dhcpv6.OptIAPrefix) bool { return prefixOf(one.Prefix) != a.Delegated }
		if declines || !u.bound(prefix) || u.leased[prefix].iaid != ia.IaId ||
			slices.ContainsFunc(ia.Options.Prefixes(), theirs) {
			return false
		}
		all[prefix] = true
	}
	if all == [kinds]bool{} {
		return false
	}
	soon := u.s.host.Now().Add(u.s.c.Limits.Offer)
	for kind, leaves := range all {
		if l := &u.leased[kind]; leaves && l.expires.After(soon) {
			l.expires = soon
		}
	}
	return true
}

func hostPrefix(ip net.IP) netip.Prefix {
	a, _ := netip.AddrFromSlice(ip)
	return netip.PrefixFrom(a, a.BitLen())
}

func prefixOf(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	a, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a, bits)
}

// toUpstream is RFC 8415 §19.1: the line's message, or its access node's Relay-Forward, in one of ours.
func (u v6) toUpstream(r *request6) {
	id := fmt.Sprintf("%s:%d.%d", u.line.Port, u.line.STag, u.line.CTag)
	key := relayKey6{id, r.from, r.TransactionID}
	if other := u.s.relays6[key]; other != nil && other != u.subscriber { // of another MAC address on the VLAN
		u.s.count(waits)
		return
	}
	var waits6 []byte
	if u.upstream6 != nil {
		waits6 = u.upstream6.answer
	}
	u.forget()
	u.upstream6 = &exchange6{key, r, waits6}
	u.s.relays6[key] = u.subscriber
	b := make([]byte, 34, 34+4+len(id)+4+8+4+len(r.body))
	b[0] = byte(dhcpv6.MessageTypeRelayForward)
	if len(r.relays) > 0 {
		b[1] = r.relays[0].head[1] + 1
	}
	copy(b[2:18], u.s.c.Address6.AsSlice())
	copy(b[18:34], r.from.AsSlice())
	b = option16(b, 18, []byte(id))
	b = option16(b, 79, append([]byte{0, 1}, u.line.MAC[:]...)) // RFC 6939
	b = option16(b, 9, r.body)
	for _, server := range u.port().Upstream6 {
		u.relayed(access.IPoE6, u.s.Upstream6(server, b))
	}
}

// FromUpstream6 takes datagrams to Config.Address6 from a DHCPv6 server (RFC 8415 §19.2). Only servers of the
// subscriber's port count.
func (s *Server) FromUpstream6(server netip.AddrPort, packet []byte) {
	outer, m := &request6{}, &request6{}
	b, w, ok := outer.unwrap(dhcpv6.MessageTypeRelayReply, mostRelays+1, bytes.Clone(packet))
	if !ok || len(outer.relays) == 0 || !m.read(b) {
		if ok {
			w = malformed
		}
		s.count(w)
		return
	}
	ours := &outer.relays[0]
	peer := netip.AddrFrom16([16]byte(ours.head[18:34]))
	u := s.relays6[relayKey6{string(ours.id), peer, m.TransactionID}]
	same := func(a netip.AddrPort) bool { return a.Addr() == server.Addr() }
	if u == nil || netip.AddrFrom16([16]byte(ours.head[2:18])) != s.c.Address6.Addr ||
		len(outer.relays) != len(u.upstream6.request.relays)+1 ||
		!bytes.Equal(m.client, u.upstream6.request.client) ||
		!slices.ContainsFunc(u.port().Upstream6, same) {
		s.stranger(access.IPoE6, u, server)
		return
	}
	if u.busy || u.cancel != nil { // the first answer wins
		s.count(waits)
		return
	}
	v6{u}.answer(b, false)
}

// lent is what an upstream server gives of one kind.
type lent struct {
	prefix netip.Prefix
	iaid   [4]byte
	valid  time.Duration
}

// lends reads a server's leases: an address and a prefix at most; expired ones (valid lifetime 0) do not count.
func lends(m *dhcpv6.Message) (all [kinds]lent, w why, ok bool) {
	w, ok = 0, true
	take := func(kind int, iaid [4]byte, p netip.Prefix, valid time.Duration) {
		switch {
		case valid == 0:
		case !p.IsValid() || p != p.Masked() || !p.Addr().IsGlobalUnicast():
			w, ok = malformed, false
		case all[kind].prefix.IsValid():
			w, ok = leasesMany, false
		case valid < shortest:
			w, ok = leaseShort, false
		default:
			// "Infinite" (RFC 8415 §7.7) is a time like others.
			all[kind] = lent{p, iaid, min(valid, 1<<31*time.Second)}
		}
	}
	for _, ia := range m.Options.IANA() {
		for _, one := range ia.Options.Addresses() {
			take(address, ia.IaId, hostPrefix(one.IPv6Addr), one.ValidLifetime)
		}
	}
	for _, ia := range m.Options.IATA() {
		if len(ia.Options.Addresses()) > 0 { // no session has temporary addresses
			w, ok = leasesMany, false
		}
	}
	for _, ia := range m.Options.IAPD() {
		for _, one := range ia.Options.Prefixes() {
			p := prefixOf(one.Prefix)
			if p.Bits() < shortestPrefix || p.Bits() > 64 {
				p = netip.Prefix{}
			}
			take(prefix, ia.IaId, p, one.ValidLifetime)
		}
	}
	return all, w, ok
}

// shortestPrefix is the largest network that a server may delegate to a line: more is a mistake.
const shortestPrefix = 32

// answer binds what an upstream server gives to the session, and passes the answer on. again: the session was asked
// for this lease before, so it gets what it has.
func (u v6) answer(b []byte, again bool) {
	if u.upstream6 == nil {
		u.s.count(malformed)
		return
	}
	r, m := u.upstream6.request, &request6{}
	if !m.read(b) || m.server == nil || m.MessageType != dhcpv6.MessageTypeReply &&
		(m.MessageType != dhcpv6.MessageTypeAdvertise || r.MessageType != dhcpv6.MessageTypeSolicit) {
		u.s.count(malformed)
		return
	}
	all, w, ok := lends(m.Message)
	if !ok {
		u.refuse(access.IPoE6, w, words[w][1])
		return
	}
	switch {
	case m.MessageType == dhcpv6.MessageTypeAdvertise, r.MessageType == dhcpv6.MessageTypeInformationRequest:
		u.passOn(r, m, b)
		return
	case r.MessageType == dhcpv6.MessageTypeRelease, r.MessageType == dhcpv6.MessageTypeDecline:
		u.passOn(r, m, b)
		u.released(r)
		return
	}
	f := access.Families{V6: all[address].prefix.IsValid(), Delegated: all[prefix].prefix.IsValid()}
	if other := u.differs(&all); other != (access.Families{}) {
		if again {
			u.s.count(noAddress)
			return
		}
		u.exchange(other, b)
		return
	}
	if f != (access.Families{}) {
		u.upstream6.answer = b
		given := &access.Addresses{IPv6: all[address].prefix, Delegated: all[prefix].prefix,
			DNS: resolvers6(m.Message)}
		request := &access.Request{Kind: access.IPoE6, Agent: r.agent, ClientID: r.client, Given: given}
		if !u.ready(f, true, request) {
			return
		}
		u.upstream6.answer = nil
		if u.have(f) != f || u.differs(&all) != (access.Families{}) {
			u.s.count(noAddress)
			return
		}
	}
	u.lend(r, m, b, &all)
}

// differs is of which families the session has something else than a server gives.
func (u v6) differs(all *[kinds]lent) (f access.Families) {
	if u.session == nil {
		return f
	}
	other := func(has netip.Prefix, l *lent) bool { return has.IsValid() && l.prefix.IsValid() && has != l.prefix }
	a := u.session.Grant().Addresses
	return access.Families{V6: other(a.IPv6, &all[address]), Delegated: other(a.Delegated, &all[prefix])}
}

// exchange returns addresses that a server replaces; its answer b waits for that.
func (u v6) exchange(f access.Families, b []byte) {
	if f.V6 {
		u.leased[address] = lease6{}
	}
	if f.Delegated {
		u.leased[prefix] = lease6{}
	}
	if u.ppp != nil ||
		without(u.passing, f) != (access.Families{}) && without(u.wants, f) != (access.Families{}) {
		u.upstream6.answer = b
		u.drop(f, access.LostService)
		return
	}
	e := u.upstream6
	u.restart(access.LostService)
	u.hears(e.request.from)
	u.upstream6 = e
	u.s.relays6[e.key] = u.subscriber
	u.answer(b, false)
}

// lend notes an upstream server's leases, passes its answer on, and ends what the answer withdraws: an IA of the line
// that comes back empty (NoBinding, or lifetimes of 0).
func (u v6) lend(r, m *request6, b []byte, all *[kinds]lent) {
	fresh := false
	for kind, l := range all {
		if l.prefix.IsValid() {
			fresh = fresh || !u.bound(kind)
			u.leased[kind] = lease6{l.iaid, u.s.host.Now().Add(l.valid)}
		}
	}
	var named [kinds][][4]byte
	for _, ia := range m.Options.IANA() {
		named[address] = append(named[address], ia.IaId)
	}
	for _, ia := range m.Options.IAPD() {
		named[prefix] = append(named[prefix], ia.IaId)
	}
	var gone access.Families
	for kind := range named {
		if u.bound(kind) && !all[kind].prefix.IsValid() && slices.Contains(named[kind], u.leased[kind].iaid) {
			u.leased[kind] = lease6{}
			gone = union(gone, u.unleased(kind))
		}
	}
	if u.session != nil {
		u.keep(without(u.passing, gone))
	}
	u.passOn(r, m, b)
	if fresh {
		u.advertise(access.Families{})
		u.sleep()
	}
	if gone != (access.Families{}) {
		u.drop(gone, access.LostService)
	}
}

// released ends what a Release or Decline, which a server has answered now, was about.
func (u v6) released(r *request6) {
	var gone access.Families
	for kind, named := range [kinds]bool{len(r.Options.IANA()) > 0, len(r.Options.IAPD()) > 0} {
		if named {
			u.leased[kind] = lease6{}
			gone = union(gone, u.unleased(kind))
		}
	}
	if r.MessageType == dhcpv6.MessageTypeDecline {
		u.declines++
		switch {
		case u.ppp != nil:
			u.penalise(access.IPoE6)
		case uint32(u.declines) >= u.s.c.Limits.Declines || without(u.passing, gone) == (access.Families{}):
			u.restart(access.UserRequest) // which remembers how often
			return
		}
	}
	u.keep(without(u.passing, gone))
	u.drop(gone, access.UserRequest)
}

// resolvers6 are a message's name servers (RFC 3646), as many as a session needs.
func resolvers6(m *dhcpv6.Message) (all []netip.Addr) {
	for _, ip := range m.Options.DNS() {
		if a, ok := netip.AddrFromSlice(ip); ok && len(all) < 4 {
			all = append(all, a)
		}
	}
	return all
}

// shorten has what a server lends end with the session.
func (u v6) shorten(m *dhcpv6.Message) {
	left := u.left()
	both := func(one, other *time.Duration, most, others time.Duration) {
		*one, *other = min(*one, most), min(*other, others)
	}
	for _, ia := range m.Options.IANA() {
		both(&ia.T1, &ia.T2, left/2, left*4/5)
		for _, a := range ia.Options.Addresses() {
			both(&a.PreferredLifetime, &a.ValidLifetime, left, left)
		}
	}
	for _, ia := range m.Options.IAPD() {
		both(&ia.T1, &ia.T2, left/2, left*4/5)
		for _, p := range ia.Options.Prefixes() {
			both(&p.PreferredLifetime, &p.ValidLifetime, left, left)
		}
	}
}

// passOn gives the client a server's message, in Relay-Replies for its access node: as it is, if the session has no
// end. A Reply is the last word.
func (u v6) passOn(r, m *request6, b []byte) {
	if m.MessageType == dhcpv6.MessageTypeReply {
		u.forget()
	}
	if u.left() != math.MaxInt64 {
		u.shorten(m.Message)
		b = m.ToBytes()
	}
	u.s.count(answered)
	d := datagram{from: u.local(), to: r.from, source: serverPort6, dest: r.port, protocol: protocolUDP,
		body: r.wrap(b)}
	u.transmit(d.packet())
	u.sleep()
}
