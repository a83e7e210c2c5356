// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Caps of the walk over a message. The standard nests four deep; a datagram of 64 KiB could hold 16,000 IEs.
const (
	maxDepth = 6
	maxIEs   = 4096
	ieHeader = 4
)

// split takes the first IE off b. An IE longer than its container has an invalid length (TS 29.244 §7.6).
func split(b []byte) (ie uint16, value, rest []byte, refusal *Error) {
	if len(b) < ieHeader {
		return 0, nil, nil, &Error{Cause: CauseInvalidLength, Text: fmt.Sprintf("%d octets left are no IE", len(b))}
	}
	ie = binary.BigEndian.Uint16(b)
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n > len(b)-ieHeader {
		return ie, nil, nil, &Error{Cause: CauseInvalidLength, Offending: ie,
			Text: fmt.Sprintf("length %d exceeds the %d octets that contain it", n, len(b)-ieHeader)}
	}
	return ie, b[ieHeader : ieHeader+n], b[ieHeader+n:], nil
}

// walk checks the structure of a message and all its grouped IEs before any value is read. Unknown IEs, vendors' among
// them, are not parsed.
func walk(b []byte, depth int, count *int) *Error {
	for len(b) > 0 {
		ie, value, rest, refusal := split(b)
		if refusal != nil {
			return refusal
		}
		if *count++; *count > maxIEs {
			return &Error{Cause: CauseNoResources, Offending: ie, Text: fmt.Sprintf("more than %d IEs", maxIEs)}
		}
		if ie < ieLimit && grouped[ie] {
			if depth == maxDepth {
				return &Error{Cause: CauseInvalidLength, Offending: ie, Text: fmt.Sprintf("nested more than %d deep",
					maxDepth)}
			}
			if refusal := walk(value, depth+1, count); refusal != nil {
				return refusal
			}
		}
		b = rest
	}
	return nil
}

// field is one row of a message's or grouped IE's table in TS 29.244 §7.4 or §7.5.
type field[T any] struct {
	ie        uint16
	mandatory bool
	many      bool // may come several times; else the first counts (TS 29.244 §7.6 "Repeated Information Elements")
	read      func(v []byte, t *T) *Error
	write     func(w *writer, t *T) // nil in tables of what is only read
}

// group is the table of a message or grouped IE.
type group[T any] struct {
	fields    []field[T]
	index     [ieLimit]uint8 // 1 + index of the field; 0: not in the table
	refused   [ieLimit]Cause // of IEs that ask for what we do not serve
	mandatory uint64
	rule      *ruleName
	excused   func(t *T, ie uint16) bool // mandatory, but not here
	check     func(t *T) *Error          // conditional presence
}

// ruleName finds a rule's id, for the Failed Rule ID of a refusal.
type ruleName struct {
	kind RuleType
	ie   uint16
}

func newGroup[T any](fields []field[T], refused []uint16) *group[T] {
	g := &group[T]{fields: fields}
	for i, f := range fields {
		g.index[f.ie] = uint8(i + 1)
		if f.mandatory {
			g.mandatory |= 1 << i
		}
	}
	for _, ie := range refused {
		g.refused[ie] = CauseServiceNotSupported
	}
	return g
}

func (g *group[T]) of(kind RuleType, ie uint16) *group[T] {
	g.rule = &ruleName{kind, ie}
	return g
}

func (g *group[T]) checked(check func(t *T) *Error) *group[T] {
	g.check = check
	return g
}

func (g *group[T]) without(excused func(t *T, ie uint16) bool) *group[T] {
	g.excused = excused
	return g
}

// encode writes the IEs of t in the table's order.
func (g *group[T]) encode(w *writer, t *T) {
	for i := range g.fields {
		if write := g.fields[i].write; write != nil {
			write(w, t)
		}
	}
}

// decode reads b, whose structure walk has checked, into t.
func (g *group[T]) decode(b []byte, t *T) *Error {
	refusal := g.fill(b, t)
	if refusal != nil && refusal.Cause == CauseRuleFailure && refusal.Rule == nil && g.rule != nil {
		refusal.Rule = g.rule.in(b)
	}
	return refusal
}

func (g *group[T]) fill(b []byte, t *T) *Error {
	var seen uint64
	for len(b) > 0 {
		ie, value, rest, refusal := split(b)
		if refusal != nil {
			return refusal
		}
		b = rest
		if ie >= ieLimit {
			// unknown, or a vendor's: not an error (TS 29.244 §7.6 "Unknown or unexpected Information Element")
			continue
		}
		if cause := g.refused[ie]; cause != 0 {
			return &Error{Cause: cause, Offending: ie, Text: "not served"}
		}
		i := g.index[ie]
		if i == 0 {
			continue
		}
		f := &g.fields[i-1]
		bit := uint64(1) << (i - 1)
		if seen&bit != 0 && !f.many {
			continue
		}
		seen |= bit
		if refusal := f.take(value, t); refusal != nil {
			if m, ok := any(t).(interface{ skip(ie uint16) }); ok && !f.mandatory {
				m.skip(ie)
				continue
			}
			return refusal
		}
	}
	for missing := g.mandatory &^ seen; missing != 0; missing &= missing - 1 {
		ie := g.fields[bits.TrailingZeros64(missing)].ie
		if g.excused == nil || !g.excused(t, ie) {
			return &Error{Cause: CauseMandatoryIEMissing, Offending: ie, Text: "mandatory IE missing"}
		}
	}
	if g.check != nil {
		return g.check(t)
	}
	return nil
}

// take reads a value with a length within bounds. A refusal leaves t unchanged.
func (f *field[T]) take(value []byte, t *T) *Error {
	if limits := lengths[f.ie]; !grouped[f.ie] && (len(value) < int(limits.min) || len(value) > int(limits.max)) {
		return badLength(f.ie, len(value))
	}
	refusal := f.read(value, t)
	if refusal != nil && refusal.Offending == 0 {
		refusal.Offending = f.ie
	}
	return refusal
}

// in looks the rule's id up in the IEs of the rule.
func (r *ruleName) in(b []byte) *FailedRule {
	for len(b) > 0 {
		ie, value, rest, refusal := split(b)
		if refusal != nil {
			return nil
		}
		if ie == r.ie && len(value) >= int(lengths[ie].min) && len(value) <= int(lengths[ie].max) {
			return &FailedRule{Type: r.kind, ID: uint32(number(value))}
		}
		b = rest
	}
	return nil
}

func badLength(ie uint16, n int) *Error {
	return &Error{Cause: CauseInvalidLength, Offending: ie, Text: fmt.Sprintf("invalid length %d", n)}
}

// incorrect is a value that means nothing, or contradicts itself (TS 29.244 §7.6 "Semantically incorrect IE").
func incorrect(format string, args ...any) *Error {
	return &Error{Cause: CauseMandatoryIEIncorrect, Text: fmt.Sprintf(format, args...)}
}

// unserved is a value that means something which we do not do.
func unserved(format string, args ...any) *Error {
	return &Error{Cause: CauseServiceNotSupported, Text: fmt.Sprintf(format, args...)}
}

func absent(ie uint16, text string) *Error {
	return &Error{Cause: CauseConditionalIEMissing, Offending: ie, Text: text}
}

// number reads up to eight octets, most significant first.
func number(v []byte) (n uint64) {
	for _, o := range v[:min(len(v), 8)] {
		n = n<<8 | uint64(o)
	}
	return n
}

// flags reads octet 5 into bits 0..7, octet 6 into 8..15 and so on.
func flags(v []byte) (n uint64) {
	for i, o := range v[:min(len(v), 8)] {
		n |= uint64(o) << (8 * i)
	}
	return n
}
