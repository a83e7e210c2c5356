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

// Events is what the data plane tells (dp.Subscription).
type Events interface {
	BootID() uint64
	Next(ctx context.Context) ([]api.Event, error)
	Acknowledge(sequence uint64) error
}

// acknowledger acknowledges events in their order, whatever the order in which their reports are answered. It outlives a
// subscription: a new one to the same data plane begins with what is not acknowledged, of which reports may be under way.
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

// resume goes on with a new subscription; the last acknowledgement may have been lost with the former one.
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

// end tells that an event was dealt with.
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
	a.from.Acknowledge(a.acked) // when it fails the connection is lost, and Next says so
}

// Listen deals with events until the connection ends. One at a time.
func (p *Manager) Listen(ctx context.Context, from Events) error {
	if p.acks == nil || p.acks.from.BootID() != from.BootID() {
		p.acks = newAcknowledger(from)
	} else {
		p.acks.resume(from)
	}
	a := p.acks
	for {
		events, err := from.Next(ctx)
		if err != nil {
			return err
		}
		for len(events) > 0 {
			n := sameSession(events)
			if err := p.handleEvents(ctx, a, events[:n]); err != nil {
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
func (p *Manager) handleEvents(ctx context.Context, a *acknowledger, events []api.Event) error {
	events = slices.DeleteFunc(events, func(e api.Event) bool { return e.Sequence <= a.last }) // told again
	if len(events) == 0 {
		return nil
	}
	var sequences []uint64
	for i := range events {
		a.last = events[i].Sequence
		a.begin(a.last)
		sequences = append(sequences, a.last)
	}
	reporter := p.reporter()
	if reporter == nil {
		a.end(sequences...)
		return nil
	}
	if node := p.nodeReport(&events[0]); node != nil {
		reporter.NodeReport(node)
		a.end(sequences...)
		return nil
	}
	select {
	case a.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.reportEvents(reporter, events, func() {
		<-a.room
		a.end(sequences...)
	})
	return nil
}

// reportEvents reports events of one session; done is called when they are dealt with.
func (p *Manager) reportEvents(reporter n4.Reporter, events []api.Event, done func()) {
	if events = p.notDeferred(events); len(events) == 0 {
		done()
		return
	}
	seid, to, req := p.sessionReport(events)
	if req == nil {
		done()
		return
	}
	reporter.Report(to, req, func(r *pfcp.SessionReportResponse, by *n4.Association, err error) {
		switch {
		case errors.Is(err, n4.ErrStopped):
			return // not acknowledged: who comes after us hears it again
		case len(req.Usage) > 0 && err != nil && !errors.Is(err, n4.ErrNoAssociation):
			rows := make([]api.Usage, len(events))
			for i := range events {
				rows[i] = events[i].Usage
			}
			p.deferUsage(seid, rows, errors.Is(err, n4.ErrTimeout), done)
			return
		case len(req.DownlinkPDR) > 0 && err != nil && !errors.Is(err, n4.ErrNoAssociation):
			p.notifyLater(seid, req)
			done()
			return
		}
		done()
		p.reported(seid, r, by, err)
	})
}

func (p *Manager) nodeReport(e *api.Event) *pfcp.NodeReportRequest {
	if e.Type != api.EventTypePathDown && e.Type != api.EventTypePathUp {
		return nil
	}
	peer := pfcp.RemotePeer{Addr: e.Peer.Netip().Addr()}
	p.mu.Lock()
	if i := p.set.Owner(e.Local.Netip().Addr()); i != nil {
		peer.NetworkInstance = i.Name
	}
	p.mu.Unlock()
	r := &pfcp.NodeReportRequest{Node: p.node}
	// A peer that restarted has lost its tunnels: to the CP function that is a path that failed (TS 23.527 §5.2)
	// and is back.
	if e.Type == api.EventTypePathDown || e.Rule == 1 {
		r.Failed = append(r.Failed, peer)
	}
	if e.Type == api.EventTypePathUp {
		r.Restored = append(r.Restored, peer)
	}
	return r
}

// sessionReport makes the request for events of one session; nil when there is nothing to tell to anybody.
func (p *Manager) sessionReport(events []api.Event) (seid uint64, to n4.Recipient, req *pfcp.SessionReportRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := &events[0]
	seid = first.SEID
	if first.Type == api.EventTypeUsage && first.Usage.SEID != 0 {
		seid = first.Usage.SEID
	}
	if first.Type == api.EventTypeErrorIndication {
		t := rules.Tunnel{Addr: first.Peer.Netip().Addr(), TEID: first.TEID}
		if t.Addr.IsValid() {
			if last, known := p.x.toPeer(t); known {
				seid = last
			}
		}
	}
	e, there := p.x.at(seid)
	if !there {
		return 0, to, nil
	}
	s, err := rules.Decode(e.data)
	if err != nil {
		return 0, to, nil
	}
	req = &pfcp.SessionReportRequest{}
	switch first.Type {
	case api.EventTypeUsage:
		for i := range events {
			req.Usage = append(req.Usage, rules.Report(s, &events[i].Usage))
		}
	case api.EventTypeDownlinkData:
		req.DownlinkPDR = []uint16{s.RealPDR(p.set, p.pfds, uint16(first.Rule))}
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
		return 0, to, nil
	}
	p.count.Reports++
	return seid, e.recipient(s), req
}

// reported deals with the answer to a report: it may change the BAR, have what waits dropped (TS 29.244 §7.5.9), or say
// that the member of the SMF set that answered, if it is not the session's owner, took it over.
func (p *Manager) reported(seid uint64, r *pfcp.SessionReportResponse, by *n4.Association, err error) {
	if err != nil || r == nil {
		p.mu.Lock()
		p.count.ReportsLost++
		p.mu.Unlock()
		return
	}
	if r.Cause == pfcp.CauseContextNotFound {
		// TS 23.527 §4.3: the CP function does not know the session any more, so nobody would ever delete it.
		// (Of another member of its SMF set this is ErrNotKnown.)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log.Info("a session that its CP function does not know is deleted", "session", rules.Key(seid))
		p.begin(&deferredJob{seids: slices.Values([]uint64{seid}), stage: p.deletion})
		return
	}
	req := &pfcp.SessionModificationRequest{DropBuffered: r.DropBuffered}
	if r.Cause == pfcp.CauseAccepted {
		req.CP = r.CP
	}
	if r.UpdateBAR == nil && !r.DropBuffered && req.CP == nil {
		return
	}
	if r.UpdateBAR != nil {
		req.UpdateBAR = []pfcp.UpdateBAR{*r.UpdateBAR}
	}
	p.mu.Lock()
	e, there := p.x.at(seid)
	p.mu.Unlock()
	if !there {
		return
	}
	if by == nil {
		by = &n4.Association{ID: e.owner.id, Set: e.owner.set}
	}
	p.Modify([]*n4.Association{by}, seid, req, func(m *pfcp.SessionModificationResponse, _ uint64) {
		if m.Cause != pfcp.CauseAccepted {
			p.log.Warn("what the answer to a report asked for is refused", "session", rules.Key(seid), "cause", m.Cause)
		}
	})
}

// Follow keeps a subscription to a data plane until ctx ends.
func (p *Manager) Follow(ctx context.Context, path string) {
	for ctx.Err() == nil {
		s, err := dp.Subscribe(ctx, path)
		if err == nil {
			err = p.Listen(ctx, s)
			s.Close()
		}
		if ctx.Err() == nil {
			p.log.Debug("no events from the data plane", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
