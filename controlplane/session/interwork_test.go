// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// compiledOf establishes a session and returns what it became.
func compiledOf(t *testing.T, req *pfcp.SessionEstablishmentRequest) (*pfcp.SessionEstablishmentResponse, *compiler) {
	t.Helper()
	b := start(t, "", testSettings())
	r := b.establish(smf1, req)
	if r.Cause != pfcp.CauseAccepted {
		t.Fatalf("%+v", r)
	}
	c := &compiler{set: b.set, pfds: b.pfds, s: b.Session(r.UP.SEID)}
	if _, err := c.run(); err != nil {
		t.Fatal(err)
	}
	return r, c
}

// Open5GS: the rules of a dedicated QoS flow have filters and no UE address.
func TestRuleOfFlowsIsForTheSessionsUE(t *testing.T) {
	req := request(1, "10.45.0.5")
	flow := []pfcp.SDFFilter{{Flow: "permit out 17 from any 5005 to assigned"}}
	req.PDR = append(req.PDR, pfcp.CreatePDR{ID: 3, Precedence: 50, FAR: ptr(uint32(2)),
		PDI: pfcp.PDI{Source: pfcp.Core, NetworkInstance: "internet", SDF: flow}})
	_, c := compiledOf(t, req)
	if p := c.pdrs[2]; p.Match != api.PDRUEIP|api.PDRUe4Only|api.PDRSDF || p.Instance != c.pdrs[1].Instance {
		t.Errorf("%+v beside %+v", p, c.pdrs[1])
	}
}

// free5GC: the downlink rule forwards to the gNB before its tunnel is known. As IP the packet would come back.
func TestForwardingToTheRadioWithoutATunnelDrops(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.FAR[1].Forwarding.OuterHeader = nil
	if _, c := compiledOf(t, req); c.fars[1].Action != byte(pfcp.ActionDrop) || c.fars[0].Action != byte(pfcp.ActionForward) {
		t.Errorf("%+v", c.fars)
	}
}

// Open5GS: tunnels between CP function and UE, of which no instance is told.
func TestCPFunctionIsReachedAsTheRadioIs(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.PDR = append(req.PDR, pfcp.CreatePDR{ID: 3, Precedence: 50, FAR: ptr(uint32(2)), OuterHeaderRemoval: ptr(uint8(0)),
		PDI: pfcp.PDI{Source: pfcp.CPSide, LocalFTEID: &pfcp.FTEID{Choose: true, WantIPv4: true}}})
	req.FAR = append(req.FAR, pfcp.CreateFAR{ID: 3, Action: pfcp.ActionForward, Forwarding: &pfcp.Forwarding{Destination: ptr(pfcp.CPSide),
		OuterHeader: &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 7, IPv4: addr("10.0.0.2")}}})
	r, c := compiledOf(t, req)
	if len(r.Created) != 1 || r.Created[0].LocalFTEID.IPv4 != addr("10.1.0.1") {
		t.Errorf("%+v", r.Created)
	}
	if c.names[c.fars[2].Instance].Name != "access" {
		t.Errorf("%+v of %+v", c.fars[2], c.names)
	}
}

// Open5GS' SGW-C asks for no Outer Header Removal, and means no tunnel in a tunnel.
func TestRelayTakesTheOuterHeaderOff(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.PDR, req.FAR = req.PDR[:1], req.FAR[1:]
	req.PDR[0].OuterHeaderRemoval, req.PDR[0].PDI.UEIP, req.PDR[0].FAR = nil, nil, ptr(uint32(2))
	for _, relay := range []bool{false, true} {
		set := testSettings()
		set.Relay = relay
		b := start(t, "", set)
		r := b.establish(smf1, req)
		if r.Cause != pfcp.CauseAccepted {
			t.Fatalf("%+v", r)
		}
		c := &compiler{set: b.set, pfds: b.pfds, s: b.Session(r.UP.SEID)}
		if _, err := c.run(); err != nil || (c.pdrs[0].OuterHeaderRemoval != 0) != relay {
			t.Errorf("relay %v: %+v, %v", relay, c.pdrs[0], err)
		}
	}
}

// TS 29.244 §8.2.64: with the second octet the PDU Session Container does not go on, here to an eNodeB; for other packets nothing
// changes. The journal keeps it.
func TestContainerIsDeletedWithTheOuterHeader(t *testing.T) {
	for removal, want := range map[uint8]uint8{0: api.RemovalOuter, 1: api.RemovalOuter, 6: api.RemovalOuter,
		0 | pfcp.RemoveContainer: api.RemovalContainer, 6 | pfcp.RemoveContainer: api.RemovalContainer} {
		req := request(1, "10.45.0.5")
		req.PDR[0].OuterHeaderRemoval = ptr(removal)
		b := start(t, "", testSettings())
		r := b.establish(smf1, req)
		if r.Cause != pfcp.CauseAccepted {
			t.Fatalf("%+v", r)
		}
		s := b.Session(r.UP.SEID)
		if *s.PDR[0].OuterHeaderRemoval != removal {
			t.Errorf("kept as %d", *s.PDR[0].OuterHeaderRemoval)
		}
		c := &compiler{set: b.set, pfds: b.pfds, s: s}
		if _, err := c.run(); err != nil || c.pdrs[0].OuterHeaderRemoval != want {
			t.Errorf("removal %d: %+v, %v", removal, c.pdrs[0], err)
		}
	}
}

// To the CP function there are tunnels only: as IP the UE's packets would go wherever the routes lead.
func TestForwardingToTheCPFunctionWithoutATunnelDrops(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.FAR[0].Forwarding = &pfcp.Forwarding{Destination: ptr(pfcp.CPSide)}
	if _, c := compiledOf(t, req); c.fars[0].Action != byte(pfcp.ActionDrop) {
		t.Errorf("%+v", c.fars)
	}
}
