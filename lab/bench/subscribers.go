// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"maps"
	"slices"

	"isthmus/lab/tester"
)

// The access gateway's streams for the tester. Expected packets are built from the layout, as from the configuration:
// the gateway is not asked.

// Echo: requests from some subscribers to the server through the gateway, and the server's answers.
const (
	echoRate  = 1000 // per second
	echoBytes = 128
	echoFlows = 64
	echoUp    = "ping" // requests
	echoDown  = "pong" // answers; the latency of this stream is the round trip
)

// along is a value that grows by one from subscriber to subscriber.
func along(base any, flows int) tester.Count { return tester.Count{Base: base, Each: flows} }

// userStack is the subscriber's own packet: UDP between its address and the server.
func userStack(h half, uplink bool, flows int) tester.Stack {
	user, server := along(ue(h.first), flows), any(serverIP)
	service := tester.Count{Base: basePort, Count: flows}
	ipv4, udp := tester.Fields{"ttl": 63, "df": 1}, tester.Fields{}
	if uplink {
		ipv4["source"], ipv4["destination"] = user, server
		udp["source"], udp["destination"] = userPort, service
	} else {
		ipv4["source"], ipv4["destination"] = server, user
		udp["source"], udp["destination"] = service, userPort
	}
	return tester.Stack{{Name: "ipv4", Fields: ipv4}, {Name: "udp", Fields: udp}}
}

// echoStack is an ICMP echo request (uplink) or its answer.
func echoStack(h half, uplink bool) tester.Stack {
	user, server := along(ue(h.first), 1), any(serverIP)
	ipv4, icmp := tester.Fields{"ttl": 63, "df": 1, "source": user, "destination": server},
		tester.Fields{"type": 8, "id": 7}
	if !uplink {
		ipv4["source"], ipv4["destination"] = server, user
		icmp["type"] = 0
	}
	return tester.Stack{{Name: "ipv4", Fields: ipv4}, {Name: "icmp", Fields: icmp}}
}

// accessStack is a subscriber's packet as it is on the access side. IEEE 802.1ad, RFC 2516.
func accessStack(h half, uplink bool, flows int, user tester.Stack) tester.Stack {
	home := along(mac(homeMAC, h.first), flows)
	ethernet := tester.Fields{"source": home, "destination": accessMAC}
	if !uplink {
		ethernet["source"], ethernet["destination"] = accessMAC, home
	}
	s := tester.Stack{
		{Name: "ethernet", Fields: ethernet},
		{Name: "vlan", Fields: tester.Fields{"tpid": 0x88a8, "id": tester.Count{Base: h.sTag, Each: flows * perSTag}}},
		{Name: "vlan", Fields: tester.Fields{"id": tester.Count{Base: 1, Each: flows, Count: perSTag}}},
	}
	if h.pppoe {
		s = append(s, tester.Layer{Name: "pppoe", Fields: tester.Fields{"session": along(1, flows)}})
	}
	return append(s, user...)
}

// coreStack is a subscriber's packet in its tunnel. TS 29.281, TS 38.415.
func coreStack(h half, uplink bool, flows int, user tester.Stack) tester.Stack {
	ethernet := tester.Fields{"source": coreMAC, "destination": peerMAC}
	outer := tester.Fields{"source": coreIP, "destination": upfIP, "ttl": 64, "id": "any"}
	teid := along(teidUp+h.first, flows)
	if !uplink {
		ethernet["source"], ethernet["destination"] = peerMAC, coreMAC
		outer = tester.Fields{"source": upfIP, "destination": coreIP, "ttl": 64}
		teid = along(teidDown+h.first, flows)
	}
	return append(tester.Stack{
		{Name: "ethernet", Fields: ethernet},
		{Name: "ipv4", Fields: outer},
		{Name: "udp", Fields: tester.Fields{"source": 2152, "destination": 2152}},
		{Name: "gtpu", Fields: tester.Fields{"teid": teid, "extensions": tester.PDUSession(uplink, qfi)}},
	}, user...)
}

// arriving is a stack of the access side as the tester's port shows it.
func (l *layout) arriving(s tester.Stack) tester.Stack {
	if !l.kernelTags {
		return s
	}
	s = slices.Clone(s)
	s[1].Fields = maps.Clone(s[1].Fields)
	s[1].Fields["tpid"] = 0x8100
	return s
}

// load is the traffic of each direction.
type load struct {
	uplink, downlink           tester.Sizes
	uplinkShare, downlinkShare int
}

// testerStreams are the layout's streams between the tester's ports PREFIXaccess and PREFIXcore. A share of 0 leaves a
// direction out.
func (l *layout) testerStreams(prefix string, send load) []tester.Stream {
	var list []tester.Stream
	for _, uplink := range []bool{true, false} {
		for _, h := range l.halves() {
			user := userStack(h, uplink, l.flows)
			s := tester.Stream{
				Name: prefix + h.name + "-down", Port: prefix + "core", Sink: prefix + "access",
				Share: send.downlinkShare,
				Flows: h.count * l.flows, Block: l.flows, Order: "random", Seed: len(list) + 1, Size: send.downlink,
			}
			core, access := coreStack(h, uplink, l.flows, user), accessStack(h, uplink, l.flows, user)
			s.Send, s.Receive = core, l.arriving(access)
			if uplink {
				s.Name, s.Port, s.Sink = prefix+h.name+"-up", s.Sink, s.Port
				s.Share, s.Size, s.Send, s.Receive = send.uplinkShare, send.uplink, access, core
			}
			if s.Share > 0 {
				list = append(list, s)
			}
		}
	}
	return list
}

// echoStreams are the echo requests and answers. They have expectations of their own, so they are no part of the
// loss goal.
func (l *layout) echoStreams(prefix string) []tester.Stream {
	h := l.halves()[1] // PPPoE, the longer way
	stream := func(name, port, sink string, send, receive tester.Stack) tester.Stream {
		return tester.Stream{
			Name: prefix + name, Port: prefix + port, Sink: prefix + sink, Flows: min(echoFlows, h.count),
			Order: "turn",
			Size:  tester.Size(echoBytes), Send: send, Receive: receive, Expect: &tester.Expect{Loss: "100%"},
		}
	}
	up, down := echoStack(h, true), echoStack(h, false)
	ping := stream(echoUp, "access", "core", accessStack(h, true, 1, up), coreStack(h, true, 1, up))
	pong := stream(echoDown, "core", "access", coreStack(h, false, 1, down), l.arriving(accessStack(h, false, 1, down)))
	ping.Rate, pong.Answers = tester.PPS(echoRate), prefix+echoUp
	return []tester.Stream{ping, pong}
}

// gatewayPorts are the lines of the gateway's ports at two links.
func gatewayPorts(access, core *wire) []string {
	return []string{
		fmt.Sprintf("{name: access, %s, role: access, mtu: 1500, mac: '%s'}", access.gateway, accessMAC),
		fmt.Sprintf("{name: core, %s, role: core, mtu: 1600, mac: '%s'}", core.gateway, coreMAC),
	}
}

// farPort is the tester's end of a link.
func farPort(w *wire, name, mac string, mtu int, addresses ...string) tester.Port {
	p := w.far
	p.Name, p.MAC, p.MTU, p.Addresses = name, mac, mtu, addresses
	return p
}
