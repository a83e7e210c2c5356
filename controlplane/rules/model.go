// SPDX-License-Identifier: Apache-2.0

// Package rules has the rules of a session: what PFCP requests make of them, and the contract's objects that they
// become. Pure functions: no lock, no input or output.
package rules

import (
	"net/netip"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
)

// Session is one PFCP session: the CP function's rules with all choices (CHOOSE, CHV4, CHV6) filled in. Or it is a
// wireline subscriber, configured or signed in, with rules outside of network instances.
type Session struct {
	// Line is a wireline subscriber's traffic endpoint and its pipe, as the contract has them; nil in a PFCP
	// session.
	Line *api.Session
	// LineFilters are those of the subscriber's PDRs, by id: SDF filters cannot match VLAN tags.
	LineFilters map[uint16][]api.SDF
	SEID        uint64 // ours
	CP          pfcp.FSEID
	Owner       string // association
	Moved       bool   // the owner inherited it, and has given it no CP F-SEID yet
	Worker      uint16
	Pipe        Pipe   // where the downlink is shaped
	Inactivity  uint32 // seconds
	Discards    uint16 // requests to drop what waits (DROBU)
	// Association is the digest of the association or SMF set that established the session. It stays when another
	// member of the set takes over.
	Association uint32
	UserID      string
	APN         string
	SNSSAI      string
	FQCSID      [][]byte

	PDR      []pfcp.CreatePDR
	FAR      []FAR
	QER      []QER
	URR      []URR
	BAR      []pfcp.CreateBAR
	Endpoint []pfcp.CreateTrafficEndpoint
}

// index is the place of the rule with an id, -1 without one. Lists are short.
func index[T any, R pfcp.Rule[T]](list []T, id uint32) int {
	for i := range list {
		if R(&list[i]).Rule().ID == id {
			return i
		}
	}
	return -1
}

// find is the rule with an id, nil without one.
func find[T any, R pfcp.Rule[T]](list []T, id uint32) *T {
	if i := index[T, R](list, id); i >= 0 {
		return &list[i]
	}
	return nil
}

func (s *Session) pdr(id uint16) *pfcp.CreatePDR                 { return find(s.PDR, uint32(id)) }
func (s *Session) far(id uint32) *FAR                            { return find(s.FAR, id) }
func (s *Session) qer(id uint32) *QER                            { return find(s.QER, id) }
func (s *Session) urr(id uint32) *URR                            { return find(s.URR, id) }
func (s *Session) bar(id uint8) *pfcp.CreateBAR                  { return find(s.BAR, uint32(id)) }
func (s *Session) endpoint(id uint8) *pfcp.CreateTrafficEndpoint { return find(s.Endpoint, uint32(id)) }

// pdi is a PDR's PDI, overridden by its traffic endpoint (TS 29.244 §5.2.1A.2, PDI optimisation).
func (s *Session) pdi(p *pfcp.CreatePDR) pfcp.PDI {
	pdi := p.PDI
	if pdi.TrafficEndpoint == nil {
		return pdi
	}
	e := s.endpoint(*pdi.TrafficEndpoint)
	if e == nil {
		return pdi
	}
	if e.LocalFTEID != nil {
		pdi.LocalFTEID = e.LocalFTEID
	}
	if e.NetworkInstance != "" {
		pdi.NetworkInstance = e.NetworkInstance
	}
	if len(e.UEIP) > 0 {
		pdi.UEIP = e.UEIP
	}
	if len(e.FramedRoutes) > 0 {
		pdi.FramedRoutes = e.FramedRoutes
	}
	if len(pdi.QFI) == 0 {
		pdi.QFI = e.QFI
	}
	return pdi
}

// address is the content of UE IP Address IEs: at most one IPv4 address and one IPv6 prefix (the contract's session has
// room for one of each).
func address(list []pfcp.UEIP) (v4 netip.Addr, v6 netip.Prefix, ok bool) {
	for i := range list {
		if a := list[i].IPv4; a.IsValid() {
			if v4.IsValid() && v4 != a {
				return v4, v6, false
			}
			v4 = a
		}
		if p := list[i].IPv6; p.IsValid() {
			if v6.IsValid() && v6 != p.Masked() {
				return v4, v6, false
			}
			v6 = p.Masked()
		}
	}
	return v4, v6, true
}

// Buffers: packets that match a PDR are still buffered.
func (s *Session) Buffers(id uint16) bool {
	r := s.pdr(id)
	if r == nil || r.FAR == nil {
		return false
	}
	f := s.far(*r.FAR)
	return f != nil && f.Action&pfcp.ActionBuffer != 0 && f.Action&pfcp.ActionNotify != 0
}

// IE types that refusals name (TS 29.244 §8.1.2).
const (
	ieCreatePDR       = 1
	ieCreateFAR       = 3
	ieForwarding      = 4
	ieDuplicating     = 5
	IEFTEID           = 21
	ieNetworkInstance = 22
	ieSDF             = 23
	ieApplication     = 24
	ieGate            = 25
	ieMethod          = 62
	ieTriggers        = 37
	iePolicy          = 41
	ieDestination     = 42
	ieApplyAction     = 44
	ieOuterCreation   = 84
	IEUEIP            = 93
	ieOuterRemoval    = 95
	iePredefined      = 106
	ieFAR             = 108
	iePDNType         = 113
)

// Refuse makes the error of a request that is refused as a whole.
func Refuse(cause pfcp.Cause, offending uint16, text string) *pfcp.Error {
	return &pfcp.Error{Cause: cause, Offending: offending, Text: text}
}

// Fault makes the error of a rule that cannot be carried out (TS 29.244 §7.5.3.1: cause 73 and the Failed Rule ID).
func Fault(t pfcp.RuleType, id uint32, offending uint16, text string) *pfcp.Error {
	return &pfcp.Error{Cause: pfcp.CauseRuleFailure, Offending: offending, Rule: &pfcp.FailedRule{Type: t, ID: id},
		Text: text}
}

// Lacks is fault for what is right in itself but more than we have.
func Lacks(t pfcp.RuleType, id uint32, cause pfcp.Cause, offending uint16, text string) *pfcp.Error {
	e := Fault(t, id, offending, text)
	e.Cause = cause
	return e
}
