// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"isthmus/controlplane/agent/plan"
)

// Addresses of the benchmark.
const (
	accessMAC = "02:00:00:aa:00:01"
	coreMAC   = "02:00:00:cc:00:01"
	peerMAC   = "02:00:00:cc:00:02" // next router on the core side
	homeMAC   = "02:01:00:00:00:00" // first home gateway
	coreIP    = "192.0.2.1"
	routerIP  = "192.0.2.2"
	upfIP     = "198.51.100.1"
	serverIP  = "203.0.113.80"
	qfi       = 9
	teidUp    = 0x10000000
	teidDown  = 0x20000000
)

// AccessMAC and CoreMAC are the addresses of the gateway's ports, the other two those of the tester's.
const (
	AccessMAC    = accessMAC
	CoreMAC      = coreMAC
	AccessFarMAC = "02:00:00:aa:00:02"
	CoreFarMAC   = peerMAC
)

// yaml writes the configuration as a user would, so that the benchmark runs what users run.
func (l *layout) yaml() []byte {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("engine:")
	p("  workers: %d", l.workers)
	if len(l.cpus) > 0 {
		p("  cpus: [%s]", joinInts(l.cpus))
	}
	p("  huge_pages: %s", l.huge)
	if l.idle {
		p("  idle_sleep: true")
	}
	p("  rates: {new_flows: 0, subscriber_new_flows: 0}") // what the gateway can do
	p("  limits: {sessions: %d, flows: %d}", max(l.subscribers, 1024), max(4*l.subscribers*l.flows, 65536))
	p("control: {metrics: ''}")
	p("ports:")
	for _, line := range l.portLines() {
		p("  - %s", line)
	}
	p("interfaces:")
	p("  - {name: core0, port: core, addresses: [%s/24]}", coreIP)
	p("routes:")
	p("  - {prefix: 198.51.100.0/24, via: %s}", routerIP)
	p("neighbours:")
	p("  - {interface: core0, address: %s, mac: '%s'}", routerIP, peerMAC)
	p("paths:")
	p("  - {name: upf, local: %s, peer: %s}", coreIP, upfIP)
	p("policers:")
	p("  - {name: contract, type: trtcm, cir: 20Gbit, pir: 40Gbit}")
	p("schedulers:")
	p("  - port: access")
	p("    rate: 400Gbit")
	p("    subports:")
	p("      - {count: %d, rate: 400Gbit}", l.subports)
	p("    profiles:")
	p("      - {name: home, rate: 100Gbit}")
	l.yamlFirewall(p)
	p("subscribers:")
	for _, h := range l.halves() {
		encap := "qinq"
		if h.pppoe {
			encap = "qinq-pppoe, pppoe_session: 1"
		}
		p("  - {name: %s, count: %d, port: access, encap: %s, mac: '%s', s_tag: %d, c_tag: 1, per_s_tag: %d,",
			h.name, h.count, encap, mac(homeMAC, h.first), h.sTag, perSTag)
		p("     ipv4: %s, path: upf, teid_uplink: %d, teid_downlink: %d, qfi: %d,", ue(h.first), teidUp+h.first,
			teidDown+h.first, qfi)
		p("     uplink_policer: contract, downlink_policer: contract, scheduler: {subport: round-robin, profile: " +
			"home}}")
	}
	return []byte(b.String())
}

// portLines are the gateway's ports and, with synth ports, a cross-connected pair for the floor.
func (l *layout) portLines() []string {
	if l.ports != nil {
		return l.ports
	}
	return []string{
		fmt.Sprintf("{name: access, driver: synth, role: access, mtu: 1500, mac: '%s'}", accessMAC),
		fmt.Sprintf("{name: core, driver: synth, role: core, mtu: 1600, mac: '%s'}", coreMAC),
		"{name: floor-access, driver: synth, role: access, mtu: 1500, xconnect: floor-core}",
		"{name: floor-core, driver: synth, role: core, mtu: 1600, xconnect: floor-access}",
	}
}

// yamlFirewall adds the blocklist, random rules that match no packet of ours, and the allowlist.
func (l *layout) yamlFirewall(p func(string, ...any)) {
	p("firewall:")
	p("  uplink:")
	p("    default: permit")
	p("    rules:")
	r := rand.New(rand.NewPCG(1, 2))
	for range blockRules {
		low := 1 + r.IntN(60000)
		p("      - {source: 10.%d.%d.0/24, destination: 45.%d.%d.%d/32, destination_port: %d-%d, protocol: %s, "+
			"action: deny}",
			64+r.IntN(64), r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), low, low+r.IntN(5000),
			[]string{"tcp", "udp"}[r.IntN(2)])
	}
	p("  downlink:")
	p("    default: deny")
	p("    rules:")
	for _, rule := range l.rules {
		port := ""
		if rule.port != 0 {
			port = fmt.Sprintf(", source_port: %d, destination_port: %d", rule.port, userPort)
		}
		p("      - {source: %s/32, destination: %s%s, protocol: udp, action: permit}", serverIP, rule.prefix, port)
	}
	if l.echo {
		p("      - {source: %s/32, destination: 10.64.0.0/10, protocol: icmp, action: permit}", serverIP)
	}
}

// planOf compiles a fixture's configuration.
func planOf(f fixture) (*plan.Plan, error) { return plan.Make("benchmark", f.yaml()) }
