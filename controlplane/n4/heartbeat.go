// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"isthmus/controlplane/pfcp"
)

// heartbeatRequest is answered to anybody (TS 29.244 §6.2.2.2); a reader runs it. A newer time stamp in it is only a
// reason to ask: everybody can send a datagram with the peer's address (row A7).
func (s *Server) heartbeatRequest(k *socket, from netip.AddrPort, src *source, b []byte) {
	h, _ := pfcp.DecodeHeader(b)
	m, err := decode(b)
	req, ok := m.(*pfcp.HeartbeatRequest)
	if err != nil || !ok {
		// §7.6: its answer has no Cause to say so with; rows P3, P4.
		s.reject(rejectHeartbeat, from, "")
		return
	}
	s.unreadable(m)
	s.respond(k, from, h, &pfcp.HeartbeatResponse{Recovery: s.recovery})
	if src == nil {
		return
	}
	for _, a := range src.associations {
		if req.Recovery.Unix() > a.recovery.Load() && a.confirming.CompareAndSwap(false, true) {
			s.post(func() { s.confirm(a.ID, a.associationCounts) })
		}
	}
}

// confirm asks the peer itself whether it restarted.
func (s *Server) confirm(id string, counts *associationCounts) {
	a := s.current(id, counts)
	if a == nil {
		return
	}
	s.askHeartbeat(a, func(a *association, _ time.Duration, recovery int64, err error) {
		counts.confirming.Store(false)
		if err == nil && recovery <= counts.recovery.Load() {
			s.record(eventHeartbeatUnconfirmed, slog.LevelWarn, id)
		}
		s.heard(a, recovery, err)
	})
}

// askHeartbeat sends a Heartbeat Request; ended runs in the owner while the association is the current one.
func (s *Server) askHeartbeat(a *association, ended func(a *association, took time.Duration, recovery int64, err error)) {
	id, counts, sent := a.ID, a.associationCounts, time.Now()
	s.requests.send(a.k, a.Addr, pfcp.Header{}, &pfcp.HeartbeatRequest{Recovery: s.recovery}, func(m pfcp.Message, err error) {
		took := time.Since(sent)
		s.post(func() {
			a := s.current(id, counts)
			if a == nil || errors.Is(err, ErrStopped) {
				return
			}
			var recovery int64
			if r, ok := m.(*pfcp.HeartbeatResponse); ok && err == nil {
				recovery = r.Recovery.Unix()
			}
			ended(a, took, recovery, err)
		})
	})
}

// heard draws the conclusions from an answer, or from none.
func (s *Server) heard(a *association, recovery int64, err error) {
	switch {
	case err != nil:
		a.lost.Add(1)
		if !a.failed() {
			s.pathFailed(a, err)
		}
	case recovery > a.recovery.Load():
		// TS 23.527 §4.2: the peer has lost its sessions, so ours of it are deleted. Members of an SMF set keep
		// their time stamp; where one did not, the others of the set go on with its sessions.
		s.remove(a, eventRestarted, true, "recovery", time.Unix(recovery, 0).UTC())
	case a.failed():
		a.failedAt.Store(0)
		stopTimer(a.headless)
		s.keep(a)
		s.record(eventPathRestored, slog.LevelInfo, a.ID)
	}
}

func (s *Server) scheduleBeat(a *association, after time.Duration) {
	if s.cfg.HeartbeatInterval < 0 {
		return
	}
	id, counts := a.ID, a.associationCounts
	// A tenth of the interval apart at random, so that peers that associated together are not asked together.
	after += time.Duration(rand.Int64N(int64(s.cfg.HeartbeatInterval)/10 + 1))
	a.beat = s.later(after, func() { s.sendBeat(id, counts) })
}

func (s *Server) sendBeat(id string, counts *associationCounts) {
	a := s.current(id, counts)
	if a == nil {
		return
	}
	s.askHeartbeat(a, func(a *association, took time.Duration, recovery int64, err error) {
		if err == nil {
			a.heartbeats.Add(1)
			a.roundTrip.Store(int64(took))
		}
		s.heard(a, recovery, err)
		if a := s.current(id, counts); a != nil {
			s.scheduleBeat(a, s.cfg.HeartbeatInterval)
		}
	})
}

// pathFailed begins the headless time: sessions go on without their CP function.
func (s *Server) pathFailed(a *association, why error) {
	a.failedAt.Store(time.Now().Unix())
	s.keep(a)
	a.window.fail(ErrPathFailed)
	s.record(eventPathFailed, slog.LevelWarn, a.ID, "error", why, "headless", s.cfg.Headless)
	s.startHeadless(a)
}

func (s *Server) startHeadless(a *association) {
	id, counts := a.ID, a.associationCounts
	// Of a path that failed before a restart; a clock that was put back meanwhile makes it no longer.
	left := min(time.Until(time.Unix(a.failedAt.Load(), 0).Add(s.cfg.Headless)), s.cfg.Headless)
	a.headless = s.later(max(left, 0), func() {
		if a := s.current(id, counts); a != nil && a.failed() {
			s.remove(a, eventHeadlessExpired, true)
		}
	})
}
