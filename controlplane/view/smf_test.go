// SPDX-License-Identifier: Apache-2.0

package view

import (
	"net/netip"
	"strings"
	"testing"

	"isthmus/controlplane/config"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/testkit"
)

// printed are a core's lines for a configuration.
func printed(t *testing.T, core string, c *config.Config) string {
	t.Helper()
	s := n4.Snapshot{NodeID: c.PFCP.Node()}
	for _, a := range c.PFCP.Listen {
		s.Listen = append(s.Listen, a.String())
	}
	for i := range c.PFCP.Peers {
		s.Peers = append(s.Peers, c.PFCP.Peers[i].Address.String())
		s.PeerIDs = append(s.PeerIDs, c.PFCP.Peers[i].NodeID)
	}
	var rows []Instance
	for i := range c.Instances {
		in := Instance{Name: string(c.Instances[i].Name), Lookup: c.Instances[i].Lookup}
		in.configured(&c.Instances[i])
		rows = append(rows, in)
	}
	var out strings.Builder
	mtus := map[netip.Addr]uint32{}
	for _, f := range c.Interfaces {
		for _, p := range c.Ports {
			for _, a := range f.Addresses {
				if p.Name == f.Port {
					mtus[a.Addr()] = p.MTU
				}
			}
		}
	}
	testkit.Must(t, WriteSMF(&out, core, &s, rows, mtus))
	return out.String()
}

func TestSMFLines(t *testing.T) {
	const file = `
ports: [{name: n3, driver: synth, role: core}, {name: n6, driver: synth, role: core}]
interfaces:
  - {name: n3, port: n3, addresses: [10.30.0.1/24]}
  - {name: n9, port: n3, outer_vlan: 9, addresses: [10.39.0.1/24]}
  - {name: n6, port: n6, addresses: [10.60.0.1/24]}
instances:
  - {name: access, interfaces: [n3], endpoints: [10.30.0.1], sources: [access]}
  - {name: n9, interfaces: [n9], endpoints: [10.39.0.1], sources: [core]}
  - {name: internet, names: [ims, "*"], interfaces: [n6], lookup: destination, sources: [sgi-lan],
     pools: [10.45.0.0/16, 10.46.0.0/16, "2001:db8:45::/48"]}
pfcp: {listen: [192.0.2.10], node_id: upf.test, roles: [upf], peers: [{address: 192.0.2.20}, {address: 192.0.2.21}]}
`
	c, err := config.Parse("x.yaml", []byte(file))
	testkit.Must(t, err)
	for _, core := range Cores() {
		testkit.Golden(t, "testdata/smf-"+core+".txt", printed(t, core, c))
	}
	for want, s := range map[string]n4.Snapshot{
		"pfcp.listen of the configuration is empty": {},
		"pfcp.peers of the configuration is empty":  {Listen: []string{"192.0.2.10:8805"}},
		"another port than":                         {Listen: []string{"192.0.2.10:9000"}},
	} {
		testkit.Refused(t, WriteSMF(new(strings.Builder), "open5gs", &s, nil, nil), want)
	}
	for _, one := range []struct{ was, is, want string }{
		{"endpoints: [10.30.0.1]", "endpoints: [10.30.0.1]", "  mtu: 1456 #"},
		{"{name: n3, driver: synth,", "{name: n3, mtu: 1600, driver: synth,", "  mtu: 1500 #"},
		{"addresses: [10.30.0.1/24]", `addresses: [10.30.0.1/24, "2001:db8:30::1/64"]`, "  mtu: 1456 #"},
		{"addresses: [10.30.0.1/24]}\n", `addresses: ["2001:db8:30::1/64"]}` + "\n", "  mtu: 1436 #"},
	} {
		text := strings.Replace(file, one.was, one.is, 1)
		if one.want == "  mtu: 1436 #" {
			text = strings.Replace(text, "endpoints: [10.30.0.1]", `endpoints: ["2001:db8:30::1"]`, 1)
		}
		c, err := config.Parse("x.yaml", []byte(text))
		testkit.Must(t, err)
		lines := printed(t, "open5gs", c)
		testkit.ErrorIf(t, !strings.Contains(lines, one.want), "%s: %s", one.is, lines)
	}
	// The peer's Node ID is that of its entry: free5GC has a key for it, Open5GS sends the name of its address.
	named, err := config.Parse("x.yaml", []byte(strings.Replace(file, "{address: 192.0.2.20}",
		"{address: 192.0.2.20, node_id: smf.test}", 1)))
	testkit.Must(t, err)
	for core, want := range map[string]string{
		"free5gc": "    nodeID: smf.test\n    listenAddr: 192.0.2.20\n",
		"open5gs": "    server:\n      - address: smf.test # a name of 192.0.2.20: the Node ID\n",
	} {
		lines := printed(t, core, named)
		testkit.ErrorIf(t, !strings.Contains(lines, want), "%s with a Node ID: %s", core, lines)
	}
	testkit.Refused(t, WriteSMF(new(strings.Builder), "ella", &n4.Snapshot{}, nil, nil), "none of free5gc, open5gs")
}
