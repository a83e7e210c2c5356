// SPDX-License-Identifier: Apache-2.0

package session

import (
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// share is what the sessions with one QER Correlation ID have in common: meters, which live on one worker.
type share struct {
	id     uint32
	worker uint16
	users  int
}

// shareKey is a correlation id of the CP function that established the session. Later owners do not matter: a session's
// association and an association's set may change.
type shareKey struct{ association, id uint32 }

type shares struct {
	by   map[shareKey]*share
	used map[uint32]bool
	next uint32
}

// assign gives a session's correlated QERs their meters, and the session the worker that has them.
func (s *shares) assign(t *txn, session *rules.Session, worker uint16, former []shareKey) *pfcp.Error {
	fixed := false
	session.Worker = worker
	for _, q := range session.QER {
		if q.Correlation == nil {
			continue
		}
		key := shareKey{session.Association, *q.Correlation}
		x := s.by[key]
		if x != nil && x.users > s.own(key, former) {
			if fixed && x.worker != session.Worker {
				return rules.Lacks(pfcp.RuleQER, q.ID, pfcp.CauseNoResources, 28,
					"shares meters with sessions of two workers")
			}
			session.Worker, fixed = x.worker, true
		}
	}
	for i := range session.QER {
		q := &session.QER[i]
		if q.Share = 0; q.Correlation != nil {
			q.Share = s.enter(t, shareKey{session.Association, *q.Correlation}, session.Worker)
		}
	}
	s.leave(t, former)
	return nil
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

func shareKeys(s *rules.Session) []shareKey {
	var keys []shareKey
	for i := range s.QER {
		if c := s.QER[i].Correlation; c != nil {
			keys = append(keys, shareKey{s.Association, *c})
		}
	}
	return keys
}
