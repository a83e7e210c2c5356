// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"isthmus/controlplane/dp"
)

// Bounds of what one request may ask for.
const (
	maxTerms = 8
	maxValue = 128       // bytes
	maxRows  = 1_000_000 // that a cursor passes over
)

// Query chooses rows of a table.
type Query struct {
	Key   string // the name of one object; empty: all
	Limit uint32 // rows at most; 0: all
	After Cursor // rows to pass over
	Where []Term // all of them hold
}

// Cursor is a place behind a row: how many rows were before it, and a digest of the row's names. The row is looked for,
// so that others may come and go; when it went itself, the count says where. Zero: the beginning.
type Cursor struct {
	Rows uint32
	Last uint64 // 0: the count alone
}

// String is the parameter `after`.
func (c Cursor) String() string {
	if c.Last == 0 {
		return strconv.FormatUint(uint64(c.Rows), 10)
	}
	return fmt.Sprintf("%d-%x", c.Rows, c.Last)
}

func parseCursor(s string) (c Cursor, err error) {
	count, last, has := strings.Cut(s, "-")
	if c.Rows, err = number("after", count); err != nil {
		return c, err
	}
	if c.Rows > maxRows {
		return c, fmt.Errorf("after: more than %d rows", maxRows)
	}
	if has {
		if c.Last, err = strconv.ParseUint(last, 16, 64); err != nil {
			return c, fmt.Errorf("after: %q is none of ours", s)
		}
	}
	return c, nil
}

// naming are the fields that say which row of a table it is; what else a row has may change.
var naming = []string{"name", "id", "session", "pdr", "urr", "prefix", "via", "interface", "vrf", "address", "rule",
	"default", "port", "subport", "pipe", "traffic_class", "instance", "dnn", "qfi", "other", "inside", "outside",
	"first"}

// digests makes the digests of rows of a type.
func digests(row reflect.Type) func(row reflect.Value) uint64 {
	fields := slices.DeleteFunc(Columns(row), func(c Column) bool { return !slices.Contains(naming, c.Name) })
	return func(row reflect.Value) uint64 {
		h := fnv.New64a()
		for _, c := range fields {
			fmt.Fprintf(h, "%v\x00", reflect.Indirect(c.Of(row)))
		}
		return h.Sum64() | 1 // never 0
	}
}

// find is where the rows behind the cursor begin; false: its row is not there.
func (c Cursor) find(rows reflect.Value, digest func(reflect.Value) uint64) (int, bool) {
	at, found := min(int(c.Rows), rows.Len()), c.Last == 0
	for away := 0; !found && away <= rows.Len(); away++ { // from where it was, both ways
		for _, i := range []int{int(c.Rows) - 1 - away, int(c.Rows) - 1 + away} {
			if i >= 0 && i < rows.Len() && digest(rows.Index(i)) == c.Last {
				return i + 1, true
			}
		}
	}
	return at, found
}

// Term is a condition on a field: on a number (0x10 is one, too), or on a text in which a leading or closing *
// stands for anything. An address is equal to prefixes that have it, and however it is written.
type Term struct {
	Field string
	Op    string // one of operators
	Value string
}

// operators, longer ones before those that they begin with. None in front of a value: "=".
var operators = []string{">=", "<=", "!", ">", "<"}

// ParseQuery reads the parameters of a request: key, limit, after, all others are fields.
func ParseQuery(v url.Values) (q Query, err error) {
	for name, values := range v {
		for _, value := range values {
			if len(value) > maxValue || len(name) > maxValue {
				return q, fmt.Errorf("%.40q: more than %d bytes", name, maxValue)
			}
			switch name {
			case "key":
				q.Key = value
			case "limit":
				q.Limit, err = number(name, value)
			case "after":
				q.After, err = parseCursor(value)
			default:
				q.Where = append(q.Where, term(name, value))
			}
			if err != nil {
				return q, err
			}
			if len(q.Where) > maxTerms {
				return q, fmt.Errorf("more than %d conditions", maxTerms)
			}
		}
	}
	slices.SortFunc(q.Where, func(a,
		b Term) int {
		return cmp.Compare(a.Field, b.Field)
	}) // the first fault is always the same
	return q, nil
}

func number(name, value string) (uint32, error) {
	n, err := strconv.ParseUint(cmp.Or(value, "0"), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is no number", name, value)
	}
	return uint32(n), nil
}

func term(field, value string) Term {
	for _, op := range operators {
		if rest, is := strings.CutPrefix(value, op); is {
			return Term{field, op, rest}
		}
	}
	return Term{field, "=", value}
}

// Select returns the rows that a query chooses, as Get does, and the cursor of the next ones, zero when these were the
// last.
func (n *Table) Select(ctx context.Context, c *dp.Client, control Control, q Query) (v any, next Cursor, err error) {
	if n.Answer.Kind() != reflect.Slice {
		if len(q.Where) > 0 || q.After != (Cursor{}) {
			return nil, next, fmt.Errorf("show %s has no rows to choose from", n.Name)
		}
		v, err = n.Get(ctx, c, control, q.Key, q.Limit)
		return v, next, err
	}
	match, err := matcher(n.Answer.Elem(), q.Where)
	if err != nil {
		return nil, next, err
	}
	most := uint64(0) // of the data plane: all, where conditions choose
	if q.Limit > 0 && match == nil {
		most = min(uint64(q.Limit)+uint64(q.After.Rows)+1, 1<<32-1)
	}
	digest := digests(n.Answer.Elem())
	var rows reflect.Value
	var from int
	var found bool
	for {
		if v, err = n.Get(ctx, c, control, q.Key, uint32(most)); err != nil {
			return nil, next, err
		}
		if rows = reflect.ValueOf(v); match != nil {
			rows = chosen(rows, match)
		}
		if from, found = q.After.find(rows, digest); found || most == 0 {
			break
		}
		most = 0 // many rows came before it, or it went
	}
	to := rows.Len()
	if q.Limit > 0 && uint64(to-from) > uint64(q.Limit) {
		to = from + int(q.Limit)
		next = Cursor{uint32(to), digest(rows.Index(to - 1))}
	} else if most != 0 && uint64(rows.Len()) == most { // the data plane has more, for the cursor's row moved on
		next = Cursor{uint32(to), digest(rows.Index(to - 1))}
	}
	return rows.Slice(from, to).Interface(), next, nil
}

func chosen(rows reflect.Value, match func(row reflect.Value) bool) reflect.Value {
	out := reflect.MakeSlice(rows.Type(), 0, 0)
	for i := range rows.Len() {
		if match(rows.Index(i)) {
			out = reflect.Append(out, rows.Index(i))
		}
	}
	return out
}

// Fields are the names by which rows can be chosen.
func (n *Table) Fields() (names []string) {
	if n.Answer.Kind() != reflect.Slice {
		return nil
	}
	for _, c := range Columns(n.Answer.Elem()) {
		if c.Compares() {
			names = append(names, c.Name)
		}
	}
	return names
}

// Column is a field of a table's rows, by its name in JSON.
type Column struct {
	Name  string
	Type  reflect.Type
	index []int
}

// Columns are those of a row's type, and of the structs that it embeds.
func Columns(row reflect.Type) (list []Column) {
	for _, f := range reflect.VisibleFields(row) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			list = append(list, Column{name, f.Type, f.Index})
		}
	}
	return list
}

// Of is the field of a row.
func (c *Column) Of(row reflect.Value) reflect.Value { return row.FieldByIndex(c.index) }

// Compares: rows can be chosen by the field.
func (c *Column) Compares() bool { return comparer(c.Type, Term{Op: "="}) != nil }

// matcher makes one test of all conditions; nil: there are none.
func matcher(row reflect.Type, where []Term) (func(row reflect.Value) bool, error) {
	type test struct {
		Column
		holds func(reflect.Value) bool
	}
	var tests []test
	columns := Columns(row)
	for _, t := range where {
		at := slices.IndexFunc(columns, func(c Column) bool { return c.Name == t.Field })
		if at < 0 {
			var known []string
			for _, c := range columns {
				known = append(known, c.Name)
			}
			return nil, fmt.Errorf("there is no field %.40q; there are %s", t.Field,
				strings.Join(known, " "))
		}
		holds := comparer(columns[at].Type, t)
		if holds == nil {
			return nil, fmt.Errorf("%s: rows cannot be chosen by it", t.Field)
		}
		if err := checkTerm(columns[at].Type, t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Field, err)
		}
		tests = append(tests, test{columns[at], holds})
	}
	if len(tests) == 0 {
		return nil, nil
	}
	return func(row reflect.Value) bool {
		for _, t := range tests {
			if !t.holds(t.Of(row)) {
				return false
			}
		}
		return true
	}, nil
}

func checkTerm(f reflect.Type, t Term) error {
	_, err := numeric(t.Value)
	switch ordered := t.Op[0] == '<' || t.Op[0] == '>'; {
	case f.Kind() == reflect.Bool && (ordered || t.Value != "true" && t.Value != "false"):
		return errors.New("it is true or false")
	case f.Kind() == reflect.String && ordered:
		return errors.New("texts are compared with = and ! alone")
	case f.Kind() != reflect.String && f.Kind() != reflect.Bool && err != nil:
		return fmt.Errorf("%q is no number", t.Value)
	}
	return nil
}

// comparer makes the test of one condition; nil: fields of this type cannot be compared.
func comparer(f reflect.Type, t Term) func(reflect.Value) bool {
	is := t.Op != "!"
	switch f.Kind() {
	case reflect.Bool:
		want := t.Value == "true"
		return func(v reflect.Value) bool { return (v.Bool() == want) == is }
	case reflect.String:
		like := pattern(t.Value)
		return func(v reflect.Value) bool { return like(v.String()) == is }
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want, err := strconv.ParseUint(t.Value, 0, 64)
		if err == nil && (t.Op == "=" || t.Op == "!") { // exact beyond 2^53
			return func(v reflect.Value) bool { return (v.Uint() == want) == is }
		}
		return ordered(t, func(v reflect.Value) float64 { return float64(v.Uint()) })
	case reflect.Int, reflect.Int32, reflect.Int64:
		return ordered(t, func(v reflect.Value) float64 { return float64(v.Int()) })
	case reflect.Float64:
		return ordered(t, reflect.Value.Float)
	}
	return nil
}

func ordered(t Term, value func(reflect.Value) float64) func(reflect.Value) bool {
	want, _ := numeric(t.Value)
	switch t.Op {
	case "<":
		return func(v reflect.Value) bool { return value(v) < want }
	case ">":
		return func(v reflect.Value) bool { return value(v) > want }
	case "<=":
		return func(v reflect.Value) bool { return value(v) <= want }
	case ">=":
		return func(v reflect.Value) bool { return value(v) >= want }
	}
	is := t.Op != "!"
	return func(v reflect.Value) bool { return (value(v) == want) == is }
}

func numeric(s string) (float64, error) {
	if n, err := strconv.ParseUint(s, 0, 64); err == nil {
		return float64(n), nil
	}
	return strconv.ParseFloat(s, 64)
}

// pattern takes * at the beginning and at the end, prefixes and addresses.
func pattern(s string) func(string) bool {
	if p, err := netip.ParsePrefix(s); err == nil {
		return func(v string) bool {
			a, err := netip.ParseAddr(v)
			return v == s || err == nil && p.Contains(a)
		}
	}
	if want, err := netip.ParseAddr(s); err == nil {
		return func(v string) bool {
			a, err := netip.ParseAddr(v)
			return err == nil && a == want
		}
	}
	end, tail := strings.CutSuffix(s, "*")
	middle, head := strings.CutPrefix(end, "*")
	switch {
	case head && tail:
		return func(v string) bool { return strings.Contains(v, middle) }
	case tail:
		return func(v string) bool { return strings.HasPrefix(v, end) }
	case head:
		return func(v string) bool { return strings.HasSuffix(v, middle) }
	}
	return func(v string) bool { return v == s }
}
