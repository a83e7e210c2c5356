// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net/netip"
	"slices"

	"isthmus/controlplane/pfcp"
)

// giver allocates what a CP function leaves to us. Allocations stay reserved until the request ends.
type giver interface {
	TEID(v4, v6 netip.Addr) uint32 // unused at both addresses (an invalid one does not count)
	UE4(i *Instance) (netip.Addr, bool)
	UE6(i *Instance, bits uint8) (netip.Prefix, bool)
}

// Changed is the session's part of the answer to a request.
type Changed struct {
	PDRs      []pfcp.CreatedPDR
	Endpoints []pfcp.CreatedEndpoint
}

// Establish makes a session of a request. It changes only give's reservations.
func Establish(set *Settings, give giver, req *pfcp.SessionEstablishmentRequest) (*Session, Changed, *pfcp.Error) {
	s := &Session{CP: req.CP, Inactivity: seconds(req.Inactivity), UserID: req.UserID, APN: req.APN, SNSSAI: req.SNSSAI,
		FQCSID: req.FQCSID}
	switch {
	case len(req.PDR) == 0: // row P11
		return nil, Changed{}, Refuse(pfcp.CauseMandatoryIEMissing, ieCreatePDR, "no PDR")
	case len(req.FAR) == 0:
		return nil, Changed{}, Refuse(pfcp.CauseMandatoryIEMissing, ieCreateFAR, "no FAR")
	// TS 29.244 §8.2.79: 1 IPv4, 2 IPv6, 3 IPv4v6, 4 Non-IP, 5 Ethernet.
	case req.PDNType != nil && (*req.PDNType < 1 || *req.PDNType > 5): // row P12
		return nil, Changed{}, Refuse(pfcp.CauseMandatoryIEIncorrect, iePDNType, "no such PDN type")
	case req.PDNType != nil && *req.PDNType > 3:
		return nil, Changed{}, Refuse(pfcp.CauseServiceNotSupported, iePDNType, "only IP sessions are served")
	}
	if err := set.counts(len(req.PDR), len(req.FAR), len(req.QER), len(req.URR)); err != nil {
		return nil, Changed{}, err // before anything is copied (row P26)
	}
	m := mutation{set: set, give: give, s: s, restore: req.Restoration}
	m.add(req.PDR, req.FAR, req.QER, req.URR, req.BAR, req.Endpoint)
	err := set.Check(s)
	if err == nil {
		err = m.fill()
	}
	if err != nil {
		return nil, Changed{}, err
	}
	return s, m.Changed, nil
}

// mutation is a request on its way through a session.
type mutation struct {
	set     *Settings
	give    giver
	s       *Session
	restore bool         // RESTI
	had     []pfcp.FTEID // F-TEIDs of the session before the request, which may name them again
	Changed
	fresh          []uint16 // PDRs whose PDI this request brought
	freshEndpoints []uint8
}

// add appends what a request creates.
func (m *mutation) add(pdrs []pfcp.CreatePDR, fars []pfcp.CreateFAR, qers []pfcp.CreateQER, urrs []pfcp.CreateURR,
	bars []pfcp.CreateBAR, endpoints []pfcp.CreateTrafficEndpoint) {
	s := m.s
	s.FAR, s.QER, s.URR = slices.Grow(s.FAR, len(fars)), slices.Grow(s.QER, len(qers)), slices.Grow(s.URR, len(urrs))
	s.PDR, s.BAR, s.Endpoint = append(s.PDR, pdrs...), append(s.BAR, bars...), append(s.Endpoint, endpoints...)
	for i := range pdrs {
		m.fresh = append(m.fresh, pdrs[i].ID)
	}
	for i := range fars {
		s.FAR = append(s.FAR, newFAR(fars[i]))
	}
	for i := range qers {
		s.QER = append(s.QER, QER{CreateQER: qers[i]})
	}
	for i := range urrs {
		s.URR = append(s.URR, URR{CreateURR: urrs[i]})
	}
	for i := range endpoints {
		m.freshEndpoints = append(m.freshEndpoints, endpoints[i].ID)
	}
}

// fill gives out what this request left to us and checks the F-TEIDs that it brought.
func (m *mutation) fill() *pfcp.Error {
	for _, id := range m.freshEndpoints {
		e := m.s.endpoint(id)
		made := pfcp.CreatedEndpoint{ID: id}
		if err := m.choose(&e.LocalFTEID, &e.UEIP, e.NetworkInstance, m.side(id), &made.LocalFTEID,
			&made.UEIP); err != nil {
			return err
		}
		if made.LocalFTEID != nil || made.UEIP != nil {
			m.Endpoints = append(m.Endpoints, made)
		}
	}
	for _, id := range m.fresh {
		p := m.s.pdr(id)
		pdi := m.s.pdi(p)
		made := pfcp.CreatedPDR{ID: id}
		if err := m.choose(&p.PDI.LocalFTEID, &p.PDI.UEIP, pdi.NetworkInstance, pdi.Source, &made.LocalFTEID,
			&made.UEIP); err != nil {
			err.Rule = &pfcp.FailedRule{Type: pfcp.RulePDR, ID: uint32(id)}
			return err
		}
		if made.LocalFTEID != nil || made.UEIP != nil {
			m.PDRs = append(m.PDRs, made)
		}
	}
	return nil
}

// choose resolves the F-TEID and the UE addresses of a PDR or traffic endpoint; madeFTEID and madeUE are the allocated
// ones.
func (m *mutation) choose(f **pfcp.FTEID, ue *[]pfcp.UEIP, name string, side pfcp.Interface, madeFTEID **pfcp.FTEID,
	madeUE *[]pfcp.UEIP) *pfcp.Error {
	fteid, chosen, err := m.fteid(*f, name, side)
	if err != nil {
		return err
	}
	if *f = fteid; chosen {
		*madeFTEID = fteid
	}
	list, chosen, err := m.ueip(*ue, name, side)
	if err != nil {
		return err
	}
	if chosen {
		*ue, *madeUE = list, list
	}
	return nil
}

// side is the direction of a traffic endpoint's packets, by the PDRs that use it.
func (m *mutation) side(endpoint uint8) pfcp.Interface {
	for i := range m.s.PDR {
		if e := m.s.PDR[i].PDI.TrafficEndpoint; e != nil && *e == endpoint {
			return m.s.PDR[i].PDI.Source
		}
	}
	return pfcp.Access
}

// fteid resolves a local F-TEID; chosen: we allocated it.
func (m *mutation) fteid(f *pfcp.FTEID, name string, side pfcp.Interface) (made *pfcp.FTEID, chosen bool,
	err *pfcp.Error) {
	if f == nil {
		return nil, false, nil
	}
	if !f.Choose {
		if n := slices.IndexFunc(m.had, f.Same); n >= 0 {
			return &m.had[n], false, nil // as it was: with its CHOOSE ID
		}
		return f, false, m.checkGiven(f)
	}
	if m.set.FTEID == FTEIDCp {
		return nil, false, Refuse(pfcp.CauseInvalidFTEIDAllocation, IEFTEID,
			"F-TEIDs are chosen by the CP function here")
	}
	instance := m.set.find(name, side, needEndpoint)
	if instance == nil {
		return nil, false, Refuse(pfcp.CauseRuleFailure, ieNetworkInstance, m.set.lacks(name, side))
	}
	if f.HasChooseID {
		if same := m.chosen(f.ChooseID, instance, side); same != nil {
			return same, true, nil
		}
	}
	made = &pfcp.FTEID{HasChooseID: f.HasChooseID, ChooseID: f.ChooseID}
	if f.WantIPv4 {
		made.IPv4 = instance.endpoint(true)
	}
	if f.WantIPv6 {
		made.IPv6 = instance.endpoint(false)
	}
	if !made.IPv4.IsValid() && !made.IPv6.IsValid() { // row P16
		return nil, false, Refuse(pfcp.CauseNoResources, IEFTEID,
			"network instance "+instance.Name+" has no address of this family")
	}
	if made.TEID = m.give.TEID(made.IPv4, made.IPv6); made.TEID == 0 {
		return nil, false, Refuse(pfcp.CauseNoResources, IEFTEID, "no F-TEID is free")
	}
	return made, true, nil
}

// chosen returns the F-TEID of a CHOOSE ID, nil without one. By TS 29.244 §5.5.3 all PDRs of one request with that id
// share an F-TEID. Open5GS repeats the id in later requests and means the same F-TEID. So the id stays valid while the
// session has the F-TEID; across requests, for the same side only.
func (m *mutation) chosen(id uint8, instance *Instance, side pfcp.Interface) *pfcp.FTEID {
	is := func(f *pfcp.FTEID) bool {
		return f != nil && f.HasChooseID && !f.Choose && f.ChooseID == id &&
			(slices.Contains(instance.Endpoints, f.IPv4) ||
				slices.Contains(instance.Endpoints, f.IPv6))
	}
	for i := range m.s.Endpoint {
		e := &m.s.Endpoint[i]
		if is(e.LocalFTEID) && (slices.Contains(m.freshEndpoints, e.ID) || m.side(e.ID) == side) {
			return e.LocalFTEID
		}
	}
	for i := range m.s.PDR {
		p := &m.s.PDR[i]
		if is(p.PDI.LocalFTEID) && (slices.Contains(m.fresh, p.ID) || p.PDI.Source == side) {
			return p.PDI.LocalFTEID
		}
	}
	return nil
}

func (m *mutation) checkGiven(f *pfcp.FTEID) *pfcp.Error {
	switch {
	case m.set.FTEID == FTEIDUp && !m.restore: // row P18, TS 29.244 §5.5.1
		return Refuse(pfcp.CauseInvalidFTEIDAllocation, IEFTEID, "F-TEIDs are chosen by the UP function here")
	case f.TEID == 0: // row P17; TS 29.281 §5.1: 0 is for signalling
		return Refuse(pfcp.CauseMandatoryIEIncorrect, IEFTEID, "TEID 0")
	case !f.IPv4.IsValid() && !f.IPv6.IsValid():
		return Refuse(pfcp.CauseMandatoryIEIncorrect, IEFTEID, "F-TEID without address")
	}
	for _, a := range []netip.Addr{f.IPv4, f.IPv6} {
		if a.IsValid() && m.set.Owner(a) == nil {
			return Refuse(pfcp.CauseRuleFailure, IEFTEID, a.String()+" is no GTP-U address of ours")
		}
	}
	return nil
}

// ueip fills in UE addresses left to us; all PDRs of a session have the same.
func (m *mutation) ueip(list []pfcp.UEIP, name string, side pfcp.Interface) (made []pfcp.UEIP, chosen bool,
	err *pfcp.Error) {
	if !slices.ContainsFunc(list, func(u pfcp.UEIP) bool { return u.ChooseIPv4 || u.ChooseIPv6 }) {
		return list, false, nil
	}
	has4, has6 := m.addresses()
	list = slices.Clone(list)
	for i := range list {
		u := &list[i]
		if u.ChooseIPv4 && !has4.IsValid() {
			pool := m.pool(name, side, true)
			if pool == nil {
				return nil, false, Refuse(pfcp.CauseNoResources, IEUEIP,
					"no network instance with a pool of IPv4 addresses")
			}
			var ok bool
			if has4, ok = m.give.UE4(pool); !ok {
				return nil, false, Refuse(pfcp.CauseAllDynamicAddresses, IEUEIP,
					"all IPv4 addresses of "+pool.Name+" are taken")
			}
		}
		if u.ChooseIPv6 && !has6.IsValid() {
			pool := m.pool(name, side, false)
			if pool == nil {
				return nil, false, Refuse(pfcp.CauseNoResources, IEUEIP,
					"no network instance with a pool of IPv6 prefixes")
			}
			bits := u.ChooseLength
			if bits == 0 {
				bits = 64
			}
			var ok bool
			if has6, ok = m.give.UE6(pool, bits); !ok {
				return nil, false, Refuse(pfcp.CauseAllDynamicAddresses, IEUEIP,
					"no IPv6 prefix of "+pool.Name+" is free")
			}
		}
		if u.ChooseIPv4 {
			u.IPv4, u.ChooseIPv4 = has4, false
		}
		if u.ChooseIPv6 {
			u.IPv6, u.ChooseIPv6, u.ChooseLength = has6, false, 0
		}
	}
	return list, true, nil
}

// pool returns the instance with the pools of a UE address: the rule's own, or one towards the data network.
func (m *mutation) pool(name string, side pfcp.Interface, v4 bool) *Instance {
	has := func(i *Instance) bool {
		return i != nil && slices.ContainsFunc(i.Pools, func(p netip.Prefix) bool { return p.Addr().Is4() == v4 })
	}
	for _, i := range []*Instance{m.set.named(name), m.set.find(name, side, needLookup),
		m.set.find(name, pfcp.Core, needLookup), m.set.find("", pfcp.SGiLAN, needLookup)} {
		if has(i) {
			return i
		}
	}
	return nil
}

// addresses are the UE addresses that the session has so far.
func (m *mutation) addresses() (v4 netip.Addr, v6 netip.Prefix) {
	look := func(list []pfcp.UEIP) {
		a, p, _ := address(list)
		if a.IsValid() {
			v4 = a
		}
		if p.IsValid() {
			v6 = p
		}
	}
	for i := range m.s.Endpoint {
		look(m.s.Endpoint[i].UEIP)
	}
	for i := range m.s.PDR {
		look(m.s.PDR[i].PDI.UEIP)
	}
	return v4, v6
}
