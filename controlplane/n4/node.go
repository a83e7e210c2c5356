// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/pfcp"
)

// nodeMessage carries out a node message; the owner runs it.
func (o *owner) nodeMessage(p *packet) {
	if directions[p.h.Type] == response {
		o.requests.answer(p)
		return
	}
	src := o.source(p.from.Addr())
	if p.h.Type == pfcp.AssociationSetupRequestType {
		// Row A1. The answers of refused peers are not kept: they would be memory that unknown peers fill.
		if _, known := o.cfg.configuredPeer(p.from.Addr(), ""); !known && !o.cfg.AllowUnknown {
			e := &pfcp.Error{Cause: pfcp.CauseRejected, Text: "the address is not in pfcp.peers"}
			o.turnAway(p, rejectNotAllowed, e)
			return
		}
	} else if src.find(p.from) == nil {
		o.turnAway(p, rejectNoAssociation, errNoAssociation)
		return
	}
	key := keyOf(p.k, p.from, p.h)
	if !o.begin(p, key) {
		return
	}
	m, why := o.nodeRequest(p, src)
	if m == nil && why == accepted {
		return // it is answered later
	}
	o.conclude(p.k, p.from, p.h, key, m)
	if why != accepted {
		if a := src.find(p.from); a != nil {
			a.refused.Add(1)
		}
	}
}

// nodeRequest returns the answer, nil when it comes later, and what was counted when it is a refusal.
func (o *owner) nodeRequest(p *packet, src *source) (pfcp.Message, reject) {
	m, err := decode(p.b)
	if err != nil {
		return o.refuse(p, 0, refusalOf(err))
	}
	if ies := o.unreadable(m); len(ies) > 0 {
		o.log.Warn("PFCP optional IEs cannot be read and count as absent", "from", p.from, "message",
			messageName(int(p.h.Type)), "ies", ies)
	}
	var node pfcp.NodeID
	named := func(id pfcp.NodeID) *association {
		node = id
		return src.named(nodeName(id.String()))
	}
	switch req := m.(type) {
	case *pfcp.AssociationSetupRequest:
		return o.setUp(p, req)
	case *pfcp.AssociationUpdateRequest:
		if a := named(req.Node); a != nil {
			return o.update(p, a, req)
		}
	case *pfcp.AssociationReleaseRequest:
		if a := named(req.Node); a != nil {
			o.remove(a, eventReleased, false)
			return &pfcp.AssociationReleaseResponse{Node: o.cfg.Node, Cause: pfcp.CauseAccepted}, accepted
		}
	case *pfcp.SessionSetDeletionRequest:
		if a := named(req.Node); a != nil {
			e := o.sessions.Release(a.ID, req.FQCSID, func(deleted int) {
				o.log.Info("PFCP session set deleted", "association", a.ID, "sessions", deleted)
			})
			if e != nil {
				return o.refuse(p, 0, e)
			}
			return &pfcp.SessionSetDeletionResponse{Node: o.cfg.Node, Cause: pfcp.CauseAccepted}, accepted
		}
	case *pfcp.PFDManagementRequest:
		if o.cfg.Features&pfcp.UPPfdm == 0 {
			return o.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseServiceNotSupported, Text: "PFD management is off"})
		}
		o.setPFDs(p, req)
		return nil, accepted
	default:
		return o.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseServiceNotSupported})
	}
	return o.refuse(p, rejectNoAssociation, &pfcp.Error{Cause: pfcp.CauseNoAssociation,
		Text: "no association of node id " + node.String() + " from this address"})
}

// setPFDs answers when the session layer has: many sessions may have to be checked, and the owner has others to serve.
func (o *owner) setPFDs(p *packet, req *pfcp.PFDManagementRequest) {
	k, from, h, key := p.k, p.from, p.h, keyOf(p.k, p.from, p.h)
	o.sessions.SetPFDs(req, func(e *pfcp.Error) {
		var m pfcp.Message = &pfcp.PFDManagementResponse{Cause: pfcp.CauseAccepted}
		if e != nil {
			o.refused(0, from, h.Type, e)
			m = o.refusal(h.Type, e)
			if a := o.source(from.Addr()).find(from); a != nil {
				a.refused.Add(1)
			}
		}
		o.conclude(k, from, h, key, m)
	})
}

// setUp is TS 29.244 §6.2.6.2.2.
func (o *owner) setUp(p *packet, req *pfcp.AssociationSetupRequest) (pfcp.Message, reject) {
	if req.FromUP {
		return o.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseRejected, Text: "the sender is a UP function"})
	}
	if o.drained {
		return o.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseNoResources, Text: "the user plane is drained"})
	}
	id := nodeName(req.Node.String())
	peer, _ := o.cfg.configuredPeer(p.from.Addr(), id)
	old := o.table.associations[id]
	if why := o.table.mayAssociate(p.from.Addr(), id, peer, old); why != accepted {
		cause := pfcp.CauseRejected
		if why == rejectAssociations {
			cause = pfcp.CauseNoResources
		}
		text := "association set-up of node id " + id
		if why == rejectNotAllowed {
			text = fmt.Sprintf("Node ID %s; pfcp.peers has %s for this address", id, o.cfg.nodesAt(p.from.Addr()))
		}
		return o.refuse(p, why, &pfcp.Error{Cause: cause, Text: text})
	}
	a := &association{
		Association: Association{
			ID: id, Set: o.table.setOf(id, peer, p.from.Addr(), req.SetID),
			Addr: netip.AddrPortFrom(p.from.Addr(), pfcp.Port), Features: req.Features,
		},
		node: req.Node, k: p.k, others: otherAddresses(req.Addresses), configured: peer, since: time.Now(),
		associationCounts: newCounts(o.requests),
	}
	a.recovery.Store(req.Recovery.Unix())
	if peer != nil {
		a.Addr = peer.Address.AddrPort
	}
	if err := o.sessions.KeepAssociation(a.stored()); err != nil {
		o.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
		return o.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseSystemFailure, Text: err.Error()})
	}
	retained := false
	if old != nil {
		retained = o.reassociated(old, req.Retention) // before install: sessions of the new association are not meant
	}
	o.answers.forgetPeer(p.from.Addr())
	o.install(a)
	o.paths.schedule(a, o.cfg.Heartbeat.Interval)
	o.record(eventAssociated, slog.LevelInfo, a.ID, "address", p.from, "set", a.Set, "retained", retained)
	return &pfcp.AssociationSetupResponse{
		Node: o.cfg.Node, Cause: pfcp.CauseAccepted, Recovery: o.recovery, FromUP: true, Features: o.cfg.Features,
		Retained: retained, UEPools: o.cfg.UEPools,
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

// reassociated ends the old association of a node id that associates again. Whatever the time stamps, its sessions are
// deleted, except those that the CP function asks to retain (TS 29.244 §6.2.6.2.2, §5.22).
func (o *owner) reassociated(old *association, keep *pfcp.Retention) (retained bool) {
	stopTimer(old.beat)
	stopTimer(old.headless)
	old.window.fail(ErrNoAssociation)
	switch {
	case keep == nil:
		o.release(old.ID)
	case len(keep.CPEntities) > 0:
		o.sessions.Retain(old.ID, slices.Clone(keep.CPEntities), func(deleted int) {
			o.log.Info("PFCP sessions that were not retained deleted", "association", old.ID, "sessions", deleted)
		})
	}
	return keep != nil
}

// update is TS 29.244 §6.2.7.
func (o *owner) update(p *packet, a *association, req *pfcp.AssociationUpdateRequest) (pfcp.Message, reject) {
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
		if err := o.sessions.KeepAssociation(changed.stored()); err != nil {
			o.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
			return o.refuse(p, 0, &pfcp.Error{Cause: pfcp.CauseSystemFailure, Text: err.Error()})
		}
		o.install(&changed)
	}
	features := o.cfg.Features
	return &pfcp.AssociationUpdateResponse{Node: o.cfg.Node, Cause: pfcp.CauseAccepted, FromUP: true,
		Features: &features}, accepted
}

// SetDrained refuses new associations, or takes them again. Those that there are stay.
func (o *owner) SetDrained(on bool) {
	o.post(func() {
		o.drained = on
		if !on {
			o.dialler.resume()
		}
	})
}

// RequestRelease asks the CP function to release an association, which only it can (TS 29.244 §6.2.7.3). The CP
// function moves its sessions away within the period. done gets the outcome of the request, not of the release.
func (o *owner) RequestRelease(id string, period time.Duration, done func(error)) {
	a := o.association(nodeName(id))
	if a == nil {
		done(ErrNoAssociation)
		return
	}
	m := &pfcp.AssociationUpdateRequest{Node: o.cfg.Node, FromUP: true, ReleaseRequest: true, GracefulPeriod: period}
	o.requests.send(a.k, a.Addr, pfcp.Header{}, m, func(m pfcp.Message, err error) {
		if r, ok := m.(*pfcp.AssociationUpdateResponse); ok && err == nil && r.Cause != pfcp.CauseAccepted {
			err = &pfcp.Error{Cause: r.Cause, Text: "the CP function refused"}
		}
		if err == nil {
			a.releasing.Store(true)
		}
		done(err)
	})
}
