// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"slices"

	"isthmus/controlplane/pfcp"
)

// counts refuses too many rules before any work (rows P25, P26).
func (set *Settings) counts(pdrs, fars, qers, urrs int) *pfcp.Error {
	for _, c := range []struct {
		word      string
		has, most int
	}{{"PDRs", pdrs, set.maxPDRs()}, {"FARs", fars, set.maxFARs()}, {"QERs", qers, set.maxQERs()}, {"URRs", urrs,
		set.maxURRs()}} {
		if c.has > c.most {
			return Refuse(pfcp.CauseNoResources, 0, fmt.Sprintf("%d %s, at most %d", c.has, c.word, c.most))
		}
	}
	return nil
}

// Check checks a session as a whole: numbers, names and references (rows P13, P25 to P28, P33).
func (set *Settings) Check(s *Session) *pfcp.Error {
	if err := set.counts(len(s.PDR), len(s.FAR), len(s.QER), len(s.URR)); err != nil {
		return err
	}
	if len(s.BAR) > set.maxFARs() || len(s.Endpoint) > set.maxPDRs() {
		return Refuse(pfcp.CauseNoResources, 0, "too many BARs or traffic endpoints")
	}
	err := cmp.Or(once(s.PDR), once(s.FAR), once(s.QER), once(s.URR), once(s.BAR), once(s.Endpoint))
	if err != nil {
		return err
	}
	return cmp.Or(each(s.PDR, s.checkPDR), each(s.FAR, s.checkFAR), each(s.QER, checkQER), each(s.URR, s.checkURR))
}

// each does something with all rules of a list, up to the first error.
func each[T any](list []T, do func(*T) *pfcp.Error) *pfcp.Error {
	for i := range list {
		if err := do(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// once refuses two rules of one id (row P27).
func once[T any, R pfcp.Rule[T]](list []T) *pfcp.Error {
	switch r := pfcp.Twice[T, R](list); {
	case r == nil:
		return nil
	case r.Type == pfcp.RuleEndpoint:
		return Refuse(pfcp.CauseRejected, 0, "a traffic endpoint id stands twice")
	default:
		return Fault(r.Type, r.ID, 0, "the id stands twice")
	}
}

// repeats: a number is in a list twice. Lists are short.
func repeats(list []uint32) bool {
	for i, n := range list {
		if slices.Contains(list[:i], n) {
			return true
		}
	}
	return false
}
