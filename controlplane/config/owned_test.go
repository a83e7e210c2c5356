// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

const pools = `pools:
  - {name: homes, prefix: 100.64.0.0/22, gateway: 100.64.0.1}
  - {name: lan, prefix: "2001:db8:4000::/40", length: 56, instance: internet}
  - {name: link, prefix: 10.2.0.0/24, excluded: [10.2.0.1]}
pfcp:`

// What a pool, a delegation or NAT44 has, in the VRF of its instance; not the network of a core interface.
func TestOwned(t *testing.T) {
	nat := "sources: [core], nat: {addresses: [192.0.2.0/28]}}"
	text := strings.Replace(with(t, "pfcp:", pools), "sources: [core]}", nat, 1)
	list := func(text string) string {
		t.Helper()
		c, err := Parse("x.yaml", []byte(text))
		testkit.Must(t, err)
		var all []string
		for _, o := range c.Owned() {
			all = append(all, fmt.Sprintf("%s|%s", o.VRF, o.Prefix))
		}
		return strings.Join(all, " ")
	}
	const ofInternet = "|192.0.2.0/28 |10.45.0.0/16 |2001:db8:1::/48 "
	testkit.Equal(t, list(text), ofInternet+"|100.64.0.0/22 |2001:db8:4000::/40", "")
	out := strings.Replace(text, "lookup: destination", "ue_to_ue: out, lookup: destination", 1)
	testkit.Equal(t, list(out), "|192.0.2.0/28 |100.64.0.0/22", "what leaves by the route")
	many := "pools:\n"
	for i := range api.InstancePools {
		many += fmt.Sprintf("  - {name: p%d, instance: internet, prefix: 100.65.%d.0/24}\n", i, i)
	}
	_, err := Parse("x.yaml", []byte(strings.Replace(out, "pools:\n", many, 1)))
	testkit.Refused(t, err, "19 pools")
	vrf := strings.Replace(text, "{name: n6,", "{name: n6, vrf: red,", 1)
	testkit.Equal(t, list(vrf), strings.ReplaceAll(ofInternet, "|", "red|")+
		"|100.64.0.0/22 red|2001:db8:4000::/40 |10.2.0.0/24", "in a VRF")
}

// A route that leads the whole prefix elsewhere loops packets to unused addresses.
func TestRoutesOfOwned(t *testing.T) {
	for _, r := range []struct{ route, want string }{
		{`{prefix: 100.64.0.0/22, via: 10.2.0.9}`,
			`routes[0].prefix: 100.64.0.0/22 is pool "homes", line 14: packets`},
		{`{prefix: "2001:db8:1::/48", via: "2001:db8::9"}`, "none"}, // to a radio side of this process
		{`{prefix: 100.64.0.0/22, discard: unreachable}`, "none"},
		{`{prefix: 100.64.0.0/23, via: 10.2.0.9}`, "none"},
		{`{prefix: 100.64.0.0/10, via: 10.2.0.9}`, "none"},
	} {
		_, err := Parse("x.yaml", []byte(with(t, "pfcp:", "routes: ["+r.route+"]\n"+pools)))
		got := "none"
		if err != nil {
			got = err.Error()
		}
		testkit.ErrorIf(t, !strings.Contains(got, r.want), "%s: %s", r.route, got)
	}
}
