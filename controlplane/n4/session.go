// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"isthmus/controlplane/pfcp"
)

const ieFSEID = 57

// calls are the session requests that the session layer works on.
type calls struct {
	*transactions
	*peers
	sessions Sessions
	inFlight atomic.Int64
	stopping atomic.Bool
}

// call is one of them.
type call struct {
	s     *calls
	a     *association
	k     *socket
	from  netip.AddrPort
	h     pfcp.Header
	key   transactionKey
	at    time.Time // when it was read
	ended atomic.Bool
}

// carryOut does it with a session message; a worker runs it. busy: many wait behind it.
func (s *calls) carryOut(p *packet, busy bool) {
	src := s.source(p.from.Addr())
	a := src.find(p.from)
	if a == nil {
		s.turnAway(p, rejectNoAssociation, errNoAssociation)
		return
	}
	a.requests.Add(1)
	c := &call{s: s, a: a, k: p.k, from: p.from, h: p.h, key: keyOf(p.k, p.from, p.h), at: p.at}
	if !s.begin(p, c.key) {
		return
	}
	if s.stopping.Load() {
		s.reject(rejectStopping, p.from, "")
		s.answers.forget(c.key) // our successor answers the retransmission
		return
	}
	// Deletions and modifications are accepted longer than new sessions.
	if s.inFlight.Load() >= int64(s.cfg.InFlight) || busy && p.h.Type == pfcp.SessionEstablishmentRequestType {
		a.refused.Add(1)
		s.answers.forget(c.key)
		e := &pfcp.Error{Cause: pfcp.CauseCongestion, Text: "too many requests are being carried out"}
		s.turnAway(p, rejectCongestion, e) // the session layer is busy: it is not asked for a SEID
		return
	}
	m, err := decode(p.b)
	if err != nil {
		c.misread(src, p.b, refusalOf(err))
		return
	}
	switch req := m.(type) {
	case *pfcp.SessionEstablishmentRequest:
		c.establish(src, req)
	case *pfcp.SessionModificationRequest:
		s.inFlight.Add(1)
		s.sessions.Modify(src.askers, p.h.SEID, req, func(r *pfcp.SessionModificationResponse, cp uint64) {
			if c.first() {
				c.answer(r, cp, r.Cause)
			}
		})
	case *pfcp.SessionDeletionRequest:
		s.inFlight.Add(1)
		s.sessions.Delete(src.askers, p.h.SEID, func(r *pfcp.SessionDeletionResponse, cp uint64) {
			if c.first() {
				c.answer(r, cp, r.Cause)
			}
		})
	default:
		c.misread(src, p.b, &pfcp.Error{Cause: pfcp.CauseServiceNotSupported})
	}
}

// misread refuses a request for its contents. The answer has the session's SEID, if it exists (§7.2.2.4.2): CP
// functions find their request by it.
func (c *call) misread(src *source, b []byte, e *pfcp.Error) {
	if c.h.Type == pfcp.SessionEstablishmentRequestType {
		c.refuseTo(pfcp.CPSEID(b), 0, e)
		return
	}
	c.s.inFlight.Add(1)
	c.s.sessions.Locate(src.askers, c.h.SEID, func(cp uint64) {
		if c.first() {
			c.refuseTo(cp, 0, e)
		}
	})
}

func (c *call) establish(src *source, req *pfcp.SessionEstablishmentRequest) {
	// The request names its association; the address must be one of that (rows A2, A4).
	a := src.named(nodeName(req.Node.String()))
	if a == nil {
		c.refuseTo(req.CP.SEID, rejectNoAssociation, &pfcp.Error{Cause: pfcp.CauseNoAssociation, Text: "node id " +
			req.Node.String()})
		return
	}
	c.a = a
	if e := checkCP(req.CP); e != nil {
		c.refuseTo(req.CP.SEID, 0, e)
		return
	}
	s := c.s
	s.inFlight.Add(1)
	s.sessions.Establish(&a.Association, req, func(r *pfcp.SessionEstablishmentResponse) {
		if !c.first() {
			return
		}
		now := s.association(a.ID)
		if r.Cause == pfcp.CauseAccepted && (now == nil || now.associationCounts != a.associationCounts) {
			// The association ended meanwhile, and this session was not there yet when its sessions were
			// released.
			s.sessions.Delete([]*Association{&a.Association}, r.UP.SEID, func(*pfcp.SessionDeletionResponse, uint64) {})
			r = &pfcp.SessionEstablishmentResponse{Cause: pfcp.CauseNoAssociation,
				Text: "the association ended meanwhile"}
		}
		r.Node = s.cfg.Node
		c.answer(r, req.CP.SEID, r.Cause)
	})
}

// checkCP refuses an address that reports could never be sent to, or would be sent to many.
func checkCP(f pfcp.FSEID) *pfcp.Error {
	for _, a := range []netip.Addr{f.IPv4, f.IPv6} {
		if a.IsValid() && (a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})) {
			return &pfcp.Error{Cause: pfcp.CauseMandatoryIEIncorrect, Offending: ieFSEID, Text: "CP F-SEID " +
				a.String()}
		}
	}
	return nil
}

// first guards against a session layer that answers twice.
func (c *call) first() bool {
	if !c.ended.CompareAndSwap(false, true) {
		c.s.log.Error("PFCP request answered twice", "type", c.h.Type)
		return false
	}
	c.s.inFlight.Add(-1)
	return true
}

// answer ends the transaction with the session layer's answer.
func (c *call) answer(m pfcp.Message, seid uint64, cause pfcp.Cause) {
	s := c.s
	switch cause {
	case pfcp.CauseAccepted, pfcp.CauseMoreUsageReports, pfcp.CauseAcceptedPartially:
	default:
		c.a.refused.Add(1)
		s.refused(0, c.from, c.key.typ, whyOf(m))
		if cause == pfcp.CauseContextNotFound {
			s.missed(c.a)
		}
	}
	c.h.SEID, c.h.HasSEID = seid, true
	s.cfg.Measures.Request(messageNames[c.key.typ], time.Since(c.at))
	s.conclude(c.k, c.from, c.h, c.key, m)
}

// whyOf is the session layer's reason for a refusal.
func whyOf(m pfcp.Message) *pfcp.Error {
	switch r := m.(type) {
	case *pfcp.SessionEstablishmentResponse:
		return &pfcp.Error{Cause: r.Cause, Offending: r.Offending, Rule: r.Failed, Text: r.Text}
	case *pfcp.SessionModificationResponse:
		return &pfcp.Error{Cause: r.Cause, Offending: r.Offending, Rule: r.Failed, Text: r.Text}
	case *pfcp.SessionDeletionResponse:
		return &pfcp.Error{Cause: r.Cause, Offending: r.Offending, Text: r.Text}
	}
	return &pfcp.Error{Cause: pfcp.CauseSystemFailure, Text: "no answer of the session layer"}
}

// refuseTo ends the transaction without the session layer; why is 0 when the cause is the reason.
func (c *call) refuseTo(seid uint64, why reject, e *pfcp.Error) {
	c.a.refused.Add(1)
	c.s.refused(why, c.from, c.h.Type, e)
	c.h.SEID = seid
	c.s.cfg.Measures.Request(messageNames[c.key.typ], time.Since(c.at))
	c.s.conclude(c.k, c.from, c.h, c.key, c.s.refusal(c.h.Type, e))
}

// missed counts requests for sessions that do not exist. SEIDs are random, so many in a second mean guessing (row A13).
func (s *calls) missed(a *association) {
	now := time.Now().Unix()
	if last := a.missSecond.Load(); last != now && a.missSecond.CompareAndSwap(last, now) {
		a.misses.Store(0)
	}
	if a.misses.Add(1) == int64(s.cfg.MissAlarm) {
		s.record(eventSEIDAlarm, slog.LevelError, a.ID, "misses", s.cfg.MissAlarm, "within", "1s")
	}
}
