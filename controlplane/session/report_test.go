// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// reporter remembers what was reported and lets the test answer.
type reporter struct {
	reports chan reported
	nodes   chan *pfcp.NodeReportRequest
	downFor atomic.Value // the association whose path has failed
}

type reported struct {
	association string
	cp          uint64
	req         *pfcp.SessionReportRequest
	to          n4.Recipient
	done        func(*pfcp.SessionReportResponse, error)
	by          func(*pfcp.SessionReportResponse, *n4.Association)
}

func (r *reporter) Report(to n4.Recipient, req *pfcp.SessionReportRequest,
	done func(*pfcp.SessionReportResponse, *n4.Association, error)) {
	if r.downFor.Load() == to.Association {
		done(nil, nil, n4.ErrPathFailed)
		return
	}
	r.reports <- reported{to.Association, to.CP.SEID, req, to,
		func(r *pfcp.SessionReportResponse, err error) { done(r, nil, err) },
		func(r *pfcp.SessionReportResponse, by *n4.Association) { done(r, by, nil) }}
}
func (r *reporter) Reachable(a string) bool                 { return r.downFor.Load() != a }
func (r *reporter) NodeReport(req *pfcp.NodeReportRequest)  { r.nodes <- req }
func (r *reporter) Address() (v4, v6 netip.Addr)            { return addr("10.0.0.1"), netip.Addr{} }
func (r *reporter) Find(association string) *n4.Association { return nil }

// waiting counts the sessions of which something is yet to be reported.
func (b *bench) waiting() int {
	r := b.reports
	r.lock.Lock()
	pending := len(r.pending)
	r.lock.Unlock()
	r.deferred.lock.Lock()
	defer r.deferred.lock.Unlock()
	return len(r.deferred.by) + pending
}

// reporting gives the bench a reporter; smf1's path may be down. With follow, it listens to the data plane.
func (b *bench) reporting(t testing.TB, follow bool, down string) *reporter {
	to := &reporter{reports: make(chan reported, 30000), nodes: make(chan *pfcp.NodeReportRequest, 100)}
	if down != "" {
		to.downFor.Store(down)
	}
	b.SetReporter(to)
	if follow {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		go b.Follow(ctx, b.s.Path)
	}
	return to
}

func usageOf(seid, sequence uint64) api.Event {
	return api.Event{Sequence: sequence, Type: api.EventTypeUsage, SEID: seid,
		Usage: api.Usage{SEID: seid, URR: 1, Sequence: uint32(sequence)}}
}

func TestReports(t *testing.T) {
	b := start(t, "", testSettings())
	to := b.reporting(t, true, "")
	req := request(1, "10.45.0.5")
	req.BAR, req.FAR[1].BAR = []pfcp.CreateBAR{{ID: 1}}, ptr(uint8(1))
	req.PDR[0].PDI.LocalFTEID.IPv6 = addr("2001:db8:f::1") // the PDR stands twice in the data plane
	r := b.establish(smf1, req)
	seid := r.UP.SEID
	testkit.ErrorIf(t, r.UP.IPv4 != addr("10.0.0.1"), "%+v", r.UP)
	b.s.Raise(api.Event{Type: api.EventTypeUsage, SEID: seid,
		Usage: api.Usage{SEID: seid, URR: 1, Sequence: 3, Triggers: api.UsageVolth, Bytes: [3]uint64{9, 4, 5}}})
	one := testkit.Receive(t, to.reports)
	if one.association != "smf1" || one.cp != 0x1001 || len(one.req.Usage) != 1 || one.req.Usage[0].Sequence != 3 ||
		*one.req.Usage[0].Volume != [3]uint64{9, 4, 5} {
		t.Errorf("%+v", one)
	}
	b.s.Raise(api.Event{Type: api.EventTypeDownlinkData, SEID: seid, Rule: 0xffff, DSCP: 46, QFI: 9})
	two := testkit.Receive(t, to.reports)
	if len(two.req.DownlinkPDR) != 1 || two.req.DownlinkPDR[0] != 1 || *two.req.DSCP != 46 || two.req.DownlinkQFI != 9 {
		t.Errorf("%+v", two.req)
	}
	b.s.Raise(api.Event{Type: api.EventTypeErrorIndication, TEID: 0x99, Peer: api.FromAddr(addr("10.1.0.99"))})
	three := testkit.Receive(t, to.reports)
	if len(three.req.Errors) != 1 || three.req.Errors[0].TEID != 0x99 || three.req.Errors[0].IPv4 != addr("10.1.0.99") {
		t.Errorf("%+v", three.req)
	}
	// row G17: of no session
	b.s.Raise(api.Event{Type: api.EventTypeErrorIndication, TEID: 0x98, Peer: api.FromAddr(addr("10.1.0.99"))})
	b.s.Raise(api.Event{Type: api.EventTypePathDown, Local: api.FromAddr(addr("10.1.0.1")),
		Peer: api.FromAddr(addr("10.1.0.99"))})
	if n := testkit.Receive(t, to.nodes); len(n.Failed) != 1 || n.Failed[0].NetworkInstance != "access" ||
		n.Failed[0].Addr != addr("10.1.0.99") {
		t.Errorf("%+v", n)
	}
	b.s.Raise(api.Event{Type: api.EventTypeInactive, SEID: seid})
	if four := testkit.Receive(t, to.reports); !four.req.Inactive {
		t.Errorf("%+v", four.req)
	} else {
		four.done(nil, errors.New("no answer"))
	}
	testkit.Equal(t, b.s.Unacknowledged(), 6, "waiting events")
	three.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
	two.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted,
		UpdateBAR: &pfcp.UpdateBAR{ID: 1, BufferPackets: ptr(uint16(33))}}, nil)
	one.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
	testkit.Until(t, "acknowledged, and the BAR changed", func() bool {
		return b.s.Unacknowledged() == 0 && *orZero(b.Session(seid).BAR[0].BufferPackets) == 33
	})
	// TS 23.527: a session that the CP function does not know is deleted.
	b.s.Raise(api.Event{Type: api.EventTypeInactive, SEID: seid})
	five := testkit.Receive(t, to.reports)
	five.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseContextNotFound}, nil)
	testkit.Until(t, "the session gone", func() bool { return b.Count("") == 0 })
}

func orZero[T any](v *T) *T {
	if v == nil {
		return new(T)
	}
	return v
}

// repeating repeats a session's first event before its second.
type repeating struct {
	list [][]api.Event
	last chan uint64
}

func (r *repeating) BootID() uint64 { return 1 }
func (r *repeating) Next(ctx context.Context) ([]api.Event, error) {
	if len(r.list) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	next := r.list[0]
	r.list = r.list[1:]
	return next, nil
}
func (r *repeating) Acknowledge(sequence uint64) error {
	r.last <- sequence
	return nil
}

// A repeated event is reported once.
func TestEventsToldAgain(t *testing.T) {
	b := start(t, "", testSettings())
	to := b.reporting(t, false, "")
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	usage := func(sequence uint64) api.Event { return usageOf(seid, sequence) }
	from := &repeating{[][]api.Event{{usage(1)}, {usage(1), usage(2)}}, make(chan uint64, 8)}
	go b.reports.listen(t.Context(), from)
	for sequence := range uint32(2) {
		r := testkit.Receive(t, to.reports)
		testkit.ErrorIf(t, len(r.req.Usage) != 1 || r.req.Usage[0].Sequence != sequence+1, "%+v", r.req.Usage)
		r.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
		testkit.Equal(t, testkit.Receive(t, from.last), uint64(sequence)+1, "acknowledged")
	}
}

// A subscription that is lost while a report waits for its answer: the new one begins with the same events.
func TestEventsOfANewSubscription(t *testing.T) {
	b := start(t, "", testSettings())
	to := b.reporting(t, false, "")
	seid := b.establish(smf1, request(1, "10.45.0.5")).UP.SEID
	usage := func(sequence uint64) api.Event { return usageOf(seid, sequence) }
	ctx, lose := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.reports.listen(ctx, &repeating{[][]api.Event{{usage(1)}}, make(chan uint64, 8)}) }()
	one := testkit.Receive(t, to.reports)
	lose()
	testkit.Receive(t, ended)
	from := &repeating{[][]api.Event{{usage(1), usage(2)}}, make(chan uint64, 8)}
	go b.reports.listen(t.Context(), from)
	two := testkit.Receive(t, to.reports)
	testkit.ErrorIf(t, len(two.req.Usage) != 1 || two.req.Usage[0].Sequence != 2, "%+v", two.req.Usage)
	one.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
	testkit.Equal(t, testkit.Receive(t, from.last), 1, "acknowledged")
	two.done(&pfcp.SessionReportResponse{Cause: pfcp.CauseAccepted}, nil)
	testkit.Equal(t, testkit.Receive(t, from.last), 2, "acknowledged")
}
