// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"isthmus/controlplane/pfcp"
)

// Modify carries out a request on s, which must be a copy of the caller's: when the request is refused, s is worth
// nothing.
func Modify(set *Settings, give giver, s *Session, req *pfcp.SessionModificationRequest) (Changed, *pfcp.Error) {
	m := mutation{set: set, give: give, s: s, had: s.fteids()}
	if err := set.counts(len(req.CreatePDR), len(req.CreateFAR), len(req.CreateQER), len(req.CreateURR)); err != nil {
		return Changed{}, err
	}
	if req.CP != nil {
		s.CP = *req.CP
	}
	if len(req.FQCSID) > 0 { // TS 29.244 §7.5.4.1: those that the session belongs to from now on
		s.FQCSID = slices.Clone(req.FQCSID)
	}
	if req.Inactivity != nil {
		s.Inactivity = seconds(*req.Inactivity)
	}
	if drops(req) {
		s.Discards++
	}
	if req.SNSSAI != "" {
		s.SNSSAI = req.SNSSAI
	}
	// TS 29.244 does not say in which order the parts of a message come into effect; together they are one change,
	// so an id that is removed may be created anew.
	for _, step := range []func(*pfcp.SessionModificationRequest) *pfcp.Error{
		m.remove, m.create, m.updateForwarding, m.updateRules, m.query} {
		if err := step(req); err != nil {
			return Changed{}, err
		}
	}
	if err := set.Check(s); err != nil {
		return Changed{}, err
	}
	if err := m.fill(); err != nil {
		return Changed{}, err
	}
	return m.Changed, nil
}

// drops tells whether what waits is to be dropped before the FARs apply (DROBU). The flag is the session's wherever it
// stands (TS 29.244 §8.2.31).
func drops(req *pfcp.SessionModificationRequest) bool {
	return req.DropBuffered || slices.ContainsFunc(req.UpdateFAR, func(u pfcp.UpdateFAR) bool {
		return u.Forwarding != nil && u.Forwarding.DropBuffered
	})
}

// fteids are all local F-TEIDs, as copies.
func (s *Session) fteids() []pfcp.FTEID {
	var list []pfcp.FTEID
	for i := range s.PDR {
		if f := s.PDR[i].PDI.LocalFTEID; f != nil {
			list = append(list, *f)
		}
	}
	for i := range s.Endpoint {
		if f := s.Endpoint[i].LocalFTEID; f != nil {
			list = append(list, *f)
		}
	}
	return list
}

// without removes what has an id from a list; it fails when nothing has (row P28).
func without[T any, ID comparable](list []T, id ID, of func(*T) ID) ([]T, bool) {
	for i := range list {
		if of(&list[i]) == id {
			return slices.Delete(list, i, i+1), true
		}
	}
	return list, false
}

func (m *mutation) remove(req *pfcp.SessionModificationRequest) *pfcp.Error {
	s, ok := m.s, true
	for _, id := range req.RemovePDR {
		if s.PDR, ok = without(s.PDR, id, func(p *pfcp.CreatePDR) uint16 { return p.ID }); !ok {
			return Fault(pfcp.RulePDR, uint32(id), 0, "no such PDR to remove")
		}
	}
	for _, id := range req.RemoveFAR {
		if s.FAR, ok = without(s.FAR, id, func(f *FAR) uint32 { return f.ID }); !ok {
			return Fault(pfcp.RuleFAR, id, 0, "no such FAR to remove")
		}
	}
	for _, id := range req.RemoveQER {
		if s.QER, ok = without(s.QER, id, func(q *QER) uint32 { return q.ID }); !ok {
			return Fault(pfcp.RuleQER, id, 0, "no such QER to remove")
		}
		for i := range s.PDR { // PDRs that stay lose the QER with it
			s.PDR[i].QER = slices.DeleteFunc(s.PDR[i].QER, func(q uint32) bool { return q == id })
		}
	}
	for _, id := range req.RemoveURR {
		if s.URR, ok = without(s.URR, id, func(u *URR) uint32 { return u.ID }); !ok {
			return Fault(pfcp.RuleURR, id, 0, "no such URR to remove")
		}
		for i := range s.PDR {
			s.PDR[i].URR = slices.DeleteFunc(s.PDR[i].URR, func(u uint32) bool { return u == id })
		}
		for i := range s.URR {
			s.URR[i].Linked = slices.DeleteFunc(s.URR[i].Linked, func(u uint32) bool { return u == id })
		}
	}
	for _, id := range req.RemoveBAR {
		if s.BAR, ok = without(s.BAR, id, func(b *pfcp.CreateBAR) uint8 { return b.ID }); !ok {
			return Fault(pfcp.RuleBAR, uint32(id), 0, "no such BAR to remove")
		}
		for i := range s.FAR {
			if b := s.FAR[i].BAR; b != nil && *b == id {
				s.FAR[i].BAR = nil
			}
		}
	}
	for _, id := range req.RemoveEndpoint {
		if s.Endpoint, ok = without(s.Endpoint, id, func(e *pfcp.CreateTrafficEndpoint) uint8 { return e.ID }); !ok {
			return Refuse(pfcp.CauseRejected, 0, "no such traffic endpoint to remove")
		}
		// TS 29.244 §5.2.1A.2: the PDRs that refer to a traffic endpoint go with it.
		s.PDR = slices.DeleteFunc(s.PDR, func(p pfcp.CreatePDR) bool {
			return p.PDI.TrafficEndpoint != nil && *p.PDI.TrafficEndpoint == id
		})
	}
	return nil
}

func (m *mutation) create(req *pfcp.SessionModificationRequest) *pfcp.Error {
	m.add(req.CreatePDR, req.CreateFAR, req.CreateQER, req.CreateURR, req.CreateBAR, req.CreateEndpoint)
	return nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func replace[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

func (m *mutation) updateForwarding(req *pfcp.SessionModificationRequest) *pfcp.Error {
	s := m.s
	for i := range req.UpdateFAR {
		u := &req.UpdateFAR[i]
		f := s.far(u.ID)
		if f == nil {
			return Fault(pfcp.RuleFAR, u.ID, 0, "no such FAR to update")
		}
		set(&f.Action, u.Action)
		replace(&f.Duplicating, u.Duplicating)
		replace(&f.BAR, u.BAR)
		if u.Forwarding != nil {
			f.update(u.Forwarding, req.EndMarkers)
		}
	}
	for i := range req.UpdateBAR {
		u := &req.UpdateBAR[i]
		b := s.bar(u.ID)
		if b == nil {
			return Fault(pfcp.RuleBAR, uint32(u.ID), 0, "no such BAR to update")
		}
		updateBAR(b, u)
	}
	for i := range req.UpdateEndpoint {
		u := &req.UpdateEndpoint[i]
		e := s.endpoint(u.ID)
		if e == nil {
			return Refuse(pfcp.CauseRejected, 0, "no such traffic endpoint to update")
		}
		if u.LocalFTEID != nil {
			e.LocalFTEID = u.LocalFTEID
		}
		if u.NetworkInstance != "" {
			e.NetworkInstance = u.NetworkInstance
		}
		if len(u.UEIP) > 0 {
			e.UEIP = u.UEIP
		}
		if len(u.FramedRoutes) > 0 {
			e.FramedRoutes = u.FramedRoutes
		}
		if len(u.QFI) > 0 {
			e.QFI = u.QFI
		}
		m.freshEndpoints = append(m.freshEndpoints, u.ID)
	}
	return nil
}

func (m *mutation) updateRules(req *pfcp.SessionModificationRequest) *pfcp.Error {
	s := m.s
	for i := range req.UpdatePDR {
		u := &req.UpdatePDR[i]
		p := s.pdr(u.ID)
		if p == nil {
			return Fault(pfcp.RulePDR, uint32(u.ID), 0, "no such PDR to update")
		}
		set(&p.Precedence, u.Precedence)
		replace(&p.OuterHeaderRemoval, u.OuterHeaderRemoval)
		replace(&p.FAR, u.FAR)
		set(&p.QER, u.QER)
		set(&p.URR, u.URR)
		if len(u.ActivatePredefined) > 0 {
			p.ActivatePredefined = u.ActivatePredefined
		}
		if u.PDI != nil {
			p.PDI = *u.PDI
			m.fresh = append(m.fresh, u.ID)
		}
	}
	for i := range req.UpdateQER {
		u := &req.UpdateQER[i]
		q := s.qer(u.ID)
		if q == nil {
			return Fault(pfcp.RuleQER, u.ID, 0, "no such QER to update")
		}
		updateQER(&q.CreateQER, u)
	}
	for i := range req.UpdateURR {
		u := &req.UpdateURR[i]
		r := s.urr(u.ID)
		if r == nil {
			return Fault(pfcp.RuleURR, u.ID, 0, "no such URR to update")
		}
		r.update(u)
	}
	return nil
}

// query asks for reports (TS 29.244 §7.5.4.10).
func (m *mutation) query(req *pfcp.SessionModificationRequest) *pfcp.Error {
	for _, id := range req.QueryURR {
		u := m.s.urr(id)
		if u == nil {
			return Fault(pfcp.RuleURR, id, 0, "no such URR to query")
		}
		u.Query++
	}
	if req.QueryAll {
		for i := range m.s.URR {
			m.s.URR[i].Query++
		}
	}
	return nil
}

func seconds(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	return uint32(min((d+time.Second-1)/time.Second, 1<<32-1))
}
