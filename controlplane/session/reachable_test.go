// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"
	"reflect"
	"testing"

	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

func occupies(list ...rules.UEAddress) *rules.Compiled { return &rules.Compiled{UEs: list} }

// reach checks Reachable's answer for the instance internet.
func reach(t *testing.T, p *Manager, all bool, want map[string]bool) {
	t.Helper()
	got, news := p.Reachable()
	is := map[string]bool{}
	for prefix, there := range news["internet"] {
		is[prefix.String()] = there
	}
	testkit.ErrorIf(t, got != all || !reflect.DeepEqual(is, want), "all %v %v, want %v %v", got, is, all, want)
}

func TestReachable(t *testing.T) {
	p := newManager(testSettings(), nil, nil)
	pool := []netip.Prefix{netip.MustParsePrefix("10.45.0.0/16"), netip.MustParsePrefix("2001:db8:45::/48")}
	by := func(aggregates, inside []netip.Prefix) map[string]Announcing {
		return map[string]Announcing{"internet": {aggregates, inside}}
	}
	host, other := ueOf(netip.MustParsePrefix("10.45.0.1/32")), ueOf(netip.MustParsePrefix("10.45.0.2/32"))
	six, framed := ueOf(netip.MustParsePrefix("2001:db8:45:1::/64")), ueOf(netip.MustParsePrefix("192.0.2.0/24"))
	framed.Framed = true
	elsewhere := rules.UEAddress{Instance: "ims", Prefix: netip.MustParsePrefix("10.46.0.1/32")}
	p.x.add(1, occupies(host, six, framed, elsewhere))
	select {
	case <-p.ReachableChanged():
		t.Error("news, and nobody asked")
	default:
	}
	p.Announce(by(pool, nil))
	reach(t, p, true, map[string]bool{"192.0.2.0/24": true})
	p.x.add(2, occupies(other))
	reach(t, p, false, map[string]bool{}) // lies in a pool
	p.x.add(4, occupies(ueOf(netip.MustParsePrefix("10.46.0.9/32"))))
	reach(t, p, false, map[string]bool{"10.46.0.9/32": true}) // lies in none
	p.x.remove(4, occupies(ueOf(netip.MustParsePrefix("10.46.0.9/32"))))
	p.Announce(by(nil, pool[:1]))
	reach(t, p, true, map[string]bool{"2001:db8:45:1::/64": true, "192.0.2.0/24": true}) // behind NAT44
	p.Announce(by(nil, nil))
	reach(t, p, true, map[string]bool{"10.45.0.1/32": true, "10.45.0.2/32": true, "2001:db8:45:1::/64": true,
		"192.0.2.0/24": true})
	<-p.ReachableChanged()
	p.x.remove(2, occupies(other))
	p.x.remove(1, occupies(framed, six))
	<-p.ReachableChanged()
	p.x.add(3, occupies(six)) // moved
	reach(t, p, false, map[string]bool{"10.45.0.2/32": false, "192.0.2.0/24": false, "2001:db8:45:1::/64": true})
	reach(t, p, false, map[string]bool{})

	// More changes than are kept one by one lead to a full announcement.
	for i := range maxNews + 2 {
		p.x.remove(9, occupies(ueOf(slash64(i))))
	}
	reach(t, p, true, map[string]bool{"10.45.0.1/32": true, "2001:db8:45:1::/64": true})
	p.Announce(nil)
	reach(t, p, true, map[string]bool{})
}
