// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/access"
)

const (
	keptVersion = 1
	keptLeases  = kinds * 8
	keptUpper   = 1 + 1 + 1 + 8 + keptLeases + 8 + 10 // where the upper half of the peer is
	keptTime    = keptUpper + 8
	keptLength  = keptTime + 4 + 2 + 2 // at least
)

// bits of what is kept.
const (
	keptV4 = 1 << iota
	keptV6
	keptDelegated
	keptSLAAC
	keptStatic
	keptBound
	keptBySix // DHCPv6's circuit id is what Limits.PerCircuit counts
)

// keep stores the state for a restart, with the families that are about to pass.
//
//	version, bits, iid │ v4 expires, held │ (iaid, expires) twice │ peer, lower half │ server, its id │ peer, upper │
//	now │ (length, circuit id) by DHCPv4, by DHCPv6
func (u *subscriber) keep(passing access.Families) {
	if u.ppp != nil {
		if u.ppp.relayed {
			u.ppp.bearer.KeepIPv6()
		}
		return
	}
	u.kept = passing
	now := u.s.host.Now()
	b := make([]byte, 0, keptLength)
	flags := byte(0)
	for i, one := range []bool{passing.V4, passing.V6, passing.Delegated, u.slaac, u.static, u.four.bound} {
		if one {
			flags |= 1 << i
		}
	}
	var ids [2]string
	if c := u.circuit; c != nil {
		if ids = c.ids; c.counted == countedCircuit(u.line.Port, ids[1]) {
			flags |= keptBySix
		}
	}
	b = append(b, keptVersion, flags, u.iid)
	b = at(at(b, now, u.four.expires), now, u.four.loan().held)
	b = v6{u}.appendLeases(b, now)
	peer := netip.IPv6Unspecified().As16()
	if u.peer.IsValid() {
		peer = u.peer.As16()
	}
	b = append(b, peer[8:]...)
	b = append(b, four(u.four.loan().server.Addr())...)
	b = binary.BigEndian.AppendUint16(b, u.four.loan().server.Port())
	b = append(b, four(u.four.loan().id)...)
	b = at(append(b, peer[:8]...), now, now)
	for _, id := range ids {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(id))), id...)
	}
	u.session.Keep(b)
}

func (u v6) appendLeases(b []byte, now time.Time) []byte {
	for _, l := range u.leased {
		b = at(append(b, l.iaid[:]...), now, l.expires)
	}
	return b
}

// readLeases is its inverse. Leases that ended meanwhile get an offer's time: their owners may be there, and unable to
// renew.
func (u v6) readLeases(b []byte, kept time.Time) {
	for i := range u.leased {
		u.leased[i] = lease6{[4]byte(b), u.soon(u.notLonger(timeOf(b[4:]), kept))}
		b = b[8:]
	}
}

func (u *subscriber) soon(t time.Time) time.Time {
	if grace := u.s.host.Now().Add(u.s.c.Limits.Offer); !t.IsZero() && t.Before(grace) {
		return grace
	}
	return t
}

// notLonger is a stored time, from now no further away than when it was stored: the clock may have been set back.
func (u *subscriber) notLonger(t, kept time.Time) time.Time {
	if now := u.s.host.Now(); !t.IsZero() && !kept.IsZero() && now.Before(kept) {
		return now.Add(t.Sub(kept))
	}
	return t
}

// readCircuits is the inverse of what keep appends of circuits.
func (u *subscriber) readCircuits(b []byte, bySix bool) (ok bool) {
	var c circuit
	for i := range c.ids {
		if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
			return false
		}
		n := 2 + int(binary.BigEndian.Uint16(b))
		c.ids[i], b = string(b[2:n]), b[n:]
	}
	first := c.ids[0]
	if bySix {
		first = c.ids[1]
	}
	if first != "" {
		c.counted = countedCircuit(u.line.Port, first)
		u.circuit = &c
	}
	return len(b) == 0
}

func four(a netip.Addr) []byte {
	if !a.Is4() {
		return make([]byte, 4)
	}
	return a.AsSlice()
}

// at appends a time by today's wall clock: that of t may have been set back since.
func at(b []byte, now, t time.Time) []byte {
	if t.IsZero() {
		return binary.BigEndian.AppendUint32(b, 0)
	}
	return binary.BigEndian.AppendUint32(b, uint32(now.Round(0).Add(t.Sub(now)).Unix()))
}

// timeOf is at's inverse.
func timeOf(b []byte) (t time.Time) {
	if v := binary.BigEndian.Uint32(b); v != 0 {
		t = time.Unix(int64(v), 0)
	}
	return t
}

// restored is over how many parts of an interval their first probes are spread.
const restored = 1000

// Restore is access.FrontEnd's.
func (s *Server) Restore(session access.Session, r *access.Request, state []byte) access.Client {
	line := r.Line
	p, ok := s.c.PortOf(&line)
	if !ok || !p.V4 && !p.V6 || len(state) < keptLength || state[0] != keptVersion {
		return nil
	}
	now := s.host.Now()
	u := &subscriber{s: s, key: s.keyOf(&p, &line), line: line, since: now, session: session}
	flags, kept := state[1], timeOf(state[keptTime:])
	if s.subscribers[u.key] != nil || !u.readCircuits(state[keptTime+4:], flags&keptBySix != 0) {
		return nil
	}
	f := access.Families{V4: flags&keptV4 != 0, V6: flags&keptV6 != 0, Delegated: flags&keptDelegated != 0}
	u.passing, u.wants, u.asked, u.again = f, f, f, now
	u.slaac, u.static, u.four.bound = flags&keptSLAAC != 0, flags&keptStatic != 0, flags&keptBound != 0
	u.iid = state[2]
	b := state[3:]
	u.four.expires = u.soon(u.notLonger(timeOf(b), kept))
	lent := loan4{held: u.notLonger(timeOf(b[4:]), kept)} // renew stays zero: a proxy asks at the next renewal
	v6{u}.readLeases(b[8:], kept)
	b = b[8+keptLeases:]
	if id := binary.BigEndian.Uint64(b); id != 0 {
		u.peer = netip.AddrFrom16([16]byte(append(slices.Clone(state[keptUpper:keptTime]), b[:8]...)))
	}
	if a := address4(b[8:12]); a.IsValid() {
		lent.server = netip.AddrPortFrom(a, binary.BigEndian.Uint16(b[12:]))
	}
	if lent.id = address4(b[14:18]); lent != (loan4{}) {
		u.four.lent = &lent
	}
	if f.V6 || f.Delegated {
		u.ra = now.Add(s.c.RA.Interval)
	}
	// Not all at once.
	u.probe = now.Add(s.c.IPoE.KeepAlive.Interval * time.Duration(len(s.subscribers)%restored) / restored)
	s.add(u)
	u.learn(r)
	u.sleep()
	return u
}
