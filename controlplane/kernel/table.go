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

// Prefix is one without pointers, as small as can be: there may be a million.
type Prefix struct {
	address [16]byte // as netip.Addr.As16
	bits    uint8
	four    bool // of IPv4
}

// PrefixOf makes one of a valid prefix without a zone.
func PrefixOf(p netip.Prefix) Prefix {
	return Prefix{p.Addr().As16(), uint8(p.Bits()), p.Addr().Is4()}
}

// Netip is the prefix as others know it.
func (p Prefix) Netip() netip.Prefix {
	a := netip.AddrFrom16(p.address)
	if p.four {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, int(p.bits))
}

// candidate is one of the kernel's routes to a prefix: the first of the lowest metric counts.
type candidate struct {
	Route
	metric uint32
	tos    uint8
}

// table is what netlink said of one namespace.
type table struct {
	clones     map[string]string // device -> interface
	links      map[int]link
	routes     map[Prefix]entry
	further    map[Prefix][]candidate // behind the first one
	noted      []Prefix               // changed
	prefixes   int                    // of routes: those that are there
	neighbours map[Neighbour]MAC
}

type link struct {
	name, of  string // of: the interface it stands for
	up        bool
	mtu       uint32
	addresses map[netip.Prefix]bool
}

func newTable(clones []Clone) *table {
	t := &table{clones: map[string]string{}, links: map[int]link{}, routes: map[Prefix]entry{},
		further: map[Prefix][]candidate{}, neighbours: map[Neighbour]MAC{}}
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

// entry is what there is of a prefix: the candidate that counts. None: it is only noted that it is gone.
type entry struct {
	Route
	metric uint32
	tos    uint8
	noted  bool // as changed
	more   bool // table.further has candidates
}

// candidates of a prefix, the first one of which counts.
func (t *table) candidates(p Prefix, e *entry, room []candidate) []candidate {
	if e.Route == (Route{}) {
		return room[:0]
	}
	list := append(room[:0], candidate{e.Route, e.metric, e.tos})
	if e.more {
		list = append(list, t.further[p]...)
	}
	return list
}

// put makes these a prefix's candidates.
func (t *table) put(p Prefix, e entry, list []candidate) {
	there := e.Route != (Route{})
	var first candidate
	if len(list) > 0 {
		first = list[0]
	}
	if e.more = len(list) > 1; e.more {
		t.further[p] = slices.Clone(list[1:])
	} else if len(t.further) > 0 {
		delete(t.further, p)
	}
	e.Route, e.metric, e.tos = first.Route, first.metric, first.tos
	t.routes[p] = e
	switch {
	case !there && len(list) > 0:
		t.prefixes++
	case there && len(list) == 0:
		t.prefixes--
	}
}

// note marks a prefix as changed.
func (t *table) note(p Prefix) {
	if e := t.routes[p]; !e.noted {
		e.noted = true
		t.routes[p] = e
		t.noted = append(t.noted, p)
	}
}

// settle forgets what changed, behind a call of fn with each prefix and its route.
func (t *table) settle(fn func(p Prefix, r Route)) {
	for _, p := range t.noted {
		e := t.routes[p]
		fn(p, e.Route)
		if e.Route == (Route{}) {
			delete(t.routes, p)
		} else {
			e.noted = false
			t.routes[p] = e
		}
	}
	t.noted = nil
}

// setRoute returns the prefix and whether its best route may have changed.
func (t *table) setRoute(m *message, replace bool) (Prefix, bool) {
	p, c, ok := t.candidateOf(m)
	if !ok && !replace { // another's route beside ours
		return p, false
	}
	e, known := t.routes[p]
	if !known && !ok {
		return p, false
	}
	var room [4]candidate
	list := t.candidates(p, &e, room[:])
	same := slices.IndexFunc(list, func(o candidate) bool { return o.metric == m.metric && o.tos == m.tos })
	switch {
	case !ok && same < 0:
		return p, false
	case !ok: // ours was replaced by one that leads elsewhere
		list = slices.Delete(list, same, same+1)
	case same >= 0 && (replace || list[same].Route == c.Route):
		list[same] = c
	default:
		at := slices.IndexFunc(list, func(o candidate) bool { return o.metric > c.metric })
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, c)
	}
	t.put(p, e, list)
	return p, true
}

func (t *table) deleteRoute(m *message) (Prefix, bool) {
	p, c, ok := t.candidateOf(m)
	e, known := t.routes[p]
	if !ok || !known {
		return p, false
	}
	var room [4]candidate
	list := t.candidates(p, &e, room[:])
	at := slices.Index(list, c)
	if at < 0 {
		return p, false
	}
	t.put(p, e, slices.Delete(list, at, at+1))
	return p, true
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
