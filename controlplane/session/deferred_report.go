// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

const (
	attemptsAtOnce = 4096            // sessions whose usage is tried again in one tick
	usageInReport  = 8               // usage reports in one message: it stays within one datagram
	firstRetry     = 2 * time.Second // a CP function that is there but does not answer: tried again after this, then twice it, …
	lastRetry      = 5 * time.Minute
)

// deferredReports is usage that could not be reported: the path to the CP function has failed, or nothing answers. It
// is what somebody is charged for, so it waits as long as its session lives (the headless time ends that), in the store
// too. What a URR measures meanwhile is added up, so that there is at most one row for each; only what was sent without
// an answer stays as it is, for the CP function may have it already and knows it again by its sequence number. Used
// under Manager's mu.
type deferredReports struct {
	by    map[uint64]*deferredUsage
	queue []uint64        // whom to try next; each once, some of them gone
	there map[uint64]bool // who stands in queue
	dirty map[uint64]bool
	done  []func() // told when all that is dirty is in the store: the data plane may forget the events
}

type deferredUsage struct {
	rows  []api.Usage // never sent, one for each URR and side of a monitoring time
	tried []api.Usage // sent without an answer
	sent  []api.Usage // in a report that has no answer yet
	wait  time.Duration
	next  time.Time // not tried before
}

const mostTried = 256 // of a session; more are added up

func (u *deferredUsage) try(rows []api.Usage) {
	if u.tried = append(u.tried, rows...); len(u.tried) > mostTried {
		u.tried = mergeUsage(nil, u.tried)
	}
}

func newDeferredReports() deferredReports {
	return deferredReports{by: map[uint64]*deferredUsage{}, there: map[uint64]bool{}, dirty: map[uint64]bool{}}
}

// line puts a session into the queue, once.
func (l *deferredReports) line(seid uint64) {
	if !l.there[seid] {
		l.there[seid] = true
		l.queue = append(l.queue, seid)
	}
}

// addUsage makes one measurement of two that follow each other. The sequence number is that of the later one.
func addUsage(a, b *api.Usage) {
	if b.StartNs < a.StartNs || a.StartNs == 0 {
		a.StartNs = b.StartNs
	}
	if b.FirstNs != 0 && (b.FirstNs < a.FirstNs || a.FirstNs == 0) {
		a.FirstNs = b.FirstNs
	}
	for i := range a.Bytes {
		a.Bytes[i] += b.Bytes[i]
		a.Packets[i] += b.Packets[i]
	}
	a.EndNs, a.LastNs = max(a.EndNs, b.EndNs), max(a.LastNs, b.LastNs)
	a.Sequence, a.Query = max(a.Sequence, b.Sequence), max(a.Query, b.Query)
	a.Triggers |= b.Triggers
	a.Information |= b.Information
	a.Duration += b.Duration
	a.Events += b.Events
}

// mergeUsage adds what was measured later. A monitoring time parts what was before it from what was after it
// (TS 29.244 table 7.5.8.3-1): the CP function gave one, so such rows are as few.
func mergeUsage(rows, more []api.Usage) []api.Usage {
	for i := range more {
		b := &more[i]
		n := len(rows) - 1
		for n >= 0 && rows[n].URR != b.URR {
			n--
		}
		if n < 0 || rows[n].Information&api.UsageBefore != 0 || rows[n].Information&api.UsageAfter != 0 && b.Information&api.UsageBefore != 0 {
			rows = append(rows, *b)
		} else {
			addUsage(&rows[n], b)
		}
	}
	return rows
}

// holds tells whether a measurement is in one that waits already: the data plane tells events again that were not
// acknowledged when we ended. Those of a URR follow each other, so what came before the end of a row is in it.
func (u *deferredUsage) holds(m *api.Usage) bool {
	for _, list := range [][]api.Usage{u.tried, u.sent, u.rows} {
		for i := range list {
			if r := &list[i]; r.URR == m.URR && r.Sequence >= m.Sequence && r.EndNs >= m.EndNs {
				return true
			}
		}
	}
	return false
}

// notDeferred leaves out usage that waits already.
func (p *Manager) notDeferred(events []api.Event) []api.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(events), func(e api.Event) bool {
		if e.Type != api.EventTypeUsage {
			return false
		}
		u := p.deferred.by[e.Usage.SEID]
		return u != nil && u.holds(&e.Usage)
	})
}

// deferUsage puts usage by that could not be reported. sent: the CP function may have it. done is called when it is in
// the store.
func (p *Manager) deferUsage(seid uint64, rows []api.Usage, sent bool, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.deferred
	if p.x.session[seid] == 0 {
		p.count.ReportsLost++
	} else {
		p.count.ReportsDeferred++
		u := l.by[seid]
		if u == nil {
			u = &deferredUsage{}
			l.by[seid] = u
			l.line(seid)
		}
		if sent {
			u.try(rows)
		} else {
			u.rows = mergeUsage(u.rows, rows)
		}
		l.dirty[seid] = true
	}
	l.done = append(l.done, done)
	p.rouse()
}

// joinDeferred adds to the rows of a commit what waits of the same URRs; all of it when the session ends. The caller
// holds mu.
func (p *Manager) joinDeferred(seid uint64, rows []api.Usage, ends bool) []api.Usage {
	var mine []api.Usage
	for i := range rows {
		if rows[i].SEID == seid {
			mine = append(mine, rows[i])
		}
	}
	u := p.deferred.by[seid]
	if u == nil {
		return mine
	}
	var rest, former []api.Usage
	for _, row := range u.rows {
		if ends || slices.ContainsFunc(mine, func(m api.Usage) bool { return m.URR == row.URR }) {
			former = append(former, row)
		} else {
			rest = append(rest, row)
		}
	}
	mine = mergeUsage(former, mine)
	u.rows = rest
	if ends {
		mine = slices.Concat(u.tried, u.sent, mine)
		u.tried = nil
	}
	p.deferred.dirty[seid] = true
	return mine
}

// storeDeferred writes what changed, and lets the data plane forget its events. The caller holds mu.
func (p *Manager) storeDeferred() {
	l := &p.deferred
	if len(l.dirty) > 0 {
		records := make([]store.Record, 0, len(l.dirty))
		for seid := range l.dirty {
			u := l.by[seid]
			switch {
			case u == nil:
			case p.x.session[seid] == 0:
				if len(u.rows)+len(u.tried) > 0 {
					p.count.ReportsLost++
				}
				delete(l.by, seid)
			case len(u.rows)+len(u.sent)+len(u.tried) == 0:
				delete(l.by, seid)
			}
			r := store.Record{Kind: store.Usage, Number: seid}
			if u = l.by[seid]; u != nil {
				for _, list := range [][]api.Usage{u.tried, u.sent, u.rows} {
					for i := range list {
						r.Data = append(r.Data, api.Encode(&list[i])...)
					}
				}
			}
			records = append(records, r)
		}
		clear(l.dirty)
		if err := p.store.Write(records); err != nil {
			p.count.StoreErrors++
			p.log.Error("usage that waits for a CP function is not kept for a restart", "error", err)
		}
	}
	p.answers = append(p.answers, l.done...)
	l.done = nil
}

// attempt is a session whose usage is tried again.
type attempt struct {
	seid uint64
	to   n4.Recipient
	rows []api.Usage
	req  *pfcp.SessionReportRequest
}

// takeDeferred returns those whose CP function can be reached now. The caller holds mu.
func (p *Manager) takeDeferred(reporter n4.Reporter, now time.Time) (list []attempt) {
	l := &p.deferred
	reachable := map[string]bool{}
	for range min(len(l.queue), attemptsAtOnce) {
		seid := l.queue[0]
		l.queue = l.queue[1:]
		u := l.by[seid]
		e, there := p.x.at(seid)
		if u == nil || !there {
			delete(l.there, seid)
			continue
		}
		l.queue = append(l.queue, seid)
		to := e.owner.current().id
		ok, known := reachable[to]
		if !known {
			ok = reporter.Reachable(to)
			reachable[to] = ok
		}
		s, err := rules.Decode(e.data)
		if !ok || err != nil || len(u.sent) > 0 || len(u.rows)+len(u.tried) == 0 || now.Before(u.next) {
			continue
		}
		from := &u.tried
		if len(u.tried) == 0 {
			from = &u.rows
		}
		n := min(len(*from), usageInReport)
		u.sent, *from = slices.Clone((*from)[:n]), slices.Clone((*from)[n:])
		t := attempt{seid: seid, to: e.recipient(s), rows: u.sent, req: &pfcp.SessionReportRequest{}}
		for i := range t.rows {
			t.req.Usage = append(t.req.Usage, rules.Report(s, &t.rows[i]))
		}
		list = append(list, t)
	}
	return list
}

// sendDeferred tries again what waits.
func (p *Manager) sendDeferred() {
	reporter := p.reporter()
	if reporter == nil {
		return
	}
	p.mu.Lock()
	list := p.takeDeferred(reporter, p.x.now())
	p.mu.Unlock()
	for _, t := range list {
		reporter.Report(t.to, t.req, func(r *pfcp.SessionReportResponse, by *n4.Association, err error) {
			if errors.Is(err, n4.ErrStopped) {
				return // the store has it
			}
			p.attempted(t.seid, err)
			if err == nil {
				p.reported(t.seid, r, by, nil)
			}
		})
	}
}

// attempted ends a try.
func (p *Manager) attempted(seid uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.deferred.by[seid]
	if u == nil {
		return
	}
	sent := u.sent
	u.sent = nil
	if err != nil {
		u.try(sent)
		if !errors.Is(err, n4.ErrPathFailed) {
			u.wait = min(max(2*u.wait, firstRetry), lastRetry)
			u.next = p.x.now().Add(u.wait)
		}
		return
	}
	p.count.Reports++
	u.wait = 0
	p.deferred.dirty[seid] = true
}
