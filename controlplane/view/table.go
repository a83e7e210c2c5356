// SPDX-License-Identifier: Apache-2.0

// Package view turns rows of the data plane into what people and programs see: JSON with stable field names, and
// aligned tables. The agent fetches and encodes, the CLI decodes and prints; both use the tables defined here.
package view

import (
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"isthmus/api"
	"isthmus/controlplane/printable"
)

// column is one column of a printed table. Numbers are aligned to the right.
type column[V any] struct {
	title  string
	number bool
	cell   func(*V) string
	field  string // of V; empty: made of several
}

func str[V any](title string, cell func(*V) string) column[V] {
	return column[V]{title: title, cell: cell}
}

func num[V any](title string, value func(*V) uint64) column[V] {
	return cellNum(title, func(v *V) string { return strconv.FormatUint(value(v), 10) })
}

func cellNum[V any](title string, cell func(*V) string) column[V] {
	return column[V]{title: title, number: true, cell: cell}
}

// columns are a table's: titles, each with the field that it shows where that is not its own name, and for a bool the
// words for true and false. A special column stands for the title that it has.
func columns[V any](titles string, special ...column[V]) []column[V] {
	var list []column[V]
	for _, item := range strings.Split(titles, ",") {
		title, name, named := strings.Cut(strings.TrimSpace(item), "=")
		name, says, worded := strings.Cut(name, ":")
		if !named {
			name = strings.ReplaceAll(title, " ", "")
		}
		if !worded {
			says = "yes/no"
		}
		f, ok := reflect.TypeFor[V]().FieldByNameFunc(func(n string) bool { return strings.EqualFold(n, name) })
		if i := slices.IndexFunc(special, func(c column[V]) bool { return c.title == title }); i >= 0 {
			special[i].field = f.Name
			list = append(list, special[i])
			continue
		}
		if !ok {
			panic("no field for the column " + title) // before main(): the titles are constants
		}
		number := f.Type.ConvertibleTo(reflect.TypeFor[float64]())
		list = append(list, column[V]{title, number, func(v *V) string {
			return cell(reflect.ValueOf(v).Elem().FieldByIndex(f.Index).Interface(), says)
		}, f.Name})
	}
	return list
}

// Title is that of a column, and the field of a row that it shows; empty: it is made of several.
type Title struct{ Text, Field string }

func titlesOf[V any](columns []column[V]) (list []Title) {
	for i := range columns {
		list = append(list, Title{columns[i].title, columns[i].field})
	}
	return list
}

func cell(v any, says string) string {
	switch v := v.(type) {
	case bool:
		yes, no, _ := strings.Cut(says, "/")
		return yesNo(v, yes, no)
	case time.Time:
		return stamp(v)
	case []string:
		return strings.Join(v, " ")
	}
	return fmt.Sprint(v)
}

// filler copies the fields of a row of the data plane to those of the same name: bytes as text, numbers as words where
// the field has the tag `word`.
func filler[R, V any]() func(r *R, v *V) {
	type pair struct {
		from, to int
		words    map[uint32]string
	}
	var pairs []pair
	to, from := reflect.TypeFor[V](), reflect.TypeFor[R]()
	for i := range to.NumField() {
		same := func(n string) bool { return strings.EqualFold(n, to.Field(i).Name) }
		if f, ok := from.FieldByNameFunc(same); ok {
			pairs = append(pairs, pair{f.Index[0], i, words[to.Field(i).Tag.Get("word")]})
		}
	}
	return func(r *R, v *V) {
		from, to := reflect.ValueOf(r).Elem(), reflect.ValueOf(v).Elem()
		for _, p := range pairs {
			copyField(from.Field(p.from), to.Field(p.to), p.words)
		}
	}
}

func copyField(from, to reflect.Value, words map[uint32]string) {
	switch v := from.Addr().Interface().(type) {
	case *api.Address:
		to.SetString(v.String())
		return
	case *[6]byte:
		to.SetString(net.HardwareAddr(v[:]).String())
		return
	}
	switch {
	case from.Kind() == reflect.Array && to.Kind() == reflect.String:
		to.SetString(api.CString(from.Slice(0, from.Len()).Bytes()))
	case words != nil:
		to.SetString(word(words, uint32(from.Uint())))
	case to.Kind() == reflect.Bool:
		to.SetBool(from.Uint() != 0)
	case from.CanConvert(to.Type()) && to.Kind() != reflect.String:
		to.Set(from.Convert(to.Type()))
	}
}

// write prints rows under their titles. Empty cells are shown as "-".
func write[V any](w io.Writer, columns []column[V], rows []V) error {
	titles := make([]string, len(columns))
	right := make([]bool, len(columns))
	for i := range columns {
		titles[i], right[i] = columns[i].title, columns[i].number
	}
	cells := make([][]string, len(rows))
	for r := range rows {
		cells[r] = make([]string, len(columns))
		for i := range columns {
			cells[r][i] = columns[i].cell(&rows[r])
		}
	}
	return WriteTable(w, titles, right, cells)
}

// Narrow is where a table has no column in which no row has anything.
type Narrow struct{ io.Writer }

func withoutEmpty(titles []string, right []bool, cells [][]string) ([]string, []bool, [][]string) {
	var names []string
	var sides []bool
	rows := make([][]string, len(cells))
	for i := range titles {
		if !slices.ContainsFunc(cells, func(row []string) bool { return row[i] != "" }) {
			continue
		}
		names, sides = append(names, titles[i]), append(sides, right[i])
		for r := range cells {
			rows[r] = append(rows[r], cells[r][i])
		}
	}
	return names, sides, rows
}

// WriteTable prints cells under their titles, two spaces between columns; right[i] aligns column i to the right.
func WriteTable(w io.Writer, titles []string, right []bool, cells [][]string) error {
	if _, narrow := w.(Narrow); narrow && len(cells) > 0 {
		titles, right, cells = withoutEmpty(titles, right, cells)
	}
	width := make([]int, len(titles))
	lines := append([][]string{titles}, cells...)
	for _, line := range lines {
		for i := range line {
			if line[i] = printable.Text(line[i]); line[i] == "" {
				line[i] = "-"
			}
			width[i] = max(width[i], utf8.RuneCountInString(line[i]))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		var out strings.Builder
		for i := range line {
			if i > 0 {
				out.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(line[i]))
			if right[i] {
				out.WriteString(pad + line[i])
			} else {
				out.WriteString(line[i] + pad)
			}
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ratio is a / b with one decimal, "-" when there is nothing to divide by.
func ratio(a, b uint64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(a)/float64(b))
}

func yesNo(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
