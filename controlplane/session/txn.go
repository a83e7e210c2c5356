// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"syscall"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/session/store"
)

// txn is one transaction in the making: what the data plane and the store are to do, and how to take back what was done
// in memory meanwhile.
type txn struct {
	changes []dp.Change
	records []store.Record
	undo    []func()
	uses    []use
	done    []func()        // when all is well
	touched map[uint64]bool // sessions; the contract takes an object once in a transaction
}

type mark struct{ changes, records, undo, uses, done int }

func newTxn() *txn { return &txn{touched: map[uint64]bool{}} }

func (t *txn) mark() mark {
	return mark{len(t.changes), len(t.records), len(t.undo), len(t.uses), len(t.done)}
}

// back takes back everything since the mark, the last first.
func (t *txn) back(m mark) {
	for i := len(t.undo) - 1; i >= m.undo; i-- {
		t.undo[i]()
	}
	for i := len(t.uses) - 1; i >= m.uses; i-- {
		t.uses[i].undo()
	}
	t.changes, t.records, t.undo, t.uses, t.done = t.changes[:m.changes], t.records[:m.records], t.undo[:m.undo], t.uses[:m.uses], t.done[:m.done]
}

// clear makes it as good as new, with its memory.
func (t *txn) clear() {
	clear(t.changes)
	clear(t.records)
	clear(t.undo)
	clear(t.uses)
	clear(t.done)
	clear(t.touched)
	t.changes, t.records, t.undo, t.uses, t.done = t.changes[:0], t.records[:0], t.undo[:0], t.uses[:0], t.done[:0]
}

func (t *txn) onUndo(fn func()) { t.undo = append(t.undo, fn) }
func (t *txn) onDone(fn func()) { t.done = append(t.done, fn) }

// finish does what was to be done when all is well.
func (t *txn) finish() {
	for _, fn := range t.done {
		fn()
	}
}

// refusal turns the data plane's answer into the one for the CP function.
func refusal(err error) *pfcp.Error {
	var refused *dp.RefusedError
	if !errors.As(err, &refused) {
		return refuse(pfcp.CauseSystemFailure, 0, "the data plane did not answer: "+err.Error())
	}
	e := refuse(pfcp.CauseRuleFailure, 0, refused.Error())
	switch syscall.Errno(refused.Code) {
	case syscall.ENOSPC, syscall.ENOMEM:
		e.Cause = pfcp.CauseNoResources
	case syscall.ENOTSUP:
		e.Cause = pfcp.CauseServiceNotSupported
	}
	if t, ok := failedRules[refused.RuleKind]; ok {
		e.Rule = &pfcp.FailedRule{Type: t, ID: refused.Rule}
	}
	return e
}

// failedRules are the contract's kinds of rules in PFCP's words (TS 29.244 §8.2.80).
var failedRules = map[uint32]pfcp.RuleType{
	api.RulePDR: pfcp.RulePDR, api.RuleFAR: pfcp.RuleFAR, api.RuleQER: pfcp.RuleQER, api.RuleURR: pfcp.RuleURR,
}

// holding counts the users of paths and policers. One that nobody uses any more stays for a while, so that a session that
// comes and goes does not make and unmake its path each time.
type holding struct {
	object
	users int
	idle  int64 // since when it has no users, nanoseconds
	// unsent: the data plane does not have it yet; it goes with the first session that needs it
	unsent bool
}

type holdings map[string]*holding // by kind and key

// use enters the objects of a session and leaves those of its former self.
func (h holdings) use(t *txn, now int64, objects, former []object) {
	for i := range objects {
		o := &objects[i]
		x := h[o.name]
		if x == nil {
			x = &holding{object: *o}
			h[o.name] = x
			t.changes = append(t.changes, dp.Change{Kind: o.kind, Key: o.key, Body: o.body})
			t.onUndo(func() { delete(h, x.name) })
		} else if x.unsent {
			x.unsent = false
			t.changes = append(t.changes, dp.Change{Kind: o.kind, Key: o.key, Body: o.body})
			t.onUndo(func() { x.unsent = true })
		}
		x.users++
		t.uses = append(t.uses, use{x, 1, x.idle})
	}
	for i := range former {
		if x := h[former[i].name]; x != nil {
			x.users--
			t.uses = append(t.uses, use{x, -1, x.idle})
			x.idle = now
		}
	}
}

// use is what a transaction changed of a holding.
type use struct {
	of    *holding
	users int
	idle  int64 // before
}

func (u *use) undo() {
	u.of.users -= u.users
	u.of.idle = u.idle
}

// sweep deletes what has had no users since a moment.
func (h holdings) sweep(t *txn, since int64) {
	for id, x := range h {
		if x.users == 0 && x.idle < since {
			if !x.unsent {
				t.changes = append(t.changes, dp.Change{Kind: x.kind, Key: x.key})
			}
			delete(h, id)
			t.onUndo(func() { h[id] = x })
		}
	}
}

// recount puts the numbers of users right after another configuration, which sessions have other objects under.
func (h holdings) recount(objects map[string]object, users map[string]int, now int64) {
	for id, x := range h {
		if x.users > 0 && users[id] == 0 {
			x.idle = now
		}
		x.users = users[id]
	}
	for id, o := range objects {
		if h[id] == nil {
			h[id] = &holding{object: o, users: users[id], unsent: true}
		}
	}
}

// share is what the sessions with one QER Correlation ID have in common: meters, which live on one worker.
type share struct {
	id     uint32
	worker uint16
	users  int
}

// shareKey is a correlation id of a CP function. That is who established the session, whoever has it now: the association of a
// session, and the set of an association, may change.
type shareKey struct{ association, id uint32 }

type shares struct {
	by   map[shareKey]*share
	used map[uint32]bool
	next uint32
}

// assign gives a session's correlated QERs their meters, and the session the worker that has them.
func (s *shares) assign(t *txn, session *Session, worker uint16, former []shareKey) ([]shareKey, *pfcp.Error) {
	var keys []shareKey
	fixed := false
	session.Worker = worker
	for i := range session.QER {
		q := &session.QER[i]
		q.Share = 0
		if q.Correlation == nil {
			continue
		}
		key := shareKey{session.Association, *q.Correlation}
		x := s.by[key]
		if x != nil && x.users > s.own(key, former) {
			if fixed && x.worker != session.Worker {
				return nil, lacks(pfcp.RuleQER, q.ID, pfcp.CauseNoResources, 28, "shares meters with sessions of two workers")
			}
			session.Worker, fixed = x.worker, true
		}
		keys = append(keys, key)
	}
	n := 0
	for i := range session.QER {
		if session.QER[i].Correlation == nil {
			continue
		}
		session.QER[i].Share = s.enter(t, keys[n], session.Worker)
		n++
	}
	s.leave(t, former)
	return keys, nil
}

func (s *shares) own(key shareKey, former []shareKey) int {
	n := 0
	for _, f := range former {
		if f == key {
			n++
		}
	}
	return n
}

func (s *shares) enter(t *txn, key shareKey, worker uint16) uint32 {
	x := s.by[key]
	if x == nil {
		for s.next == 0 || s.used[s.next] {
			s.next++
		}
		x = &share{id: s.next, worker: worker}
		s.by[key], s.used[x.id] = x, true
		s.next++
		t.onUndo(func() { delete(s.by, key); delete(s.used, x.id) })
	}
	before := x.worker
	x.worker = worker
	x.users++
	t.onUndo(func() { x.users--; x.worker = before })
	return x.id
}

func (s *shares) leave(t *txn, keys []shareKey) {
	for _, key := range keys {
		x := s.by[key]
		if x == nil {
			continue
		}
		x.users--
		if x.users == 0 {
			delete(s.by, key)
			delete(s.used, x.id)
		}
		t.onUndo(func() {
			x.users++
			s.by[key], s.used[x.id] = x, true
		})
	}
}

func (s *Session) shareKeys() []shareKey {
	var keys []shareKey
	for i := range s.QER {
		if c := s.QER[i].Correlation; c != nil {
			keys = append(keys, shareKey{s.Association, *c})
		}
	}
	return keys
}
