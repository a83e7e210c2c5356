// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"fmt"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/pool"
	"isthmus/controlplane/session/store"
)

// Establish is n4.Sessions'.
func (p *Manager) Establish(from *n4.Association, req *pfcp.SessionEstablishmentRequest, reply func(*pfcp.SessionEstablishmentResponse)) {
	var made *rules.Session
	var out rules.Changed
	p.enqueue(&job{
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

// identify fills in who we are.
func (p *Manager) identify(r *pfcp.SessionEstablishmentResponse) {
	r.Node = p.node
	if reporter := p.reports.reporter(); reporter != nil && r.Cause == pfcp.CauseAccepted {
		r.UP.IPv4, r.UP.IPv6 = reporter.Address()
	}
}

// ownerFor is who is to have a session; one that nobody knew before is forgotten when nothing comes of it.
func (p *Manager) ownerFor(t *txn, from *n4.Association) *owner {
	known := p.x.owners[from.ID] != nil
	o := p.x.owner(from.ID)
	if !known {
		t.onUndo(func() { p.x.part(o) })
	}
	o.set = from.Set
	return o
}

func (p *Manager) establish(t *txn, from *n4.Association, req *pfcp.SessionEstablishmentRequest) (*rules.Session, rules.Changed, *pfcp.Error) {
	o := p.ownerFor(t, from)
	switch limits := &p.set.Limits; {
	case p.client == nil: // nobody who could forward: better another UP function than a session without traffic
		return nil, rules.Changed{}, rules.Refuse(pfcp.CauseNoResources, 0, "the data plane is away")
	case limits.Sessions > 0 && len(p.x.session) >= limits.Sessions, // row A6
		limits.SessionsPerAssociation > 0 && o.sessions >= limits.SessionsPerAssociation:
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

// insert puts a session that is new into the transaction.
func (p *Manager) insert(t *txn, s *rules.Session, o *owner) *pfcp.Error {
	if err := p.shares.assign(t, s, p.spread(s.SEID), nil); err != nil {
		return err
	}
	if err := p.x.pipes.settle(p.set, s); err != nil {
		return err
	}
	c, err := p.compiled(s)
	if err != nil {
		return err
	}
	if err := p.settleConflicts(t, s, c); err != nil {
		return err
	}
	e := p.x.enter(s, p.number(), o)
	p.x.add(s.SEID, c)
	o.sessions++
	regroup := p.x.regroup(s.SEID, nil, groupsOf(s, o))
	t.onUndo(func() {
		regroup()
		delete(p.x.session, s.SEID)
		p.x.records.Drop(e.at)
		p.x.remove(s.SEID, c)
		o.sessions--
	})
	p.put(t, s.SEID, e, c, nil)
	return nil
}

// spread gives each session an owner among the workers.
func (p *Manager) spread(seid uint64) uint16 {
	return uint16((seid >> 32) * uint64(max(p.set.Workers, 1)) >> 32)
}

// put enters a session's object and its record into the transaction.
func (p *Manager) put(t *txn, seid uint64, e entry, c, former *rules.Compiled) {
	var before []rules.Object
	if former != nil {
		before = former.Objects
	}
	p.objects.use(t, pool.Stamp(p.x.now()), c.Objects, before)
	t.changes = append(t.changes, dp.Change{Kind: api.KindSession, Key: rules.Key(seid), Body: c.Body})
	t.records = append(t.records, sessionRecord(e.number, e.data))
	t.touched[seid] = true
}

// settleConflicts refuses what is another session's, or takes the UE address from it (row A5).
func (p *Manager) settleConflicts(t *txn, s *rules.Session, c *rules.Compiled) *pfcp.Error {
	for {
		at := p.x.conflict(s.SEID, c)
		switch {
		case at.tunnel:
			return at.refusal(rules.IEFTEID, "the F-TEID is another session's")
		case at.other == 0:
			return nil
		case s.Line != nil:
			return p.others(&at)
		case !p.set.Takeover:
			return at.refusal(rules.IEUEIP, "the UE address is a live session's")
		case t.touched[at.other]:
			return errPostponed
		}
		p.log.Info("a session gives way to a new one with its UE address", "session", rules.Key(at.other))
		if err := p.drop(t, at.other); err != nil {
			return err
		}
	}
}

func (c *conflict) refusal(ie uint16, text string) *pfcp.Error {
	return rules.Fault(pfcp.RulePDR, uint32(c.pdr), ie, text)
}

// others tells a subscriber's front end whose it is, in the words that it is shown by. Nothing is taken from anybody:
// what authentication gives twice is a mistake.
func (p *Manager) others(at *conflict) *pfcp.Error {
	what, prefix := "address", at.ue.Prefix.String()
	switch {
	case at.ue.Framed:
		what = "framed route"
	case at.ue.Prefix.IsSingleIP():
		prefix = at.ue.Prefix.Addr().String()
	}
	name := rules.Key(at.other)
	if e, there := p.x.at(at.other); there {
		if s, err := rules.Decode(e.data); err == nil {
			name = cmp.Or(s.UserID, name)
		}
	}
	return rules.Refuse(pfcp.CauseRuleFailure, 0, fmt.Sprintf("%s %s is %s's", what, prefix, name))
}

// compiled is a session for the transaction that is being made.
func (p *Manager) compiled(s *rules.Session) (*rules.Compiled, *pfcp.Error) {
	c, err := p.compile.Compile(p.context(rules.Context{Arena: &p.bodies}), s)
	if err == nil && len(p.trials) > 0 {
		p.trials[0].watch(p, s)
	}
	return c, err
}

// context is what sessions are compiled under now, with these options.
func (p *Manager) context(with rules.Context) rules.Context {
	with.Set, with.PFDs, with.Known = p.set, p.pfds, p.objects
	return with
}

// holds is what a session occupies now, without its body.
func (p *Manager) holds(s *rules.Session) *rules.Compiled {
	c, err := p.compile.Compile(p.context(rules.Context{Bare: true, Lenient: true}), s)
	if err != nil {
		return &rules.Compiled{}
	}
	return c
}

// occupied is what a session holds now.
func (p *Manager) occupied(s *rules.Session) *rules.Compiled {
	return rules.Occupied(p.set, p.pfds, s)
}

// drop takes a session out.
func (p *Manager) drop(t *txn, seid uint64) *pfcp.Error {
	e, _ := p.x.at(seid)
	s, err := rules.Decode(e.data)
	if err != nil {
		return rules.Refuse(pfcp.CauseSystemFailure, 0, err.Error())
	}
	return p.dropThis(t, e, s)
}

// dropThis is drop of a session that is decoded.
func (p *Manager) dropThis(t *txn, e entry, s *rules.Session) *pfcp.Error {
	seid := s.SEID
	c := p.holds(s)
	p.shares.leave(t, shareKeys(s))
	p.objects.use(t, pool.Stamp(p.x.now()), nil, c.Objects)
	delete(p.x.session, seid)
	p.x.remove(seid, c)
	e.owner.sessions--
	regroup := p.x.regroup(seid, groupsOf(s, e.owner), nil)
	t.onUndo(func() {
		regroup()
		p.x.session[seid] = e.at
		p.x.add(seid, c)
		e.owner.sessions++
	})
	t.touched[seid] = true
	t.changes = append(t.changes, dp.Change{Kind: api.KindSession, Key: rules.Key(seid)})
	t.records = append(t.records, sessionRecord(e.number, nil))
	if p.snaps.at[seid] != 0 {
		t.records = append(t.records, store.Record{Kind: store.Reading, Number: seid})
	}
	t.onDone(func() {
		p.snaps.forget(nil, seid)
		p.looksDifferent(e.number, s, nil)
		p.x.records.Drop(e.at)
		p.x.released(c)
		p.gone(t, e.owner, seid)
		p.x.part(e.owner)
		p.reports.ended(seid)
	})
	return nil
}

// owned finds a session for the associations that a message can be from (rows A4, P31), and which of them it is: the
// session's own, else one of its SMF set.
func (p *Manager) owned(from []*n4.Association, seid uint64) (entry, *n4.Association, *pfcp.Error) {
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
			p.log.Warn("many requests for sessions that are not the asker's", "times", p.count.Unknown, "association", from[0].ID)
		}
		return entry{}, nil, rules.Refuse(pfcp.CauseContextNotFound, 0, "no such session of this association")
	}
	return e, from[who], nil
}

// Modify is n4.Sessions'.
func (p *Manager) Modify(from []*n4.Association, seid uint64, req *pfcp.SessionModificationRequest,
	reply func(r *pfcp.SessionModificationResponse, cpSEID uint64)) {
	var out rules.Changed
	var old *rules.Session
	p.enqueue(&job{
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
				r.Usage = rules.Reports(old, p.reports.join(seid, rows, false))
				rules.AnswerQuery(r.Usage, req.QueryReference)
			}
			return func() { reply(r, cp) }
		},
	})
}

func (p *Manager) modify(t *txn, askers []*n4.Association, seid uint64, req *pfcp.SessionModificationRequest) (old *rules.Session, out rules.Changed, err *pfcp.Error) {
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
	// Another CP entity of the set took over (TS 29.244 §5.22): it says so by its F-SEID, its Node ID, or both.
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

// replace puts a session in the place of its former self.
func (p *Manager) replace(t *txn, seid uint64, e entry, o *owner, old, s *rules.Session) *pfcp.Error {
	if err := p.shares.assign(t, s, old.Worker, shareKeys(old)); err != nil {
		return err
	}
	if err := p.x.pipes.settle(p.set, s); err != nil {
		return err
	}
	former := p.holds(old)
	c, err := p.compiled(s)
	if err != nil {
		return err
	}
	if err := p.settleConflicts(t, s, c); err != nil {
		return err
	}
	changed := p.x.enter(s, e.number, o)
	p.x.remove(seid, former)
	p.x.add(seid, c)
	e.owner.sessions--
	o.sessions++
	regroup := p.x.regroup(seid, groupsOf(old, e.owner), groupsOf(s, o))
	t.onUndo(func() {
		regroup()
		o.sessions--
		e.owner.sessions++
		p.x.session[seid] = e.at
		p.x.records.Drop(changed.at)
		p.x.remove(seid, c)
		p.x.add(seid, former)
	})
	p.put(t, seid, changed, c, former)
	t.onDone(func() {
		p.granted(old, s)
		p.looksDifferent(e.number, old, s)
		p.x.records.Drop(e.at)
		p.x.released(former)
		p.x.part(e.owner)
	})
	return nil
}

// Locate is n4.Sessions'. It is a job that changes nothing: what was asked before it about the session is done.
func (p *Manager) Locate(from []*n4.Association, seid uint64, reply func(cpSEID uint64)) {
	var cp uint64
	p.enqueue(&job{
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

// Delete is n4.Sessions'.
func (p *Manager) Delete(from []*n4.Association, seid uint64, reply func(r *pfcp.SessionDeletionResponse, cpSEID uint64)) {
	var old *rules.Session
	var known []api.Usage
	p.enqueue(&job{
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
			old, known = s, p.lastKnown(seid)
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
				r.Usage = rules.Reports(old, p.reports.join(seid, append(rows, known...), true))
			}
			return func() { reply(r, cp) }
		},
	})
}
