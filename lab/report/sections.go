// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"isthmus/controlplane/sheet"
	"isthmus/lab/figure"
)

// Sections of the page, in its order. Missing and Note name them.
const (
	SectionHeadline    = "headline"
	SectionSizes       = "sizes"
	SectionLatency     = "latency"
	SectionSteps       = "steps"
	SectionInstances   = "instances"
	SectionCost        = "cost"
	SectionSubscribers = "subscribers"
	SectionFlows       = "flows"
	SectionPeers       = "peers"
	SectionRouters     = "routers"
	SectionTrials      = "trials"
	SectionMachine     = "machine"
)

// section is one part of the page and of the text.
type section struct {
	ID, Title, Intro string
	Figures          []drawing
	Tables           []table
	Notes            []string
	Missing          []Missing
}

// drawing is a plot under its title.
type drawing struct {
	Title, Note string
	Plot        *sheet.Plot
	Save        sheet.Saved
}

// table of words. Fold hides it behind its title until asked for.
type table struct {
	Title, Note string
	Heads       []string
	Left        int // number of text columns, aligned to the left
	Rows        [][]string
	Fold        bool
	Code        bool // the last column is what was typed
	Save        sheet.Saved
}

func newFigure(title, note string, p *sheet.Plot) []drawing {
	if p.Empty() {
		return nil
	}
	return []drawing{{Title: title, Note: note, Plot: p}}
}

func newTable(t table) []table {
	if len(t.Rows) == 0 {
		return nil
	}
	return []table{t}
}

// Empty: a section has nothing to show.
func (s *section) Empty() bool { return len(s.Figures) == 0 && len(s.Tables) == 0 }

// sections makes the nonempty sections.
func (r *Report) sections() []*section {
	list := []*section{
		r.headline(), r.sizes(), r.latency(), r.stepLoad(), r.instances(), r.cost(), r.population(), r.flows(),
		r.peers(), r.routers(), r.trials(), r.machine(),
	}
	for _, s := range list {
		for _, n := range r.Notes {
			if n.Section == s.ID {
				s.Notes = append(s.Notes, n.Text)
			}
		}
		for _, m := range r.Missing {
			if m.Section == s.ID {
				s.Missing = append(s.Missing, m)
			}
		}
	}
	list = slices.DeleteFunc(list, func(s *section) bool { return s.Empty() && len(s.Missing)+len(s.Notes) == 0 })
	files := sheet.Namer{}
	for _, s := range list {
		for i := range s.Figures {
			s.Figures[i].Save = files.Plot(s.ID+" figure "+s.Figures[i].Title, s.Figures[i].Plot)
		}
		for i := range s.Tables {
			s.Tables[i].Save = files.Table(s.ID+" "+s.Tables[i].Title, s.Tables[i].Heads, s.Tables[i].Rows)
		}
	}
	return list
}

// ofGroup returns the runs of a group.
func (r *Report) ofGroup(names ...string) []*Run {
	var list []*Run
	for i := range r.Runs {
		for _, name := range names {
			if r.Runs[i].Group == name {
				list = append(list, &r.Runs[i])
			}
		}
	}
	return list
}

// name of a run with its reading of the ratio, where there are several.
func (run *Run) name() string {
	if run.Ratio == "" || run.Ratio == "1:1" {
		return run.Profile
	}
	return run.Profile + ", " + run.Ratio
}

// paper returns the published figure that a run stands beside.
func (r *Report) paper(run *Run) *Paper {
	for i := range r.Paper {
		if p := &r.Paper[i]; p.Profile == run.Profile && (p.Ratio == "" || p.Ratio == run.Ratio) {
			return p
		}
	}
	return nil
}

// marks are the words that a result carries when it must not be taken at its face.
func (run *Run) marks(g *Goal) string {
	var list []string
	add := func(on bool, word string) {
		if on {
			list = append(list, word)
		}
	}
	add(run.Incomplete != "", "PARTIAL")
	add(run.Wrong > 0, "WRONG PACKETS")
	add(run.Duplicate > 0, "WRONG: packets came twice")
	if g != nil {
		add(!g.Found && g.Reason == "", "not found")
		add(!g.Found && g.Reason != "", "not found: "+g.Reason)
		add(g.TesterLimited, "tester-limited")
		add(g.AtMaximum, "at the highest rate allowed")
		add(g.GaveUp, "search gave up")
		add(g.Found && !g.Confirmed, "not confirmed")
	}
	add(!run.Tester.Enough(), "tester not shown fast enough")
	if len(list) == 0 {
		return "good"
	}
	return joined(list)
}

// atLeast stands before a rate that something else than the gateway ended.
func (g *Goal) atLeast() string {
	if g.TesterLimited || g.AtMaximum {
		return "≥ "
	}
	return ""
}

func joined(list []string) string {
	s := ""
	for i, word := range list {
		if i > 0 {
			s += "; "
		}
		s += word
	}
	return s
}

// headline compares with the paper.
func (r *Report) headline() *section {
	s := &section{
		ID: SectionHeadline, Title: "The access gateway beside the paper",
		Intro: fmt.Sprintf("The highest rate at which at most %s of the packets are lost, measured from outside over "+
			"the link that is named, "+
			"beside the published figure for one physical core. It is a scale, not a race: the set-ups differ as "+
			"listed below.",
			percent(r.LossTarget)),
	}
	compare := table{
		Title: "Rate of one worker beside the paper's physical core", Left: 3,
		Heads: []string{"profile", "link", "result", "Mpps", "lowest to highest", "Gb/s L2", "loss", "ticks: total",
			"floor", "own", "paper Mpps",
			"paper Gb/s", "paper cycles", "ratio"},
		Note: "Mpps and Gb/s: both directions together, as the tester received them, so with the tunnel header " +
			"uplink and without it downlink. " + ticksNote + " The paper's cycles are of its 1.7 GHz core. Ratio: " +
			"our Mpps for each worker to the paper's for each physical core.",
	}
	both := table{
		Title: "Directions", Left: 2, Note: "Alone: a rougher search with packets in this direction only.",
		Heads: []string{"profile", "direction", "frame B", "Mpps", "Gb/s L2", "loss", "ticks: total", "floor", "own"},
	}
	for _, run := range r.ofGroup(GroupAccess) {
		g := r.Headline(run)
		compare.Rows = append(compare.Rows, r.compareRow(run, g))
		for _, d := range run.Directions {
			both.Rows = append(both.Rows, append([]string{run.name(), d.name(), bytesOf(d.FrameBytes), mpps(d.Mpps),
				gbps(d.GbpsL2), percent(d.LossRatio)},
				threeTicks(d.Ticks, d.Floor, d.Own)...))
		}
	}
	for i := range r.Paper {
		p := &r.Paper[i]
		run := Run{Profile: p.Profile, Ratio: p.Ratio}
		compare.Note += fmt.Sprintf(" The paper's %s: %s.", run.name(), p.What)
	}
	s.Figures = newFigure("Mpps for each core",
		"Paper: physical cores with network card and PCIe. Ours: one worker; read the differences below.",
		r.compareBars())
	s.Tables = append(s.Tables, newTable(compare)...)
	s.Tables = append(s.Tables, r.differences()...)
	s.Tables = append(s.Tables, newTable(both)...)
	s.Tables = append(s.Tables, goals("All loss targets", r.ofGroup(GroupAccess))...)
	return s
}

// compareBars sets our rates for a worker beside the paper's for a core.
func (r *Report) compareBars() *sheet.Plot {
	c := &sheet.Plot{Text: "our rate for each worker beside the paper's for each physical core",
		X: sheet.Axis{Label: "Mpps"}, Key: []string{"this gateway", "paper"}}
	for _, run := range r.ofGroup(GroupAccess) {
		g, p := r.Headline(run), r.paper(run)
		if g == nil || p == nil {
			continue
		}
		part := func(v float64) float64 { return v / float64(max(run.Workers, 1)) }
		ours := part(g.Mpps.Median)
		c.Bars = append(c.Bars, sheet.Bar{
			Name: run.name(), Value: ours, Low: part(g.Mpps.Min), High: part(g.Mpps.Max),
			Label: g.atLeast() + mpps(ours) + " over " + run.Link,
		}, sheet.Bar{Name: "paper", Value: p.MppsPerCore, Label: mpps(p.MppsPerCore), Style: 1})
	}
	return c
}

func (r *Report) compareRow(run *Run, g *Goal) []string {
	row := []string{run.name(), run.Link, run.marks(g)}
	p := r.paper(run)
	if g == nil {
		row = append(row, notApplicable, notApplicable, notApplicable, notApplicable)
	} else {
		row = append(row, g.atLeast()+g.Mpps.Text(mpps), g.Mpps.Extent(mpps), zeroAsNone(g.GbpsL2,
			gbps), lossText(g.LossRatio))
	}
	row = append(row, threeTicks(run.Ticks, run.Floor, run.Own)...)
	if p == nil {
		return append(row, notApplicable, notApplicable, notApplicable, notApplicable)
	}
	return append(row, mpps(p.MppsPerCore), gbps(p.GbpsPerCore), fixed(p.Cycles, 0), ratioText(ratioTo(run, g, p)))
}

// ticksNote explains what threeTicks gives.
const ticksNote = "Ticks: busy time of the worker for each packet, in ticks of the time stamp counter. Floor: the " +
	"same packets over the same " +
	"ports, cross-connected; own: the difference, between the extremes of both, or of pairs measured next to each " +
	"other; \"not resolved\": smaller than its range is wide, or below 0."

// threeTicks are the total, the floor and what the gateway itself costs, as far as they are known.
func threeTicks(total, floor figure.Number, own figure.Difference) []string {
	return []string{zeroAsNone(total, ticks), zeroAsNone(floor, ticks), ownTicks(own)}
}

func (d *Direction) name() string {
	if d.Alone {
		return d.Name + ", alone"
	}
	return d.Name
}

// ratioTo is our rate for each worker to the paper's for each physical core, 0 when unknown.
func ratioTo(run *Run, g *Goal, p *Paper) figure.Number {
	if g == nil || p == nil || p.MppsPerCore == 0 {
		return 0
	}
	return figure.Number(g.Mpps.Median / float64(max(run.Workers, 1)) / p.MppsPerCore)
}

func ratioText(v figure.Number) string {
	if v == 0 {
		return notApplicable
	}
	return times(float64(v)) + " ×"
}

// differences lists what differs in the set-ups; papers that share a source share a table.
func (r *Report) differences() []table {
	var list []table
	done := map[string]bool{}
	for i := range r.Paper {
		p := &r.Paper[i]
		if done[p.Source] {
			continue
		}
		done[p.Source] = true
		t := table{Title: "What differs in the set-up", Note: "The paper: " + p.Source + ".", Left: 3,
			Heads: []string{"", "paper", "here"}}
		for _, d := range p.Differs {
			t.Rows = append(t.Rows, []string{d.What, d.Theirs, d.Ours})
		}
		list = append(list, newTable(t)...)
	}
	return list
}

// goals lists every loss target of some runs.
func goals(title string, runs []*Run) []table {
	t := table{
		Title: title, Left: 2,
		Heads: []string{"profile", "result", "loss target", "Mpps", "lowest to highest", "of", "too much loss at",
			"Gb/s L2", "Gb/s L1", "loss measured"},
		Note: "Of: so many searches; with one there is no spread. Too much loss at: the lowest rate in Mpps that " +
			"failed. L2: frames with FCS; L1: with 20 " +
			"bytes of preamble and gap.",
	}
	for _, run := range runs {
		for i := range run.Goals {
			g := &run.Goals[i]
			row := []string{run.name(), run.marks(g), percent(g.LossTarget)}
			if !g.Found {
				t.Rows = append(t.Rows, append(row, notApplicable, notApplicable, notApplicable,
					zeroAsNone(g.UpperMpps, mpps), notApplicable, notApplicable,
					notApplicable))
				continue
			}
			t.Rows = append(t.Rows, append(row, g.atLeast()+g.Mpps.Text(mpps), g.Mpps.Extent(mpps),
				whole(g.Mpps.Runs), zeroAsNone(g.UpperMpps, mpps),
				zeroAsNone(g.GbpsL2, gbps), zeroAsNone(g.GbpsL1, gbps), lossText(g.LossRatio)))
		}
	}
	return newTable(t)
}
