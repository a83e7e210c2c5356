// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"

	"isthmus/controlplane/sheet"
)

// axis of a chart. With Names it has places 0, 1, 2 … that are called so; else it is a scale of numbers.
type axis struct {
	label  string
	log    bool
	zero   bool // begins at 0
	names  []string
	format func(float64) string
	ticks  []float64 // computed by fit
}

// point of a series. Low and high are the spread, equal to y where there is none.
type point struct {
	x, y, low, high float64
	title           string
}

// series of points. Style is the number of its colour and marker.
type series struct {
	name   string
	style  int
	dashed bool
	bare   bool // no markers
	alone  bool // points that no line joins
	area   bool // filled down to the axis
	points []point
}

// chart is a line chart.
type chart struct {
	text   string // says in words what is seen
	x, y   axis
	series []series
}

// Sizes of type and of a picture: on a wide page, and on a phone.
const (
	typeSize  = 12.0
	wideWidth = 560.0
	slimWidth = 350.0
	lineStep  = 15.0 // between two lines of text
)

// frame is the part of a picture between the axes.
type frame struct {
	left, right, top, bottom float64
	x, y                     *axis
}

// fit chooses the ticks of an axis that shows low to high.
func (a *axis) fit(low, high float64, n int) {
	switch {
	case a.names != nil:
		a.ticks = nil
		for i := range a.names {
			a.ticks = append(a.ticks, float64(i))
		}
	case a.log && low > 0:
		a.ticks = sheet.LogTicks(low, high)
	default:
		a.log = false
		if a.zero {
			low = min(low, 0)
		}
		a.ticks = sheet.LinearTicks(low, high, n)
	}
}

// part returns where v lies between the first and the last tick, 0 to 1.
func (a *axis) part(v float64) float64 {
	if a.names != nil {
		return (v + 0.5) / float64(len(a.names))
	}
	low, high := a.ticks[0], a.ticks[len(a.ticks)-1]
	if a.log {
		return math.Log(max(v, low)/low) / math.Log(high/low)
	}
	return (v - low) / (high - low)
}

func (f *frame) at(x, y float64) sheet.Place {
	return sheet.Place{X: f.left + f.x.part(x)*(f.right-f.left), Y: f.bottom - f.y.part(y)*(f.bottom-f.top)}
}

func (a *axis) word(v float64) string {
	if a.names != nil {
		return a.names[int(v)]
	}
	if a.format != nil {
		return a.format(v)
	}
	return plain(v)
}

// plain prints a tick with as few digits as it needs.
func plain(v float64) string {
	for decimals := range 6 {
		if s := fixed(v, decimals); math.Abs(v-math.Round(v*math.Pow10(decimals))/math.Pow10(decimals)) < 1e-9*max(1, math.Abs(v)) {
			return s
		}
	}
	return fmt.Sprintf("%.2g", v)
}

// ranges returns what the points cover.
func (c *chart) ranges() (x, y [2]float64, any bool) {
	x, y = [2]float64{math.Inf(1), math.Inf(-1)}, [2]float64{math.Inf(1), math.Inf(-1)}
	for _, s := range c.series {
		for _, p := range s.points {
			if c.y.log && p.y <= 0 {
				continue
			}
			low := p.low
			if c.y.log && low <= 0 {
				low = p.y
			}
			x = [2]float64{min(x[0], p.x), max(x[1], p.x)}
			y = [2]float64{min(y[0], low), max(y[1], p.high)}
			any = true
		}
	}
	return x, y, any
}

// draw returns the picture, and "" when there is nothing to draw. A slim one has its legend above, a wide one names its
// lines where they end.
func (c *chart) draw(slim bool) string {
	rx, ry, any := c.ranges()
	if !any {
		return ""
	}
	width, height, class := wideWidth, 330.0, "plot wide"
	if slim {
		width, height, class = slimWidth, 290, "plot slim"
	}
	cc := *c // ticks depend on the size
	xTicks := 8
	if slim {
		xTicks = 5
	}
	cc.x.fit(rx[0], rx[1], xTicks)
	cc.y.fit(ry[0], ry[1], 6)
	f := &frame{left: 12, right: width - 12, top: 28, x: &cc.x, y: &cc.y}
	direct := !slim && len(c.series) > 1 && cc.endsApart()
	var legend [][]int
	if len(c.series) > 1 && !direct {
		legend = cc.legendRows(width - 20)
		f.top += float64(len(legend))*18 + 6
		height += float64(len(legend))*18 + 6
	}
	for _, t := range cc.y.ticks {
		f.left = max(f.left, 12+sheet.TextWidth(cc.y.word(t), typeSize))
	}
	if direct {
		for _, s := range c.series {
			f.right = min(f.right, width-20-sheet.TextWidth(s.name, typeSize))
		}
	} else {
		f.right -= sheet.TextWidth(cc.x.word(cc.x.ticks[len(cc.x.ticks)-1]), typeSize) / 3
	}
	turn := cc.crowded(f.right - f.left)
	f.bottom = height - 42
	if turn {
		f.bottom -= 16
	}
	out := sheet.NewCanvas(width, height, class, c.text)
	cc.axes(out, f, turn, height)
	for row, list := range legend {
		cc.legend(out, list, 10, 18+float64(row)*18)
	}
	for i := range cc.series {
		cc.series[i].draw(out, f)
	}
	if direct {
		cc.endLabels(out, f)
	}
	return out.String()
}

// crowded says whether the names of the x axis do not fit side by side.
func (c *chart) crowded(width float64) bool {
	for i := 1; i < len(c.x.ticks); i++ {
		room := (c.x.part(c.x.ticks[i]) - c.x.part(c.x.ticks[i-1])) * width
		if (sheet.TextWidth(c.x.word(c.x.ticks[i-1]), typeSize)+sheet.TextWidth(c.x.word(c.x.ticks[i]),
			typeSize))/2+5 > room {
			return true
		}
	}
	return false
}

// axes draws the grid, the ticks and the labels.
func (c *chart) axes(out *sheet.Canvas, f *frame, turn bool, height float64) {
	for _, t := range c.y.ticks {
		y := f.at(0, t).Y
		out.Line("grid", f.left, y, f.right, y)
		out.Text("tick", "end", f.left-6, y+4, c.y.word(t))
	}
	for _, t := range c.x.ticks {
		x := f.at(t, c.y.ticks[0]).X
		out.Line("stub", x, f.bottom, x, f.bottom+4)
		if turn {
			out.Turned("tick", "end", x+4, f.bottom+14, -38, c.x.word(t))
		} else {
			out.Text("tick", "middle", x, f.bottom+17, c.x.word(t))
		}
	}
	out.Line("axis", f.left, f.bottom, f.right, f.bottom)
	out.Text("label", "middle", (f.left+f.right)/2, height-6, c.x.label)
	out.Text("label", "start", 4, f.top-12, c.y.label)
}

// endsApart says whether all lines run to the right edge, so that their names fit there.
func (c *chart) endsApart() bool {
	last := math.Inf(-1)
	for _, s := range c.series {
		if len(s.points) > 0 {
			last = max(last, s.points[len(s.points)-1].x)
		}
	}
	for _, s := range c.series {
		if len(s.points) == 0 || s.alone || s.points[len(s.points)-1].x != last || sheet.TextWidth(s.name,
			typeSize) > 150 {
			return false
		}
	}
	return true
}

// endLabels names each line at its end, moved apart where they would overlap.
func (c *chart) endLabels(out *sheet.Canvas, f *frame) {
	type label struct {
		y float64
		s *series
	}
	var list []label
	for i := range c.series {
		s := &c.series[i]
		end := s.points[len(s.points)-1]
		list = append(list, label{f.at(end.x, end.y).Y + 4, s})
	}
	slices.SortStableFunc(list, func(a, b label) int { return int(math.Copysign(1, a.y-b.y)) })
	for i := 1; i < len(list); i++ {
		list[i].y = max(list[i].y, list[i-1].y+lineStep)
	}
	for over := list[len(list)-1].y - (f.bottom + 4); over > 0; over = 0 {
		list[len(list)-1].y -= over
		for i := len(list) - 2; i >= 0; i-- {
			list[i].y = min(list[i].y, list[i+1].y-lineStep)
		}
	}
	for _, l := range list {
		end := l.s.points[len(l.s.points)-1]
		out.Text("name t"+styleName(l.s.style), "start", f.at(end.x, end.y).X+11, l.y, l.s.name)
	}
}

// legendRows breaks the names into rows that are not wider than so much.
func (c *chart) legendRows(width float64) [][]int {
	var rows [][]int
	used := width
	for i, s := range c.series {
		w := 34 + sheet.TextWidth(s.name, typeSize)
		if used+w > width {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], i)
		used += w
	}
	return rows
}

func (c *chart) legend(out *sheet.Canvas, row []int, x, y float64) {
	for _, i := range row {
		s := &c.series[i]
		class := styleName(s.style)
		if !s.alone {
			out.Line("curve "+class+dash(s.dashed), x, y-4, x+18, y-4)
		}
		if !s.bare {
			out.Marker(class, s.style, x+9, y-4, "")
		}
		out.Text("name", "start", x+23, y, s.name)
		x += 34 + sheet.TextWidth(s.name, typeSize)
	}
}

func styleName(n int) string { return fmt.Sprintf("s%d", n) }

func dash(on bool) string {
	if on {
		return " dashed"
	}
	return ""
}

// draw draws one series: its area, its line, its spreads, its markers.
func (s *series) draw(out *sheet.Canvas, f *frame) {
	class := styleName(s.style)
	var line []sheet.Place
	for _, p := range s.points {
		if f.y.log && p.y <= 0 {
			continue // has no place on this axis
		}
		line = append(line, f.at(p.x, p.y))
	}
	if len(line) == 0 {
		return
	}
	if s.area {
		area := append([]sheet.Place{{X: line[0].X, Y: f.bottom}}, line...)
		out.Path("area "+class, append(area, sheet.Place{X: line[len(line)-1].X, Y: f.bottom}), true)
	}
	if !s.alone && len(line) > 1 {
		out.Path("curve "+class+dash(s.dashed), line, false)
	}
	if s.bare {
		return
	}
	for _, p := range s.points {
		if f.y.log && p.y <= 0 {
			continue
		}
		at := f.at(p.x, p.y)
		if p.high > p.low {
			low, high := f.at(p.x, p.low).Y, f.at(p.x, p.high).Y
			if low-high > 2 {
				out.Line("whisker "+class, at.X, low, at.X, high)
				out.Line("whisker "+class, at.X-4, low, at.X+4, low)
				out.Line("whisker "+class, at.X-4, high, at.X+4, high)
			}
		}
		out.Marker(class, s.style, at.X, at.Y, p.title)
	}
}
