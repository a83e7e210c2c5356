// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"syscall"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

// txn is one transaction in preparation: changes for the data plane and the store, and the undo of changes in memory.
type txn struct {
	changes []dp.Change
	records []store.Record
	undo    []func()
	uses    []use
	done    []func()        // when all is well
	usage   []api.Usage     // what it had URRs report: for done
	touched map[uint64]bool // sessions; the contract takes an object once in a transaction
}

type mark struct{ changes, records, undo, uses, done int }

func newTxn() *txn { return &txn{touched: map[uint64]bool{}} }

func (t *txn) mark() mark {
	return mark{len(t.changes), len(t.records), len(t.undo), len(t.uses), len(t.done)}
}

// back takes back everything since the mark, the last first.
func (t *txn) back(m mark) {
	for i := len(t.undo) - 1; i >= m.undo; i-- {
		t.undo[i]()
	}
	for i := len(t.uses) - 1; i >= m.uses; i-- {
		t.uses[i].undo()
	}
	t.changes, t.records, t.undo, t.uses, t.done = t.changes[:m.changes], t.records[:m.records], t.undo[:m.undo],
		t.uses[:m.uses], t.done[:m.done]
}

// clear makes it as good as new, with its memory.
func (t *txn) clear() {
	clear(t.changes)
	clear(t.records)
	clear(t.undo)
	clear(t.uses)
	clear(t.done)
	clear(t.touched)
	t.usage = nil
	t.changes, t.records, t.undo, t.uses, t.done = t.changes[:0], t.records[:0], t.undo[:0], t.uses[:0], t.done[:0]
}

func (t *txn) onUndo(fn func()) { t.undo = append(t.undo, fn) }
func (t *txn) onDone(fn func()) { t.done = append(t.done, fn) }

// finish does what was to be done when all is well.
func (t *txn) finish() {
	for _, fn := range t.done {
		fn()
	}
}

// refusal turns the data plane's answer into the one for the CP function.
func refusal(err error) *pfcp.Error {
	var refused *dp.RefusedError
	if !errors.As(err, &refused) {
		return rules.Refuse(pfcp.CauseSystemFailure, 0, "the data plane did not answer: "+err.Error())
	}
	e := rules.Refuse(pfcp.CauseRuleFailure, 0, refused.Error())
	switch syscall.Errno(refused.Code) {
	case syscall.ENOSPC, syscall.ENOMEM:
		e.Cause = pfcp.CauseNoResources
	case syscall.ENOTSUP:
		e.Cause = pfcp.CauseServiceNotSupported
	}
	if t, ok := failedRules[refused.RuleKind]; ok {
		e.Rule = &pfcp.FailedRule{Type: t, ID: refused.Rule}
	}
	return e
}

// failedRules are the contract's kinds of rules in PFCP's words (TS 29.244 §8.2.80).
var failedRules = map[uint32]pfcp.RuleType{
	api.RulePDR: pfcp.RulePDR, api.RuleFAR: pfcp.RuleFAR, api.RuleQER: pfcp.RuleQER, api.RuleURR: pfcp.RuleURR,
}
