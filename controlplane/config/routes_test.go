// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

const routed = `ports:
  - {name: p0, driver: synth, role: core}
  - {name: p1, driver: synth, role: access}
interfaces:
  - {name: a, port: p0, addresses: [10.1.0.1/24, "2001:db8:1::1/64"]}
  - {name: b, port: p0, outer_vlan: 2, addresses: [10.2.0.1/24]}
  - {name: bare, port: p0, outer_vlan: 3}
  - {name: red, port: p0, outer_vlan: 4, vrf: red, addresses: [10.1.0.1/24]}
  - {name: homes, port: p1, addresses: [100.64.0.1/16]}
routes:
  - {prefix: 0.0.0.0/0, via: 10.1.0.254}
  - {prefix: 172.16.0.0/24, via: 10.1.0.9, also_via: [10.2.0.9]}
  - {prefix: 172.17.0.1/32, interface: bare}
  - {prefix: 172.18.0.0/16, via: 172.16.0.7}
  - {prefix: 172.19.0.0/16, discard: blackhole}
  - {prefix: 172.20.0.0/16, via: 172.20.0.1}
`

// hopsIn are next hops in words.
func hopsIn(hops []NextHop) string {
	var words []string
	for _, h := range hops {
		via := "link"
		if h.Via.IsValid() {
			via = h.Via.String()
		}
		if h.OnLink {
			via += " onlink"
		}
		words = append(words, via+"@"+string(h.Interface.Name))
	}
	return strings.Join(words, ", ")
}

func TestNextHops(t *testing.T) {
	without := strings.Replace(routed, "  - {prefix: 172.20.0.0/16, via: 172.20.0.1}\n", "", 1)
	for _, row := range []struct{ route, want string }{
		{"via: 10.1.0.9", "10.1.0.9@a"},
		{"interface: bare", "link@bare"},
		{`via: "2001:db8:1::9"`, "2001:db8:1::9@a"}, // RFC 8950
		{`via: "fe80::9", interface: bare`, "fe80::9@bare"},
		{`via: 10.1.0.9, also_via: ["2001:db8:1::9"]`, "10.1.0.9@a, 2001:db8:1::9@a"},
		{"via: 10.99.0.1, interface: bare, onlink: true", "10.99.0.1 onlink@bare"},
		{"via: 10.1.0.9, interface: a, onlink: true", "10.1.0.9@a"},
		// By a device route, a recursive one, two of them; each next hop once.
		{"via: 172.17.0.1", "172.17.0.1 onlink@bare"},
		{"via: 172.16.0.7", "10.1.0.9@a, 10.2.0.9@b"},
		{"via: 172.18.0.7", "10.1.0.9@a, 10.2.0.9@b"},
		{"via: 172.16.0.7, also_via: [10.1.0.9, 10.1.0.8]", "10.1.0.9@a, 10.2.0.9@b, 10.1.0.8@a"},
		{"via: 10.1.0.9, vrf: red", "10.1.0.9@red"},
		{"discard: prohibit", ""},
		{"discard: prohibit, vrf: red", ""},
	} {
		c, err := Parse("x.yaml", []byte(without+"  - {prefix: 192.0.2.0/24, "+row.route+"}\n"))
		testkit.FatalIf(t, err != nil, "%s: %v", row.route, err)
		hops, problem := NewResolver(c).NextHops(&c.Routes[len(c.Routes)-1])
		testkit.Equal(t, hopsIn(hops)+problem, row.want, "%s", row.route)
	}
	all := "via: 10.1.0.20, also_via: [10.1.0.21, 10.1.0.22, 10.1.0.23, 10.1.0.24, 10.1.0.25," +
		" 172.16.0.7, 10.1.0.26]"
	for _, row := range []struct{ route, want string }{
		{"via: 10.99.0.1", "is in no interface's prefix in the default VRF, nor does a route lead there"},
		{"via: 10.99.0.1, interface: a", `of interface "a"; where it is on its link all the same: onlink`},
		{"via: 172.19.0.1", "the route that leads to 172.19.0.1 discards packets, line 15"},
		{"via: 172.20.0.1", "172.20.0.1 is reached by way of itself"},
		{"via: 172.17.0.1, vrf: red", `is in no interface's prefix in VRF "red"`},
		{"via: 10.1.0.1, interface: bare, onlink: true, also_via: [10.1.0.1]", "is there twice"},
		{"via: 10.1.0.1", "is our own address"},
		{"via: 100.64.0.9", "on an access port"},
		{"interface: homes", "on an access port"},
		{"via: 10.1.0.9, onlink: true", "interface"},
		{all, "9 next hops, at most 8 are possible"},
		{"discard: blackhole, via: 10.1.0.9", "neither via, interface nor onlink"},
		{"discard: blackhole, interface: a", "neither via, interface nor onlink"},
		{"discard: blackhole, vrf: green", `no interface is in VRF "green"`},
		{"discard: perhaps", "discard"},
	} {
		_, err := Parse("x.yaml", []byte(routed+"  - {prefix: 192.0.2.0/24, "+row.route+"}\n"))
		testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), row.want), "%s: %v", row.route, err)
	}
}

// Routes that lead to one another, each by eight gateways: no work without bound.
func TestNextHopsOfMany(t *testing.T) {
	var text strings.Builder
	text.WriteString(routed[:strings.Index(routed, "  - {prefix: 172.16")])
	for i := range 200 {
		fmt.Fprintf(&text, "  - {prefix: 20.%d.0.0/16, via: 20.%d.0.1, "+
			"also_via: [20.%d.0.2, 20.%d.0.3, 20.%d.0.4]}\n", i, (i+1)%200, (i+1)%200, (i+2)%200, (i+3)%200)
	}
	_, err := Parse("x.yaml", []byte(text.String()))
	testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), "by way of itself"), "%v", err)
	good := strings.Replace(text.String(), "via: 20.0.0.1, also_via: [20.0.0.2, 20.1.0.3, 20.2.0.4]}",
		"via: 10.1.0.9}", 1)
	good = strings.Replace(good, "also_via: [20.199.0.2, 20.0.0.3, 20.1.0.4]", "also_via: [10.2.0.9]", 1)
	good = strings.Replace(good, "also_via: [20.198.0.2, 20.199.0.3, 20.0.0.4]", "also_via: [20.198.0.2]", 1)
	c, err := Parse("x.yaml", []byte(good))
	testkit.Must(t, err)
	hops, problem := NewResolver(c).NextHops(&c.Routes[1])
	testkit.Equal(t, hopsIn(hops)+problem, "10.1.0.9@a, 10.2.0.9@b", "through 200 routes")
}

// A neighbour may be a gateway that is on the link alone.
func TestNeighbourOnTheLink(t *testing.T) {
	text := strings.Replace(routed, "172.20.0.1}", "10.99.0.1, interface: bare, onlink: true}", 1) + "neighbours:\n"
	for address, good := range map[string]bool{"10.99.0.1": true, "172.17.0.1": false, "10.99.0.2": false} {
		one := "  - {interface: bare, address: " + address + ", mac: 02:00:00:00:00:01}\n"
		_, err := Parse("x.yaml", []byte(text+one))
		testkit.ErrorIf(t, (err == nil) != good, "%s: %v", address, err)
	}
}
