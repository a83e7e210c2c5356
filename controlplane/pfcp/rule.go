// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"cmp"
	"fmt"
)

// RuleType is TS 29.244 §8.2.80 (Failed Rule ID).
type RuleType uint8

const (
	RulePDR RuleType = 0
	RuleFAR RuleType = 1
	RuleQER RuleType = 2
	RuleURR RuleType = 3
	RuleBAR RuleType = 4
	RuleMAR RuleType = 5
	RuleSRR RuleType = 6

	RuleEndpoint RuleType = 255 // a traffic endpoint, for which there is no Failed Rule ID
)

var ruleNames = map[RuleType]string{RulePDR: "PDR", RuleFAR: "FAR", RuleQER: "QER", RuleURR: "URR", RuleBAR: "BAR",
	RuleEndpoint: "traffic endpoint"}

func (t RuleType) String() string {
	if name, ok := ruleNames[t]; ok {
		return name
	}
	return fmt.Sprintf("rule of type %d,", uint8(t))
}

// FailedRule names the rule that a request was refused for.
type FailedRule struct {
	Type RuleType
	ID   uint32
}

// String is how operators write it; "" for none.
func (r *FailedRule) String() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s %d", r.Type, r.ID)
}

// Rule is a rule of a session, as a message creates or updates it.
type Rule[T any] interface {
	*T
	Rule() FailedRule
}

func (r *CreatePDR) Rule() FailedRule             { return FailedRule{RulePDR, uint32(r.ID)} }
func (r *UpdatePDR) Rule() FailedRule             { return FailedRule{RulePDR, uint32(r.ID)} }
func (r *CreateFAR) Rule() FailedRule             { return FailedRule{RuleFAR, r.ID} }
func (r *UpdateFAR) Rule() FailedRule             { return FailedRule{RuleFAR, r.ID} }
func (r *CreateQER) Rule() FailedRule             { return FailedRule{RuleQER, r.ID} }
func (r *CreateURR) Rule() FailedRule             { return FailedRule{RuleURR, r.ID} }
func (r *CreateBAR) Rule() FailedRule             { return FailedRule{RuleBAR, uint32(r.ID)} }
func (r *CreateTrafficEndpoint) Rule() FailedRule { return FailedRule{RuleEndpoint, uint32(r.ID)} }

// Twice finds a repeated id (row P27), nil without one. Messages have a handful of rules; thousands cost a map.
func Twice[T any, R Rule[T]](rules []T) *FailedRule {
	var seen map[uint32]bool
	if len(rules) > 16 {
		seen = make(map[uint32]bool, len(rules))
	}
	for i := range rules {
		id := R(&rules[i]).Rule().ID
		again := seen[id]
		for j := 0; j < i && seen == nil; j++ {
			again = again || R(&rules[j]).Rule().ID == id
		}
		if again {
			r := R(&rules[i]).Rule()
			return &r
		}
		if seen != nil {
			seen[id] = true
		}
	}
	return nil
}

// once refuses a message with two rules of one id.
func once[T any, R Rule[T]](ie uint16, rules []T) *Error {
	r := Twice[T, R](rules)
	if r == nil {
		return nil
	}
	text := fmt.Sprintf("rule %d twice in one message", r.ID)
	return &Error{Cause: CauseRuleFailure, Offending: ie, Rule: r, Text: text}
}

func distinct(p []CreatePDR, f []CreateFAR, q []CreateQER, u []CreateURR, b []CreateBAR) *Error {
	return cmp.Or(once(ieCreatePDR, p), once(ieCreateFAR, f), once(ieCreateQER, q), once(ieCreateURR, u),
		once(ieCreateBAR, b))
}

// distinctUpdates: two updates of one rule in one message have no order between them.
func distinctUpdates(m *SessionModificationRequest) *Error {
	return cmp.Or(once(ieUpdatePDR, m.UpdatePDR), once(ieUpdateFAR, m.UpdateFAR), once(ieUpdateQER, m.UpdateQER),
		once(ieUpdateURR, m.UpdateURR), once(ieUpdateBAR, m.UpdateBAR))
}
