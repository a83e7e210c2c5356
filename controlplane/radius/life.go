// SPDX-License-Identifier: Apache-2.0

package radius

import "time"

// die gives the server up; its requests, and last, go to others. It is called with the lock, and returns without.
func (s *server) die(last *exchange) {
	var moved []*exchange
	var broken []*lane
	died := false
	if last != nil && s.faulty.Before(last.first) { // it is silent now
		s.fault = nil
	}
	if s.living.CompareAndSwap(true, false) && !s.shut {
		died = true
		s.since = time.Now()
		s.counts.Deaths++
		s.revival = time.AfterFunc(s.DeadTime, s.revive)
		if s.Probe > 0 {
			s.probes = time.AfterFunc(s.Probe, s.probe)
		}
		moved = s.evict()
		if s.tls != nil { // the next ones get a connection that works
			broken, s.lanes = s.lanes, nil
		}
	}
	fault := s.fault
	s.mu.Unlock()
	for _, l := range broken {
		l.close()
	}
	if died {
		s.changed(s.name, News{Turned: true, Fault: fault})
	}
	if last != nil {
		last.server.Store(nil)
		moved = append(moved, last)
	}
	for _, e := range moved {
		s.client.next(e)
	}
}

// evict takes every request from the server. The lock is held.
func (s *server) evict() (list []*exchange) {
	for _, l := range s.lanes {
		list = append(list, s.evictLane(l)...)
	}
	for _, e := range s.waiting {
		e.server.Store(nil)
		list = append(list, e)
	}
	s.waiting = nil
	return list
}

func (s *server) evictLane(l *lane) (list []*exchange) {
	for i := range l.slots {
		e := l.slots[i].e
		if e == nil {
			continue
		}
		s.release(e)
		if e.p.Code == StatusServer { // belongs to this server
			e.over = true
			continue
		}
		e.server.Store(nil)
		list = append(list, e)
	}
	return list
}

// revive believes that the server answers: it did, or DeadTime is over.
func (s *server) revive() {
	s.mu.Lock()
	changed := !s.shut && s.living.CompareAndSwap(false, true)
	if changed {
		s.since = time.Now()
		s.revival.Stop()
		if s.probes != nil {
			s.probes.Stop()
		}
	}
	s.mu.Unlock()
	if changed {
		s.changed(s.name, News{Alive: true, Turned: true})
	}
}

// probe asks a dead server whether it lives (RFC 5997): one packet a time, outside of the queue.
func (s *server) probe() {
	s.mu.Lock()
	if s.shut || s.living.Load() {
		s.mu.Unlock()
		return
	}
	s.probes.Reset(about(s.Probe))
	l := s.lane()
	if l == nil { // over TLS, a connection suffices
		s.mu.Unlock()
		return
	}
	s.counts.Probes++
	e := &exchange{p: &Packet{Code: StatusServer}}
	e.server.Store(s)
	e.timer = time.AfterFunc(s.Probe, func() {
		s.mu.Lock()
		if !e.over {
			e.over = true
			s.release(e)
		}
		s.mu.Unlock()
	})
	e.done = func(*Packet, error) { s.revive() }
	if err := s.prepare(e, l); err != nil {
		s.release(e)
		s.mu.Unlock()
		return
	}
	e.first = time.Now()
	packet := e.packet
	s.mu.Unlock()
	_ = l.send(packet)
}

func (s *server) close() {
	s.mu.Lock()
	s.shut = true
	list := s.evict()
	lanes := s.lanes
	s.lanes = nil
	for _, t := range []*time.Timer{s.revival, s.probes} {
		if t != nil {
			t.Stop()
		}
	}
	s.mu.Unlock()
	for _, l := range lanes {
		l.close()
	}
	for _, e := range list {
		e.finish(nil, ErrClosed)
	}
}
