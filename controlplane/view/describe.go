// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"reflect"
	"strings"
)

// Watched is what `show --watch` and `top` show of a table, by names in JSON: the fields that identify a row, those
// shown beside, and the counters, which become rates.
type Watched struct{ Key, Beside, Counters []string }

func (n *Table) rates(key, beside, counters string) *Table {
	n.Watched = Watched{strings.Fields(key), strings.Fields(beside), strings.Fields(counters)}
	return n
}

// Figure is a field of a table's rows that is a metric.
type Figure struct {
	Name, Help string
	Labels     []string
	field      int
	when       string // a text is 1 where it is this, else 0
}

// metrics says which fields are metrics, each in a line: NAME=Field: text. Of a text, NAME=Field:word, the metric is 1
// where the text is that word. Counters have names that end in _total. labels are those of a row: NAME=Field.
func (n *Table) metrics(labels, figures string) *Table {
	row := n.Answer
	if row.Kind() == reflect.Slice {
		row = row.Elem()
	}
	field := func(name string) int {
		f, ok := row.FieldByName(name)
		if !ok {
			panic("no field " + name + " for a metric of " + n.Name) // before main(): these are constants
		}
		return f.Index[0]
	}
	var names []string
	for _, label := range strings.Fields(labels) {
		name, of, _ := strings.Cut(label, "=")
		names, n.labels = append(names, name), append(n.labels, field(of))
	}
	for line := range strings.Lines(strings.TrimSpace(figures)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "=")
		of, help, _ := strings.Cut(rest, ": ")
		of, when, _ := strings.Cut(of, ":")
		n.Figures = append(n.Figures, Figure{name, help, names, field(of), when})
	}
	return n
}

// Samples calls emit with the figures of what Get returned, row by row.
func (n *Table) Samples(rows any, emit func(f *Figure, value float64, labels []string)) {
	list := reflect.ValueOf(rows)
	if list.Kind() != reflect.Slice {
		n.samples(list, emit)
		return
	}
	for i := range list.Len() {
		n.samples(list.Index(i), emit)
	}
}

func (n *Table) samples(row reflect.Value, emit func(f *Figure, value float64, labels []string)) {
	labels := make([]string, len(n.labels))
	for i, field := range n.labels {
		labels[i] = fmt.Sprint(row.Field(field))
	}
	for i := range n.Figures {
		f := &n.Figures[i]
		emit(f, f.value(row.Field(f.field)), labels)
	}
}

func (f *Figure) value(v reflect.Value) float64 {
	switch {
	case v.CanUint():
		return float64(v.Uint())
	case v.CanInt():
		return float64(v.Int())
	case v.Kind() == reflect.Bool && v.Bool(), v.Kind() == reflect.String && v.String() == f.when:
		return 1
	}
	return 0
}
