// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/hex"
	"net/netip"
	"time"

	"isthmus/controlplane/config"
)

// FromConfig is what the configuration, which was checked, says, but for PortOf. machine is what makes our DUID, if the
// configuration has none: it must stay the same (RFC 8415 §11).
func FromConfig(a *config.Access, machine string) Config {
	d, r := &a.DHCP, &a.RA
	s := func(v uint32) time.Duration { return time.Duration(v) * time.Second }
	c := DefaultConfig()
	c.Address, c.Lease, c.Preferred, c.Valid = d.Address.Addr, s(d.Lease), s(d.Preferred), s(d.Valid)
	c.Address6 = d.Address6.Addr
	c.RapidCommit, c.Authoritative, c.Domain, c.MTU = d.RapidCommit, d.Authoritative, d.Domain, d.MTU
	for _, one := range d.Routes {
		c.Routes = append(c.Routes, Route{one.Prefix.Prefix, one.Via.Addr})
	}
	c.DUID, _ = hex.DecodeString(d.DUID)
	if len(c.DUID) == 0 {
		c.DUID = DUID(machine)
	}
	c.RA = RA{Interval: s(r.Interval), Lifetime: s(r.Lifetime),
		Managed: r.Managed, Other: r.Other, Autonomous: r.SLAAC,
		Valid: s(r.Valid), Preferred: s(r.Preferred)}
	k := &a.IPoE.KeepAlive
	c.Probes = Probes{s(uint32(k.Interval)), k.Count}
	l := &d.Limits
	c.Limits.Subscribers = int(l.Subscribers)
	c.Limits.PerVLAN, c.Limits.PerCircuit, c.Limits.Waiting = int(l.PerVLAN), int(l.PerCircuit), int(l.Waiting)
	c.Limits.Declines, c.Limits.Retry = int(l.Declines), s(l.Retry)
	c.Limits.Penalty, c.Limits.Offer = s(l.Penalty), s(l.Offer)
	return c
}

// Servers are the upstream servers of ports that relay, DHCPv4's and DHCPv6's.
func Servers(d *config.AccessDHCP) (four, six []netip.AddrPort) {
	for _, one := range d.Servers {
		four = append(four, one.Or(serverPort4))
	}
	for _, one := range d.Servers6 {
		six = append(six, one.Or(serverPort6))
	}
	return four, six
}
