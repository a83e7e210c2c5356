// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"slices"

	"isthmus/api"
)

// mostHops is how many next hops a route may have.
const mostHops = 1 + api.RouteFurther

// NextHop is how packets leave by a route.
type NextHop struct {
	Via       netip.Addr // not valid: the destination is on the link
	Interface *Interface
	OnLink    bool // Via is in no network of the interface
}

// Resolver finds next hops. A gateway is in an interface's network, or behind another route of the file: then that
// route's next hops are taken (recursive ones). A default route leads to none: else a mistyped gateway would do.
type Resolver struct {
	c     *Config
	known map[gatewayOf]*resolved
}

type gatewayOf struct {
	vrf Name
	via netip.Addr
}

type resolved struct {
	hops    []NextHop
	problem string // while it is looked for: that it is reached by way of itself
}

// NewResolver makes one for a configuration.
func NewResolver(c *Config) *Resolver { return &Resolver{c, map[gatewayOf]*resolved{}} }

func (r *Route) discards() bool { return r.Discard != "" && r.Discard != "none" }

// gateways are those of a route; the zero one stands for a destination on the link.
func (r *Route) gateways() []Address { return append([]Address{r.Via}, r.AlsoVia...) }

// NextHops are a route's, each once; problem: why there are none. A discard route has none.
func (s *Resolver) NextHops(r *Route) (hops []NextHop, problem string) {
	if r.discards() {
		return nil, ""
	}
	f := s.c.interfaceOf(r.Interface)
	for i, a := range r.gateways() {
		if i > 0 {
			f = nil
		}
		list, why := s.gateway(s.c.RouteVRF(r), a.Addr, f)
		if why != "" {
			return nil, why
		}
		for _, h := range list {
			if !slices.Contains(hops, h) {
				hops = append(hops, h)
			}
		}
	}
	if len(hops) > mostHops {
		return nil, fmt.Sprintf("%d next hops, at most %d are possible", len(hops), mostHops)
	}
	return hops, ""
}

// gateway finds one's next hops; f is the interface that the route names, if any.
func (s *Resolver) gateway(vrf Name, via netip.Addr, f *Interface) ([]NextHop, string) {
	if f != nil {
		return []NextHop{{via, f, via.IsValid() && !via.IsLinkLocalUnicast() && !f.reaches(via)}}, ""
	}
	if f = s.c.reachable(vrf, via); f != nil {
		return []NextHop{{via, f, false}}, ""
	}
	key := gatewayOf{vrf, via}
	is := s.known[key]
	if is == nil {
		is = &resolved{problem: fmt.Sprintf("%s is reached by way of itself", via)}
		s.known[key] = is
		is.hops, is.problem = s.behind(vrf, via)
	}
	return is.hops, is.problem
}

// behind finds the next hops of the route that leads to a gateway.
func (s *Resolver) behind(vrf Name, via netip.Addr) ([]NextHop, string) {
	var best *Route
	for i := range s.c.Routes {
		r := &s.c.Routes[i]
		if r.Prefix.Bits() > 0 && r.Prefix.Contains(via) && s.c.RouteVRF(r) == vrf &&
			(best == nil || r.Prefix.Bits() > best.Prefix.Bits()) {
			best = r
		}
	}
	switch {
	case best == nil:
		return nil, fmt.Sprintf("%s is in no interface's prefix in %s, nor does a route lead there; "+
			"name the interface", via, vrfText(vrf))
	case best.discards():
		return nil, fmt.Sprintf("the route that leads to %s discards packets, line %d", via,
			best.Line("prefix"))
	}
	hops, problem := s.NextHops(best)
	list := slices.Clone(hops)
	for i := range list {
		if !list[i].Via.IsValid() { // a device route: the gateway is on that link
			list[i].Via, list[i].OnLink = via, true
		}
	}
	return list, problem
}

func (c *Config) interfaceOf(name Name) *Interface {
	i := slices.IndexFunc(c.Interfaces, func(f Interface) bool { return name != "" && f.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Interfaces[i]
}

// RouteVRF is the VRF of a route: an interface that it names says it.
func (c *Config) RouteVRF(r *Route) Name {
	if f := c.interfaceOf(r.Interface); f != nil {
		return f.VRF
	}
	return r.VRF
}

// reaches: an address lies in a prefix of the interface.
func (f *Interface) reaches(a netip.Addr) bool {
	return slices.ContainsFunc(f.Addresses, func(p Prefix) bool { return p.Contains(a) })
}

// reachable returns the interface of a VRF in whose networks an address is, those of core ports first.
func (c *Config) reachable(vrf Name, a netip.Addr) (found *Interface) {
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		if f.VRF != vrf || !f.reaches(a) {
			continue
		}
		if slices.ContainsFunc(c.Ports, func(p Port) bool { return p.Name == f.Port && p.Role == "core" }) {
			return f
		}
		found = f
	}
	return found
}

// ---- checks ---------------------------------------------------------------------------------------------------------

func checkRoutes(k *checker) {
	seen := map[vrfPrefix]Line{}
	resolver := NewResolver(k.Config)
	for i := range k.Routes {
		r := &k.Routes[i]
		k.network(r.At, "prefix", r.Prefix)
		if r.Prefix.Addr().IsLinkLocalUnicast() && r.Prefix.Addr().Is6() && r.Prefix.Bits() > 9 {
			k.fail(r.At, "prefix", "link-local destinations are never forwarded")
		}
		f := refer(k, r.At, "interface", "interface", r.Interface, k.interfaces)
		to := vrfPrefix{k.RouteVRF(r), r.Prefix.Prefix}
		once(k, r.At, "prefix", seen, to, "%s is already in line %d", r.Prefix)
		switch {
		case r.Announce && !r.discards():
			k.fail(r.At, "announce", "only a route that discards is a summary")
		case r.discards():
			r.checkDiscard(k)
		case f != nil && r.VRF != "" && r.VRF != f.VRF:
			k.fail(r.At, "vrf", "interface %q is in %s", f.Name, vrfText(f.VRF))
		case !r.Via.IsValid() && r.Interface == "":
			k.fail(r.At, "via", "a route needs via, interface, both, or discard")
		case f != nil || r.Interface == "":
			r.checkGateways(k, resolver, f)
		}
	}
}

// checkDiscard is of a route that leads nowhere.
func (r *Route) checkDiscard(k *checker) {
	if r.Via.IsValid() || r.Interface != "" || r.OnLink {
		k.fail(r.At, "discard", "packets end here: neither via, interface nor onlink are possible")
	}
	if !slices.ContainsFunc(k.Interfaces, func(f Interface) bool { return f.VRF == r.VRF }) {
		k.fail(r.At, "vrf", "no interface is in %s", vrfText(r.VRF))
	}
}

// checkGateways looks at the next hops; f is the interface that the route names, if any.
func (r *Route) checkGateways(k *checker, resolver *Resolver, f *Interface) {
	seen, good := map[netip.Addr]bool{}, true
	fail := func(key, format string, args ...any) {
		good = false
		k.fail(r.At, key, format, args...)
	}
	for i, a := range r.gateways() {
		key := "via"
		if i > 0 {
			key, f = "also_via", nil
		}
		switch via := a.Addr; {
		case seen[via]:
			fail(key, "%s is there twice", a)
		case via.IsMulticast() || via.IsUnspecified() || via.IsLoopback():
			fail(key, "%s is no unicast address", a)
		case via.Is4() && !r.Prefix.Addr().Is4():
			fail(key, "%s and %s are not of one family; IPv6 alone leads to both (RFC 8950)", a, r.Prefix)
		default:
			say := func(format string, args ...any) { fail(key, format, args...) }
			r.checkGateway(k, resolver, a.Addr, f, say)
		}
		seen[a.Addr] = true
	}
	if _, problem := resolver.NextHops(r); good && problem != "" {
		k.fail(r.At, "via", "%s", problem)
	}
}

func (r *Route) checkGateway(k *checker, resolver *Resolver, via netip.Addr, f *Interface, fail func(string, ...any)) {
	hops, problem := resolver.gateway(k.RouteVRF(r), via, f)
	if problem != "" {
		fail("%s", problem)
	}
	for _, h := range hops {
		p := k.ports[h.Interface.Port]
		switch {
		case p != nil && p.Role != "core":
			fail("interface %q is on an access port; routes lead to core ports", h.Interface.Name)
		case h.Interface.has(via):
			fail("%s is our own address", via)
		case h.OnLink && h.Interface == f && !r.OnLink:
			fail("%s is in no network of interface %q; where it is on its link all the same: onlink",
				via, f.Name)
		}
	}
}

// isGateway: a route has the address as a next hop by the interface.
func (s *Resolver) isGateway(f *Interface, a netip.Addr) bool {
	return slices.ContainsFunc(s.c.Routes, func(r Route) bool {
		hops, _ := s.NextHops(&r)
		return slices.ContainsFunc(hops, func(h NextHop) bool { return h.Interface == f && h.Via == a })
	})
}
