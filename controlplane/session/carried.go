// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

// Usage that is carried over from a data plane that is gone waits for the next report of its URR, as usage without a
// trigger. What such a report has is in the store until it is answered.

// carry keeps usage for the next reports, and returns what the store is to have of the session.
func (l *deferredReports) carry(seid uint64, rows []api.Usage) store.Record {
	l.lock.Lock()
	defer l.lock.Unlock()
	u := l.at(seid)
	for i := range rows {
		if at := slices.IndexFunc(u.carried, ofURR(rows[i].URR)); at >= 0 {
			addUsage(&u.carried[at], &rows[i])
			u.carried[at].Sequence = rows[i].Sequence
		} else {
			u.carried = append(u.carried, rows[i])
		}
	}
	return u.record(seid)
}

// carryInto adds to reports what was carried over of their URRs; all: the session ends, and so does the rest.
func (l *deferredReports) carryInto(u *deferredUsage, seid uint64, rows []*api.Usage, all bool) (rest []api.Usage) {
	if len(u.carried) == 0 {
		return nil
	}
	for _, row := range rows {
		at := slices.IndexFunc(u.carried, ofURR(row.URR))
		if at < 0 {
			continue
		}
		sum := u.carried[at]
		addUsage(&sum, row)
		*row, u.carried = sum, slices.Delete(u.carried, at, at+1)
		l.settle[seid] = true
	}
	if all {
		rest, u.carried = ending(u.carried), nil
	}
	return rest
}

// ending makes last reports of usage of which the data plane makes none any more.
func ending(rows []api.Usage) []api.Usage {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Triggers, rows[i].EndNs = api.UsageTermr, uint64(time.Now().UnixNano())
	}
	return rows
}

// onTheWay adds carried-over usage to events that go out now, and stores them: their readings are gone. known:
// something was carried over. It also stores the report of a used-up quota, which is not reported again. waits: the
// record must be stored first.
func (l *deferredReports) onTheWay(seid uint64, events []api.Event, known bool) (record store.Record, waits bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	u := l.by[seid]
	if !known && !slices.ContainsFunc(events, exhausting) && (u == nil || len(u.carried) == 0) {
		return record, false
	}
	u = l.at(seid)
	rows := make([]*api.Usage, len(events))
	for i := range events {
		rows[i] = &events[i].Usage
	}
	l.carryInto(u, seid, rows, false)
	for _, row := range rows {
		u.paired = append(u.paired, *row)
	}
	return u.record(seid), true
}

func exhausting(e api.Event) bool { return rules.Exhausting(&e.Usage) != 0 }

// carried returns which URRs have deferred usage.
func (l *deferredReports) carried(seid uint64) func(urr uint32) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	var list []api.Usage
	if u := l.by[seid]; u != nil {
		list = slices.Clone(u.carried)
	}
	return func(urr uint32) bool { return slices.ContainsFunc(list, ofURR(urr)) }
}

// toSettle are the sessions of which something carried over went into a report, since it was asked last.
func (l *deferredReports) toSettle() []uint64 {
	l.lock.Lock()
	defer l.lock.Unlock()
	seids := slices.Collect(maps.Keys(l.settle))
	clear(l.settle)
	return seids
}
