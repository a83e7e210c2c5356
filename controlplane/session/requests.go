// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// requests turns CP functions' session requests into jobs, and their results into answers.
type requests struct {
	*table
	commits  queue
	reports  *reporting
	reader   *reader
	node     pfcp.NodeID // ours
	observer Observer
}

// Establish is n4.Requests'.
func (p *requests) Establish(from *n4.Association, req *pfcp.SessionEstablishmentRequest,
	reply func(*pfcp.SessionEstablishmentResponse)) {
	var made *rules.Session
	var out rules.Changed
	p.commits.enqueue(&job{
		stage: func(t *txn) (err *pfcp.Error) {
			made, out, err = p.establish(t, from, req)
			return err
		},
		finish: func(err *pfcp.Error, _ []api.Usage) func() {
			r := &pfcp.SessionEstablishmentResponse{Cause: pfcp.CauseAccepted}
			if err != nil {
				r.Cause, r.Offending, r.Failed, r.Text = err.Cause, err.Offending, err.Rule, err.Text
			} else {
				p.count.Established++
				p.observer.Established(made.SEID, made.Owner)
				r.UP.SEID, r.Created, r.Endpoints = made.SEID, out.PDRs, out.Endpoints
			}
			p.identify(r)
			return func() { reply(r) }
		},
	})
}

// identify fills in our identity.
func (p *requests) identify(r *pfcp.SessionEstablishmentResponse) {
	r.Node = p.node
	if reporter := p.reports.reporter(); reporter != nil && r.Cause == pfcp.CauseAccepted {
		r.UP.IPv4, r.UP.IPv6 = reporter.Address()
	}
}

func (p *requests) establish(t *txn, from *n4.Association, req *pfcp.SessionEstablishmentRequest) (
	*rules.Session, rules.Changed, *pfcp.Error) {
	o := p.ownerFor(t, from)
	switch limits := &p.set.Limits; {
	case p.client == nil: // no data plane: better another UP function than a session without traffic
		return nil, rules.Changed{}, rules.Refuse(pfcp.CauseNoResources, 0, "the data plane is away")
	case limits.Sessions > 0 && len(p.x.session) >= int(limits.Sessions), // row A6
		limits.SessionsPerAssociation > 0 && o.sessions >= int(limits.SessionsPerAssociation):
		return nil, rules.Changed{}, rules.Refuse(pfcp.CauseNoResources, 0, "the limit of sessions is reached")
	}
	s, out, err := rules.Establish(p.set, p.x, req)
	t.onUndo(p.x.settle())
	if err != nil {
		return nil, rules.Changed{}, err
	}
	s.SEID, s.Owner, s.Association = p.x.seid(), from.ID, uint32(api.DigestOf([]byte(cmp.Or(o.set, o.id))))
	if err = p.insert(t, s, o); err != nil {
		return nil, rules.Changed{}, err
	}
	return s, out, nil
}

// owned finds a session for the associations that may have sent a message (rows A4, P31). It also returns which one:
// the session's own, else one of its SMF set.
func (p *requests) owned(from []*n4.Association, seid uint64) (entry, *n4.Association, *pfcp.Error) {
	e, there := p.x.at(seid)
	who := -1
	if there {
		who = slices.IndexFunc(from, func(a *n4.Association) bool { return a.ID == e.owner.id })
	}
	if there && who < 0 && e.owner.set != "" {
		who = slices.IndexFunc(from, func(a *n4.Association) bool { return a.Set == e.owner.set })
	}
	if who < 0 {
		if p.count.Unknown++; p.count.Unknown%1000 == 0 {
			p.log.Warn("many requests for sessions that are not the asker's", "times", p.count.Unknown, "association",
				from[0].ID)
		}
		return entry{}, nil, rules.Refuse(pfcp.CauseContextNotFound, 0, "no such session of this association")
	}
	return e, from[who], nil
}

// Modify is n4.Requests'.
func (p *requests) Modify(from []*n4.Association, seid uint64, req *pfcp.SessionModificationRequest,
	reply func(r *pfcp.SessionModificationResponse, cpSEID uint64)) {
	var out rules.Changed
	var old *rules.Session
	p.commits.enqueue(&job{
		seid: seid,
		stage: func(t *txn) (err *pfcp.Error) {
			old, out, err = p.modify(t, from, seid, req)
			return err
		},
		finish: func(err *pfcp.Error, rows []api.Usage) func() {
			r := &pfcp.SessionModificationResponse{Cause: pfcp.CauseAccepted}
			var cp uint64
			if old != nil {
				cp = old.CP.SEID
				if req.CP != nil && err == nil {
					cp = req.CP.SEID
				}
			}
			if err != nil {
				r.Cause, r.Offending, r.Failed, r.Text = err.Cause, err.Offending, err.Rule, err.Text
			} else {
				p.count.Modified++
				p.observer.Modified()
				r.Created, r.Endpoints = out.PDRs, out.Endpoints
				r.Usage = rules.Reports(old, p.reports.deferred.join(seid, rows, false))
				rules.AnswerQuery(r.Usage, req.QueryReference)
			}
			return func() { reply(r, cp) }
		},
	})
}

func (p *requests) modify(t *txn, askers []*n4.Association, seid uint64, req *pfcp.SessionModificationRequest) (
	old *rules.Session, out rules.Changed, err *pfcp.Error) {
	e, from, err := p.owned(askers, seid)
	if err != nil {
		return nil, rules.Changed{}, err
	}
	old, broken := rules.Decode(e.data)
	s, again := rules.Decode(e.data)
	if broken != nil || again != nil {
		return nil, rules.Changed{}, rules.Refuse(pfcp.CauseSystemFailure, 0, rules.ErrEncoding.Error())
	}
	if p.client == nil {
		return old, rules.Changed{}, rules.Refuse(pfcp.CauseSystemFailure, 0, "the data plane is away")
	}
	if out, err = rules.Modify(p.set, p.x, s, req); err != nil {
		p.x.settle()()
		return old, rules.Changed{}, err
	}
	t.onUndo(p.x.settle())
	o := e.owner
	if req.Node != nil { // one of several at the sender's address
		for _, a := range askers {
			if a.ID == req.Node.String() && (a.ID == o.id || o.set != "" && a.Set == o.set) {
				from = a
			}
		}
	}
	// Another CP entity of the set took over (TS 29.244 §5.22): shown by its F-SEID, its Node ID, or both.
	if req.CP != nil || req.Node != nil {
		s.Moved = false
		if from.ID != o.id {
			o, s.Owner = p.ownerFor(t, from), from.ID
		}
	}
	if err := p.replace(t, seid, e, o, old, s); err != nil {
		return old, rules.Changed{}, err
	}
	return old, out, nil
}

// Locate implements n4.Requests. It is a job that changes nothing: earlier requests about the session are done.
func (p *requests) Locate(from []*n4.Association, seid uint64, reply func(cpSEID uint64)) {
	var cp uint64
	p.commits.enqueue(&job{
		seid: seid,
		stage: func(*txn) *pfcp.Error {
			if e, _, err := p.owned(from, seid); err == nil {
				if s, broken := rules.Decode(e.data); broken == nil {
					cp = s.CP.SEID
				}
			}
			return nil
		},
		finish: func(*pfcp.Error, []api.Usage) func() { return func() { reply(cp) } },
	})
}

// Delete is n4.Requests'.
func (p *requests) Delete(from []*n4.Association, seid uint64,
	reply func(r *pfcp.SessionDeletionResponse, cpSEID uint64)) {
	var old *rules.Session
	var known []api.Usage
	p.commits.enqueue(&job{
		seid: seid,
		stage: func(t *txn) *pfcp.Error {
			e, _, err := p.owned(from, seid)
			if err != nil {
				return err
			}
			s, broken := rules.Decode(e.data)
			if broken != nil {
				return rules.Refuse(pfcp.CauseSystemFailure, 0, broken.Error())
			}
			old, known = s, p.reader.lastKnown(seid)
			return p.dropThis(t, e, s)
		},
		finish: func(err *pfcp.Error, rows []api.Usage) func() {
			r := &pfcp.SessionDeletionResponse{Cause: pfcp.CauseAccepted}
			var cp uint64
			if old != nil {
				cp = old.CP.SEID
			}
			if err != nil {
				r.Cause, r.Offending, r.Text = err.Cause, err.Offending, err.Text
			} else {
				p.count.Deleted++
				rows = p.reports.deferred.join(seid, append(rows, known...), true)
				r.Usage = rules.Reports(old, rows)
			}
			return func() { reply(r, cp) }
		},
	})
}

// forget deletes a session that its CP function does not know any more: no other request would (TS 23.527 §4.3).
func (p *requests) forget(seid uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.Info("a session that its CP function does not know is deleted", "session", rules.Key(seid))
	p.commits.begin(&deferredJob{seids: slices.Values([]uint64{seid}), stage: p.deletion})
}

// carryOut applies the answer to a report. by is the member that answered; nil: the session's owner.
func (p *requests) carryOut(seid uint64, by *n4.Association, req *pfcp.SessionModificationRequest) {
	p.mu.Lock()
	e, there := p.x.at(seid)
	if there && by == nil {
		by = &n4.Association{ID: e.owner.id, Set: e.owner.set}
	}
	p.mu.Unlock()
	if !there {
		return
	}
	p.Modify([]*n4.Association{by}, seid, req, func(m *pfcp.SessionModificationResponse, _ uint64) {
		if m.Cause != pfcp.CauseAccepted {
			p.log.Warn("what the answer to a report asked for is refused",
				"session", rules.Key(seid), "cause", m.Cause)
		}
	})
}
