// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"slices"

	"isthmus/controlplane/config"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/session"
)

// clonesOf lists the interfaces that the kernel has a device for.
func clonesOf(c *config.Config, announced map[string]Announcing) []kernel.Clone {
	mtu := map[config.Name]uint32{}
	for _, p := range c.Ports {
		mtu[p.Name] = p.MTU
	}
	routes := kernelRoutes(c)
	var list []kernel.Clone
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		if f.Clone.Device == "" {
			continue
		}
		name := string(f.Name)
		clone := kernel.Clone{
			Interface: name, Device: f.Clone.Device, Namespace: f.Clone.File(), VRF: string(f.VRF),
			MTU: mtu[f.Port], Routes: routes[f.Name],
		}
		for _, a := range f.Addresses {
			clone.Addresses = append(clone.Addresses, a.Prefix)
		}
		if in := instanceOf(c, f.Name); in != nil {
			clone.Announced = slices.Clone(announced[string(in.Name)].Aggregates)
		}
		for i := range c.Routes {
			if r := &c.Routes[i]; r.Announce && c.RouteVRF(r) == f.VRF {
				clone.Announced = append(clone.Announced, r.Prefix.Prefix)
			}
		}
		list = append(list, clone)
	}
	return list
}

// kernelRoutes are the file's for the kernel, by the interfaces of their next hops. Discard routes are left out:
// routing daemons would announce them like subscribers' prefixes.
func kernelRoutes(c *config.Config) map[config.Name]map[netip.Prefix]kernel.Route {
	by := map[config.Name]map[netip.Prefix]kernel.Route{}
	resolver := config.NewResolver(c)
	for i := range c.Routes {
		var hops []kernel.Hop
		next, _ := resolver.NextHops(&c.Routes[i]) // checked
		for _, h := range next {
			name := string(h.Interface.Name)
			hops = append(hops, kernel.Hop{Via: h.Via, Interface: name, OnLink: h.OnLink})
		}
		for _, h := range next {
			if by[h.Interface.Name] == nil {
				by[h.Interface.Name] = map[netip.Prefix]kernel.Route{}
			}
			by[h.Interface.Name][c.Routes[i].Prefix.Prefix] = kernel.RouteBy(hops...)
		}
	}
	return by
}

// instanceOf is the network instance that has an interface.
func instanceOf(c *config.Config, name config.Name) *config.Instance {
	for i := range c.Instances {
		if slices.Contains(c.Instances[i].Interfaces, name) {
			return &c.Instances[i]
		}
	}
	return nil
}

// Announcing is an instance with sessions that are announced to routing daemons.
type Announcing struct {
	Sessions   session.Announcing
	Aggregates []netip.Prefix // that the clones announce
	Namespaces []string       // of its interfaces' clones
}

// announcingOf lists the instances that announce. NAT44's addresses are announced in place of what is behind it.
func announcingOf(c *config.Config) map[string]Announcing {
	all := map[string]Announcing{}
	for i := range c.Instances {
		in := &c.Instances[i]
		if in.Announce == "none" {
			continue
		}
		var a Announcing
		for _, p := range in.NAT.Inside {
			a.Sessions.Inside = append(a.Sessions.Inside, p.Prefix)
		}
		for _, p := range in.NAT.Addresses {
			a.Aggregates = append(a.Aggregates, p.Prefix)
		}
		if in.Announce == "pool" {
			for _, p := range c.PoolsOf(in) {
				// If NAT44 hides a part of a pool, the rest is announced session by session.
				if !slices.ContainsFunc(a.Sessions.Inside, p.Overlaps) {
					a.Aggregates = append(a.Aggregates, p)
				}
			}
			a.Sessions.Aggregates = a.Aggregates
		}
		for j := range c.Interfaces {
			f := &c.Interfaces[j]
			if f.Clone.Device != "" && slices.Contains(in.Interfaces, f.Name) &&
				!slices.Contains(a.Namespaces, f.Clone.File()) {
				a.Namespaces = append(a.Namespaces, f.Clone.File())
			}
		}
		all[string(in.Name)] = a
	}
	return all
}
