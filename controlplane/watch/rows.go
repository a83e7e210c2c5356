// SPDX-License-Identifier: Apache-2.0

// Package watch works on the JSON of `isthmus show`: rows are chosen, sorted and cut by fields' names, and counters of
// two moments become rates. It knows which fields are counters, but neither fetches nor prints.
package watch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Row is one row: its text, and its fields. Fields of objects within have the name "bytes.total".
type Row struct {
	Raw    json.RawMessage
	Fields map[string]any // string, json.Number, bool, nil
}

// Rows reads a table's JSON: an array, the nodes of a graph, or an object, which is one row.
func Rows(data []byte) ([]Row, error) {
	var list []json.RawMessage
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '{' {
		var g struct {
			Nodes []json.RawMessage `json:"nodes"`
		}
		if err := json.Unmarshal(data, &g); err != nil {
			return nil, err
		}
		if list = g.Nodes; list == nil {
			list = []json.RawMessage{data}
		}
	} else if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	rows := make([]Row, len(list))
	for i, raw := range list {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		var object map[string]any
		if err := decoder.Decode(&object); err != nil {
			return nil, err
		}
		rows[i] = Row{raw, map[string]any{}}
		flatten(rows[i].Fields, "", object)
	}
	return rows, nil
}

func flatten(to map[string]any, prefix string, object map[string]any) {
	for name, v := range object {
		switch v := v.(type) {
		case map[string]any:
			flatten(to, prefix+name+".", v)
		case []any: // lists within rows are not asked for
		default:
			to[prefix+name] = v
		}
	}
}

// JSON is the array of the rows' texts.
func JSON(rows []Row) []byte {
	list := make([]json.RawMessage, len(rows))
	for i := range rows {
		list[i] = rows[i].Raw
	}
	data, _ := json.Marshal(list) // texts that were JSON
	return data
}

// Text is a field in readable form; empty without one.
func (r Row) Text(field string) string {
	switch v := r.Fields[field].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// Number is a field's number; false: it has none.
func (r Row) Number(field string) (float64, bool) {
	n, ok := r.Fields[field].(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// known refuses a field that no row has, in words. Without rows any field may be right.
func known(rows []Row, field string) error {
	if len(rows) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, r := range rows {
		if _, ok := r.Fields[field]; ok {
			return nil
		}
		for name := range r.Fields {
			names[name] = true
		}
	}
	return fmt.Errorf("no field %q; there are %s", field, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}

// Sort puts rows in the order of a field: the largest number first, texts from A to Z, addresses by their value.
// "-FIELD" turns that around. Rows that are equal stay as they were.
func Sort(rows []Row, field string) error {
	field, reversed := strings.CutPrefix(field, "-")
	if err := known(rows, field); err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		order := compareFields(a, b, field)
		if reversed {
			return -order
		}
		return order
	})
	return nil
}

func compareFields(a, b Row, field string) int {
	x, isNumber := a.Number(field)
	y, both := b.Number(field)
	if isNumber && both {
		return cmp.Compare(y, x)
	}
	return compareTexts(a.Text(field), b.Text(field))
}

// compareTexts orders addresses by their value, other words by their letters.
func compareTexts(a, b string) int {
	x, errA := netip.ParseAddr(a)
	y, errB := netip.ParseAddr(b)
	if errA == nil && errB == nil {
		return x.Compare(y)
	}
	return cmp.Compare(a, b)
}
