// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"isthmus/controlplane/sheet"
)

// bar is one row of a bar chart: a name, a value with its spread, and what stands at its end.
type bar struct {
	name, label, title string
	value, low, high   float64
	style              int
}

// barChart has rows from top to bottom and one scale of numbers that begins at 0.
type barChart struct {
	text  string
	label string
	bars  []bar
	key   []string // what the styles mean, by style number; empty: no legend
}

// draw returns the picture, and "" when there is nothing to draw. On a slim one names stand above their bars.
func (c *barChart) draw(slim bool) string {
	if len(c.bars) == 0 {
		return ""
	}
	width, class, step, thick := wideWidth, "plot wide", 27.0, 15.0
	if slim {
		width, class, step = slimWidth, "plot slim", 38
	}
	left, tail, most := 10.0, 0.0, 0.0
	for _, b := range c.bars {
		if !slim {
			left = max(left, 14+sheet.TextWidth(b.name, typeSize))
		}
		tail = max(tail, sheet.TextWidth(b.label, typeSize))
		most = max(most, b.value, b.high)
	}
	scale := &axis{zero: true}
	scale.fit(0, most, 5)
	top := 12 + 18*float64(min(len(c.key), 1))
	bottom := top + step*float64(len(c.bars)) + 2
	height := bottom + 40
	// The longest bar's label stands behind it: the scale ends where it fits.
	right := width - tail - 16
	f := &frame{left: left, right: right, x: scale}
	at := func(v float64) float64 { return f.left + scale.part(v)*(f.right-f.left) }
	out := sheet.NewCanvas(width, height, class, c.text)
	c.legend(out)
	for _, t := range scale.ticks {
		out.Line("grid", at(t), top, at(t), bottom)
		out.Text("tick", "middle", at(t), bottom+16, plain(t))
	}
	out.Text("label", "middle", (left+right)/2, height-6, c.label)
	for i, b := range c.bars {
		y := top + step*float64(i) + (step-thick)/2
		if slim {
			y = top + step*float64(i) + step - thick - 3
			out.Text("name", "start", left, y-4, b.name)
		} else {
			out.Text("name", "end", left-8, y+thick-3.5, b.name)
		}
		out.Rect("bar "+styleName(b.style), left, y, at(b.value)-left, thick, b.title)
		end := at(b.value)
		if b.high > b.low && at(b.high)-at(b.low) > 2 {
			middle := y + thick/2
			out.Line("spread", at(b.low), middle, at(b.high), middle)
			out.Line("spread", at(b.low), middle-4, at(b.low), middle+4)
			out.Line("spread", at(b.high), middle-4, at(b.high), middle+4)
			end = max(end, at(b.high))
		}
		out.Text("value", "start", end+6, y+thick-3.5, b.label)
	}
	out.Line("axis", left, top, left, bottom)
	return out.String()
}

func (c *barChart) legend(out *sheet.Canvas) {
	if len(c.key) < 2 {
		return
	}
	x := 10.0
	for style, name := range c.key {
		if name == "" {
			continue
		}
		out.Rect("bar "+styleName(style), x, 5, 11, 11, "")
		out.Text("name", "start", x+16, 15, name)
		x += 30 + sheet.TextWidth(name, typeSize)
	}
}

// words joins sentences for the description of a picture.
func words(format string, args ...any) string { return strings.TrimSpace(fmt.Sprintf(format, args...)) }
