// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math/bits"
	"strconv"
	"strings"

	"isthmus/controlplane/sheet"
	"isthmus/lab/figure"
)

// flows draws the cost against the number of flows, with what memory alone costs.
func (r *Report) flows() *section {
	s := &section{
		ID: SectionFlows, Title: "Sensitivity to the number of flows",
		Intro: "A flow is a 5-tuple of one direction that leads to its bearer's rule, policer and counter. First " +
			"each flow sends one packet, in turn, and misses " +
			"(table-fill); then known flows send in random order. Memory: one random read-modify-write of 64 bytes " +
			"over a line for each flow, before and " +
			"after on the same CPU, in the same kind of pages. On synth ports, one worker.",
	}
	t := table{
		Title: "Cost by flows", Left: 1,
		Heads: []string{"profile", "flows", "sessions", "ticks: total", "floor", "own",
			"total, lowest to highest", "memory", "own / memory", "Mpps",
			"fill: total", "floor", "own", "flows inserted a second", "pages", "compared", "wrong", "loss"},
	}
	for _, set := range r.Flows {
		c := &sheet.Plot{Text: set.Title + ": ticks a packet against flows", X: sheet.Axis{Label: "flows"},
			Y: sheet.Axis{Label: "ticks a packet", Log: true}}
		lines := []sheet.Line{{Name: "table-fill", Style: 2}, {Name: "total", Style: 1},
			{Name: "own", Style: 0}, {Name: "port floor", Style: 5, Dashed: true},
			{Name: "memory floor", Style: 3, Dashed: true}}
		for i, p := range set.Points {
			c.X.Names = append(c.X.Names, power(p.Flows))
			own := p.Own
			if !own.Resolved() {
				own = figure.Difference{}
			}
			addSpreads(lines, i, figure.Once(p.FillTicks), p.Ticks, own.Spread, p.Floor, p.Memory)
			ratio := notApplicable
			if p.Memory.Median > 0 && own.Has() {
				ratio = times(own.Median / p.Memory.Median)
			}
			pages := "4 KiB"
			if p.HugePages {
				pages = "huge"
			}
			row := []string{set.Profile, whole(p.Flows), whole(p.Sessions), p.Ticks.Text(ticks),
				p.Floor.Both(ticks), ownTicks(p.Own)}
			row = append(row, p.Ticks.Extent(ticks), p.Memory.Both(ticks), ratio, p.Mpps.Both(mpps))
			row = append(row, threeTicks(p.FillTicks, p.FillFloor, p.FillOwn)...)
			t.Rows = append(t.Rows, append(row, count(uint64(p.InsertsPerSec)), pages, count(p.Checked),
				count(p.Wrong), percent(p.LossRatio)))
		}
		c.Lines = measured(lines...)
		s.Figures = append(s.Figures, newFigure(set.Title, "", c)...)
	}
	s.Tables = newTable(t)
	return s
}

// power names a number by its power of two, where it is one.
func power(n int) string {
	if n <= 0 || n&(n-1) != 0 {
		return whole(n)
	}
	return "2" + strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷",
		"8", "⁸", "9", "⁹").
		Replace(strconv.Itoa(bits.Len(uint(n))-1))
}
