// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"net/netip"

	"isthmus/controlplane/access"
)

// PPP is DHCPv6 and router advertisements over a session of pppoe, which opens and ends the link, and keeps the
// permitted families.
type PPP struct {
	u       *subscriber
	local   netip.Addr
	bearer  access.Bearer
	relayed bool // addresses come and go with leases; else the session has all since sign-in
}

// OverPPP serves a session.
func (s *Server) OverPPP(session access.Session, line access.Line, b access.Bearer, was access.BearerState) *PPP {
	l := &PPP{bearer: b, relayed: was.Relayed}
	all := access.Families{V4: true, V6: true, Delegated: true}
	u := &subscriber{s: s, line: line, session: session, ppp: l, since: s.host.Now(), wants: all, asked: all,
		passing: was.Passing}
	l.u, u.again = u, u.since.AddDate(100, 0, 0)
	if l.relayed {
		if kept := was.Kept; len(kept) == keptPPP {
			u.slaac = kept[0] != 0
			v6{u}.readLeases(kept[1:], timeOf(kept[1+keptLeases:]))
		}
		held := access.Families{V4: true, V6: u.slaac || v6{u}.bound(address), Delegated: v6{u}.bound(prefix)}
		u.wants, u.asked = held, held
		u.sleep()
	}
	return l
}

const keptPPP = 1 + keptLeases + 4

// State is what BearerState.Kept gives back.
func (l *PPP) State() []byte {
	b := make([]byte, 1, keptPPP)
	if l.u.slaac {
		b[0] = 1
	}
	now := l.u.s.host.Now()
	return at(v6{l.u}.appendLeases(b, now), now, now)
}

// Opened: IPv6CP is open, with these link-local addresses.
func (l *PPP) Opened(local, peer netip.Addr) {
	u := l.u
	l.local, u.peer = local, peer
	if u.dead {
		return
	}
	if l.relayed { // a renegotiated link begins without leases
		six := access.Families{V6: true, Delegated: true}
		if f := without(u.have(six), u.asked); f != (access.Families{}) {
			u.drop(f, access.UserRequest)
		}
	}
	if (v6{u}).relays() || u.have(access.Families{V6: true}).V6 {
		v6{u}.solicited()
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
		v6{u}.solicited()
	default:
		r, w, ok := parse6(false, &d)
		if ok {
			w, ok = u.s.valid6(r, v6{u}.relays())
		}
		if !ok {
			u.s.count(w)
			return
		}
		v6{u}.message(r)
	}
}

// Closed: IPv6CP is closed. The link still carries a farewell if the argument is true.
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
