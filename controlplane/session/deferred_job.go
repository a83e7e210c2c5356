// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// deferredJob is a set of sessions that are done with at our pace: deleted, or compiled anew.
type deferredJob struct {
	// key says what it is of. A second one of the same while the first is under way is one with it.
	key   string
	seids iter.Seq[uint64] // 0: one that was looked at and passed over
	upTo  uint64           // what came into the group later is not meant
	again bool             // upTo has moved since the walk began
	stage func(t *txn, seid uint64) *pfcp.Error
	over  bool
	left  int // taken from seids, and not done with
	count int
	done  func(count int)
	// refused is called for each that was refused
	refused func(seid uint64, err *pfcp.Error)

	next func() (uint64, bool)
	stop func()
	held uint64 // in this transaction already: for the next one
}

// begin queues a release; the caller holds mu.
func (p *committer) begin(r *deferredJob) {
	r.upTo = p.x.came
	n := slices.IndexFunc(p.deferredJobs, func(q *deferredJob) bool { return r.key != "" && q.key == r.key })
	if n < 0 {
		p.deferredJobs = append(p.deferredJobs, r)
	} else {
		p.deferredJobs[n].upTo, p.deferredJobs[n].again = r.upTo, p.deferredJobs[n].next != nil
	}
	p.rouse()
}

// take returns the next session, 0 for one that is not meant; false: there are no more.
func (r *deferredJob) take() (seid uint64, more bool) {
	if seid, r.held = r.held, 0; seid != 0 {
		return seid, true
	}
	if r.next == nil {
		r.next, r.stop = iter.Pull(r.seids)
	}
	seid, more = r.next()
	if !more && r.again {
		r.end()
		r.again = false
		return 0, true
	}
	return seid, more
}

func (r *deferredJob) end() {
	if r.stop != nil {
		r.stop()
	}
	r.next, r.stop = nil, nil
}

// someDeferred makes jobs of the next few sessions: beside requests they take a part of each transaction, alone they
// have it to themselves, and never longer than one transaction takes (row A12). Deferred jobs alternate.
func (p *committer) someDeferred(seen map[uint64]bool) []*job {
	var jobs []*job
	for looked := 0; len(jobs) < pace && looked < someSessions && len(p.deferredJobs) > 0; looked++ {
		r := p.deferredJobs[0]
		seid, more := r.take()
		switch {
		case !more:
			r.end()
			r.over = true
			p.deferredJobs = p.deferredJobs[1:]
			p.concluded(r)
		case seid == 0 || p.x.session[seid] == 0:
		case seen[seid]:
			r.held = seid
			looked = someSessions
		default:
			seen[seid] = true
			jobs = append(jobs, p.jobOf(r, seid))
		}
	}
	if len(p.deferredJobs) > 1 {
		p.deferredJobs = append(p.deferredJobs[1:], p.deferredJobs[0])
	}
	return jobs
}

// concluded tells who waits for a release that is over.
func (p *committer) concluded(r *deferredJob) {
	if r.over && r.left == 0 && r.done != nil {
		p.later(func() { r.done(r.count) })
	}
}

func (p *committer) jobOf(r *deferredJob, seid uint64) *job {
	r.left++
	return &job{
		seid: seid,
		stage: func(t *txn) *pfcp.Error {
			if p.x.session[seid] == 0 {
				return rules.Refuse(pfcp.CauseContextNotFound, 0, "gone already")
			}
			return r.stage(t, seid)
		},
		finish: func(err *pfcp.Error, _ []api.Usage) func() {
			if err == nil {
				r.count++
			} else if r.refused != nil {
				r.refused(seid, err)
			}
			r.left--
			p.concluded(r)
			return func() {}
		},
	}
}

const maxSetDeletions = 64 // deferredJobs by FQ-CSID that are under way

// Release is n4.Sessions'.
func (p *Manager) Release(association string, fqcsid [][]byte, done func(deleted int)) *pfcp.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.x.all(association)
	r := &deferredJob{key: fmt.Sprint("all ", all), stage: p.deletion, done: done}
	r.seids = p.x.among(&r.upTo, all...)
	if len(fqcsid) > 0 {
		names := make([]string, len(fqcsid))
		for i := range fqcsid {
			names[i] = string(fqcsid[i])
		}
		slices.Sort(names)
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" }) // that would be all sessions
		var keys []groupKey
		for _, k := range all {
			for _, name := range names {
				k.name = name // there need not be one yet: sessions may be on their way to this owner
				keys = append(keys, k)
			}
		}
		r.key = fmt.Sprintf("set %q", keys)
		r.seids = p.x.among(&r.upTo, keys...)
		waiting := 0
		for _, q := range p.commits.deferredJobs {
			if q.key != r.key && strings.HasPrefix(q.key, "set ") {
				waiting++
			}
		}
		if waiting >= maxSetDeletions {
			return rules.Refuse(pfcp.CauseCongestion, 0, "too many session set deletions are under way")
		}
	}
	p.commits.begin(r)
	return nil
}

// all are the groups of an association's sessions.
func (x *index) all(association string) (keys []groupKey) {
	for _, o := range x.ownersOf(association) {
		keys = append(keys, groupKey{owner: o.number})
	}
	return keys
}

// ReleaseOrphans deletes, paced, the sessions of associations that the store does not know: we ended while their
// release was under way. Called once, at the start.
func (p *Manager) ReleaseOrphans() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, o := range p.x.owners {
		if _, known := p.associations[id]; known || o.sessions == 0 || id == LineOwner && p.lines.to != nil {
			continue
		}
		p.log.Warn("sessions without association are deleted", "association", id, "sessions", o.sessions)
		o.gone = true
		r := &deferredJob{stage: p.deletion}
		r.seids = p.x.among(&r.upTo, groupKey{owner: o.number})
		p.commits.begin(r)
	}
}

// Retain is n4.Sessions'.
func (p *Manager) Retain(association string, keep []netip.Addr, done func(deleted int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.x.all(association)
	r := &deferredJob{key: fmt.Sprint("all but ", all, keep), stage: p.deletion, done: done}
	r.seids = func(yield func(uint64) bool) {
		for seid := range p.x.among(&r.upTo, all...) {
			if e, there := p.x.at(seid); there {
				s, err := rules.Decode(e.data)
				if err != nil || slices.Contains(keep, s.CP.IPv4) || slices.Contains(keep, s.CP.IPv6) {
					seid = 0
				}
			}
			if !yield(seid) {
				return
			}
		}
	}
	p.commits.begin(r)
}

// Adopt is n4.Sessions'. Reports and set deletions take the sessions as the successor's at once; each changes hands in
// job. Until the last has, the store keeps the association that failed: at a restart meanwhile it is there, and
// fails again.
func (p *Manager) Adopt(from, to string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.x.owners[from]
	if old == nil || from == to || len(p.x.groups[groupKey{owner: old.number}]) == 0 {
		return 0
	}
	successor := p.x.owner(to)
	if successor.set == "" {
		successor.set = old.set
	}
	p.x.bequeath(old, successor)
	r := &deferredJob{stage: p.inherit, done: func(int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if o := p.x.owners[from]; o == nil || o.gone {
			if err := p.storeAssociation(from, nil); err != nil {
				p.log.Error("an association that failed is not removed from the store", "association", from, "error", err)
			}
		}
	}}
	r.seids = p.x.among(&r.upTo, groupKey{owner: old.number})
	p.commits.begin(r)
	return old.sessions
}

// inherit moves a session to its association's successor. The data plane knows of neither.
func (p *Manager) inherit(t *txn, seid uint64) *pfcp.Error {
	e, _ := p.x.at(seid)
	s, err := rules.Decode(e.data)
	if err != nil {
		return rules.Refuse(pfcp.CauseSystemFailure, 0, err.Error())
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

// KeepAssociation is n4.Sessions'.
func (p *Manager) KeepAssociation(a n4.StoredAssociation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.x.associate(a.ID, a.Set)
	return p.storeAssociation(a.ID, &a)
}

// ForgetAssociation is n4.Sessions'.
func (p *Manager) ForgetAssociation(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.x.owners[id]; o != nil {
		o.gone = true
		p.x.part(o)
	}
	if p.x.bequeathed(id) { // see Adopt
		return nil
	}
	return p.storeAssociation(id, nil)
}

// Recovery is n4.Sessions'.
func (p *Manager) Recovery() time.Time { return p.file.store.Recovery() }
