// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strings"

	"isthmus/controlplane/sheet"
)

// plotLines is how many lines of a figure are drawn; the table has them all.
const plotLines = 8

// plotStyles are the colours that lines have, in order. Behind the last they begin again, dashed.
var plotStyles = []int{0, 1, 2, 3, 5}

// plot is the lines of one figure of a report over the time of day.
func plot(title string, times []int64, lines []line, unit string, most float64) *sheet.Plot {
	p := &sheet.Plot{
		Text: title + ", ten minutes; its figures are in the table", Gaps: true,
		X: sheet.Axis{Clock: true}, Y: sheet.Axis{Unit: unit, Zero: true, Most: most},
	}
	for i := range lines[:min(len(lines), plotLines)] {
		l := sheet.Line{Name: lines[i].name, Bare: true,
			Style: plotStyles[i%len(plotStyles)], Dashed: i >= len(plotStyles)}
		for k, v := range lines[i].values {
			l.Points = append(l.Points, sheet.At(float64(times[k]), float64(v)))
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

// si is a value with three digits that count, and its unit with the prefix.
func si(v float32, unit string) (number, word string) {
	if isUnknown(v) {
		return "–", ""
	}
	a, prefix := float64(v), 0
	for unit != "" && unit != "%" && math.Abs(a) >= 999.5 && prefix < 5 {
		a, prefix = a/1000, prefix+1
	}
	switch {
	case math.Abs(a) >= 99.95, prefix == 0 && a == math.Trunc(a):
		number = fmt.Sprintf("%.0f", a)
	case math.Abs(a) >= 9.995:
		number = fmt.Sprintf("%.1f", a)
	default:
		number = fmt.Sprintf("%.2f", a)
	}
	return number, []string{"", "k", "M", "G", "T", "P"}[prefix] + unit
}

func word(v float32, unit string) string {
	number, word := si(v, unit)
	return strings.TrimSpace(number + " " + word)
}
