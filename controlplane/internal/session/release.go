// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/internal/n4"
	"isthmus/controlplane/internal/pfcp"
)

// release is a set of sessions that are done with at our pace: deleted, or compiled anew.
type release struct {
	seids []uint64
	stage func(t *txn, seid uint64) *pfcp.Error
	left  int // not answered yet
	count int
	done  func(count int)
	// refused is told of each that could not be done with
	refused func(seid uint64, err *pfcp.Error)
}

// begin queues a release; the caller holds mu.
func (p *Plane) begin(r *release) {
	r.left = len(r.seids)
	if r.left == 0 {
		if r.done != nil {
			p.answers = append(p.answers, func() { r.done(0) })
		}
	} else {
		p.releases = append(p.releases, r)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// releaseSome makes jobs of the next few sessions: beside requests they take a part of each transaction, alone they have it
// to themselves, and never longer than one transaction takes (row A12).
func (p *Plane) releaseSome(seen map[uint64]bool) []*job {
	var jobs []*job
	for len(jobs) < pace && len(p.releases) > 0 {
		r := p.releases[0]
		if len(r.seids) == 0 {
			p.releases = p.releases[1:]
			continue
		}
		seid := r.seids[0]
		if seen[seid] {
			break
		}
		r.seids = r.seids[1:]
		jobs = append(jobs, &job{
			seid: seid,
			stage: func(t *txn) *pfcp.Error {
				if p.x.session[seid] == 0 {
					return refuse(pfcp.CauseContextNotFound, 0, "gone already")
				}
				return r.stage(t, seid)
			},
			finish: func(err *pfcp.Error, _ []api.Usage) func() {
				if err == nil {
					r.count++
				} else if r.refused != nil {
					r.refused(seid, err)
				}
				if r.left--; r.left == 0 && r.done != nil {
					return func() { r.done(r.count) }
				}
				return func() {}
			},
		})
	}
	return jobs
}

func (p *Plane) deletion(t *txn, seid uint64) *pfcp.Error {
	err := p.drop(t, seid)
	if err == nil {
		t.onDone(func() { p.count.Deleted++ })
	}
	return err
}

// those returns the SEIDs of an association's sessions that pass, in the order in which they came.
func (p *Plane) those(association string, pass func(s *Session) bool) []uint64 {
	type found struct{ number, seid uint64 }
	var list []found
	o := p.x.owners[association]
	if o == nil || o.sessions == 0 {
		return nil
	}
	for seid, at := range p.x.session {
		e := p.x.open(at)
		if e.owner != o {
			continue
		}
		if pass != nil {
			if s, err := decode(e.data); err != nil || !pass(s) {
				continue
			}
		}
		list = append(list, found{e.number, seid})
	}
	slices.SortFunc(list, func(a, b found) int { return int(int64(a.number) - int64(b.number)) })
	seids := make([]uint64, len(list))
	for i := range list {
		seids[i] = list[i].seid
	}
	return seids
}

// Release is n4.Sessions'.
func (p *Plane) Release(association string, fqcsid [][]byte, done func(deleted int)) {
	var pass func(*Session) bool
	if len(fqcsid) > 0 {
		pass = func(s *Session) bool { return s.belongsTo(fqcsid) }
	}
	p.releaseThose(association, pass, done)
}

// ReleaseOrphans deletes, paced, the sessions of associations that the store does not know: we ended while their release
// was under way. Called once, at the start.
func (p *Plane) ReleaseOrphans() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, err := p.store.associations()
	if err != nil {
		return err
	}
	for id, o := range p.x.owners {
		if o.sessions == 0 || slices.ContainsFunc(known, func(a n4.StoredAssociation) bool { return a.ID == id }) {
			continue
		}
		p.log.Warn("sessions without association are deleted", "association", id, "sessions", o.sessions)
		o.gone = true
		p.begin(&release{seids: p.those(id, nil), stage: p.deletion})
	}
	return nil
}

// Retain is n4.Sessions'.
func (p *Plane) Retain(association string, keep []netip.Addr, done func(deleted int)) {
	p.releaseThose(association, func(s *Session) bool {
		return !slices.Contains(keep, s.CP.IPv4) && !slices.Contains(keep, s.CP.IPv6)
	}, done)
}

func (p *Plane) releaseThose(association string, pass func(*Session) bool, done func(deleted int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(&release{seids: p.those(association, pass), stage: p.deletion, done: done})
}

// Adopt is n4.Sessions'. The sessions change hands at once; the store learns of it with each session's next record.
func (p *Plane) Adopt(from, to string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.x.owners[from]
	if old == nil || from == to {
		return 0
	}
	heir := p.x.owner(to)
	if heir.set == "" {
		heir.set = old.set
	}
	n := 0
	t := newTxn()
	for _, at := range p.x.session {
		e := p.x.open(at)
		if e.owner != old {
			continue
		}
		s, err := decode(e.data)
		if err != nil {
			continue
		}
		s.Owner, s.Moved = to, true
		t.records = append(t.records, record{e.number, p.x.enter(s, e.number, heir).data})
		t.onDone(func() { p.x.records.drop(at) })
		old.sessions--
		heir.sessions++
		n++
	}
	p.keep(t)
	t.finish()
	return n
}

// Count is n4.Sessions'.
func (p *Plane) Count(association string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if association == "" {
		return len(p.x.session)
	}
	if o := p.x.owners[association]; o != nil {
		return o.sessions
	}
	return 0
}

// Associations is n4.Sessions'.
func (p *Plane) Associations() []n4.StoredAssociation {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, err := p.store.associations()
	if err != nil {
		p.log.Error("the store's associations cannot be read", "error", err)
	}
	return list
}

// KeepAssociation is n4.Sessions'.
func (p *Plane) KeepAssociation(a n4.StoredAssociation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.x.associate(a.ID, a.Set)
	return p.store.put(bucketAssociations, a.ID, a)
}

// ForgetAssociation is n4.Sessions'.
func (p *Plane) ForgetAssociation(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.x.owners[id]; o != nil {
		o.gone = true
		p.x.part(o)
	}
	return p.store.delete(bucketAssociations, id)
}

// Recovery is n4.Sessions'.
func (p *Plane) Recovery() time.Time { return p.store.recovery }
