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

// sides are the events of a URR at a monitoring time, and at its next report.
func sides(seid uint64, urr, sequence uint32) (before, after api.Event) {
	before = usageEvent(seid, sequence, [3]uint64{3, 1, 2})
	after = usageEvent(seid, sequence+1, [3]uint64{30, 10, 20})
	before.Usage.URR, after.Usage.URR = urr, urr
	before.Usage.Triggers, before.Usage.Information = api.UsageMonit, api.UsageBefore
	after.Usage.Triggers, after.Usage.Information = api.UsageVolth, api.UsageAfter
	return before, after
}

// isPair: a report has both sides of one monitoring time, and nothing else.
func isPair(list []pfcp.UsageReport, sequence uint32) bool {
	return len(list) == 2 && list[0].Information == uint8(api.UsageBefore) &&
		list[1].Information == uint8(api.UsageAfter) &&
		list[0].Sequence == sequence && list[1].Sequence == sequence+1 &&
		*list[0].Volume == [3]uint64{3, 1, 2} && *list[1].Volume == [3]uint64{30, 10, 20}
}

func twoURRs(cp uint32, ue string) *pfcp.SessionEstablishmentRequest {
	req := request(cp, ue)
	req.URR = append(req.URR, pfcp.CreateURR{ID: 2, Method: ptr(uint8(2)), Triggers: ptr(uint32(0))})
	return req
}

// TS 29.244 §5.2.2.2: usage before and after a monitoring time, each alone as it comes, or side by side.
func TestMonitoringTimeAlone(t *testing.T) {
	b := start(t, "", testSettings())
	to := b.reporting(t, true, "")
	before, after := sides(b.establish(smf1, request(1, "10.45.0.5")).UP.SEID, 1, 1)
	for _, e := range []api.Event{before, after} {
		b.s.Raise(e)
		one := testkit.Receive(t, to.reports)
		list := one.req.Usage
		testkit.ErrorIf(t, len(list) != 1 || list[0].Sequence != e.Usage.Sequence, "%+v", list)
	}
}

func TestMonitoringTimePair(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	set := testSettings()
	set.Monitoring = "pair"
	s := dptest.Start(t)
	var seid, deleted uint64
	accept := func(r reported) { r.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil) }
	t.Run("one process", func(t *testing.T) {
		b := startOn(t, s, path, set)
		b.KeepAssociation(n4.StoredAssociation{ID: "smf1"})
		to := b.reporting(t, true, "")
		seid = b.establish(smf1, twoURRs(1, "10.45.0.5")).UP.SEID
		deleted = b.establish(smf1, request(2, "10.45.0.6")).UP.SEID
		before, after := sides(seid, 1, 1)
		b.counts(urr(seid, 1, before.Usage.Sequence, 1, 2)) // it was read meanwhile
		other := usageEvent(seid, 7, [3]uint64{9, 4, 5})
		other.Usage.URR = 2
		s.Raise(before)
		s.Raise(other) // of another URR: the first is unaffected
		one := testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, len(one.req.Usage) != 1 || one.req.Usage[0].URR != 2, "%+v", one.req.Usage)
		accept(one)
		testkit.Until(t, "what is held is in the store", func() bool { return s.Unacknowledged() == 0 })
		s.Raise(after)
		one = testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, !isPair(one.req.Usage, 1), "%+v", one.req.Usage)
		accept(one)
		testkit.Until(t, "nothing waits", func() bool { return b.waiting() == 0 })
		// The session ends: its last report is the other side.
		before, after = sides(deleted, 1, 1)
		s.Raise(before)
		testkit.Until(t, "held", func() bool { return b.waiting() == 1 })
		s.Usage(func(id dptest.ID, _, is []byte) []api.Usage {
			if id == heldID(deleted) && is == nil {
				after.Usage.Triggers = api.UsageTermr
				return []api.Usage{after.Usage}
			}
			return nil
		})
		d := b.delete(smf1, deleted)
		testkit.ErrorIf(t, !isPair(d.Usage, 1), "%+v", d.Usage)
		// A second monitoring time without a report between: the first is not held any longer.
		first, _ := sides(seid, 1, 11)
		second, _ := sides(seid, 1, 12)
		s.Raise(first)
		s.Raise(second)
		one = testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, len(one.req.Usage) != 2 || one.req.Usage[1].Sequence != 12, "%+v", one.req.Usage)
		accept(one)
		// Held usage outlives us.
		last, _ := sides(seid, 1, 21)
		s.Raise(last)
		testkit.Until(t, "in the store", func() bool { return b.waiting() == 1 && s.Unacknowledged() == 0 })
	})
	t.Run("the next process", func(t *testing.T) {
		b := startOn(t, s, path, set)
		to := b.reporting(t, true, "")
		_, after := sides(seid, 1, 21)
		s.Raise(after)
		one := testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, !isPair(one.req.Usage, 21), "%+v", one.req.Usage)
		one.done(nil, n4.ErrTimeout) // and as a pair again
		one = testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, !isPair(one.req.Usage, 21), "%+v", one.req.Usage)
		accept(one)
		testkit.Until(t, "nothing waits", func() bool { return b.waiting() == 0 })
	})
}
