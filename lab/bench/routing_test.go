// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"isthmus/controlplane/testkit"
)

// Each flow of a stream is in a network of a route, all networks are reached, and templates hold what varies.
func TestRouting(t *testing.T) {
	for _, name := range []string{"router", "router6"} {
		for _, routes := range []int{2, 16, 1000, 1_000_000} {
			l, err := newRouting(Options{Profile: name, Routes: routes, Workers: 1}, "off")
			testkit.FatalIf(t, err != nil, "%v", err)
			_, err = planOf(l)
			testkit.ErrorIf(t, err != nil, "%v", err)
			n := l.flows()
			testkit.ErrorIf(t, n < routeHosts || n%l.routes != 0, "%d flows of %d networks", n, l.routes)
			first, last := l.network(0, 0), l.network(1, l.routes-1)
			testkit.ErrorIf(t, first.Overlaps(last) || last != last.Masked(), "%v, %v", first, last)
			p, err := Lookup(name)
			testkit.FatalIf(t, err != nil, "%v", err)
			list, err := l.streams(p, pattern, 1)
			testkit.FatalIf(t, err != nil || len(list) != 4, "%d streams, %v", len(list), err)
			for _, s := range list {
				in, out := &s.body.In, &s.body.Out
				testkit.ErrorIf(t, in.Fields < 2 || in.Length != out.Length, "%s: %d fields", s.name, in.Fields)
			}
		}
	}
	for _, routes := range []int{1, maxRoutes + 1} {
		_, err := newRouting(Options{Profile: "router", Routes: routes, Workers: 1}, "off")
		testkit.ErrorIf(t, err == nil, "%d routes", routes)
	}
}
