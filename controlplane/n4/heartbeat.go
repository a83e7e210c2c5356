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

// paths supervises peers, and ends the associations of absent ones. Its timers and counts are the associations'.
type paths struct{ *owner }

// asked answers a Heartbeat Request of any peer (TS 29.244 §6.2.2.2); a reader runs it. A newer time stamp only causes
// our own request, since the source address may be forged (row A7).
func (p *paths) asked(k *socket, from netip.AddrPort, src *source, b []byte) {
	h, _ := pfcp.DecodeHeader(b)
	m, err := decode(b)
	req, ok := m.(*pfcp.HeartbeatRequest)
	if err != nil || !ok {
		// §7.6: its answer has no Cause; rows P3, P4.
		p.reject(rejectHeartbeat, from, "")
		return
	}
	p.unreadable(m)
	p.respond(k, from, h, &pfcp.HeartbeatResponse{Recovery: p.recovery})
	if src == nil {
		return
	}
	for _, a := range src.associations {
		if req.Recovery.Unix() > a.recovery.Load() && a.confirming.CompareAndSwap(false, true) {
			p.post(func() { p.confirm(a.ID, a.associationCounts) })
		}
	}
}

// confirm asks the peer itself whether it restarted.
func (p *paths) confirm(id string, counts *associationCounts) {
	a := p.current(id, counts)
	if a == nil {
		return
	}
	p.ask(a, func(a *association, _ time.Duration, recovery int64, err error) {
		counts.confirming.Store(false)
		if err == nil && recovery <= counts.recovery.Load() {
			p.record(eventHeartbeatUnconfirmed, slog.LevelWarn, id)
		}
		p.heard(a, recovery, err)
	})
}

// ask sends a Heartbeat Request; ended runs in the owner while the association is the current one.
func (p *paths) ask(a *association, ended func(a *association, took time.Duration, recovery int64, err error)) {
	id, counts, sent := a.ID, a.associationCounts, time.Now()
	req := &pfcp.HeartbeatRequest{Recovery: p.recovery}
	p.requests.send(a.k, a.Addr, pfcp.Header{}, req, func(m pfcp.Message, err error) {
		took := time.Since(sent)
		p.post(func() {
			a := p.current(id, counts)
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
func (p *paths) heard(a *association, recovery int64, err error) {
	switch {
	case err != nil:
		a.lost.Add(1)
		if !a.failed() {
			p.failed(a, err)
		}
	case recovery > a.recovery.Load():
		// TS 23.527 §4.2: the peer has lost its sessions, so ours of it are deleted. Members of an SMF set keep
		// their time stamp; if one did not, the others continue its sessions.
		p.remove(a, eventRestarted, true, "recovery", time.Unix(recovery, 0).UTC())
	case a.failed():
		a.failedAt.Store(0)
		stopTimer(a.headless)
		p.keep(a)
		p.record(eventPathRestored, slog.LevelInfo, a.ID)
	}
}

func (p *paths) schedule(a *association, after time.Duration) {
	if p.cfg.Heartbeat.Interval == 0 {
		return
	}
	id, counts := a.ID, a.associationCounts
	// A tenth of the interval apart at random, so that peers that associated together are not asked together.
	after += time.Duration(rand.Int64N(int64(p.cfg.Heartbeat.Interval)/10 + 1))
	a.beat = p.later(after, func() { p.beat(id, counts) })
}

func (p *paths) beat(id string, counts *associationCounts) {
	a := p.current(id, counts)
	if a == nil {
		return
	}
	p.ask(a, func(a *association, took time.Duration, recovery int64, err error) {
		if err == nil {
			a.heartbeats.Add(1)
			a.roundTrip.Store(int64(took))
		}
		p.heard(a, recovery, err)
		if a := p.current(id, counts); a != nil {
			p.schedule(a, p.cfg.Heartbeat.Interval)
		}
	})
}

// failed begins the headless time: sessions continue without their CP function.
func (p *paths) failed(a *association, why error) {
	a.failedAt.Store(time.Now().Unix())
	p.keep(a)
	a.window.fail(ErrPathFailed)
	p.record(eventPathFailed, slog.LevelWarn, a.ID, "error", why, "headless", p.cfg.Headless)
	p.headless(a)
}

func (p *paths) headless(a *association) {
	id, counts := a.ID, a.associationCounts
	// Of a path that failed before a restart; a clock that was set back does not lengthen it.
	left := min(time.Until(time.Unix(a.failedAt.Load(), 0).Add(p.cfg.Headless)), p.cfg.Headless)
	a.headless = p.later(max(left, 0), func() {
		if a := p.current(id, counts); a != nil && a.failed() {
			p.remove(a, eventHeadlessExpired, true)
		}
	})
}
