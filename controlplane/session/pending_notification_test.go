// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// A downlink data report that was not delivered is sent when the CP function is back, while packets wait.
func TestDownlinkReportIsOwed(t *testing.T) {
	b := start(t, "", testSettings())
	to := b.reporting(t, true, "smf1")
	var seids []uint64
	for i, ue := range []string{"10.46.0.1", "10.46.0.2", "10.46.0.3"} {
		req := request(uint32(i+1), ue)
		req.FAR[1].Action = pfcp.ActionBuffer | pfcp.ActionNotify
		seids = append(seids, b.establish(smf1, req).UP.SEID)
	}
	for _, seid := range append(seids, seids[0]) {
		b.s.Raise(api.Event{Type: api.EventTypeDownlinkData, SEID: seid, Rule: 2, DSCP: 10})
	}
	testkit.Until(t, "pending, acknowledged", func() bool { return b.waiting() == 3 && b.s.Unacknowledged() == 0 })
	b.delete(smf1, seids[1])
	if m := b.modify(smf1, seids[2], &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{{ID: 2,
		Action: ptr(pfcp.ActionForward)}}}); m.Cause != pfcp.CauseAccepted {
		t.Fatalf("%+v", m)
	}
	testkit.Until(t, "one pending", func() bool { return b.waiting() == 1 })
	to.downFor.Store("")
	one := testkit.Receive(t, to.reports)
	if one.cp != 0x1001 || len(one.req.DownlinkPDR) != 1 || one.req.DownlinkPDR[0] != 2 || *one.req.DSCP != 10 {
		t.Errorf("%+v", one)
	}
	one.done(nil, n4.ErrTimeout)
	one = testkit.Receive(t, to.reports)
	one.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
	testkit.Until(t, "nothing pending", func() bool { return b.waiting() == 0 })
	if len(to.reports) != 0 {
		t.Errorf("%+v", <-to.reports)
	}
}

// TS 29.244 §5.22: a session that no member of the set knows does not end, and is reported again. An inherited session
// is reported with its old F-SEID until a member assigns one, in a modification or in the answer to a report. The store
// keeps this.
func TestFailoverKeepsTheSession(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s := dptest.Start(t)
	member1, member2 := &n4.Association{ID: "smf1", Set: "set1"}, &n4.Association{ID: "smf2", Set: "set1"}
	var seid uint64
	accepted := &pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}
	t.Run("path failed", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		for _, a := range []*n4.Association{member1, member2} {
			b.KeepAssociation(n4.StoredAssociation{ID: a.ID, Set: a.Set})
		}
		to := b.reporting(t, true, "")
		seid = b.establish(member1, request(1, "10.46.0.1")).UP.SEID
		s.Raise(usageEvent(seid, 1, [3]uint64{3, 1, 2}))
		for range 2 { // reported, and reported again
			one := testkit.Receive(t, to.reports)
			if one.association != "smf1" || one.to.Moved || *one.req.Usage[0].Volume != [3]uint64{3, 1, 2} {
				t.Errorf("%+v", one)
			}
			one.done(nil, n4.ErrNotKnown)
		}
		testkit.ErrorIf(t, b.Count("smf1") != 1 || b.Counts().ReportsLost != 0,
			"%d sessions, %+v", b.Count("smf1"), b.Counts())
		n := b.adopt("smf1", "smf2")
		testkit.ErrorIf(t, n != 1 || !b.Session(seid).Moved, "%d adopted, %+v", n, b.Session(seid))
	})
	t.Run("inherited", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		to := b.reporting(t, true, "")
		one := testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, one.association != "smf2" || !one.to.Moved || one.cp != 0x1001, "%+v", one)
		one.by(accepted, member2) // took it, and gave it no F-SEID
		if x := b.Session(seid); !x.Moved || x.CP.SEID != 0x1001 {
			t.Errorf("%+v", x)
		}
		s.Raise(usageEvent(seid, 2, [3]uint64{3, 1, 2}))
		one = testkit.Receive(t, to.reports)
		one.by(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted, CP: &pfcp.FSEID{SEID: 9, IPv4: addr("10.0.0.3")}},
			member2)
		testkit.Until(t, "taken over by the answer", func() bool {
			x := b.Session(seid)
			return x.CP.SEID == 9 && !x.Moved && x.Owner == "smf2"
		})
		s.Raise(usageEvent(seid, 3, [3]uint64{3, 1, 2}))
		if one = testkit.Receive(t, to.reports); one.cp != 9 || one.to.Moved {
			t.Errorf("%+v", one)
		}
		one.by(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted,
			CP: &pfcp.FSEID{SEID: 10, IPv4: addr("10.0.0.2")}}, member1)
		testkit.Until(t, "taken over by another member",
			func() bool { return b.Session(seid).Owner == "smf1" && b.Count("smf1") == 1 })
		b.adopt("smf1", "smf2")
		if m := b.modify(member2, seid, &pfcp.SessionModificationRequest{}); m.Cause != pfcp.CauseAccepted ||
			!b.Session(seid).Moved {
			t.Errorf("%+v", m)
		}
		if m := b.modify(member2, seid, &pfcp.SessionModificationRequest{Node: &pfcp.NodeID{FQDN: "smf2"}}); m.Cause !=
			pfcp.CauseAccepted || b.Session(seid).Moved {
			t.Errorf("%+v", m)
		}
		// A member of another set takes nothing over.
		s.Raise(usageEvent(seid, 4, [3]uint64{3, 1, 2}))
		testkit.Receive(t, to.reports).by(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted,
			CP: &pfcp.FSEID{SEID: 11, IPv4: addr("10.0.0.9")}},
			&n4.Association{ID: "smf9"})
		testkit.Until(t, "refused", func() bool { return b.Counts().Unknown > 0 })
		if x := b.Session(seid); x.CP.SEID != 10 || x.Owner != "smf2" {
			t.Errorf("%+v", x)
		}
	})
}
