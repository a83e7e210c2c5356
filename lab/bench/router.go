// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"

	"isthmus/lab/tester"
)

// The plain router of RFC 2544: two interfaces, static neighbours, 256 networks of each family behind each (RFC 2544
// §12), traffic in both directions. The tester's ports keep the names access and core; the router has two equal sides.

const (
	routerNetworks = 256
	routerHosts    = 16 // sources in each direction
	routerMTU      = 1500
	jumboMTU       = 9100
	jumboBytes     = 9000
	// Smallest frame with IPv6, UDP and the tester's 16 bytes: 14 + 40 + 8 + 16 and FCS (RFC 5180 §5.1 knows
	// the difficulty).
	leastIPv6 = 82
)

// routerSizes of RFC 2544 §9.1, and IMIX at the end (0).
var routerSizes = []int{64, 128, 256, 512, 1024, 1280, 1518, 0}

// side is one side of the router.
type side struct {
	port, mac, peer string // the router's address on the link, the next router's
	net4, net6      int    // 10.NET4.x.0/24, 2001:db8:NET6:x::/64 lie behind it
	ip4, ip6        string // the router's; the next router's end in 2
}

func (s *side) next4() string { return strings.TrimSuffix(s.ip4, "1") + "2" }
func (s *side) next6() string { return strings.TrimSuffix(s.ip6, "1") + "2" }

func routerSides() [2]side {
	return [2]side{
		{"access", accessMAC, AccessFarMAC, 1, 1, "192.0.2.1", "2001:db8:fa::1"},
		{"core", coreMAC, peerMAC, 2, 2, "198.51.100.1", "2001:db8:fb::1"},
	}
}

// sides writes the interfaces of both sides and their next routers.
func (b *writer) sides(sides [2]side) {
	p := b.line
	p("interfaces:")
	for _, s := range sides {
		p("  - {name: %s0, port: %s, addresses: [%s/24, '%s/64']}", s.port, s.port, s.ip4, s.ip6)
	}
	p("neighbours:")
	for _, s := range sides {
		p("  - {interface: %s0, address: %s, mac: '%s'}", s.port, s.next4(), s.peer)
		p("  - {interface: %s0, address: '%s', mac: '%s'}", s.port, s.next6(), s.peer)
	}
}

// routerConfig writes the configuration.
func routerConfig(opt *Options, mtu int, wires [2]*wire) []byte {
	b := &writer{}
	p := b.line
	p("engine:")
	p("  workers: %d", opt.Workers)
	if len(opt.CPUs) > 0 {
		p("  cpus: [%s]", joinInts(opt.CPUs))
	} else {
		p("  idle_sleep: true")
	}
	p("  huge_pages: %s", hugeWord(opt))
	p("  limits: {sessions: 64, flows: 1024}")
	b.buffers(mtu)
	p("control: {metrics: ''}")
	sides := routerSides()
	p("ports:")
	for i, s := range sides {
		p("  - {name: %s, %s, role: core, mtu: %d, mac: '%s'}", s.port, wires[i].gateway, mtu, s.mac)
	}
	b.sides(sides)
	p("routes:")
	for _, s := range sides {
		for i := range routerNetworks {
			p("  - {prefix: 10.%d.%d.0/24, via: %s}", s.net4, i, s.next4())
			p("  - {prefix: '2001:db8:%x:%x::/64', via: '%s'}", s.net6, i, s.next6())
		}
	}
	return []byte(b.String())
}

// routed is a packet from one side to the other as it enters (hops left: 64) or leaves (63, and the other link's
// addresses).
func routed(from, to *side, v6, received bool) tester.Stack {
	ethernet, hops := tester.Fields{"source": from.peer, "destination": from.mac}, 64
	if received {
		ethernet, hops = tester.Fields{"source": to.mac, "destination": to.peer}, 63
	}
	ip := tester.Layer{Name: "ipv4", Fields: tester.Fields{
		"source": tester.Count{Base: fmt.Sprintf("10.%d.0.7", from.net4), Step: 256, Each: routerNetworks,
			Count: routerHosts},
		"destination": tester.Count{Base: fmt.Sprintf("10.%d.0.9", to.net4), Step: 256, Count: routerNetworks},
		"ttl":         hops,
	}}
	if v6 {
		const network = "0:0:0:1::"
		ip = tester.Layer{Name: "ipv6", Fields: tester.Fields{
			"source": tester.Count{Base: fmt.Sprintf("2001:db8:%x::7", from.net6), Step: network,
				Each: routerNetworks, Count: routerHosts},
			"destination": tester.Count{Base: fmt.Sprintf("2001:db8:%x::9", to.net6), Step: network,
				Count: routerNetworks},
			"hop_limit": hops,
		}}
	}
	return tester.Stack{
		{Name: "ethernet", Fields: ethernet}, ip,
		{Name: "udp", Fields: tester.Fields{"source": userPort, "destination": 7}}, // RFC 2544 §C.2.6.4: the echo port
	}
}

// routerStreams sends frames of the given sizes both ways, IPv4 and, where they are large enough, IPv6 in equal parts.
func routerStreams(size tester.Sizes, v6 bool) []tester.Stream {
	var list []tester.Stream
	sides := routerSides()
	for i := range sides {
		from, to := &sides[i], &sides[1-i]
		for _, six := range []bool{false, true} {
			if six && !v6 {
				continue
			}
			name := from.port + "-ipv4"
			if six {
				name = from.port + "-ipv6"
			}
			list = append(list, tester.Stream{
				Name: name, Port: from.port, Sink: to.port, Share: 1, Flows: routerNetworks * routerHosts,
				Order: "random",
				Seed:  len(list) + 1, Size: size, Send: routed(from, to, six, false),
				Receive: routed(from, to, six, true),
			})
		}
	}
	return list
}

func routerPoint(size int) point {
	if size == 0 {
		mix := tester.Sizes{64: 7, 594: 4, 1518: 1}
		streams := routerStreams(mix, true)
		for i := range streams {
			if strings.HasSuffix(streams[i].Name, "ipv6") {
				streams[i].Size = tester.Sizes{leastIPv6: 7, 594: 4, 1518: 1}
			}
		}
		return point{
			name: "IMIX 7:4:1", streams: streams,
			note: fmt.Sprintf("64, 594 and 1518 B; IPv6 has %d B in place of 64", leastIPv6),
		}
	}
	pt := point{name: fmt.Sprintf("%d B", size), bytes: size,
		streams: routerStreams(tester.Size(size), size >= leastIPv6)}
	if size < leastIPv6 {
		pt.note = fmt.Sprintf("IPv4 only: a test packet of IPv6 has at least %d B", leastIPv6)
	}
	return pt
}

// routerScene measures a router at several sizes.
func routerScene(opt Options, list []int) (*scene, error) {
	if opt.Size != 0 {
		if opt.Size < 64 || opt.Size > 1518 {
			return nil, fmt.Errorf("%d B: an Ethernet frame has 64 to 1518", opt.Size)
		}
		list = []int{opt.Size}
	}
	s := newRouter(opt, routerMTU)
	s.title = "router, IPv4 and IPv6, both ways"
	for _, size := range list {
		s.points = append(s.points, routerPoint(size))
	}
	return s, nil
}

func jumboScene(opt Options) (*scene, error) {
	size := jumboBytes
	if opt.Size != 0 {
		size = opt.Size
	}
	if size < 1519 || size > jumboMTU+18 {
		return nil, fmt.Errorf("%d B: a jumbo frame has 1519 to %d here", size, jumboMTU+18)
	}
	s := newRouter(opt, jumboMTU)
	s.title = fmt.Sprintf("router, IPv4 and IPv6, frames of %d B, both ways", size)
	s.points = []point{routerPoint(size)}
	return s, nil
}

func newRouter(opt Options, mtu int) *scene {
	s := &scene{flows: 4 * routerNetworks * routerHosts, memoryMB: 1024, mtu: mtu}
	s.config = func(access, core *wire) []byte { return routerConfig(&opt, mtu, [2]*wire{access, core}) }
	s.ports = func(access, core *wire) []tester.Port {
		sides := routerSides()
		return []tester.Port{
			farPort(access, "access", sides[0].peer, mtu+100, sides[0].next4(), sides[0].next6()),
			farPort(core, "core", sides[1].peer, mtu+100, sides[1].next4(), sides[1].next6()),
		}
	}
	return s
}
