// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"isthmus/controlplane/cputest"
	"isthmus/controlplane/testkit"
)

const (
	schemaFile = "../../docs/config.schema.json"
	examples   = "../../deploy/examples/*.yaml"
)

// base is the least configuration in which subscribers can be placed; tests put sections after it.
const base = `ports:
  - {name: access, driver: synth, role: access}
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: n3, port: core, addresses: [10.0.0.1/24]}
paths:
  - {name: upf, local: 10.0.0.1, peer: 10.0.0.2}
` // 6 lines

const homeFields = "port: access, mac: 02:00:00:00:00:01, s_tag: 1, c_tag: 1, path: upf, teid_uplink: 1, " +
	"teid_downlink: 1"

func subscriberOf(fields string) string {
	return base + "subscribers:\n  - {" + homeFields + ", " + fields + "}\n"
}

// ruleOf is base with a subscriber and a QoS rule with more fields.
func ruleOf(fields string) string {
	return subscriberOf("name: a, ipv4: 10.1.0.1, qos_rules: [{precedence: 1, qfi: 1" + fields + "}]")
}

// access is base with an interface on the access port.
var access = strings.Replace(base, "paths:", "  - {name: homes, port: access, addresses: [10.9.0.1/24]}\npaths:", 1)

func sched(rate, profile, subport string) string {
	return base + "schedulers:\n  - {port: access, rate: " + rate + ", subports: {" + subport +
		"}, profiles: [{name: p, rate: " + profile + "}]}\n"
}

func red(engine, entry string) string {
	return base + "schedulers:\n  - {port: access, " + engine + "rate: 1Gbit, queue_size: [64, 64, 32, 2048], red: [{" +
		entry +
		"}], subports: {}, profiles: [{name: p, rate: 1Mbit}]}\n"
}

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("x.yaml", []byte(text))
	testkit.Must(t, err)
	return c
}

// Each row is a file that must be refused, and what the message must say.
func TestRefused(t *testing.T) {
	rows := []struct{ name, text, want string }{
		{"empty", "", "x.yaml: the file is empty"},
		{"comment only", "# nothing\n", "x.yaml: the file is empty"},
		{"syntax", "ports: [\n  - x", "x.yaml:"},
		{"tab", "ports:\n\t- x\n", "x.yaml:2: not valid YAML: line 2 is indented by a tab; YAML takes spaces alone"},
		{"dash out of place", "ports:\n  - {name: a}\n  - {name: b}\n   - {name: c}\n",
			"x.yaml:4: not valid YAML: did not find expected '-' indicator"},
		{"key out of place", "pfcp:\n    listen: [x]\n    roles: [y]\n  peers: []\nports: []\n",
			"x.yaml:4: not valid YAML: did not find expected key"},
		{"bracket left open", "pfcp:\n  listen: [x\n  roles: [y]\n",
			"x.yaml:2: not valid YAML: did not find expected ','"},
		{"bond of nothing", "ports: [{name: a, role: core, driver: net_bond}]\n", "needs bond: {mode: lacp, members:"},
		{"bond's own arguments", "ports: [{name: a, role: core, driver: net_bond, args: mode=4, bond: {mode: lacp, " +
			"members: [{driver: pci, device: x}]}}]\n", "mode= is made of bond"},
		{"bond with a device", "ports: [{name: a, role: core, driver: net_bond, device: x, bond: {mode: lacp, " +
			"members: [{driver: pci, device: x}]}}]\n", "none of its own"},
		{"bond's member", "ports: [{name: a, role: core, driver: net_bond, bond: {mode: lacp, members: [{driver: " +
			"pci}]}}]\n", "pci needs to know what to open"},
		{"bond's mode", "ports: [{name: a, role: core, driver: net_bond, bond: {mode: roundrobin, members: [{driver: " +
			"pci, device: x}]}}]\n", "active-standby"},
		{"bond of another driver", "ports: [{name: a, role: core, driver: pci, device: x, bond: {mode: lacp}}]\n",
			"pci is one device"},
		{"list at top", "- a\n", "x.yaml:1: needs a mapping"},
		{"two documents", "engine:\n---\nengine:\n", "second document"},
		{"unknown key", "engine:\n  worker: 2\n", `x.yaml:2: engine.worker: unknown key; did you mean "workers"?`},
		{"unknown section", "port: []\n", `x.yaml:1: port: unknown key; did you mean "ports"?`},
		{"given twice", "engine:\n  workers: 1\n  workers: 2\n",
			"x.yaml:3: engine.workers: given twice, first in line 2"},
		{"merge key", "engine: &a {workers: 1}\ncontrol:\n  <<: *a\n", "x.yaml:3: control.<<: unknown key"},
		{"no number", "engine:\n  workers: many\n", `x.yaml:2: engine.workers: needs a whole number, found "many"`},
		{"out of bounds", "engine:\n  workers: 17\n", "x.yaml:2: engine.workers: 17 is not between 1 and 16"},
		{"a channel too small", "engine:\n  limits: {channel: 63}\n",
			"x.yaml:2: engine.limits.channel: 63 is less than 64"},
		{"too few events", "engine:\n  limits: {events: 3}\n",
			"x.yaml:2: engine.limits.events: 3 is less than 4"},
		{"lifetime of flows", "engine:\n  flow_idle: 2\n  flow_lifetime: 31\n",
			"x.yaml:3: engine.flow_lifetime: 31 is more than 15 times flow_idle, 2"},
		{"negative", "engine:\n  workers: -1\n", "not between 1 and 16"},
		{"huge number", "engine:\n  workers: 99999999999999999999\n", "needs a whole number"},
		{"null", "engine:\n  workers:\n", "x.yaml:2: engine.workers: needs one value, found nothing"},
		{"list for value", "engine:\n  workers: [1]\n", "needs one value, found a list"},
		{"value for list", "ports: eth0\n", `x.yaml:1: ports: needs a list, found "eth0"`},
		{"bool", "engine:\n  drop_ue_gtpu: yes\n", "needs true or false"},
		{"enum", "ports:\n  - {name: a, driver: net_tapp, role: core}\n",
			`x.yaml:2: ports[0].driver: "net_tapp" is none of`},
		{"missing", "ports:\n  - {name: a, driver: synth}\n", "x.yaml:2: ports[0].role: missing"},
		{"bad name", "ports:\n  - {name: 'a b', driver: synth, role: core}\n", `ports[0].name: "a b" is no name`},
		{"long name", "ports:\n  - {name: " + strings.Repeat("a", 32) + ", driver: synth, role: core}\n", "is no name"},
		{"no device", "ports:\n  - {name: a, driver: pci, role: core}\n", "ports[0].device: missing: pci needs"},
		{"device with comma", "ports:\n  - {name: a, driver: net_tap, device: 'a,b', role: core}\n", "holds a comma"},
		{"two ports", base + "routes: []\n" + strings.Replace(base, "core", "access", 1), "given twice"},
		{"same port name", strings.Replace(base, "name: core", "name: access", 1),
			`x.yaml:3: ports[1].name: "access" is already in line 2`},
		{"no such port", strings.Replace(base, "port: core", "port: cor", 1),
			`x.yaml:5: interfaces[0].port: there is no port "cor"; did you mean "core"?`},
		{"bad prefix", strings.Replace(base, "10.0.0.1/24", "10.0.0.1/33", 1),
			`x.yaml:5: interfaces[0].addresses[0]: "10.0.0.1/33" is no IP prefix`},
		{"no length", strings.Replace(base, "10.0.0.1/24", "10.0.0.1", 1),
			"interfaces[0].addresses[0]: 10.0.0.1 has no prefix length; 10.0.0.1/32 is this address alone"},
		{"zone", strings.Replace(base, "10.0.0.1/24", "'fe80::1%eth0/64'", 1), "is no IP prefix"},
		{"inner alone", strings.Replace(base, "port: core,", "port: core, inner_vlan: 5,", 1),
			"given without outer_vlan"},
		{"route host bits", base + "routes:\n  - {prefix: 10.1.0.1/16, via: 10.0.0.9}\n",
			"x.yaml:9: routes[0].prefix: 10.1.0.1/16 has host bits set; the network is 10.1.0.0/16"},
		{"route unreachable", base + "routes:\n  - {prefix: 10.1.0.0/16, via: 10.9.0.9}\n",
			"is in no interface's prefix"},
		{"route family", base + "routes:\n  - {prefix: '::/0', via: 10.0.0.9}\n", "not of one family"},
		{"route nowhere", base + "routes:\n  - {prefix: 10.1.0.0/16}\n", "via, interface, both, or discard"},
		{"route twice", base + "routes:\n  - {prefix: 10.1.0.0/16, via: 10.0.0.9}\n  - {prefix: 10.1.0.0/16, via: " +
			"10.0.0.8}\n", "x.yaml:10: routes[1].prefix: 10.1.0.0/16 is already in line 9"},
		{"neighbour interface", base + "neighbours:\n  - {interface: n4, address: 10.0.0.9, mac: 02:00:00:00:00:09}\n",
			`did you mean "n3"?`},
		{"multicast mac", base + "neighbours:\n  - {interface: n3, address: 10.0.0.9, mac: 03:00:00:00:00:09}\n",
			"is no unicast address"},
		{"rule family", base + "firewall:\n  uplink:\n    rules:\n      - {source: 10.0.0.0/8, destination: '::/0', " +
			"action: deny}\n", "x.yaml:11: firewall.uplink.rules[0].destination"},
		{"rule ports", base + "firewall:\n  uplink:\n    rules:\n      - {destination_port: 80, action: deny}\n",
			"needs protocol tcp, udp or sctp"},
		{"rule range", base + "firewall:\n  uplink:\n    rules:\n      - {destination_port: 90-80, protocol: tcp, " +
			"action: deny}\n", "is no port or range"},
		{"rate unit", base + "policers:\n  - {name: p, type: srtcm, cir: 10MB}\n",
			`policers[0].cir: "10MB" is no rate`},
		{"pir below cir", base + "policers:\n  - {name: p, type: trtcm, cir: 10Mbit, pir: 5Mbit}\n",
			"peak rate not below"},
		{"pir in srtcm", base + "policers:\n  - {name: p, type: srtcm, cir: 10Mbit, pir: 50Mbit}\n",
			"belongs to trtcm"},
		{"colour action", base + "policers:\n  - {name: p, type: srtcm, cir: 10Mbit, red: remark 64}\n",
			"is no action"},
		{"path local", strings.Replace(base, "local: 10.0.0.1", "local: 10.0.0.3", 1),
			"x.yaml:7: paths[0].local: 10.0.0.3 is no address of an interface"},
		{"echo", strings.Replace(base, "peer: 10.0.0.2", "peer: 10.0.0.2, echo_interval: 5", 1), "less than 60 s"},
		{"yellow size", base + "schedulers:\n  - {port: access, rate: 1Gbit, yellow_size: [0, 0, 0, 65], subports: " +
			"{}, profiles: [{name: p, rate: 1Mbit}]}\n", "schedulers[0].yellow_size: 65 is more than the 64 packets"},
		{"scheduler port", base + "schedulers:\n  - {port: core, rate: 1Gbit, subports: {}, profiles: [{name: p, " +
			"rate: 1Mbit}]}\n", "says for how many sessions it has room"},
		{"shaping port", base + "instances:\n  - {name: a, interfaces: [core], shaping: {port: core}}\n",
			"there is no scheduler of port \"core\""},
		{"shaping access", base + "schedulers:\n  - {port: access, rate: 1Gbit, subports: {}, profiles: [{name: p, " +
			"rate: 1Mbit}]}\ninstances:\n  - {name: a, interfaces: [core], shaping: {port: access}}\n", "\"access\" " +
			"is no core port"},
		{"shaping profile", base + "schedulers:\n  - {port: core, rate: 1Gbit, subports: {pipes: 16}, profiles: " +
			"[{name: p, rate: 1Mbit}]}\ninstances:\n  - {name: a, interfaces: [core], shaping: {port: core, profile: " +
			"q}}\n", "has no profile \"q\""},
		{"profile rate", base + "schedulers:\n  - {port: access, rate: 1Gbit, subports: {}, profiles: [{name: p, " +
			"rate: 2Gbit}]}\n", "schedulers[0].profiles[0].rate: 2Gbit is more than the port's 1Gbit"},
		{"subport count", base + "schedulers:\n  - {port: access, rate: 1Gbit, subports: [{count: 40}, {count: 40}], " +
			"profiles: [{name: p, rate: 1Mbit}]}\n", "80 subports"},
		{"subport worker", base + "schedulers:\n  - {port: access, rate: 1Gbit, subports: {worker: 1}, profiles: " +
			"[{name: p, rate: 1Mbit}]}\n", "there are 1 workers"},
		{"class", base + "schedulers:\n  - port: access\n    rate: 1Gbit\n    subports: {}\n    profiles: [{name: p, " +
			"rate: 1Mbit}]\n    classes:\n      dscp: {64: 0}\n", "x.yaml:14: schedulers[0].classes.dscp.64: the key " +
			"must be a number from 0 to 63"},
		{"queue size", base + "schedulers:\n  - {port: access, rate: 1Gbit, queue_size: [64, 64, 64, 63], subports: " +
			"{}, profiles: [{name: p, rate: 1Mbit}]}\n", "63 is no power of two"},
		{"red class", red("", "class: 4, min: 1, max: 2"), "schedulers[0].red[0].class: 4 is not between 0 and 3"},
		{"red class missing", red("", "min: 1, max: 2"), "schedulers[0].red[0].class: missing"},
		{"red class twice", red("", "class: 3, min: 1, max: 2}, {class: 3, min: 1, max: 2"),
			"schedulers[0].red[1].class: 3 is already in line 9"},
		{"red order", red("", "class: 3, min: 16, max: 16"), "schedulers[0].red[0].min: 16 is not less than max, 16"},
		{"red queue", red("", "class: 2, min: 16, max: 33"),
			"schedulers[0].red[0].max: 33 is more than the 32 packets of a queue of class 2"},
		{"red average", red("", "class: 3, min: 16, max: 1024"),
			"schedulers[0].red[0].max: 1024 is not between 2 and 1023"},
		{"red probability", red("", "class: 3, min: 1, max: 2, probability: 0"),
			"schedulers[0].red[0].probability: 0 is not between 1 and 255"},
		{"red weight", red("", "class: 3, min: 1, max: 2, weight: 13"),
			"schedulers[0].red[0].weight: 13 is not between 1 and 12"},
		{"no address", subscriberOf("name: a"), "needs ipv4, ipv6 or both"},
		{"no such path", subscriberOf("name: a, ipv4: 10.1.0.1, uplink_policer: gold"),
			`x.yaml:9: subscribers[0].uplink_policer: there is no policer "gold"`},
		{"pppoe without session", subscriberOf("name: a, ipv4: 10.1.0.1, encap: qinq-pppoe"),
			"goes with encap qinq-pppoe"},
		{"session without pppoe", subscriberOf("name: a, ipv4: 10.1.0.1, pppoe_session: 5"),
			"goes with encap qinq-pppoe"},
		{"tpid", subscriberOf("name: a, ipv4: 10.1.0.1, tpid: 0x9100"), "0x9100 is neither"},
		{"core port", strings.Replace(subscriberOf("name: a, ipv4: 10.1.0.1"), "port: access, mac", "port: core, mac",
			1), "is no access port"},
		{"v6 in v4", subscriberOf("name: a, ipv4: '2001:db8::1'"), "is no IPv4 address"},
		{"scheduler missing", subscriberOf("name: a, ipv4: 10.1.0.1, scheduler: {subport: 0}"),
			`port "access" has no scheduler`},
		{"too many", subscriberOf("name: a, ipv4: 10.1.0.1, count: 70000"),
			"x.yaml:9: subscribers[0].count: 70000 subscribers so far"},
		{"s-tags run out", strings.Replace(subscriberOf("name: a, ipv4: 10.1.0.1, count: 3, per_s_tag: 1"), "s_tag: 1",
			"s_tag: 4093", 1), "at subscriber 3 of 3: beyond 4094"},
		{"c-tags run out", subscriberOf("name: a, ipv4: 10.1.0.1, count: 3, per_s_tag: 4094, c_tag: 2"), "given twice"},
		{"ipv4 runs out", subscriberOf("name: a, ipv4: 223.255.255.254, count: 3"),
			"at subscriber 3 of 3: 224.0.0.0 is no unicast address"},
		{"teid runs out", strings.Replace(subscriberOf("name: a, ipv4: 10.1.0.1, count: 3"), "teid_downlink: 1",
			"teid_downlink: 0xfffffffe", 1), "at subscriber 3 of 3: beyond 32 bits"},
		{"mac runs out", strings.Replace(subscriberOf("name: a, ipv4: 10.1.0.1, count: 3"), "02:00:00:00:00:01",
			"02:ff:ff:ff:ff:ff", 1), "no unicast address any more"},
		{"gateway's address", subscriberOf("name: a, ipv4: 10.0.0.1"), "10.0.0.1 of a is an interface's, line 5"},
		{"name in range", subscriberOf("name: a, ipv4: 10.1.0.1, count: 10") +
			"  - {name: a-00007, port: access, mac: 02:00:00:00:10:01, s_tag: 2, c_tag: 1, path: upf, teid_uplink: " +
			"99, teid_downlink: 99, ipv4: 10.2.0.1}\n",
			"x.yaml:10: subscribers[1].name: the name of a-00007 is also that of a-00007, line 9"},
		{"same endpoint", subscriberOf("name: a, ipv4: 10.1.0.1, count: 10") +
			"  - {name: b, port: access, mac: 02:00:00:00:00:03, s_tag: 1, c_tag: 3, path: upf, teid_uplink: 99, " +
			"teid_downlink: 99, ipv4: 10.2.0.1}\n",
			"subscribers[1].mac: port, VLAN tags, PPPoE session and MAC of b is also that of a-00003, line 9"},
		{"same teid", subscriberOf("name: a, ipv4: 10.1.0.1, count: 10") +
			"  - {name: b, port: access, mac: 02:00:00:00:00:03, s_tag: 2, c_tag: 3, path: upf, teid_uplink: 99, " +
			"teid_downlink: 10, ipv4: 10.2.0.1}\n",
			"subscribers[1].teid_downlink: downlink TEID and local address of b is also that of a-00010, line 9"},
		{"same ipv4", subscriberOf("name: a, ipv4: 10.1.0.1, count: 10") +
			"  - {name: b, port: access, mac: 02:00:00:00:00:03, s_tag: 2, c_tag: 3, path: upf, teid_uplink: 99, " +
			"teid_downlink: 99, ipv4: 10.1.0.5}\n",
			"subscribers[1].ipv4: address 10.1.0.5/32 of b is also that of a-00005, line 9"},
		{"prefix inside prefix", subscriberOf("name: a, ipv6: '2001:db8::/56', count: 10") +
			"  - {name: b, port: access, mac: 02:00:00:00:00:03, s_tag: 2, c_tag: 3, path: upf, teid_uplink: 99, " +
			"teid_downlink: 99, ipv6: '2001:db8:0:102::/64'}\n",
			"subscribers[1].ipv6: address 2001:db8:0:102::/64 of b is also that of a-00002, line 9"},
		{"packet buffers", "engine:\n  packet_buffers: 4194305\n",
			"x.yaml:2: engine.packet_buffers: 4194305 is not between 1024 and 4194304"},
		{"buffers held", "engine:\n  workers: 2\n  packet_buffers: 8192\n  limits: {buffered_packets: 5120, " +
			"scheduled_packets: 2048}\n",
			"x.yaml:3: engine.packet_buffers: 8192 are too few: receiving needs 1277 (0 for the ports' descriptors, " +
				"1277 for 2 workers), " +
				"and 7456 may be held (scheduled_packets 2048, buffered_packets 5120, fragments 64, held_packets 32, " +
				"hand-over 128, punted 64): 8733 together"},
		{"queues", "ports:\n  - {name: a, driver: synth, role: core, queues: 17}\n",
			"ports[0].queues: 17 is not between 0 and 16"},
		{"offload xconnect", strings.Replace(base, "role: access", "role: access, xconnect: access, offload: auto", 1),
			"x.yaml:2: ports[0].offload: of a port that sends everything to access"},
		{"promiscuous access", strings.Replace(base, "role: access", "role: access, promiscuous: true", 1),
			"x.yaml:2: ports[0].promiscuous: does nothing on an access port"},
		{"route over an access port", access + "routes:\n  - {prefix: 10.1.0.0/16, via: 10.9.0.9}\n",
			`x.yaml:10: routes[0].via: interface "homes" is on an access port`},
		{"route to an access interface", access + "routes:\n  - {prefix: 10.1.0.0/16, interface: homes}\n",
			`interface "homes" is on an access port`},
		{"gateway elsewhere", base + "routes:\n  - {prefix: 10.1.0.0/16, via: 10.9.0.9, interface: n3}\n",
			`x.yaml:9: routes[0].via: 10.9.0.9 is in no network of interface "n3"`},
		{"gateway is us", base + "routes:\n  - {prefix: 10.1.0.0/16, via: 10.0.0.1}\n", "10.0.0.1 is our own address"},
		{"gateway multicast", base + "routes:\n  - {prefix: 10.1.0.0/16, via: 224.0.0.1, interface: n3}\n",
			"224.0.0.1 is no unicast address"},
		{"link-local route", base + "routes:\n  - {prefix: 'fe80::/64', interface: n3}\n", "never forwarded"},
		{"neighbour elsewhere", base + "neighbours:\n  - {interface: n3, address: 10.9.0.9, mac: 02:00:00:00:00:09}\n",
			`x.yaml:9: neighbours[0].address: 10.9.0.9 is in no network of interface "n3"`},
		{"echo just below", strings.Replace(base, "peer: 10.0.0.2", "peer: 10.0.0.2, echo_interval: 59", 1),
			"59 s is less than 60 s"},
		{"QoS rule without QFI", subscriberOf("name: a, ipv4: 10.1.0.1, qos_rules: [{precedence: 1}]"),
			`qos_rules[0].qfi: missing`},
		{"QoS rules of one precedence", ruleOf("}, {precedence: 1, qfi: 2"),
			`qos_rules[1].precedence: 1 is another rule's as well`},
		{"QoS rule's priority", ruleOf(", c_tag_priority: [8]"), `c_tag_priority[0]`},
		{"QoS rule's policer", ruleOf(", policer: gold"), `there is no policer "gold"`},
		{"QoS rule's ports", ruleOf(", destination_port: 80"),
			`a rule with ports needs protocol tcp, udp or sctp`},
		{"mru", subscriberOf("name: a, ipv4: 10.1.0.1, mru: 575"), "subscribers[0].mru: 575 is less than 576"},
		{"mss", subscriberOf("name: a, ipv4: 10.1.0.1, mss: 535"),
			`subscribers[0].mss: "535" is no MSS: path, none, or 536 to 9176`},
		{"mss of a word", subscriberOf("name: a, ipv4: 10.1.0.1, mss: off"),
			`subscribers[0].mss: "off" is no MSS`},
		{"scheduler rate low", sched("7999", "1Mbit", ""),
			"x.yaml:9: schedulers[0].rate: 7999 is not between 8kbit and 800Gbit"},
		{"scheduler rate high", sched("801Gbit", "1Mbit", ""), "schedulers[0].rate: 801Gbit is not between"},
		{"subport rate low", sched("1Gbit", "1Mbit", "rate: 4kbit"),
			"schedulers[0].subports[0].rate: 4kbit is not between"},
		{"profile rate low", sched("1Gbit", "4kbit", ""), "schedulers[0].profiles[0].rate: 4kbit is not between"},
		{"class rate low", sched("1Gbit", "1Mbit", "class_rates: [4kbit, 1Mbit, 1Mbit, 1Mbit]"),
			"class_rates: class 0: 4kbit is not between"},
		{"too many rules", base + "firewall:\n  uplink:\n    rules:\n" +
			strings.Repeat("      - {action: deny}\n", 65537),
			"x.yaml:11: firewall.uplink.rules: 65537 entries, at most 65536"},
		{"too many rules with those per subscriber", "engine: {limits: {sessions: 70000}}\n" +
			subscriberOf("name: a, ipv4: 10.1.0.1, count: 65537") + "firewall:\n  downlink: {per_subscriber: true}\n",
			"x.yaml:12: firewall.downlink: 65537 rules"},
		{"large", "#" + strings.Repeat(" ", maxFile), "are more than a configuration may have"},
		{"internal field", "\"-\": []\n", "x.yaml:1: -: unknown key"},
		{"NUL in string", "control:\n  socket: \"a\\0b\"\n", "holds a NUL"},
		{"control bytes", "control:\n  socket: a\x01b\n", "not valid YAML"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(r.text))
			testkit.FatalIf(t, err == nil, "was accepted")
			testkit.ErrorIf(t, !strings.Contains(err.Error(), r.want), "got:  %v\nwant: %s", err, r.want)
		})
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	text := "routes:\n" + strings.Repeat("  - {prefix: x}\n", 30)
	_, err := Parse("x.yaml", []byte(text))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxErrors+1 || !strings.HasPrefix(lines[19], "x.yaml:21: routes[19].prefix:") ||
		lines[20] != "... and 10 more" {
		t.Errorf("%d lines:\n%v", len(lines), err)
	}
}

// Aliases may be used, but cannot make a small file expensive.
func TestAliases(t *testing.T) {
	alias := strings.NewReplacer("name: core", "name: &core core", "port: core", "port: *core")
	c := mustParse(t, alias.Replace(base))
	testkit.Equal(t, c.Interfaces[0].Port, "core", "the interface's port")
	var bomb strings.Builder
	bomb.WriteString("engine:\n  cpus: &a0 [1]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&bomb, "x%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1, i-1)
	}
	// a mapping list, many times
	rows := "routes: &r [" + strings.Repeat("{prefix: 10.0.0.0/8, interface: n},", 9999) + "]\n"
	for name, text := range map[string]string{
		"bomb":  bomb.String(),
		"self":  "routes: &a [*a, *a]\n",
		"lists": "schedulers:\n" + strings.Repeat("  - {port: a, rate: 1, subports: *s, profiles: *p}\n", 1000),
		"rows":  rows + "neighbours: *r\ninterfaces: *r\n",
	} {
		cputest.Bound(t, 10*time.Second, name, func() {
			_, err := Parse("x.yaml", []byte(text))
			testkit.ErrorIf(t, err == nil, "%s: accepted", name)
		})
	}
}

func TestRefusedClones(t *testing.T) {
	of := func(clone string) string {
		return strings.Replace(base, "port: core,", "port: core, clone: "+clone+",", 1)
	}
	two := "interfaces:\n  - {name: x, port: core, outer_vlan: 7, clone: {device: d, namespace: n}}\n" +
		"  - {name: y, port: core, outer_vlan: 8, clone: {device: d, namespace: /run/netns/n}}\n"
	for _, r := range [][2]string{
		{strings.Replace(of("{device: a}"), "port: core,", "port: access,", 1), "clones are of core ports"},
		{of("{namespace: a}"), "interfaces[0].clone.device: missing"},
		{of("{device: a/b}"), "no name of a network device"},
		{of("{device: sixteen-letters-}"), "interfaces[0].clone.device"},
		{of("{device: a, namespace: a/b}"), "neither a name nor the path"},
		{of("{device: a, namespace: ../a}"), "neither a name nor the path"},
		{strings.Replace(base, "interfaces:\n", two, 1), "d is already the clone of line"},
	} {
		_, err := Parse("x.yaml", []byte(r[0]))
		testkit.Refused(t, err, r[1])
	}
}

func TestRefusedGTSM(t *testing.T) {
	with := func(port, hops string) string {
		return strings.Replace(base, "port: core,", "port: "+port+", gtsm: "+hops+",", 1)
	}
	mustParse(t, with("core", "254"))
	for _, r := range [][2]string{
		{with("core", "255"), "x.yaml:5: interfaces[0].gtsm: 255"},
		{with("access", "1"), `interfaces[0].gtsm: interface "n3" is on an access port`},
	} {
		_, err := Parse("x.yaml", []byte(r[0]))
		testkit.Refused(t, err, r[1])
	}
}

func TestRefusedRemark(t *testing.T) {
	with := func(port, dscp string) string {
		return strings.Replace(base, "port: core,", "port: "+port+", remark: "+dscp+",", 1)
	}
	mustParse(t, with("core", "63"))
	testkit.Equal(t, mustParse(t, base).Interfaces[0].Remark, -1, "without the key")
	for _, r := range [][2]string{
		{with("core", "64"), "x.yaml:5: interfaces[0].remark: 64"},
		{with("access", "0"), `interfaces[0].remark: port "access" is an access port, or has offload`},
		{strings.Replace(with("core", "0"), "role: core", "role: core, offload: auto", 1),
			`interfaces[0].remark: port "core" is an access port, or has offload`},
	} {
		_, err := Parse("x.yaml", []byte(r[0]))
		testkit.Refused(t, err, r[1])
	}
}

// The largest file in the worst shapes: refused in time, without a crash.
func TestLargest(t *testing.T) {
	fill := func(unit string) string { return strings.Repeat(unit, (maxFile-1)/len(unit)) }
	for name, text := range map[string]string{
		"brackets": "routes: " + fill("[")[:maxFile-100],
		"braces":   "routes: " + fill("{a: ")[:maxFile-100],
		"keys":     fill("a: \n")[:maxFile/8],
		"rows":     "routes:\n" + fill("- {}\n")[:maxFile/8],
		"anchors":  "routes: " + fill("&a ")[:maxFile-100],
		"dashes":   fill("- "),
		"quotes":   fill("\""),
		"percent":  fill("%"),
	} {
		cputest.Bound(t, 20*time.Second, name, func() {
			_, err := Parse("x.yaml", []byte(text))
			testkit.ErrorIf(t, err == nil, "%s: accepted", name)
		})
	}
}

func TestEnvironment(t *testing.T) {
	c, err := ParseWith("x.yaml", []byte(base), []string{"ISTHMUS_ENGINE_WORKERS=4", "ISTHMUS_ENGINE_LIMITS_FLOWS=4096",
		"ISTHMUS_CONTROL_RESTART_POLICY=external", "ISTHMUS_CONTROL_METRICS=", "ISTHMUS_OTHER=x", "PATH=/bin"}, nil)
	if err != nil || c.Engine.Workers != 4 || c.Engine.Limits.Flows != 4096 || c.Control.Restart.Policy != "external" ||
		c.Control.Metrics != "" {
		t.Errorf("%v %+v", err, c)
	}
	_, err = ParseWith("x.yaml", []byte(base), []string{"ISTHMUS_ENGINE_WORKER=4", "ISTHMUS_ENGINE_BUFFER_SIZE=no"},
		nil)
	for _, want := range []string{
		`x.yaml: environment ISTHMUS_ENGINE_WORKER: no such setting; did you mean "ISTHMUS_ENGINE_WORKERS"?`,
		`x.yaml: environment ISTHMUS_ENGINE_BUFFER_SIZE: needs a whole number, found "no"`,
	} {
		testkit.Refused(t, err, want)
	}
}

func TestRange(t *testing.T) {
	c := mustParse(t, subscriberOf("name: home, count: 5000, ipv4: 10.1.0.250, ipv6: '2001:db8:0:fffe::/64', "+
		"per_s_tag: 1000, encap: qinq-pppoe, pppoe_session: 65533"))
	testkit.FatalIf(t, len(c.Subscribers) != 5000, "%v", len(c.Subscribers))
	check := func(i int, want string) {
		h := c.Subscribers[i]
		got := fmt.Sprint(h.Name, " ", h.MAC, " ", h.STag, ".", h.CTag, " ", h.PPPoESession, " ", h.IPv4, " ", h.IPv6,
			" ", h.TEIDUplink, " ", h.TEIDDownlink)
		testkit.ErrorIf(t, got != want, "got  %s\nwant %s", got, want)
	}
	check(0, "home-00001 02:00:00:00:00:01 1.1 65533 10.1.0.250 2001:db8:0:fffe::/64 1 1")
	check(2, "home-00003 02:00:00:00:00:03 1.3 1 10.1.0.252 2001:db8:1::/64 3 3")
	check(999, "home-01000 02:00:00:00:03:e8 1.1000 998 10.1.4.225 2001:db8:1:3e5::/64 1000 1000")
	check(1000, "home-01001 02:00:00:00:03:e9 2.1 999 10.1.4.226 2001:db8:1:3e6::/64 1001 1001")
}

func TestSchedulerPlaces(t *testing.T) {
	scheduled := func(place string, workers int) *Config {
		return mustParse(t, fmt.Sprintf("engine: {workers: %d}\n", workers)+
			subscriberOf("name: h, count: 100, ipv4: 10.1.0.1, scheduler: {subport: "+place+"}")+
			"schedulers:\n  - {port: access, rate: 1Gbit, subports: {count: 4, name: sg}, profiles: [{name: p, rate: "+
			"1Mbit}]}\n")
	}
	c := scheduled("round-robin", 2)
	if h := c.Subscribers[6]; h.Subport != 2 || h.Worker != 0 || h.Profile != "p" {
		t.Errorf("round-robin: %+v", h)
	}
	if g := c.Schedulers[0].Groups; g[1].Pipes != 32 || g[1].Worker != 1 || g[1].Rate != 250e6 ||
		g[1].ClassRates[3] != 250e6 {
		t.Errorf("%+v", g[1])
	}
	c = scheduled("block", 3)
	if h := c.Subscribers[99]; h.Subport != 3 || h.Worker != 0 {
		t.Errorf("block: %+v", h)
	}
	if h := scheduled("sg-2", 4).Subscribers[50]; h.Subport != 1 || h.Worker != 1 {
		t.Errorf("by name: %+v", h)
	}
	if h := scheduled("3", 1).Subscribers[50]; h.Subport != 3 {
		t.Errorf("by number: %+v", h)
	}
}

func TestScalars(t *testing.T) {
	for text, want := range map[string]Rate{"0": 0, "1000": 1000, "64kbit": 64000, "1.5Gbit": 1500000000,
		"10Mbit": 10000000} {
		var r Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s: %d, %v", text, r, err)
		}
	}
	for text, want := range map[string]uint64{"1500": 1500, "64kB": 64000, "2MB": 2000000, "10ms": 125000,
		"0.001ms": 3044} {
		var b Burst
		if err := b.UnmarshalText([]byte(text)); err != nil || b.Bytes(100e6) != want {
			t.Errorf("%s: %d, %v", text, b.Bytes(100e6), err)
		}
	}
	for _, text := range []string{"", ".", "1..2", "-1", "1e9", "Mbit", "99999Tbit", "9Tbit", "1 2"} {
		testkit.ErrorIf(t, (new(Rate)).UnmarshalText([]byte(text)) == nil, "rate %q was accepted", text)
		testkit.ErrorIf(t, text != "1e9" && (new(Burst)).UnmarshalText([]byte(text)) == nil,
			"burst %q was accepted", text)
	}
}

func TestDevArgs(t *testing.T) {
	for _, r := range []struct{ driver, device, args, want string }{
		{"net_af_packet", "veth0", "", "iface=veth0"},
		{"net_af_packet", "veth0", "blocksz=4096", "iface=veth0,blocksz=4096"},
		{"net_af_xdp", "eth1", "", "iface=eth1"},
		{"net_tap", "tap0", "", "iface=tap0"},
		{"net_memif", "/run/m.sock", "id=1,role=server", "socket=/run/m.sock,socket-abstract=no,id=1,role=server"},
		{"share", "/run/s.sock", "role=client", "socket=/run/s.sock,role=client"},
		{"net_virtio_user", "/run/v.sock", "", "path=/run/v.sock"},
		{"net_vhost", "/run/v.sock", "", "iface=/run/v.sock"},
		{"pci", "0000:01:00.0", "", "0000:01:00.0"},
		{"net_pcap", "", "rx_pcap=a,tx_pcap=b", "rx_pcap=a,tx_pcap=b"},
		{"synth", "", "", ""},
	} {
		p := Port{Driver: r.driver, Device: r.device, Args: r.args}
		testkit.Equal(t, p.DevArgs(), r.want, "%+v", r)
	}
	p := Port{Driver: "net_bond", Args: "lsc_poll_period_ms=5", Bond: Bond{Mode: "active-standby"}}
	testkit.Equal(t, p.DevArgs(), "mode=1,lsc_poll_period_ms=5", "arguments")
}

// A driver that the schema names is started by a script in test/, or the schema says that it was not tried.
func TestDriversAreTried(t *testing.T) {
	field, _ := reflect.TypeOf(Port{}).FieldByName("Driver")
	_, untried, _ := strings.Cut(field.Tag.Get("doc"), "Not tried")
	tried := ""
	places := []string{"smoke/port_*_test.sh", "vm/*_test.sh", "golden/*.yaml", "e2e/*_test.sh", "e2e/*.yaml"}
	for _, pattern := range places {
		files, _ := filepath.Glob("../../test/" + pattern)
		for _, f := range files {
			b, err := os.ReadFile(f)
			testkit.Must(t, err)
			tried += string(b)
		}
	}
	for _, driver := range strings.Split(field.Tag.Get("enum"), "|") {
		if regexp.MustCompile(`driver: `+driver+`\b`).MatchString(tried) == strings.Contains(untried, driver) {
			t.Errorf("%s: no script starts it and the schema does not say so, or both", driver)
		}
	}
}

// The schema in docs/ equals the one made from the decoder's tags, so no key can be missing from either.
func TestReferenceSchema(t *testing.T) {
	want, err := Schema()
	testkit.Must(t, err)
	testkit.Golden(t, schemaFile, string(want))
}

func TestExamples(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	testkit.Must(t, err)
	files, err := filepath.Glob(examples)
	testkit.FatalIf(t, err != nil || len(files) == 0, "no examples %v", err)
	for name, text := range map[string]string{"references": fleet, "auto": "engine: {cpus: auto}\n" + base,
		"CPUs": "engine: {cpus: [1, -1], workers: 2}\n" + base} {
		file := filepath.Join(t.TempDir(), name)
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
		if err := schema.Validate(asJSON(t, file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []map[string]any{{"workers": "${}"}, {"workers": "many"}, {"cpus": "automatic"},
		{"idle_sleep": "yes"}, {"huge_pages": "maybe"}} {
		if err := schema.Validate(map[string]any{"engine": bad}); err == nil {
			t.Errorf("the schema accepts %v", bad)
		}
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil {
			_, err = Parse(f, data)
		}
		testkit.ErrorIf(t, err != nil, "%v", err)
		if err := schema.Validate(asJSON(t, f)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	if err := schema.Validate(map[string]any{"engine": map[string]any{"worker": 1}}); err == nil {
		t.Error("the schema accepts an unknown key")
	}
}

// Who uses a section compares it with the one before: what moved in the file did not change.
func TestEqualWhereverItStands(t *testing.T) {
	text, err := os.ReadFile("../../deploy/examples/bng.yaml")
	testkit.Must(t, err)
	c, moved := mustParse(t, string(text)), mustParse(t, "# a comment\n\n"+string(text))
	testkit.ErrorIf(t, !reflect.DeepEqual(c, moved), "another configuration two lines below")
	other := mustParse(t, strings.Replace(string(text), "interim: 600", "interim: 601", 1))
	testkit.ErrorIf(t, reflect.DeepEqual(c, other), "the same with another interim")
}

func asJSON(t *testing.T, file string) any {
	t.Helper()
	data, err := os.ReadFile(file)
	testkit.Must(t, err)
	var tree map[string]any
	testkit.Must(t, yaml.Unmarshal(data, &tree))
	text, err := json.Marshal(stringKeys(tree))
	testkit.Must(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	testkit.Must(t, err)
	return out
}

// stringKeys makes the keys of numbered tables (dscp, qfi) what JSON has.
func stringKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = stringKeys(v[k])
		}
	case map[any]any:
		out := map[string]any{}
		for k, one := range v {
			out[fmt.Sprint(k)] = stringKeys(one)
		}
		return out
	case []any:
		for i := range v {
			v[i] = stringKeys(v[i])
		}
	}
	return v
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob(examples)
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(base))
	f.Add([]byte("engine: &a {workers: 0x1}\ncontrol: *a\n"))
	f.Add([]byte("routes: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("x.yaml", data)
		testkit.FatalIf(t, (c == nil) != (err != nil), "config %v, error %v", c != nil, err)
		testkit.FatalIf(t, err != nil && err.Error() == "", "refused without a reason")
	})
}
