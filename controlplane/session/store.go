// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

func sessionRecord(number uint64, data []byte) store.Record {
	return store.Record{Kind: store.Session, Number: number, Data: data}
}

// storing is the file, and what of it is not in the sessions themselves.
type storing struct {
	store        *store.Store
	last         uint64 // number of the session that came last
	associations map[string]n4.StoredAssociation
	untidy       bool // the store is being compacted
}

// number is a session's place in the order in which they come, and its number in the store.
func (s *storing) number() uint64 {
	s.last++
	return s.last
}

// compact goes on with compacting the store, when it is worth it.
func (p *Manager) compact() {
	r, readings := &p.x.records, &p.snaps.records
	inMemory := func(yield func(store.Record) bool) {
		for number, data := range r.All() {
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
	live := r.Bytes + readings.Bytes + uint64(r.Count+readings.Count)*store.Overhead
	p.untidy, err = p.store.Compact(live, inMemory)
	if err != nil {
		p.log.Error("the session store is not compacted", "error", err)
	}
}

// storeUsage writes what changed of the usage that waits to be reported. Then the data plane may forget its events.
func (p *Manager) storeUsage() {
	p.snaps.listen()
	records, done := p.reports.flush(func(seid uint64) bool { return p.x.session[seid] == 0 })
	if len(records) > 0 {
		p.notKept(p.store.Write(records), "usage that waits for a CP function is")
	}
	p.answers = append(p.answers, done...)
	p.settleLater(p.reports.toSettle())
}

// storeAssociation keeps an association for a restart, or removes it.
func (s *storing) storeAssociation(id string, a *n4.StoredAssociation) error {
	if a == nil {
		delete(s.associations, id)
		return s.store.Write([]store.Record{store.Named(store.Association, id, nil)})
	}
	s.associations[id] = *a
	data, err := json.Marshal(a)
	if err == nil {
		err = s.store.Write([]store.Record{store.Named(store.Association, id, data)})
	}
	return err
}

func (s *storing) storeApplication(name string, list []pfcp.PFD) error {
	data, err := json.Marshal(list)
	if err == nil {
		err = s.store.Write([]store.Record{store.Named(store.Application, name, store.NamedData(name, data))})
	}
	return err
}

// Associations is n4.Sessions'.
func (p *Manager) Associations() []n4.StoredAssociation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.associations))
}

// load brings back sessions, associations and PFDs, and builds the indices. What cannot be read, or does not fit the
// configuration any more, is dropped and said, also to CP functions: by another recovery time stamp. It ends at a
// session of another version.
func (p *Manager) load() error {
	var dropped []store.Record
	err := p.store.Load(func(r store.Record) error {
		err := p.loadRecord(r)
		if errors.Is(err, rules.ErrVersion) {
			return err
		}
		if err != nil {
			if dropped = append(dropped, store.Record{Kind: r.Kind, Number: r.Number}); len(dropped) <= 10 {
				p.log.Error("a record of the session store is dropped", "kind", r.Kind, "number", r.Number, "error", err)
			}
		}
		return nil
	})
	if err == nil {
		if err := p.store.Write(append(p.shape(), dropped...)); err != nil { // a full disk; Compact makes it good
			p.log.Error("the session store is not written", "error", err)
		}
	}
	if err == nil && len(dropped) > 0 {
		p.log.Error("what was stored is dropped; the recovery time stamp is a new one", "records", len(dropped))
		err = p.store.Renew()
	}
	return err
}

func decodeAssociation(data []byte) (a n4.StoredAssociation, err error) {
	err = json.Unmarshal(data, &a)
	return a, err
}

func decodeApplication(data []byte) (a pfcp.ApplicationPFDs, err error) {
	name, list, ok := store.SplitData(data)
	if !ok {
		return a, rules.ErrEncoding
	}
	a.Application = name
	err = json.Unmarshal(list, &a.PFDs)
	return a, err
}

func (p *Manager) loadRecord(r store.Record) error {
	switch r.Kind {
	case store.Association:
		a, err := decodeAssociation(r.Data)
		if err != nil {
			return err
		}
		p.associations[a.ID] = a
		p.x.associate(a.ID, a.Set)
	case store.Application:
		a, err := decodeApplication(r.Data)
		if err != nil {
			return err
		}
		if filters, bad := rules.ExpandPFDs(a.PFDs); bad == nil {
			p.apps[a.Application], p.pfds[a.Application] = a.PFDs, filters
		}
	case store.Session:
		p.last = max(p.last, r.Number)
		s, err := rules.Decode(r.Data)
		if err != nil {
			return err
		}
		return p.restore(s, r.Number)
	case store.Line:
		p.loadLine(r)
	case store.Usage:
		rows, err := api.DecodeAll[api.Usage](r.Data)
		if err != nil {
			return err
		}
		p.reports.restore(r.Number, rows, p.x.session[r.Number] != 0)
	case store.Reading:
		return p.snaps.load(r.Number, r.Data)
	default:
		return errors.New("of an unknown kind")
	}
	return nil
}

// restore enters a stored session.
func (p *Manager) restore(s *rules.Session, number uint64) error {
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
	if s.CarriedOver() { // the report that had it may be behind us
		p.reports.deferred.settle[s.SEID] = true
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
