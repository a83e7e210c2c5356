// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

// RoutingProfiles measure forwarding by routes alone, with synth ports. The smallest frames that hold the tester's tag.
var RoutingProfiles = []Profile{
	{Name: "router", Title: "IPv4 by --routes routes, half behind each port, random destinations, 64 B",
		Uplink: 64, Downlink: 64, UplinkShare: pattern, Reading: "1:1"},
	{Name: "router6", Title: "the same with IPv6, 82 B",
		Uplink: leastIPv6, Downlink: leastIPv6, UplinkShare: pattern, Reading: "1:1"},
}

const (
	maxRoutes  = 1 << 21
	routeHosts = 1024 // destinations at least
	routeBatch = 8192 // routes of a transaction
)

// routing is a plain router whose routes lead half to each side.
type routing struct {
	six    bool
	routes int // behind each port
	opt    *Options
	huge   string
}

func newRouting(opt Options, huge string) (*routing, error) {
	if opt.Routes < 2 || opt.Routes > maxRoutes {
		return nil, fmt.Errorf("%d routes: 2 to %d are possible", opt.Routes, maxRoutes)
	}
	if len(opt.CPUs) > 0 && len(opt.CPUs) != opt.Workers {
		return nil, fmt.Errorf("%d CPUs for %d workers", len(opt.CPUs), opt.Workers)
	}
	return &routing{six: opt.Profile == "router6", routes: opt.Routes / 2, opt: &opt, huge: huge}, nil
}

func (l *routing) yaml() []byte {
	b := &writer{}
	p := b.line
	p("engine:")
	p("  workers: %d", l.opt.Workers)
	if len(l.opt.CPUs) > 0 {
		p("  cpus: [%s]", joinInts(l.opt.CPUs))
	}
	p("  huge_pages: %s", l.huge)
	p("  limits: {sessions: 64, flows: 1024, routes: %d}", 2*l.routes+64)
	p("control: {metrics: ''}")
	p("ports:")
	for _, line := range (&mobileLayout{}).portLines() {
		p("  - %s", line)
	}
	b.sides(routerSides())
	return []byte(b.String())
}

// network is the number-th network behind a side: a /24 from 16.0.0.0 or 48.0.0.0 on, a /48 from 2400:: or 2800:: on.
func (l *routing) network(side, number int) netip.Prefix {
	if l.six {
		var a [16]byte
		a[0] = byte(0x24 + 4*side)
		binary.BigEndian.PutUint32(a[2:], uint32(number))
		return netip.PrefixFrom(netip.AddrFrom16(a), 48)
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], uint32(16+32*side)<<24+uint32(number)<<8)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}

func (l *routing) load(ctx context.Context, d *dataPlane) error {
	for side, s := range routerSides() {
		next := s.next4()
		if l.six {
			next = s.next6()
		}
		for i := 0; i < l.routes; i += routeBatch {
			var list []dp.Change
			for n := i; n < min(i+routeBatch, l.routes); n++ {
				p := l.network(side, n)
				body := api.Route{Prefix: api.FromPrefix(p), Via: address(next)}
				c := dp.Change{Kind: api.KindRoute, Key: p.String(), Body: api.Body(&body)}
				list = append(list, c)
			}
			if err := d.Apply(ctx, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// memoryMB: beside the preset 500 bytes a route.
func (l *routing) memoryMB() int { return 1024 + 2*l.routes*500>>20 }

func (l *routing) describe(r *Result) {
	r.Flows, r.CPUs = l.flows(), l.opt.CPUs
}

func (l *routing) flows() int { return (routeHosts + l.routes - 1) / l.routes * l.routes }

// frame is a packet to the first network behind a side; what varies is the network, and the host where networks are
// few.
func (l *routing) frame(from, to *side, toSide, size int, received bool) (*mobileFrame, error) {
	eth := &layers.Ethernet{SrcMAC: hw(from.peer), DstMAC: hw(from.mac), EthernetType: layers.EthernetTypeIPv4}
	hops := uint8(64)
	if received {
		eth.SrcMAC, eth.DstMAC, hops = hw(to.mac), hw(to.peer), 63
	}
	destination := l.network(toSide, 0).Addr().Next()
	udp := &layers.UDP{SrcPort: userPort, DstPort: 7}
	f := &mobileFrame{outerIP: -1, innerIP: 14, header: 14 + 20 + 8}
	at := 14 + 16
	v4 := &layers.IPv4{Version: 4, IHL: 5, TTL: hops, Protocol: layers.IPProtocolUDP,
		SrcIP: ip(from.next4()), DstIP: destination.AsSlice()}
	list := []gopacket.SerializableLayer{eth, v4}
	n := uint32(l.routes)
	f.vary = []vary{{offset: at, width: 3, divide: 1, modulo: n}, {offset: at + 3, width: 1, divide: n}}
	if l.six {
		eth.EthernetType = layers.EthernetTypeIPv6
		f.innerIP, f.header, at = -1, 14+40+8, 14+24
		list[1] = &layers.IPv6{Version: 6, HopLimit: hops, NextHeader: layers.IPProtocolUDP,
			SrcIP: ip(from.next6()), DstIP: destination.AsSlice()}
		f.vary[0].offset, f.vary[0].width = at+2, 4
		f.vary[1].offset, f.vary[1].width = at+14, 2
	}
	b, err := serialize(append(list, udp, gopacket.Payload(make([]byte, size-f.header)))...)
	f.bytes = b
	return f, err
}

// streams go both ways, through the router and, on the cross-connected ports, for the floor.
func (l *routing) streams(p Profile, share, checkEvery int) ([]*stream, error) {
	var list []*stream
	sides := routerSides()
	for _, floor := range []bool{false, true} {
		for from := range sides {
			s := &stream{name: []string{"up", "down"}[from], uplink: from == 0, floor: floor}
			prefix := ""
			if floor {
				s.name, prefix = s.name+"-floor", "floor-"
			}
			size := p.Uplink - fcs
			in, err := l.frame(&sides[from], &sides[1-from], 1-from, size, false)
			if err != nil {
				return nil, err
			}
			out, err := l.frame(&sides[from], &sides[1-from], 1-from, size, true)
			if err != nil {
				return nil, err
			}
			s.body = api.Synth{
				Flows: uint32(l.flows()), CheckEvery: uint32(checkEvery), Sizes: 1, RandomOrder: 1,
				Size: [8]uint16{uint16(size)}, Share: uint32(share), Seed: uint64(len(list) + 1),
				WorkerModulo: uint32(l.opt.steered()), WorkerDivide: 1,
			}
			if from == 1 {
				s.body.Share = pattern
			}
			copy(s.body.Port[:], prefix+sides[from].port)
			copy(s.body.Sink[:], prefix+sides[1-from].port)
			if s.body.In, err = in.template(true); err != nil {
				return nil, err
			}
			if s.body.Out, err = out.template(true); err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	return list, nil
}
