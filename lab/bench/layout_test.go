// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/netip"
	"testing"

	"isthmus/api"
)

// Every size of benchmark makes an accepted configuration and accepted streams.
func TestConfigurationsAreAccepted(t *testing.T) {
	for _, test := range []struct{ subscribers, workers int }{{2, 1}, {3, 1}, {1000, 1}, {1000, 2}, {4096, 1},
		{5000, 2}, {65536, 2}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			l, err := newLayout(Options{Subscribers: test.subscribers, Workers: test.workers}, "auto")
			if err != nil {
				t.Fatal(err)
			}
			plan, err := planOf(l)
			if err != nil {
				t.Fatal(err)
			}
			sessions := 0
			for i := range plan.Objects {
				if plan.Objects[i].Kind == api.KindSession {
					sessions++
				}
			}
			if sessions != test.subscribers {
				t.Errorf("%d sessions", sessions)
			}
			if len(l.rules) > aclRules {
				t.Errorf("%d rules, at most %d", len(l.rules), aclRules)
			}
			for _, p := range Profiles {
				if _, err := l.streams(p, p.UplinkShare, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestEverySubscriberIsPermitted(t *testing.T) {
	for _, n := range []int{1000, 4096, 5000, 65536} {
		l, err := newLayout(Options{Subscribers: n, Workers: 1}, "auto")
		if err != nil {
			t.Fatal(err)
		}
		covered := 0
		for _, r := range l.rules {
			p := netip.MustParsePrefix(r.prefix)
			if p.Masked() != p {
				t.Fatalf("%s is no network", r.prefix)
			}
			if r.port == 0 || r.port == basePort {
				covered += 1 << (32 - p.Bits())
			}
		}
		if covered < n {
			t.Errorf("%d subscribers, rules cover %d", n, covered)
		}
	}
}

// Sessions lie on the workers that the streams deliver them to, as RSS would.
func TestFlowsArriveAtTheirOwners(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		l, err := newLayout(Options{Subscribers: 1000, Workers: workers}, "auto")
		if err != nil {
			t.Fatal(err)
		}
		plan, err := planOf(l)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for i := range plan.Objects {
			o := &plan.Objects[i]
			if o.Kind != api.KindSession {
				continue
			}
			var s api.Session
			if _, err := api.ReadRow(o.Body, &s); err != nil {
				t.Fatal(err)
			}
			half := fmt.Sprint(s.Encap)
			if want := seen[half] % workers; int(s.Worker) != want {
				t.Fatalf("%d workers: %s (number %d of its half) is on worker %d, want %d", workers, o.Name(),
					seen[half], s.Worker, want)
			}
			seen[half]++
		}
	}
}
