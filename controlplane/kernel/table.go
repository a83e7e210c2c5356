// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// protocol marks routes that are the configuration's (rt_protos: a number that nobody has).
const protocol = netlink.RouteProtocol(73)

// candidate is one of the kernel's routes to a prefix: the first of the lowest metric counts.
type candidate struct {
	metric uint32
	tos    uint8
	Route
}

// table is what netlink said of one namespace.
type table struct {
	clones     map[string]string // device -> interface
	links      map[int]link
	routes     map[netip.Prefix]*entry
	prefixes   int // of routes: those that are there
	neighbours map[Neighbour]MAC
}

type link struct {
	name, of  string // of: the interface it stands for
	up        bool
	mtu       uint32
	addresses map[netip.Prefix]bool
}

func newTable(clones []Clone) *table {
	t := &table{clones: map[string]string{}, links: map[int]link{}, routes: map[netip.Prefix]*entry{},
		neighbours: map[Neighbour]MAC{}}
	for _, c := range clones {
		t.clones[c.Device] = c.Interface
	}
	return t
}

// ---- links ----------------------------------------------------------------------------------------------------------

// setLink returns whether it changes anything that counts; a device that was renamed stays what it was.
func (t *table) setLink(index int, name string, flags, mtu uint32) bool {
	was, known := t.links[index]
	is := link{name: name, of: t.clones[name], up: flags&unix.IFF_UP != 0, mtu: mtu, addresses: was.addresses}
	if known {
		is.of = was.of
	}
	if is.of == "" {
		return false
	}
	if is.addresses == nil {
		is.addresses = map[netip.Prefix]bool{}
	}
	t.links[index] = is
	return !known || was.up != is.up || was.mtu != is.mtu || was.name != is.name
}

func (t *table) deleteLink(index int) bool {
	_, known := t.links[index]
	delete(t.links, index)
	return known
}

// ---- addresses ------------------------------------------------------------------------------------------------------

// usable: neither under duplicate address detection nor found to be another host's (RFC 4862 §5.4).
func usable(flags int) bool { return flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 }

func (t *table) setAddress(index int, a net.IPNet, flags int, there bool) bool {
	l, known := t.links[index]
	p, ok := prefixOf(&a)
	if !known || !ok {
		return false
	}
	is := there && usable(flags)
	if l.addresses[p] == is {
		return false
	}
	if is {
		l.addresses[p] = true
	} else {
		delete(l.addresses, p)
	}
	return true
}

// ---- routes ---------------------------------------------------------------------------------------------------------

// entry is what there is of a prefix.
type entry struct {
	list  []candidate // the first one counts; none: only noted that it is gone
	noted bool        // as changed
}

// noted is a prefix that changed.
type noted struct {
	prefix netip.Prefix
	*entry
}

func (t *table) entry(p netip.Prefix) *entry {
	e := t.routes[p]
	if e == nil {
		e = &entry{}
		t.routes[p] = e
	}
	return e
}

// best is the route that counts; its interface is empty when there is none.
func (e *entry) best() Route {
	if e == nil || len(e.list) == 0 {
		return Route{}
	}
	return e.list[0].Route
}

// setRoute returns the prefix whose best route may have changed; nil: none.
func (t *table) setRoute(m *message, replace bool) (netip.Prefix, *entry) {
	prefix, c, ok := t.candidateOf(m)
	if !ok && !replace { // another's route beside ours
		return prefix, nil
	}
	e := t.routes[prefix]
	if e == nil {
		if !ok {
			return prefix, nil
		}
		e = t.entry(prefix)
	}
	before := len(e.list)
	same := slices.IndexFunc(e.list, func(o candidate) bool { return o.metric == m.metric && o.tos == m.tos })
	switch {
	case !ok && same < 0:
		return prefix, nil
	case !ok: // ours was replaced by one that leads elsewhere
		e.list = slices.Delete(e.list, same, same+1)
	case same >= 0 && (replace || e.list[same].Route == c.Route):
		e.list[same] = c
	default:
		at := slices.IndexFunc(e.list, func(o candidate) bool { return o.metric > c.metric })
		if at < 0 {
			at = len(e.list)
		}
		e.list = slices.Insert(e.list, at, c)
	}
	t.count(before, len(e.list))
	return prefix, e
}

func (t *table) deleteRoute(m *message) (netip.Prefix, *entry) {
	prefix, c, ok := t.candidateOf(m)
	e := t.routes[prefix]
	if !ok || e == nil {
		return prefix, nil
	}
	at := slices.Index(e.list, c)
	if at < 0 {
		return prefix, nil
	}
	e.list = slices.Delete(e.list, at, at+1)
	t.count(len(e.list)+1, len(e.list))
	return prefix, e
}

// count keeps the number of prefixes that there is a route to.
func (t *table) count(before, after int) {
	switch {
	case before == 0 && after > 0:
		t.prefixes++
	case before > 0 && after == 0:
		t.prefixes--
	}
}

// ---- neighbours -----------------------------------------------------------------------------------------------------

// confirmed are the states in which the kernel vouches for the address; the data plane asks for all others itself.
const confirmed = unix.NUD_PERMANENT | unix.NUD_REACHABLE | unix.NUD_NOARP | unix.NUD_DELAY | unix.NUD_PROBE

func (t *table) setNeighbour(n *netlink.Neigh, there bool) (Neighbour, bool) {
	l, known := t.links[n.LinkIndex]
	addr, ok := netip.AddrFromSlice(n.IP)
	key := Neighbour{l.of, addr.Unmap()}
	if !known || !ok || addr.IsMulticast() {
		return key, false
	}
	var mac MAC
	if there && n.State&confirmed != 0 && n.Flags&unix.NTF_PROXY == 0 && len(n.HardwareAddr) == len(mac) {
		copy(mac[:], n.HardwareAddr)
	}
	if mac[0]&1 != 0 {
		mac = MAC{}
	}
	if t.neighbours[key] == mac {
		return key, false
	}
	if mac == (MAC{}) {
		delete(t.neighbours, key)
	} else {
		t.neighbours[key] = mac
	}
	return key, true
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || bits == 0 {
		return netip.Prefix{}, false
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, ones), addr.BitLen() == bits
}

func netMask(p netip.Prefix) net.IPMask { return net.CIDRMask(p.Bits(), p.Addr().BitLen()) }

func ipNet(p netip.Prefix) *net.IPNet { return &net.IPNet{IP: p.Addr().AsSlice(), Mask: netMask(p)} }
