// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"maps"
	"slices"

	"isthmus/lab/tester"
)

// Addresses of plain packets. 198.18.N.0/24 is what the DPDK examples route to their port N by themselves (RFC 2544
// appendix C has 198.18.0.0/15 for benchmarks).
const (
	plainSource   = "10.64.0.0" // counts from flow to flow
	plainNetworks = 8           // ports that the examples have routes to
	plainNet      = 256
	plainPort     = 4000 // UDP, source
	plainService  = 5000 // UDP, destination
	plainTTL      = 63
	taggedSubport = 1    // S-tag
	taggedPipes   = 4094 // C-tags 1 to 4094
)

// Network is the network behind a port, without its length: a /24, whose last octet counts from flow to flow.
func Network(port int) string { return fmt.Sprintf("198.18.%d.0", port) }

// port is the number of the port with a name, -1 without one.
func (s *Setup) port(name string) int {
	return slices.IndexFunc(s.Ends, func(e End) bool { return e.Name == name })
}

// streams returns the tester's streams to a peer, and the expected packets, made from the gateway's own: the same
// number of flows, order, sizes and shares. Streams that need the gateway's answers or have a rate of their own (ICMP
// echo) are left out.
func (p *Peer) streams(base []tester.Stream, s *Setup) ([]tester.Stream, error) {
	var list []tester.Stream
	for i := range base {
		if base[i].Share > 0 && base[i].Answers == "" {
			list = append(list, base[i])
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the profile has no stream with a share of the rate")
	}
	for i := range list {
		if name := list[i].Port; s.port(name) < 0 {
			return nil, fmt.Errorf("a comparison has no port %q", name)
		}
	}
	if p.Packets == Same {
		for i := range list {
			list[i].Receive = p.same(&list[i])
		}
		return list, nil
	}
	return p.plain(list, s), nil
}

// same is what must come out when the gateway's packets went in.
func (p *Peer) same(s *tester.Stream) tester.Stack {
	switch p.Change {
	case Nothing:
		return s.Send
	case SwapMACs:
		swapped := append(tester.Stack(nil), s.Send...)
		swapped[0] = with(swapped[0], tester.Fields{
			"source": swapped[0].Fields["destination"], "destination": swapped[0].Fields["source"],
		})
		return swapped
	}
	return s.Receive
}

// with is a layer with some fields changed.
func with(l tester.Layer, fields tester.Fields) tester.Layer {
	changed := maps.Clone(l.Fields)
	maps.Copy(changed, fields)
	return tester.Layer{Name: l.Name, Fields: changed}
}

// plain makes one stream of plain packets for each direction that the list has.
func (p *Peer) plain(list []tester.Stream, s *Setup) []tester.Stream {
	var plain []tester.Stream
	for from := range s.Ends {
		var one *tester.Stream
		for i := range list {
			if list[i].Port != s.Ends[from].Name {
				continue
			}
			if one == nil {
				first := list[i]
				one = &first
				continue
			}
			one.Share += list[i].Share
			one.Flows += list[i].Flows
		}
		if one == nil {
			continue
		}
		one.Name = "plain-" + s.Ends[from].Name
		one.Flows = p.flows(one.Flows)
		one.Size = p.sizes(one.Size)
		one.Send, one.Receive = p.plainStacks(from, s)
		plain = append(plain, *one)
	}
	return plain
}

// flows bounds the flows to what an exact-match table is filled with.
func (p *Peer) flows(n int) int {
	return max(1, min(n, exactFlows))
}

// minimal is the smallest frame that holds a plain packet's headers, the tester's tag of 16 bytes and the FCS.
func (p *Peer) minimal() int {
	n := 14 + 20 + 8 + 16 + 4
	if p.Packets == Tagged {
		n += 8
	}
	return max(64, n)
}

// sizes raises sizes that plain packets cannot have.
func (p *Peer) sizes(s tester.Sizes) tester.Sizes {
	raised := tester.Sizes{}
	for bytes, weight := range s {
		raised[max(bytes, p.minimal())] += weight
	}
	return raised
}

// plainStacks are a plain packet as sent from a port and as it must arrive at the other of the pair.
func (p *Peer) plainStacks(from int, s *Setup) (send, receive tester.Stack) {
	near, to := &s.Ends[from], &s.Ends[from^1]
	ethernet := tester.Fields{"source": near.FarMAC, "destination": near.MAC}
	arrives := tester.Fields{"source": to.MAC, "destination": to.FarMAC}
	net := Network(from ^ 1)
	ipv4 := tester.Layer{Name: "ipv4", Fields: tester.Fields{
		"source": tester.Count{Base: plainSource, Each: 1}, "destination": tester.Count{Base: net, Each: 1,
			Count: plainNet},
		"ttl": plainTTL, "df": 1,
	}}
	udp := tester.Layer{Name: "udp", Fields: tester.Fields{"source": plainPort, "destination": plainService}}
	send = tester.Stack{{Name: "ethernet", Fields: ethernet}}
	if p.Packets == Tagged {
		send = append(send,
			tester.Layer{Name: "vlan", Fields: tester.Fields{"tpid": 0x88a8, "id": taggedSubport}},
			tester.Layer{Name: "vlan", Fields: tester.Fields{"id": tester.Count{Base: 1, Each: 1, Count: taggedPipes}}})
	}
	send = append(send, ipv4, udp)
	receive = append(tester.Stack(nil), send...)
	if p.Change == NewMACs || p.Change == NewMACsTTL {
		receive[0] = tester.Layer{Name: "ethernet", Fields: arrives}
	}
	if p.Change == NewMACsTTL {
		receive[len(receive)-2] = with(ipv4, tester.Fields{"ttl": plainTTL - 1})
	}
	return send, receive
}
