// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"cmp"
	"net/netip"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/kernel"
)

// Overlay is what the kernel's state adds to the objects of a configuration: addresses, MTU and state of interfaces,
// routes, neighbours. What the configuration says stands; what the data plane refuses is left out by itself.
type Overlay struct {
	configured map[objectID]bool // routes and neighbours
	interfaces map[string]*overlaid
	order      []string

	objects map[objectID]Object // of the kernel, or of both
	refused map[objectID]string
	dirty   map[objectID]bool
	held    map[objectID]bool // of objects: that the data plane has
	state   kernel.State
	off     bool // until the kernel's state comes as a whole
}

const leastMTU = 68 // RFC 791 section 3.1

// overlaid is an interface of the configuration, and what it has become.
type overlaid struct {
	own     Object
	body    api.Interface
	now     api.Interface // with what the kernel has
	leftOut int           // addresses
	core    bool
	cloned  bool
	mtu     uint32 // of the port
}

// NewOverlay makes the overlay of a configuration's objects; before is that of the one before, whose objects the data
// plane has.
func NewOverlay(s State, before *Overlay) *Overlay {
	o := &Overlay{configured: map[objectID]bool{}, interfaces: map[string]*overlaid{},
		objects: map[objectID]Object{}, refused: map[objectID]string{},
		dirty: map[objectID]bool{}, held: map[objectID]bool{}}
	ports := map[string]api.Port{}
	for i := range s {
		switch s[i].Kind {
		case api.KindPort:
			var p api.Port
			if _, err := api.ReadRow(s[i].Body, &p); err == nil {
				ports[s[i].Name()] = p
			}
		case api.KindInterface:
			f := &overlaid{own: s[i]}
			if _, err := api.ReadRow(s[i].Body, &f.body); err != nil {
				continue // no body of ours
			}
			port := ports[api.CString(f.body.Port[:])]
			f.now, f.core, f.mtu = f.body, port.Role == api.RoleCore, port.MTU
			o.interfaces[s[i].Name()] = f
			o.order = append(o.order, s[i].Name())
		case api.KindRoute, api.KindNeighbour:
			o.configured[objectID{s[i].Kind, s[i].Key}] = true
		case api.KindClone:
			if f := o.interfaces[s[i].Name()]; f != nil {
				f.cloned = true
			}
		}
	}
	if before != nil {
		o.state = before.state
		for id := range before.held {
			o.held[id], o.dirty[id] = true, true
		}
		o.rebuild()
	}
	return o
}

// Update takes over what changed in the kernel.
func (o *Overlay) Update(c kernel.Changes) {
	if c.All {
		o.state, o.off = c.State, false
		o.rebuild()
		return
	}
	for d, r := range c.Routes {
		if r.Interface == "" {
			delete(o.state.Routes, d)
		} else {
			o.state.Routes[d] = r
		}
		o.renew(routeID(d), func() (Object, bool) { return o.route(d.VRF, o.state.Routes[d]) })
	}
	for n, mac := range c.Neighbours {
		if mac == (kernel.MAC{}) {
			delete(o.state.Neighbours, n)
		} else {
			o.state.Neighbours[n] = mac
		}
		o.renew(neighbourID(n), func() (Object, bool) { return o.neighbour(n, o.state.Neighbours[n]) })
	}
}

// renew makes one object again; what was refused gets another chance.
func (o *Overlay) renew(id objectID, make func() (Object, bool)) {
	delete(o.refused, id)
	o.dirty[id] = true
	if !o.off {
		if object, ok := make(); ok && object.Key == id.key {
			o.objects[id] = object
			return
		}
	}
	delete(o.objects, id)
}

// rebuild makes all objects again.
func (o *Overlay) rebuild() {
	old := o.objects
	o.objects, o.refused = map[objectID]Object{}, map[objectID]string{}
	o.build()
	for id, object := range old {
		if o.objects[id].Digest != object.Digest {
			o.dirty[id] = true
		}
	}
	for id, object := range o.objects {
		if old[id].Digest != object.Digest || !o.held[id] {
			o.dirty[id] = true
		}
	}
}

func (o *Overlay) build() {
	keep := func(object Object, ok bool) {
		id := objectID{object.Kind, object.Key}
		if _, no := o.refused[id]; ok && !no {
			o.objects[id] = object
		}
	}
	for _, name := range o.order {
		keep(o.device(o.interfaces[name], name))
	}
	for d, r := range o.state.Routes {
		keep(o.route(d.VRF, r))
	}
	for n, mac := range o.state.Neighbours {
		keep(o.neighbour(n, mac))
	}
}

// ---- objects --------------------------------------------------------------------------------------------------------

func newObject(kind uint32, key api.Key, body []byte) Object {
	return Object{kind, key, body, api.BodyDigest(body)}
}

// device is the interface with the kernel's addresses, MTU and state.
func (o *Overlay) device(f *overlaid, name string) (Object, bool) {
	d, there := o.state.Devices[name]
	f.now, f.leftOut = f.body, 0
	if !f.cloned || !there {
		return Object{}, false
	}
	if _, no := o.refused[objectID{api.KindInterface, f.own.Key}]; no {
		return Object{}, false
	}
	for _, p := range d.Addresses {
		a := api.FromPrefix(p)
		switch {
		case slices.ContainsFunc(f.now.Address[:f.now.Count], func(x api.Address) bool { return x == a }):
		case !assignable(p.Addr()) || o.taken(f, p) || int(f.now.Count) == len(f.now.Address):
			f.leftOut++
		default:
			f.now.Address[f.now.Count] = a
			f.now.Count++
		}
	}
	if d.MTU >= leastMTU && d.MTU < f.mtu { // above, the device is put back
		f.now.MTU = d.MTU
	}
	if !d.Up {
		f.now.Flags |= api.InterfaceDown
	}
	return newObject(api.KindInterface, f.own.Key, api.Body(&f.now)), true
}

func assignable(a netip.Addr) bool {
	return a.IsValid() && !a.IsMulticast() && !a.IsUnspecified() && !a.IsLoopback()
}

// taken tells whether the address, or one of its network, is of another interface of the VRF, or of this one with
// another length.
func (o *Overlay) taken(f *overlaid, p netip.Prefix) bool {
	for _, other := range o.interfaces {
		if other.body.VRF != f.body.VRF {
			continue
		}
		for _, x := range other.now.Address[:other.now.Count] {
			q := x.Netip()
			if q.Addr() == p.Addr() && !(p.Addr().IsLinkLocalUnicast() && other != f) {
				return true
			}
			if other != f && other.core && !p.Addr().IsLinkLocalUnicast() && q.Overlaps(p) {
				return true
			}
		}
	}
	return false
}

func routeName(d kernel.Destination) string {
	if d.VRF == "" {
		return d.Prefix.String()
	}
	return d.Prefix.String() + "|" + d.VRF
}

func routeID(d kernel.Destination) objectID {
	return objectID{api.KindRoute, api.ShortKey(routeName(d))}
}

// route is one of the kernel's that the data plane can have: not of the configuration, no interface's own network, by a
// gateway that the interface reaches.
func (o *Overlay) route(vrf string, r kernel.Route) (Object, bool) {
	f, id := o.interfaces[r.Interface], routeID(kernel.Destination{VRF: vrf, Prefix: r.Prefix})
	a, bits := r.Prefix.Addr(), r.Prefix.Bits()
	if f == nil || api.CString(f.body.VRF[:]) != vrf || f.now.Flags&api.InterfaceDown != 0 || o.configured[id] ||
		r.Prefix != r.Prefix.Masked() || a.IsLinkLocalUnicast() && bits > 9 || a.IsMulticast() && bits > 0 {
		return Object{}, false
	}
	for _, other := range o.interfaces {
		if !other.core || other.body.VRF != f.body.VRF {
			continue
		}
		for _, x := range other.now.Address[:other.now.Count] {
			if q := x.Netip(); q.Masked() == r.Prefix {
				return Object{}, false
			}
		}
	}
	if r.Via.IsValid() && (r.Via.Is4() != r.Prefix.Addr().Is4() || !f.reaches(r.Via)) {
		return Object{}, false
	}
	body := api.Route{Prefix: api.FromPrefix(r.Prefix), VRF: f.body.VRF}
	if r.Via.IsValid() {
		body.Via = api.FromAddr(r.Via)
	}
	if api.PutCString(body.Interface[:], r.Interface) != nil {
		return Object{}, false
	}
	further := o.further(vrf, &r)
	body.Further = uint32(len(further))
	return newObject(api.KindRoute, id.key, api.AppendRows(api.Body(&body), further)), true
}

// further are the next hops beside the first one that the data plane can have.
func (o *Overlay) further(vrf string, r *kernel.Route) []api.RouteHop {
	var list []api.RouteHop
	for _, h := range r.Further() {
		f := o.interfaces[h.Interface]
		if f == nil || api.CString(f.body.VRF[:]) != vrf || h.Via.Is4() != r.Prefix.Addr().Is4() ||
			!f.reaches(h.Via) {
			continue
		}
		hop := api.RouteHop{Via: api.FromAddr(h.Via)}
		if api.PutCString(hop.Interface[:], h.Interface) == nil {
			list = append(list, hop)
		}
	}
	return list
}

// reaches tells whether an address of another host lies in a network of the interface.
func (f *overlaid) reaches(a netip.Addr) bool {
	within := a.IsLinkLocalUnicast()
	for _, x := range f.now.Address[:f.now.Count] {
		p := x.Netip()
		if p.Addr() == a {
			return false
		}
		within = within || p.Contains(a)
	}
	return within && assignable(a)
}

func neighbourID(n kernel.Neighbour) objectID {
	return objectID{api.KindNeighbour, api.ShortKey(n.Interface + "|" + n.Address.String())}
}

func (o *Overlay) neighbour(n kernel.Neighbour, mac kernel.MAC) (Object, bool) {
	f := o.interfaces[n.Interface]
	if f == nil || o.configured[neighbourID(n)] || mac == (kernel.MAC{}) || mac[0]&1 != 0 || !f.reaches(n.Address) {
		return Object{}, false
	}
	body := api.Neighbour{Address: api.FromAddr(n.Address), MAC: mac}
	if api.PutCString(body.Interface[:], n.Interface) != nil {
		return Object{}, false
	}
	return newObject(api.KindNeighbour, neighbourID(n).key, api.Body(&body)), true
}

// ---- what the data plane has ----------------------------------------------------------------------------------------

// Pending lists what to change in a data plane that has all but the latest: deletions, highest kinds first, then the
// rest.
func (o *Overlay) Pending() (deletes, puts []Object) {
	for id := range o.dirty {
		object, there := o.objects[id]
		f := o.interfaces[api.CString(id.key[:])]
		switch {
		case there:
			puts = append(puts, object)
		case o.configured[id]:
		case id.kind == api.KindInterface && f != nil && o.held[id]:
			puts = append(puts, f.own)
		case id.kind != api.KindInterface && o.held[id]:
			deletes = append(deletes, Object{Kind: id.kind, Key: id.key})
		}
	}
	order := func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Key[:], b.Key[:]))
	}
	slices.SortFunc(puts, order)
	slices.SortFunc(deletes, func(a, b Object) int { return order(b, a) })
	return deletes, puts
}

// Settled: the data plane has all.
func (o *Overlay) Settled() {
	for id := range o.dirty {
		if _, there := o.objects[id]; there {
			o.held[id] = true
		} else {
			delete(o.held, id)
		}
	}
	// A new one: a map keeps the size of the largest burst, and walking it takes as long as that had.
	o.dirty = map[objectID]bool{}
}

// Refuse leaves an object out that the data plane did not take; false: it is none of the kernel's.
func (o *Overlay) Refuse(kind uint32, key, why string) bool {
	k, err := api.MakeKey(key)
	id := objectID{kind, k}
	if _, there := o.objects[id]; err != nil || !there {
		return false
	}
	o.refused[id] = why
	delete(o.objects, id)
	o.dirty[id] = true
	if kind == api.KindInterface { // what needs its addresses goes, too
		old := o.objects
		o.objects = map[objectID]Object{}
		o.build()
		for id := range old {
			o.dirty[id] = true
		}
	}
	return true
}

// Clear leaves everything out, until the kernel's state is read again as a whole.
func (o *Overlay) Clear() {
	for id := range o.objects {
		o.dirty[id] = true
	}
	o.objects, o.off = map[objectID]Object{}, true
	for _, f := range o.interfaces {
		f.now = f.body
	}
}

// Empty tells whether nothing is added.
func (o *Overlay) Empty() bool { return len(o.objects) == 0 }

// Refused is how many objects the data plane did not take, and one of the reasons.
func (o *Overlay) Refused() (n int, why string) {
	for _, why = range o.refused {
		break
	}
	return len(o.refused), why
}

// Over returns all objects of the configuration and the overlay.
func (o *Overlay) Over(s State) State {
	if len(o.objects) == 0 {
		return s
	}
	merged := make(State, 0, len(s)+len(o.objects))
	for i := range s {
		if object, there := o.objects[objectID{s[i].Kind, s[i].Key}]; there && s[i].Kind == api.KindInterface {
			merged = append(merged, object)
		} else {
			merged = append(merged, s[i])
		}
	}
	for id, object := range o.objects {
		if id.kind != api.KindInterface {
			merged = append(merged, object)
		}
	}
	slices.SortStableFunc(merged, func(a, b Object) int { return cmp.Compare(a.Kind, b.Kind) })
	return merged
}
