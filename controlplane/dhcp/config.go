// SPDX-License-Identifier: Apache-2.0

// Package dhcp is the front end of IPoE subscribers: DHCPv4 server, relay and proxy, DHCPv6 server and relay, router
// advertisements, and sign-in by a first packet. It has no I/O and no goroutine: frames, time and calls come from
// access.Host's loop.
package dhcp

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
)

// Port is how lines of an access port, or of some of its VLANs, are served.
type Port struct {
	V4, V6      bool
	OneToOne    bool // one subscriber a VLAN, with any MAC; else one a MAC
	Replace     bool // on a 1:1 line a new MAC replaces the old; else it waits until that has left
	Trusted     bool // what access nodes put into frames (option 82, relay messages of RFC 6221) is believed
	Moves       bool // a message from another circuit signs in again; else it waits until the old session has ended
	FirstPacket bool // a packet from an unknown sender signs it in
	Upstream    []netip.AddrPort
	Upstream6   []netip.AddrPort // DHCPv6 is relayed to them
	Proxy       bool             // with Upstream: the subscriber sees us as its server, and shorter leases
}

// Config of the front end: sections of the configuration, and other options.
type Config struct {
	config.AccessDHCP
	RA       config.AccessRA
	IPoE     config.AccessIPoE
	ServerID []byte // our DUID
	// PortOf is the port that serves a line; false: none.
	PortOf func(l *access.Line) (Port, bool)
}

// ConfigOf is all but PortOf. Without a configured DUID ours is made of machine, which must stay the same (RFC 8415
// §11).
func ConfigOf(a *config.Access, machine string) Config {
	c := Config{AccessDHCP: a.DHCP, RA: a.RA, IPoE: a.IPoE}
	if c.ServerID, _ = hex.DecodeString(a.DHCP.DUID); len(c.ServerID) == 0 {
		c.ServerID = DUID(machine)
	}
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

// DUID makes a server's identifier of this machine's unique id (RFC 6355: type 4, a UUID).
func DUID(machine string) []byte {
	sum := sha256.Sum256([]byte("isthmus dhcpv6 " + machine))
	d := append([]byte{0, 4}, sum[:16]...)
	d[2+6] = d[2+6]&0x0f | 0x80 // RFC 9562 §5.8: version 8, made by hashing
	d[2+8] = d[2+8]&0x3f | 0x80
	return d
}
