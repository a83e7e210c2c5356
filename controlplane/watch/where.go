// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of what a person may ask.
const (
	maxConditions = 16
	maxCondition  = 256 // bytes
)

// Condition is one `FIELD OPERATOR VALUE`.
type Condition struct {
	Field, Operator, Value string
}

// operators, longer ones before those that they begin with.
var operators = []string{"!=", ">=", "<=", "=", ">", "<"}

// ParseConditions reads conditions such as "dnn=internet", "ue_ip4=10.1.0.0/16", "uplink_bytes>1000", "user!=",
// "name=home-*".
func ParseConditions(words []string) ([]Condition, error) {
	if len(words) > maxConditions {
		return nil, fmt.Errorf("%d conditions; at most %d", len(words), maxConditions)
	}
	var list []Condition
	for _, word := range words {
		c, err := parseCondition(word)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

func parseCondition(word string) (Condition, error) {
	if len(word) > maxCondition {
		return Condition{}, fmt.Errorf("a condition of %d bytes; at most %d", len(word), maxCondition)
	}
	at := strings.IndexAny(word, "!=<>")
	if at <= 0 {
		return Condition{},
			fmt.Errorf("%q is no condition such as dnn=internet, ue_ip4=10.1.0.0/16, packets>9", word)
	}
	i := slices.IndexFunc(operators, func(o string) bool { return strings.HasPrefix(word[at:], o) })
	if i < 0 {
		return Condition{}, fmt.Errorf("%q has no operator of =, !=, <, <=, >, >=", word)
	}
	c := Condition{strings.TrimSpace(word[:at]), operators[i], strings.TrimSpace(word[at+len(operators[i]):])}
	if strings.ContainsAny(c.Value, "*?[") {
		if _, err := path.Match(c.Value, ""); err != nil {
			return Condition{}, fmt.Errorf("%q: %w", word, err)
		}
	}
	return c, nil
}

// Filter keeps the rows that meet all conditions.
func Filter(rows []Row, conditions []Condition) ([]Row, error) {
	for _, c := range conditions {
		if err := known(rows, c.Field); err != nil {
			return nil, err
		}
	}
	kept := rows[:0:0]
	var fault error
	for _, r := range rows {
		meets := true
		for _, c := range conditions {
			ok, err := c.meets(r)
			meets, fault = meets && ok, cmp.Or(fault, err)
		}
		if meets {
			kept = append(kept, r)
		}
	}
	return kept, fault
}

var errOrder = errors.New("<, <=, >, >= compare numbers")

func (c Condition) meets(r Row) (bool, error) {
	text := r.Text(c.Field)
	switch c.Operator {
	case "=":
		return equal(text, c.Value), nil
	case "!=":
		return !equal(text, c.Value), nil
	}
	n, ok := r.Number(c.Field)
	limit, err := strconv.ParseFloat(c.Value, 64)
	if err != nil {
		return false, fmt.Errorf("%s%s%s: %w", c.Field, c.Operator, c.Value, errOrder)
	}
	switch c.Operator {
	case ">":
		return ok && n > limit, nil
	case ">=":
		return ok && n >= limit, nil
	case "<":
		return ok && n < limit, nil
	}
	return ok && n <= limit, nil
}

// equal compares a field with what was asked for: a prefix holds its addresses, a pattern has * ? [, addresses and
// numbers may be written in other ways.
func equal(text, want string) bool {
	if strings.EqualFold(text, want) {
		return true
	}
	if a, err := netip.ParseAddr(text); err == nil {
		if p, err := netip.ParsePrefix(want); err == nil {
			return p.Contains(a)
		}
		b, err := netip.ParseAddr(want)
		return err == nil && a == b
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		m, err := strconv.ParseUint(want, 0, 64) // 0x10 for a TEID
		return err == nil && n == m
	}
	ok, err := path.Match(strings.ToLower(want), strings.ToLower(text))
	return err == nil && ok
}
