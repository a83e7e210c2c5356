// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"isthmus/controlplane/sheet"
)

// plot is the lines of one figure of a report over the time of day.
type plot struct {
	times []int64 // milliseconds since 1970
	lines []line
	unit  string
	most  float64 // the least end of the axis
}

const (
	plotHeight = 220.0
	plotLines  = 8
)

// plotClasses are those of the colours of sheet.Style that lines have.
var plotClasses = []string{"s0", "s1", "s2", "s3", "s5"}

// draw returns a picture of so many units in width. Its legend stands above it.
func (p *plot) draw(title string, width float64, class string) string {
	lines := p.lines[:min(len(p.lines), plotLines)]
	peak := p.most
	for i := range lines {
		if _, most := lines[i].summary(); !isUnknown(most) {
			peak = max(peak, float64(most))
		}
	}
	ticks := sheet.LinearTicks(0, peak, 5)
	rows := p.legend(lines, width)
	left, right, top := 12.0, width-12, 14+18*float64(len(rows))
	for _, t := range ticks {
		left = max(left, 14+sheet.TextWidth(word(float32(t), p.unit), 12))
	}
	height := plotHeight + top
	bottom := height - 26
	c := sheet.NewCanvas(width, height, class, title+", ten minutes; its figures are in the table")
	y := func(v float64) float64 { return bottom - v/ticks[len(ticks)-1]*(bottom-top) }
	for _, t := range ticks {
		c.Line("grid", left, y(t), right, y(t))
		c.Text("tick", "end", left-6, y(t)+4, word(float32(t), p.unit))
	}
	c.Line("axis", left, bottom, right, bottom)
	if len(p.times) > 1 {
		first, last := p.times[0], p.times[len(p.times)-1]
		x := func(ms int64) float64 { return left + float64(ms-first)/float64(last-first)*(right-left) }
		p.clock(c, x, bottom)
		for i := range lines {
			for _, part := range p.parts(&lines[i], x, y) {
				c.Path("curve "+lineClass(i), part, false)
			}
		}
	}
	for row, list := range rows {
		at := left
		for _, i := range list {
			c.Line("curve "+lineClass(i), at, 12+18*float64(row), at+16, 12+18*float64(row))
			c.Text("name", "start", at+21, 16+18*float64(row), lines[i].name)
			at += legendWidth(lines[i].name)
		}
	}
	return c.String()
}

func lineClass(i int) string {
	class := plotClasses[i%len(plotClasses)]
	if i >= len(plotClasses) {
		class += " dashed"
	}
	return class
}

func legendWidth(name string) float64 { return 34 + sheet.TextWidth(name, 12) }

// legend shares the lines out to rows that are not wider than the picture.
func (p *plot) legend(lines []line, width float64) (rows [][]int) {
	used := width
	for i := range lines {
		w := legendWidth(lines[i].name)
		if used+w > width-70 {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], i)
		used += w
	}
	return rows
}

// clock writes the full minutes, every other where they are many.
func (p *plot) clock(c *sheet.Canvas, x func(int64) float64, bottom float64) {
	const minute = 60_000
	first, last := p.times[0], p.times[len(p.times)-1]
	step := int64(minute)
	for float64(last-first)/float64(step)*48 > x(last)-x(first) {
		step *= 2
	}
	for t := (first + step - 1) / step * step; t <= last; t += step {
		c.Line("stub", x(t), bottom, x(t), bottom+4)
		c.Text("tick", "middle", x(t), bottom+17, time.UnixMilli(t).UTC().Format("15:04"))
	}
}

// parts are the places of a line between its gaps.
func (p *plot) parts(l *line, x func(int64) float64, y func(float64) float64) (parts [][]sheet.Place) {
	gap := true
	for i, v := range l.values {
		if isUnknown(v) {
			gap = true
			continue
		}
		if gap {
			parts, gap = append(parts, nil), false
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], sheet.Place{X: x(p.times[i]), Y: y(float64(v))})
	}
	return parts
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
