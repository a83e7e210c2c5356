// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

func usageEvent(seid uint64, sequence uint32, bytes [3]uint64) api.Event {
	return api.Event{Type: api.EventTypeUsage, SEID: seid, Usage: api.Usage{SEID: seid, URR: 1, Sequence: sequence,
		Triggers: api.UsagePerio,
		Bytes:    bytes, StartNs: uint64(sequence) * 1e9, EndNs: uint64(sequence+1) * 1e9}}
}

// Usage before a monitoring time is not added to usage after it, however late it is reported.
func TestMonitoringTimeParts(t *testing.T) {
	rows := []api.Usage(nil)
	for _, u := range []api.Usage{{URR: 1, Events: 1}, {URR: 2, Events: 100},
		{URR: 1, Events: 2, Information: api.UsageBefore},
		{URR: 1, Events: 4, Information: api.UsageAfter}, {URR: 1, Events: 8}} {
		rows = mergeUsage(rows, []api.Usage{u})
	}
	want := []api.Usage{{URR: 1, Events: 3, Information: api.UsageBefore}, {URR: 2, Events: 100},
		{URR: 1, Events: 12, Information: api.UsageAfter}}
	testkit.ErrorIf(t, !slices.Equal(rows, want), "%+v", rows)
}

// Usage for an absent CP function waits in the store, is added up by URR, survives a restart and is reported when the
// path is back. Others' events go on.
func TestUsageWaitsForThePath(t *testing.T) {
	const many = 10000 // more than are ever unacknowledged
	path := t.TempDir() + "/sessions.db"
	s := dptest.Start(t)
	smf2 := &n4.Association{ID: "smf2"}
	var away, also, other uint64
	t.Run("path down", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		away = b.establish(smf1, request(1, "10.45.0.1")).UP.SEID
		also = b.establish(smf1, request(2, "10.45.0.2")).UP.SEID
		other = b.establish(smf2, request(3, "10.45.0.3")).UP.SEID
		for _, id := range []string{"smf1", "smf2"} {
			b.KeepAssociation(n4.StoredAssociation{ID: id})
		}
		to := b.reporting(t, true, "smf1")
		for i := range uint32(many) {
			s.Raise(usageEvent(away, i+1, [3]uint64{3, 1, 2}))
		}
		s.Raise(usageEvent(also, 1, [3]uint64{30, 10, 20}))
		s.Raise(usageEvent(other, 1, [3]uint64{9, 4, 5}))
		for left := s.Unacknowledged(); len(to.reports) == 0; left = s.Unacknowledged() { // all the others come first
			testkit.Until(t, "more acknowledged while the path is down",
				func() bool { return s.Unacknowledged() < left || len(to.reports) > 0 })
		}
		one := testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, one.association != "smf2" || *one.req.Usage[0].Volume != [3]uint64{9, 4, 5},
			"%+v", one)
		one.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
		testkit.Until(t, "all acknowledged", func() bool { return s.Unacknowledged() == 0 })
		// A deletion reports waiting usage, beside the last measurement.
		s.Usage(func(id dptest.ID, _, is []byte) []api.Usage {
			if id == heldID(also) && is == nil {
				return []api.Usage{{SEID: also, URR: 1, Sequence: 2, Triggers: api.UsageTermr,
					Bytes: [3]uint64{3, 1, 2}}}
			}
			return nil
		})
		d := b.delete(smf1, also)
		if len(d.Usage) != 1 || *d.Usage[0].Volume != [3]uint64{33, 11, 22} || d.Usage[0].Sequence != 2 {
			t.Errorf("%+v", d.Usage)
		}
	})
	t.Run("restarted, path back", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		to := b.reporting(t, false, "")
		one := testkit.Receive(t, to.reports)
		u := one.req.Usage[0]
		if one.association != "smf1" || one.cp != 0x1001 || len(one.req.Usage) != 1 ||
			*u.Volume != [3]uint64{3 * many, many, 2 * many} ||
			u.Sequence != many || u.Start.Unix() != 1 || u.End.Unix() != many+1 || u.Trigger != api.UsagePerio {
			t.Errorf("%+v volume %v", one.req.Usage, *u.Volume)
		}
		one.done(nil, n4.ErrTimeout)
		one = testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, *one.req.Usage[0].Volume != [3]uint64{3 * many, many, 2 * many}, "%+v", one)
		one.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
		testkit.Until(t, "nothing waits", func() bool { return b.waiting() == 0 })
		c := b.Counts()
		testkit.ErrorIf(t, c.ReportsLost != 0, "%+v", c)
	})
	t.Run("nothing is reported twice", func(t *testing.T) {
		b := startOn(t, s, path, testSettings())
		testkit.Equal(t, b.waiting(), 0, "sessions")
	})
}
