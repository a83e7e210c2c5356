// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ---- the configuration's part ---------------------------------------------------------------------------------------

// giveBack gives the kernel the addresses and routes of the configuration, and withdraws its earlier ones.
func (s *space) giveBack(h *netlink.Handle) {
	s.mu.Lock()
	clones := s.clones
	links := map[string]int{}
	is := map[string]link{}
	for index, l := range s.table.links {
		if l.of == "" {
			continue
		}
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
	s.takeFormer(h)
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
}

// given lists the routes that bear our protocol.
func given(h *netlink.Handle) ([]netlink.Route, error) {
	ours := &netlink.Route{Protocol: protocol}
	return h.RouteListFiltered(netlink.FAMILY_ALL, ours, netlink.RT_FILTER_PROTOCOL)
}

// giving makes a route in the kernel's form; of several next hops those by devices of this namespace.
func giving(p netip.Prefix, r Route, links map[string]int) *netlink.Route {
	route := &netlink.Route{Dst: ipNet(p), Protocol: protocol}
	var list []*netlink.NexthopInfo
	for _, h := range r.Hops() {
		if index, there := links[h.Interface]; there {
			list = append(list, hopInfo(p, h, index))
		}
	}
	if len(list) > 1 {
		route.MultiPath = list
		return route
	}
	for _, one := range list {
		route.LinkIndex, route.Gw, route.Via, route.Flags = one.LinkIndex, one.Gw, one.Via, one.Flags
	}
	if route.Gw == nil && route.Via == nil {
		route.Scope = netlink.SCOPE_LINK
	}
	return route
}

func hopInfo(p netip.Prefix, h Hop, index int) *netlink.NexthopInfo {
	n := &netlink.NexthopInfo{LinkIndex: index}
	switch {
	case !h.Via.IsValid():
	case h.Via.Is4() == p.Addr().Is4():
		n.Gw = h.Via.AsSlice()
	default:
		n.Via = &netlink.Via{AddrFamily: unix.AF_INET6, Addr: h.Via.AsSlice()}
	}
	if h.OnLink {
		n.Flags = int(netlink.FLAG_ONLINK)
	}
	return n
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

func sameHop(x, y *netlink.NexthopInfo) bool {
	via := func(n *netlink.NexthopInfo) string {
		if n.Via == nil {
			return ""
		}
		return n.Via.String()
	}
	const flags = int(netlink.FLAG_ONLINK)
	return x.LinkIndex == y.LinkIndex && x.Gw.Equal(y.Gw) && via(x) == via(y) && x.Flags&flags == y.Flags&flags
}

func hopsOf(r *netlink.Route) []*netlink.NexthopInfo {
	if len(r.MultiPath) > 0 {
		return r.MultiPath
	}
	return []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via, Flags: r.Flags}}
}

// giveRoutes compares with routes of our protocol: also those of a former control plane.
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
		if ok && want && slices.EqualFunc(hopsOf(&given[i]), hopsOf(giving(p, r, links)), sameHop) {
			delete(wanted, p)
			continue
		}
		all = errors.Join(all, h.RouteDel(&given[i]))
	}
	for p, r := range wanted {
		route := giving(p, r, links)
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
