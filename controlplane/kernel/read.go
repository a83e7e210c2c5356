// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const attempts = 5 // to read a table that changes meanwhile (NLM_F_DUMP_INTR)

// readAll takes what the kernel has now for the table, and notes what differs.
func (s *space) readAll(h *handles) error {
	s.mu.Lock()
	fresh := newTable(s.clones)
	for index, l := range s.table.links { // a renamed device stays what it was
		same := func(c Clone) bool { return c.Interface == l.of && s.table.clones[c.Device] == l.of }
		if slices.ContainsFunc(s.clones, same) {
			fresh.links[index] = link{of: l.of}
		}
	}
	s.mu.Unlock()
	if err := fresh.read(h); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	s.mu.Lock()
	old := s.table
	s.table = fresh
	s.state.Read++
	s.state.Error = ""
	s.note(old, fresh)
	s.mu.Unlock()
	s.once.Do(func() { close(s.known) })
	signal(s.changed)
	return nil
}

// note marks the difference of two tables as changed, beside what is: the fresh one is ours already.
func (s *space) note(old, fresh *table) {
	for _, p := range old.noted {
		fresh.note(p)
	}
	if !maps.EqualFunc(old.links, fresh.links, func(a, b link) bool {
		return a.of == b.of && a.up == b.up && a.mtu == b.mtu && maps.Equal(a.addresses, b.addresses)
	}) {
		s.whole = true
		return
	}
	for p, e := range fresh.routes {
		if e.Route != old.routes[p].Route {
			fresh.note(p)
		}
	}
	for p := range old.routes {
		if fresh.routes[p].Route == (Route{}) {
			fresh.note(p)
		}
	}
	for n, mac := range fresh.neighbours {
		if old.neighbours[n] != mac {
			s.others[n] = true
		}
	}
	for n := range old.neighbours {
		if _, there := fresh.neighbours[n]; !there {
			s.others[n] = true
		}
	}
}

func (t *table) read(h *handles) error {
	if err := t.readLinks(h.Handle); err != nil {
		return err
	}
	if err := t.readAddresses(h.Handle); err != nil {
		return err
	}
	if err := t.readRoutes(&h.routes); err != nil {
		return err
	}
	neighbours, err := whole(func() ([]netlink.Neigh, error) { return h.NeighList(0, 0) })
	for i := range neighbours {
		t.setNeighbour(&neighbours[i], true)
	}
	return err
}

// whole asks again while the answer was disturbed by changes; the last one counts, as changes are told too.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range attempts {
		all, err = list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, nil
}

func (t *table) readLinks(h *netlink.Handle) error {
	links, err := whole(h.LinkList)
	if err != nil {
		return err
	}
	there := map[int]bool{}
	for _, l := range links {
		a := l.Attrs()
		there[a.Index] = true
		t.setLink(a.Index, a.Name, a.RawFlags, uint32(a.MTU))
	}
	maps.DeleteFunc(t.links, func(index int, _ link) bool { return !there[index] })
	return nil
}

func (t *table) readAddresses(h *netlink.Handle) error {
	addresses, err := whole(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
	for _, a := range addresses {
		if a.IPNet != nil {
			t.setAddress(a.LinkIndex, *a.IPNet, a.Flags, true)
		}
	}
	return err
}

// readRoutes asks by the library, for whose sockets there is no other way, and decodes by itself.
func (t *table) readRoutes(socket *nl.SocketHandle) error {
	var err error
	var m message
	take := func(body []byte) bool {
		if m.decode(body) {
			t.setRoute(&m, false)
		}
		return true
	}
	for range attempts {
		clear(t.routes)
		clear(t.further)
		t.prefixes = 0
		all := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
		all.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: socket}
		all.AddData(&nl.RtMsg{})
		err = all.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE, take)
		if !errors.Is(err, nl.ErrDumpInterrupted) {
			return err
		}
	}
	return nil
}

// ---- messages -------------------------------------------------------------------------------------------------------

// linkChanged returns whether all must be read: a clone came, so its addresses may have been told before, or it went
// down, which takes IPv4 routes away without a word.
func (s *space) linkChanged(u *netlink.LinkUpdate) (stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := u.Attrs()
	was, known := s.table.links[a.Index]
	var news bool
	if u.Header.Type == unix.RTM_DELLINK {
		if u.Family == unix.AF_BRIDGE { // left a bridge
			return false
		}
		news = s.table.deleteLink(a.Index)
		stale = news
	} else {
		news = s.table.setLink(a.Index, a.Name, a.RawFlags, uint32(a.MTU))
		stale = news && (!known || was.up != s.table.links[a.Index].up)
	}
	if news {
		s.whole = true
		signal(s.changed)
	}
	return stale
}

// addressChanged returns whether all must be read: routes go with their source address, without a word.
func (s *space) addressChanged(u *netlink.AddrUpdate) (stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.table.setAddress(u.LinkIndex, u.LinkAddress, u.Flags, u.NewAddr) {
		return false
	}
	s.whole = true
	signal(s.changed)
	return !u.NewAddr
}

// routesChanged takes the messages of a batch; false: one of them is lost.
func (s *space) routesChanged(b *batch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.table.noted)
	whole := b.each(func(datagram []byte) { eachMessage(datagram, s.routeChanged) })
	if len(s.table.noted) > before {
		signal(s.changed)
	}
	return whole
}

// routeChanged takes one. The lock is held.
func (s *space) routeChanged(kind, flags uint16, body []byte) {
	var m message
	var p Prefix
	var changed bool
	if !m.decode(body) {
		return
	}
	switch kind {
	case unix.RTM_DELROUTE:
		p, changed = s.table.deleteRoute(&m)
	case unix.RTM_NEWROUTE:
		p, changed = s.table.setRoute(&m, flags&unix.NLM_F_REPLACE != 0)
	}
	if changed {
		s.table.note(p)
	}
}

func (s *space) neighbourChanged(u *netlink.NeighUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, news := s.table.setNeighbour(&u.Neigh, u.Type != unix.RTM_DELNEIGH); news {
		s.others[n] = true
		signal(s.changed)
	}
}

// ---- the configuration's part ---------------------------------------------------------------------------------------

// giveBack gives the kernel the addresses and routes of the configuration, and takes away those that it gave before.
func (s *space) giveBack(h *netlink.Handle) {
	s.mu.Lock()
	clones := s.clones
	links := map[string]int{}
	is := map[string]link{}
	for index, l := range s.table.links {
		links[l.of] = index
		l.addresses = maps.Clone(l.addresses)
		is[l.of] = l
	}
	s.mu.Unlock()
	wanted := map[netip.Prefix]Route{}
	for i := range clones {
		c := &clones[i]
		if index, there := links[c.Interface]; there {
			s.giveDevice(h, c, index, is[c.Interface])
			maps.Copy(wanted, c.Routes)
		}
	}
	if err := s.giveRoutes(h, wanted, links); err != nil {
		s.log.Warn("the kernel does not take the configured routes", "error", err)
	}
}

func (s *space) giveDevice(h *netlink.Handle, c *Clone, index int, is link) {
	l := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index, Name: is.name}}
	log := s.log.With("interface", c.Interface)
	say := func(what string, err error) {
		if err != nil {
			log.Warn("the kernel does not take the configuration", "what", what, "error", err)
		}
	}
	if is.name != c.Device {
		say("name "+c.Device, h.LinkSetName(l, c.Device))
	}
	if is.mtu > c.MTU {
		log.Warn("the device's MTU is above the port's, put back", "mtu", is.mtu, "port", c.MTU)
		say("MTU", h.LinkSetMTU(l, int(c.MTU)))
	}
	for _, p := range c.Addresses {
		if is.addresses[p] {
			continue
		}
		// The data plane watches for duplicates.
		a := &netlink.Addr{IPNet: ipNet(p)}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		say("address "+p.String(), h.AddrReplace(l, a))
	}
	for _, p := range s.added[c.Interface] {
		if !slices.Contains(c.Addresses, p) && is.addresses[p] {
			say("without address "+p.String(), h.AddrDel(l, &netlink.Addr{IPNet: ipNet(p)}))
		}
	}
	s.added[c.Interface] = slices.Clone(c.Addresses)
}

// given lists the routes that bear our protocol.
func given(h *netlink.Handle) ([]netlink.Route, error) {
	ours := &netlink.Route{Protocol: protocol}
	return h.RouteListFiltered(netlink.FAMILY_ALL, ours, netlink.RT_FILTER_PROTOCOL)
}

// routeOf is a route as the kernel is given it; of several next hops those by devices of this namespace.
func routeOf(p netip.Prefix, r Route, links map[string]int) *netlink.Route {
	nearest := r.First()
	route := &netlink.Route{Dst: ipNet(p), LinkIndex: links[nearest.Interface], Protocol: protocol}
	if !nearest.Via.IsValid() {
		route.Scope = netlink.SCOPE_LINK
		return route
	}
	route.Gw = nearest.Via.AsSlice()
	for _, h := range r.Further() {
		if index, there := links[h.Interface]; there {
			next := &netlink.NexthopInfo{LinkIndex: index, Gw: h.Via.AsSlice()}
			route.MultiPath = append(route.MultiPath, next)
		}
	}
	if len(route.MultiPath) > 0 {
		first := &netlink.NexthopInfo{LinkIndex: route.LinkIndex, Gw: route.Gw}
		route.MultiPath = append([]*netlink.NexthopInfo{first}, route.MultiPath...)
		route.LinkIndex, route.Gw = 0, nil
	}
	return route
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

func sameHops(a, b *netlink.Route) bool {
	return slices.EqualFunc(hopsOf(a), hopsOf(b), func(x, y *netlink.NexthopInfo) bool {
		return x.LinkIndex == y.LinkIndex && x.Gw.Equal(y.Gw)
	})
}

func hopsOf(r *netlink.Route) []*netlink.NexthopInfo {
	if len(r.MultiPath) > 0 {
		return r.MultiPath
	}
	return []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw}}
}

// giveRoutes compares with those that bear our protocol: also what a control plane before this one gave.
func (s *space) giveRoutes(h *netlink.Handle, wanted map[netip.Prefix]Route, links map[string]int) error {
	given, err := whole(func() ([]netlink.Route, error) { return given(h) })
	if err != nil {
		return err
	}
	announced, decided := s.announcements()
	var all error
	for i := range given {
		p, ok := destination(&given[i])
		if given[i].Type == unix.RTN_BLACKHOLE {
			if decided && (!ok || !announced[p]) {
				all = errors.Join(all, h.RouteDel(&given[i]))
			}
			delete(announced, p)
			continue
		}
		r, want := wanted[p]
		if ok && want && sameHops(&given[i], routeOf(p, r, links)) {
			delete(wanted, p)
			continue
		}
		all = errors.Join(all, h.RouteDel(&given[i]))
	}
	for p, r := range wanted {
		route := routeOf(p, r, links)
		// A device that is down takes none; it is given them when it is up.
		err := h.RouteReplace(route)
		if err != nil && !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.ENETUNREACH) {
			all = errors.Join(all, fmt.Errorf("%s: %w", p, err))
		}
	}
	for p := range announced {
		all = errors.Join(all, announceOne(h, p, true))
	}
	return all
}
