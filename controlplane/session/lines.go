// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

// The second front, beside PFCP: sessions of sign-in. They have a Line, and an owner with a name of no association;
// otherwise they share transactions, store and reconciling.

// LineOwner is the owner of lines' sessions. No Node ID looks like it.
const LineOwner = "(access)"

// Lines receives for lines what would be a report over PFCP. Calls come from any goroutine, and must not block.
type Lines interface {
	// LineEvent is an event of a line's session, or of an ended one. done acknowledges it.
	LineEvent(e *api.Event, done func())
	// LineEnded reports the end of a session, by DropLine, reconfiguration or the data plane's refusal, with what
	// its URRs measured since their last reports.
	LineEnded(seid uint64, usage []api.Usage)
	// LineLost reports what the data plane of a boot had measured of a session since its last reports, under the
	// numbers of the missing reports. LinesBoot for the next boot follows. Until done it is repeated after our
	// restart.
	LineLost(seid, boot uint64, usage []api.Usage, done func())
	// LinesBoot names the boot of the data plane that holds the sessions: a new one numbers reports and grants
	// quotas from the start. Answers of an earlier one were delivered before.
	LinesBoot(id uint64)
}

// LineRecord is what the store has beside a line's session.
type LineRecord struct {
	SEID    uint64
	Data    []byte
	Session *rules.Session // nil: none (any more)
}

// lines is the front for these sessions. mu of the table guards it.
type lines struct {
	*table
	commits queue
	reports *reporting

	to     Lines        // may be nil
	stored []LineRecord // of the store, until Lines takes them
}

// SetLines sets the receiver of line events, and returns the stored lines: before Run.
func (p *lines) SetLines(to Lines) []LineRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	records := p.stored
	p.to, p.stored = to, nil
	p.reports.lines.Store(&to)
	p.tellBoot()
	known := make(map[uint64]bool, len(records))
	for i := range records {
		r := &records[i]
		known[r.SEID] = true
		_, r.Session, _ = p.decoded(r.SEID)
	}
	if o := p.x.known[LineOwner]; o != nil { // sessions whose record was lost
		p.commits.begin(&deferredJob{of: []groupKey{{owner: o.number}}, stage: p.deletion,
			but: func(seid uint64) bool { return known[seid] }})
	}
	return records
}

// tellBoot reports the boot to Lines, after earlier answers.
func (p *lines) tellBoot() {
	if to, id := p.to, p.boot; to != nil && id != 0 {
		p.commits.later(func() { to.LinesBoot(id) })
		p.commits.rouse()
	}
}

func lineRecord(seid uint64, data []byte) store.Record {
	return store.Record{Kind: store.Line, Number: seid, Data: data}
}

// load is one of the store's.
func (p *lines) load(r store.Record) {
	p.stored = append(p.stored, LineRecord{SEID: r.Number, Data: append([]byte(nil), r.Data...)})
}

// PutLine creates or replaces a line's session, and stores record beside it. The caller chooses s.SEID. done runs on
// the manager's goroutine, with what the change made URRs report. While the data plane is away a new session is
// refused; an existing one is changed, and Synchronise sends it.
func (p *lines) PutLine(s *rules.Session, record []byte, done func(usage []api.Usage, err error)) {
	var fresh bool
	p.commits.enqueue(&job{
		seid: s.SEID,
		stage: func(t *txn) *pfcp.Error {
			e, there := p.x.at(s.SEID)
			fresh = !there
			err := p.putLine(t, s, e, there)
			if err == nil && record != nil {
				t.records = append(t.records, lineRecord(s.SEID, record))
			}
			return err
		},
		finish: func(err *pfcp.Error, rows []api.Usage) func() {
			switch {
			case err != nil:
				return func() { done(nil, errors.New(err.Text)) } // without a cause and an IE of PFCP
			case fresh:
				p.count.Established++
			default:
				p.count.Modified++
			}
			usage := measured(s.SEID, rows)
			return func() { done(usage, nil) }
		},
	})
}

func measured(seid uint64, rows []api.Usage) (list []api.Usage) {
	for i := range rows {
		if rows[i].SEID == seid {
			list = append(list, rows[i])
		}
	}
	return list
}

func (p *lines) putLine(t *txn, s *rules.Session, e entry, there bool) *pfcp.Error {
	switch {
	case p.client == nil && !there:
		return rules.Refuse(pfcp.CauseNoResources, 0, "the data plane is away")
	case s.Line == nil || s.SEID == 0:
		return rules.Refuse(pfcp.CauseSystemFailure, 0, "no session of a line")
	case there && e.owner.id != LineOwner:
		return rules.Refuse(pfcp.CauseSystemFailure, 0, "the SEID is another session's")
	}
	if err := p.set.Check(s); err != nil {
		return err
	}
	s.Owner, s.Association = LineOwner, uint32(api.DigestOf([]byte(LineOwner)))
	if !there {
		if most := int(p.set.Limits.Sessions); most > 0 && len(p.x.session) >= most {
			return rules.Refuse(pfcp.CauseNoResources, 0, "the limit of sessions is reached")
		}
		p.x.associate(LineOwner, "")
		return p.insert(t, s, p.x.owner(LineOwner))
	}
	old, broken := rules.Decode(e.data)
	if broken != nil {
		return rules.Refuse(pfcp.CauseSystemFailure, 0, broken.Error())
	}
	s.Pipe = old.Pipe
	return p.replace(t, s.SEID, e, e.owner, old, s)
}

// DropLine ends a line's session. record replaces the stored one; nil deletes it. done gets what URRs measured since
// their last reports, also without a session. While the data plane is away it is refused: only the data plane knows the
// usage.
func (p *lines) DropLine(seid uint64, record []byte, done func(usage []api.Usage, err error)) {
	p.commits.enqueue(&job{
		seid: seid,
		stage: func(t *txn) *pfcp.Error {
			e, there := p.x.at(seid)
			there = there && e.owner.id == LineOwner
			if there && p.client == nil {
				return rules.Refuse(pfcp.CauseNoResources, 0, "the data plane is away")
			}
			t.records = append(t.records, lineRecord(seid, record))
			if !there {
				return nil
			}
			return p.drop(t, seid)
		},
		finish: func(err *pfcp.Error, rows []api.Usage) func() {
			if err != nil {
				return func() { done(nil, err) }
			}
			p.count.Deleted++
			usage := measured(seid, rows)
			return func() { done(usage, nil) }
		},
	})
}

// KeepLine replaces the record beside a line's session; nil removes it.
func (p *lines) KeepLine(seid uint64, record []byte, done func(err error)) {
	p.commits.enqueue(&job{
		seid: seid,
		stage: func(t *txn) *pfcp.Error {
			t.records = append(t.records, lineRecord(seid, record))
			return nil
		},
		finish: func(err *pfcp.Error, _ []api.Usage) func() {
			return func() {
				if err != nil {
					done(err)
					return
				}
				done(nil)
			}
		},
	})
}

// ended notifies the receiver that a session ended.
func (p *lines) ended(t *txn, seid uint64) {
	if to := p.to; to != nil {
		usage := measured(seid, t.usage)
		p.commits.later(func() { to.LineEnded(seid, usage) })
	}
}
