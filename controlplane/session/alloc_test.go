// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

func choosing(id uint8) *pfcp.FTEID {
	return &pfcp.FTEID{Choose: true, WantIPv4: true, WantIPv6: true, HasChooseID: true, ChooseID: id}
}

// Two PDRs with one CHOOSE ID share an F-TEID, within an instance and a request; both families have the same TEID.
func TestChosenFTEIDs(t *testing.T) {
	set := testSettings()
	set.FTEID = rules.FTEIDUp
	b := start(t, "", set)
	req := request(1, "10.45.0.5")
	req.PDR[0].PDI.LocalFTEID = choosing(5)
	more := req.PDR[0]
	more.ID, more.PDI.LocalFTEID = 3, choosing(5)
	other := req.PDR[0]
	other.ID, other.PDI.LocalFTEID = 4, choosing(6)
	n9 := req.PDR[0]
	n9.ID, n9.PDI.LocalFTEID, n9.PDI.NetworkInstance = 5, choosing(5), "n9"
	req.PDR = append(req.PDR, more, other, n9)
	r := b.establish(smf1, req)
	testkit.FatalIf(t, r.Cause != pfcp.CauseAccepted || len(r.Created) != 4, "%+v", r)
	f := map[uint16]pfcp.FTEID{}
	for _, c := range r.Created {
		f[c.ID] = *c.LocalFTEID
	}
	if f[1] != f[3] || f[1].TEID == f[4].TEID || f[1].TEID == f[5].TEID || f[1].TEID == 0 || f[4].TEID == 0 {
		t.Errorf("%+v", f)
	}
	if f[1].IPv4 != addr("10.1.0.1") || f[1].IPv6 != addr("2001:db8:f::1") || f[5].IPv4 != addr("10.9.0.1") ||
		f[5].IPv6.IsValid() {
		t.Errorf("%+v", f)
	}
	testkit.ErrorIf(t, !req.PDR[0].PDI.LocalFTEID.Choose, "the request was changed")
	b.checkConsistent()
	// A chosen value may be named in a modification, even where only we choose.
	pdi := req.PDR[0].PDI
	pdi.LocalFTEID = ptr(f[1])
	if m := b.modify(smf1, r.UP.SEID, &pfcp.SessionModificationRequest{UpdatePDR: []pfcp.UpdatePDR{{ID: 1,
		PDI: &pdi}}}); m.Cause != pfcp.CauseAccepted || len(m.Created) != 0 {
		t.Errorf("%+v", m)
	}
	pdi.LocalFTEID = choosing(1)
	m := b.modify(smf1, r.UP.SEID, &pfcp.SessionModificationRequest{UpdatePDR: []pfcp.UpdatePDR{{ID: 1, PDI: &pdi}}})
	testkit.ErrorIf(t, m.Cause != pfcp.CauseAccepted || len(m.Created) != 1 || *m.Created[0].LocalFTEID == f[1],
		"%+v", m)
	b.checkConsistent()
}

// Row P18, and the restoration indication (TS 29.244 §5.5.1).
func TestWhoChoosesFTEIDs(t *testing.T) {
	chosen := func(r *pfcp.SessionEstablishmentRequest) { r.PDR[0].PDI.LocalFTEID = choosing(1) }
	restored := func(r *pfcp.SessionEstablishmentRequest) { r.Restoration = true }
	for _, c := range []struct {
		mode   string
		change func(*pfcp.SessionEstablishmentRequest)
		want   pfcp.Cause
	}{
		{rules.FTEIDBoth, nil, pfcp.CauseAccepted}, {rules.FTEIDBoth, chosen, pfcp.CauseAccepted},
		{rules.FTEIDUp, nil, pfcp.CauseInvalidFTEIDAllocation}, {rules.FTEIDUp, chosen, pfcp.CauseAccepted},
		{rules.FTEIDUp, restored, pfcp.CauseAccepted},
		{rules.FTEIDCp, nil, pfcp.CauseAccepted}, {rules.FTEIDCp, chosen, pfcp.CauseInvalidFTEIDAllocation},
	} {
		set := testSettings()
		set.FTEID = c.mode
		b := start(t, "", set)
		req := request(1, "10.45.0.5")
		if c.change != nil {
			c.change(req)
		}
		if r := b.establish(smf1, req); r.Cause != c.want {
			t.Errorf("%s: cause %d, want %d", c.mode, r.Cause, c.want)
		}
	}
}

func TestTrafficEndpoints(t *testing.T) {
	b := start(t, "", testSettings())
	req := request(1, "10.45.0.5")
	req.Endpoint = []pfcp.CreateTrafficEndpoint{
		{ID: 1, LocalFTEID: choosing(1), UEIP: []pfcp.UEIP{{ChooseIPv4: true}}},
		{ID: 2, NetworkInstance: "internet", UEIP: []pfcp.UEIP{{ChooseIPv4: true, ChooseIPv6: true}}}}
	req.PDR[0].PDI = pfcp.PDI{Source: pfcp.Access, TrafficEndpoint: ptr(uint8(1))}
	req.PDR[1].PDI = pfcp.PDI{Source: pfcp.Core, TrafficEndpoint: ptr(uint8(2))}
	r := b.establish(smf1, req)
	testkit.FatalIf(t, r.Cause != pfcp.CauseAccepted || len(r.Created) != 0 || len(r.Endpoints) != 2, "%+v", r)
	one, two := r.Endpoints[0], r.Endpoints[1]
	if one.LocalFTEID.TEID == 0 || one.UEIP[0].IPv4 != addr("10.45.0.1") || two.UEIP[0].IPv4 != one.UEIP[0].IPv4 ||
		two.UEIP[0].IPv6 != netip.MustParsePrefix("2001:db8:1::/64") {
		t.Errorf("%+v", r.Endpoints)
	}
	b.checkConsistent()
	wants(t, pfcp.CauseAccepted,
		b.modify(smf1, r.UP.SEID, &pfcp.SessionModificationRequest{RemoveEndpoint: []uint8{1}}))
	s := b.Session(r.UP.SEID)
	testkit.ErrorIf(t, len(s.PDR) != 1 || s.PDR[0].ID != 2, "%+v", s.PDR)
	b.checkConsistent()
}

// A pool of six addresses gives out six, never a just released one, nor one chosen by the CP function.
func TestUEAddresses(t *testing.T) {
	b := start(t, "", testSettings())
	now := time.Now()
	b.x.now = func() time.Time { return now }
	ask := func(teid uint32) *pfcp.SessionEstablishmentResponse {
		req := request(teid, "0.0.0.0")
		req.PDR[0].PDI.UEIP = []pfcp.UEIP{{ChooseIPv4: true}}
		req.PDR[1].PDI.UEIP = []pfcp.UEIP{{ChooseIPv4: true}}
		return b.establish(smf1, req)
	}
	own := b.establish(smf1, request(100, "10.45.0.3"))
	seen := map[netip.Addr]uint64{addr("10.45.0.3"): own.UP.SEID}
	for i := range uint32(5) {
		r := ask(i + 1)
		if r.Cause != pfcp.CauseAccepted || len(r.Created) != 2 ||
			r.Created[0].UEIP[0].IPv4 != r.Created[1].UEIP[0].IPv4 {
			t.Fatalf("%+v", r)
		}
		a := r.Created[0].UEIP[0].IPv4
		testkit.ErrorIf(t, seen[a] != 0 || a == addr("10.45.0.0") || a == addr("10.45.0.7"),
			"%v was given out", a)
		seen[a] = r.UP.SEID
	}
	wants(t, pfcp.CauseAllDynamicAddresses, ask(9))
	for _, a := range []string{"10.45.0.3", "10.45.0.1"} {
		b.delete(smf1, seen[addr(a)])
	}
	if r := ask(9); r.Cause != pfcp.CauseAllDynamicAddresses {
		t.Errorf("at once: %+v", r)
	}
	now = now.Add(2 * time.Minute)
	if r := ask(9); r.Cause != pfcp.CauseAccepted || r.Created[0].UEIP[0].IPv4 != addr("10.45.0.3") {
		t.Errorf("%+v", r)
	}
	// A failed request keeps no address.
	for range 10 {
		req := request(50, "0.0.0.0")
		req.PDR[0].PDI.UEIP, req.PDR[1].PDI.UEIP = []pfcp.UEIP{{ChooseIPv4: true}}, []pfcp.UEIP{{ChooseIPv4: true}}
		req.PDR[1].PDI.Application = "none"
		wants(t, pfcp.CauseRuleFailure, b.establish(smf1, req))
	}
	if r := ask(10); r.Cause != pfcp.CauseAccepted || r.Created[0].UEIP[0].IPv4 != addr("10.45.0.1") {
		t.Errorf("%+v", r)
	}
}

func TestUEPrefixes(t *testing.T) {
	b := start(t, "", testSettings())
	ask := func(teid uint32, bits uint8) *pfcp.SessionEstablishmentResponse {
		req := request(teid, "0.0.0.0")
		req.PDR[0].PDI.UEIP = nil
		req.PDR[1].PDI.UEIP = []pfcp.UEIP{{ChooseIPv6: true, ChooseLength: bits}}
		return b.establish(smf1, req)
	}
	want := []string{"2001:db8:1::/64", "2001:db8:1:1::/64"}
	for i, w := range want {
		if r := ask(uint32(i+1), 0); r.Cause != pfcp.CauseAccepted || r.Created[0].UEIP[0].IPv6.String() != w {
			t.Fatalf("%+v", r)
		}
	}
	// A /63 must not hold the /64s that live.
	if r := ask(8, 63); r.Cause != pfcp.CauseAccepted || r.Created[0].UEIP[0].IPv6.String() != "2001:db8:1:2::/63" {
		t.Fatalf("%+v", r)
	}
	wants(t, pfcp.CauseAllDynamicAddresses, ask(9, 0))
	b.checkConsistent()
}

// Sessions with one QER Correlation ID are on one worker and have one number; it is of the CP function.
func TestSharedMeters(t *testing.T) {
	b := start(t, "", testSettings())
	var workers, numbers []uint32
	for i := range uint32(20) {
		req := request(i+1, netip.AddrFrom4([4]byte{10, 46, 0, byte(i + 1)}).String())
		req.QER[0].Correlation = ptr(uint32(7))
		from := smf1
		s := b.Session(b.establish(from, req).UP.SEID)
		workers, numbers = append(workers, uint32(s.Worker)), append(numbers, s.QER[0].Share)
	}
	for i := range workers {
		testkit.FatalIf(t, workers[i] != workers[0] || numbers[i] != numbers[0] || numbers[i] == 0,
			"workers %v, numbers %v", workers, numbers)
	}
	spread := map[uint16]int{}
	for i := range uint32(64) {
		s := b.Session(b.establish(smf1, request(100+i, netip.AddrFrom4([4]byte{10, 47, 0,
			byte(i + 1)}).String())).UP.SEID)
		spread[s.Worker]++
	}
	testkit.ErrorIf(t, len(spread) != 4, "%v", spread)
	b.checkConsistent()
}

// Meters are free again with their last session, though the association came into an SMF set, or the session to another
// association, meanwhile.
func TestSharedMetersAreReleased(t *testing.T) {
	b := start(t, "", testSettings())
	held := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.shares.by) + len(b.shares.used)
	}
	for i := range uint32(3) {
		req := request(i+1, netip.AddrFrom4([4]byte{10, 46, 0, byte(i + 1)}).String())
		req.QER[0].Correlation = ptr(i)
		seid := b.establish(smf1, req).UP.SEID
		member := *smf1
		if i > 0 {
			member.Set = "set1"
			b.KeepAssociation(n4.StoredAssociation{ID: member.ID, Set: member.Set})
		}
		if i == 2 {
			member.ID = "smf2"
			change := &pfcp.SessionModificationRequest{Node: &pfcp.NodeID{FQDN: "smf2"},
				CP: &pfcp.FSEID{SEID: 5, IPv4: addr("10.0.0.3")}}
			wants(t, pfcp.CauseAccepted, b.modify(&member, seid, change))
		}
		r := b.delete(&member, seid)
		testkit.ErrorIf(t, r.Cause != pfcp.CauseAccepted || held() != 0, "%d: %+v, %d left", i, r, held())
	}
}

// A CP function may remove all PDRs and create others later: TS 29.244 §7.5.4 has none that must stay.
func TestSessionWithoutPDRs(t *testing.T) {
	b := start(t, t.TempDir()+"/sessions.db", testSettings())
	req := request(1, "10.45.0.5")
	seid := b.establish(smf1, req).UP.SEID
	before := b.Session(seid)
	remove := &pfcp.SessionModificationRequest{RemovePDR: []uint16{1, 2}}
	wants(t, pfcp.CauseAccepted, b.modify(smf1, seid, remove))
	b.checkConsistent()
	var head api.Session
	_, err := api.ReadRow(b.s.Held()[heldID(seid)], &head)
	testkit.ErrorIf(t, err != nil || head.PDRs != 0 || head.FARs != 2 || head.URRs != 1, "%+v %v", head, err)
	// Its former address is free meanwhile.
	other := b.establish(smf1, request(1, "10.45.0.5"))
	wants(t, pfcp.CauseAccepted, other)
	create := &pfcp.SessionModificationRequest{CreatePDR: req.PDR}
	wants(t, pfcp.CauseRuleFailure, b.modify(smf1, seid, create))
	b.delete(smf1, other.UP.SEID)
	wants(t, pfcp.CauseAccepted, b.modify(smf1, seid, create))
	after := b.Session(seid)
	testkit.ErrorIf(t, !reflect.DeepEqual(before, after), "%+v\n%+v", before, after)
	b.checkConsistent()
}

// A CHOOSE ID stays valid while the session has its F-TEID: Open5GS repeats the session's id for each dedicated flow,
// and means the same F-TEID. It is, within the instance and for the same side.
func TestChooseIDIsRemembered(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s := dptest.Start(t)
	var seid uint64
	var first pfcp.FTEID
	add := func(b *bench, id uint16, change func(*pfcp.PDI)) pfcp.FTEID {
		t.Helper()
		pdr := request(1, "10.45.0.5").PDR[0]
		pdr.ID, pdr.PDI.LocalFTEID = id, choosing(5)
		if change != nil {
			change(&pdr.PDI)
		}
		m := b.modify(smf1, seid, &pfcp.SessionModificationRequest{CreatePDR: []pfcp.CreatePDR{pdr}})
		testkit.FatalIf(t, m.Cause != pfcp.CauseAccepted || len(m.Created) != 1, "%+v", m)
		b.checkConsistent()
		return *m.Created[0].LocalFTEID
	}
	t.Run("before a restart", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		req := request(1, "10.45.0.5")
		req.PDR[0].PDI.LocalFTEID = choosing(5)
		r := b.establish(smf1, req)
		seid, first = r.UP.SEID, *r.Created[0].LocalFTEID
		testkit.Equal(t, add(b, 3, nil), first, "F-TEID")
		for id, change := range map[uint16]func(*pfcp.PDI){
			4: func(p *pfcp.PDI) { p.LocalFTEID = choosing(6) },
			5: func(p *pfcp.PDI) { p.NetworkInstance = "n9" },
			6: func(p *pfcp.PDI) { p.Source, p.NetworkInstance = pfcp.Core, "access" },
		} {
			if f := add(b, id, change); f.TEID == first.TEID {
				t.Errorf("PDR %d: %+v", id, f)
			}
		}
		// Named by its value it stays what it was given out as.
		pdi := req.PDR[0].PDI
		pdi.LocalFTEID = &pfcp.FTEID{TEID: first.TEID, IPv4: first.IPv4, IPv6: first.IPv6}
		if m := b.modify(smf1, seid, &pfcp.SessionModificationRequest{RemovePDR: []uint16{3},
			UpdatePDR: []pfcp.UpdatePDR{{ID: 1,
				PDI: &pdi}}}); m.Cause != pfcp.CauseAccepted {
			t.Fatalf("%+v", m)
		}
	})
	t.Run("after it", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		testkit.Equal(t, add(b, 3, nil), first, "F-TEID")
		// It ends with the F-TEID.
		wants(t, pfcp.CauseAccepted,
			b.modify(smf1, seid, &pfcp.SessionModificationRequest{RemovePDR: []uint16{1, 3}}))
		if f := add(b, 3, nil); f.TEID == first.TEID {
			t.Errorf("%+v", f)
		}
	})
}

// Two sessions with one CP F-SEID are two: requests name our SEID, and ending one leaves the other. TS 29.244 §5.6.2
// has a CP function allocate unique ones, and names no answer to duplicates.
func TestTwoSessionsOfOneCPFSEID(t *testing.T) {
	b := start(t, "", testSettings())
	one, two := request(1, "10.45.0.5"), request(2, "10.46.0.6")
	two.CP = one.CP
	first, second := b.establish(smf1, one), b.establish(smf1, two)
	if first.Cause != pfcp.CauseAccepted || second.Cause != pfcp.CauseAccepted || first.UP.SEID == second.UP.SEID {
		t.Fatalf("%+v, %+v", first, second)
	}
	m := b.modify(smf1, second.UP.SEID, &pfcp.SessionModificationRequest{RemoveURR: []uint32{1}})
	if m.Cause != pfcp.CauseAccepted ||
		len(b.Session(first.UP.SEID).URR) != 1 || len(b.Session(second.UP.SEID).URR) != 0 {
		t.Errorf("%+v", m)
	}
	b.reports.reported(first.UP.SEID, &pfcp.SessionReportResponse{Cause: pfcp.CauseContextNotFound}, nil, nil)
	testkit.Until(t, "the session that its CP function does not know gone", func() bool { return b.Count("") == 1 })
	wants(t, pfcp.CauseAccepted, b.delete(smf1, second.UP.SEID))
	b.checkConsistent()
}
