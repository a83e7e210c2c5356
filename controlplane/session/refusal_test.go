// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/testkit"
)

type establishment = pfcp.SessionEstablishmentRequest

// rule is the Failed Rule ID that a refusal names; nil: none.
func rule(t pfcp.RuleType, id uint32) *pfcp.FailedRule { return &pfcp.FailedRule{Type: t, ID: id} }

var refusals = []struct {
	name   string
	change func(r *establishment)
	cause  pfcp.Cause
	failed *pfcp.FailedRule
}{
	{"P11 no PDR", func(r *establishment) { r.PDR = nil }, pfcp.CauseMandatoryIEMissing, nil},
	{"P11 no FAR", func(r *establishment) { r.FAR = nil }, pfcp.CauseMandatoryIEMissing, nil},
	{"P12 PDN type 0", func(r *establishment) { r.PDNType = ptr(uint8(0)) }, pfcp.CauseMandatoryIEIncorrect, nil},
	{"Ethernet", func(r *establishment) { r.PDNType = ptr(uint8(5)) }, pfcp.CauseServiceNotSupported, nil},
	{"P13 PDR without FAR", func(r *establishment) { r.PDR[1].FAR = nil }, pfcp.CauseConditionalIEMissing,
		rule(pfcp.RulePDR, 2)},
	{"P16 no address of this family", func(r *establishment) {
		r.PDR[0].PDI.LocalFTEID = &pfcp.FTEID{Choose: true, WantIPv6: true}
		r.PDR[0].PDI.NetworkInstance = "n9"
	}, pfcp.CauseNoResources, rule(pfcp.RulePDR, 1)},
	{"P17 TEID 0", func(r *establishment) { r.PDR[0].PDI.LocalFTEID.TEID = 0; r.Restoration = true },
		pfcp.CauseMandatoryIEIncorrect, rule(pfcp.RulePDR, 1)},
	{"F-TEID elsewhere", func(r *establishment) { r.PDR[0].PDI.LocalFTEID.IPv4 = addr("10.1.0.2") },
		pfcp.CauseRuleFailure, rule(pfcp.RulePDR, 1)},
	{"P21 destination 0x99", func(r *establishment) { r.FAR[0].Forwarding.Destination = ptr(pfcp.Interface(9)) },
		pfcp.CauseRuleFailure, rule(pfcp.RuleFAR, 1)},
	{"P22 permit", func(r *establishment) { r.PDR[1].PDI.SDF = []pfcp.SDFFilter{{Flow: "permit"}} },
		pfcp.CauseRuleFailure, rule(pfcp.RulePDR, 2)},
	{"P22 unknown action", func(r *establishment) {
		r.PDR[1].PDI.SDF = []pfcp.SDFFilter{{Flow: "unknown action " +
			"aaaaaaaa"}}
	}, pfcp.CauseRuleFailure, rule(pfcp.RulePDR, 2)},
	{"filter id of nothing", func(r *establishment) { r.PDR[1].PDI.SDF = []pfcp.SDFFilter{{HasID: true, ID: 4}} },
		pfcp.CauseRuleFailure, rule(pfcp.RulePDR, 2)},
	{"unknown application", func(r *establishment) { r.PDR[1].PDI.Application = "video" }, pfcp.CauseRuleFailure,
		rule(pfcp.RulePDR, 2)},
	{"P25 33 PDRs", func(r *establishment) {
		for i := range 31 {
			p := r.PDR[1]
			p.ID = uint16(100 + i)
			r.PDR = append(r.PDR, p)
		}
	}, pfcp.CauseNoResources, nil},
	{"P25 5 QERs of a PDR", func(r *establishment) {
		for i := range uint32(5) {
			q := r.QER[0]
			q.ID = 10 + i
			r.QER = append(r.QER, q)
			r.PDR[0].QER = append(r.PDR[0].QER, q.ID)
		}
	}, pfcp.CauseNoResources, rule(pfcp.RulePDR, 1)},
	{"P26 thousands of URRs", func(r *establishment) { r.URR = make([]pfcp.CreateURR, 5000) }, pfcp.CauseNoResources,
		nil},
	{"P27 PDR twice", func(r *establishment) { r.PDR[1].ID = 1 }, pfcp.CauseRuleFailure, rule(pfcp.RulePDR, 1)},
	{"P27 FAR twice", func(r *establishment) { r.FAR[1].ID = 1 }, pfcp.CauseRuleFailure, rule(pfcp.RuleFAR, 1)},
	{"P27 QER twice", func(r *establishment) { r.QER = append(r.QER, r.QER[0]) }, pfcp.CauseRuleFailure,
		rule(pfcp.RuleQER, 1)},
	{"P27 URR twice", func(r *establishment) { r.URR = append(r.URR, r.URR[0]) }, pfcp.CauseRuleFailure,
		rule(pfcp.RuleURR, 1)},
	{"P27 missing FAR", func(r *establishment) { r.PDR[0].FAR = ptr(uint32(9)) }, pfcp.CauseRuleFailure,
		rule(pfcp.RulePDR, 1)},
	{"P27 missing QER", func(r *establishment) { r.PDR[0].QER = []uint32{9} }, pfcp.CauseRuleFailure,
		rule(pfcp.RulePDR, 1)},
	{"P27 missing URR", func(r *establishment) { r.PDR[0].URR = []uint32{9} }, pfcp.CauseRuleFailure,
		rule(pfcp.RulePDR, 1)},
	{"P33 action 0", func(r *establishment) { r.FAR[0].Action = 0 }, pfcp.CauseRuleFailure, rule(pfcp.RuleFAR, 1)},
	{"P33 forward and drop", func(r *establishment) { r.FAR[0].Action = 3 }, pfcp.CauseRuleFailure,
		rule(pfcp.RuleFAR, 1)},
	{"P33 all", func(r *establishment) { r.FAR[0].Action = 0x1f }, pfcp.CauseRuleFailure, rule(pfcp.RuleFAR, 1)},
	{"forward to nowhere", func(r *establishment) { r.FAR[0].Forwarding = nil }, pfcp.CauseConditionalIEMissing,
		rule(pfcp.RuleFAR, 1)},
	{"unknown network instance", func(r *establishment) { r.PDR[1].PDI.NetworkInstance = "ims" }, pfcp.CauseRuleFailure,
		rule(pfcp.RulePDR, 2)},
	{"nothing to match", func(r *establishment) { r.PDR[0].PDI.UEIP, r.PDR[1].PDI.UEIP = nil, nil },
		pfcp.CauseRuleFailure, rule(pfcp.RulePDR, 2)},
	{"outer TEID 0", func(r *establishment) { r.FAR[1].Forwarding.OuterHeader.TEID = 0 }, pfcp.CauseRuleFailure,
		rule(pfcp.RuleFAR, 2)},
	{"raw IP outer header", func(r *establishment) { r.FAR[1].Forwarding.OuterHeader.Description = pfcp.OuterIPv4 },
		pfcp.CauseServiceNotSupported, rule(pfcp.RuleFAR, 2)},
	{"forwarding policy", func(r *establishment) { r.FAR[0].Forwarding.Policy = "x" }, pfcp.CauseInvalidForwarding,
		rule(pfcp.RuleFAR, 1)},
	{"predefined rules", func(r *establishment) { r.PDR[0].ActivatePredefined = []string{"x"} },
		pfcp.CauseServiceNotSupported, rule(pfcp.RulePDR, 1)},
	{"deferred", func(r *establishment) { r.PDR[0].Activation = time.Unix(1, 0) }, pfcp.CauseServiceNotSupported,
		rule(pfcp.RulePDR, 1)},
	{"GBR above MBR", func(r *establishment) { r.QER[0].GBRUplink = ptr(uint64(1001)) }, pfcp.CauseRuleFailure,
		rule(pfcp.RuleQER, 1)},
	{"no such address pool", func(r *establishment) {
		r.PDR[1].PDI.UEIP = []pfcp.UEIP{{ChooseIPv6: true, ChooseLength: 40}}
		r.PDR[0].PDI.UEIP = nil
	}, pfcp.CauseAllDynamicAddresses, rule(pfcp.RulePDR, 2)},
}

func TestRefusedEstablishmentsLeaveNothing(t *testing.T) {
	b := start(t, "", testSettings())
	wants(t, pfcp.CauseAccepted, b.establish(smf1, request(1, "10.45.0.5")))
	before := b.s.Held()
	for _, c := range refusals {
		req := request(2, "10.45.0.6")
		c.change(req)
		r := b.establish(smf1, req)
		same := r.Failed == c.failed || r.Failed != nil && c.failed != nil && *r.Failed == *c.failed
		testkit.ErrorIf(t, r.Cause != c.cause || !same,
			"%s: cause %d, rule %v; want %d, %v", c.name, r.Cause, r.Failed, c.cause, c.failed)
		testkit.ErrorIf(t, !equalHeld(before, b.s.Held()) || b.Count("") != 1, "%s: something is left", c.name)
	}
	if r := b.establish(smf1, request(2, "10.45.0.6")); r.Cause != pfcp.CauseAccepted {
		t.Errorf("after all refusals: %+v", r)
	}
}

func equalHeld[K comparable](a, b map[K][]byte) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return string(x) == string(y) })
}

// Rows A4 and P31: a session is its association's, or of its set's.
func TestForeignSessions(t *testing.T) {
	b := start(t, "", testSettings())
	r := b.establish(smf1, request(1, "10.45.0.5"))
	smf2 := &n4.Association{ID: "smf2"}
	for _, seid := range []uint64{0, 1 << 63, 1<<64 - 1, r.UP.SEID + 1} {
		m := b.modify(smf1, seid, &pfcp.SessionModificationRequest{})
		testkit.ErrorIf(t, m.Cause != pfcp.CauseContextNotFound, "SEID %#x: %d", seid, m.Cause)
		if d := b.delete(smf1, seid); d.Cause != pfcp.CauseContextNotFound {
			t.Errorf("SEID %#x: %d", seid, d.Cause)
		}
	}
	wants(t, pfcp.CauseContextNotFound,
		b.modify(smf2, r.UP.SEID, &pfcp.SessionModificationRequest{RemovePDR: []uint16{1}}))
	if d := b.delete(smf2, r.UP.SEID); d.Cause != pfcp.CauseContextNotFound || b.Count("smf1") != 1 {
		t.Errorf("%+v", d)
	}
	in, mate := &n4.Association{ID: "smf3", Set: "set1"}, &n4.Association{ID: "smf4", Set: "set1"}
	r = b.establish(in, request(2, "10.45.0.6"))
	wants(t, pfcp.CauseAccepted,
		b.modify(mate, r.UP.SEID, &pfcp.SessionModificationRequest{CP: &pfcp.FSEID{SEID: 77, IPv4: addr("10.0.0.4")}}))
	testkit.ErrorIf(t, b.Count("smf3") != 0 || b.Count("smf4") != 1, "the session did not change hands")
	wants(t, pfcp.CauseAccepted, b.delete(in, r.UP.SEID))
}

// A request that cannot be read is refused with the SEID of its session, in its turn: what was asked before it is done.
func TestSessionOfAnUnreadRequestIsLocated(t *testing.T) {
	b := start(t, "", testSettings())
	r := b.establish(smf1, request(1, "10.45.0.5"))
	cp := request(1, "10.45.0.5").CP.SEID
	locate := func(from *n4.Association, seid, want uint64, when string) {
		t.Helper()
		ch := make(chan uint64, 2)
		b.Locate([]*n4.Association{from}, seid, func(cp uint64) { ch <- cp })
		testkit.Equal(t, testkit.Receive(t, ch), want, "%s", when)
	}
	locate(smf1, r.UP.SEID, cp, "its own")
	locate(&n4.Association{ID: "smf2"}, r.UP.SEID, 0, "another's")
	locate(smf1, r.UP.SEID+1, 0, "none")
	b.Delete([]*n4.Association{smf1}, r.UP.SEID, func(*pfcp.SessionDeletionResponse, uint64) {})
	locate(smf1, r.UP.SEID, 0, "after its deletion")
}

// Row A5.
func TestLiveAddressIsNotTaken(t *testing.T) {
	for _, takeover := range []bool{false, true} {
		set := testSettings()
		set.Takeover = takeover
		b := start(t, "", set)
		old := b.establish(smf1, request(1, "10.45.0.5"))
		r := b.establish(&n4.Association{ID: "smf2"}, request(2, "10.45.0.5"))
		if takeover {
			if r.Cause != pfcp.CauseAccepted || b.Count("smf1") != 0 || b.Count("smf2") != 1 {
				t.Errorf("takeover: %+v", r)
			}
			continue
		}
		if r.Cause != pfcp.CauseRuleFailure || b.Session(old.UP.SEID) == nil || b.Count("") != 1 {
			t.Errorf("%+v", r)
		}
		wants(t, pfcp.CauseRuleFailure, b.establish(smf1, request(1, "10.45.0.6"))) // the F-TEID
	}
}

// Row A6.
func TestQuotas(t *testing.T) {
	set := testSettings()
	set.Limits.Sessions, set.Limits.SessionsPerAssociation = 3, 2
	b := start(t, "", set)
	for i := range uint32(4) {
		from := smf1
		if i == 3 {
			from = &n4.Association{ID: "smf2"}
		}
		want := pfcp.CauseAccepted
		if i == 2 {
			want = pfcp.CauseNoResources
		}
		r := b.establish(from, request(i+1, fmt.Sprintf("10.45.1.%d", i)))
		testkit.ErrorIf(t, r.Cause != want, "%d: %+v", i, r)
	}
	wants(t, pfcp.CauseNoResources, b.establish(&n4.Association{ID: "smf3"}, request(9, "10.45.1.9")))
}

// randomChange makes a modification, valid or not.
func randomChange(r *rand.Rand) *pfcp.SessionModificationRequest {
	m := &pfcp.SessionModificationRequest{}
	id := func() uint32 { return uint32(r.IntN(6)) }
	for range 1 + r.IntN(3) {
		switch r.IntN(16) {
		case 0:
			m.RemovePDR = append(m.RemovePDR, uint16(id()))
		case 1:
			m.RemoveFAR = append(m.RemoveFAR, id())
		case 2:
			m.RemoveQER = append(m.RemoveQER, id())
		case 3:
			m.RemoveURR = append(m.RemoveURR, id())
		case 4:
			p := request(uint32(r.IntN(4)), "10.45.0.5").PDR[r.IntN(2)]
			p.ID, p.FAR, p.QER, p.URR = uint16(id()), ptr(id()), []uint32{id()}, []uint32{id()}
			if r.IntN(2) == 0 && p.PDI.LocalFTEID != nil {
				p.PDI.LocalFTEID = &pfcp.FTEID{Choose: true, WantIPv4: true, WantIPv6: r.IntN(2) == 0}
			}
			m.CreatePDR = append(m.CreatePDR, p)
		case 5:
			f := request(1, "10.45.0.5").FAR[r.IntN(2)]
			f.ID = id()
			m.CreateFAR = append(m.CreateFAR, f)
		case 6:
			q := request(1, "10.45.0.5").QER[0]
			q.ID, q.Correlation = id(), ptr(id())
			m.CreateQER = append(m.CreateQER, q)
		case 7:
			u := request(1, "10.45.0.5").URR[0]
			u.ID, u.Linked = id(), []uint32{id()}
			m.CreateURR = append(m.CreateURR, u)
		case 8:
			m.UpdateFAR = append(m.UpdateFAR, pfcp.UpdateFAR{ID: id(), Action: ptr(pfcp.ApplyAction(r.IntN(32)))})
		case 9:
			m.UpdateFAR = append(m.UpdateFAR, pfcp.UpdateFAR{ID: id(), Forwarding: &pfcp.Forwarding{SendEndMarker: true,
				OuterHeader: &pfcp.OuterHeader{Description: 0x0100 << r.IntN(4), TEID: id(), Port: 1,
					IPv4: addr("10.1.0.98")}}})
		case 10:
			m.UpdatePDR = append(m.UpdatePDR, pfcp.UpdatePDR{ID: uint16(id()), Precedence: ptr(id()),
				QER: &[]uint32{id()}})
		case 11:
			m.UpdateURR = append(m.UpdateURR, pfcp.UpdateURR{ID: id(),
				VolumeQuota: &pfcp.Volumes{Total: ptr(uint64(5))}})
		case 12:
			m.QueryURR = append(m.QueryURR, id())
		case 13:
			m.UpdateQER = append(m.UpdateQER, pfcp.UpdateQER{ID: id(), MBRUplink: ptr(uint64(r.IntN(3000)))})
		case 14:
			m.CreateBAR = append(m.CreateBAR, pfcp.CreateBAR{ID: uint8(id()), BufferPackets: ptr(uint16(9))})
		case 15:
			m.DropBuffered = true
		}
	}
	return m
}

// Rows P28 to P30: a refused modification leaves the session byte-identical, here, in the data plane and in the
// indices; an accepted one leaves valid references.
func TestRandomModifications(t *testing.T) {
	b := start(t, "", testSettings())
	began := time.Now()
	b.mu.Lock()
	b.x.now = func() time.Time { return began } // objects without users stay
	b.mu.Unlock()
	r := rand.New(rand.NewPCG(1, 2))
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	accepted, refused := 0, 0
	for range 4000 {
		before, held, data := b.dump(), b.s.Held(), b.data(seid)
		req := randomChange(r)
		if m := b.modify(smf1, seid, req); m.Cause == pfcp.CauseAccepted {
			accepted++
		} else {
			refused++
			testkit.FatalIf(t, b.data(seid) != data || !equalHeld(held, b.s.Held()) || b.dump() != before,
				"%+v was refused with cause %d and changed\n%s\nto\n%s", req, m.Cause, before, b.dump())
			continue
		}
		b.checkConsistent()
	}
	testkit.ErrorIf(t, accepted < 200 || refused < 200, "%d accepted, %d refused: a poor test", accepted, refused)
}

// data is the encoding of a session.
func (b *bench) data(seid uint64) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, _ := b.x.at(seid)
	return string(e.data)
}

// dump is the state beside the sessions.
func (b *bench) dump() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	users := map[string]int{}
	for id, h := range b.objects {
		users[id] = h.users
	}
	sharing := map[shareKey]share{}
	for k, s := range b.shares.by {
		sharing[k] = *s
	}
	return fmt.Sprint(b.x.local, b.x.peer, b.x.peer6, b.x.host, b.x.prefix, users, sharing, b.shares.used)
}

func (x *index) groupedSessions() (n int) {
	for _, m := range x.groups {
		n += len(m)
	}
	return n
}

// checkConsistent compares the indices with a full walk over the sessions.
func (b *bench) checkConsistent() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	records := 0
	for range b.x.records.All() {
		records++
	}
	testkit.ErrorIf(b.t, records != len(b.x.session), "%d records of %d sessions", records, len(b.x.session))
	local, host, users, grouped := 0, 0, map[string]int{}, 0
	for seid, at := range b.x.session {
		s, err := rules.Decode(b.x.open(at).data)
		testkit.Must(b.t, err)
		testkit.Must(b.t, b.set.Check(s))
		c, bad := rules.Compile(rules.Context{Set: b.set, PFDs: b.pfds}, s)
		testkit.FatalIf(b.t, bad != nil, "%v", bad)
		for _, k := range groupsOf(s, b.x.open(at).owner) {
			if grouped++; b.x.groups[k][seid] == 0 {
				b.t.Errorf("session %#x is not in group %v", seid, k)
			}
		}
		for _, tun := range c.Local {
			key, ok := b.x.locals.key(tun, false)
			testkit.ErrorIf(b.t, !ok || b.x.local[key] != seid, "F-TEID %v is not %#x's", tun, seid)
			local++
		}
		for _, u := range c.UEs {
			other, _ := b.x.ueOwner(u)
			testkit.ErrorIf(b.t, other != seid, "UE address %v is not %#x's", u, seid)
			if u.Prefix.Addr().Is4() && !u.Framed {
				host++
			}
		}
		for _, o := range c.Objects {
			users[o.Name]++
		}
		if held := b.s.Held()[heldID(seid)]; string(held) != string(c.Body) {
			b.t.Errorf("session %#x is not what the data plane holds", seid)
		}
	}
	if len(b.x.local) != local || len(b.x.host) != host {
		b.t.Errorf("%d F-TEIDs and %d addresses in the indices, %d and %d in sessions", len(b.x.local), len(b.x.host),
			local, host)
	}
	testkit.Equal(b.t, b.x.groupedSessions(), grouped, "members of groups")
	for id, h := range b.objects {
		testkit.ErrorIf(b.t, h.users != users[id], "object %s has %d users, counted %d", id, h.users, users[id])
	}
	for id := range users {
		testkit.ErrorIf(b.t, b.objects[id] == nil, "object %s is not counted", id)
	}
}

// A refusal of the data plane leaves no record of a new session or of a new state.
func TestRefusedLeavesNoRecord(t *testing.T) {
	p, err := Open("", testSettings(), nil)
	testkit.Must(t, err)
	defer p.Close()
	d := &strict{t: t}
	p.Attach(d)
	b := &bench{Manager: p, t: t}
	seid := b.atOnce(request(1, "10.46.0.1"), 0)
	was := b.data(seid)
	for i, m := range []pfcp.Message{request(2, "10.46.0.2"), &pfcp.SessionDeletionRequest{},
		&pfcp.SessionModificationRequest{
			UpdatePDR: []pfcp.UpdatePDR{{ID: 1, Precedence: ptr(uint32(7))}}}} {
		d.refuse = true
		b.atOnce(m, seid)
		number := p.x.records.Count
		testkit.ErrorIf(t, number != 1 || b.data(seid) != was || d.refuse,
			"request %d: %d records of one session", i, number)
	}
}
