// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Plot is a picture that plots.js draws: lines over an axis, or bars.
type Plot struct {
	Text  string   `json:"-"` // describes the picture
	X     Axis     `json:"x"`
	Y     Axis     `json:"y"`
	Lines []Line   `json:"lines"`
	Bars  []Bar    `json:"bars"`
	Key   []string `json:"key"`   // what the styles of bars mean
	Steps bool     `json:"steps"` // a value holds until the next one; filled down to the axis
	Gaps  bool     `json:"gaps"`  // a line ends where it has no value
}

// Axis of a plot. With Names it has places 0, 1, 2 … that are called so; else it is a scale of numbers.
type Axis struct {
	Label string   `json:"label"`
	Unit  string   `json:"unit"` // written behind numbers, with a prefix
	Log   bool     `json:"log"`
	Zero  bool     `json:"zero"`  // begins at 0
	Clock bool     `json:"clock"` // milliseconds since 1970
	Most  float64  `json:"most"`  // where it ends; 0: behind the highest value
	Names []string `json:"names"`
}

// Line of a plot. Style is the number of its colour.
type Line struct {
	Name   string  `json:"name"`
	Style  int     `json:"style"`
	Dashed bool    `json:"dashed"`
	Bare   bool    `json:"bare"`  // points are not marked
	Alone  bool    `json:"alone"` // points are not joined
	Points []Point `json:"-"`
}

// Point of a line. Low and High are its spread; where it has none, all three are the same.
type Point struct{ X, Y, Low, High float64 }

// At is a point without a spread. A value that is no number is a gap.
func At(x, y float64) Point { return Point{x, y, y, y} }

// Bar is one row of a bar chart: a name, a value, and a text at its end. Low and High are its spread, 0 without.
type Bar struct {
	Name  string  `json:"name"`
	Label string  `json:"label"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Style int     `json:"style"`
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// shown: a point has a place on both axes.
func (p *Plot) shown(v Point) bool {
	return finite(v.Y) && finite(v.X) && (!p.Y.Log || v.Y > 0) && (!p.X.Log || v.X > 0)
}

// Empty: there is nothing to draw.
func (p *Plot) Empty() bool {
	return len(p.Bars) == 0 && !slices.ContainsFunc(p.Lines, func(l Line) bool {
		return slices.ContainsFunc(l.Points, p.shown)
	})
}

// spread: some point has one. Then each value in the data has its three numbers.
func (p *Plot) spread() bool {
	return slices.ContainsFunc(p.Lines, func(l Line) bool {
		return slices.ContainsFunc(l.Points, func(v Point) bool { return v.High > v.Low })
	})
}

// number is a value in the data, with the digits that can be seen.
func number(v float64) json.Number { return json.Number(strconv.FormatFloat(v, 'g', 7, 64)) }

// rows are what dygraphs draws: a place on the axis, and at it the value of each line.
func (p *Plot) rows() [][]any {
	spread, rows := p.spread(), map[float64][]any{}
	for i := range p.Lines {
		for _, v := range p.Lines[i].Points {
			if !finite(v.X) {
				continue
			}
			row := rows[v.X]
			if row == nil {
				row = make([]any, 1+len(p.Lines))
				row[0], rows[v.X] = v.X, row
			}
			switch {
			case !p.shown(v): // null
			case spread && p.Y.Log && v.Low <= 0:
				row[1+i] = [3]json.Number{number(v.Y), number(v.Y), number(v.High)}
			case spread:
				row[1+i] = [3]json.Number{number(v.Low), number(v.Y), number(v.High)}
			default:
				row[1+i] = number(v.Y)
			}
		}
	}
	var list [][]any
	for _, x := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, rows[x])
	}
	return list
}

// Data is what plots.js reads.
func (p *Plot) Data() (string, error) {
	data, err := json.Marshal(struct {
		*Plot
		Rows   [][]any `json:"rows"`
		Spread bool    `json:"spread"`
	}{p, p.rows(), p.spread()})
	return string(data), err
}

// Plot is a plot's figures as lines of values.
func (n Namer) Plot(title string, p *Plot) Saved {
	heads, rows := []string{p.X.Label}, [][]string{}
	if len(p.Bars) > 0 {
		heads = []string{"", p.X.Label, "lowest", "highest"}
	}
	for _, b := range p.Bars {
		row := []string{b.Name, string(number(b.Value)), "", ""}
		if b.High > 0 {
			row[2], row[3] = string(number(b.Low)), string(number(b.High))
		}
		rows = append(rows, row)
	}
	for _, l := range p.Lines {
		heads = append(heads, l.Name)
		if p.spread() {
			heads = append(heads, l.Name+", lowest", l.Name+", highest")
		}
	}
	for _, row := range p.rows() {
		x := row[0].(float64)
		cells := []string{string(number(x))}
		if p.X.Names != nil {
			cells[0] = p.X.Names[int(x)]
		}
		for _, v := range row[1:] {
			switch v := v.(type) {
			case json.Number:
				cells = append(cells, string(v))
			case [3]json.Number:
				cells = append(cells, string(v[1]), string(v[0]), string(v[2]))
			default:
				cells = append(cells, make([]string, len(heads[1:])/len(p.Lines))...)
			}
		}
		rows = append(rows, cells)
	}
	return n.Table(title, heads, rows)
}
