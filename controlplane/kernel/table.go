// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"isthmus/api"
)

// protocol marks the configuration's routes (rt_protos: an unused number).
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

// ofLink: destinations are on a link, or groups, so no router forwards to them.
func (p Prefix) ofLink() bool {
	a := p.Netip()
	return a.Addr().IsLinkLocalUnicast() && a.Bits() > 9 || a.Addr().IsMulticast() && a.Bits() > 3
}

// candidate is a kernel route to a prefix: the first followed one of the lowest metric counts.
type candidate struct {
	Route
	metric   uint32
	nextHop  uint32 // object that it is by; 0: none
	identity uint32 // among those of its metric
	sibling  bool   // of IPv6: one route with all such of its metric
	usable   bool   // the data plane can have some of it
	why      Reason // something of it is left out
}

// by makes the route one's.
func (c *candidate) by(r Route) {
	f := r.fate()
	c.Route, c.usable, c.why = r, f.hops[0] != Hop{} || f.discard != api.DiscardNone, f.left.reason
}

// foreign names a route that none of the data plane's can be compared with.
type foreign struct {
	prefix        Prefix
	table, metric uint32
	tos, fromBits uint8
}

// mostForeign is how many of them are known by name, of one namespace.
const mostForeign = 16384

// table is one namespace by its netlink messages.
type table struct {
	clones     map[string]string // device -> interface
	links      map[int]link      // clones, and devices whose addresses are ours
	names      map[int]string    // of all devices
	routes     map[Prefix]entry
	further    map[Prefix][]candidate // behind the first one
	noted      []Prefix               // changed
	prefixes   int                    // of routes: those that are followed
	nextHops   map[uint32]nextHop
	changed    map[uint32]bool // of nextHops, and those that went
	made       map[pathKey]Route
	users      map[uint32]int // candidates by an object
	foreign    map[foreign]Reason
	left       [Reasons]int // of the kernel's routes, foreign ones too
	neighbours map[Neighbour]MAC
}

type link struct {
	name, of  string // of: the interface it stands for; empty: none, but its addresses are ours
	up        bool
	carrier   uint32 // IFF_RUNNING and IFF_LOWER_UP
	mtu       uint32
	addresses map[netip.Prefix]bool
}

func newTable(clones []Clone) *table {
	t := &table{clones: map[string]string{}, links: map[int]link{}, names: map[int]string{},
		routes: map[Prefix]entry{}, further: map[Prefix][]candidate{}, nextHops: map[uint32]nextHop{},
		changed: map[uint32]bool{}, made: map[pathKey]Route{}, users: map[uint32]int{},
		foreign: map[foreign]Reason{}, neighbours: map[Neighbour]MAC{}}
	for _, c := range clones {
		t.clones[c.Device] = c.Interface
	}
	return t
}

// forgetRoutes begins to read all routes.
func (t *table) forgetRoutes() {
	clear(t.routes)
	clear(t.further)
	clear(t.users)
	clear(t.foreign)
	t.left, t.prefixes = [Reasons]int{}, 0
}

// ---- links ----------------------------------------------------------------------------------------------------------

// setLink returns whether the change matters; a renamed device keeps its role. own: the addresses of a device that is
// no clone are ours.
func (t *table) setLink(index int, name string, flags, mtu uint32, own bool) bool {
	t.names[index] = name
	clear(t.made)
	was, known := t.links[index]
	is := link{name: name, of: t.clones[name], up: flags&unix.IFF_UP != 0, mtu: mtu,
		carrier: flags & (unix.IFF_RUNNING | unix.IFF_LOWER_UP), addresses: was.addresses}
	if known {
		is.of = was.of
	}
	if is.of == "" && !own {
		return false
	}
	if is.addresses == nil {
		is.addresses = map[netip.Prefix]bool{}
	}
	t.links[index] = is
	return !known || was.up != is.up || was.mtu != is.mtu || was.name != is.name
}

// loopback lists the addresses of devices without a link, that are up: the kernel has no others.
func (t *table) loopback() (list []netip.Addr) {
	for _, l := range t.links {
		for p := range l.addresses {
			if a := p.Addr(); l.of == "" && l.up && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				list = append(list, a)
			}
		}
	}
	return list
}

func (t *table) deleteLink(index int) bool {
	_, known := t.links[index]
	delete(t.links, index)
	delete(t.names, index)
	clear(t.made)
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

// entry has a prefix's candidates, the effective one first. Empty: its removal is still to be sent.
type entry struct {
	candidate
	noted bool // as changed
	more  bool // table.further has candidates
}

// candidates of a prefix, in the kernel's order.
func (t *table) candidates(p Prefix, e *entry, room []candidate) []candidate {
	if e.Route == (Route{}) {
		return room[:0]
	}
	list := append(room[:0], e.candidate)
	if e.more {
		list = append(list, t.further[p]...)
	}
	return list
}

// bestOf is what counts of candidates.
func bestOf(list []candidate) Route {
	for i := range list {
		if list[i].usable {
			return list[i].Route
		}
	}
	return Route{}
}

// best is what counts of an entry.
func (t *table) best(p Prefix, e *entry) Route {
	if e.Route == (Route{}) || e.usable {
		return e.Route
	}
	return bestOf(t.further[p])
}

// tally counts candidates that come (1) or go (-1).
func (t *table) tally(list []candidate, by int) {
	for i := range list {
		t.left[list[i].why] += by
		if id := list[i].nextHop; id != 0 {
			if t.users[id] += by; t.users[id] == 0 {
				delete(t.users, id)
			}
		}
	}
}

// put replaces a prefix's candidates `was` by `now`, and returns whether the effective ones changed.
func (t *table) put(p Prefix, e entry, was, now []candidate) bool {
	before, after := bestOf(was), bestOf(now)
	t.tally(was, -1)
	t.tally(now, 1)
	e.candidate = candidate{}
	if len(now) > 0 {
		e.candidate = now[0]
	}
	if e.more = len(now) > 1; e.more {
		t.further[p] = slices.Clone(now[1:])
	} else if len(t.further) > 0 {
		delete(t.further, p)
	}
	if len(now) == 0 && !e.noted && before == after {
		delete(t.routes, p)
	} else {
		t.routes[p] = e
	}
	if before != (Route{}) {
		t.prefixes--
	}
	if after != (Route{}) {
		t.prefixes++
	}
	return before != after
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
		fn(p, t.best(p, &e))
		if e.Route == (Route{}) {
			delete(t.routes, p)
		} else {
			e.noted = false
			t.routes[p] = e
		}
	}
	t.noted = nil
}

// change is what a message of a route did.
type change struct {
	prefix Prefix
	best   bool // what counts of the prefix may be another
	stale  bool // the cause is unknown: all must be read
}

// setRoute takes a route over. flags: of the message, NLM_F_…
func (t *table) setRoute(m *message, flags uint16) change {
	p, c, ok := t.candidateOf(m)
	replace := flags&unix.NLM_F_REPLACE != 0
	if ok && m.elsewhere() != Followed {
		t.setForeign(p, m, c.why)
		return change{prefix: p}
	}
	if !ok && (!replace || m.protocol != uint8(protocol)) { // another's route beside ours
		return change{prefix: p}
	}
	e := t.routes[p]
	var room, was [4]candidate
	old := t.candidates(p, &e, was[:])
	list := append(room[:0], old...)
	same, only := find(list, func(o *candidate) bool { return o.metric == m.metric && o.sibling == c.sibling })
	if replace && same < 0 { // of IPv6 also one of the other kind
		same, only = find(list, func(o *candidate) bool { return o.metric == m.metric })
	}
	if itself, _ := find(list, c.is); replace && itself >= 0 { // its next hop object changed
		same = itself
	}
	if replace && !p.four && same >= 0 && !only { // the kernel's order alone decides which one
		return change{prefix: p, stale: true}
	}
	switch {
	case !ok && same < 0:
		return change{prefix: p}
	case !ok: // ours was put in its place
		list = slices.Delete(list, same, same+1)
	case same >= 0 && (replace || c.sibling):
		list[same] = c
	default:
		if again, _ := find(list, c.is); again >= 0 { // it was read before it was reported
			list = slices.Delete(list, again, again+1)
		}
		// As the kernel does: in front of others of the metric, unless it was appended.
		behind := flags&unix.NLM_F_APPEND != 0 || !p.four
		at := slices.IndexFunc(list, func(o candidate) bool {
			return o.metric > c.metric || o.metric == c.metric && !behind
		})
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, c)
	}
	return change{prefix: p, best: t.put(p, e, old, list)}
}

// find returns where the first such candidate is, or -1, and whether there is no other.
func find(list []candidate, is func(o *candidate) bool) (at int, only bool) {
	at, only = -1, true
	for i := range list {
		switch {
		case !is(&list[i]):
		case at < 0:
			at = i
		default:
			only = false
		}
	}
	return at, only
}

// is: two candidates are one route of the kernel.
func (c *candidate) is(o *candidate) bool {
	return o.metric == c.metric && o.identity == c.identity && o.sibling == c.sibling
}

// deleteRoute takes a route away.
func (t *table) deleteRoute(m *message) change {
	p, c, ok := t.candidateOf(m)
	if ok && m.elsewhere() != Followed {
		t.deleteForeign(p, m)
		return change{prefix: p}
	}
	e, known := t.routes[p]
	if !ok || !known {
		return change{prefix: p}
	}
	var room, was [4]candidate
	old := t.candidates(p, &e, was[:])
	list := append(room[:0], old...)
	at, _ := find(list, c.is)
	if c.sibling {
		at, _ = find(list, func(o *candidate) bool { return o.metric == c.metric && o.sibling })
	}
	if at < 0 {
		return change{prefix: p}
	}
	if c.sibling && len(m.paths) == 0 && list[at].Route != c.Route { // one next hop of several
		rest, ok := without(list[at].Route, c.Route)
		if !ok {
			return change{prefix: p, stale: true}
		}
		list[at].by(rest)
		return change{prefix: p, best: t.put(p, e, old, list)}
	}
	return change{prefix: p, best: t.put(p, e, old, slices.Delete(list, at, at+1))}
}

// without is a route less one next hop; false: unknown, since not all of its next hops are known, or it has no other.
func without(r, less Route) (Route, bool) {
	gone, f := less.Hops(), r.fate()
	if len(gone) != 1 || f.left.hops > 0 {
		return Route{}, false
	}
	hops := slices.DeleteFunc(slices.Clone(r.Hops()), func(h Hop) bool { return h == gone[0] })
	if len(hops) == 0 || len(hops) == len(r.Hops()) {
		return Route{}, false
	}
	return RouteBy(hops...), true
}

// ---- routes that nothing of the data plane's is like ----------------------------------------------------------------

func foreignOf(p Prefix, m *message) foreign {
	return foreign{p, m.table, m.metric, m.tos, m.fromBits}
}

// setForeign notes one; above the number known by name, the count is exact only after all is read again.
func (t *table) setForeign(p Prefix, m *message, why Reason) {
	key := foreignOf(p, m)
	if _, known := t.foreign[key]; known {
		return
	}
	t.left[why]++
	if len(t.foreign) < mostForeign {
		t.foreign[key] = why
	}
}

func (t *table) deleteForeign(p Prefix, m *message) {
	key := foreignOf(p, m)
	if why, known := t.foreign[key]; known {
		delete(t.foreign, key)
		t.left[why]--
	}
}

// ---- neighbours -----------------------------------------------------------------------------------------------------

// confirmed are the states in which the kernel vouches for the address; the data plane resolves all others itself.
const confirmed = unix.NUD_PERMANENT | unix.NUD_REACHABLE | unix.NUD_NOARP | unix.NUD_DELAY | unix.NUD_PROBE

func (t *table) setNeighbour(n *netlink.Neigh, there bool) (Neighbour, bool) {
	l, known := t.links[n.LinkIndex]
	addr, ok := netip.AddrFromSlice(n.IP)
	key := Neighbour{l.of, addr.Unmap()}
	if !known || l.of == "" || !ok || addr.IsMulticast() {
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
