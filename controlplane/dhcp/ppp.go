// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"net/netip"

	"isthmus/controlplane/access"
)

// PPP is DHCPv6 and router advertisements over a PPP session, which is pppoe's: it says when the link is there, ends
// the session, and keeps which families pass. Leases are the session's addresses, so nothing else needs to be kept.
type PPP struct {
	u     *subscriber
	local netip.Addr
	send  func(ipv6 []byte)
	up    func(f access.Families, done func(error))
}

// OverPPP serves a session whose addresses were all asked for at sign-in. up has families pass beside those that PPP
// itself lets pass; passing are those that it had pass before a restart. send copies.
func (s *Server) OverPPP(session access.Session, line access.Line, passing access.Families, send func(ipv6 []byte),
	up func(f access.Families, done func(error))) *PPP {
	l := &PPP{send: send, up: up}
	all := access.Families{V4: true, V6: true, Delegated: true}
	l.u = &subscriber{s: s, line: line, session: session, ppp: l, since: s.host.Now(), wants: all, asked: all,
		passing: passing}
	l.u.again = l.u.since.AddDate(100, 0, 0)
	return l
}

// Opened tells that IPv6CP is open, with these link-local addresses.
func (l *PPP) Opened(local, peer netip.Addr) {
	l.local, l.u.peer = local, peer
	if !l.u.dead && l.u.have(access.Families{V6: true}).V6 {
		l.u.solicited()
	}
}

// Packet takes an IPv6 packet that was punted.
func (l *PPP) Packet(b []byte) {
	u := l.u
	d, ok := ipv6(bytes.Clone(b))
	switch {
	case u.dead || !l.local.IsValid():
	case !ok:
		u.s.count(malformed)
	case d.protocol == protocolICMP && !solicitation(&d):
		u.s.count(malformed)
	case d.protocol == protocolICMP:
		u.solicited()
	default:
		r, w, ok := parse6(false, &d)
		if ok {
			w, ok = u.s.valid6(r, false)
		}
		if !ok {
			u.s.count(w)
			return
		}
		u.s.serve6(u, r)
	}
}

// Closed tells that IPv6CP is not open any more. tell: the link still carries a farewell.
func (l *PPP) Closed(tell bool) {
	u := l.u
	if u.dead {
		return
	}
	if !tell {
		u.passing = access.Families{}
	}
	u.leave()
}
