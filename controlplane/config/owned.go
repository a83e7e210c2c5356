// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
)

// Owned is a prefix of ours: subscribers get its addresses, or NAT44 sends by them.
type Owned struct {
	VRF    Name
	Prefix netip.Prefix
	what   string // empty: the look-up ends packets, too, and the file may lead them on to another role of this process
	at     At
	key    string
}

// Owned lists the prefixes where packets end unless a more specific route matches (RFC 4632 section 5.1): otherwise
// packets to an unused address would loop. UEs' packets to each other that leave by the route (ue_to_ue: out) must not
// end (Ends), and the networks of core interfaces end by themselves.
func (c *Config) Owned() []Owned {
	instances, seen := map[Name]*Instance{}, map[vrfPrefix]bool{}
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		for _, a := range f.Addresses {
			seen[vrfPrefix{f.VRF, a.Masked()}] = c.onCore(f)
		}
	}
	var list []Owned
	add := func(in *Instance, p Prefix, at At, key, what string) {
		vrf := Name("")
		if in != nil {
			vrf = in.vrf(c.interfaceOf)
		}
		if p := p.Masked(); p.IsValid() && !seen[vrfPrefix{vrf, p}] {
			seen[vrfPrefix{vrf, p}] = true
			list = append(list, Owned{vrf, p, what, at, key})
		}
	}
	for i := range c.Instances {
		in := &c.Instances[i]
		instances[in.Name] = in
		for _, p := range in.NAT.Addresses {
			add(in, p, in.NAT.At, "addresses", fmt.Sprintf("of NAT44 of network instance %q", in.Name))
		}
		for _, p := range in.Pools {
			if in.Lookup == "destination" && in.UEToUE != "out" {
				add(in, p, in.At, "pools", "")
			}
		}
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		if in := instances[p.Instance]; in == nil || in.UEToUE != "out" {
			add(in, p.Prefix, p.At, "prefix", fmt.Sprintf("pool %q", p.Name))
		}
	}
	return list
}

// Ends lists the pools of which the look-up of UEs drops what no session has. Where UEs' packets to each other leave by
// the route, no route can do it, which would take those, too: these are all that subscribers have addresses of.
func (c *Config) Ends(in *Instance) []netip.Prefix {
	if in.Lookup == "destination" && in.UEToUE == "out" {
		return c.PoolsOf(in)
	}
	return Prefixes(in.Pools)
}

// PoolsOf lists what subscribers of an instance get addresses of: its own pools, then those that name it.
func (c *Config) PoolsOf(in *Instance) (list []netip.Prefix) {
	for _, p := range in.Pools {
		list = append(list, p.Prefix)
	}
	for i := range c.Pools {
		if p := &c.Pools[i]; p.Instance == in.Name {
			list = append(list, p.Prefix.Masked())
		}
	}
	return list
}

// onCore: an interface is on a core port, so its networks are on the link.
func (c *Config) onCore(f *Interface) bool {
	for i := range c.Ports {
		if c.Ports[i].Name == f.Port {
			return c.Ports[i].Role == "core"
		}
	}
	return false
}

// notOwned refuses a route of the file that leads a whole prefix of ours elsewhere.
func notOwned(k *checker) {
	routes := map[vrfPrefix]*Route{}
	for i := range k.Routes {
		r := &k.Routes[i]
		routes[vrfPrefix{k.RouteVRF(r), r.Prefix.Prefix}] = r
	}
	for _, o := range k.Owned() {
		if r := routes[vrfPrefix{o.VRF, o.Prefix}]; r != nil && o.what != "" && !r.discards() {
			k.fail(r.At, "prefix",
				"%s is %s, line %d: packets to addresses that nobody has would leave and come back",
				o.Prefix, o.what, o.at.Line(o.key))
		}
	}
}
