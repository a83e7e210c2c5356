// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net/netip"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// compiledOf is what a session becomes.
func compiledOf(t *testing.T, set *Settings, req *pfcp.SessionEstablishmentRequest) (Changed, *Compiler) {
	t.Helper()
	s, out, refusal := Establish(set, giveNothing{}, req)
	testkit.FatalIf(t, refusal != nil, "%v", refusal)
	s, err := Decode(AppendSession(nil, s)) // as it is when it is compiled
	testkit.Must(t, err)
	c := new(Compiler)
	if _, refusal = c.Compile(Context{Set: set}, s); refusal != nil {
		t.Fatal(refusal)
	}
	return out, c
}

// Open5GS: the rules of a dedicated QoS flow have filters and no UE address.
func TestRuleOfFlowsIsForTheSessionsUE(t *testing.T) {
	req := request(1, "10.45.0.5")
	flow := []pfcp.SDFFilter{{Flow: "permit out 17 from any 5005 to assigned"}}
	req.PDR = append(req.PDR, pfcp.CreatePDR{ID: 3, Precedence: 50, FAR: ptr(uint32(2)),
		PDI: pfcp.PDI{Source: pfcp.Core, NetworkInstance: "internet", SDF: flow}})
	_, c := compiledOf(t, testSettings(), req)
	if p := c.pdrs[2]; p.Match != api.PDRUEIP|api.PDRUe4Only|api.PDRSDF || p.Instance != c.pdrs[1].Instance {
		t.Errorf("%+v beside %+v", p, c.pdrs[1])
	}
}

// free5GC: the downlink rule forwards to the gNB before its tunnel is known. As IP the packet would loop.
func TestForwardingToTheRadioWithoutATunnelDrops(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.FAR[1].Forwarding.OuterHeader = nil
	if _, c := compiledOf(t, testSettings(), req); c.fars[1].Action != byte(pfcp.ActionDrop) ||
		c.fars[0].Action != byte(pfcp.ActionForward) {
		t.Errorf("%+v", c.fars)
	}
}

// Open5GS: tunnels between CP function and UE, for which no instance is named.
func TestCPFunctionIsReachedAsTheRadioIs(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.PDR = append(req.PDR, pfcp.CreatePDR{ID: 3, Precedence: 50, FAR: ptr(uint32(2)),
		OuterHeaderRemoval: ptr(uint8(0)),
		PDI:                pfcp.PDI{Source: pfcp.CPSide, LocalFTEID: &pfcp.FTEID{Choose: true, WantIPv4: true}}})
	req.FAR = append(req.FAR, pfcp.CreateFAR{ID: 3, Action: pfcp.ActionForward,
		Forwarding: &pfcp.Forwarding{Destination: ptr(pfcp.CPSide),
			OuterHeader: &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 7, IPv4: addr("10.0.0.2")}}})
	r, c := compiledOf(t, testSettings(), req)
	testkit.ErrorIf(t, len(r.PDRs) != 1 || r.PDRs[0].LocalFTEID.IPv4 != addr("10.1.0.1"), "%+v", r.PDRs)
	testkit.ErrorIf(t, c.names[c.fars[2].Instance].Name != "access", "%+v of %+v", c.fars[2], c.names)
}

// Open5GS' SGW-C asks for no Outer Header Removal, and means no tunnel in a tunnel.
func TestRelayTakesTheOuterHeaderOff(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.PDR, req.FAR = req.PDR[:1], req.FAR[1:]
	req.PDR[0].OuterHeaderRemoval, req.PDR[0].PDI.UEIP, req.PDR[0].FAR = nil, nil, ptr(uint32(2))
	for _, relay := range []bool{false, true} {
		set := testSettings()
		set.Roles = map[bool][]string{false: {"sgwu", "pgwu"}, true: {"sgwu"}}[relay]
		_, c := compiledOf(t, set, req)
		testkit.ErrorIf(t, (c.pdrs[0].OuterHeaderRemoval != 0) != relay, "relay %v: %+v", relay, c.pdrs[0])
	}
}

// TS 29.244 §8.2.64: with the second octet the PDU Session Container is removed, here towards an eNodeB; other packets
// are unchanged. The journal keeps it.
func TestContainerIsDeletedWithTheOuterHeader(t *testing.T) {
	for removal, want := range map[uint8]uint8{0: api.RemovalOuter, 1: api.RemovalOuter, 6: api.RemovalOuter,
		0 | pfcp.RemoveContainer: api.RemovalContainer, 6 | pfcp.RemoveContainer: api.RemovalContainer} {
		req := request(1, "10.45.0.5")
		req.PDR[0].OuterHeaderRemoval = ptr(removal)
		_, c := compiledOf(t, testSettings(), req)
		testkit.ErrorIf(t, c.pdrs[0].OuterHeaderRemoval != want, "removal %d: %+v", removal, c.pdrs[0])
	}
}

// PDU Session Containers are for N3 and N9 (TS 29.281 §5.2.2.7). The data plane gets the container type of a tunnel. A
// 3GPP interface type (TS 29.244 §8.2.118) decides what the destination interface leaves open.
func TestContainersAreForN3AndN9(t *testing.T) {
	const none = 255
	const s1u, s5, n3, n9, n6, unknown = 0, 1, 11, 15, 17, 60
	const access, core, lan, cp = pfcp.Access, pfcp.Core, pfcp.SGiLAN, pfcp.CPSide
	tunnel := &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 0x77, IPv4: addr("10.1.0.99")}
	for _, row := range []struct {
		to         pfcp.Interface
		kind, want uint8
	}{
		{access, none, api.PDUTypeDL}, {access, n3, api.PDUTypeDL}, {access, unknown, api.PDUTypeDL},
		{access, s1u, api.PDUTypeNone}, {core, none, api.PDUTypeUL}, {core, n9, api.PDUTypeUL},
		{core, s5, api.PDUTypeNone}, {core, n6, api.PDUTypeNone}, {lan, none, api.PDUTypeNone},
		{lan, n6, api.PDUTypeNone}, {cp, none, api.PDUTypeNone}, {cp, n3, api.PDUTypeNone},
	} {
		req := request(1, "10.45.0.5")
		w := &pfcp.Forwarding{Destination: ptr(row.to), NetworkInstance: ptr("n9"), OuterHeader: tunnel}
		if row.kind != none {
			w.InterfaceType = ptr(row.kind)
		}
		req.FAR[1].Forwarding = w
		_, c := compiledOf(t, testSettings(), req)
		testkit.ErrorIf(t, c.fars[1].PDUType != row.want, "to %d, %d: %+v", row.to, row.kind, c.fars[1])
	}
}

// An update that leads elsewhere and names no interface type takes away the one of before.
func TestInterfaceTypeGoesWithItsInterface(t *testing.T) {
	for to, want := range map[pfcp.Interface]bool{pfcp.Access: true, pfcp.Core: false} {
		s1u := pfcp.Forwarding{Destination: ptr(pfcp.Access), InterfaceType: ptr(uint8(0))}
		f := newFAR(pfcp.CreateFAR{Forwarding: &s1u})
		f.update(&pfcp.UpdateFAR{Forwarding: &pfcp.Forwarding{Destination: ptr(to)}}, false)
		testkit.ErrorIf(t, (f.Forwarding.InterfaceType != nil) != want, "to %d: %+v", to, f.Forwarding)
	}
}

// free5GC's SMF sends Apply Action 0 in the Update FAR of a path switch: refused (TS 29.244 §8.2.26, row P33), or taken
// as absent if so configured.
func TestEmptyApplyActionOfAnUpdate(t *testing.T) {
	for _, keep := range []bool{false, true} {
		set := testSettings()
		set.EmptyAction = map[bool]string{false: "refuse", true: "unchanged"}[keep]
		s, _, refusal := Establish(set, giveNothing{}, request(1, "10.45.0.5"))
		testkit.FatalIf(t, refusal != nil, "%v", refusal)
		to := &pfcp.OuterHeader{Description: pfcp.OuterGTPUIPv4, TEID: 0x77, IPv4: addr("10.1.0.99")}
		update := pfcp.UpdateFAR{ID: 2, Action: new(pfcp.ApplyAction)}
		update.Forwarding = &pfcp.Forwarding{OuterHeader: to}
		req := &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{update}}
		_, refusal = Modify(set, giveNothing{}, s, req)
		if !keep {
			testkit.FatalIf(t, refusal == nil || refusal.Cause != pfcp.CauseMandatoryIEIncorrect ||
				refusal.Offending != ieApplyAction, "%v", refusal)
			continue
		}
		testkit.FatalIf(t, refusal != nil, "%v", refusal)
		f := &s.FAR[1]
		testkit.ErrorIf(t, f.Action != pfcp.ActionForward || f.Forwarding.OuterHeader.TEID != 0x77, "%+v", f)
	}
}

// CP functions are reached by tunnels only: as IP the UE's packets would follow the routes.
func TestForwardingToTheCPFunctionWithoutATunnelDrops(t *testing.T) {
	req := request(1, "10.45.0.5")
	req.FAR[0].Forwarding = &pfcp.Forwarding{Destination: ptr(pfcp.CPSide)}
	_, c := compiledOf(t, testSettings(), req)
	testkit.ErrorIf(t, c.fars[0].Action != byte(pfcp.ActionDrop), "%+v", c.fars)
}

// A refusal for a network instance has the names there are: an operator compares them with the CP function's.
func TestRefusalNamesInstances(t *testing.T) {
	type establishment = pfcp.SessionEstablishmentRequest
	choose := &pfcp.FTEID{Choose: true, WantIPv4: true}
	for want, change := range map[string]func(*Settings, *establishment){
		`no network instance "ran"; there are access, internet, n9`: func(_ *Settings, r *establishment) {
			r.PDR[0].PDI.LocalFTEID, r.PDR[0].PDI.NetworkInstance = choose, "ran"
		},
		`no network instance "ims"; there are access, internet, n9`: func(_ *Settings, r *establishment) {
			r.FAR[0].Forwarding.NetworkInstance = ptr("ims")
		},
		"no suitable network instance has core in its sources": func(s *Settings, r *establishment) {
			s.Instances, r.PDR[1].PDI.NetworkInstance = s.Instances[:1], ""
		},
		`network instance "n9" is not suitable here, and no suitable one has core in its sources`: func(s *Settings,
			r *establishment) {
			s.Instances = []Instance{s.Instances[0], s.Instances[2]}
			r.PDR[1].PDI.NetworkInstance = "n9"
		},
	} {
		set, req := testSettings(), request(1, "10.45.0.5")
		change(set, req)
		s, _, refusal := Establish(set, giveNothing{}, req)
		if refusal == nil {
			_, refusal = new(Compiler).Compile(Context{Set: set}, s)
		}
		testkit.FatalIf(t, refusal == nil, "%s: accepted", want)
		testkit.Equal(t, refusal.Text, want, "text")
	}
}

// Open5GS' SGW-C names the APN in the rules of both sides: one access point may stand for some of them, or for all.
func TestOneInstanceForManyNames(t *testing.T) {
	for _, row := range []struct {
		names     []string
		apn, core string
		known     bool
	}{
		{nil, "ims", "", false},
		{[]string{"ims", "internet"}, "ims", "s5", true},
		{[]string{"ims"}, "ims.mnc001.mcc001.gprs", "", false},
		{[]string{"*"}, "ims.mnc001.mcc001.gprs", "s5", true},
		{[]string{"*"}, "other", "other", true}, // an instance's own name comes first
		{[]string{"*"}, "s1u", "s5", true},      // which does not serve the interface
	} {
		end := []netip.Addr{addr("10.1.0.1")}
		set := &Settings{Instances: []Instance{
			{Name: "s1u", Endpoints: end, Sources: []pfcp.Interface{pfcp.Access}},
			{Name: "s5", Endpoints: end, Sources: []pfcp.Interface{pfcp.Core}, Names: row.names},
			{Name: "other", Endpoints: end},
		}}
		access, core := set.find(row.apn, pfcp.Access, needEndpoint), set.find(row.apn, pfcp.Core, needEndpoint)
		if !row.known {
			testkit.ErrorIf(t, access != nil || core != nil, "%v, %s is known", row.names, row.apn)
			continue
		}
		testkit.FatalIf(t, access == nil || core == nil, "%v, %s: unknown", row.names, row.apn)
		testkit.Equal(t, core.Name, row.core, "%v, %s, core", row.names, row.apn)
		if row.apn != "other" {
			testkit.Equal(t, access.Name, "s1u", "%v, %s, access", row.names, row.apn)
		}
	}
}
