// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/internal/n4"
	"isthmus/controlplane/internal/pfcp"
)

// A downlink data report that nobody took is told when the CP function is back, as long as packets wait.
func TestDownlinkReportIsOwed(t *testing.T) {
	b := start(t, "", testSettings())
	to := &reporter{reports: make(chan reported, 10), nodes: make(chan *pfcp.NodeReportRequest, 1)}
	to.downFor.Store("smf1")
	b.SetReporter(to)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go b.Follow(ctx, b.s.Path)
	var seids []uint64
	for i, ue := range []string{"10.46.0.1", "10.46.0.2", "10.46.0.3"} {
		req := request(uint32(i+1), ue)
		req.FAR[1].Action = pfcp.ActionBuffer | pfcp.ActionNotify
		seids = append(seids, b.establish(smf1, req).UP.SEID)
	}
	for _, seid := range append(seids, seids[0]) {
		b.s.Raise(api.Event{Type: api.EventTypeDownlinkData, SEID: seid, Rule: 2, DSCP: 10})
	}
	owing := func() int { b.Lock(); defer b.Unlock(); return len(b.owed) }
	waitUntil(t, "owed and acknowledged", func() bool { return owing() == 3 && b.s.Unacknowledged() == 0 })
	b.delete(smf1, seids[1])
	if m := b.modify(smf1, seids[2], &pfcp.SessionModificationRequest{UpdateFAR: []pfcp.UpdateFAR{{ID: 2,
		Action: ptr(pfcp.ActionForward)}}}); m.Cause != pfcp.CauseAccepted {
		t.Fatalf("%+v", m)
	}
	waitUntil(t, "one owed", func() bool { return owing() == 1 })
	to.downFor.Store("")
	one := wait(t, to.reports)
	if one.cp != 0x1001 || len(one.req.DownlinkPDR) != 1 || one.req.DownlinkPDR[0] != 2 || *one.req.DSCP != 10 {
		t.Errorf("%+v", one)
	}
	one.done(nil, n4.ErrTimeout)
	one = wait(t, to.reports)
	one.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
	waitUntil(t, "nothing owed", func() bool { return owing() == 0 })
	if len(to.reports) != 0 {
		t.Errorf("%+v", <-to.reports)
	}
}
