// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// twice has the same addresses, routes and pools in two VRFs; tests change a line of it.
const twice = `ports:
  - {name: p0, driver: synth, role: core}
  - {name: p1, driver: synth, role: access}
interfaces:
  - {name: n3, port: p0, addresses: [10.1.0.1/24]}
  - {name: red, port: p0, outer_vlan: 2, vrf: red, addresses: [10.2.0.1/24], clone: {device: red, namespace: red}}
  - {name: blue, port: p0, outer_vlan: 3, vrf: blue, addresses: [10.2.0.1/24], clone: {device: blue, namespace: blue}}
  - {name: homes, port: p1, addresses: [100.64.0.1/16]}
routes:
  - {prefix: 0.0.0.0/0, via: 10.2.0.9, vrf: red}
  - {prefix: 0.0.0.0/0, via: 10.2.0.9, interface: blue}
  - {prefix: 0.0.0.0/0, via: 10.1.0.9}
instances:
  - {name: access, interfaces: [n3], endpoints: [10.1.0.1]}
  - {name: red, interfaces: [red], lookup: destination, pools: [10.45.0.0/16]}
  - {name: blue, interfaces: [blue], lookup: destination, pools: [10.45.0.0/16]}
`

func TestVRFs(t *testing.T) {
	c, err := Parse("x.yaml", []byte(twice))
	testkit.Must(t, err)
	for i, want := range []Name{"red", "blue", ""} {
		testkit.Equal(t, c.RouteVRF(&c.Routes[i]), want, "VRF of route %d", i)
	}
	for _, r := range []struct{ name, old, new, want string }{
		{"address twice in one", "vrf: blue", "vrf: red",
			`interfaces[2].addresses: 10.2.0.1 is already in line 6`},
		{"pools of one", "vrf: blue, addresses: [10.2.0.1", "vrf: red, addresses: [10.3.0.1",
			`10.45.0.0/16 overlaps 10.45.0.0/16 of instance "red", line 15`},
		{"access port", "homes, port: p1,", "homes, port: p1, vrf: red,",
			`interfaces[3].vrf: interface "homes" is on an access port`},
		{"reverse paths of subscribers", "homes, port: p1,", "homes, port: p1, reverse_path: loose,",
			`interfaces[3].reverse_path: interface "homes" is on an access port`},
		{"route of another", "interface: blue}", "interface: blue, vrf: red}",
			`routes[1].vrf: interface "blue" is in VRF "blue"`},
		{"route of the default one", "vrf: red}\n", "vrf: red, interface: n3}\n",
			`routes[0].vrf: interface "n3" is in the default VRF`},
		{"route of none", "vrf: red}\n", "vrf: green}\n",
			`routes[0].via: 10.2.0.9 is in no interface's prefix in VRF "green"`},
		{"several", "via: 10.1.0.9}", "via: 10.1.0.9, also_via: [10.1.0.8]}", ""},
		{"of another VRF", "via: 10.1.0.9}", "via: 10.1.0.9, also_via: [10.2.0.9]}",
			"routes[2].also_via: 10.2.0.9 is in no interface's prefix in the default VRF"},
		{"twice", "via: 10.1.0.9}", "via: 10.1.0.9, also_via: [10.1.0.9]}",
			"routes[2].also_via: 10.1.0.9 is there twice"},
		{"of another family", "via: 10.1.0.9}", "via: 10.1.0.9, also_via: [\"fe80::1\"]}",
			"fe80::1 is in no interface's prefix"},
		{"ours", "via: 10.1.0.9}", "via: 10.1.0.9, also_via: [10.1.0.1]}", "10.1.0.1 is our own address"},
		{"route twice", "interface: blue}", "vrf: red}", "routes[1].prefix: 0.0.0.0/0 is already in line 10"},
		{"instance of two", "interfaces: [blue]", "interfaces: [blue, n3]",
			`interface "n3" is in the default VRF, the first one in VRF "blue": one VRF each`},
		{"good", "10.1.0.1/24]", "10.1.0.1/24, 10.2.0.1/24]", ""},
		{"endpoint of several", "[n3], endpoints: [10.1.0.1]", "[red], endpoints: [10.2.0.1]",
			"instances[0].endpoints: 10.2.0.1 is on interfaces of several VRFs"},
		{"path of several", "instances:", "paths: [{name: x, local: 10.2.0.1, peer: 10.2.0.2}]\ninstances:",
			"paths[0].local: 10.2.0.1 is on interfaces of several VRFs"},
		{"one namespace", "namespace: blue", "namespace: red",
			"the clone in line 6 is in the same namespace, and its interface in another VRF"},
	} {
		text := strings.Replace(twice, r.old, r.new, 1)
		testkit.FatalIf(t, text == twice, "%s: no %q to replace", r.name, r.old)
		_, err := Parse("x.yaml", []byte(text))
		if r.want == "" {
			testkit.ErrorIf(t, err != nil, "%s: %v", r.name, err)
			continue
		}
		testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), r.want), "%s: %v", r.name, err)
	}
}
