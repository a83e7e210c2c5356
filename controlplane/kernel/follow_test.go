// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

// Routes at which packets end, of either family, by themselves and by an object.
func TestDiscardRoutes(t *testing.T) {
	w := newPairs(t)
	for how, type4 := range map[string]uint32{"blackhole": api.DiscardBlackhole,
		"unreachable": api.DiscardUnreachable,
		"prohibit":    api.DiscardProhibit, "throw": api.DiscardUnreachable} {
		for _, p := range []string{"203.0.113.0/24", "2001:db8:3::/48"} {
			w.ip("route add " + how + " " + p)
			w.leads(p, fmt.Sprint("discard ", type4))
			w.ip("route del " + how + " " + p)
			w.leads(p, "")
		}
	}
	w.ip("link set dev lo up")
	w.ip("nexthop add id 1 blackhole")
	w.ip("route add 203.0.113.0/24 nhid 1")
	w.leads("203.0.113.0/24", "discard 1")
	w.ip("nexthop del id 1")
	w.leads("203.0.113.0/24", "")
	// The lowest metric counts among both kinds.
	w.ip("route add blackhole 203.0.113.0/24 metric 20")
	w.leads("203.0.113.0/24", "discard 1")
	w.ip("route add 203.0.113.0/24 via 10.0.0.2 metric 10")
	w.leads("203.0.113.0/24", "10.0.0.2@a")
	w.ip("route del 203.0.113.0/24 metric 10")
	w.leads("203.0.113.0/24", "discard 1")
}

// Next hops outside of their device's networks: as with BGP unnumbered, on the link, behind a device route.
func TestNextHopsOnTheLink(t *testing.T) {
	w := newPairs(t)
	for _, c := range []struct{ command, prefix, want string }{
		{"route add 192.0.2.0/24 via inet6 fe80::2 dev va", "192.0.2.0/24", "fe80::2@a"},
		{"route add 192.0.3.0/24 via inet6 2001:db8:b::2", "192.0.3.0/24", "2001:db8:b::2@b"},
		{"route add 192.0.4.0/24 nexthop via inet6 fe80::2 dev va nexthop via 10.1.0.2", "192.0.4.0/24",
			"10.1.0.2@b fe80::2@a"},
		{"route add 192.0.5.0/24 via 172.16.0.1 dev va onlink", "192.0.5.0/24", "172.16.0.1@a"},
		{"route add 172.17.0.1/32 dev vb", "172.17.0.1/32", "link@b"},
		{"route add 192.0.6.0/24 via 172.17.0.1", "192.0.6.0/24", "172.17.0.1@b"},
		{"-6 route add 2001:db8:5::/48 via 2001:db8:f::1 dev va onlink", "2001:db8:5::/48", "2001:db8:f::1@a"},
	} {
		w.ip(c.command)
		w.leads(c.prefix, c.want)
	}
}

// Addresses of the loopback device are ours while it is up; its own ones are not.
func TestLoopbackAddresses(t *testing.T) {
	w := newPairs(t)
	own := func(want ...string) {
		t.Helper()
		w.until(fmt.Sprint("ours: ", want), func() bool {
			return strings.Join(strings.Fields(fmt.Sprint(w.is.Loopback[""])), " ") == fmt.Sprint(want)
		})
	}
	w.ip("addr add 10.255.0.1/32 dev lo")
	w.ip("link set dev lo up")
	own("10.255.0.1")
	w.ip("addr add 2001:db8:ff::1/128 dev lo")
	w.ip("addr add 10.255.1.1/24 dev lo")
	own("10.255.0.1", "10.255.1.1", "2001:db8:ff::1")
	testkit.Equal(t, w.Status()[0].Loopback, 3, "addresses in the status")
	w.ip("addr del 10.255.1.1/24 dev lo")
	own("10.255.0.1", "2001:db8:ff::1")
	w.ip("link set dev lo down")
	w.until("none", func() bool { return len(w.is.Loopback) == 0 })
	for _, l := range []struct {
		link netlink.Link
		own  bool
	}{
		{&netlink.Dummy{}, true},
		{&netlink.Device{LinkAttrs: netlink.LinkAttrs{RawFlags: unix.IFF_LOOPBACK}}, true},
		{&netlink.Device{}, false},
		{&netlink.Tuntap{}, false},
	} {
		testkit.Equal(t, ofNoLink(l.link), l.own, "%s", l.link.Type())
	}
	// There are no neighbours.
	one := newTable(nil)
	one.setLink(6, "dummy0", unix.IFF_UP, 1500, true)
	if n, changed := one.setNeighbour(&netlink.Neigh{LinkIndex: 6, State: unix.NUD_PERMANENT,
		IP: net.IP{10, 255, 0, 9}, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}, true); changed {
		t.Errorf("a neighbour without a link: %v", n)
	}
}

// Every unfollowed route is in a list, with the reason, and counted.
func TestIgnoredRoutes(t *testing.T) {
	w := newPairs(t)
	w.pair("eth0", "172.16.0.1/24")
	many := "route add 192.0.9.0/24"
	for i := range 10 {
		many += fmt.Sprintf(" nexthop via 10.0.0.%d", 10+i)
	}
	want := map[string]string{"172.16.0.0/24": "device eth0"} // its own network
	for _, c := range []struct{ command, prefix, why string }{
		{"route add 192.0.2.0/24 via 172.16.0.2", "192.0.2.0/24", "device 172.16.0.2 eth0"},
		{"route add 192.0.3.0/24 via 10.0.0.2 table 100", "192.0.3.0/24", "table"},
		{"route add 192.0.4.0/24 tos 0x10 via 10.0.0.2", "192.0.4.0/24", "tos"},
		{"-6 route add 2001:db8:6::/48 from 2001:db8:7::/48 via 2001:db8:a::2", "2001:db8:6::/48", "source"},
		{"route add local 192.0.6.0/24 dev va", "192.0.6.0/24", "type"},
		{"route add 192.0.7.0/24 nexthop via 10.0.0.2 nexthop via 172.16.0.2", "192.0.7.0/24",
			"1 device 172.16.0.2 eth0"},
		{many, "192.0.9.0/24", "2 many 10.0.0.18 va"},
	} {
		w.ip(c.command)
		if c.prefix != "192.0.6.0/24" { // iproute2 puts it into the table local
			want[c.prefix] = c.why
		}
	}
	w.ip("route add local 192.0.6.0/24 dev va table main")
	want["192.0.6.0/24"] = "type"
	list := func() map[string]string {
		all := map[string]string{}
		for _, i := range w.Ignored(100) {
			why := i.Reason.String()
			if i.Via.IsValid() {
				why += " " + i.Via.String()
			}
			why = strings.TrimSpace(why + " " + i.Device)
			if i.Hops > 0 {
				why = fmt.Sprint(i.Hops, " ", why)
			}
			all[i.Prefix.String()] = why
			testkit.ErrorIf(t, i.Reason.Text() == "" || i.Namespace != w.file, "%+v", i)
		}
		return all
	}
	defer func() {
		if t.Failed() {
			t.Logf("%v\nnot %v", list(), want)
		}
	}()
	w.until("all of them", func() bool { return maps.Equal(list(), want) })
	testkit.Equal(t, w.Status()[0].Ignored, len(want), "ignored in the status")
	testkit.Equal(t, w.Left()[NoClone], 3, "for their device")
	testkit.Equal(t, len(w.Ignored(2)), 2, "rows")
	w.ip("route del 192.0.3.0/24 table 100")
	w.ip("route del 192.0.7.0/24")
	w.ip("route replace 192.0.2.0/24 via 10.0.0.2")
	for _, p := range []string{"192.0.3.0/24", "192.0.7.0/24", "192.0.2.0/24"} {
		delete(want, p)
	}
	w.until("fewer", func() bool { return maps.Equal(list(), want) && w.Left()[OtherTable] == 0 })
}

// More routes of other tables than are known by name are counted all the same.
func TestIgnoredRoutesAreBounded(t *testing.T) {
	s := &space{table: twoDevices()}
	for i := range mostForeign + 10 {
		body := routeMessage(unix.AF_INET, 32, unix.RTN_UNICAST,
			attribute(unix.RTA_DST, []byte{10, byte(i >> 16), byte(i >> 8), byte(i)}),
			attribute(unix.RTA_OIF, nl.Uint32Attr(3)),
			attribute(unix.RTA_TABLE, nl.Uint32Attr(100)))
		s.routeChanged(unix.RTM_NEWROUTE, 0, body)
	}
	testkit.Equal(t, len(s.table.foreign), mostForeign, "known by name")
	testkit.Equal(t, s.table.left[OtherTable], mostForeign+10, "counted")
}

// The configuration's routes go to the kernel unchanged.
func TestConfiguredRoutes(t *testing.T) {
	w := newPairs(t)
	hop := func(via, name string, onlink bool) Hop {
		a, _ := netip.ParseAddr(via)
		return Hop{a, name, onlink}
	}
	clones := slices.Clone(w.spaces[w.file].clones)
	clones[0].Routes = map[netip.Prefix]Route{}
	for p, r := range map[string]Route{
		"192.0.2.0/24": RouteBy(hop("fe80::2", "a", false)),
		"192.0.3.0/24": RouteBy(hop("10.0.0.2", "a", false), hop("2001:db8:b::2", "b", false)),
		"192.0.4.0/24": RouteBy(hop("172.16.0.1", "a", true)),
		"192.0.7.0/24": RouteBy(hop("", "b", false)),
	} {
		clones[0].Routes[netip.MustParsePrefix(p)] = r
	}
	w.Follow(t.Context(), clones)
	show := func() string {
		var list []string
		routes, err := given(w.h)
		testkit.Must(t, err)
		for i := range routes {
			p, _ := destination(&routes[i])
			text := p.String()
			for _, h := range hopsOf(&routes[i]) {
				text += fmt.Sprint(" ", h.Gw, " ", h.Via, " ", h.Flags&int(netlink.FLAG_ONLINK) != 0)
			}
			list = append(list, text)
		}
		slices.Sort(list)
		return strings.Join(list, "\n")
	}
	want := strings.Join([]string{"192.0.2.0/24 <nil> Family: 10, Address: fe80::2 false",
		"192.0.3.0/24 10.0.0.2 <nil> false <nil> Family: 10, Address: 2001:db8:b::2 false",
		"192.0.4.0/24 172.16.0.1 <nil> true", "192.0.7.0/24 <nil> <nil> false"}, "\n")
	defer func() {
		if t.Failed() {
			t.Logf("\n%s\nnot\n%s", show(), want)
		}
	}()
	w.until("all of them", func() bool { return show() == want })
	clones[0].Routes = nil
	w.Follow(t.Context(), clones)
	w.until("none", func() bool { return show() == "" })
}
