// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"isthmus/controlplane/pfcp"
)

// Modify carries out a request on s, which must be the caller's copy: after a refusal s is invalid.
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
	// TS 29.244 leaves the order of a message's parts open; together they are one change, so a removed id may be
	// created again.
	for _, step := range []func(*pfcp.SessionModificationRequest) *pfcp.Error{
		m.emptyActions, m.remove, m.create, m.update, m.query} {
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

// drops: buffered packets are dropped before the FARs apply (DROBU). The flag applies to the whole session wherever it
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

// missing refuses a message that names a rule which is not there (row P28).
func missing[T any, R pfcp.Rule[T]](id uint32, verb string) *pfcp.Error {
	t := R(new(T)).Rule().Type
	text := fmt.Sprintf("no such %s to %s", t, verb)
	if t == pfcp.RuleEndpoint {
		return Refuse(pfcp.CauseRejected, 0, text)
	}
	return Fault(t, id, 0, text)
}

// remove takes rules out of a list.
func remove[T any, R pfcp.Rule[T], ID uint8 | uint16 | uint32](list *[]T, ids []ID) *pfcp.Error {
	for _, id := range ids {
		i := index[T, R](*list, uint32(id))
		if i < 0 {
			return missing[T, R](uint32(id), "remove")
		}
		*list = slices.Delete(*list, i, i+1)
	}
	return nil
}

func (m *mutation) remove(req *pfcp.SessionModificationRequest) *pfcp.Error {
	s := m.s
	err := cmp.Or(remove(&s.PDR, req.RemovePDR), remove(&s.FAR, req.RemoveFAR), remove(&s.QER, req.RemoveQER),
		remove(&s.URR, req.RemoveURR), remove(&s.BAR, req.RemoveBAR), remove(&s.Endpoint, req.RemoveEndpoint))
	if err != nil {
		return err
	}
	// Remaining rules refer to no removed one; and TS 29.244 §5.2.1A.2: PDRs go with their traffic endpoint.
	gone := func(ids []uint32) func(uint32) bool {
		return func(id uint32) bool { return slices.Contains(ids, id) }
	}
	s.PDR = slices.DeleteFunc(s.PDR, func(p pfcp.CreatePDR) bool {
		return p.PDI.TrafficEndpoint != nil && slices.Contains(req.RemoveEndpoint, *p.PDI.TrafficEndpoint)
	})
	for i := range s.PDR {
		p := &s.PDR[i]
		p.QER = slices.DeleteFunc(p.QER, gone(req.RemoveQER))
		p.URR = slices.DeleteFunc(p.URR, gone(req.RemoveURR))
	}
	for i := range s.URR {
		s.URR[i].Linked = slices.DeleteFunc(s.URR[i].Linked, gone(req.RemoveURR))
	}
	for i := range s.FAR {
		if b := s.FAR[i].BAR; b != nil && slices.Contains(req.RemoveBAR, *b) {
			s.FAR[i].BAR = nil
		}
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

// merge takes over an update's present parts: pointers that are not nil, lists and texts that are not empty, the equal
// id.
func merge[T any](to, from *T) {
	t, f := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range f.NumField() {
		if v := f.Field(i); !v.IsZero() {
			t.Field(i).Set(v)
		}
	}
}

// update changes the rules that a message names.
func update[T, U any, R pfcp.Rule[T], V pfcp.Rule[U]](list []T, updates []U, change func(*T, *U)) *pfcp.Error {
	for i := range updates {
		id := V(&updates[i]).Rule().ID
		rule := find[T, R](list, id)
		if rule == nil {
			return missing[T, R](id, "update")
		}
		change(rule, &updates[i])
	}
	return nil
}

func (m *mutation) update(req *pfcp.SessionModificationRequest) *pfcp.Error {
	s := m.s
	return cmp.Or(
		update(s.FAR, req.UpdateFAR, func(f *FAR, u *pfcp.UpdateFAR) { f.update(u, req.EndMarkers) }),
		update(s.BAR, req.UpdateBAR, merge[pfcp.CreateBAR]),
		update(s.Endpoint, req.UpdateEndpoint, m.updateEndpoint),
		update(s.PDR, req.UpdatePDR, m.updatePDR),
		update(s.QER, req.UpdateQER, (*QER).update),
		update(s.URR, req.UpdateURR, (*URR).update))
}

func (m *mutation) updateEndpoint(e, u *pfcp.CreateTrafficEndpoint) {
	merge(e, u)
	m.freshEndpoints = append(m.freshEndpoints, u.ID)
}

func (m *mutation) updatePDR(p *pfcp.CreatePDR, u *pfcp.UpdatePDR) {
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
