// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/pool"
)

// table has the sessions, and their shared objects. It makes, changes and ends them, each in a transaction that can be
// undone. Callers hold mu.
type table struct {
	log *slog.Logger

	// changing is held while sessions change: by a batch of requests, or by reconciliation. Taken before mu, which
	// reconciliation does not hold while it waits for the data plane.
	changing sync.Mutex
	mu       sync.Mutex
	set      *rules.Settings
	pfds     rules.PFDs
	x        *index // finds
	objects  holdings
	shares   shares
	last     uint64         // number of the session that came last
	compile  rules.Compiler // its memory is used again and again
	bodies   rules.Arena    // of the transaction
	count    Counters
	client   Committer // of the data plane that the sessions are in; nil: away
	boot     uint64    // of the data plane that was attached last
	audience audience
}

// audience keeps up with the sessions. Calls come with mu held.
type audience interface {
	// made notes a session that a transaction may create or replace.
	made(s *rules.Session)
	// ends adds what the store needs, besides, when a session is gone.
	ends(t *txn, seid uint64)
	// ended and changed are called when the data plane has done it.
	ended(t *txn, e entry, s *rules.Session)
	changed(e entry, old, s *rules.Session)
	// used is called with the usage that a transaction reports, before the store gets it.
	used(t *txn, boot uint64, rows []api.Usage)
}

func newTable(set *rules.Settings, log *slog.Logger) *table {
	p := &table{log: log, set: set, pfds: rules.PFDs{}, x: newIndex(set), objects: holdings{},
		shares: shares{by: map[shareKey]*share{}, used: map[uint32]bool{}, next: 1},
		count:  Counters{Refused: map[uint8]uint64{}}}
	p.x.reachable = newReachable()
	return p
}

// number is a session's place in the order in which they come, and its number in the store.
func (p *table) number() uint64 {
	p.last++
	return p.last
}

// ownerFor returns the owner for a new session; an owner without sessions is removed when the request fails.
func (p *table) ownerFor(t *txn, from *n4.Association) *owner {
	known := p.x.known[from.ID] != nil
	o := p.x.owner(from.ID)
	if !known {
		t.onUndo(func() { p.x.part(o) })
	}
	o.set = from.Set
	return o
}

// insert puts a session that is new into the transaction.
func (p *table) insert(t *txn, s *rules.Session, o *owner) *pfcp.Error {
	if err := p.shares.assign(t, s, p.spread(s.SEID), nil); err != nil {
		return err
	}
	if err := p.x.pipes.settle(p.set, s); err != nil {
		return err
	}
	c, err := p.compiled(s)
	if err != nil {
		return err
	}
	if err := p.settleConflicts(t, s, c); err != nil {
		return err
	}
	e := p.x.enter(s, p.number(), o)
	p.x.add(s.SEID, c)
	o.sessions++
	regroup := p.x.regroup(s.SEID, nil, groupsOf(s, o))
	t.onUndo(func() {
		regroup()
		delete(p.x.session, s.SEID)
		p.x.records.Drop(e.at)
		p.x.remove(s.SEID, c)
		o.sessions--
	})
	p.put(t, s.SEID, e, c, nil)
	return nil
}

// spread gives each session an owner among the workers.
func (p *table) spread(seid uint64) uint16 {
	return uint16((seid >> 32) * uint64(max(p.set.Workers, 1)) >> 32)
}

// put enters a session's object and its record into the transaction.
func (p *table) put(t *txn, seid uint64, e entry, c, former *rules.Compiled) {
	var before []rules.Object
	if former != nil {
		before = former.Objects
	}
	p.objects.use(t, pool.Stamp(p.x.now()), c.Objects, before)
	t.changes = append(t.changes, dp.Change{Kind: api.KindSession, Key: rules.Key(seid), Body: c.Body})
	t.records = append(t.records, sessionRecord(e.number, e.data))
	t.touched[seid] = true
}

// settleConflicts refuses what is another session's, or takes the UE address from it (row A5).
func (p *table) settleConflicts(t *txn, s *rules.Session, c *rules.Compiled) *pfcp.Error {
	for {
		at := p.x.conflict(s.SEID, c)
		switch {
		case at.tunnel:
			return at.refusal(rules.IEFTEID, "the F-TEID is another session's")
		case at.other == 0:
			return nil
		case s.Line != nil:
			return p.others(&at)
		case !p.set.Takeover:
			return at.refusal(rules.IEUEIP, "the UE address is a live session's")
		case t.touched[at.other]:
			return errPostponed
		}
		p.log.Info("a session gives way to a new one with its UE address", "session", rules.Key(at.other))
		if err := p.drop(t, at.other); err != nil {
			return err
		}
	}
}

func (c *conflict) refusal(ie uint16, text string) *pfcp.Error {
	return rules.Fault(pfcp.RulePDR, uint32(c.pdr), ie, text)
}

// others names the owner of a conflict to a subscriber's front end. The owner keeps it: authentication that assigns
// twice is a mistake.
func (p *table) others(at *conflict) *pfcp.Error {
	what, prefix := "address", at.ue.Prefix.String()
	switch {
	case at.ue.Framed:
		what = "framed route"
	case at.ue.Prefix.IsSingleIP():
		prefix = at.ue.Prefix.Addr().String()
	}
	name := rules.Key(at.other)
	if _, s, err := p.decoded(at.other); err == nil {
		name = cmp.Or(s.UserID, name)
	}
	return rules.Refuse(pfcp.CauseRuleFailure, 0, fmt.Sprintf("%s %s is %s's", what, prefix, name))
}

// compiled is a session for the transaction that is being made.
func (p *table) compiled(s *rules.Session) (*rules.Compiled, *pfcp.Error) {
	c, err := p.compile.Compile(p.context(rules.Context{Arena: &p.bodies}), s)
	if err == nil {
		p.audience.made(s)
	}
	return c, err
}

// context is what sessions are compiled under now, with these options.
func (p *table) context(with rules.Context) rules.Context {
	with.Set, with.PFDs, with.Known = p.set, p.pfds, p.objects
	return with
}

// holds is what a session occupies now, without its body.
func (p *table) holds(s *rules.Session) *rules.Compiled {
	c, err := p.compile.Compile(p.context(rules.Context{Bare: true, Lenient: true}), s)
	if err != nil {
		return &rules.Compiled{}
	}
	return c
}

// occupied is what a session holds now.
func (p *table) occupied(s *rules.Session) *rules.Compiled {
	return rules.Occupied(p.set, p.pfds, s)
}

// decoded is a copy of a session; nil without one, or if it is unreadable.
func (p *table) decoded(seid uint64) (entry, *rules.Session, *pfcp.Error) {
	e, _ := p.x.at(seid)
	s, err := rules.Decode(e.data)
	if err != nil {
		return e, nil, rules.Refuse(pfcp.CauseSystemFailure, 0, err.Error())
	}
	return e, s, nil
}

// drop takes a session out.
func (p *table) drop(t *txn, seid uint64) *pfcp.Error {
	e, s, err := p.decoded(seid)
	if err != nil {
		return err
	}
	return p.dropThis(t, e, s)
}

// dropThis is drop of a session that is decoded.
func (p *table) dropThis(t *txn, e entry, s *rules.Session) *pfcp.Error {
	seid := s.SEID
	c := p.holds(s)
	p.shares.leave(t, shareKeys(s))
	p.objects.use(t, pool.Stamp(p.x.now()), nil, c.Objects)
	delete(p.x.session, seid)
	p.x.remove(seid, c)
	e.owner.sessions--
	regroup := p.x.regroup(seid, groupsOf(s, e.owner), nil)
	t.onUndo(func() {
		regroup()
		p.x.session[seid] = e.at
		p.x.add(seid, c)
		e.owner.sessions++
	})
	t.touched[seid] = true
	t.changes = append(t.changes, dp.Change{Kind: api.KindSession, Key: rules.Key(seid)})
	t.records = append(t.records, sessionRecord(e.number, nil))
	p.audience.ends(t, seid)
	t.onDone(func() {
		p.audience.ended(t, e, s)
		p.x.records.Drop(e.at)
		p.x.released(c)
		p.x.part(e.owner)
	})
	return nil
}

// replace puts a session in the place of its former self.
func (p *table) replace(t *txn, seid uint64, e entry, o *owner, old, s *rules.Session) *pfcp.Error {
	if err := p.shares.assign(t, s, old.Worker, shareKeys(old)); err != nil {
		return err
	}
	if err := p.x.pipes.settle(p.set, s); err != nil {
		return err
	}
	former := p.holds(old)
	c, err := p.compiled(s)
	if err != nil {
		return err
	}
	if err := p.settleConflicts(t, s, c); err != nil {
		return err
	}
	changed := p.x.enter(s, e.number, o)
	p.x.remove(seid, former)
	p.x.add(seid, c)
	e.owner.sessions--
	o.sessions++
	regroup := p.x.regroup(seid, groupsOf(old, e.owner), groupsOf(s, o))
	t.onUndo(func() {
		regroup()
		o.sessions--
		e.owner.sessions++
		p.x.session[seid] = e.at
		p.x.records.Drop(changed.at)
		p.x.remove(seid, c)
		p.x.add(seid, former)
	})
	p.put(t, seid, changed, c, former)
	t.onDone(func() {
		p.audience.changed(e, old, s)
		p.x.records.Drop(e.at)
		p.x.released(former)
		p.x.part(e.owner)
	})
	return nil
}

// recompile sends a session again, as it is now. Rules of an application without PFDs match nothing.
func (p *table) recompile(t *txn, seid uint64) *pfcp.Error {
	e, s, err := p.decoded(seid)
	if err != nil {
		return err
	}
	c := p.occupied(s)
	p.put(t, seid, e, c, c)
	return nil
}

// Settings are the ones in use.
func (p *table) Settings() *rules.Settings {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set
}

// Session returns a copy of a session, nil without one.
func (p *table) Session(seid uint64) *rules.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, s, _ := p.decoded(seid)
	return s
}

func (p *table) deletion(t *txn, seid uint64) *pfcp.Error {
	err := p.drop(t, seid)
	if err == nil {
		t.onDone(func() { p.count.Deleted++ })
	}
	return err
}
