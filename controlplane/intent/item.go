// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"net/netip"
	"strings"
	"unique"

	"isthmus/api"
	"isthmus/controlplane/kernel"
)

// itemKey names an item, with less memory than its object's key: a prefix of a VRF, an address of an interface, or an
// interface.
type itemKey struct {
	of     unique.Handle[string] // the VRF or the interface
	prefix kernel.Prefix
	kind   uint8
}

// item is an object that the kernel adds, or would add if possible. There may be a million. The object is made when it
// is sent.
type item struct {
	key      itemKey
	route    kernel.Route // none: the kernel has it no more
	is, held version
	mac      kernel.MAC    // the same of a neighbour
	own      bool          // the kernel has the loopback address
	why      kernel.Reason // the route is not followed
	refused  bool          // by the data plane, or for lack of room
	dirty    bool
}

// kindLoopback is of addresses without a link; the data plane knows interfaces.
const kindLoopback = 0xff

// version of an object: its digest; 0: absent.
type version uint64

func (o *Overlay) item(key itemKey) *item {
	it := o.items[key]
	if it == nil {
		it = &item{key: key}
		o.items[key] = it
	}
	return it
}

// there: the parts of an object exist.
func (o *Overlay) there(it *item) bool {
	if it.key.kind == api.KindInterface {
		return o.interfaces[it.key.of.Value()] != nil
	}
	return it.route != (kernel.Route{}) || it.mac != (kernel.MAC{}) || it.own
}

// appendRouteName is a route's name.
func appendRouteName(b []byte, d kernel.Destination) []byte {
	b = d.Prefix.AppendTo(b)
	if d.VRF != "" {
		b = append(append(b, '|'), d.VRF...)
	}
	return b
}

func routeID(d kernel.Destination) objectID {
	var room [api.NameSize * 3]byte
	return objectID{api.KindRoute, api.ShortKey(appendRouteName(room[:0], d))}
}

func routeKey(d kernel.Destination) itemKey {
	return itemKey{unique.Make(d.VRF), kernel.PrefixOf(d.Prefix), api.KindRoute}
}

func neighbourKey(n kernel.Neighbour) itemKey {
	p := netip.PrefixFrom(n.Address, n.Address.BitLen())
	return itemKey{unique.Make(n.Interface), kernel.PrefixOf(p), api.KindNeighbour}
}

func loopbackKey(vrf string, a netip.Addr) itemKey {
	return itemKey{unique.Make(vrf), kernel.PrefixOf(netip.PrefixFrom(a, a.BitLen())), kindLoopback}
}

func interfaceKey(name string) itemKey {
	return itemKey{of: unique.Make(name), kind: api.KindInterface}
}

func (k itemKey) destination() kernel.Destination {
	return kernel.Destination{VRF: k.of.Value(), Prefix: k.prefix.Netip()}
}

func (k itemKey) id() objectID {
	switch k.kind {
	case api.KindRoute:
		return routeID(k.destination())
	case api.KindNeighbour:
		return objectID{api.KindNeighbour, api.ShortKey(k.of.Value() + "|" + k.prefix.Netip().Addr().String())}
	case kindLoopback: // no interface of the configuration has such a name
		name := "lo|" + k.prefix.Netip().Addr().String() + "|" + k.of.Value()
		return objectID{api.KindInterface, api.ShortKey(name)}
	}
	return objectID{uint32(k.kind), api.ShortKey(k.of.Value())}
}

// find returns the item of an object; nil: not from the kernel.
func (o *Overlay) find(id objectID) *item {
	name := api.CString(id.key[:])
	before, after, _ := strings.Cut(name, "|")
	var key itemKey
	switch id.kind {
	case api.KindInterface:
		key = interfaceKey(name)
		text, vrf, _ := strings.Cut(after, "|")
		if a, err := netip.ParseAddr(text); before == "lo" && err == nil {
			key = loopbackKey(vrf, a)
		}
	case api.KindRoute:
		if p, err := netip.ParsePrefix(before); err == nil {
			key = routeKey(kernel.Destination{VRF: after, Prefix: p})
		}
	case api.KindNeighbour:
		if a, err := netip.ParseAddr(after); err == nil {
			key = neighbourKey(kernel.Neighbour{Interface: before, Address: a})
		}
	}
	if it := o.items[key]; it != nil {
		return it
	}
	for key, it := range o.items { // of a long name there is but a digest
		if key.id() == id {
			return it
		}
	}
	return nil
}
