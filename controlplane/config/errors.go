// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
)

const maxErrors = 20

// Error is one reason to refuse a file.
type Error struct {
	File   string
	Line   int    // 0: the file as a whole
	Path   string // "subscribers[3].mac"; may be empty
	Reason string
}

func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Reason)
	return b.String()
}

// Errors is every reason found, in the order of the lines, at most 20; More counts those left out.
type Errors struct {
	List []Error
	More int

	foreign foreign
}

func (e *Errors) Error() string {
	lines := make([]string, 0, len(e.List)+1)
	for _, one := range e.List {
		lines = append(lines, one.Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

func (e *Errors) add(one Error) {
	if len(e.List) >= maxErrors {
		e.More++
		return
	}
	one.Reason = e.foreign.hidden(one.Reason)
	e.List = append(e.List, one)
}

// result is nil as an error when nothing was found.
func (e *Errors) result() error {
	if len(e.List) == 0 {
		return nil
	}
	sort.SliceStable(e.List, func(i, j int) bool { return e.List[i].Line < e.List[j].Line })
	return e
}

// suggest returns "; did you mean X?" for the known word nearest to a mistyped one, or "". Of several as near it is
// that with the longest beginning in common, then the first in the alphabet: the same file gets the same message.
func suggest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		d := editDistance(word, k)
		if d < len(k) && (d < distance || d == distance && best != "" && begins(word, k, best)) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// begins: word has more of its beginning in common with a than with b, or as much, and a is first in the alphabet.
func begins(word, a, b string) bool {
	common := func(with string) (n int) {
		for n < min(len(word), len(with)) && word[n] == with[n] {
			n++
		}
		return n
	}
	return cmp.Or(common(b)-common(a), strings.Compare(a, b)) < 0
}

// Suggest is for readers of other files.
func Suggest(word string, known []string) string { return suggest(word, known) }

func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
