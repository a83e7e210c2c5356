// SPDX-License-Identifier: Apache-2.0

// Package dhcp is the front end of IPoE subscribers: DHCPv4 server, relay and proxy, DHCPv6 server and relay, router
// advertisements, and sign-in by a first packet. It does no I/O and has no goroutine: frames and time come from
// access.Host, and every call from its loop.
package dhcp

import (
	"crypto/sha256"
	"net/netip"
	"time"

	"isthmus/controlplane/access"
)

// Port is how lines of an access port, or of some of its VLANs, are served.
type Port struct {
	V4, V6      bool
	OneToOne    bool // one subscriber a VLAN, whatever its MAC; else each MAC is one
	Replace     bool // on a 1:1 line a new MAC takes the place of the old: else it waits until that has left
	Trusted     bool // what access nodes put into frames (option 82, relay messages of RFC 6221) is believed
	Moves       bool // who comes by another circuit signs in anew: else it waits until that of the old has left
	FirstPacket bool // a packet of nobody signs its sender in
	Upstream    []netip.AddrPort
	Upstream6   []netip.AddrPort // DHCPv6 is relayed to them
	Proxy       bool             // with Upstream: the subscriber sees us as its server, and shorter leases
}

// Config of the front end. Zero durations are not filled in: DefaultConfig has them.
type Config struct {
	// PortOf is what a line is served by; false: nothing.
	PortOf        func(l *access.Line) (Port, bool)
	Address       netip.Addr    // ours to upstream servers (giaddr), and to subscribers whose pool has no gateway
	Address6      netip.Addr    // ours to upstream DHCPv6 servers (link-address)
	Lease         time.Duration // DHCPv4; with Proxy the most that subscribers get
	Preferred     time.Duration // DHCPv6
	Valid         time.Duration
	RapidCommit   bool // RFC 4039, RFC 8415 §18.3.1
	Authoritative bool // addresses that are not the subscriber's are denied (DHCPNAK), not passed over in silence
	Domain        string
	Routes        []Route // RFC 3442, beside the default route
	MTU           uint16  // option 26 and router advertisements; 0: not said
	DUID          []byte
	RA            RA
	Probes        Probes
	Limits        Limits
}

// Route of DHCPv4's option 121. An invalid Via is the gateway.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

// RA is what router advertisements say (RFC 4861 §6.2.1).
type RA struct {
	Interval   time.Duration // 0: only when solicited
	Lifetime   time.Duration // of the router; at most 9000 s
	Managed    bool          // addresses by DHCPv6
	Other      bool          // DNS by DHCPv6
	Autonomous bool          // addresses out of the prefix (SLAAC)
	Valid      time.Duration // of the prefix
	Preferred  time.Duration
}

// Probes ask homes that no lease ends whether they are there: those with an address by SLAAC, and those that signed in
// by a packet. Neither is zero.
type Probes struct {
	Interval time.Duration // from one to the next
	Count    uint8         // unanswered ones after which the session ends
}

// Limits bound what lines can make us hold.
type Limits struct {
	Subscribers int           // all
	PerVLAN     int           // MACs of a VLAN that are or want to be somebody
	PerCircuit  int           // of a trusted circuit id
	Waiting     int           // sign-ins under way
	Declines    int           // DHCPDECLINEs of a line, after which it waits for Penalty
	Retry       time.Duration // from a refusal to the next sign-in
	Penalty     time.Duration
	Offer       time.Duration // how long an offered address is kept
}

// DefaultConfig has no ports.
func DefaultConfig() Config {
	return Config{PortOf: func(*access.Line) (Port, bool) { return Port{}, false },
		Lease: time.Hour, Preferred: time.Hour, Valid: 2 * time.Hour,
		RapidCommit: true, Authoritative: true, DUID: DUID("isthmus"),
		RA: RA{Interval: 10 * time.Minute, Lifetime: 30 * time.Minute, Other: true, Autonomous: true,
			Valid: 2 * time.Hour, Preferred: time.Hour},
		Probes: Probes{Interval: 2 * time.Minute, Count: 3},
		Limits: Limits{Subscribers: 65536, PerVLAN: 4096, PerCircuit: 16, Waiting: 8192, Declines: 3,
			Retry: 10 * time.Second, Penalty: 5 * time.Minute, Offer: time.Minute}}
}

// DUID makes a server's identifier of what tells this machine from others (RFC 6355: type 4, a UUID).
func DUID(machine string) []byte {
	sum := sha256.Sum256([]byte("isthmus dhcpv6 " + machine))
	d := append([]byte{0, 4}, sum[:16]...)
	d[2+6] = d[2+6]&0x0f | 0x80 // RFC 9562 §5.8: version 8, made by hashing
	d[2+8] = d[2+8]&0x3f | 0x80
	return d
}
