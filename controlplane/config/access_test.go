// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/testkit"
)

// Where subscribers sign in, a subport says how many have room, and a profile names what a scheduler there has.
func TestAccessPortWithScheduler(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: six, instance: internet, prefix: "2001:db8:64::/48"}]
access:
  ports: [{port: access, pppoe: true}]
  profiles: [{name: home, instance: internet, pool_ipv6: six, scheduler: p}]
schedulers:
  - {port: access, rate: 1Gbit, subports: {count: 1, pipes: 16}, profiles: [{name: p, rate: 10Mbit}]}
`
	_, err := Parse("x.yaml", []byte(text))
	testkit.Must(t, err)
	for _, c := range [][3]string{
		{", pipes: 16", "", "for how many sessions it has room"},
		{"scheduler: p}", "scheduler: q}", "has a profile \"q\""},
		{"[{port: access, p", "[{port: other, p", "has a profile \"p\""},
	} {
		_, err = Parse("x.yaml", []byte(strings.Replace(text, c[0], c[1], 1)))
		testkit.ErrorIf(t, err == nil || !strings.Contains(err.Error(), c[2]), "%s: %v", c[1], err)
	}
}

// A port that relays needs servers of that family; a port that checks circuit ids must trust them.
func TestAccessPorts(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: six, instance: internet, prefix: "2001:db8:64::/48"}]
access:
  profiles: [{name: home, instance: internet, pool_ipv6: six}]
`
	const four = `address: 10.6.0.1, servers: [10.6.0.9], `
	const six = `address6: "2001:db8::1", servers6: ["2001:db8::9"]`
	for _, one := range []struct{ port, dhcp, want string }{
		{"ipoe: true, dhcp: relay", four, ""},
		{"ipoe: true, dhcp: relay", six, ""},
		{"ipoe: true, dhcp: proxy", four + six, ""},
		{"pppoe: true, ipoe: true, dhcp: relay", four, ""},
		{"pppoe: true, ipoe: true", four + six, ""},
		{"ipoe: true, dhcp: relay", "", "relay without servers"},
		{"ipoe: true, dhcp: proxy", six, "proxy without servers"},
		{"pppoe: true, ipoe: true, dhcp: relay", six, ""},
		{"pppoe: true, dhcp: relay", six, ""},
		{"pppoe: true, dhcp: relay", "", "relay without servers"},
		{"ipoe: true, circuit_change: sign-in", "", "given without trusted"},
		{"ipoe: true, trusted: true, circuit_change: sign-in", "", ""},
		{"ipoe: true", `servers6: ["2001:db8::9"]`, "address6"},
		{"ipoe: true", `address6: "2001:db8::9", servers6: ["2001:db8::9"]`, "of another host"},
	} {
		file := text + "  ports: [{port: access, " + one.port + "}]\n  dhcp: {" + one.dhcp + "}\n"
		_, err := Parse("x.yaml", []byte(file))
		wrong := (err == nil) != (one.want == "") || err != nil && !strings.Contains(err.Error(), one.want)
		testkit.ErrorIf(t, wrong, "%s, %s: %v, want %q", one.port, one.dhcp, err, one.want)
	}
}

// A profile whose subscribers cannot get an address is refused with its name; there are five ways to get one.
func TestProfileWithoutAddresses(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: six, instance: internet, prefix: "2001:db8:64::/48"}]
AAA
access:
  ports: [{port: access, SERVED: true}]
  profiles: [{name: home, instance: internet}, {name: best, instance: internet, pool_ipv6: six}]
  dhcp: {DHCP}
`
	for _, c := range []struct {
		aaa, served, dhcp string
		good              bool
	}{
		{"", "pppoe", "", false},
		{"aaa: {methods: [local], users: [{name: a, password: p}]}", "pppoe", "", false},
		{"aaa: {methods: [local], users: [{name: a, password: p, ipv4: 10.9.0.1, profile: best}]}", "pppoe", "", false},
		{"aaa: {methods: [local], users: [{name: a, password: p, ipv4: 10.9.0.1}]}", "pppoe", "", true},
		{"aaa: {methods: [radius]}\nradius: {servers: [{address: 192.0.2.1, secret: s}]}", "pppoe", "", true},
		{"", "ipoe", "address: 10.6.0.1, servers: [10.6.0.9]", false},
		{"", "dhcp: relay, ipoe", "address: 10.6.0.1, servers: [10.6.0.9]", true},
	} {
		file := strings.NewReplacer("AAA", c.aaa, "SERVED", c.served, "DHCP", c.dhcp).Replace(text)
		_, err := Parse("x.yaml", []byte(file))
		wrong := (err == nil) != c.good || err != nil && (strings.Contains(err.Error(), `"best"`) ||
			!strings.Contains(err.Error(), `profile "home" names no pool, and nothing else gives addresses`))
		testkit.ErrorIf(t, wrong, "%+v: %v", c, err)
	}
}

// How many may be on line is a matter of the file, and no more than the data plane has room for.
func TestAccessLimits(t *testing.T) {
	for _, one := range []struct{ engine, access, want string }{
		{"{}", "{}", ""},
		{"{limits: {sessions: 500000}}", "{pppoe: {limits: {sessions: 400000, per_port: 9, per_line: 8, " +
			"half_open: 7, half_open_per_line: 6}}, dhcp: {limits: {subscribers: 300000}}}", ""},
		{"{}", "{pppoe: {limits: {sessions: 70000}}}", "sessions: 70000 is more than engine"},
		{"{}", "{dhcp: {limits: {subscribers: 70000}}}", "subscribers: 70000 is more than engine"},
	} {
		_, err := Parse("x.yaml", []byte("engine: "+one.engine+"\naccess: "+one.access+"\n"))
		wrong := (err == nil) != (one.want == "") || err != nil && !strings.Contains(err.Error(), one.want)
		testkit.ErrorIf(t, wrong, "%s: %v, want %q", one.access, err, one.want)
	}
}

// A framed route must be a possible subscriber network, for a user as for a profile.
func TestFramedRoutes(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: six, instance: internet, prefix: "2001:db8:64::/48"}]
aaa: {methods: [local], users: [{name: anna, password: pw, framed_routes: [ROUTES]}]}
access:
  ports: [{port: access, pppoe: true}]
  profiles: [{name: home, instance: internet, pool_ipv6: six, framed_routes: [ROUTES]}]
`
	with := func(routes string) error {
		_, err := Parse("x.yaml", []byte(strings.ReplaceAll(text, "ROUTES", routes)))
		return err
	}
	testkit.Must(t, with(`10.9.0.0/24, 192.0.2.1, "2001:db8:9::/48"`))
	testkit.Must(t, with(strings.Repeat("10.9.0.0/24, ", api.MaxRoutes-1)))
	testkit.ErrorIf(t, with(strings.Repeat("10.9.0.0/24, ", api.MaxRoutes)) == nil, "no room for a delegated prefix")
	for _, wrong := range []string{"10.9.0.1/24", "0.0.0.0/0", `"fe80::/64"`, "224.0.0.0/8", "127.0.0.0/8"} {
		err := with(wrong)
		testkit.ErrorIf(t, err == nil || strings.Count(err.Error(), "is no network behind a subscriber") != 2,
			"%s: %v", wrong, err)
	}
}

// A redirect is a URL as the data plane can answer with it.
func TestRedirectURL(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: six, instance: internet, prefix: "2001:db8:64::/48"}]
access:
  ports: [{port: access, pppoe: true}]
  profiles: [{name: home, instance: internet, pool_ipv6: six, captive: true, redirect: "URL"}]
`
	with := func(url string) error {
		_, err := Parse("x.yaml", []byte(strings.Replace(text, "URL", url, 1)))
		return err
	}
	const good = "http://pay.test/"
	longest := good + strings.Repeat("x", api.Redirect-1-len(good))
	testkit.Must(t, with(good))
	testkit.Must(t, with(longest))
	for _, wrong := range []string{longest + "x", good + "a b", good + "ü", "ftp://pay.test/", "/pay", "http://"} {
		testkit.ErrorIf(t, with(wrong) == nil, "%s is taken", wrong)
	}
}

// What homes are assigned, the data plane has: a gateway that answers ARP, and an MTU that fits the port.
func TestToldHomes(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces:
  - {name: core, port: core, addresses: [10.6.0.1/24]}
  - {name: homes, port: access, addresses: [100.64.0.1/16]}
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: homes, instance: internet, prefix: 100.64.0.0/16, gateway: 100.64.0.1}]
access:
  ports: [{port: access, ipoe: true, profile: home}]
  profiles: [{name: other, instance: internet, pool_ipv4: homes}, {name: home, instance: internet, pool_ipv4: homes}]
  dhcp: {mtu: 1500}
`
	const moved = "gateway: 100.64.0.2, excluded: [100.64.0.1]"
	for _, c := range [][4]string{
		{"", "", ""},
		{"gateway: 100.64.0.1", moved, "no interface of port \"access\" has 100.64.0.2, the gateway of"},
		{"port: access, addresses", "port: core, outer_vlan: 7, addresses", "no interface of port \"access\""},
		{"ipoe: true, profile: home", "ipoe: true", ""},
		{"mtu: 1500", "mtu: 1501", "1501 is more than the MTU of port \"access\", 1500"},
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(text, c[0], c[1], 1)))
		wrong := (err == nil) != (c[2] == "") || err != nil && !strings.Contains(err.Error(), c[2])
		testkit.ErrorIf(t, wrong, "%s: %v, want %q", c[1], err, c[2])
	}
	// PPP needs no gateway address, and relayed homes have that of their servers.
	for _, c := range [][2]string{{"ipoe: true", "pppoe: true"}, {"ipoe: true", "ipoe: true, dhcp: relay"}} {
		file := strings.Replace(strings.Replace(text, "gateway: 100.64.0.1", moved, 1), c[0], c[1], 1)
		file = strings.Replace(file, "mtu: 1500", "address: 10.6.0.1, servers: [10.6.0.9]", 1)
		_, err := Parse("x.yaml", []byte(file))
		testkit.ErrorIf(t, err != nil, "%s: %v", c[1], err)
	}
}

// Whatever is up has something that will end it: who is asked for no LCP echo is on line for a time.
func TestPPPoEEnds(t *testing.T) {
	const text = `
ports: [{name: access, driver: synth, role: access}, {name: core, driver: synth, role: core}]
interfaces: [{name: core, port: core, addresses: [10.6.0.1/24]}]
instances: [{name: internet, interfaces: [core], lookup: destination}]
pools: [{name: six, instance: internet, prefix: "2001:db8:64::/48"}]
access:
  ports: [{port: access, SERVED: true}]
  profiles: [{name: home, instance: internet, pool_ipv6: sixTIMES}]
  pppoe: {keep_alive: {interval: SECONDS}}
`
	for _, c := range []struct {
		served, times, seconds string
		good                   bool
	}{
		{"pppoe", "", "30", true}, {"pppoe", "", "0", false}, {"pppoe", ", session_timeout: 86400", "0", true},
		{"pppoe", ", idle_timeout: 3600", "0", true}, {"ipoe", "", "0", true},
	} {
		file := strings.NewReplacer("SERVED", c.served, "TIMES", c.times, "SECONDS", c.seconds).Replace(text)
		_, err := Parse("x.yaml", []byte(file))
		const want = "has neither session_timeout nor idle_timeout"
		wrong := (err == nil) != c.good || err != nil && !strings.Contains(err.Error(), want)
		testkit.ErrorIf(t, wrong, "%+v: %v", c, err)
	}
}

// What a captive subscriber may reach is a prefix, an address or a name.
func TestReachable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"192.0.2.9/28", "192.0.2.0/28"}, {"2001:db8::1", "2001:db8::1/128"}, {"pay.example", "pay.example"},
		{"a-b.c1.example.", "a-b.c1.example."}, {"192.0.2.256", ""}, {"192.0.2.0/33", ""}, {"-a.example", ""},
		{"a..example", ""}, {"http://pay.example", ""}, {"a b", ""}, {"", ""}, {strings.Repeat("a.", 130), ""},
	} {
		var r Reachable
		got := ""
		if r.UnmarshalText([]byte(c.text)) == nil {
			got = r.String()
		}
		testkit.Equal(t, got, c.want, "%s", c.text)
	}
}
