// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"net/netip"
	"time"

	"isthmus/controlplane/access"
)

// solicitation: a message is a router solicitation that must be answered (RFC 4861 §6.1.1).
func solicitation(d *datagram) bool {
	if d.limit != hops || len(d.body) < 8 || d.body[0] != 133 || d.body[1] != 0 ||
		!d.from.IsUnspecified() && !d.from.IsLinkLocalUnicast() {
		return false
	}
	for b := d.body[8:]; len(b) > 0; {
		if len(b) < 8 || b[1] == 0 || len(b) < 8*int(b[1]) || b[0] == 1 && d.from.IsUnspecified() {
			return false
		}
		b = b[8*int(b[1]):]
	}
	return true
}

// solicited answers a router solicitation. A subscriber without a /64 of its own, but with a delegated prefix, gets an
// answer, too: it needs no address on the link.
func (u v6) solicited() {
	if u.relays() {
		u.solicitedRelay()
		return
	}
	u.waitingRS = true
	six, lan := access.Families{V6: true}, access.Families{Delegated: true}
	none := access.Families{}
	if !u.ready(six, true, &access.Request{Kind: access.IPoE6}) ||
		u.have(six) == none && !u.ready(lan, false, &access.Request{Kind: access.IPoE6}) {
		return
	}
	u.waitingRS = false
	if u.have(six) == none && u.have(lan) == none {
		u.s.count(noAddress)
		u.sleep()
		return
	}
	if u.passing.V6 && !u.slaac && u.s.c.RA.SLAAC {
		u.slaac = true
		u.keep(u.passing)
	}
	u.advertise(access.Families{})
	u.sleep()
}

// solicitedRelay answers where upstream servers give addresses: no pool is used, and the host asks the servers (M). It
// signs no subscriber in: the message to the servers does.
func (u v6) solicitedRelay() {
	if u.denied && u.s.host.Now().Before(u.until) {
		u.s.count(refusedBefore)
		return
	}
	u.advertise(access.Families{})
	u.sleep()
}

// advertise sends a router advertisement with the subscriber's own prefix (RFC 8273), to it alone. Families in ends
// withdraw the prefix, and the router where no IPv6 remains (RFC 4861 §6.2.5).
func (u v6) advertise(ends access.Families) {
	s, a := u.s, &access.Addresses{}
	left := u.left()
	lifetime := min(s.c.RA.Lifetime, left)
	if rest := without(u.passing, ends); (ends.V6 || ends.Delegated) && !rest.V6 && !rest.Delegated {
		lifetime = 0
	}
	if u.session != nil {
		a = u.session.Grant().Addresses
	}
	b := make([]byte, 16, 128)
	b[0], b[4] = 134, 64
	if s.c.RA.Managed || u.relays() {
		b[5] |= 0x80
	}
	if s.c.RA.Other {
		b[5] |= 0x40
	}
	binary.BigEndian.PutUint16(b[6:], uint16(min(lifetime/time.Second, 9000)))
	if u.ppp == nil {
		mac := s.host.Port(u.line.Port).MAC
		b = append(append(b, 1, 1), mac[:]...)
	}
	if s.c.MTU != 0 {
		b = binary.BigEndian.AppendUint32(append(b, 5, 1, 0, 0), uint32(s.c.MTU))
	}
	if a.IPv6.IsValid() && a.IPv6.Bits() <= 64 { // of a larger one its first /64 (RFC 4862 §5.5.3 d)
		valid, preferred := min(s.c.RA.Valid, left), min(s.c.RA.Preferred, left)
		if ends.V6 {
			valid, preferred = 0, 0
		}
		flags := byte(0) // not on-link: neighbours are reached through us (RFC 8273 §4)
		if s.c.RA.SLAAC {
			flags = 0x40
		}
		b = append(b, 3, 4, 64, flags)
		b = binary.BigEndian.AppendUint32(b, uint32(valid/time.Second))
		b = binary.BigEndian.AppendUint32(b, uint32(preferred/time.Second))
		p := a.IPv6.Addr().As16()
		b = append(append(b, 0, 0, 0, 0), p[:]...)
	}
	b = resolvers(b, a.DNS, lifetime)
	if u.session != nil {
		b = routes(b, u.session.Grant().Plan.Announced, lifetime)
	}
	to := u.peer
	if !to.IsValid() {
		to = allNodes
	}
	d := datagram{from: u.local(), to: to, protocol: protocolICMP, body: b}
	s.count(advertisements)
	u.transmit(d.packet())
	if u.ra = (time.Time{}); s.c.RA.Interval > 0 {
		u.ra = s.host.Now().Add(s.c.RA.Interval)
	}
}

// introduce has the subscribers of a port get an advertisement of their router's changed addresses soon (RFC 4861
// §6.2.8).
func (s *Server) introduce(port string) {
	i, now := 0, s.host.Now()
	for k, u := range s.subscribers {
		if k.port == port && (u.passing.V6 || u.passing.Delegated) {
			u.ra = now.Add(time.Duration(i%introductions) * (introduceTime / introductions))
			u.sleep()
			i++
		}
	}
}

// introduceTime is what advertisements to all are spread over, in steps.
const (
	introduceTime = 10 * time.Second
	introductions = 1000
)

// resolvers is RFC 8106 §5.1.
func resolvers(b []byte, dns []netip.Addr, lifetime time.Duration) []byte {
	at, n := len(b), 0
	b = append(b, 25, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(lifetime/time.Second))
	for _, d := range dns {
		if d.Is6() {
			b = append(b, d.AsSlice()...)
			n++
		}
	}
	if n == 0 {
		return b[:at]
	}
	b[at+1] = byte(1 + 2*n)
	return b
}

// routes is RFC 4191 §2.3: as much of a prefix as its length needs.
func routes(b []byte, list []netip.Prefix, lifetime time.Duration) []byte {
	for _, p := range list {
		words := (p.Bits() + 63) / 64
		b = append(b, 24, byte(1+words), byte(p.Bits()), 0)
		b = binary.BigEndian.AppendUint32(b, uint32(lifetime/time.Second))
		b = append(b, p.Addr().AsSlice()[:8*words]...)
	}
	return b
}

func (u v6) local() netip.Addr {
	if u.ppp != nil {
		return u.ppp.local
	}
	return u.s.host.Port(u.line.Port).LinkLocal
}

func (u v6) transmit(packet []byte) {
	if u.ppp != nil {
		u.ppp.bearer.SendIPv6(packet)
		return
	}
	u.s.host.Send(&access.Frame{Line: u.line, EtherType: ethernetIPv6, Payload: packet})
}
