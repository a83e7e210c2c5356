// SPDX-License-Identifier: Apache-2.0

package intent

import "isthmus/api"

// nptv6: pairs of prefixes of network instances.
func (c *compiler) nptv6() {
	for i := range c.Instances {
		in := &c.Instances[i]
		if len(in.NPTv6) == 0 {
			continue
		}
		body := api.NPTv6{Pairs: uint32(len(in.NPTv6))}
		for k, n := range in.NPTv6 {
			body.Inside[k] = api.FromPrefix(n.Inside.Prefix)
			body.Outside[k] = api.FromPrefix(n.Outside.Prefix)
		}
		c.put(api.KindNPTv6, string(in.Name), api.Body(&body))
	}
}

var pairProtocols = map[string]uint32{"gre": api.NATGRE, "esp": api.NATESP, "6in4": api.NAT6in4}

// nats: NAT44 of network instances.
func (c *compiler) nats() {
	for i := range c.Instances {
		n := &c.Instances[i].NAT
		if !n.Enabled() {
			continue
		}
		body := api.NAT{
			Mode: api.NATModeBlocks, Inside: uint16(len(n.Inside)), Addresses: uint16(len(n.Addresses)),
			Port: [2]uint16{n.Ports.Low, n.Ports.High}, Block: n.Block, Blocks: n.Blocks,
			Mappings: n.Mappings, UDP: n.Timeouts.UDP, TCP: n.Timeouts.TCP,
			TCPTransitory: n.Timeouts.TCPTransitory, ICMP: n.Timeouts.ICMP, Hold: n.Timeouts.Hold,
		}
		if p := &n.Pairs; len(p.Protocols) > 0 {
			body.Pairs, body.PairsOfSubscriber, body.PairTimeout = p.Most, p.OfSubscriber, p.Timeout
		}
		for _, name := range n.Pairs.Protocols {
			body.PairProtocols |= pairProtocols[name]
		}
		if n.Mode == "deterministic" {
			body.Mode = api.NATModeDeterministic
		}
		for k, p := range n.Inside {
			body.InsidePrefix[k] = api.FromPrefix(p.Prefix)
		}
		for k, p := range n.Addresses {
			body.Address[k] = api.FromPrefix(p.Prefix)
		}
		c.put(api.KindNAT, string(c.Instances[i].Name), api.Body(&body))
	}
}
