// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"

	"isthmus/api"
)

// NAT is NAT44 of an instance's subscribers.
type NAT struct {
	At        `yaml:""`
	Addresses []Prefix    `yaml:"addresses" req:"true" maxlen:"16" doc:"External IPv4 addresses, routed to us."`
	Inside    []Prefix    `yaml:"inside" maxlen:"8" doc:"Who is translated; empty: the IPv4 pools."`
	Mode      string      `yaml:"mode" default:"blocks" enum:"blocks|deterministic" doc:"Blocks of ports on demand, or by arithmetic (RFC 7422)."`
	Ports     PortRange   `yaml:"ports" default:"1024-65535" doc:"External ports. TCP, UDP and ICMP share them."`
	Block     uint16      `yaml:"block" default:"512" min:"16" max:"4096" doc:"Ports of a block, a power of two."`
	Blocks    uint16      `yaml:"blocks" max:"64" doc:"Most blocks of a subscriber; 0: four, deterministic one."`
	Mappings  uint32      `yaml:"mappings" doc:"Most mappings, evenly among the workers; 0: one a port."`
	Timeouts  NATTimeouts `yaml:"timeouts" doc:"Seconds that a mapping lives without use."`
	Pairs     NATPairs    `yaml:"pairs" doc:"Protocols without ports, by pairs of addresses. Absent: dropped."`
}

// NATPairs: what has no ports is translated by its external and its remote address.
type NATPairs struct {
	At           `yaml:""`
	Protocols    []string `yaml:"protocols" req:"true" maxlen:"3" enum:"gre|esp|6in4" doc:"Which. GRE of PPTP by its call ids, ESP by its SPIs."`
	Most         uint32   `yaml:"most" default:"4096" min:"1" max:"65536" doc:"Most pairs, evenly among the workers."`
	OfSubscriber uint32   `yaml:"of_subscriber" default:"16" min:"1" max:"1024" doc:"Most pairs of a subscriber."`
	Timeout      uint32   `yaml:"timeout" default:"300" min:"60" max:"604800" doc:"Seconds that one lives without use."`
}

// NATTimeouts: no shorter ones than the RFCs allow.
type NATTimeouts struct {
	At            `yaml:""`
	UDP           uint32 `yaml:"udp" default:"300" min:"120" max:"604800" doc:"UDP (RFC 4787 REQ-5)."`
	TCP           uint32 `yaml:"tcp" default:"7440" min:"7440" max:"604800" doc:"TCP connections (RFC 5382 REQ-5)."`
	TCPTransitory uint32 `yaml:"tcp_transitory" default:"240" min:"240" max:"604800" doc:"TCP, begin and end."`
	ICMP          uint32 `yaml:"icmp" default:"60" min:"60" max:"604800" doc:"ICMP queries (RFC 5508 REQ-2)."`
	Hold          uint32 `yaml:"hold" default:"120" max:"604800" doc:"Rest of a block given back (RFC 6888 REQ-8)."`
}

// Enabled: the instance has NAT44.
func (n *NAT) Enabled() bool { return len(n.Addresses) > 0 }

// NATLog is where blocks are logged that subscribers get and give back.
type NATLog struct {
	At     `yaml:""`
	Syslog []Collector `yaml:"syslog" maxlen:"4" doc:"Hosts that get a record of each block: RFC 5424, UDP port 514."`
	IPFIX  []Collector `yaml:"ipfix" maxlen:"4" doc:"Collectors that get a record of each block: RFC 8158, UDP port 4739."`
}

// Collector is an address, with a port where it is not the usual one.
type Collector struct{ Socket }

func (c *Collector) UnmarshalText(b []byte) error {
	if err := c.Socket.UnmarshalText(b); err != nil {
		return err
	}
	var a Address
	if a.UnmarshalText(b) == nil {
		c.AddrPort = netip.AddrPortFrom(a.Addr, 0)
	}
	return nil
}

// Or is where to send to, the usual port filled in.
func (c Collector) Or(port uint16) netip.AddrPort {
	if c.Port() == 0 {
		return netip.AddrPortFrom(c.Addr(), port)
	}
	return c.AddrPort
}

const maxNATPorts = 1 << 26 // of all addresses: the data plane's limit

func size(all []Prefix) uint64 {
	n := uint64(0)
	for _, p := range all {
		n += 1 << (32 - p.Bits())
	}
	return n
}

// check fills in what the file leaves out, too.
func (n *NAT) check(k *checker, in *Instance) {
	if !n.Enabled() {
		return
	}
	if in.Lookup != "destination" {
		k.fail(n.At, "addresses", "given with lookup %s: the way back needs destination", in.Lookup)
	}
	if len(n.Inside) == 0 {
		for _, p := range in.Pools {
			if p.Addr().Is4() && len(n.Inside) < api.NATInside {
				n.Inside = append(n.Inside, p)
			}
		}
	}
	if len(n.Inside) == 0 {
		k.fail(n.At, "inside", "missing: the instance has no IPv4 pool")
	}
	if !n.prefixes(k, "inside", n.Inside) || !n.prefixes(k, "addresses", n.Addresses) {
		return
	}
	for _, p := range n.Addresses {
		k.notOurs(n.At, "addresses", in, p)
		for _, other := range n.Inside {
			if other.Overlaps(p.Prefix) {
				k.fail(n.At, "addresses", "%s overlaps %s, where subscribers are", p, other)
			}
		}
	}
	n.blocks(k)
}

func (n *NAT) prefixes(k *checker, key string, all []Prefix) bool {
	good := true
	for i, p := range all {
		switch {
		case !p.Addr().Is4() || p.Bits() < 8:
			k.fail(n.At, key, "%s is no IPv4 prefix of 8 bits or more", p)
		case !k.network(n.At, key, p):
		default:
			for _, other := range all[:i] {
				if other.Overlaps(p.Prefix) {
					k.fail(n.At, key, "%s overlaps %s", p, other)
					good = false
				}
			}
			continue
		}
		good = false
	}
	return good
}

func (n *NAT) blocks(k *checker) {
	ports := uint64(n.Ports.High) - uint64(n.Ports.Low) + 1
	switch {
	case n.Block&(n.Block-1) != 0:
		k.fail(n.At, "block", "%d is no power of two", n.Block)
		return
	case n.Ports.Low == 0 || ports < uint64(n.Block):
		k.fail(n.At, "ports", "%s holds port 0, or no block of %d", n.Ports, n.Block)
		return
	case size(n.Addresses)*ports > maxNATPorts:
		k.fail(n.At, "addresses", "%d addresses have more than %d ports", size(n.Addresses), maxNATPorts)
	}
	blocks := size(n.Addresses) * (ports / uint64(n.Block))
	if n.Mode == "deterministic" {
		if n.Blocks > 1 {
			k.fail(n.At, "blocks", "deterministic: a subscriber has one block")
		}
		if inside := size(n.Inside); inside > blocks {
			k.fail(n.At, "inside", "%d subscribers, but blocks for %d", inside, blocks)
		}
	}
	if n.Blocks == 0 {
		n.Blocks = 4
		if n.Mode == "deterministic" {
			n.Blocks = 1
		}
	}
}
