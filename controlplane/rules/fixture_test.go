// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit/pfcptest"
	"net/netip"
	"time"
)

func ptr[T any](v T) *T { return &v }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

var request = pfcptest.Request

// testSettings: a UPF with N3 and N6, each IPv4 and IPv6.
func testSettings() *Settings {
	return &Settings{
		Node:    pfcp.NodeID{FQDN: "upf1.isthmus"},
		Workers: 4, PFCP: config.PFCP{FTEID: FTEIDBoth,
			MBRBurst: config.MBRBurst{Window: 100 * time.Millisecond, Least: 16 << 10}},
		Instances: []Instance{
			{Name: "access", Endpoints: []netip.Addr{addr("10.1.0.1"), addr("2001:db8:f::1")},
				Sources: []pfcp.Interface{pfcp.Access}},
			{Name: "internet", Lookup: api.LookupDestination, Sources: []pfcp.Interface{pfcp.Core, pfcp.SGiLAN},
				Pools: []netip.Prefix{netip.MustParsePrefix("10.45.0.0/29"), netip.MustParsePrefix("2001:db8:1::/62")}},
			{Name: "n9", Endpoints: []netip.Addr{addr("10.9.0.1")}},
		},
	}
}
