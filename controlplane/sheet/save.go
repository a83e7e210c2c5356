// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

// Saved is a file that a page holds in itself, behind a link, so that the page stays one file.
type Saved struct {
	Name string
	Link template.URL
}

// Namer gives files names that no other file of the page has.
type Namer map[string]int

var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

func (n Namer) name(title, ending string) string {
	name := strings.Trim(unnamed.ReplaceAllString(strings.ToLower(title), "-"), "-")
	if n[name+ending]++; n[name+ending] > 1 {
		name = fmt.Sprintf("%s-%d", name, n[name+ending])
	}
	return name + ending
}

func held(name, kind, content string) Saved {
	return Saved{name, template.URL("data:" + kind + ";base64," +
		base64.StdEncoding.EncodeToString([]byte(content)))}
}

var grouped = regexp.MustCompile(`^[−-]?\d{1,3}(,\d{3})+(\.\d+)?$`)

// Table is a table as lines of values: numbers without commas, nothing where the page has a dash.
func (n Namer) Table(title string, heads []string, rows [][]string) Saved {
	var b strings.Builder
	w := csv.NewWriter(&b)
	for _, row := range append([][]string{heads}, rows...) {
		values := make([]string, len(row))
		for i, cell := range row {
			values[i] = value(cell)
		}
		w.Write(values) // a Builder takes everything
	}
	w.Flush()
	return held(n.name(title, ".csv"), "text/csv", b.String())
}

func value(cell string) string {
	if cell == "–" {
		return ""
	}
	if grouped.MatchString(cell) {
		cell = strings.ReplaceAll(cell, ",", "")
	}
	if rest, negative := strings.CutPrefix(cell, "−"); negative {
		return "-" + rest
	}
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell // a spreadsheet would run it as a formula
	}
	return cell
}
