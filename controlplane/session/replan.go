// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"reflect"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/pool"
)

// replan is the sessions under another configuration, with all that is derived from both. Another first instance of an
// interface, or another endpoint, gives rules other network instances, paths and index entries.
type replan struct {
	set     *rules.Settings
	index   *index // its tables alone are taken over
	objects map[string]rules.Object
	users   map[string]int
	lost    []uint64
	changed []uint64 // whose body is another now
	moved   []uint64 // whose worker is no more, or whose pipe is another
	place   map[uint64]place
	piped   map[uint64][]byte // bodies of changed lines with a pipe: the data plane takes no scheduler without them
	upTo    uint64            // number of the last session that was looked at
	// unshaped counts sessions that continue without a free pipe.
	unshaped int
}

// place is where a session is moved.
type place struct {
	worker uint16
	pipe   rules.Pipe
}

func newReplan(set *rules.Settings) *replan {
	return &replan{set: set, index: newIndex(set), objects: map[string]rules.Object{}, users: map[string]int{},
		place: map[uint64]place{}, piped: map[uint64][]byte{}}
}

// reconfigure prepares another configuration. It returns deletions of sessions that cannot exist under it, and lines
// that its scheduler must find in their pipes. They go in one transaction, before and behind the configuration's own
// changes. Then the caller calls commit with what URRs reported; until then nothing has changed. Sessions that differ
// are sent at a bounded pace.
func (p *planner) reconfigure(set *rules.Settings) (lost, piped []dp.Change, commit func(usage []api.Usage)) {
	if p.set.SameFor(set) {
		return nil, nil, func([]api.Usage) {
			p.x.configure(set)
			p.use(set)
		}
	}
	r := p.replan(set)
	for _, seid := range r.lost {
		lost = append(lost, dp.Change{Kind: api.KindSession, Key: rules.Key(seid)})
	}
	for seid, body := range r.piped {
		piped = append(piped, dp.Change{Kind: api.KindSession, Key: rules.Key(seid), Body: body})
	}
	return lost, piped, func(usage []api.Usage) { p.adopt(r, usage) }
}

func (p *planner) replan(set *rules.Settings) *replan {
	r := p.prepared
	if p.prepared = nil; r == nil || !reflect.DeepEqual(r.set, set) {
		r = newReplan(set)
	}
	rest := p.after(r.upTo)
	slices.SortFunc(rest, byNumber)
	for _, s := range rest { // of two that want the same address now, the older one has it
		e, _ := p.x.at(s.seid)
		r.take(p.table, s.seid, e)
	}
	return r
}

// take looks at the next session.
func (r *replan) take(p *table, seid uint64, e entry) {
	r.upTo = e.number
	s, err := rules.Decode(e.data)
	if err != nil || !r.enter(p, s) {
		r.lost = append(r.lost, seid)
	}
}

// enter finds out what a session is under the configuration; false: it cannot be.
func (r *replan) enter(p *table, s *rules.Session) bool {
	old := p.occupied(s)
	had := place{s.Worker, s.Pipe}
	r.set.Fit(s)
	if err := r.index.pipes.settle(r.set, s); err != nil {
		if s.Line != nil { // the data plane has no place for it
			return false
		}
		r.unshaped++
	}
	c, bad := r.compile(p, s)
	if bad != nil {
		return false
	}
	if r.index.conflict(s.SEID, c) != (conflict{}) {
		return false
	}
	r.index.add(s.SEID, c)
	for _, o := range c.Objects {
		r.objects[o.Name] = o
		r.users[o.Name]++
	}
	if !bytes.Equal(old.Body, c.Body) {
		r.changed = append(r.changed, s.SEID)
		if s.Line != nil && c.Pipe != 0 {
			r.piped[s.SEID] = c.Body
		}
	}
	if now := (place{s.Worker, s.Pipe}); now != had {
		r.moved, r.place[s.SEID] = append(r.moved, s.SEID), now
	}
	return true
}

// forget takes out what enter put in.
func (r *replan) forget(p *table, s *rules.Session) bool {
	if at, moved := r.place[s.SEID]; moved {
		s.Worker, s.Pipe = at.worker, at.pipe
		delete(r.place, s.SEID)
	}
	delete(r.piped, s.SEID)
	c, bad := r.compile(p, s)
	if bad != nil {
		return false
	}
	r.index.remove(s.SEID, c)
	for _, o := range c.Objects {
		r.users[o.Name]--
	}
	return true
}

func (r *replan) compile(p *table, s *rules.Session) (*rules.Compiled, *pfcp.Error) {
	return rules.Compile(rules.Context{Set: r.set, PFDs: p.pfds, Known: p.objects, Lenient: true}, s)
}

// adopt takes another configuration over.
func (p *planner) adopt(r *replan, usage []api.Usage) {
	p.digests = nil
	t := newTxn()
	t.usage = usage
	for _, seid := range r.lost {
		if err := p.drop(t, seid); err != nil { // unreadable: its addresses are in none of the new tables
			p.log.Error("a session cannot be read", "session", rules.Key(seid), "error", err)
			e, _ := p.x.at(seid)
			e.owner.sessions--
			p.x.groups.expel(seid)
			delete(p.x.session, seid)
			t.records = append(t.records, sessionRecord(e.number, nil))
			t.onDone(func() { p.x.records.Drop(e.at) })
		}
	}
	for _, seid := range r.moved {
		e, s, err := p.decoded(seid)
		to, moved := r.place[seid]
		if err != nil || !moved || to == (place{s.Worker, s.Pipe}) { // it ended, or is another, since
			continue
		}
		s.Worker, s.Pipe = to.worker, to.pipe
		t.records = append(t.records, sessionRecord(e.number, p.x.enter(s, e.number, e.owner).data))
		t.onDone(func() { p.x.records.Drop(e.at) })
	}
	p.file.keep(t)
	t.finish()
	if r.unshaped > 0 {
		p.log.Warn(tooFewPipes, "sessions", r.unshaped)
	}
	if len(r.lost) > 0 {
		p.log.Warn("sessions ended: the configuration has no network instance, or no pipe, for them any more",
			"sessions", len(r.lost))
	}
	x, made := p.x, r.index
	x.local, x.peer, x.peer6, x.host, x.prefix = made.local, made.peer, made.peer6, made.host, made.prefix
	x.names, x.locals, x.slots, x.pipes = made.names, made.locals, made.slots, made.pipes
	x.reachable.everything()
	x.configure(r.set)
	p.use(r.set)
	p.objects.recount(r.objects, r.users, pool.Stamp(x.now()))
	for _, s := range p.shares.by {
		s.worker %= uint16(max(r.set.Workers, 1))
	}
	if len(r.changed) > 0 {
		p.commits.begin(&deferredJob{seids: slices.Values(r.changed), stage: p.recompile, refused: p.behind})
	}
}

// behind records that the data plane refused a session's new state. The session stays as it was; the next comparison
// with the data plane tries again.
func (p *planner) behind(seid uint64, err *pfcp.Error) {
	if p.x.session[seid] != 0 {
		p.log.Error("a session goes on as it was under the former configuration", "session", rules.Key(seid), "error",
			err)
	}
}

// use takes over settings that compile every session to the same.
func (p *planner) use(set *rules.Settings) {
	p.set = set
	p.deferred.pairs.Store(set.Monitoring == "pair")
}
