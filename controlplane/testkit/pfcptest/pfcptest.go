// SPDX-License-Identifier: Apache-2.0

// Package pfcptest has requests for tests.
package pfcptest

import (
	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"net/netip"
)

func ptr[T any](v T) *T { return &v }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// Request is a phone's session: uplink from the F-TEID 10.1.0.1/teid to the data network, downlink to the gNB.
func Request(teid uint32, ue string) *pfcp.SessionEstablishmentRequest {
	v4 := []pfcp.UEIP{{IPv4: addr(ue), Destination: true}}
	return &pfcp.SessionEstablishmentRequest{
		Node: pfcp.NodeID{FQDN: "smf1"}, CP: pfcp.FSEID{SEID: 0x1000 + uint64(teid), IPv4: addr("10.0.0.2")},
		UserID: "001010000000001",
		PDR: []pfcp.CreatePDR{
			{ID: 1, Precedence: 100, FAR: ptr(uint32(1)), QER: []uint32{1}, URR: []uint32{1},
				OuterHeaderRemoval: ptr(uint8(0)),
				PDI: pfcp.PDI{Source: pfcp.Access, LocalFTEID: &pfcp.FTEID{TEID: teid, IPv4: addr("10.1.0.1")},
					UEIP: []pfcp.UEIP{{IPv4: addr(ue)}}}},
			{ID: 2, Precedence: 100, FAR: ptr(uint32(2)), QER: []uint32{1}, URR: []uint32{1},
				PDI: pfcp.PDI{Source: pfcp.Core, NetworkInstance: "internet", UEIP: v4}},
		},
		FAR: []pfcp.CreateFAR{
			{ID: 1, Action: pfcp.ActionForward, Forwarding: &pfcp.Forwarding{Destination: ptr(pfcp.Core),
				NetworkInstance: ptr("internet")}},
			{ID: 2, Action: pfcp.ActionForward, Forwarding: &pfcp.Forwarding{Destination: ptr(pfcp.Access),
				OuterHeader: &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 0x99, IPv4: addr("10.1.0.99")}}},
		},
		QER: []pfcp.CreateQER{{ID: 1, GateUplink: ptr(uint8(0)), GateDownlink: ptr(uint8(0)),
			MBRUplink:   ptr(uint64(1000)),
			MBRDownlink: ptr(uint64(2000)), QFI: ptr(uint8(9))}},
		URR: []pfcp.CreateURR{{ID: 1, Method: ptr(uint8(2)), Triggers: ptr(uint32(api.URRVolth)),
			VolumeThreshold: &pfcp.Volumes{Total: ptr(uint64(1 << 20))}}},
	}
}
