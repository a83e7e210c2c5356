// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// maxReports is how many reports wait for their answers; the data plane keeps the events behind them.
const maxReports = 4096

// Events are the data plane's events (dp.Subscription).
type Events interface {
	BootID() uint64
	Next(ctx context.Context) ([]api.Event, error)
	Acknowledge(sequence uint64) error
}

// acknowledger acknowledges events in order, whatever the order of answers to their reports. It outlives a
// subscription: a new one to the same data plane begins with unacknowledged events, whose reports may be pending.
type acknowledger struct {
	mu      sync.Mutex
	from    Events
	waiting []uint64 // sequences not acknowledged yet, rising
	done    map[uint64]bool
	last    uint64 // highest sequence seen
	acked   uint64 // highest sequence acknowledged
	room    chan struct{}
}

func newAcknowledger(from Events) *acknowledger {
	return &acknowledger{from: from, done: map[uint64]bool{}, room: make(chan struct{}, maxReports)}
}

// resume continues with a new subscription; the last acknowledgement may have been lost with the former one.
func (a *acknowledger) resume(from Events) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.from = from
	if a.acked != 0 {
		from.Acknowledge(a.acked)
	}
}

func (a *acknowledger) begin(sequence uint64) {
	a.mu.Lock()
	a.waiting = append(a.waiting, sequence)
	a.mu.Unlock()
}

// end marks events as handled.
func (a *acknowledger) end(sequences ...uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range sequences {
		a.done[s] = true
	}
	n := 0
	for n < len(a.waiting) && a.done[a.waiting[n]] {
		delete(a.done, a.waiting[n])
		n++
	}
	if n == 0 {
		return
	}
	a.acked = a.waiting[n-1]
	a.waiting = a.waiting[n:]
	a.from.Acknowledge(a.acked) // after a failure the connection is lost, and Next reports it
}

// listen deals with events until the connection ends. Only one runs at a time.
func (r *reporting) listen(ctx context.Context, from Events) error {
	if r.acks == nil || r.acks.from.BootID() != from.BootID() {
		r.acks = newAcknowledger(from)
	} else {
		r.acks.resume(from)
	}
	for {
		events, err := from.Next(ctx)
		if err != nil {
			return err
		}
		for len(events) > 0 {
			n := sameSession(events)
			if err := r.handleEvents(ctx, r.acks, events[:n]); err != nil {
				return err
			}
			events = events[n:]
		}
	}
}

// sameSession counts the usage events at the front that go into one report.
func sameSession(events []api.Event) int {
	const most = 8 // a report stays within one datagram
	n := 1
	for n < len(events) && n < most && events[0].Type == api.EventTypeUsage && events[n].Type == api.EventTypeUsage &&
		events[n].Usage.SEID == events[0].Usage.SEID && events[0].Usage.SEID != 0 {
		n++
	}
	return n
}

// handleEvents makes a report of events and acknowledges them when it is answered or given up.
func (r *reporting) handleEvents(ctx context.Context, a *acknowledger, events []api.Event) error {
	events = slices.DeleteFunc(events, func(e api.Event) bool { return e.Sequence <= a.last }) // repeated
	if len(events) == 0 {
		return nil
	}
	var sequences []uint64
	for i := range events {
		a.last = events[i].Sequence
		a.begin(a.last)
		sequences = append(sequences, a.last)
	}
	if r.record != nil && r.record(&events[0]) {
		a.end(sequences...)
		return nil
	}
	if lines := r.lines.Load(); lines != nil && r.sessions.ofLine(&events[0]) {
		return r.toLines(ctx, *lines, a, events)
	}
	to := r.reporter()
	if to == nil {
		a.end(sequences...)
		return nil
	}
	if node := r.nodeReport(&events[0]); node != nil {
		to.NodeReport(node)
		a.end(sequences...)
		return nil
	}
	select {
	case a.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.reportEvents(to, events, func() {
		<-a.room
		a.end(sequences...)
	})
	return nil
}

// toLines passes events on, each acknowledged alone.
func (r *reporting) toLines(ctx context.Context, to Lines, a *acknowledger, events []api.Event) error {
	for i := range events {
		select {
		case a.room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		e := events[i]
		to.LineEvent(&e, func() {
			r.readings.counted(&e)
			<-a.room
			a.end(e.Sequence)
		})
	}
	return nil
}

// reportEvents reports events of one session; done is called when they are dealt with.
func (r *reporting) reportEvents(to n4.Reporter, events []api.Event, done func()) {
	events = r.readings.received(events)
	if len(events) == 0 {
		done()
		return
	}
	if events, done = r.deferred.pair(events, done); len(events) == 0 {
		done()
		return
	}
	s, req := r.sessionReport(events)
	if req == nil {
		done()
		return
	}
	to.Report(s.to, req, func(answer *pfcp.SessionReportResponse, by *n4.Association, err error) {
		if errors.Is(err, n4.ErrStopped) {
			return // not acknowledged: our successor gets it again
		}
		defer r.deferred.unpair(s.seid, events)
		switch {
		case len(req.Usage) > 0 && err != nil && !errors.Is(err, n4.ErrNoAssociation):
			rows := make([]api.Usage, len(events))
			for i := range events {
				rows[i] = events[i].Usage
			}
			r.deferred.deferUsage(s.seid, rows, errors.Is(err, n4.ErrTimeout), done)
			return
		case len(req.DownlinkPDR) > 0 && err != nil && !errors.Is(err, n4.ErrNoAssociation):
			r.notifyLater(s.seid, req)
			done()
			return
		}
		done()
		r.reported(s.seid, answer, by, err)
	})
}

func (r *reporting) nodeReport(e *api.Event) *pfcp.NodeReportRequest {
	if e.Type != api.EventTypePathDown && e.Type != api.EventTypePathUp {
		return nil
	}
	peer := pfcp.RemotePeer{Addr: e.Peer.Netip().Addr()}
	peer.NetworkInstance = r.sessions.instanceOf(e.Local.Netip().Addr())
	req := &pfcp.NodeReportRequest{Node: r.node}
	// A peer that restarted has lost its tunnels: to the CP function that is a path that failed (TS 23.527 §5.2)
	// and is back.
	if e.Type == api.EventTypePathDown || e.Rule == 1 {
		req.Failed = append(req.Failed, peer)
	}
	if e.Type == api.EventTypePathUp {
		req.Restored = append(req.Restored, peer)
	}
	return req
}

// sessionReport makes the request for events of one session; nil when there is nothing to report.
func (r *reporting) sessionReport(events []api.Event) (s subject, req *pfcp.SessionReportRequest) {
	first := &events[0]
	s, pdr := r.sessions.about(first)
	if s.session == nil {
		return s, nil
	}
	req = &pfcp.SessionReportRequest{}
	switch first.Type {
	case api.EventTypeUsage:
		for i := range events {
			req.Usage = append(req.Usage, rules.Report(s.session, &events[i].Usage))
		}
	case api.EventTypeDownlinkData:
		req.DownlinkPDR = []uint16{pdr}
		dscp := first.DSCP
		req.DSCP, req.DownlinkQFI = &dscp, first.QFI
	case api.EventTypeErrorIndication:
		f := pfcp.FTEID{TEID: first.TEID}
		if a := first.Peer.Netip().Addr(); a.Is4() {
			f.IPv4 = a
		} else {
			f.IPv6 = a
		}
		req.Errors = []pfcp.FTEID{f}
	case api.EventTypeInactive:
		req.Inactive = true
	default: // BUFFER_FULL and MISSED are counted by the data plane; PFCP has no word for them
		return s, nil
	}
	r.counted(ReportCounters{Reports: 1})
	return s, req
}

// reported handles the answer to a report. It may change the BAR or have buffered packets dropped (TS 29.244 §7.5.9); a
// member of the SMF set that answers for another takes the session over. ErrNotKnown of another member ends nothing.
func (r *reporting) reported(seid uint64, answer *pfcp.SessionReportResponse, by *n4.Association, err error) {
	if err != nil || answer == nil {
		r.counted(ReportCounters{ReportsLost: 1})
		return
	}
	if answer.Cause == pfcp.CauseContextNotFound {
		r.answers.forget(seid)
		return
	}
	req := &pfcp.SessionModificationRequest{DropBuffered: answer.DropBuffered}
	if answer.Cause == pfcp.CauseAccepted {
		req.CP = answer.CP
	}
	if answer.UpdateBAR != nil {
		req.UpdateBAR = []pfcp.UpdateBAR{*answer.UpdateBAR}
	}
	if len(req.UpdateBAR) > 0 || req.DropBuffered || req.CP != nil {
		r.answers.carryOut(seid, by, req)
	}
}

// follow keeps a subscription to a data plane until ctx ends.
func (r *reporting) follow(ctx context.Context, path string) {
	for ctx.Err() == nil {
		s, err := dp.Subscribe(ctx, path)
		if err == nil {
			err = r.listen(ctx, s)
			s.Close()
		}
		if ctx.Err() == nil {
			r.log.Debug("no events from the data plane", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
