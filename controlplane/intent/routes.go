// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"net/netip"

	"isthmus/api"
	"isthmus/controlplane/kernel"
)

// ---- routes, neighbours and loopback addresses of the kernel's ------------------------------------------------------

// routeObject is one of the kernel's routes that the data plane can have: not of the configuration, no interface's own
// network. The kernel made sure that next hops are on the link of their interface.
func (o *Overlay) routeObject(it *item) (Object, kernel.Reason) {
	d := it.key.destination()
	id := routeID(d)
	body := api.Route{Prefix: api.FromPrefix(d.Prefix), Discard: it.route.Discard()}
	switch {
	case o.networks[d]:
		return Object{}, kernel.Followed
	case o.configured[id]:
		return Object{}, kernel.Configured
	case api.PutCString(body.VRF[:], d.VRF) != nil:
		return Object{}, kernel.NoClone
	}
	hops, why := o.hops(it.route, d)
	if body.Discard == api.DiscardNone && len(hops) == 0 {
		return Object{}, why
	}
	if len(hops) > 0 {
		body.Via, body.Interface = hops[0].Via, hops[0].Interface
		hops = hops[1:]
	}
	body.Further = uint32(len(hops))
	object, _ := newObject(id, api.AppendRows(api.Body(&body), hops))
	return object, kernel.Followed
}

// hops are the next hops that the data plane can have, and why it cannot have the others.
func (o *Overlay) hops(r kernel.Route, d kernel.Destination) (list []api.RouteHop, why kernel.Reason) {
	for _, h := range r.Hops() {
		hop := api.RouteHop{Via: api.FromAddr(h.Via)}
		f := o.interfaces[h.Interface]
		switch {
		case f == nil || f.vrf != d.VRF || api.PutCString(hop.Interface[:], h.Interface) != nil:
			why = kernel.NoClone
		case f.now.Flags&api.InterfaceDown != 0:
			why = kernel.Dead
		case h.Via.IsValid() && f.has(h.Via):
			why = kernel.OurAddress
		case h.Via.IsValid() && !assignable(h.Via):
			why = kernel.Unassignable
		default:
			list = append(list, hop)
		}
	}
	return list, why
}

// has: an address is the interface's.
func (f *overlaid) has(a netip.Addr) bool {
	for _, p := range f.prefixes {
		if p.Addr() == a {
			return true
		}
	}
	return false
}

// neighbourObject is a neighbour of the kernel's, in any network: a next hop may be on the link alone.
func (o *Overlay) neighbourObject(it *item) (Object, bool) {
	id, name, a := it.key.id(), it.key.of.Value(), it.key.prefix.Netip().Addr()
	f := o.interfaces[name]
	if f == nil || o.configured[id] || it.mac[0]&1 != 0 || f.has(a) || !assignable(a) {
		return Object{}, false
	}
	body := api.Neighbour{Address: api.FromAddr(a), MAC: it.mac}
	if api.PutCString(body.Interface[:], name) != nil {
		return Object{}, false
	}
	return newObject(id, api.Body(&body))
}

// loopbackObject is an interface without a port, with one address, unless another interface of the VRF has it.
func (o *Overlay) loopbackObject(it *item) (Object, bool) {
	vrf, a := it.key.of.Value(), it.key.prefix.Netip().Addr()
	for _, f := range o.interfaces {
		if f.vrf == vrf && f.has(a) {
			return Object{}, false
		}
	}
	body := api.Interface{Count: 1}
	body.Address[0] = api.FromPrefix(it.key.prefix.Netip())
	if !assignable(a) || api.PutCString(body.VRF[:], vrf) != nil {
		return Object{}, false
	}
	return newObject(it.key.id(), api.Body(&body))
}

// ---- what is ignored ------------------------------------------------------------------------------------------------

// Ignored is how many of the kernel's routes the data plane has not, by reason.
func (o *Overlay) Ignored() map[kernel.Reason]int {
	all := map[kernel.Reason]int{}
	for why, n := range o.ignored {
		if n > 0 && kernel.Reason(why) != kernel.Followed {
			all[kernel.Reason(why)] = n
		}
	}
	return all
}

// IgnoredRoutes lists them, up to a bound.
func (o *Overlay) IgnoredRoutes(most int) (list []kernel.Ignored) {
	for key, it := range o.items {
		if it.why == kernel.Followed {
			continue
		}
		if len(list) == most {
			break
		}
		d := key.destination()
		one := kernel.Ignored{VRF: d.VRF, Prefix: d.Prefix, Reason: it.why, Text: o.texts[key]}
		if hops := it.route.Hops(); len(hops) > 0 {
			one.Via, one.Device = hops[0].Via, hops[0].Interface
		}
		list = append(list, one)
	}
	return list
}
