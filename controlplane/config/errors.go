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

	at Line
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
	parts   []part // of the text
}

// Line is one of a text of several files, counted from its first; 0: the text as a whole.
type Line int

// place is where a line stands.
func (e *Errors) place(at Line, file string) (string, int) {
	for i := len(e.parts) - 1; i > 0; i-- {
		if p := &e.parts[i]; int(at) > p.before {
			return p.name, int(at) - p.before
		}
	}
	return file, int(at)
}

// say adds an error. Arguments that are lines are named as those of another file where they are.
func (e *Errors) say(file string, at Line, path, format string, args []any) {
	file, line := e.place(at, file)
	for i, a := range args {
		if other, ok := a.(Line); ok {
			if name, n := e.place(other, e.first(file)); name != file {
				args[i] = elsewhere{name, n}
			} else {
				args[i] = n
			}
		}
	}
	e.add(Error{file, line, path, fmt.Sprintf(format, args...), at})
}

// first is the name of the text's first file.
func (e *Errors) first(otherwise string) string {
	if len(e.parts) > 0 {
		return e.parts[0].name
	}
	return otherwise
}

// elsewhere is a line of another file than the error's.
type elsewhere struct {
	file string
	line int
}

// Format prints "7 of FILE".
func (l elsewhere) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "%d of %s", l.line, l.file) }

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
	sort.SliceStable(e.List, func(i, j int) bool { return e.List[i].at < e.List[j].at })
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
