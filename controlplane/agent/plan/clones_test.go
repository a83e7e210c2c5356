// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"isthmus/controlplane/kernel"
	"isthmus/controlplane/testkit"
)

// The kernel is given the file's routes by the interfaces of their next hops, and none that discards.
func TestClonesOfRoutes(t *testing.T) {
	plan, err := Make("x.yaml", []byte(`
ports: [{name: core, driver: synth, role: core}]
interfaces:
  - {name: a, port: core, addresses: [192.0.2.1/24], clone: {device: a0, namespace: one}}
  - {name: b, port: core, outer_vlan: 2, addresses: [198.51.100.1/24], clone: {device: b0, namespace: one}}
  - {name: c, port: core, outer_vlan: 3, clone: {device: c0, namespace: two}}
  - {name: red, port: core, outer_vlan: 4, vrf: red, clone: {device: red0, namespace: red}}
routes:
  - {prefix: 10.0.0.0/8, discard: blackhole}
  - {prefix: 10.0.0.0/8, discard: prohibit, vrf: red}
  - {prefix: 10.1.0.0/16, via: 192.0.2.9, also_via: [198.51.100.9]}
  - {prefix: 10.2.0.0/16, via: 10.99.0.1, interface: c, onlink: true}
`))
	testkit.Must(t, err)
	words := func(c *kernel.Clone) string {
		var list []string
		for p, r := range c.Routes {
			list = append(list, fmt.Sprint(p, " ", r.Hops()))
		}
		slices.Sort(list)
		return strings.Join(list, ", ")
	}
	several := "10.1.0.0/16 [{192.0.2.9 a false} {198.51.100.9 b false}]"
	for i, want := range []string{several, several, "10.2.0.0/16 [{10.99.0.1 c true}]", ""} {
		testkit.Equal(t, words(&plan.Clones[i]), want, "clone %s", plan.Clones[i].Interface)
	}
}

// Aggregates of both kinds of pools, NAT44's addresses in place of those behind it, summaries of the file.
func TestWhatIsAnnounced(t *testing.T) {
	const text = `
ports: [{name: core, driver: synth, role: core}]
interfaces:
  - {name: n6, port: core, addresses: [192.0.2.1/24], clone: {device: n6, namespace: one}}
  - {name: red, port: core, outer_vlan: 4, vrf: red, clone: {device: red0, namespace: red}}
instances:
  - {name: internet, interfaces: [n6], lookup: destination, pools: [10.45.0.0/16, "2001:db8:45::/48"],
     nat: {addresses: [203.0.113.0/28], inside: [10.45.0.0/16, 100.66.0.0/15, 100.68.0.0/24]},
     announce: pool}
routes:
  - {prefix: 10.0.0.0/8, discard: blackhole}
  - {prefix: 100.64.0.0/10, discard: unreachable, announce: true}
  - {prefix: 172.16.0.0/12, discard: blackhole, announce: true, vrf: red}
pools:
  - {name: homes, prefix: 100.64.0.0/22, instance: internet}
  - {name: lan, prefix: "2001:db8:4000::/40", length: 56, instance: internet}
  - {name: other, prefix: 100.65.0.0/22}
  - {name: hidden, prefix: 100.66.0.0/22, instance: internet}
  - {name: half, prefix: 100.68.0.0/22, instance: internet}
`
	for _, test := range []struct{ mode, of, n6, aggregates string }{
		{"pool", "announce: pool",
			"203.0.113.0/28 2001:db8:45::/48 100.64.0.0/22 2001:db8:4000::/40 100.64.0.0/10",
			"203.0.113.0/28 2001:db8:45::/48 100.64.0.0/22 2001:db8:4000::/40"},
		{"host", "announce: host", "203.0.113.0/28 100.64.0.0/10", ""},
		{"none", "announce: none", "100.64.0.0/10", ""},
	} {
		plan, err := Make("x.yaml", []byte(strings.Replace(text, "announce: pool", test.of, 1)))
		testkit.Must(t, err)
		list := func(v any) string { return strings.Trim(fmt.Sprint(v), "[]") }
		testkit.Equal(t, list(plan.Clones[0].Announced), test.n6, "%s", test.mode)
		testkit.Equal(t, list(plan.Clones[1].Announced), "172.16.0.0/12", "%s, in the VRF", test.mode)
		a := plan.Announcing["internet"]
		testkit.Equal(t, list(a.Sessions.Aggregates), test.aggregates, "%s", test.mode)
		inside := map[bool]string{true: "10.45.0.0/16 100.66.0.0/15 100.68.0.0/24"}[test.mode != "none"]
		testkit.Equal(t, list(a.Sessions.Inside), inside, "%s", test.mode)
	}
}
