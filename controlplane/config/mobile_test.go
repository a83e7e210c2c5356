// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// mobile is the least UPF; tests change one line of it.
const mobile = `ports:
  - {name: p0, driver: synth, role: core}
  - {name: p1, driver: synth, role: core}
  - {name: p2, driver: synth, role: access}
interfaces:
  - {name: n3, port: p0, addresses: [10.1.0.1/24, "2001:db8::1/64"]}
  - {name: n6, port: p1, addresses: [10.2.0.1/24]}
  - {name: homes, port: p2, addresses: [10.9.0.1/24]}
instances:
  - {name: access, interfaces: [n3], endpoints: [10.1.0.1, "2001:db8::1"], sources: [access]}
  - {name: internet, interfaces: [n6], lookup: destination, pools: [10.45.0.0/16, "2001:db8:1::/48"], sources: [core]}
pfcp:
  listen: [10.0.0.1]
  roles: [upf]
  peers:
    - {address: 10.0.0.2, node_id: smf1, connect: true}
`

// with replaces what must be there.
func with(t *testing.T, old, new string) string {
	t.Helper()
	testkit.FatalIf(t, !strings.Contains(mobile, old), "no %q to replace", old)
	return strings.Replace(mobile, old, new, 1)
}

func TestMobileRefused(t *testing.T) {
	for _, r := range []struct{ name, old, new, want string }{
		{"interface", "[n6]", "[n7]",
			`x.yaml:11: instances[1].interfaces: there is no interface "n7"; did you mean "n3"?`},
		{"interface taken", "[n6]", "[n3]", `instances[1].interfaces: n3 is already of instance "access", line 10`},
		{"no interface", "[n6]", "[]", "instances[1].interfaces: missing: the list is empty"},
		{"access port", "[n6]", "[homes]", `instances[1].interfaces: interface "homes" is on an access port`},
		{"endpoint", "[10.1.0.1,", "[10.1.0.9,",
			"x.yaml:10: instances[0].endpoints: 10.1.0.9 is no address of the instance's interfaces"},
		{"endpoint of another", "[n6],", "[n6], endpoints: [10.1.0.1],",
			"instances[1].endpoints: 10.1.0.1 is already of"},
		{"endpoint of a path", "instances:", "paths: [{name: x, local: 10.1.0.1, peer: 10.1.0.2}]\ninstances:",
			`x.yaml:11: instances[0].endpoints: 10.1.0.1 is the local end of path "x", line 9`},
		{"list per subscriber", "lookup: destination", "access_list: {per_subscriber: true}, lookup: destination",
			"instances[1].access_list.per_subscriber: sessions of an instance come over PFCP"},
		{"rule of a list", "lookup: destination",
			"access_list: {rules: [{source: 192.0.2.1/24, action: deny}]}, lookup: destination",
			"instances[1].access_list.rules[0].source: 192.0.2.1/24 has host bits set"},
		{"long name with a list", "name: internet, ",
			"name: an-instance-of-a-length-of-29x, access_list: {default: deny}, ",
			"an instance with an access list has a name of at most 28 characters"},
		{"same name", "name: internet", "name: access", `instances[1].name: "access" is already in line 10`},
		{"further name", "name: internet,", "name: internet, names: [ims, access],",
			`instances[1].names: access is already of instance "access", line 10`},
		{"further name twice", "name: internet,", "name: internet, names: [ims, ims],",
			`instances[1].names: ims is already of instance "internet", line 11`},
		{"all names twice", "sources: [access]}\n  - {name: internet,",
			"sources: [access], names: ['*']}\n  - {name: internet, names: ['*'],",
			`instances[1].names: * is already of instance "access", line 10`},
		{"further name with a blank", "name: internet,", "name: internet, names: [i ms],",
			`instances[1].names: "i ms" is no Network Instance`},
		{"lookup", "destination", "dest",
			`x.yaml:11: instances[1].lookup: "dest" is none of none, destination, source`},
		{"pool host bits", "10.45.0.0/16", "10.45.0.1/16",
			"instances[1].pools: 10.45.0.1/16 has host bits set; the network is 10.45.0.0/16"},
		{"pool too long", "2001:db8:1::/48", "2001:db8:1::/96", "2001:db8:1::/96 is longer than /64"},
		{"pool of all", "10.45.0.0/16", "0.0.0.0/0", "0.0.0.0/0 holds more than global unicast"},
		{"pool multicast", "10.45.0.0/16", "224.0.0.0/16", "holds more than global unicast"},
		{"pools overlap", "10.45.0.0/16,", "10.45.0.0/16, 10.45.7.0/24,",
			`10.45.7.0/24 overlaps 10.45.0.0/16 of instance "internet", line 11`},
		{"pool holds us", "10.45.0.0/16", "10.2.0.0/16", "10.2.0.0/16 holds 10.2.0.1, which is an interface's, line 7"},
		{"pool without lookup", "lookup: destination, ", "", "instances[1].pools: given with lookup none"},
		{"source", "sources: [core]", "sources: [internet]",
			`instances[1].sources[0]: "internet" is none of access, core`},
		{"source twice", "sources: [core]", "sources: [access]",
			`instances[1].sources: access is already of instance "access", line 10`},
		{"udp port", "[n6],", "[n6], udp_port: 9000,", "instances[1].udp_port: given without endpoints"},
		{"DSCP", "[n6],", "[n6], dscp: 26,", "instances[1].dscp: given without endpoints"},
		{"DSCP of 7 bits", "[n3],", "[n3], dscp: 64,", "instances[0].dscp: "},
		{"DSCP of 7 bits of a QFI", "[n6],", "[n6], qfi_dscp: {9: 64},", "instances[1].qfi_dscp.9: "},
		{"QFI of 7 bits", "[n6],", "[n6], qfi_dscp: {64: 9},",
			"instances[1].qfi_dscp.64: the key must be a number from 0 to 63"},
		{"udp port of GTP-U", "[n3],", "[n3], udp_port: 2152,", "instances[0].udp_port: 2152 is GTP-U's"},
		{"ue to ue", "[n6],", "[n6], ue_to_ue: deny,", "is none of inside, allow, out, drop"},
		{"listen", "[10.0.0.1]", "[upf1]",
			`x.yaml:13: pfcp.listen[0]: "upf1" is neither an IP address nor ADDRESS:PORT`},
		{"listen port", "[10.0.0.1]", "['10.0.0.1:99999']", "is neither an IP address"},
		{"listen any", "[10.0.0.1]", "[0.0.0.0]",
			"x.yaml:13: pfcp.listen: 0.0.0.0 is no address that a peer could send to"},
		{"listen multicast", "[10.0.0.1]", "[224.0.0.1]", "no address that a peer could send to"},
		{"listen twice", "[10.0.0.1]", "[10.0.0.1, '10.0.0.1:8805']", "10.0.0.1:8805 given twice"},
		{"no listen", "listen: [10.0.0.1]", "fteid: up", "x.yaml:13: pfcp.listen: missing"},
		{"role", "[upf]", "[upff]", `pfcp.roles[0]: "upff" is none of upf, sgwu, pgwu, gnb, enb; did you mean "upf"?`},
		{"role twice", "[upf]", "[upf, upf]", "x.yaml:14: pfcp.roles: upf given twice"},
		{"no role", "roles: [upf]", "roles: []", "pfcp.roles: missing"},
		{"gnb", "[upf]", "[upf, gnb]", "pfcp.roles: gnb needs an instance with lookup source"},
		{"no endpoints", `endpoints: [10.1.0.1, "2001:db8::1"], `, "", "pfcp.roles: no instance has endpoints"},
		{"no peers", "    - {address: 10.0.0.2, node_id: smf1, connect: true}", "    []",
			"pfcp.peers: missing: nobody"},
		{"peer address", "10.0.0.2", "0.0.0.0", "x.yaml:16: pfcp.peers[0].address: 0.0.0.0 is no unicast address"},
		{"peer family", "10.0.0.2", "'2001:db8::9'", "we listen on no address of that family"},
		{"peer is us", "10.0.0.2", "10.0.0.1", "is our own"},
		{"peer twice", "connect: true}", "connect: true}\n    - {address: 10.0.0.2, node_id: smf1}",
			"x.yaml:17: pfcp.peers[1].address: the peer in line 16 has the same address and node_id"},
		{"peer node id", "smf1", "'smf 1'", `pfcp.peers[0].node_id: "smf 1" holds ' '`},
		{"node id", "roles: [upf]", "roles: [upf]\n  node_id: a..b", `pfcp.node_id: "a..b" has a label`},
		{"fteid", "roles: [upf]", "roles: [upf]\n  fteid: smf", "is none of up, cp, both"},
		{"pdrs", "roles: [upf]", "roles: [upf]\n  limits: {pdrs: 33}",
			"x.yaml:15: pfcp.limits.pdrs: 33 is not between 1 and 32"},
		{"filters", "roles: [upf]", "roles: [upf]\n  limits: {filters: 257}", "257 is not between 1 and 256"},
		{"sessions", "roles: [upf]", "roles: [upf]\n  limits: {sessions: 65537}",
			"x.yaml:15: pfcp.limits.sessions: 65537 is more than engine.limits.sessions (65536)"},
		{"burst", "roles: [upf]", "roles: [upf]\n  mbr_burst: {least: 1500}",
			"pfcp.mbr_burst.least: 1500 is not between 3044 and 1073741824"},
		{"timeout", "roles: [upf]", "roles: [upf]\n  heartbeat: {timeout: 0}",
			"pfcp.heartbeat.timeout: 0 is not between 1 and 60"},
		{"dynamic path", "instances:", "paths: [{name: n4.x, local: 10.2.0.1, peer: 10.2.0.2}]\ninstances:",
			`paths[0].name: "n4.x": names beginning with "n4." belong to sessions over PFCP`},
		{"dynamic policer", "instances:", "policers: [{name: n4.x, type: srtcm, cir: 1Mbit}]\ninstances:",
			`policers[0].name: "n4.x": names beginning`},
	} {
		t.Run(r.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(with(t, r.old, r.new)))
			testkit.FatalIf(t, err == nil, "was accepted")
			testkit.ErrorIf(t, !strings.Contains(err.Error(), r.want), "got:  %v\nwant: %s", err, r.want)
		})
	}
	_, err := Parse("x.yaml", []byte(subscriberOf("name: n4.a, ipv4: 10.1.0.1")))
	testkit.Refused(t, err, `subscribers[0].name: "n4.a": names beginning`)
}

// A peer sends from any port, and names are the same in any case.
func TestSecondPeerRefused(t *testing.T) {
	for peer, want := range map[string]string{
		"{address: '10.0.0.2:9000', node_id: SMF1.}":       "the peer in line 16 has the same address and node_id",
		"{address: 10.0.0.3}\n  limits: {associations: 1}": "x.yaml:15: pfcp.peers: 2, but limits.associations is 1",
	} {
		_, err := Parse("x.yaml", []byte(mobile+"    - "+peer+"\n"))
		testkit.Refused(t, err, want)
	}
}

func TestMobileValues(t *testing.T) {
	c := mustParse(t, mobile)
	p := &c.PFCP
	if !p.Enabled() || !p.Is("upf") || p.Is("gnb") || p.Node() != "10.0.0.1" || p.Listen[0].Port() != PFCPPort ||
		p.Peers[0].Address.String() != "10.0.0.2:8805" || !p.Peers[0].Connect || p.FTEID != "both" ||
		p.Headless != time.Hour {
		t.Errorf("%+v", p)
	}
	if got := fmt.Sprint(p.Heartbeat.Interval, p.Heartbeat.Retries, p.Heartbeat.Timeout, p.Rates.Requests,
		p.Rates.Heartbeats, p.Limits.Associations, p.Limits.Sessions, p.Limits.PDRs, p.Limits.URRs, p.Limits.Filters,
		p.Limits.PFDs); got != "10s 3 1s 100000 1000 64 0 32 16 256 64" {
		t.Error(got)
	}
	if c := mustParse(t, base); c.PFCP.Enabled() || c.PFCP.Headless != time.Hour || c.PFCP.Limits.PDRs != 32 {
		t.Errorf("absent section: %+v", c.PFCP)
	}
	c = mustParse(t, with(t, "listen: [10.0.0.1]", `listen: ["[2001:db8::5]:9000", 127.0.0.1]
  node_id: upf1.isthmus
  allow_unknown: true`))
	testkit.ErrorIf(t, c.PFCP.Listen[0].String() != "[2001:db8::5]:9000" || c.PFCP.Node() != "upf1.isthmus",
		"%+v", c.PFCP)
}

func TestMobileEnvironment(t *testing.T) {
	c, err := ParseWith("x.yaml", []byte(mobile), []string{"ISTHMUS_PFCP_NODE_ID=upf7.isthmus",
		"ISTHMUS_PFCP_LIMITS_PDRS=8"}, nil)
	testkit.ErrorIf(t, err != nil || c.PFCP.Node() != "upf7.isthmus" || c.PFCP.Limits.PDRs != 8, "%v %+v", err, c)
	_, err = ParseWith("x.yaml", []byte(mobile), []string{"ISTHMUS_PFCP_NODEID=a"}, nil)
	testkit.Refused(t, err, `did you mean "ISTHMUS_PFCP_NODE_ID"?`)
}

// Names come from a map: the same mistake gets the same message each time.
func TestSuggestOfSeveral(t *testing.T) {
	for _, known := range [][]string{{"n3", "n6", "core"}, {"core", "n6", "n3"}} {
		testkit.Equal(t, suggest("n7", known), `; did you mean "n3"?`, "%v", known)
	}
	for word, want := range map[string]string{"nn": `; did you mean "n3"?`, "cord": `; did you mean "core"?`,
		"quite": ""} {
		testkit.Equal(t, suggest(word, []string{"core", "n6", "n3"}), want, "%s", word)
	}
	testkit.Equal(t, suggest("ppoe", []string{"ipoe", "pppoe"}), `; did you mean "pppoe"?`, "the same beginning")
}

func TestAnnounce(t *testing.T) {
	text := func(instance, clone string) string {
		return "ports:\n  - {name: core, driver: synth, role: core}\n" +
			"interfaces:\n  - {name: n6, port: core, addresses: [10.6.0.1/24]" + clone + "}\n" +
			"instances:\n  - {name: internet, interfaces: [n6], " + instance + "}\n"
	}
	const clone = ", clone: {device: n6}"
	c, err := Parse("x.yaml", []byte(text("lookup: destination, announce: host", clone)))
	testkit.Must(t, err)
	testkit.Equal(t, c.Instances[0].Announce, "host", "announce")
	for _, r := range [][3]string{
		{"announce: host", clone, "given with lookup none"},
		{"lookup: destination, announce: pool", clone, "there are no pools"},
		{"lookup: destination, announce: host", "", "none of the instance's interfaces has a clone"},
		{"lookup: destination, announce: all", clone, "announce"},
	} {
		_, err := Parse("x.yaml", []byte(text(r[0], r[1])))
		testkit.Refused(t, err, r[2])
	}
}
