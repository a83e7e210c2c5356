// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"sync/atomic"

	"isthmus/api"
)

// With pfcp.monitoring_time pair, usage up to a monitoring time is held for the next report of its URR. The CP function
// gets both sides in one message (TS 29.244 §5.2.2.2). Held usage is in the store, like usage that could not be
// reported.

// splits: a measurement ended for a monitoring time, and nothing asks for a report.
func splits(u *api.Usage) bool {
	return u.Triggers&^api.UsageLiusa == api.UsageMonit && u.Information&api.UsageBefore != 0
}

func ofURR(urr uint32) func(api.Usage) bool { return func(u api.Usage) bool { return u.URR == urr } }

// hold keeps a row for the URR's next report. If one already waits or is unanswered, the CP function is unreachable or
// set another monitoring time. Then nothing is held: one row per URR at most.
func (u *deferredUsage) hold(row *api.Usage) bool {
	// The row itself may be there, to be in the store.
	another := func(o api.Usage) bool { return o.URR == row.URR && o.Sequence != row.Sequence }
	for _, list := range [][]api.Usage{u.before, u.paired, u.rows, u.tried, u.sent} {
		if slices.ContainsFunc(list, another) {
			return false
		}
	}
	u.before = append(u.before, *row)
	return true
}

// release takes the held rows of URRs; with all, every row.
func (u *deferredUsage) release(rows []api.Usage, all bool) (held []api.Usage) {
	u.before = slices.DeleteFunc(u.before, func(b api.Usage) bool {
		if !all && !slices.ContainsFunc(rows, ofURR(b.URR)) {
			return false
		}
		held = append(held, b)
		return true
	})
	return held
}

// pair removes the rows to hold from a session's usage events. Rows held before are put in front of their URRs' events.
// done is for the remaining events: held rows are done when they are stored, too.
func (l *deferredReports) pair(events []api.Event, done func()) ([]api.Event, func()) {
	if !l.pairs.Load() || events[0].Type != api.EventTypeUsage {
		return events, done
	}
	seid := events[0].Usage.SEID
	there := l.sessions.there(seid)
	l.lock.Lock()
	defer l.lock.Unlock()
	var rest []api.Event
	held := false
	for i := range events {
		row := &events[i].Usage
		if there && splits(row) && l.of(seid).hold(row) {
			l.of(seid).answered([]api.Usage{*row})
			held = true
			continue
		}
		if u := l.by[seid]; u != nil {
			for _, b := range u.release([]api.Usage{*row}, false) {
				u.paired = append(u.paired, b)
				rest = append(rest, api.Event{Type: api.EventTypeUsage, SEID: events[i].SEID, Usage: b})
			}
		}
		rest = append(rest, events[i])
	}
	if held {
		done = twice(done)
		l.dirty[seid] = true
		l.done = append(l.done, done)
		l.rouse()
	}
	return rest, done
}

// unpair forgets what the store had of a report: it is answered, or waits with other usage.
func (l *deferredReports) unpair(seid uint64, events []api.Event) {
	l.lock.Lock()
	defer l.lock.Unlock()
	u := l.by[seid]
	if u == nil || len(u.paired) == 0 {
		return
	}
	rows := make([]api.Usage, len(events))
	for i := range events {
		rows[i] = events[i].Usage
	}
	u.answered(rows)
	l.dirty[seid] = true
	l.rouse()
}

// answered takes rows out of paired.
func (u *deferredUsage) answered(rows []api.Usage) {
	u.paired = slices.DeleteFunc(u.paired, func(b api.Usage) bool {
		return slices.ContainsFunc(rows, func(r api.Usage) bool {
			return r.URR == b.URR && r.Sequence == b.Sequence
		})
	})
}

// twice calls done when it was called twice itself.
func twice(done func()) func() {
	var calls atomic.Int32
	return func() {
		if calls.Add(1) == 2 {
			done()
		}
	}
}
