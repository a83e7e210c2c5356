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
	metric int
	tos    int
	Route
}

// table is what netlink said of one namespace.
type table struct {
	clones     map[string]string // device -> interface
	links      map[int]link
	routes     map[netip.Prefix][]candidate
	neighbours map[Neighbour]MAC
}

type link struct {
	name, of  string // of: the interface it stands for
	up        bool
	mtu       uint32
	addresses map[netip.Prefix]bool
}

func newTable(clones []Clone) *table {
	t := &table{map[string]string{}, map[int]link{}, map[netip.Prefix][]candidate{}, map[Neighbour]MAC{}}
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

// candidateOf returns what counts of a route: unicast, of the main table, by a clone, not the configuration's own. Of
// several next hops those that do, whatever their weights; without a gateway, the first alone.
func (t *table) candidateOf(r *netlink.Route) (netip.Prefix, candidate, bool) {
	prefix, ok := destination(r)
	if !ok || r.Type != unix.RTN_UNICAST || r.Table != unix.RT_TABLE_MAIN || r.Protocol == protocol ||
		r.Flags&unix.RTM_F_CLONED != 0 {
		return prefix, candidate{}, false
	}
	hops := []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via}}
	if len(r.MultiPath) > 0 {
		hops = r.MultiPath
	}
	var list []Hop
	for _, h := range hops {
		l, known := t.links[h.LinkIndex]
		if !known || h.Via != nil {
			continue
		}
		via, _ := netip.AddrFromSlice(h.Gw)
		hop := Hop{via.Unmap(), l.of}
		if len(list) > 0 && (!hop.Via.IsValid() || !list[0].Via.IsValid() || slices.Contains(list, hop)) {
			continue
		}
		list = append(list, hop)
	}
	if len(list) == 0 {
		return prefix, candidate{}, false
	}
	made := Route{Prefix: prefix, Via: list[0].Via, Interface: list[0].Interface}
	return prefix, candidate{r.Priority, r.Tos, made.WithFurther(list[1:])}, true
}

func destination(r *netlink.Route) (netip.Prefix, bool) {
	if r.Dst == nil {
		switch r.Family {
		case unix.AF_INET:
			return netip.PrefixFrom(netip.IPv4Unspecified(), 0), true
		case unix.AF_INET6:
			return netip.PrefixFrom(netip.IPv6Unspecified(), 0), true
		}
		return netip.Prefix{}, false
	}
	return prefixOf(r.Dst)
}

// setRoute returns the prefix whose best route may have changed.
func (t *table) setRoute(r *netlink.Route, replace bool) (netip.Prefix, bool) {
	prefix, c, ok := t.candidateOf(r)
	list := t.routes[prefix]
	same := slices.IndexFunc(list, func(o candidate) bool { return o.metric == r.Priority && o.tos == r.Tos })
	switch {
	case !ok && !replace: // another's route beside ours
		return prefix, false
	case !ok && same < 0:
		return prefix, false
	case !ok: // ours was replaced by one that leads elsewhere
		list = slices.Delete(slices.Clone(list), same, same+1)
	case same >= 0 && (replace || list[same].Route == c.Route):
		list = slices.Clone(list)
		list[same] = c
	default:
		at, _ := slices.BinarySearchFunc(list, c.metric+1, func(o candidate, m int) int { return o.metric - m })
		list = slices.Insert(slices.Clone(list), at, c)
	}
	t.putRoutes(prefix, list)
	return prefix, true
}

func (t *table) deleteRoute(r *netlink.Route) (netip.Prefix, bool) {
	prefix, c, ok := t.candidateOf(r)
	list := t.routes[prefix]
	at := slices.Index(list, c)
	if !ok || at < 0 {
		return prefix, false
	}
	t.putRoutes(prefix, slices.Delete(slices.Clone(list), at, at+1))
	return prefix, true
}

func (t *table) putRoutes(prefix netip.Prefix, list []candidate) {
	if len(list) == 0 {
		delete(t.routes, prefix)
		return
	}
	t.routes[prefix] = list
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
