// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"net/netip"
	"testing"

	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// setIE is an SMF Set ID, alternativeIE an Alternative SMF IP Address.
func setIE(name string) []byte { return ie(180, labels(0, name)...) }

func alternativeIE(a netip.Addr) []byte { return ie(178, append([]byte{2}, a.AsSlice()...)...) }

// Row A4: an unconfigured set belongs to its first claimant, and to those that a member names among its addresses. A
// configured peer that claims it gets neither it nor its sessions.
func TestSetMembers(t *testing.T) {
	a, b, c := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0"), newSMF(t, "smf3", "127.0.0.3:0")
	given := newSMF(t, "smf4", "127.0.0.4:0")
	of1 := given.peer()
	of1.Set = "Set1.Test"
	h := start(t, quiet(a.peer(), b.peer(), c.peer(), of1), nil, a, b, c, given)
	a.mustSetUp(setIE("set9.test"), alternativeIE(c.addr.Addr()))
	given.mustSetUp(setIE("set9.test"))
	seid, theirs := a.establish(1), given.establish(2)
	set := func(id string) string { return h.s.Find(id).Set }
	testkit.FatalIf(t, set("smf1") != "set9.test" || set("smf4") != "set1.test",
		"sets %q, %q", set("smf1"), set("smf4"))
	for i, claim := range []string{"set9.test", "SET9.test", "set1.test", "SeT1.test"} {
		b.mustSetUp(setIE(claim), alternativeIE(a.addr.Addr()), alternativeIE(given.addr.Addr()))
		testkit.ErrorIf(t, set("smf2") != "" || h.happened("set-not-admitted") != uint64(i+1),
			"%s: set %q, %d refused", claim, set("smf2"), h.happened("set-not-admitted"))
		h.told("association.set-refused")
		for _, other := range []uint64{seid, theirs} {
			b.delete(other).wants(pfcp.CauseContextNotFound, claim+": deletion by another peer")
		}
	}
	c.mustSetUp(setIE("set9.test"))
	testkit.ErrorIf(t, set("smf3") != "set9.test", "set of the member that was named: %q", set("smf3"))
	// A member that associates again stays a member, whatever the others name.
	a.mustSetUp(setIE("set9.test"), group(183))
	testkit.ErrorIf(t, set("smf1") != "set9.test", "set after associating again: %q", set("smf1"))
	c.delete(seid).wants(pfcp.CauseAccepted, "deletion by a member")
}

// The configuration of sets also applies to associations restored from the store.
func TestSetsAfterARestart(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	h := start(t, quiet(a.peer(), b.peer()), nil, a, b)
	a.mustSetUp(setIE("set1"))
	b.mustSetUp(setIE("set2"))
	h.stop()
	pb := b.peer()
	pb.Set = "set1"
	cfg := quiet(a.peer(), pb)
	cfg.Listen = on(h.s.Listening()[0].String())
	again := start(t, cfg, h.fake, a, b)
	x, y := again.s.Find("smf1").Set, again.s.Find("smf2").Set
	testkit.ErrorIf(t, x != "" || y != "set1", "sets %q, %q", x, y)
	for id, want := range map[string]string{"smf1": "", "smf2": "set1"} {
		again.fake.with(func() {
			testkit.Equal(t, again.fake.stored[id].Set, want, "%s: stored set", id)
		})
	}
}

// The store does not restore a peer that was removed from the configuration. A peer listed by another of its addresses
// is restored.
func TestRemovedPeerAfterARestart(t *testing.T) {
	a, b := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	c := newSMF(t, "smf3", "127.0.0.3:0")
	h := start(t, quiet(a.peer(), b.peer(), c.peer()), nil, a, b, c)
	a.mustSetUp()
	b.mustSetUp()
	c.mustSetUp(alternativeIE(netip.MustParseAddr("127.0.0.4")))
	h.stop()
	elsewhere := c.peer()
	elsewhere.Address.AddrPort = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.4"), elsewhere.Address.Port())
	cfg := quiet(a.peer(), elsewhere)
	cfg.Listen = on(h.s.Listening()[0].String())
	again := start(t, cfg, h.fake, a, b, c)
	again.fake.with(func() {
		_, stored := again.fake.stored["smf2"]
		testkit.ErrorIf(t, stored || len(again.fake.stored) != 2, "stored: %v", again.fake.stored)
	})
	testkit.ErrorIf(t, again.s.Find("smf2") != nil || again.s.Find("smf1") == nil || again.s.Find("smf3") == nil,
		"associations are not those of the configuration")
}

// Row A2: a failed association, and its sessions, stay with its addresses, unless the configuration gives the node id
// to another one.
func TestFailedNodeID(t *testing.T) {
	m, thief := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf1", "127.0.0.2:0")
	moved := newSMF(t, "smf1", "127.0.0.3:0")
	h := start(t, quiet(peerAt(m.addr, ""), peerAt(thief.addr, ""), moved.peer()), nil, m, thief, moved)
	for _, r := range []*reply{m.setUp(), thief.setUp()} { // smf1 is as configured
		r.wants(pfcp.CauseRejected)
	}
	moved.mustSetUp(alternativeIE(m.addr.Addr()))
	seid := moved.establish(1)
	h.failPath("smf1")
	h.rises("node-id-taken", 1, func() {
		thief.setUp(group(183)).wants(pfcp.CauseRejected) // with all sessions retained
	})
	thief.delete(seid).wants(pfcp.CauseNoAssociation)
	m.mustSetUp(group(183)) // an address that the association named
	m.delete(seid).wants(pfcp.CauseAccepted)
}

// An address is the node id of the peer that has it.
func TestAddressAsNodeID(t *testing.T) {
	m, thief := newSMF(t, "127.0.0.1", "127.0.0.1:0"), newSMF(t, "127.0.0.1", "127.0.0.2:0")
	h := start(t, quiet(peerAt(m.addr, ""), peerAt(thief.addr, "")), nil, m, thief)
	h.rises("node-id-taken", 1, func() { thief.setUp().wants(pfcp.CauseRejected) })
	m.mustSetUp()
}

// Where any peer may associate, a failed association of an unknown peer is free: its address may have changed. A
// configured peer's is not.
func TestFailedNodeIDOfUnknownPeers(t *testing.T) {
	known, m, moved := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0"),
		newSMF(t, "smf2", "127.0.0.3:0")
	cfg := quiet(peerAt(known.addr, ""))
	cfg.AllowUnknown = true
	h := start(t, cfg, nil, known, m, moved)
	for _, f := range []*smf{known, m} {
		f.mustSetUp()
		if r := moved.setUp(); f == m && r.cause() != pfcp.CauseRejected {
			t.Errorf("living: cause %d", r.cause())
		} else if f == known {
			moved.ask(message(pfcp.AssociationReleaseRequestType, 0, moved.next(), nodeIE(moved.node)))
		}
		h.failPath(f.node)
	}
	moved.mustSetUp()
	moved.node = "smf1"
	moved.setUp().wants(pfcp.CauseRejected, "of a configured peer")
}

// The same holds for the answer to our own set-up request.
func TestDialledNodeID(t *testing.T) {
	m, thief := newSMF(t, "smf1", "127.0.0.1:0"), newSMF(t, "smf2", "127.0.0.2:0")
	dialled := peerAt(thief.addr, "")
	dialled.Connect = true
	h := start(t, quiet(m.peer(), dialled), nil, m, thief)
	m.mustSetUp(setIE("set9"))
	seid := m.establish(1)
	h.failPath("smf1")
	answer := func(node string) {
		r := thief.must("an association set-up request")
		thief.send(message(pfcp.AssociationSetupResponseType, 0, r.sequence, nodeIE(node), ie(19, 1),
			recoveryIE(thief.recovery), setIE("set9")))
	}
	answer("smf1")
	answer("smf2")
	testkit.Until(t, "association", func() bool { return h.s.Find("smf2") != nil })
	a := h.s.Find("smf2")
	testkit.ErrorIf(t, a.Set != "" || h.s.Find("smf1").Addr != m.addr, "%+v", a)
	thief.delete(seid).wants(pfcp.CauseContextNotFound)
}

// TS 29.244 §5.22: members of a set are asked in turn, each with SEID 0 and Old CP F-SEID. A member that does not know
// the session does not end the search. A redirection names the next member, and ends it.
func TestMembersAreAskedInTurn(t *testing.T) {
	var members []*smf
	var peers []config.PFCPPeer
	for _, id := range []string{"smf1", "smf2", "smf3", "smf4"} {
		m := newSMF(t, id, "127.0.0."+id[3:]+":0")
		members = append(members, m)
		peers = append(peers, m.peer())
		peers[len(peers)-1].Set = "set1"
	}
	outsider := newSMF(t, "smf5", "127.0.0.5:0")
	h := start(t, quiet(append(peers, outsider.peer())...), nil, append(members, outsider)...)
	for _, m := range append(members, outsider) {
		m.mustSetUp()
	}
	type outcome struct {
		r   *pfcp.SessionReportResponse
		by  *Association
		err error
	}
	got := make(chan outcome, 1)
	cp := pfcp.FSEID{SEID: 7, IPv4: members[0].addr.Addr()}
	report := func(moved bool) {
		h.s.Report(Recipient{Association: "smf1", CP: cp, Moved: moved}, &pfcp.SessionReportRequest{Inactive: true},
			func(r *pfcp.SessionReportResponse, by *Association, err error) { got <- outcome{r, by, err} })
	}
	answer := func(m *smf, seid uint64, ies ...[]byte) {
		t.Helper()
		r := m.must("the report at " + m.node)
		if old := fseidIE(7, cp.IPv4); r.seid != seid || (seid == 0) != (string(r.ies[57]) == string(old[4:])) {
			t.Errorf("%s: SEID %d, Old CP F-SEID %x", m.node, r.seid, r.ies[57])
		}
		m.send(message(pfcp.SessionReportResponseType, 0, r.sequence, ies...))
	}
	report(false)
	answer(members[0], 7, ie(19, 65))
	if o := <-got; o.err != nil || o.by != nil || o.r.Cause != pfcp.CauseContextNotFound {
		t.Errorf("of the one whose session it is: %+v", o)
	}
	report(true) // a successor is asked first, and does not know it either
	answer(members[0], 0, ie(19, 1), fseidIE(9, members[0].addr.Addr()))
	if o := <-got; o.err != nil || o.by == nil || o.by.ID != "smf1" || o.r.CP == nil || o.r.CP.SEID != 9 {
		t.Errorf("of a successor: %+v", o)
	}
	h.failPath("smf1")
	report(false)
	answer(members[1], 0, ie(19, 78), alternativeIE(members[3].addr.Addr()), alternativeIE(outsider.addr.Addr()))
	answer(members[3], 0, ie(19, 65))
	answer(members[2], 0, ie(19, 1))
	if o := <-got; o.err != nil || o.by == nil || o.by.ID != "smf3" {
		t.Errorf("%+v", o)
	}
	report(false)
	for _, m := range members[1:] {
		answer(m, 0, ie(19, 65))
	}
	if o := <-got; o.err != ErrNotKnown {
		t.Errorf("of all: %+v", o)
	}
	outsider.silence(0)
}
