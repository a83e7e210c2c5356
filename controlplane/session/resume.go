// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"maps"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

// After a change of data plane, usage that was measured and not reported is carried over: into each URR's next report,
// thresholds and quotas, or to Lines. Readings name their boot. So a data plane that survived our restart counts on,
// and nothing is counted twice.

// resume continues the sessions in a data plane of another boot. The caller holds changing, and not mu: no session
// changes, and the data plane has none of them yet.
func (p *reader) resume(boot uint64) {
	p.mu.Lock()
	seids := slices.Collect(maps.Keys(p.snaps.at))
	if p.boot != boot && len(seids) > 0 {
		p.snaps.former = p.boot
	}
	p.mu.Unlock()
	sessions := 0
	for some := range slices.Chunk(seids, someSessions) {
		lost, n := p.resumeSome(boot, some)
		sessions += n
		for i := range lost {
			l := &lost[i]
			l.to.LineLost(l.seid, l.boot, l.usage, func() {
				p.hear(func() { p.takenOver(l.seid, l.boot) })
			})
		}
	}
	if sessions > 0 {
		p.log.Info("usage of a data plane that is gone is carried over", "sessions", sessions)
	}
}

// lostUsage is for Lines.
type lostUsage struct {
	to         Lines
	seid, boot uint64
	usage      []api.Usage
}

// resumeSome is one transaction of the store: at any interruption usage is either here or there.
func (p *reader) resumeSome(boot uint64, seids []uint64) (lost []lostUsage, sessions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var records []store.Record
	for _, seid := range seids {
		r := p.snaps.of(seid)
		if r == nil || r.boot == boot {
			continue
		}
		if len(r.usage(seid)) > 0 {
			sessions++
		}
		e, s, err := p.decoded(seid)
		switch {
		case err == nil && s.Line == nil:
			records = p.resumeSession(records, boot, e, s, r)
		case err == nil && p.lines.to != nil && len(r.usage(seid)) > 0:
			lost = append(lost, lostUsage{p.lines.to, seid, r.boot, r.usage(seid)})
		default:
			records = p.snaps.forget(records, seid)
		}
	}
	p.file.write(records, "usage that was carried over is")
	return lost, sessions
}

// resumeSession carries over what was measured of a PFCP session, and the numbers of its reports.
func (p *reader) resumeSession(records []store.Record, boot uint64, e entry, s *rules.Session,
	r *readings) []store.Record {
	changed := false
	for i := range s.URR {
		if m, known := r.used(s.URR[i].ID); known && s.URR[i].Resume(&m) {
			changed = true
		}
	}
	if usage := r.usage(s.SEID); len(usage) > 0 {
		records = append(records, p.deferred.carry(s.SEID, usage))
	}
	r.goOnIn(boot)
	p.snaps.touch(s.SEID)
	if records = p.snaps.keep(records, s.SEID, r); !changed {
		return records
	}
	old := s // except for preparation only the SEID counts
	if p.plans.prepared != nil {
		old, _ = rules.Decode(e.data) // as s was
	}
	is := p.x.enter(s, e.number, e.owner)
	p.plans.looksDifferent(e.number, old, s)
	p.x.records.Drop(e.at)
	return append(records, sessionRecord(e.number, is.data))
}

// hear schedules fn, with mu held: the sender of counts does not wait for it.
func (p *reader) hear(fn func()) {
	p.lock.Lock()
	p.heard = append(p.heard, fn)
	p.lock.Unlock()
	p.commits.rouse()
}

// listen calls what was to be called.
func (p *reader) listen() {
	p.lock.Lock()
	heard := p.heard
	p.heard = nil
	p.lock.Unlock()
	for _, fn := range heard {
		fn()
	}
}

// takenOver ends the readings of a line's session in a data plane that is gone.
func (p *reader) takenOver(seid, boot uint64) {
	if r := p.snaps.of(seid); r != nil && r.boot == boot {
		p.file.write(p.snaps.forget(nil, seid), "that usage was taken over is")
	}
}

// received notes a session's usage events before they are reported, and returns those to report under the CP function's
// numbers. Their readings end; carried-over usage is added, and stays stored until the CP function has it. Usage that
// arrives from an ended data plane was already carried over.
func (p *reader) received(events []api.Event) []api.Event {
	if events[0].Type != api.EventTypeUsage {
		return events
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	events = slices.DeleteFunc(slices.Clone(events), func(e api.Event) bool {
		return e.BootID != 0 && e.BootID == p.snaps.former
	})
	if len(events) == 0 {
		return events
	}
	seid := sessionOf(&events[0])
	if r := p.snaps.of(seid); r != nil {
		for i := range events {
			if r.told(&events[i]) {
				events[i].Usage.Sequence += r.base(events[i].Usage.URR)
			}
		}
	}
	if events = p.deferred.notDeferred(events); len(events) == 0 {
		return events
	}
	records, known := p.reported(nil, seid, events)
	if record, waits := p.deferred.onTheWay(seid, events, known); waits {
		records = append(records, record)
		p.commits.rouse() // settle
	}
	p.file.write(records, "usage in a report is")
	return events
}

// Whether an event is from the data plane that is read.
func (s *readings) told(e *api.Event) bool { return e.BootID == 0 || e.BootID == s.boot }

// reported ends the readings in reports, and keeps their next numbers.
func (p *reader) reported(records []store.Record, seid uint64, events []api.Event) (_ []store.Record, known bool) {
	p.snaps.touch(seid)
	r := p.snaps.of(seid)
	if r == nil && p.x.session[seid] == 0 {
		return records, false
	}
	if r == nil {
		r = &p.snaps.scratch
		r.boot, r.list = cmp.Or(p.boot, events[0].BootID), r.list[:0]
	}
	for i := range events {
		if r.told(&events[i]) {
			known = r.report(&events[i].Usage) || known
		}
	}
	return p.snaps.keep(records, seid, r), known
}

// counted is called when Lines have counted a report. They know each by its number, so the store can wait.
func (p *reader) counted(e *api.Event) {
	if e.Type == api.EventTypeUsage {
		p.hear(func() { p.reported(nil, sessionOf(e), []api.Event{*e}) })
	}
}

// used is audience's: it takes note of what a transaction reports, and numbers it as received does.
func (p *reader) used(t *txn, boot uint64, rows []api.Usage) {
	for i := range rows {
		if r := p.snaps.of(rows[i].SEID); r != nil && r.boot == boot {
			rows[i].Sequence += r.base(rows[i].URR)
		}
		if seid := rows[i].SEID; p.x.session[seid] != 0 {
			t.records, _ = p.reported(t.records, seid, []api.Event{{BootID: boot, Usage: rows[i]}})
		}
	}
}

// granted takes note of quotas that begin again. What a URR that went has measured is in its last report.
func (p *reader) granted(old, s *rules.Session) {
	p.snaps.touch(s.SEID)
	r := p.snaps.of(s.SEID)
	if r == nil {
		return
	}
	for i := range old.URR {
		was := &old.URR[i]
		at := slices.IndexFunc(s.URR, func(u rules.URR) bool { return u.ID == was.ID })
		switch {
		case at < 0:
			r.gone(was.ID)
		case s.URR[at].Grant != was.Grant:
			r.granted(was.ID)
		}
	}
	p.file.write(p.snaps.keep(nil, s.SEID, r), "that a quota was granted is")
}

// lastKnown is what was read of a session that is deleted while the data plane is away.
func (p *reader) lastKnown(seid uint64) []api.Usage {
	r := p.snaps.of(seid)
	if r == nil || p.client != nil {
		return nil
	}
	return ending(r.usage(seid))
}

// settle is a deferred job's: thresholds of URRs whose next report was there are as the CP function gave them.
func (p *reader) settle(t *txn, seid uint64) *pfcp.Error {
	e, _ := p.x.at(seid)
	old, err := rules.Decode(e.data)
	s, again := rules.Decode(e.data)
	if err != nil || again != nil || !s.CarriedOver() {
		return nil
	}
	waits := p.deferred.carried(seid)
	changed := false
	for i := range s.URR {
		u := &s.URR[i]
		if u.Carried != (rules.Carried{}) && !waits(u.ID) {
			u.Carried, changed = rules.Carried{}, true
		}
	}
	if !changed {
		return nil
	}
	return p.replace(t, seid, e, e.owner, old, s)
}

// settleLater has settle called for sessions.
func (p *reader) settleLater(seids []uint64) {
	if len(seids) > 0 {
		p.commits.begin(&deferredJob{seids: slices.Values(seids), stage: p.settle})
	}
}

// storeUsage writes what changed of the usage that waits to be reported. Then the data plane may forget its events.
func (p *reader) storeUsage() {
	p.listen()
	records, done := p.deferred.flush(func(seid uint64) bool { return p.x.session[seid] == 0 })
	if len(records) > 0 {
		p.file.write(records, "usage that waits for a CP function is")
	}
	for _, fn := range done {
		p.commits.later(fn)
	}
	p.settleLater(p.deferred.toSettle())
}
