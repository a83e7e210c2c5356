// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

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

// What the control plane before us announced stays until it is known what the data plane holds.
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
