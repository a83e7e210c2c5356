// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"testing"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/testkit"
)

// standing is a host with a fixed time.
type standing struct {
	access.Host
	time time.Time
}

func (h *standing) Now() time.Time { return h.time }

// A session id is reused for a MAC after the quarantine only, never while in use; for another MAC at once.
func TestFreeID(t *testing.T) {
	h := &standing{time: time.Unix(1e9, 0)}
	s := &Server{host: h, began: h.time, sessions: map[key]*session{}}
	one, other := peer{mac: [6]byte{1}}, peer{mac: [6]byte{2}}
	next := func(who peer) uint16 {
		s.lastID = 6
		return s.freeID(who)
	}
	testkit.Equal(t, next(one), 7, "free")
	s.gone.add(key{one, 7}, 10*time.Second)
	s.sessions[key{one, 8}] = &session{}
	testkit.Equal(t, next(one), 9, "in quarantine, in use")
	testkit.Equal(t, next(other), 7, "of another MAC")
	h.time = h.time.Add(9 * time.Second)
	testkit.Equal(t, next(one), 9, "in quarantine yet")
	h.time = h.time.Add(time.Second)
	testkit.Equal(t, next(one), 7, "free again")
	testkit.Equal(t, len(s.gone.set), 0, "in quarantine")
	s.lastID = 0xfffe
	testkit.Equal(t, s.freeID(one), 1, "behind the last, without 0xffff and 0 (RFC 2516 §4)")
	for id := range uint16(100) {
		for mac := range byte(200) {
			for n := range byte(4) {
				s.gone.add(key{peer{mac: [6]byte{3, mac, n}}, id}, time.Minute)
			}
		}
	}
	testkit.Equal(t, len(s.gone.set), maxQuarantine, "bound")
	h.time = h.time.Add(time.Hour)
	s.freeID(one)
	testkit.Equal(t, len(s.gone.set)+len(s.gone.order), 0, "left")
}
