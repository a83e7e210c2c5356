// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/testkit"
)

// announced lists the blackhole routes that bear our protocol.
func (w *world) announced() []string {
	w.t.Helper()
	routes, err := given(w.h)
	testkit.Must(w.t, err)
	list := []string{}
	for i := range routes {
		if p, ok := destination(&routes[i]); ok && routes[i].Type == unix.RTN_BLACKHOLE {
			list = append(list, p.String())
		}
	}
	slices.Sort(list)
	return list
}

func (w *world) announces(what string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.until(fmt.Sprint(what, ": ", want), func() bool { return slices.Equal(w.announced(), want) })
}

// pooled are the clones with two announced pools.
func (w *world) pooled() []Clone {
	clones := w.clones()
	clones[0].Announced = []netip.Prefix{netip.MustParsePrefix("10.45.0.0/16"),
		netip.MustParsePrefix("2001:db8:45::/48")}
	return clones
}

func (w *world) sessions(all bool, there bool, prefixes ...string) {
	changes := map[netip.Prefix]bool{}
	for _, p := range prefixes {
		changes[netip.MustParsePrefix(p)] = there
	}
	w.Sessions(all, map[string]map[netip.Prefix]bool{w.file: changes})
}

func TestAnnouncements(t *testing.T) {
	w := newWorld(t, receive)
	pools := []string{"10.45.0.0/16", "2001:db8:45::/48"}
	w.Follow(t.Context(), w.pooled())
	w.sessions(false, true, "10.46.0.1/32")
	w.until("read again", func() bool { return w.Status()[0].Read > 1 })
	testkit.Equal(t, len(w.announced()), 0, "routes before the data plane holds anything")
	w.Announce(true)
	w.announces("all", append(pools, "10.46.0.1/32")...)
	w.sessions(false, true, "10.46.0.2/32", "2001:db8:46:1::/64")
	w.announces("sessions that come", append(pools, "10.46.0.1/32", "10.46.0.2/32", "2001:db8:46:1::/64")...)
	// a pool stays the configuration's
	w.sessions(false, false, "10.46.0.1/32", "2001:db8:46:1::/64", "10.45.0.0/16")
	w.announces("sessions that go", append(pools, "10.46.0.2/32")...)
	w.sessions(true, true, "10.46.0.3/32")
	w.announces("others", append(pools, "10.46.0.3/32")...)
	w.until("status", func() bool { return w.Status()[0].Announced == 3 })
	if len(w.is.Routes) != 0 {
		t.Errorf("announcements come back as the kernel's routes: %v", w.is.Routes)
	}
	w.Announce(false)
	w.announces("withdrawn")
	w.Announce(true)
	w.announces("again", append(pools, "10.46.0.3/32")...)
	w.Follow(t.Context(), w.clones())
	w.announces("without pools", "10.46.0.3/32")
}

// The former control plane's announcements stay until the data plane's state is known.
func TestAnnouncementsAreTakenOver(t *testing.T) {
	w := newWorld(t, receive)
	for _, p := range []string{"10.45.0.0/16", "10.99.0.0/16", "2001:db8:99::/48"} {
		testkit.Must(t, announceOne(w.h, netip.MustParsePrefix(p), true))
	}
	w.Follow(t.Context(), w.pooled())
	w.until("read again", func() bool { return w.Status()[0].Read > 1 })
	testkit.Must(t, w.h.AddrAdd(w.link(), w.address("10.0.0.1/24")))
	w.until("an address", func() bool { return len(w.is.Devices["core"].Addresses) > 0 })
	testkit.Equal(t, len(w.announced()), 3, "routes of the control plane before")
	w.Announce(true)
	w.announces("ours", "10.45.0.0/16", "2001:db8:45::/48")
}

// configured are the pooled clones with more configuration of one.
func (w *world) configured() []Clone {
	clones := w.pooled()
	clones[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}
	clones[0].Routes = map[netip.Prefix]Route{netip.MustParsePrefix("192.0.2.0/24"): RouteBy(by("10.0.0.2")...)}
	return clones
}

// given lists what of the configuration's is in the kernel: routes, addresses, devices.
func (w *world) given() (list []string) {
	w.t.Helper()
	routes, err := given(w.h)
	testkit.Must(w.t, err)
	for i := range routes {
		p, _ := destination(&routes[i])
		list = append(list, "route "+p.String())
	}
	for _, name := range []string{"core0", "kept0"} {
		l, err := w.h.LinkByName(name)
		if err != nil {
			continue
		}
		list = append(list, name)
		addresses, err := w.h.AddrList(l, netlink.FAMILY_V4)
		testkit.Must(w.t, err)
		for _, a := range addresses {
			list = append(list, name+" "+a.IPNet.String())
		}
	}
	slices.Sort(list)
	return list
}

func (w *world) gives(what string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s: %q, not %q", what, w.given(), want)
		}
	}()
	w.until(fmt.Sprint(what, ": ", want), func() bool { return slices.Equal(w.given(), want) })
}

var everything = []string{"core0", "core0 10.0.0.1/24", "route 10.45.0.0/16", "route 192.0.2.0/24",
	"route 2001:db8:45::/48"}

// A namespace without clones loses all our routes and addresses; other programs' stay.
func TestNamespaceIsLeft(t *testing.T) {
	w, other := newWorld(t, receive), newWorld(t, receive)
	w.ip("route add blackhole 203.0.113.0/24")
	w.ip("link add name kept0 type veth peer name kept1")
	w.ip("addr add 10.9.0.1/24 dev kept0")
	w.Announce(true)
	w.Follow(t.Context(), w.configured())
	w.gives("all", append(everything, "kept0", "kept0 10.9.0.1/24")...)
	clones := w.configured()
	clones[0].Namespace = other.file
	w.Follow(t.Context(), clones)
	w.gives("nothing", "kept0", "kept0 10.9.0.1/24")
	other.gives("all elsewhere", everything...)
	routes, err := w.h.RouteList(nil, netlink.FAMILY_V4)
	testkit.Must(t, err)
	if !slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Dst.String() == "203.0.113.0/24" }) {
		t.Error("another program's route is gone")
	}
	// And back, at once: what was left is taken back before it is given again.
	for range 20 {
		w.Follow(t.Context(), w.configured())
		w.Follow(t.Context(), clones)
	}
	w.Follow(t.Context(), w.configured())
	w.gives("announcements", "kept0", "kept0 10.9.0.1/24", "route 10.45.0.0/16", "route 2001:db8:45::/48")
	w.device("core0")
	w.gives("all again", append(everything, "kept0", "kept0 10.9.0.1/24")...)
}

// The control plane ends: the data plane forwards on, so all stays. Its successor withdraws what its configuration
// lacks, also in namespaces that it does not name.
func TestLeftByTheOneBefore(t *testing.T) {
	w, other := newWorld(t, receive), newWorld(t, receive)
	for _, o := range []*world{w, other} { // whose own would take everything back
		o.Follow(t.Context(), nil)
		o.gives("nothing")
		o.device("core0")
	}
	var kept Given
	first := New(w.log)
	first.Remember(nil, func(g Given) error { kept = g; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	clones := w.configured()
	clones = append(clones, Clone{Interface: "other", Device: "core0", Namespace: other.file, MTU: 1500,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.1.1/24")}})
	first.Announce(true)
	first.Follow(ctx, clones)
	w.gives("all", everything...)
	other.gives("addresses", "core0", "core0 10.0.0.1/24", "core0 10.0.1.1/24")
	cancel()
	first.Wait()
	w.gives("all stays", everything...)
	second := New(w.log)
	second.Remember(kept, func(g Given) error { kept = g; return nil })
	ctx, cancel = context.WithCancel(t.Context())
	clones[1].Addresses = clones[1].Addresses[1:]
	second.Follow(ctx, clones[1:])
	w.gives("nothing")
	other.gives("less", "core0", "core0 10.0.1.1/24")
	want := Given{other.file: {"core0": clones[1].Addresses}}
	w.until("it is not remembered any more", func() bool {
		second.lock.Lock()
		defer second.lock.Unlock()
		return reflect.DeepEqual(kept, want)
	})
	cancel()
	second.Wait()
}
