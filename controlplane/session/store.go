// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"log/slog"
	"time"

	"isthmus/api"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/slab"
	"isthmus/controlplane/session/store"
)

func sessionRecord(number uint64, data []byte) store.Record {
	return store.Record{Kind: store.Session, Number: number, Data: data}
}

// storing is the file. mu of the table guards it.
type storing struct {
	log      *slog.Logger
	store    *store.Store
	measures *measure.Set
	untidy   bool   // the store is being compacted
	errors   uint64 // writes that failed
}

// compact continues compacting the store, if worthwhile. sessions and readings are in memory.
func (s *storing) compact(sessions, readings *slab.Slab) {
	inMemory := func(yield func(store.Record) bool) {
		for number, data := range sessions.All() {
			if !yield(sessionRecord(number, data)) {
				return
			}
		}
		for seid, data := range readings.All() {
			if !yield(store.Record{Kind: store.Reading, Number: seid, Data: data}) {
				return
			}
		}
	}
	var err error
	live := sessions.Bytes + readings.Bytes + uint64(sessions.Count+readings.Count)*store.Overhead
	s.untidy, err = s.store.Compact(live, inMemory)
	if err != nil {
		s.log.Error("the session store is not compacted", "error", err)
	}
}

// load restores sessions, associations and PFDs, and builds the indices. Unreadable records, or those unfit for the
// configuration, are dropped and logged, and CP functions get another recovery time stamp. It ends at a session of
// another version.
func (p *Manager) load() error {
	var dropped []store.Record
	err := p.file.store.Load(func(r store.Record) error {
		err := p.loadRecord(r)
		if errors.Is(err, rules.ErrVersion) {
			return err
		}
		if err != nil {
			if dropped = append(dropped, store.Record{Kind: r.Kind, Number: r.Number}); len(dropped) <= 10 {
				p.log.Error("a record of the session store is dropped", "kind", r.Kind, "number", r.Number, "error",
					err)
			}
		}
		return nil
	})
	if err == nil {
		if err := p.file.store.Write(append(p.shape(), dropped...)); err != nil { // a full disk; Compact makes it good
			p.log.Error("the session store is not written", "error", err)
		}
	}
	if err == nil && len(dropped) > 0 {
		p.log.Error("what was stored is dropped; the recovery time stamp is a new one", "records", len(dropped))
		err = p.file.store.Renew()
	}
	return err
}

func (p *Manager) loadRecord(r store.Record) error {
	switch r.Kind {
	case store.Association:
		a, err := decodeAssociation(r.Data)
		if err != nil {
			return err
		}
		p.associations.load(a)
	case store.Application:
		a, err := decodeApplication(r.Data)
		if err != nil {
			return err
		}
		p.applications.load(&a)
	case store.Session:
		p.last = max(p.last, r.Number)
		s, err := rules.Decode(r.Data)
		if err != nil {
			return err
		}
		if err := p.restore(s, r.Number); err != nil {
			return err
		}
		if s.CarriedOver() { // the report that had it may be behind us
			p.reports.deferred.settle[s.SEID] = true
		}
	case store.Line:
		p.lines.load(r)
	case store.Usage:
		rows, err := api.DecodeAll[api.Usage](r.Data)
		if err != nil {
			return err
		}
		p.reports.deferred.restore(r.Number, rows, p.x.session[r.Number] != 0)
	case store.Reading:
		return p.snaps.load(r.Number, r.Data)
	default:
		return errors.New("of an unknown kind")
	}
	return nil
}

// restore enters a stored session.
func (p *table) restore(s *rules.Session, number uint64) error {
	if err := p.set.Check(s); err != nil {
		return err
	}
	p.set.Fit(s)
	c, bad := rules.Compile(rules.Context{Set: p.set, PFDs: p.pfds, Lenient: true}, s)
	if bad != nil {
		return bad
	}
	if p.x.session[s.SEID] != 0 || s.SEID == 0 {
		return errors.New("its SEID is impossible")
	}
	if p.x.conflict(s.SEID, c) != (conflict{}) {
		return errors.New("its F-TEID or UE address is another session's")
	}
	o := p.x.owner(s.Owner)
	o.sessions++
	p.x.regroup(s.SEID, nil, groupsOf(s, o))
	p.x.enter(s, number, o)
	p.x.add(s.SEID, c)
	for i := range s.QER { // the numbers of shared meters stay, or the data plane would begin new ones
		if q := &s.QER[i]; q.Correlation != nil && q.Share != 0 {
			key := shareKey{s.Association, *q.Correlation}
			x := p.shares.by[key]
			if x == nil {
				x = &share{id: q.Share, worker: s.Worker}
				p.shares.by[key], p.shares.used[q.Share] = x, true
			}
			x.users++
		}
	}
	for _, o := range c.Objects {
		if p.objects[o.Name] == nil {
			p.objects[o.Name] = &holding{Object: o}
		}
		p.objects[o.Name].users++
	}
	return nil
}

// keep writes a transaction to the store. The data plane has it already: when the store fails, sessions live on, and
// are lost with the process.
func (s *storing) keep(t *txn) {
	begin := time.Now()
	err := s.store.Write(t.records)
	s.measures.Write(time.Since(begin))
	s.notKept(err, "sessions are")
}

// write puts records into the store; what names the loss if it fails.
func (s *storing) write(records []store.Record, what string) {
	s.notKept(s.store.Write(records), what)
}

// notKept counts what the store did not take.
func (s *storing) notKept(err error, what string) {
	if err == nil {
		return
	}
	if s.errors++; s.errors == 1 || s.errors%1000 == 0 {
		s.log.Error(what+" not kept for a restart of the control plane", "error", err, "times", s.errors)
	}
}
