// SPDX-License-Identifier: Apache-2.0

package pfcp

import "fmt"

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

func duplicate(kind RuleType, ie uint16, id uint32) *Error {
	return &Error{Cause: CauseRuleFailure, Offending: ie, Rule: &FailedRule{Type: kind, ID: id},
		Text: fmt.Sprintf("rule %d twice in one message", id)}
}

func distinct(p []CreatePDR, f []CreateFAR, q []CreateQER, u []CreateURR, b []CreateBAR) *Error {
	if id, again := twice(p, func(r *CreatePDR) uint16 { return r.ID }); again {
		return duplicate(RulePDR, ieCreatePDR, uint32(id))
	}
	if id, again := twice(f, func(r *CreateFAR) uint32 { return r.ID }); again {
		return duplicate(RuleFAR, ieCreateFAR, id)
	}
	if id, again := twice(q, func(r *CreateQER) uint32 { return r.ID }); again {
		return duplicate(RuleQER, ieCreateQER, id)
	}
	if id, again := twice(u, func(r *CreateURR) uint32 { return r.ID }); again {
		return duplicate(RuleURR, ieCreateURR, id)
	}
	if id, again := twice(b, func(r *CreateBAR) uint8 { return r.ID }); again {
		return duplicate(RuleBAR, ieCreateBAR, uint32(id))
	}
	return nil
}

// distinctUpdates: two updates of one rule in one message have no order between them.
func distinctUpdates(m *SessionModificationRequest) *Error {
	if id, again := twice(m.UpdatePDR, func(r *UpdatePDR) uint16 { return r.ID }); again {
		return duplicate(RulePDR, ieUpdatePDR, uint32(id))
	}
	if id, again := twice(m.UpdateFAR, func(r *UpdateFAR) uint32 { return r.ID }); again {
		return duplicate(RuleFAR, ieUpdateFAR, id)
	}
	if id, again := twice(m.UpdateQER, func(r *UpdateQER) uint32 { return r.ID }); again {
		return duplicate(RuleQER, ieUpdateQER, id)
	}
	if id, again := twice(m.UpdateURR, func(r *UpdateURR) uint32 { return r.ID }); again {
		return duplicate(RuleURR, ieUpdateURR, id)
	}
	if id, again := twice(m.UpdateBAR, func(r *UpdateBAR) uint8 { return r.ID }); again {
		return duplicate(RuleBAR, ieUpdateBAR, uint32(id))
	}
	return nil
}
