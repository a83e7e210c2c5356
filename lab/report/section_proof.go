// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
)

// trials shows what the figures rest on.
func (r *Report) trials() *section {
	s := &section{
		ID: SectionTrials, Title: "What the figures rest on",
		Intro: fmt.Sprintf("Every packet carries its flow, its number and a time stamp; what arrives is decoded by "+
			"code that the gateway does not share. "+
			"A rate counts as the gateway's only when the tester was shown to do at least %s times as much on the "+
			"same link.", r.needed()),
	}
	proof := table{
		Title: "Packets proved, and the tester's own ability", Left: 2,
		Heads: []string{"profile", "the tester without gateway", "tester Mpps", "lowest to highest", "times the result",
			"needed", "enough", "its ticks",
			"trials", "discarded", "compared", "decoded", "wrong", "twice", "out of order"},
		Note: "Its ticks: what the tester needs to send, receive and check one packet. Compared: with what must " +
			"arrive; decoded: of them, header by header.",
	}
	account := table{
		Title: "Where every packet went", Left: 2,
		Note: "Sent = received + late + refused + dropped + missing, over all trials, also those far above the found " +
			"rate. " +
			"Late: after its trial had been given up. Refused: the gateway's receive queue was full. Missing: nobody " +
			"accounts for it.",
		Heads: []string{"profile", "dropped by the gateway", "sent", "received", "late", "refused", "missing"},
	}
	reasons := table{Title: "Discarded trials by reason", Left: 2, Heads: []string{"profile", "why", "trials"},
		Note: "A trial may have several reasons."}
	gone := table{
		Title: "Discarded trials, each", Left: 3, Fold: true, Note: "Disturbed trials are repeated, and do not count.",
		Heads: []string{"profile", "purpose", "why", "asked Mpps", "seconds", "loss", "steal", "switches",
			"longest gap µs"},
	}
	var all []table
	for i := range r.Runs {
		run := &r.Runs[i]
		row := run.ability()
		if a := run.Account; a != nil {
			account.Rows = append(account.Rows, []string{run.name(), dropText(a.Dropped), count(a.Sent),
				count(a.Received), count(a.Late), count(a.Refused),
				fixed(float64(a.Missing), 0)})
		}
		discarded, why := 0, map[string]int{}
		t := table{
			Title: "Trials of " + run.name(), Left: 2, Fold: true,
			Heads: []string{"purpose", "state", "asked Mpps", "offered Mpps", "seconds", "sent", "received", "lost",
				"loss", "duplicate", "reordered",
				"wrong", "steal", "switches", "longest gap µs", "clock GHz"},
		}
		for k := range run.Trials {
			x := &run.Trials[k]
			t.Rows = append(t.Rows, x.row())
			if !x.Used {
				discarded++
				for _, reason := range x.Discarded {
					why[reason]++
				}
				gone.Rows = append(gone.Rows, []string{run.name(), x.Purpose, joined(x.Discarded), mpps(x.AskedMpps),
					fixed(x.Seconds, 2),
					percent(x.LossRatio), percent(x.StealRatio), count(x.Switches), micro(x.GapUs)})
			}
		}
		proof.Rows = append(proof.Rows, append(row, whole(len(run.Trials)), whole(discarded), count(run.Checked),
			count(run.Decoded), count(run.Wrong), count(run.Duplicate),
			count(run.Reordered)))
		for _, reason := range slices.Sorted(maps.Keys(why)) {
			reasons.Rows = append(reasons.Rows, []string{run.name(), reason, whole(why[reason])})
		}
		all = append(all, newTable(t)...)
	}
	s.Tables = append(newTable(proof), newTable(account)...)
	s.Tables = append(s.Tables, newTable(reasons)...)
	s.Tables = append(s.Tables, newTable(gone)...)
	s.Tables = append(s.Tables, all...)
	return s
}

// ability describes the tester's proven abilities for a run.
func (run *Run) ability() []string {
	c := run.Tester
	if c == nil {
		return []string{run.name(), "not shown", notApplicable, notApplicable, notApplicable, notApplicable, "NO",
			zeroAsNone(run.TesterTicks, ticks)}
	}
	how, enough := c.How, "NO"
	if c.Error != "" {
		how = "NOT MEASURED: " + c.Error
	}
	if c.Enough() {
		enough = "yes"
	}
	return []string{run.name(), how, c.Mpps.Text(mpps), c.Mpps.Extent(mpps), ratioText(c.Ratio),
		ratioText(c.Needed), enough,
		zeroAsNone(run.TesterTicks, ticks)}
}

// needed is the required ability of the tester, as in the first run.
func (r *Report) needed() string {
	for i := range r.Runs {
		if c := r.Runs[i].Tester; c != nil {
			return times(float64(c.Needed))
		}
	}
	return times(TesterNeeded)
}

// TesterNeeded is how much faster than the gateway the tester must be shown on the same link.
const TesterNeeded = 1.3

func (x *Trial) row() []string {
	state := "used"
	if !x.Used {
		state = "discarded: " + joined(x.Discarded)
	}
	if x.TesterLimited {
		state += ", tester-limited"
	}
	return []string{x.Purpose, state, mpps(x.AskedMpps), mpps(x.OfferedMpps), fixed(x.Seconds, 2), count(x.Sent),
		count(x.Received), count(x.Lost),
		percent(x.LossRatio), count(x.Duplicate), count(x.Reordered), count(x.Wrong), percent(x.StealRatio),
		count(x.Switches), micro(x.GapUs),
		zeroAsNone(x.ClockGHz, func(v float64) string { return fixed(v, 2) })}
}

// machine describes place, equipment and method.
func (r *Report) machine() *section {
	m := &r.Machine
	s := &section{ID: SectionMachine, Title: "Machine, versions, command lines"}
	where := table{Title: "Machine", Left: 2, Heads: []string{"", ""}}
	add := func(what, value string) {
		if value != "" && value != "0" && value != notApplicable {
			where.Rows = append(where.Rows, []string{what, value})
		}
	}
	add("processor", m.CPU)
	add("processors", whole(m.CPUs))
	add("hypervisor", m.Hypervisor)
	add("time stamp counter, MHz", zeroAsNone(m.TSCHz, func(hz float64) string { return fixed(hz/1e6, 0) }))
	if m.ClockGHz[1] > 0 {
		add("clock estimated, GHz", fixed(float64(m.ClockGHz[0]), 2)+" to "+fixed(float64(m.ClockGHz[1]), 2))
	}
	add("who ran where", m.Placement)
	add("memory, GB", fixed(m.MemoryGB, 0))
	add("huge pages", m.HugePages)
	add("system", m.System)
	add("kernel", m.Kernel)
	add("host", m.Host)
	add("steal, worst trial that counts", percent(m.StealRatio))
	add("started", r.Started)
	add("took", duration(r.Seconds)+", budget "+duration(r.BudgetSeconds))
	versions := table{Title: "Versions", Left: 2, Heads: []string{"program", "version"}}
	for _, v := range r.Versions {
		versions.Rows = append(versions.Rows, []string{v.Name, v.Version})
	}
	commands := table{Title: "Command lines", Left: 2, Code: true, Heads: []string{"what", "command"}}
	for _, c := range r.Commands {
		commands.Rows = append(commands.Rows, []string{c.What, c.Line})
	}
	for _, g := range r.Peers {
		for i := range g.Peers {
			if p := &g.Peers[i]; p.Command != "" {
				commands.Rows = append(commands.Rows, []string{g.Title + ": " + p.Name, p.Command})
			}
		}
	}
	s.Tables = append(newTable(where), newTable(versions)...)
	s.Tables = append(s.Tables, newTable(commands)...)
	return s
}
