// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"net/netip"

	"isthmus/controlplane/access"
)

// leases: there is a lease. It expires, and with the last one the session ends.
func (u *subscriber) leases() bool {
	return !u.four.expires.IsZero() || v6{u}.bound(address) || v6{u}.bound(prefix)
}

// leaseless: packets of an IPoE subscriber pass without a lease that could expire, so it must answer probes.
func (u *subscriber) leaseless() bool {
	return u.session != nil && u.ppp == nil && u.passing != (access.Families{}) && !u.leases()
}

// alive notes a sign of life.
func (u *subscriber) alive() {
	u.probe, u.unanswered = u.s.host.Now().Add(u.s.c.IPoE.KeepAlive.Interval), 0
}

// ask sends a probe. False: the subscriber has not answered for too long, and is ended.
func (u *subscriber) ask() bool {
	u.probe = u.s.host.Now().Add(u.s.c.IPoE.KeepAlive.Interval)
	ours := u.s.host.Port(u.line.Port)
	switch {
	case !ours.LinkLocal.IsValid(): // the data plane is away: no probe
		return true
	case u.unanswered >= u.s.c.IPoE.KeepAlive.Count:
		u.s.count(silent)
		u.end(access.LostCarrier)
		return false
	}
	u.unanswered++
	if u.passing.V4 {
		v4{u}.poll(&ours)
	}
	if u.passing.V6 || u.passing.Delegated {
		v6{u}.poll(&ours)
	}
	return true
}

// poll is a unicast poll (RFC 1122 §2.3.2.1).
func (u v4) poll(ours *access.PortAddresses) {
	a := u.session.Grant().Addresses
	from := a.Gateway
	if !from.IsValid() {
		from = u.s.c.Address.Addr
	}
	b := append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, ours.MAC[:]...)
	b = append(append(b, four(from)...), u.line.MAC[:]...)
	b = append(b, four(a.IPv4)...)
	u.s.host.Send(&access.Frame{Line: u.line, EtherType: ethernetARP, Payload: b})
}

// poll is neighbour unreachability detection (RFC 4861 §7.3.3). A host without a known address made it of its MAC
// address (RFC 4291 appendix A).
func (u v6) poll(ours *access.PortAddresses) {
	to, m := u.peer, u.line.MAC
	if !to.IsValid() {
		to = netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe,
			13: m[3], 14: m[4], 15: m[5]})
	}
	b := binary.BigEndian.AppendUint64(nil, neighbourSolicitation<<56)
	b = append(append(b, to.AsSlice()...), 1, 1)
	d := datagram{from: ours.LinkLocal, to: to, protocol: protocolICMP, body: append(b, ours.MAC[:]...)}
	u.transmit(d.packet())
}
