// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/internal/dp"
	"isthmus/controlplane/internal/pfcp"
)

// replan is what another configuration makes of the sessions: everything that is derived from both, made anew. Another
// first instance of an interface, or another endpoint, gives rules other network instances, paths and places in the index.
type replan struct {
	set     *Settings
	index   *index // its tables alone are taken over
	objects map[string]object
	users   map[string]int
	lost    []uint64
	changed []uint64          // whose body is another now
	moved   map[uint64][]byte // whose worker is no more
}

// Replan prepares for another configuration: it returns the deletions of the sessions that cannot be under it, to go in one
// transaction with the configuration's own changes. commit is to be called when that was accepted; until then nothing has
// changed. Sessions that look different under it are sent again, paced.
func (p *Plane) Replan(set *Settings) (changes []dp.Change, commit func()) {
	r := p.replan(set)
	for _, seid := range r.lost {
		changes = append(changes, dp.Change{Kind: api.KindSession, Key: Key(seid)})
	}
	return changes, func() { p.adopt(r) }
}

func (p *Plane) replan(set *Settings) *replan {
	r := &replan{set: set, index: newIndex(set), objects: map[string]object{}, users: map[string]int{}, moved: map[uint64][]byte{}}
	for _, seid := range p.inOrder() { // of two that want the same address now, the older one has it
		s, err := decode(p.x.session[seid].data)
		if err != nil {
			r.lost = append(r.lost, seid)
			continue
		}
		old := p.occupied(s)
		if set.fit(s) {
			r.moved[seid] = encode(s)
		}
		c, bad := (&compiler{set: set, pfds: p.pfds, s: s, lenient: true}).run()
		if bad == nil {
			if taken, other := r.index.conflict(seid, c); !taken && other == 0 {
				r.add(seid, c, !bytes.Equal(old.body, c.body))
				continue
			}
		}
		delete(r.moved, seid)
		r.lost = append(r.lost, seid)
	}
	return r
}

func (r *replan) add(seid uint64, c *compiled, changed bool) {
	r.index.add(seid, c)
	for _, o := range c.objects {
		r.objects[o.id()] = o
		r.users[o.id()]++
	}
	if changed {
		r.changed = append(r.changed, seid)
	}
}

// inOrder are all sessions, the oldest first.
func (p *Plane) inOrder() []uint64 {
	list := make([]uint64, 0, len(p.x.session))
	for seid := range p.x.session {
		list = append(list, seid)
	}
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Compare(p.x.session[a].number, p.x.session[b].number) })
	return list
}

// fit moves a session to a worker that is there; sessions that share meters go to the same one. It tells whether it did.
func (set *Settings) fit(s *Session) bool {
	workers := uint16(max(set.Workers, 1))
	if s.Worker < workers {
		return false
	}
	s.Worker %= workers
	return true
}

// adopt takes another configuration over.
func (p *Plane) adopt(r *replan) {
	t := newTxn()
	for _, seid := range r.lost {
		if err := p.drop(t, seid); err != nil { // unreadable: what it occupied is in none of the new tables
			p.log.Error("a session cannot be read", "session", Key(seid), "error", err)
			e := p.x.session[seid]
			e.owner.sessions--
			delete(p.x.session, seid)
			t.records = append(t.records, record{e.number, nil})
		}
	}
	for seid, data := range r.moved {
		e := p.x.session[seid]
		p.x.session[seid] = &entry{data: data, number: e.number, owner: e.owner}
		t.records = append(t.records, record{e.number, data})
	}
	p.keep(t)
	t.finish()
	if len(r.lost) > 0 {
		p.log.Warn("sessions ended: the configuration has no network instance for them any more", "sessions", len(r.lost))
	}
	x, made := p.x, r.index
	x.local, x.peer, x.host, x.prefix = made.local, made.peer, made.host, made.prefix
	x.lengths, x.names, x.locals = made.lengths, made.names, made.locals
	x.configure(r.set)
	p.set = r.set
	p.objects.recount(r.objects, r.users, x.now().UnixNano())
	for _, s := range p.shares.by {
		s.worker %= uint16(max(r.set.Workers, 1))
	}
	p.begin(&release{seids: r.changed, stage: p.recompile, refused: p.behind})
}

// behind tells of a session that the data plane refused as it would be now. It goes on as it was; the next comparison with
// the data plane tries again.
func (p *Plane) behind(seid uint64, err *pfcp.Error) {
	if p.x.session[seid] != nil {
		p.log.Error("a session goes on as it was under the former configuration", "session", Key(seid), "error", err)
	}
}
