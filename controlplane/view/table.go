// SPDX-License-Identifier: Apache-2.0

// Package view turns rows of the data plane into what people and programs see: JSON with stable field names, and aligned
// tables. The agent fetches and encodes, the CLI decodes and prints; both use the nouns defined here.
package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// column is one column of a printed table. Numbers are aligned to the right.
type column[V any] struct {
	title  string
	number bool
	cell   func(*V) string
}

func str[V any](title string, cell func(*V) string) column[V] {
	return column[V]{title, false, cell}
}

func num[V any](title string, value func(*V) uint64) column[V] {
	return column[V]{title, true, func(v *V) string { return strconv.FormatUint(value(v), 10) }}
}

func cellNum[V any](title string, cell func(*V) string) column[V] {
	return column[V]{title, true, cell}
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

// WriteTable prints cells under their titles, two spaces between columns; right[i] aligns column i to the right.
func WriteTable(w io.Writer, titles []string, right []bool, cells [][]string) error {
	width := make([]int, len(titles))
	lines := append([][]string{titles}, cells...)
	for _, line := range lines {
		for i := range line {
			if line[i] == "" {
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
