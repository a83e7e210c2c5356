// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"isthmus/controlplane/pfcp"
)

// counts refuses what is too much before anything is done with it (rows P25, P26).
func (set *Settings) counts(pdrs, fars, qers, urrs int) *pfcp.Error {
	for _, c := range []struct {
		word      string
		has, most int
	}{{"PDRs", pdrs, set.maxPDRs()}, {"FARs", fars, set.maxFARs()}, {"QERs", qers, set.maxQERs()}, {"URRs", urrs, set.maxURRs()}} {
		if c.has > c.most {
			return Refuse(pfcp.CauseNoResources, 0, fmt.Sprintf("%d %s, at most %d", c.has, c.word, c.most))
		}
	}
	return nil
}

// Check looks at a session as a whole: numbers, names and who refers to whom (rows P13, P25 to P28, P33).
func (set *Settings) Check(s *Session) *pfcp.Error {
	if err := set.counts(len(s.PDR), len(s.FAR), len(s.QER), len(s.URR)); err != nil {
		return err
	}
	if len(s.BAR) > set.maxFARs() || len(s.Endpoint) > set.maxPDRs() {
		return Refuse(pfcp.CauseNoResources, 0, "too many BARs or traffic endpoints")
	}
	if err := s.checkTwice(); err != nil {
		return err
	}
	for i := range s.PDR {
		if err := s.checkPDR(&s.PDR[i]); err != nil {
			return err
		}
	}
	for i := range s.FAR {
		if err := s.checkFAR(&s.FAR[i]); err != nil {
			return err
		}
	}
	for i := range s.QER {
		if err := checkQER(&s.QER[i]); err != nil {
			return err
		}
	}
	for i := range s.URR {
		if err := s.checkURR(&s.URR[i]); err != nil {
			return err
		}
	}
	return nil
}

// twice finds an id that two elements of a list have (row P27). Lists are short.
func twice[T any](list []T, id func(*T) uint32) (uint32, bool) {
	for i := range list {
		for k := range i {
			if id(&list[i]) == id(&list[k]) {
				return id(&list[i]), true
			}
		}
	}
	return 0, false
}

func (s *Session) checkTwice() *pfcp.Error {
	const text = "the id stands twice"
	if id, bad := twice(s.PDR, func(p *pfcp.CreatePDR) uint32 { return uint32(p.ID) }); bad {
		return Fault(pfcp.RulePDR, id, 0, text)
	}
	if id, bad := twice(s.FAR, func(f *FAR) uint32 { return f.ID }); bad {
		return Fault(pfcp.RuleFAR, id, 0, text)
	}
	if id, bad := twice(s.QER, func(q *QER) uint32 { return q.ID }); bad {
		return Fault(pfcp.RuleQER, id, 0, text)
	}
	if id, bad := twice(s.URR, func(u *URR) uint32 { return u.ID }); bad {
		return Fault(pfcp.RuleURR, id, 0, text)
	}
	if id, bad := twice(s.BAR, func(b *pfcp.CreateBAR) uint32 { return uint32(b.ID) }); bad {
		return Fault(pfcp.RuleBAR, id, 0, text)
	}
	if _, bad := twice(s.Endpoint, func(e *pfcp.CreateTrafficEndpoint) uint32 { return uint32(e.ID) }); bad {
		return Refuse(pfcp.CauseRejected, 0, "a traffic endpoint id stands twice")
	}
	return nil
}

func (s *Session) checkPDR(p *pfcp.CreatePDR) *pfcp.Error {
	id := uint32(p.ID)
	switch {
	case p.FAR == nil: // row P13
		return Lacks(pfcp.RulePDR, id, pfcp.CauseConditionalIEMissing, ieFAR, "a PDR without FAR")
	case s.far(*p.FAR) == nil:
		return Fault(pfcp.RulePDR, id, ieFAR, fmt.Sprintf("FAR %d is not there", *p.FAR))
	case len(p.ActivatePredefined) > 0:
		return Lacks(pfcp.RulePDR, id, pfcp.CauseServiceNotSupported, iePredefined, "there are no predefined rules")
	case !p.Activation.IsZero() || !p.Deactivation.IsZero(): // DPDRA is not announced as a feature
		return Lacks(pfcp.RulePDR, id, pfcp.CauseServiceNotSupported, 0, "deferred activation and deactivation")
	case p.PDI.Source > pfcp.CPSide:
		return Fault(pfcp.RulePDR, id, 20, "no such source interface")
	case p.PDI.TrafficEndpoint != nil && s.endpoint(*p.PDI.TrafficEndpoint) == nil:
		return Fault(pfcp.RulePDR, id, 131, fmt.Sprintf("traffic endpoint %d is not there", *p.PDI.TrafficEndpoint))
	case len(p.QER) > maxQERsOfPDR:
		return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, 109, fmt.Sprintf("%d QERs, at most %d", len(p.QER), maxQERsOfPDR))
	case len(p.URR) > maxURRsOfPDR:
		return Lacks(pfcp.RulePDR, id, pfcp.CauseNoResources, 81, fmt.Sprintf("%d URRs, at most %d", len(p.URR), maxURRsOfPDR))
	}
	for _, q := range p.QER {
		if s.qer(q) == nil {
			return Fault(pfcp.RulePDR, id, 109, fmt.Sprintf("QER %d is not there", q))
		}
	}
	for _, u := range p.URR {
		if s.urr(u) == nil {
			return Fault(pfcp.RulePDR, id, 81, fmt.Sprintf("URR %d is not there", u))
		}
	}
	if _, bad := twice(p.QER, func(q *uint32) uint32 { return *q }); bad {
		return Fault(pfcp.RulePDR, id, 109, "a QER stands twice")
	}
	if _, bad := twice(p.URR, func(u *uint32) uint32 { return *u }); bad {
		return Fault(pfcp.RulePDR, id, 81, "a URR stands twice")
	}
	return nil
}

func (s *Session) checkFAR(f *FAR) *pfcp.Error {
	const one = pfcp.ActionDrop | pfcp.ActionForward | pfcp.ActionBuffer
	const known = one | pfcp.ActionNotify | pfcp.ActionDuplicate
	which := f.Action & one
	switch {
	case f.Action&^known != 0:
		return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseServiceNotSupported, ieApplyAction, "an action that is not served")
	// TS 29.244 §8.2.26: one and only one of DROP, FORW and BUFF (row P33).
	case which != pfcp.ActionDrop && which != pfcp.ActionForward && which != pfcp.ActionBuffer:
		return Fault(pfcp.RuleFAR, f.ID, ieApplyAction, "neither drop, forward nor buffer alone")
	case f.Action&pfcp.ActionNotify != 0 && which == pfcp.ActionForward:
		return Fault(pfcp.RuleFAR, f.ID, ieApplyAction, "a notification without buffering")
	case which == pfcp.ActionForward && (f.Forwarding == nil || f.Forwarding.Destination == nil):
		return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseConditionalIEMissing, ieForwarding, "no forwarding parameters")
	case f.Action&pfcp.ActionDuplicate != 0 && f.Duplicating == nil:
		return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseConditionalIEMissing, ieDuplicating, "no duplicating parameters")
	case f.BAR != nil && s.bar(*f.BAR) == nil:
		return Fault(pfcp.RuleFAR, f.ID, 88, fmt.Sprintf("BAR %d is not there", *f.BAR))
	}
	if w := f.Forwarding; w != nil {
		switch {
		case w.Destination != nil && *w.Destination > pfcp.CPSide: // row P21
			return Fault(pfcp.RuleFAR, f.ID, ieDestination, "no such destination interface")
		case w.Policy != "":
			return Lacks(pfcp.RuleFAR, f.ID, pfcp.CauseInvalidForwarding, iePolicy, "no such forwarding policy")
		case w.LinkedEndpoint != nil && s.endpoint(*w.LinkedEndpoint) == nil:
			return Fault(pfcp.RuleFAR, f.ID, 131, "the linked traffic endpoint is not there")
		}
	}
	return nil
}

func checkQER(q *QER) *pfcp.Error {
	above := func(gbr, mbr *uint64) bool { return gbr != nil && mbr != nil && *mbr != 0 && *gbr > *mbr }
	switch {
	case q.GateUplink == nil || q.GateDownlink == nil:
		return Lacks(pfcp.RuleQER, q.ID, pfcp.CauseMandatoryIEMissing, ieGate, "no gate status")
	case *q.GateUplink > 1 || *q.GateDownlink > 1: // TS 29.244 §8.2.7: 2 and 3 are for future use
		return Fault(pfcp.RuleQER, q.ID, ieGate, "no such gate status")
	// TS 23.501 §5.7.5: reflective QoS has the UPF mark packets, which this data plane does not.
	case q.RQI != nil && *q.RQI:
		return Lacks(pfcp.RuleQER, q.ID, pfcp.CauseServiceNotSupported, ieRQI, "no reflective QoS")
	case q.QFI != nil && *q.QFI > 63:
		return Fault(pfcp.RuleQER, q.ID, 124, "QFI above 63")
	case above(q.GBRUplink, q.MBRUplink) || above(q.GBRDownlink, q.MBRDownlink):
		return Fault(pfcp.RuleQER, q.ID, 27, "GBR above MBR")
	}
	return nil
}

func (s *Session) checkURR(u *URR) *pfcp.Error {
	switch {
	case u.Method == nil:
		return Lacks(pfcp.RuleURR, u.ID, pfcp.CauseMandatoryIEMissing, ieMethod, "no measurement method")
	case *u.Method&7 == 0 || *u.Method&^7 != 0:
		return Fault(pfcp.RuleURR, u.ID, ieMethod, "no such measurement method")
	case u.Triggers == nil:
		return Lacks(pfcp.RuleURR, u.ID, pfcp.CauseMandatoryIEMissing, ieTriggers, "no reporting triggers")
	case len(u.Linked) > 2:
		return Lacks(pfcp.RuleURR, u.ID, pfcp.CauseNoResources, 82, "more than 2 linked URRs")
	case u.QuotaFAR != nil && (*u.QuotaFAR == 0 || s.far(*u.QuotaFAR) == nil):
		return Fault(pfcp.RuleURR, u.ID, ieFAR, "the FAR for quota action is not there")
	}
	for _, l := range u.Linked {
		if l == u.ID {
			return Fault(pfcp.RuleURR, u.ID, 82, "linked to itself")
		}
		if s.urr(l) == nil {
			return Fault(pfcp.RuleURR, u.ID, 82, fmt.Sprintf("linked URR %d is not there", l))
		}
	}
	return nil
}
