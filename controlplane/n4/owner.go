// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"context"
	"log/slog"
	"time"

	"isthmus/controlplane/pfcp"
)

// own is the goroutine that owns associations: their table, timers and fate. Timers, answers to our requests and
// callers come as jobs, node messages of peers as packets.
func (s *Server) own(ctx context.Context) {
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	defer s.disown()
	for i := range s.cfg.Peers {
		if s.cfg.Peers[i].Connect {
			d := &dial{peer: &s.cfg.Peers[i]}
			s.dials = append(s.dials, d)
			s.dialNow(d)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.jobs.ready:
			s.jobs.lock.Lock()
			list := s.jobs.list
			s.jobs.list = nil
			s.jobs.lock.Unlock()
			for _, job := range list {
				job()
			}
		case p := <-s.nodes:
			s.nodeMessage(p)
			p.free()
		case <-sweep.C:
			s.answers.sweep()
		}
	}
}

// disown stops the timers when the server ends. Nothing is forgotten in the store.
func (s *Server) disown() {
	s.jobs.lock.Lock()
	s.jobs.stopped = true
	s.jobs.list = nil
	s.jobs.lock.Unlock()
	for _, a := range s.table.associations {
		stopTimer(a.beat)
		stopTimer(a.headless)
		a.window.fail(ErrStopped)
	}
	for _, d := range s.dials {
		stopTimer(d.timer)
	}
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// later runs a job of the owner after a while.
func (s *Server) later(d time.Duration, job func()) *time.Timer {
	return time.AfterFunc(d, func() { s.post(job) })
}

// restore takes over what the store knew: the peers do not notice that we were away.
func (s *Server) restore() {
	for _, st := range s.sessions.Associations() {
		peer := s.cfg.peerOf(st)
		if peer == nil && !s.cfg.AllowUnknown {
			s.log.Warn("PFCP association ends: its peer is not in the configuration any more", "association", st.ID, "address", st.Addr)
			if err := s.sessions.ForgetAssociation(st.ID); err != nil {
				s.record(eventStoreFailed, slog.LevelError, st.ID, "error", err)
			}
			continue
		}
		i := s.cfg.listenerOf(st.Addr.Addr())
		if i < 0 {
			s.log.Warn("PFCP association cannot be taken up again: no listen address of its family", "association", st.ID,
				"address", st.Addr)
			continue
		}
		k := s.sockets[i]
		for _, other := range s.sockets {
			if other.local == st.Local {
				k = other
			}
		}
		set, claimable := s.cfg.givesSet(peer, nodeName(st.Set))
		if claimable {
			set = nodeName(st.Set) // it was admitted to it
		}
		a := &association{
			Association: Association{ID: st.ID, Set: set, Addr: st.Addr, Features: st.Features},
			node:        pfcp.ParseNodeID(st.ID),
			k:           k, others: st.Others, configured: peer, since: st.Since,
			associationCounts: newCounts(&s.requests),
		}
		a.recovery.Store(st.Recovery.Unix())
		if !st.FailedAt.IsZero() {
			a.failedAt.Store(st.FailedAt.Unix())
			s.startHeadless(a)
		}
		s.table.associations[a.ID] = a
		if set != st.Set { // the configuration changed
			s.keep(a)
		}
		s.scheduleBeat(a, 0)
	}
	s.publish()
}

// install makes an association, or a changed one, the current one of its node id. It is in the store already.
func (s *Server) install(a *association) {
	s.table.associations[a.ID] = a
	s.publish()
}

// keep stores what changed in an association. A store that fails costs what it was for, not the association.
func (s *Server) keep(a *association) {
	if err := s.sessions.KeepAssociation(a.stored()); err != nil {
		s.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
	}
}

// current tells whether a job's association is still the one that it was about. An update makes a new value with the
// same counts; a new association has new ones.
func (s *Server) current(id string, counts *associationCounts) *association {
	if a := s.table.associations[id]; a != nil && a.associationCounts == counts {
		return a
	}
	return nil
}

// remove ends an association. Its sessions go to a living member of its SMF set when `inherit` allows, else they are
// deleted, paced by the session layer (row A12). The store forgets the association first: sessions of one that it does
// not know are deleted at the next start.
func (s *Server) remove(a *association, e event, inherit bool, args ...any) {
	stopTimer(a.beat)
	stopTimer(a.headless)
	delete(s.table.associations, a.ID)
	s.publish()
	var successor *association
	if members := s.index.Load().members(a); len(members) > 0 {
		successor = members[0]
	}
	if successor != nil && inherit {
		args = append(args, "successor", successor.ID, "sessions", s.sessions.Adopt(a.ID, successor.ID))
		s.event(eventAdopted)
	}
	if err := s.sessions.ForgetAssociation(a.ID); err != nil {
		s.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
	}
	if successor == nil || !inherit {
		s.release(a.ID)
	}
	a.window.fail(ErrNoAssociation)
	s.record(e, slog.LevelWarn, a.ID, args...)
	for _, d := range s.dials {
		if d.peer == a.configured {
			s.redial(d)
		}
	}
}

func (s *Server) release(id string) {
	s.sessions.Release(id, nil, func(deleted int) {
		s.log.Info("PFCP sessions deleted", "association", id, "sessions", deleted)
	})
}
