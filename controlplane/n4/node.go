// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/pfcp"
)

// nodeMessage carries out a node message; the owner runs it.
func (s *Server) nodeMessage(p *packet) {
	if directions[p.h.Type] == response {
		s.requests.answer(p)
		return
	}
	src := s.source(p.from.Addr())
	if p.h.Type == pfcp.AssociationSetupRequestType {
		// Row A1. The answers of refused peers are not kept: they would be memory that unknown peers fill.
		if _, known := s.cfg.configuredPeer(p.from.Addr(), ""); !known && !s.cfg.AllowUnknown {
			e := &pfcp.Error{Cause: pfcp.CauseRejected, Text: "the address is not in pfcp.peers"}
			s.turnAway(p, rejectNotAllowed, e)
			return
		}
	} else if src.find(p.from) == nil {
		s.turnAway(p, rejectNoAssociation, errNoAssociation)
		return
	}
	key := keyOf(p.k, p.from, p.h)
	if !s.begin(p, key) {
		return
	}
	m, why := s.nodeRequest(p, src)
	if m == nil && why == accepted {
		return // it is answered later
	}
	s.conclude(p.k, p.from, p.h, key, m)
	if why != accepted {
		if a := src.find(p.from); a != nil {
			a.refused.Add(1)
		}
	}
}

// nodeRequest returns the answer, nil when it comes later, and what was counted when it is a refusal.
func (s *Server) nodeRequest(p *packet, src *source) (pfcp.Message, reject) {
	m, err := decode(p.b)
	if err != nil {
		return s.refuse(p, 0, refusalOf(err))
	}
	if ies := s.unreadable(m); len(ies) > 0 {
		s.log.Warn("PFCP optional IEs cannot be read and count as absent", "from", p.from, "message", messageName(int(p.h.Type)), "ies", ies)
	}
	var node pfcp.NodeID
	named := func(id pfcp.NodeID) *association {
		node = id
		return src.named(nodeName(id.String()))
	}
	switch req := m.(type) {
	case *pfcp.AssociationSetupRequest:
		return s.setUp(p, req)
	case *pfcp.AssociationUpdateRequest:
		if a := named(req.Node); a != nil {
			return s.update(p, a, req)
		}
	case *pfcp.AssociationReleaseRequest:
		if a := named(req.Node); a != nil {
			s.remove(a, eventReleased, false)
			return &pfcp.AssociationReleaseResponse{Node: s.cfg.Node, Cause: pfcp.CauseAccepted}, accepted
		}
	case *pfcp.SessionSetDeletionRequest:
		if a := named(req.Node); a != nil {
			e := s.sessions.Release(a.ID, req.FQCSID, func(deleted int) {
				s.log.Info("PFCP session set deleted", "association", a.ID, "sessions", deleted)
			})
			if e != nil {
				return s.refuse(p, 0, e)
			}
			return &pfcp.SessionSetDeletionResponse{Node: s.cfg.Node, Cause: pfcp.CauseAccepted}, accepted
		}
	case *pfcp.PFDManagementRequest:
		if s.cfg.Features&pfcp.UPPfdm == 0 {
			return s.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseServiceNotSupported, Text: "PFD management is off"})
		}
		s.setPFDs(p, req)
		return nil, accepted
	default:
		return s.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseServiceNotSupported})
	}
	return s.refuse(p, rejectNoAssociation, &pfcp.Error{Cause: pfcp.CauseNoAssociation,
		Text: "no association of node id " + node.String() + " from this address"})
}

// setPFDs answers when the session layer has: many sessions may have to be looked at, and the owner has others to
// serve.
func (s *Server) setPFDs(p *packet, req *pfcp.PFDManagementRequest) {
	k, from, h, key := p.k, p.from, p.h, keyOf(p.k, p.from, p.h)
	s.sessions.SetPFDs(req, func(e *pfcp.Error) {
		var m pfcp.Message = &pfcp.PFDManagementResponse{Cause: pfcp.CauseAccepted}
		if e != nil {
			s.refused(0, from, h.Type, e)
			m = s.refusal(h.Type, e)
			if a := s.source(from.Addr()).find(from); a != nil {
				a.refused.Add(1)
			}
		}
		s.conclude(k, from, h, key, m)
	})
}

// setUp is TS 29.244 §6.2.6.2.2.
func (s *Server) setUp(p *packet, req *pfcp.AssociationSetupRequest) (pfcp.Message, reject) {
	if req.FromUP {
		return s.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseRejected, Text: "the sender is a UP function"})
	}
	id := nodeName(req.Node.String())
	peer, _ := s.cfg.configuredPeer(p.from.Addr(), id)
	old := s.table.associations[id]
	if why := s.mayAssociate(p.from.Addr(), id, peer, old); why != accepted {
		cause := pfcp.CauseRejected
		if why == rejectAssociations {
			cause = pfcp.CauseNoResources
		}
		return s.refuse(p, why, &pfcp.Error{Cause: cause, Text: "association set-up of node id " + id})
	}
	a := &association{
		Association: Association{
			ID: id, Set: s.setOf(id, peer, p.from.Addr(), req.SetID), Addr: netip.AddrPortFrom(p.from.Addr(), pfcp.Port), Features: req.Features,
		},
		node: req.Node, k: p.k, others: otherAddresses(req.Addresses), configured: peer, since: time.Now(),
		associationCounts: newCounts(&s.requests),
	}
	a.recovery.Store(req.Recovery.Unix())
	if peer != nil {
		a.Addr = peer.Addr
	}
	if err := s.sessions.KeepAssociation(a.stored()); err != nil {
		s.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
		return s.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseSystemFailure, Text: err.Error()})
	}
	retained := false
	if old != nil {
		retained = s.reassociated(old, req.Retention) // before install: sessions of the new association are not meant
	}
	s.answers.forgetPeer(p.from.Addr())
	s.install(a)
	s.scheduleBeat(a, s.cfg.HeartbeatInterval)
	s.record(eventAssociated, slog.LevelInfo, a.ID, "address", p.from, "set", a.Set, "retained", retained)
	return &pfcp.AssociationSetupResponse{
		Node: s.cfg.Node, Cause: pfcp.CauseAccepted, Recovery: s.recovery, FromUP: true, Features: s.cfg.Features,
		Retained: retained, UEPools: s.cfg.UEPools,
	}, accepted
}

// otherAddresses keeps what can be a peer's address; eight are plenty.
func otherAddresses(in []netip.Addr) (out []netip.Addr) {
	for _, a := range in {
		if a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && len(out) < 8 {
			out = append(out, a)
		}
	}
	return out
}

// reassociated ends the old association of a node id that associates again. Whatever the time stamps say, its sessions
// are deleted, but for those that the CP function asks us to retain (TS 29.244 §6.2.6.2.2, §5.22).
func (s *Server) reassociated(old *association, keep *pfcp.Retention) (retained bool) {
	stopTimer(old.beat)
	stopTimer(old.headless)
	old.window.fail(ErrNoAssociation)
	switch {
	case keep == nil:
		s.release(old.ID)
	case len(keep.CPEntities) > 0:
		s.sessions.Retain(old.ID, slices.Clone(keep.CPEntities), func(deleted int) {
			s.log.Info("PFCP sessions that were not retained deleted", "association", old.ID, "sessions", deleted)
		})
	}
	return keep != nil
}

// update is TS 29.244 §6.2.7.
func (s *Server) update(p *packet, a *association, req *pfcp.AssociationUpdateRequest) (pfcp.Message, reject) {
	others := otherAddresses(req.Addresses)
	if len(others) == 0 {
		others = a.others
	}
	if req.Features != nil && *req.Features != a.Features || !slices.Equal(others, a.others) {
		changed := *a
		changed.others = others
		if req.Features != nil {
			changed.Features = *req.Features
		}
		if err := s.sessions.KeepAssociation(changed.stored()); err != nil {
			s.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
			return s.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseSystemFailure, Text: err.Error()})
		}
		s.install(&changed)
	}
	features := s.cfg.Features
	return &pfcp.AssociationUpdateResponse{Node: s.cfg.Node, Cause: pfcp.CauseAccepted, FromUP: true, Features: &features}, accepted
}

// RequestRelease asks the CP function to release an association, which only it can (TS 29.244 §6.2.7.3); it moves its
// sessions away within the period. done gets the outcome of the request, not of the release.
func (s *Server) RequestRelease(id string, period time.Duration, done func(error)) {
	a := s.association(nodeName(id))
	if a == nil {
		done(ErrNoAssociation)
		return
	}
	m := &pfcp.AssociationUpdateRequest{Node: s.cfg.Node, FromUP: true, ReleaseRequest: true, GracefulPeriod: period}
	s.requests.send(a.k, a.Addr, pfcp.Header{}, m, func(m pfcp.Message, err error) {
		if r, ok := m.(*pfcp.AssociationUpdateResponse); ok && err == nil && r.Cause != pfcp.CauseAccepted {
			err = &pfcp.Error{Cause: r.Cause, Text: "the CP function refused"}
		}
		if err == nil {
			a.releasing.Store(true)
		}
		done(err)
	})
}
