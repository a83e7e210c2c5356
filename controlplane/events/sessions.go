// SPDX-License-Identifier: Apache-2.0

package events

import (
	"sync"
	"time"
)

// Sessions publishes events of sessions one by one at a low rate, and counts the others: thousands a second cost an
// addition each.
type Sessions struct {
	log  *Log
	name func(seid uint64) string

	lock                           sync.Mutex
	gate                           Gate
	established, modified, deleted uint64 // not published
}

// NewSessions publishes up to 20 sessions a second, under the name that name returns.
func NewSessions(log *Log, name func(seid uint64) string) *Sessions {
	return &Sessions{log: log, name: name, gate: Gate{Most: 20, Window: time.Second}}
}

// Established is called for each session that was made.
func (s *Sessions) Established(seid uint64, association string) {
	s.one("session.established", &s.established, seid, association)
}

// Deleted is called for each session that went.
func (s *Sessions) Deleted(seid uint64, association string) {
	s.one("session.deleted", &s.deleted, seid, association)
}

// Modified is called for each change.
func (s *Sessions) Modified() {
	s.lock.Lock()
	s.modified++
	s.lock.Unlock()
}

func (s *Sessions) one(kind string, count *uint64, seid uint64, association string) {
	s.lock.Lock()
	_, open := s.gate.Open(s.log.now())
	if !open {
		*count++
	}
	s.lock.Unlock()
	if open {
		s.log.Publish(kind, s.name(seid), "association", association)
	}
}

// Flush publishes nonzero counts: every ten seconds.
func (s *Sessions) Flush() {
	s.lock.Lock()
	e, m, d := s.established, s.modified, s.deleted
	s.established, s.modified, s.deleted = 0, 0, 0
	s.lock.Unlock()
	if e+m+d > 0 {
		s.log.Publish("session.count", "", "established", e, "modified", m, "deleted", d)
	}
}

// Gate lets Most pass in a Window, and counts the others. The caller guards it.
type Gate struct {
	Most   int
	Window time.Duration

	since  time.Time
	passed int
	held   uint64
}

// Open: an event may pass, and how many were held since the last one.
func (g *Gate) Open(now time.Time) (held uint64, ok bool) {
	if now.Sub(g.since) >= g.Window {
		g.since, g.passed = now, 0
	}
	if g.passed >= g.Most {
		g.held++
		return 0, false
	}
	g.passed++
	held, g.held = g.held, 0
	return held, true
}
