// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"cmp"
	"fmt"
)

// twice finds an id that comes a second time (row P27). Messages have a handful of rules; one with thousands costs a
// map.
func twice[T any, ID comparable](rules []T, id func(*T) ID) (ID, bool) {
	var none ID
	if len(rules) <= 16 {
		for i := range rules {
			for j := range i {
				if id(&rules[i]) == id(&rules[j]) {
					return id(&rules[i]), true
				}
			}
		}
		return none, false
	}
	seen := make(map[ID]struct{}, len(rules))
	for i := range rules {
		n := id(&rules[i])
		if _, again := seen[n]; again {
			return n, true
		}
		seen[n] = struct{}{}
	}
	return none, false
}

// once refuses a message with two rules of one id.
func once[T any, ID uint8 | uint16 | uint32](kind RuleType, ie uint16, rules []T, id func(*T) ID) *Error {
	n, again := twice(rules, id)
	if !again {
		return nil
	}
	return &Error{Cause: CauseRuleFailure, Offending: ie, Rule: &FailedRule{Type: kind, ID: uint32(n)},
		Text: fmt.Sprintf("rule %d twice in one message", n)}
}

func distinct(p []CreatePDR, f []CreateFAR, q []CreateQER, u []CreateURR, b []CreateBAR) *Error {
	return cmp.Or(once(RulePDR, ieCreatePDR, p, func(r *CreatePDR) uint16 { return r.ID }),
		once(RuleFAR, ieCreateFAR, f, func(r *CreateFAR) uint32 { return r.ID }),
		once(RuleQER, ieCreateQER, q, func(r *CreateQER) uint32 { return r.ID }),
		once(RuleURR, ieCreateURR, u, func(r *CreateURR) uint32 { return r.ID }),
		once(RuleBAR, ieCreateBAR, b, func(r *CreateBAR) uint8 { return r.ID }))
}

// distinctUpdates: two updates of one rule in one message have no order between them.
func distinctUpdates(m *SessionModificationRequest) *Error {
	return cmp.Or(once(RulePDR, ieUpdatePDR, m.UpdatePDR, func(r *UpdatePDR) uint16 { return r.ID }),
		once(RuleFAR, ieUpdateFAR, m.UpdateFAR, func(r *UpdateFAR) uint32 { return r.ID }),
		once(RuleQER, ieUpdateQER, m.UpdateQER, func(r *UpdateQER) uint32 { return r.ID }),
		once(RuleURR, ieUpdateURR, m.UpdateURR, func(r *UpdateURR) uint32 { return r.ID }),
		once(RuleBAR, ieUpdateBAR, m.UpdateBAR, func(r *UpdateBAR) uint8 { return r.ID }))
}
