// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
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

// once refuses a session with two rules of one id.
func once[T any](t pfcp.RuleType, list []T, id func(*T) uint32) *pfcp.Error {
	if n, bad := twice(list, id); bad {
		return Fault(t, n, 0, "the id stands twice")
	}
	return nil
}

func (s *Session) checkTwice() *pfcp.Error {
	var endpoints *pfcp.Error
	if _, bad := twice(s.Endpoint, func(e *pfcp.CreateTrafficEndpoint) uint32 { return uint32(e.ID) }); bad {
		endpoints = Refuse(pfcp.CauseRejected, 0, "a traffic endpoint id stands twice")
	}
	return cmp.Or(once(pfcp.RulePDR, s.PDR, func(p *pfcp.CreatePDR) uint32 { return uint32(p.ID) }),
		once(pfcp.RuleFAR, s.FAR, func(f *FAR) uint32 { return f.ID }),
		once(pfcp.RuleQER, s.QER, func(q *QER) uint32 { return q.ID }),
		once(pfcp.RuleURR, s.URR, func(u *URR) uint32 { return u.ID }),
		once(pfcp.RuleBAR, s.BAR, func(b *pfcp.CreateBAR) uint32 { return uint32(b.ID) }), endpoints)
}
