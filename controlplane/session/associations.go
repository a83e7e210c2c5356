// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

const maxSetDeletions = 64 // deferredJobs by FQ-CSID that are under way

// associations are CP functions that the store knows; what concerns all sessions of one becomes a deferred job. mu of
// the table guards it.
type associations struct {
	*table
	commits queue
	file    *storing
	lines   *lines

	known map[string]n4.StoredAssociation
}

// Release is n4.Groups'.
func (p *associations) Release(association string, fqcsid [][]byte, done func(deleted int)) *pfcp.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.x.all(association)
	r := &deferredJob{key: fmt.Sprint("all ", all), of: all, stage: p.deletion, done: done}
	if len(fqcsid) > 0 {
		names := make([]string, len(fqcsid))
		for i := range fqcsid {
			names[i] = string(fqcsid[i])
		}
		slices.Sort(names)
		// An empty name stands for all sessions.
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
		r.of, r.limit = nil, maxSetDeletions
		for _, k := range all {
			for _, name := range names {
				k.name = name // there need not be one yet: sessions may be on their way to this owner
				r.of = append(r.of, k)
			}
		}
		r.key = fmt.Sprintf("set %#v", r.of)
	}
	if !p.commits.begin(r) {
		return rules.Refuse(pfcp.CauseCongestion, 0, "too many session set deletions are under way")
	}
	return nil
}

// ReleaseOrphans deletes, paced, the sessions of associations that the store does not know: we ended while their
// release was under way. Called once, at the start.
func (p *associations) ReleaseOrphans() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, o := range p.x.known {
		if _, known := p.known[id]; known || o.sessions == 0 || id == LineOwner && p.lines.to != nil {
			continue
		}
		p.log.Warn("sessions without association are deleted", "association", id, "sessions", o.sessions)
		o.gone = true
		p.commits.begin(&deferredJob{of: []groupKey{{owner: o.number}}, stage: p.deletion})
	}
}

// Retain is n4.Groups'.
func (p *associations) Retain(association string, keep []netip.Addr, done func(deleted int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.x.all(association)
	kept := func(seid uint64) bool {
		_, s, err := p.decoded(seid)
		return err != nil || slices.Contains(keep, s.CP.IPv4) || slices.Contains(keep, s.CP.IPv6)
	}
	p.commits.begin(&deferredJob{key: fmt.Sprint("all but ", all, keep), of: all, but: kept, stage: p.deletion,
		done: done})
}

// Adopt implements n4.Groups. Reports and set deletions treat the sessions as the successor's at once; each is moved in
// job. Until the last, the store keeps the failed association: after a restart meanwhile it is there, and fails again.
func (p *associations) Adopt(from, to string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.x.known[from]
	if old == nil || from == to || len(p.x.groups[groupKey{owner: old.number}]) == 0 {
		return 0
	}
	successor := p.x.owner(to)
	if successor.set == "" {
		successor.set = old.set
	}
	p.x.came++
	p.x.bequeath(old, successor, p.x.came)
	p.commits.begin(&deferredJob{of: []groupKey{{owner: old.number}}, stage: p.inherit, done: func(int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if o := p.x.known[from]; o == nil || o.gone {
			if err := p.storeAssociation(from, nil); err != nil {
				p.log.Error("an association that failed is not removed from the store", "association", from, "error",
					err)
			}
		}
	}})
	return old.sessions
}

// inherit moves a session to its association's successor. The data plane knows of neither.
func (p *associations) inherit(t *txn, seid uint64) *pfcp.Error {
	e, s, err := p.decoded(seid)
	if err != nil {
		return err
	}
	old, successor := e.owner, e.owner.current()
	if old == successor {
		return nil
	}
	was := groupsOf(s, old)
	s.Owner, s.Moved = successor.id, true
	moved := p.x.enter(s, e.number, successor)
	regroup := p.x.regroupAt(old.inherited, seid, was, groupsOf(s, successor))
	old.sessions--
	successor.sessions++
	t.onUndo(func() {
		successor.sessions--
		old.sessions++
		regroup()
		p.x.session[seid] = e.at
		p.x.records.Drop(moved.at)
	})
	t.records = append(t.records, sessionRecord(e.number, moved.data))
	t.touched[seid] = true
	t.onDone(func() {
		p.x.records.Drop(e.at)
		p.x.part(old)
	})
	return nil
}

// KeepAssociation is n4.Store'.
func (p *associations) KeepAssociation(a n4.StoredAssociation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.x.associate(a.ID, a.Set)
	return p.storeAssociation(a.ID, &a)
}

// ForgetAssociation is n4.Store'.
func (p *associations) ForgetAssociation(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.x.known[id]; o != nil {
		o.gone = true
		p.x.part(o)
	}
	if p.x.bequeathed(id) { // see Adopt
		return nil
	}
	return p.storeAssociation(id, nil)
}

// Associations is n4.Store'.
func (p *associations) Associations() []n4.StoredAssociation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.known))
}

// storeAssociation keeps an association for a restart, or removes it.
func (p *associations) storeAssociation(id string, a *n4.StoredAssociation) error {
	if a == nil {
		delete(p.known, id)
		return p.file.store.Write([]store.Record{store.Named(store.Association, id, nil)})
	}
	p.known[id] = *a
	data, err := json.Marshal(a)
	if err == nil {
		err = p.file.store.Write([]store.Record{store.Named(store.Association, id, data)})
	}
	return err
}

// Recovery is n4.Store'.
func (p *associations) Recovery() time.Time { return p.file.store.Recovery() }

// load is one of the store's.
func (p *associations) load(a n4.StoredAssociation) {
	p.known[a.ID] = a
	p.x.associate(a.ID, a.Set)
}

func decodeAssociation(data []byte) (a n4.StoredAssociation, err error) {
	err = json.Unmarshal(data, &a)
	return a, err
}
