// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/kernel"
)

// Overlay is the kernel's addition to a configuration's objects: addresses, MTU and state of interfaces, routes,
// neighbours. The configuration has precedence; objects that the data plane refuses are left out singly.
type Overlay struct {
	configured map[objectID]bool // routes and neighbours
	interfaces map[string]*overlaid
	order      []string
	networks   map[kernel.Destination]bool // of interfaces, as they are now

	items   map[itemKey]*item
	dirty   []*item             // what the data plane has may differ
	added   int                 // items that are there
	left    map[uint32]int      // objects of a kind that the data plane has room for beside these
	refused int                 // items
	why     string              // of the last one
	texts   map[itemKey]string  // the data plane's reasons for refused ones
	ignored [kernel.Reasons]int // routes, by reason
	off     bool                // until the kernel's state comes as a whole
}

const leastMTU = 68 // RFC 791 section 3.1

// The data plane's sizes where engine.limits is 0 (API_ROUTES; neighbour.c), and of loopback addresses at all.
const (
	defaultRoutes     = 1280 << 10
	defaultNeighbours = 4096
	mostLoopback      = 256
)

// mostTexts is how many refusals are kept in words.
const mostTexts = 1024

// tooMany are the words of what there is no room for.
var tooMany = map[uint32]string{api.KindRoute: "more routes than engine.limits.routes allows",
	api.KindNeighbour: "more neighbours than engine.limits.neighbours allows",
	kindLoopback:      fmt.Sprintf("more loopback addresses than %d", mostLoopback)}

// overlaid is an interface of the configuration, and what it has become.
type overlaid struct {
	own      Object
	body     api.Interface
	now      api.Interface  // with what the kernel has
	prefixes []netip.Prefix // of now
	vrf      string
	leftOut  int // addresses
	core     bool
	cloned   bool
	differs  bool          // now is made of device
	device   kernel.Device // as the kernel has it
	there    bool          // it does
	mtu      uint32        // of the port
}

// NewOverlay makes the overlay of a configuration's objects; before is the former one, whose objects the data plane
// has.
func NewOverlay(s State, before *Overlay) *Overlay {
	o := &Overlay{configured: map[objectID]bool{}, interfaces: map[string]*overlaid{}, items: map[itemKey]*item{},
		texts: map[itemKey]string{}, left: map[uint32]int{api.KindRoute: defaultRoutes,
			api.KindNeighbour: defaultNeighbours, kindLoopback: mostLoopback}}
	ports := map[string]api.Port{}
	for i := range s {
		switch s[i].Kind {
		case api.KindEngine:
			var e api.Engine
			if _, err := api.ReadRow(s[i].Body, &e); err == nil {
				o.left[api.KindRoute] = int(cmp.Or(e.MaxRoutes, defaultRoutes))
				o.left[api.KindNeighbour] = int(cmp.Or(e.MaxNeighbours, defaultNeighbours))
			}
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
			f.core, f.mtu, f.vrf = port.Role == api.RoleCore, port.MTU, api.CString(f.body.VRF[:])
			o.interfaces[s[i].Name()] = f
			o.order = append(o.order, s[i].Name())
			o.item(interfaceKey(s[i].Name()))
		case api.KindRoute, api.KindNeighbour:
			o.configured[objectID{s[i].Kind, s[i].Key}] = true
			o.left[s[i].Kind]--
		case api.KindClone:
			if f := o.interfaces[s[i].Name()]; f != nil {
				f.cloned = true
			}
		}
	}
	if before != nil {
		o.inherit(before)
	}
	o.renewAll()
	return o
}

// inherit takes over the kernel's state, and which of it the data plane holds.
func (o *Overlay) inherit(before *Overlay) {
	for name, f := range o.interfaces {
		if old := before.interfaces[name]; old != nil {
			f.device, f.there = old.device, old.there
		}
	}
	for key, old := range before.items {
		it := o.item(key)
		it.route, it.mac, it.own = old.route, old.mac, old.own
		if !o.configured[key.id()] {
			it.held = old.held
		}
	}
}

// renew makes an object again when it is sent.
func (o *Overlay) renew(it *item) {
	if !it.dirty {
		it.dirty = true
		o.dirty = append(o.dirty, it)
	}
}

// renewAll makes interfaces now, and all other objects when they are sent.
func (o *Overlay) renewAll() {
	for _, f := range o.interfaces {
		f.become(&f.body, false)
	}
	o.networks = map[kernel.Destination]bool{}
	for _, name := range o.order {
		f := o.interfaces[name]
		if !o.off && !o.items[interfaceKey(name)].refused {
			o.device(f)
		}
		for _, p := range f.prefixes {
			if f.core {
				o.networks[kernel.Destination{VRF: f.vrf, Prefix: p.Masked()}] = true
			}
		}
	}
	for _, it := range o.items {
		o.renew(it)
	}
}

// Update takes over the kernel's changes; refused objects among them get another chance.
func (o *Overlay) Update(c kernel.Changes) {
	if c.All != nil {
		o.replace(c.All)
		return
	}
	for i := range c.Routes {
		o.set(routeKey(c.Routes[i].At), c.Routes[i].Route, kernel.MAC{})
	}
	for n, mac := range c.Neighbours {
		o.set(neighbourKey(n), kernel.Route{}, mac)
	}
}

func (o *Overlay) set(key itemKey, r kernel.Route, mac kernel.MAC) {
	it := o.item(key)
	it.route, it.mac = r, mac
	o.forgive(it)
	if !o.there(it) { // now: others may need the room
		o.become(it, 0)
	}
	o.renew(it)
}

func (o *Overlay) refuse(it *item, reason kernel.Reason, why string) {
	it.refused, o.why = true, why
	o.refused++
	if it.key.kind != api.KindRoute {
		return
	}
	o.ignore(it, reason)
	if reason == kernel.Refused && len(o.texts) < mostTexts {
		o.texts[it.key] = why
	}
}

// forgive gives an item another chance.
func (o *Overlay) forgive(it *item) {
	o.ignore(it, kernel.Followed)
	if it.refused {
		it.refused = false
		o.refused--
		delete(o.texts, it.key)
	}
}

// ignore notes why a route is not followed.
func (o *Overlay) ignore(it *item, why kernel.Reason) {
	o.ignored[it.why]--
	it.why = why
	o.ignored[why]++
}

// replace makes this the kernel's state.
func (o *Overlay) replace(st *kernel.State) {
	o.off = false
	for _, it := range o.items {
		o.forgive(it)
		it.route, it.mac, it.own = kernel.Route{}, kernel.MAC{}, false
	}
	for name, f := range o.interfaces {
		f.device, f.there = st.Devices[name]
	}
	for d, r := range st.Routes {
		o.set(routeKey(d), r, kernel.MAC{})
	}
	for n, mac := range st.Neighbours {
		o.set(neighbourKey(n), kernel.Route{}, mac)
	}
	for vrf, list := range st.Loopback {
		for _, a := range list {
			o.item(loopbackKey(vrf, a)).own = true
		}
	}
	for _, it := range o.items {
		if !o.there(it) {
			o.become(it, 0)
		}
	}
	o.renewAll()
}

// ---- objects --------------------------------------------------------------------------------------------------------

func newObject(id objectID, body []byte) (Object, bool) {
	return Object{id.kind, id.key, body, api.BodyDigest(body)}, true
}

// make makes an item's object, and remembers it. Objects without room are left out.
func (o *Overlay) make(it *item) (object Object, there bool) {
	kind := uint32(it.key.kind)
	if o.there(it) && !it.refused && (!o.off || kind == api.KindInterface) {
		switch kind {
		case api.KindInterface:
			object, there = o.interfaces[it.key.of.Value()].object()
		case api.KindRoute:
			var why kernel.Reason
			object, why = o.routeObject(it)
			there = object.Body != nil
			o.ignore(it, why)
		case api.KindNeighbour:
			object, there = o.neighbourObject(it)
		case kindLoopback:
			object, there = o.loopbackObject(it)
		}
	}
	if text := tooMany[kind]; there && it.is == 0 && text != "" && o.left[kind] <= 0 {
		o.refuse(it, kernel.NoRoom, text)
		object, there = Object{}, false
	}
	if !there {
		o.become(it, 0)
	} else {
		o.become(it, version(max(object.Digest, 1)))
	}
	return object, there
}

// become makes this an item's version.
func (o *Overlay) become(it *item, is version) {
	if (it.is != 0) != (is != 0) {
		step := 1
		if is == 0 {
			step = -1
		}
		o.added += step
		o.left[uint32(it.key.kind)] -= step
	}
	it.is = is
}

func (f *overlaid) object() (Object, bool) {
	if !f.differs {
		return Object{}, false
	}
	return newObject(objectID{api.KindInterface, f.own.Key}, api.Body(&f.now))
}

// become makes this what the interface is.
func (f *overlaid) become(now *api.Interface, differs bool) {
	f.now, f.differs, f.prefixes = *now, differs, nil
	for _, x := range now.Address[:now.Count] {
		f.prefixes = append(f.prefixes, x.Netip())
	}
}

// device is the interface with the kernel's addresses, MTU and state.
func (o *Overlay) device(f *overlaid) {
	if f.leftOut = 0; !f.cloned || !f.there {
		return
	}
	now := f.body
	for _, p := range f.device.Addresses {
		a := api.FromPrefix(p)
		switch {
		case slices.ContainsFunc(now.Address[:now.Count], func(x api.Address) bool { return x == a }):
		case !assignable(p.Addr()) || o.taken(f, p) || int(now.Count) == len(now.Address):
			f.leftOut++
		default:
			now.Address[now.Count] = a
			now.Count++
		}
	}
	if f.device.MTU >= leastMTU && f.device.MTU < f.mtu { // above, the device is put back
		now.MTU = f.device.MTU
	}
	if !f.device.Up {
		now.Flags |= api.InterfaceDown
	}
	f.become(&now, true)
}

func assignable(a netip.Addr) bool {
	return a.IsValid() && !a.IsMulticast() && !a.IsUnspecified() && !a.IsLoopback()
}

// taken: the address, or one of its network, belongs to another interface of the VRF, or to this one with another
// length.
func (o *Overlay) taken(f *overlaid, p netip.Prefix) bool {
	for _, other := range o.interfaces {
		if other.vrf != f.vrf {
			continue
		}
		for _, q := range other.prefixes {
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

// ---- what the data plane has ----------------------------------------------------------------------------------------

// Pending lists the changes for a data plane that lacks the latest: deletions, highest kinds first, then puts, lowest
// first.
func (o *Overlay) Pending() (deletes, puts []Object) {
	for _, it := range o.dirty {
		switch object, there := o.make(it); {
		case there && it.is != it.held:
			puts = append(puts, object)
		case there || it.held == 0:
		case it.key.kind != api.KindInterface:
			id := it.key.id()
			deletes = append(deletes, Object{Kind: id.kind, Key: id.key})
		case o.there(it):
			puts = append(puts, o.interfaces[it.key.of.Value()].own)
		}
	}
	slices.SortStableFunc(puts, func(a, b Object) int { return cmp.Compare(a.Kind, b.Kind) })
	slices.SortStableFunc(deletes, func(a, b Object) int { return cmp.Compare(b.Kind, a.Kind) })
	return deletes, puts
}

// Settled: the data plane has all.
func (o *Overlay) Settled() {
	for _, it := range o.dirty {
		it.held, it.dirty = it.is, false
		if !o.there(it) {
			delete(o.items, it.key)
		}
	}
	o.dirty = o.dirty[:0]
	if cap(o.dirty) > keptDirty {
		o.dirty = nil
	}
}

const keptDirty = 1 << 16 // room

// Refuse leaves out an object that the data plane refused; false: not from the kernel.
func (o *Overlay) Refuse(kind uint32, key, why string) bool {
	k, err := api.MakeKey(key)
	if err != nil {
		return false
	}
	it := o.find(objectID{kind, k})
	if it == nil {
		return false
	}
	if _, there := o.make(it); !there {
		return false
	}
	o.refuse(it, kernel.Refused, why)
	o.renew(it)
	if kind == api.KindInterface { // what needs its addresses goes, too
		o.renewAll()
	}
	return true
}

// Clear leaves everything out, until the kernel's state is read again as a whole.
func (o *Overlay) Clear() {
	o.off = true
	o.renewAll()
	for _, it := range o.items {
		o.make(it)
	}
}

// Empty: nothing is added.
func (o *Overlay) Empty() bool { return o.added == 0 }

// Refused is how many objects are left out, and why the last one.
func (o *Overlay) Refused() (n int, why string) {
	if o.refused == 0 {
		return 0, ""
	}
	return o.refused, o.why
}

// Over returns all objects of the configuration and the overlay, and thinks that they are sent.
func (o *Overlay) Over(s State) State {
	changed, more := map[objectID]Object{}, map[uint32][]Object{}
	for _, it := range o.items {
		o.renew(it)
		switch object, there := o.make(it); {
		case !there:
		case it.key.kind == api.KindInterface:
			changed[objectID{object.Kind, object.Key}] = object
		default:
			more[object.Kind] = append(more[object.Kind], object)
		}
	}
	if o.added == 0 {
		return s
	}
	kinds := slices.Sorted(maps.Keys(more))
	merged := make(State, 0, len(s)+o.added)
	for i := range s {
		for len(kinds) > 0 && kinds[0] < s[i].Kind {
			merged = append(merged, more[kinds[0]]...)
			kinds = kinds[1:]
		}
		object, there := changed[objectID{s[i].Kind, s[i].Key}]
		if !there {
			object = s[i]
		}
		merged = append(merged, object)
	}
	for _, k := range kinds {
		merged = append(merged, more[k]...)
	}
	return merged
}
