// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func TestPools(t *testing.T) {
	file := func(pools string) string { return with(t, "pfcp:", "pools: ["+pools+"]\npfcp:") }
	c, err := Parse("x.yaml", []byte(file(`{name: homes, prefix: 100.64.0.0/22, gateway: 100.64.0.1, `+
		`ranges: [100.64.1.0-100.64.3.200], excluded: [100.64.2.7], dns: [9.9.9.9], `+
		`reservations: [{user: boss, address: 100.64.2.9}, {mac: "02:00:00:00:00:01", address: 100.64.0.9}]}, `+
		`{name: lan, prefix: "2001:db8:4000::/40", length: 56}, {name: wan, prefix: "2001:db8:9::/48"}`)))
	testkit.Must(t, err)
	p := c.Pools
	testkit.Equal(t, fmt.Sprint(p[0].Length, p[1].Length, p[2].Length, p[0].Hold), "32 56 64 1m0s", "")
	for _, r := range []struct{ pool, want string }{
		{`prefix: 10.1.0.1/24`, "prefix: 10.1.0.1/24 has host bits set; the network is 10.1.0.0/24"},
		{`prefix: 10.1.0.0/24, length: 30`, "length: 30: an IPv4 pool gives out single addresses"},
		{`prefix: 0.0.0.0/0`, "0.0.0.0/0 is too large"},
		{`prefix: "2001:db8:1::/64", length: 56`, "no /56 can be given out of 2001:db8:1::/64; at least 48"},
		{`prefix: "2001:db8:4000::/40", length: 44`, "no /44 can be given out"},
		{`prefix: 10.1.0.0/24, gateway: 10.2.0.1`, "gateway: 10.2.0.1 is no IPv4 address of 10.1.0.0/24"},
		{`prefix: 10.1.0.0/24, ranges: [10.1.0.9-10.1.1.3]`, "ranges: 10.1.0.9-10.1.1.3 is not in 10.1.0.0/24"},
		{`prefix: 10.1.0.0/24, ranges: [10.1.0.9-10.1.0.3]`, "is no address, and no range FIRST-LAST"},
		{`prefix: 10.1.0.0/24, excluded: [10.1.0.9, 10.1.0.3-10.1.0.9]`, "10.1.0.3-10.1.0.9 overlaps"},
		{`prefix: 10.45.7.0/24`,
			`10.45.7.0/24 overlaps 10.45.0.0/16, UE addresses of network instance "internet", line`},
		{`prefix: "2001:db8:1:8000::/52"`, "overlaps 2001:db8:1::/48, UE addresses"},
		{`prefix: 10.1.0.0/24, instance: nix`, `instance: there is no instance "nix"`},
		{`prefix: 10.1.0.0/24, reservations: [{address: 10.1.0.4}]`, "give one of user, mac and circuit"},
		{`prefix: 10.1.0.0/24, reservations: [{user: a, address: 10.3.0.4}]`, "10.3.0.4 is not in 10.1.0.0/24"},
		{`prefix: 10.1.0.0/24, gateway: 10.1.0.1, reservations: [{user: a, address: 10.1.0.1}]`,
			"is the gateway"},
		{`prefix: 10.1.0.0/24, reservations: [{user: a, address: 10.1.0.3}, {user: b, address: 10.1.0.3}]`,
			"reserved in line"},
		{`prefix: 10.1.0.0/24, reservations: [{user: a, address: 10.1.0.3}, {user: a, address: 10.1.0.4}]`,
			"the same subscriber has one in line"},
		{`prefix: 10.1.0.0/24}, {name: q, prefix: 10.1.0.128/25`, `overlaps 10.1.0.0/24 of pool "p"`},
	} {
		_, err := Parse("x.yaml", []byte(file("{name: p, "+r.pool+"}")))
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v, want %q", r.pool, err, r.want)
		}
	}
}

func TestAccessDHCP(t *testing.T) {
	good := func() (*AccessDHCP, *AccessRA) {
		return &AccessDHCP{Preferred: time.Second, Valid: 2 * time.Second, MTU: 1500},
			&AccessRA{Preferred: time.Second, Valid: 2 * time.Second, Interval: 600 * time.Second,
				Lifetime: 1800 * time.Second}
	}
	address := func(s string) (a Address) {
		testkit.Must(t, a.UnmarshalText([]byte(s)))
		return a
	}
	servers := func(all ...string) (list []Collector) {
		for _, s := range all {
			var c Collector
			testkit.Must(t, c.UnmarshalText([]byte(s)))
			list = append(list, c)
		}
		return list
	}
	var prefix Prefix
	testkit.Must(t, prefix.UnmarshalText([]byte("2001:db8::/32")))
	routes, twice := []DHCPRoute{{Prefix: prefix}}, servers("10.0.0.1", "10.0.0.1")
	for want, change := range map[string]func(d *AccessDHCP, r *AccessRA){
		"":                            func(*AccessDHCP, *AccessRA) {},
		"3 is more than valid, 2":     func(d *AccessDHCP, _ *AccessRA) { d.Preferred = 3 * time.Second },
		"4 is more than valid, 2":     func(_ *AccessDHCP, r *AccessRA) { r.Preferred = 4 * time.Second },
		"would come and go":           func(_ *AccessDHCP, r *AccessRA) { r.Lifetime = 599 * time.Second },
		"less than 1280":              func(d *AccessDHCP, _ *AccessRA) { d.MTU = 1279 },
		"is no IPv4 address":          func(d *AccessDHCP, _ *AccessRA) { d.Address = address("2001:db8::1") },
		"is no IPv4 address of anot":  func(d *AccessDHCP, _ *AccessRA) { d.Servers = servers("2001:db8::1") },
		"is no IPv6 address that ser": func(d *AccessDHCP, _ *AccessRA) { d.Address6 = address("fe80::1") },
		"10.0.0.9 is no IPv6 address": func(d *AccessDHCP, _ *AccessRA) { d.Servers6 = servers("10.0.0.9") },
		"fe80::9 is no IPv6 address":  func(d *AccessDHCP, _ *AccessRA) { d.Servers6 = servers("fe80::9") },
		"10.0.0.1 given twice":        func(d *AccessDHCP, _ *AccessRA) { d.Servers = twice },
		`"0g" is not 3 to 130`:        func(d *AccessDHCP, _ *AccessRA) { d.DUID = "0g" },
		"IPv4 networks and next hops": func(d *AccessDHCP, _ *AccessRA) { d.Routes = routes },
	} {
		k := &checker{Config: &Config{}}
		d, r := good()
		change(d, r)
		d.check(k, r)
		have := ""
		if err := k.errs.result(); err != nil {
			have = err.Error()
		}
		wrong := (want == "") != (have == "") || !strings.Contains(have, want)
		testkit.ErrorIf(t, wrong, "%q, want %q", have, want)
	}
}

func TestPoolsGiveNobodysAddress(t *testing.T) {
	for _, r := range []struct{ pool, want string }{
		{`prefix: 10.1.0.0/24`, `pools[0].prefix: 10.1.0.0/24 holds 10.1.0.4 of subscriber "home`},
		{`prefix: 10.1.0.0/24, excluded: [10.1.0.4-10.1.0.5]`, ""},
		{`prefix: "2001:db8::/40"`, `2001:db8::/40 overlaps 2001:db8:0:7::/64 of subscriber "home`},
		{`prefix: 10.2.0.0/24`, ""},
	} {
		file := subscriberOf("name: home, count: 2, ipv4: 10.1.0.4, ipv6: '2001:db8:0:7::/64'") +
			"pools: [{name: p, " + r.pool + "}]\n"
		_, err := Parse("x.yaml", []byte(file))
		testkit.ErrorIf(t, (err == nil) != (r.want == "") || err != nil && !strings.Contains(err.Error(), r.want),
			"%s: %v, want %q", r.pool, err, r.want)
	}
}
