// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

const (
	attemptsAtOnce = 4096 // sessions whose usage is tried again in one tick
	usageInReport  = 8    // usage reports in one message: it stays within one datagram
	// a present CP function that does not answer: tried again after this, then twice it, …
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// deferredReports holds usage that could not be reported, because no path or answer exists. It is charging data, so it
// lives as long as its session (bounded by the headless time), in the store too. Later usage of a URR is added to its
// one row. A report that was sent without an answer stays unchanged: the CP function may have it, and recognises its
// sequence number.
type deferredReports struct {
	sessions sessions
	rouse    func()      // has flush called soon
	pairs    atomic.Bool // pfcp.monitoring_time: pair

	lock  sync.Mutex // held for as long as these are read, never during a call
	count ReportCounters
	by    map[uint64]*deferredUsage
	queue []uint64        // the next to try; each once, some of them gone
	there map[uint64]bool // who stands in queue
	dirty map[uint64]bool
	// settle are sessions that carry less over than before (reader.settle)
	settle map[uint64]bool
	done   []func() // called when all dirty rows are stored: the data plane may then forget the events
}

type deferredUsage struct {
	carried []api.Usage // measured in data planes that are gone, held for the next report of its URR
	before  []api.Usage // up to a monitoring time, held for the next report (pair)
	paired  []api.Usage // held or read until now, in a report that has no answer yet
	rows    []api.Usage // never sent, one for each URR and side of a monitoring time
	tried   []api.Usage // sent without an answer
	sent    []api.Usage // in a report that has no answer yet
	pause
}

// record is the stored form: carried-over usage first, held usage last.
func (u *deferredUsage) record(seid uint64) store.Record {
	record := store.Record{Kind: store.Usage, Number: seid}
	for _, list := range [][]api.Usage{u.carried, u.tried, u.sent, u.rows, u.paired, u.before} {
		for i := range list {
			record.Data = append(record.Data, api.Encode(&list[i])...)
		}
	}
	return record
}

const mostTried = 256 // of a session; more are added up

func (u *deferredUsage) try(rows []api.Usage) {
	if u.tried = append(u.tried, rows...); len(u.tried) > mostTried {
		u.tried = mergeUsage(nil, u.tried)
	}
}

func newDeferredReports(s sessions, rouse func()) *deferredReports {
	return &deferredReports{sessions: s, rouse: rouse, by: map[uint64]*deferredUsage{}, there: map[uint64]bool{},
		dirty: map[uint64]bool{}, settle: map[uint64]bool{}}
}

// at is what waits of a session.
func (l *deferredReports) at(seid uint64) *deferredUsage {
	u := l.by[seid]
	if u == nil {
		u = &deferredUsage{}
		l.by[seid] = u
	}
	return u
}

// of is at for what is to be tried.
func (l *deferredReports) of(seid uint64) *deferredUsage {
	l.line(seid)
	return l.at(seid)
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

// mergeUsage adds later usage. A monitoring time separates the usage before and after it (TS 29.244 table 7.5.8.3-1).
// The CP function sets one, so such rows are few.
func mergeUsage(rows, more []api.Usage) []api.Usage {
	for i := range more {
		b := &more[i]
		n := len(rows) - 1
		for n >= 0 && rows[n].URR != b.URR {
			n--
		}
		if n < 0 || rows[n].Information&api.UsageBefore != 0 || rows[n].Information&api.UsageAfter != 0 &&
			b.Information&api.UsageBefore != 0 {
			rows = append(rows, *b)
		} else {
			addUsage(&rows[n], b)
		}
	}
	return rows
}

// holds: a waiting row already contains the measurement. After our restart the data plane repeats unacknowledged
// events. Those of a URR are consecutive, so all that ended before the row's end is in it.
func (u *deferredUsage) holds(m *api.Usage) bool {
	for _, list := range [][]api.Usage{u.tried, u.sent, u.rows, u.paired, u.before} {
		for i := range list {
			if r := &list[i]; r.URR == m.URR && r.Sequence >= m.Sequence && r.EndNs >= m.EndNs {
				return true
			}
		}
	}
	return false
}

// notDeferred leaves out usage that waits already.
func (l *deferredReports) notDeferred(events []api.Event) []api.Event {
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.DeleteFunc(events, func(e api.Event) bool {
		u := l.by[e.Usage.SEID]
		return u != nil && u.holds(&e.Usage)
	})
}

// deferUsage puts usage by that could not be reported. sent: the CP function may have it. done is called when it is in
// the store.
func (l *deferredReports) deferUsage(seid uint64, rows []api.Usage, sent bool, done func()) {
	there := l.sessions.there(seid) // when it ends now, ended or flush finds what was put by
	l.lock.Lock()
	if !there {
		l.count.ReportsLost++
	} else {
		l.count.ReportsDeferred++
		u := l.of(seid)
		u.answered(rows)
		if sent {
			u.try(rows)
		} else {
			u.rows = mergeUsage(u.rows, rows)
		}
		l.dirty[seid] = true
	}
	l.done = append(l.done, done)
	l.lock.Unlock()
	l.rouse()
}

// restore brings stored usage back. Whether it was sent is unknown, except for held usage, which is last.
func (l *deferredReports) restore(seid uint64, rows []api.Usage, there bool) {
	u := l.of(seid)
	for len(rows) > 0 && rows[0].Triggers == 0 {
		u.carried, rows = append(u.carried, rows[0]), rows[1:]
	}
	for n := len(rows) - 1; l.pairs.Load() && n >= 0 && splits(&rows[n]); n-- {
		if slices.ContainsFunc(rows[:n], ofURR(rows[n].URR)) || !u.hold(&rows[n]) {
			break
		}
		rows = rows[:n]
	}
	u.tried = rows
	if !there {
		l.dirty[seid] = true
	}
}

// ended is called when a session has gone: nothing of it waits any more.
func (l *deferredReports) ended(seid uint64) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.by[seid] != nil {
		l.dirty[seid] = true
	}
}

// join adds to the rows of a commit what waits of the same URRs; all of it when the session ends.
func (l *deferredReports) join(seid uint64, rows []api.Usage, ends bool) []api.Usage {
	var mine []api.Usage
	for i := range rows {
		if rows[i].SEID == seid {
			mine = append(mine, rows[i])
		}
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	u := l.by[seid]
	if u == nil {
		return mine
	}
	former, rest := u.release(mine, ends), []api.Usage(nil)
	for _, row := range u.rows {
		if ends || slices.ContainsFunc(mine, func(m api.Usage) bool { return m.URR == row.URR }) {
			former = append(former, row)
		} else {
			rest = append(rest, row)
		}
	}
	mine = mergeUsage(former, mine)
	u.rows = rest
	into := make([]*api.Usage, len(mine))
	for i := range mine {
		into[i] = &mine[i]
	}
	mine = append(mine, l.carryInto(u, seid, into, ends)...)
	if ends {
		mine = slices.Concat(u.tried, u.sent, mine)
		u.tried = nil
	}
	l.dirty[seid] = true
	return mine
}

// flush returns the changed rows as records, and the callbacks to run once they are stored. gone reports ended
// sessions; their rows are lost.
func (l *deferredReports) flush(gone func(seid uint64) bool) (records []store.Record, done []func()) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for seid := range l.dirty {
		record := store.Record{Kind: store.Usage, Number: seid}
		switch u := l.by[seid]; {
		case u == nil:
		case gone(seid):
			if len(u.rows)+len(u.tried)+len(u.before)+len(u.carried) > 0 {
				l.count.ReportsLost++
			}
			delete(l.by, seid)
		default:
			if record = u.record(seid); len(record.Data) == 0 {
				delete(l.by, seid)
			}
		}
		records = append(records, record)
	}
	clear(l.dirty)
	done, l.done = l.done, nil
	return records, done
}

// due takes sessions from the queue that have something to be tried now; the others go to its end.
func (l *deferredReports) due(now time.Time) (seids []uint64) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for range min(len(l.queue), attemptsAtOnce) {
		seid := l.queue[0]
		l.queue = l.queue[1:]
		switch u := l.by[seid]; {
		case u == nil:
			delete(l.there, seid)
		case len(u.sent) > 0 || len(u.rows)+len(u.tried) == 0 || now.Before(u.next):
			l.queue = append(l.queue, seid)
		default:
			seids = append(seids, seid)
		}
	}
	return seids
}

// attempt takes the next report of a session of due, and puts the session back into the queue; nil: none is left.
func (l *deferredReports) attempt(s subject, reachable bool) *pfcp.SessionReportRequest {
	l.lock.Lock()
	defer l.lock.Unlock()
	u := l.by[s.seid]
	if u == nil || s.session == nil {
		delete(l.there, s.seid)
		return nil
	}
	l.queue = append(l.queue, s.seid)
	if !reachable || len(u.rows)+len(u.tried) == 0 {
		return nil
	}
	from := &u.tried
	if len(u.tried) == 0 {
		from = &u.rows
	}
	n := min(len(*from), usageInReport)
	u.sent, *from = slices.Clone((*from)[:n]), slices.Clone((*from)[n:])
	return &pfcp.SessionReportRequest{Usage: rules.Reports(s.session, u.sent)}
}

// sendDeferred tries again what waits, where the CP function can be reached now.
func (r *reporting) sendDeferred(to n4.Reporter) {
	reachable := map[string]bool{}
	for s := range r.eachOf(r.deferred.due(time.Now())) {
		ok, known := reachable[s.to.Association]
		if !known && s.session != nil {
			ok = to.Reachable(s.to.Association)
			reachable[s.to.Association] = ok
		}
		req := r.deferred.attempt(s, ok)
		if req == nil {
			continue
		}
		to.Report(s.to, req, func(answer *pfcp.SessionReportResponse, by *n4.Association, err error) {
			if errors.Is(err, n4.ErrStopped) {
				return // the store has it
			}
			r.deferred.attempted(s.seid, err)
			if err == nil {
				r.reported(s.seid, answer, by, nil)
			}
		})
	}
}

// attempted ends a try.
func (l *deferredReports) attempted(seid uint64, err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	u := l.by[seid]
	if u == nil {
		return
	}
	sent := u.sent
	u.sent = nil
	if err != nil {
		u.try(sent)
		u.after(err)
		return
	}
	l.count.Reports++
	u.wait = 0
	l.dirty[seid] = true
}

// pause is how long to wait after a try without an answer.
type pause struct {
	wait time.Duration
	next time.Time // not tried before
}

func (p *pause) after(err error) {
	if !errors.Is(err, n4.ErrPathFailed) {
		p.wait = min(max(2*p.wait, firstRetry), lastRetry)
		p.next = time.Now().Add(p.wait)
	}
}
