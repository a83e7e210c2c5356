// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"isthmus/controlplane/sheet"
	"isthmus/lab/figure"
)

// These sections show what was measured over a link: frame sizes, latency, step load, instances.

// sizeName names a place on the axis of frame sizes.
func sizeName(bytes float64, mix bool) string {
	if mix {
		return "IMIX"
	}
	return strconv.FormatFloat(math.Round(bytes), 'f', 0, 64)
}

// bySize returns the runs with one size in order, those with a mix at the end.
func bySize(runs []*Run) []*Run {
	list := slices.Clone(runs)
	slices.SortStableFunc(list, func(a, b *Run) int {
		if a.Mix != b.Mix {
			if a.Mix {
				return 1
			}
			return -1
		}
		return int(a.FrameBytes - b.FrameBytes)
	})
	return list
}

func (r *Report) sizes() *section {
	s := &section{
		ID: SectionSizes, Title: "Rate against frame size",
		Intro: "RFC 2544: a plain router, both directions with frames of one size, then a mix (IMIX). The floor is " +
			"the simplest program that moves frames " +
			"between the same two ports: what the link itself carries.",
	}
	runs := bySize(r.ofGroup(GroupRFC2544, GroupJumbo))
	names := []string{}
	place := map[string]float64{}
	note := func(name string) {
		if _, known := place[name]; !known {
			place[name] = float64(len(names))
			names = append(names, name)
		}
	}
	all := slices.Clone(runs)
	for _, f := range r.Floors {
		all = append(all, &Run{FrameBytes: f.FrameBytes, Mix: f.Mix})
	}
	if len(runs) > 0 {
		for _, run := range bySize(all) {
			note(sizeName(run.FrameBytes, run.Mix))
		}
	}
	s.Figures = append(s.Figures, newFigure("Packets a second", "",
		r.sizeChart(runs, names, place, "Mpps", func(bytes, v float64) float64 { return v }))...)
	s.Figures = append(s.Figures, newFigure("Bits a second", "", r.sizeChart(runs, names, place, "Gb/s (L2, with FCS)",
		func(bytes, v float64) float64 { return v * bytes * 8 / 1000 }))...)
	s.Tables = append(s.Tables, r.sizeTable(runs)...)
	s.Tables = append(s.Tables, goals("All loss targets by frame size", runs)...)
	return s
}

// sizeChart draws runs and floors over the sizes; convert makes a rate in Mpps into what is shown.
func (r *Report) sizeChart(runs []*Run, names []string, place map[string]float64, unit string,
	convert func(bytes, v float64) float64) *sheet.Plot {
	ours := sheet.Line{Name: "gateway, " + percent(r.LossTarget) + " loss", Style: 0}
	zero := sheet.Line{Name: "gateway, no loss", Style: 1, Dashed: true}
	mixed := sheet.Line{Name: "gateway, IMIX", Style: 2, Alone: true}
	add := func(to *sheet.Line, bytes float64, mix bool, m Spread) {
		to.Points = append(to.Points, sheet.Point{X: place[sizeName(bytes, mix)], Y: convert(bytes, m.Median),
			Low: convert(bytes, m.Min), High: convert(bytes, m.Max)})
	}
	for _, run := range runs {
		if g := r.Headline(run); g != nil {
			if run.Mix {
				add(&mixed, run.FrameBytes, true, g.Mpps)
			} else {
				add(&ours, run.FrameBytes, false, g.Mpps)
			}
		}
		for i := range run.Goals {
			if g := &run.Goals[i]; g.LossTarget == 0 && g.Found && !run.Mix {
				add(&zero, run.FrameBytes, false, g.Mpps)
			}
		}
	}
	floor := sheet.Line{Style: 5, Dashed: true}
	for _, f := range r.Floors {
		if _, shown := place[sizeName(f.FrameBytes, f.Mix)]; shown && !f.Mix {
			add(&floor, f.FrameBytes, false, f.Mpps)
			floor.Name = "floor: " + r.Floors[0].Name
		}
	}
	return &sheet.Plot{
		Text: "Rate against frame size in " + unit, Y: sheet.Axis{Label: unit, Zero: true},
		X:     sheet.Axis{Label: "frame size, bytes (places, not to scale)", Names: names},
		Lines: measured(floor, ours, zero, mixed),
	}
}

// measured are the lines that have points.
func measured(lines ...sheet.Line) []sheet.Line {
	return slices.DeleteFunc(lines, func(l sheet.Line) bool { return len(l.Points) == 0 })
}

// addSpreads adds to each line what was measured of it at a place.
func addSpreads(lines []sheet.Line, place int, each ...Spread) {
	for i, v := range each {
		if v.Has() {
			lines[i].Points = append(lines[i].Points,
				sheet.Point{X: float64(place), Y: v.Median, Low: v.Min, High: v.Max})
		}
	}
}

func (r *Report) sizeTable(runs []*Run) []table {
	t := table{
		Title: "Rate by frame size", Left: 2,
		Heads: []string{"frame B", "result", "Mpps", "lowest to highest", "Gb/s L2", "Gb/s L1", "Mpps, no loss",
			"floor Mpps", "of the floor", "ticks: total", "floor", "own"},
		Note: "Mpps: with at most the headline's loss. " + ticksNote,
	}
	for _, run := range runs {
		g := r.Headline(run)
		row := []string{sizeName(run.FrameBytes, run.Mix)}
		if run.Mix {
			row[0] += " (mean " + bytesOf(run.FrameBytes) + ")"
		}
		row = append(row, run.marks(g))
		if g == nil {
			row = append(row, notApplicable, notApplicable, notApplicable, notApplicable)
		} else {
			row = append(row, g.atLeast()+g.Mpps.Text(mpps), g.Mpps.Extent(mpps),
				zeroAsNone(g.GbpsL2, gbps), zeroAsNone(g.GbpsL1, gbps))
		}
		none := notApplicable
		for i := range run.Goals {
			if z := &run.Goals[i]; z.LossTarget == 0 && z.Found {
				none = z.Mpps.Text(mpps)
			}
		}
		floor, part := notApplicable, notApplicable
		if f := r.floorOf(run); f != nil {
			floor = f.Mpps.Both(mpps)
			if g != nil && f.Mpps.Median > 0 {
				part = percent(g.Mpps.Median / f.Mpps.Median)
			}
		}
		t.Rows = append(t.Rows, append(append(row, none, floor, part), threeTicks(run.Ticks, run.Floor,
			run.Own)...))
	}
	return newTable(t)
}

func (r *Report) floorOf(run *Run) *Floor {
	for i := range r.Floors {
		f := &r.Floors[i]
		if f.Mix == run.Mix && (f.Mix || f.FrameBytes == run.FrameBytes) && f.Link == run.Link {
			return f
		}
	}
	return nil
}

// latency shows curves, the round trip of ICMP echo, and distributions.
func (r *Report) latency() *section {
	s := &section{
		ID: SectionLatency, Title: "Latency",
		Intro: "From the moment a packet is handed to the link until it is taken from the other one, so the tester's " +
			"own bursts and queues are part " +
			"of it. The load is a share of the rate found for the same profile. On a virtual machine the tail shows " +
			"the host's interruptions, too.",
	}
	t := table{
		Title: "Latency in microseconds", Left: 2,
		Heads: []string{"profile", "what", "load", "Mpps", "packets", "lost", "min", "mean", "p50", "p90", "p99",
			"p99.9", "max"},
		Note: "Lost: echo requests without an answer.",
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Group == GroupAccess { // the others are in the table
			s.Figures = append(s.Figures, latencyFigures(run)...)
		}
		for k, set := range []struct {
			what string
			list []Load
		}{{"one way", run.Latency}, {"ICMP echo, round trip", run.Echo}} {
			for _, l := range set.list {
				v := l.Latency
				lost := notApplicable
				if k > 0 {
					lost = count(l.Lost)
				}
				t.Rows = append(t.Rows, []string{run.name(), set.what, fixed(l.Percent, 0) + " %", mpps(l.Mpps),
					count(v.Count), lost, micro(v.Min),
					micro(v.Mean), micro(v.P50), micro(v.P90), micro(v.P99), micro(v.P999), micro(v.Max)})
			}
		}
	}
	s.Tables = newTable(t)
	return s
}

func latencyFigures(run *Run) []drawing {
	name := run.name()
	list := newFigure(name+": one way", "", latencyChart(name+", latency one way", run.Latency))
	list = append(list, newFigure(name+": ICMP echo, round trip", "",
		latencyChart(name+", round trip of ICMP echo", run.Echo))...)
	list = append(list, newFigure(name+": distribution", "", histogramChart(name, run.Latency))...)
	return append(list, newFigure(name+": the tail", "", tailChart(name, run.Latency))...)
}

func latencyChart(what string, list []Load) *sheet.Plot {
	c := &sheet.Plot{
		Text: what + " against load, in microseconds", X: sheet.Axis{Label: "load, % of the found rate"},
		Y: sheet.Axis{Label: "µs", Log: true},
	}
	for style, q := range []struct {
		name  string
		value func(*Latency) float64
	}{
		{"p50", func(l *Latency) float64 { return l.P50 }}, {"p90", func(l *Latency) float64 { return l.P90 }},
		{"p99", func(l *Latency) float64 { return l.P99 }}, {"p99.9", func(l *Latency) float64 { return l.P999 }},
	} {
		one := sheet.Line{Name: q.name, Style: style}
		for i := range list {
			one.Points = append(one.Points, sheet.At(list[i].Percent, q.value(&list[i].Latency)))
		}
		c.Lines = append(c.Lines, one)
	}
	return c
}

// stepLoad draws the received rate against the offered one.
func (r *Report) stepLoad() *section {
	s := &section{
		ID: SectionSteps, Title: "Step load",
		Intro: "What came through when so much was offered, also beyond the highest rate: a good gateway keeps its " +
			"rate when it is overloaded.",
	}
	t := table{Title: "Step load", Left: 1, Heads: []string{"profile", "load", "offered Mpps", "received Mpps", "loss",
		"p99 µs"}}
	for i := range r.Runs {
		run := &r.Runs[i]
		came := sheet.Line{Name: "received", Style: 0}
		all := sheet.Line{Name: "all that was offered", Style: 5, Dashed: true, Bare: true,
			Points: []sheet.Point{{}}}
		for _, step := range run.Steps {
			came.Points = append(came.Points, sheet.At(step.OfferedMpps, step.ReceivedMpps))
			all.Points = append(all.Points, sheet.At(step.OfferedMpps, step.OfferedMpps))
			t.Rows = append(t.Rows, []string{run.name(), fixed(step.Percent, 0) + " %", mpps(step.OfferedMpps),
				mpps(step.ReceivedMpps),
				percent(step.LossRatio), zeroAsNone(step.P99, micro)})
		}
		if len(came.Points) > 0 {
			s.Figures = append(s.Figures, newFigure(run.name(), "", &sheet.Plot{
				Text: run.name() + ": received against offered rate", Lines: []sheet.Line{all, came},
				X: sheet.Axis{Label: "offered, Mpps", Zero: true},
				Y: sheet.Axis{Label: "received, Mpps", Zero: true},
			})...)
		}
	}
	s.Tables = newTable(t)
	return s
}

func zeroAsNone(v figure.Number, format func(float64) string) string {
	if v == 0 {
		return notApplicable
	}
	return format(float64(v))
}

// instances shows the sum over several gateways, as far as it was measured.
func (r *Report) instances() *section {
	s := &section{
		ID: SectionInstances, Title: "Rate against the number of instances",
		Intro: "Several gateways at once, each with its own cores, ports and subscribers. Only what was measured is " +
			"shown; nothing is extrapolated.",
	}
	t := table{
		Title: "Instances", Left: 1,
		Heads: []string{"profile", "instances", "CPUs used", "Mpps, sum", "lowest to highest", "Gb/s L2", "scaling"},
		Note:  "Scaling: the sum, divided by the number of instances and the rate of one alone.",
	}
	for _, set := range r.Instances {
		c := &sheet.Plot{Text: set.Title + ": rate against instances", X: sheet.Axis{Label: "Mpps, sum"}}
		for _, p := range set.Points {
			c.Bars = append(c.Bars, sheet.Bar{
				Name:  numbered(p.Instances, "instance"),
				Value: p.Mpps.Median, Low: p.Mpps.Min, High: p.Mpps.Max,
				Label: fmt.Sprintf("%s · scaling %s", p.Mpps.Text(mpps), zeroAsNone(p.Scaling, times)),
			})
			t.Rows = append(t.Rows, []string{set.Profile, whole(p.Instances), whole(p.CPUs),
				p.Mpps.Text(mpps), p.Mpps.Extent(mpps), zeroAsNone(p.GbpsL2, gbps),
				zeroAsNone(p.Scaling, times)})
		}
		s.Figures = append(s.Figures, newFigure(set.Title, "", c)...)
		if set.Cannot != "" {
			s.Notes = append(s.Notes, set.Cannot)
		}
	}
	s.Tables = newTable(t)
	return s
}

// numbered is "1 instance" or "2 instances".
func numbered(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return whole(n) + " " + what + "s"
}
