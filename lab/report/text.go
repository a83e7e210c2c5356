// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"isthmus/controlplane/view"
)

// Text writes the page's tables for a terminal. Long lists (each trial) are left to the page.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s, %s\n%s\n", r.Title, r.Started, duration(r.Seconds), r.where())
	if r.Fixture != "" {
		fmt.Fprintf(&b, "\n*** MADE UP *** %s\n", r.Fixture)
	}
	for _, alarm := range r.alarms() {
		fmt.Fprintf(&b, "\n*** WRONG PACKETS *** %s\n", alarm)
	}
	if r.Partial() {
		b.WriteString("\n*** PARTIAL RESULT ***\n")
		for _, why := range r.whyPartial() {
			fmt.Fprintf(&b, "  %s\n", why)
		}
	}
	for _, s := range r.sections() {
		fmt.Fprintf(&b, "\n%s\n", s.Title)
		for _, m := range s.Missing {
			fmt.Fprintf(&b, "PARTIAL. %s: %s\n", m.Part, m.Why)
		}
		for _, note := range s.Notes {
			fmt.Fprintf(&b, "%s\n", note)
		}
		for i := range s.Tables {
			if err := s.Tables[i].write(&b); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrapAt is how wide a column of words may be in a terminal.
const wrapAt = 44

func (t *table) write(b *strings.Builder) error {
	if t.Fold {
		return nil
	}
	fmt.Fprintf(b, "\n%s\n", t.Title)
	titles, right := make([]string, len(t.Heads)), make([]bool, len(t.Heads))
	for i, head := range t.Heads {
		titles[i], right[i] = strings.ReplaceAll(strings.ToUpper(head), "Μ", "µ"), i >= t.Left
	}
	var rows [][]string
	for _, row := range t.Rows {
		columns, lines := make([][]string, len(row)), 1
		for i, cell := range row {
			columns[i] = []string{cell}
			if i < t.Left && !(t.Code && i == len(row)-1) {
				columns[i] = wrap(cell, wrapAt)
			}
			lines = max(lines, len(columns[i]))
		}
		for n := range lines {
			line := make([]string, len(row))
			for i := range row {
				line[i] = " " // WriteTable puts a dash where nothing is
				if n < len(columns[i]) {
					line[i] = columns[i][n]
				}
			}
			rows = append(rows, line)
		}
	}
	return view.WriteTable(b, titles, right, rows)
}

// wrap breaks words into lines of bounded length, longer words excepted.
func wrap(s string, at int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= at:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
