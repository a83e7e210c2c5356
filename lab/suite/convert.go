// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"isthmus/lab/bench"
	"isthmus/lab/figure"
	"isthmus/lab/report"
	"isthmus/lab/tester"
)

// keep adds a measured profile to the report: a run for each point, the link's floor, the cost of the nodes.
func (s *suite) keep(r *bench.LinkResult, profile, group string) {
	for i := range r.Points {
		p := &r.Points[i]
		run := newRun(r, p, profile, group)
		s.r.Runs = append(s.r.Runs, run)
		if t := p.Tester; t != nil && t.Mpps > 0 && group != report.GroupAccess {
			s.r.Floors = append(s.r.Floors, report.Floor{Name: t.Device, Link: r.Link,
				FrameBytes: run.FrameBytes, Mix: run.Mix, Mpps: figure.Once(t.Mpps)})
			s.version(t.Device, t.Version)
		}
		if p.Raw != nil && len(p.Raw.Command) > 0 {
			s.r.Commands = append(s.r.Commands, report.Command{What: "tester: " + profile + ", " + p.Name,
				Line: strings.Join(p.Raw.Command, " ")})
		}
		if group == report.GroupAccess && i == 0 && p.Uplink != nil && p.Downlink != nil {
			s.r.Costs = append(s.r.Costs, linkCost(r, p))
		}
	}
	s.version("isthmus-dp", r.Versions.DataPlane)
	s.version("isthmus-traffic", r.Versions.Tester)
	s.version("DPDK of the tester", r.Versions.DPDK)
	s.where(r)
}

// where notes the machine of a result.
func (s *suite) where(r *bench.LinkResult) {
	m := &s.r.Machine
	m.TSCHz, m.StealRatio = r.TSCHz, max(m.StealRatio, r.StealRatio)
	if r.CPU != "" {
		m.CPU = r.CPU
	}
	if low := r.ClockGHz[0]; low > 0 && (m.ClockGHz[0] == 0 || low < m.ClockGHz[0]) {
		m.ClockGHz[0] = low
	}
	m.ClockGHz[1] = max(m.ClockGHz[1], r.ClockGHz[1])
	m.Placement = fmt.Sprintf("gateway's workers: %s; tester: %s; everything else: %s", placed(r.CPUs),
		placed(r.TesterCPUs), placed(r.ControlCPUs))
	if !r.HugePages {
		m.HugePages = "not used"
	}
}

func placed(cpus []int) string {
	if len(cpus) == 0 {
		return "not pinned"
	}
	return "CPU " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(cpus)), ", "), "[]")
}

func newRun(r *bench.LinkResult, p *bench.Point, profile, group string) report.Run {
	run := report.Run{
		Profile: profile, Title: r.Title, Group: group, Ratio: p.Reading, Link: r.Link, Workers: r.Workers,
		Subscribers: r.Subscribers, Flows: r.Flows,
		FrameBytes: p.MeanBytes, Note: p.Note,
		Ticks: p.TicksPerPacket, Floor: p.FloorTicksPerPacket, Own: p.OwnRange,
		TesterTicks: p.TesterTicks, Proof: p.Proof,
		Directions: []report.Direction{}, Goals: []report.Goal{}, Latency: []report.Load{}, Echo: []report.Load{},
		Steps:  []report.Step{},
		Trials: []report.Trial{}, Account: &p.Accounting,
	}
	if i := strings.LastIndex(run.Title, ", "); i > 0 && strings.HasPrefix(p.Reading, run.Title[i+2:]) {
		run.Title = run.Title[:i] // the ratio stands beside it
	}
	if group != report.GroupAccess {
		run.Title = p.Name
		run.Mix = p.FrameBytes == 0
		if p.FrameBytes > 0 {
			run.FrameBytes = float64(p.FrameBytes)
		}
		run.Profile = profile + " " + p.Name
	}
	if p.Wrong > 0 {
		run.WrongFrame = r.WrongFrame
	}
	if !p.Complete {
		run.Incomplete = "its search did not come to its end"
		if r.Interrupted {
			run.Incomplete = "interrupted"
		}
	}
	for i := range p.Rates {
		run.Goals = append(run.Goals, goal(p, i, i == len(p.Rates)-1))
	}
	if t := p.Tester; t != nil {
		run.Tester = &report.Capability{How: t.Device, Error: t.Error, Mpps: figure.Once(t.Mpps),
			Ratio: t.Ratio, Needed: report.TesterNeeded}
	}
	for i := range p.Latency {
		l := &p.Latency[i]
		percent := math.Round(l.Load*1000) / 10
		if l.LatencyUS != nil {
			run.Latency = append(run.Latency, report.Load{Percent: percent, Mpps: float64(l.Mpps),
				Latency: latency(l.LatencyUS, group == report.GroupAccess)})
		}
		if l.Echo != nil && l.Echo.Count > 0 {
			run.Echo = append(run.Echo, report.Load{Percent: percent, Mpps: float64(l.Mpps),
				Lost: l.EchoLost, Latency: latency(l.Echo, true)})
		}
	}
	if group == report.GroupAccess {
		run.Directions = directions(p)
	}
	if p.Raw != nil {
		run.Seconds = p.Raw.Seconds
		for i := range p.Raw.Trials {
			run.Trials = append(run.Trials, trial(&p.Raw.Trials[i]))
		}
	}
	return run
}

// goal is one of a point's. The headline is the last one, for which the point has the bits; the others' follow from
// theirs.
func goal(p *bench.Point, i int, headline bool) report.Goal {
	rate := &p.Rates[i]
	g := report.Goal{LossTarget: rate.Loss, Mpps: figure.Once(rate.Mpps), UpperMpps: rate.UpperMpps,
		Outcome: rate.Outcome}
	if p.Mpps > 0 {
		g.GbpsL2, g.GbpsL1 = rate.Mpps*p.GbpsL2/p.Mpps, rate.Mpps*p.GbpsL1/p.Mpps
	}
	if headline {
		g.LossRatio = p.LossRatio
	}
	return g
}

// latency copies a histogram, its buckets only where they are drawn.
func latency(h *tester.Histogram, buckets bool) report.Latency {
	l := *h
	if !buckets {
		l.Buckets = nil
	}
	return l
}

// directions divides the trial that stands for a point by direction, and adds what was measured alone.
func directions(p *bench.Point) []report.Direction {
	list := []report.Direction{}
	if t := standing(p); t != nil {
		up, down := report.Direction{Name: "uplink"}, report.Direction{Name: "downlink"}
		var sent, lost [2]uint64
		for i := range t.Streams {
			stream := &t.Streams[i]
			d, k := &down, 1
			if uplink(p.Raw, stream.Name) {
				d, k = &up, 0
			}
			if stream.Expectation != "" {
				continue // ICMP echo beside the load
			}
			d.FrameBytes += float64(stream.Sent) * meanBytes(p.Raw, stream.Name)
			d.Mpps, d.GbpsL2 = d.Mpps+stream.ReceivedPPS/1e6, d.GbpsL2+stream.GbpsL2
			sent[k], lost[k] = sent[k]+stream.Sent, lost[k]+stream.Lost
		}
		for k, d := range []*report.Direction{&up, &down} {
			if sent[k] > 0 {
				d.LossRatio = float64(lost[k]) / float64(sent[k])
				d.FrameBytes = math.Round(d.FrameBytes/float64(sent[k])*10) / 10
				list = append(list, *d)
			}
		}
	}
	for i, d := range []*bench.LinkDirection{p.Uplink, p.Downlink} {
		if d == nil || d.Mpps == 0 {
			continue
		}
		one := report.Direction{Name: []string{"uplink", "downlink"}[i], Alone: true,
			Mpps: float64(d.Mpps), LossRatio: *d.LossRatio, Ticks: d.TicksPerPacket,
			Floor: d.FloorTicksPerPacket, Own: d.OwnRange}
		fmt.Sscanf(d.FrameBytes, "%g B", &one.FrameBytes)
		one.GbpsL2 = one.Mpps * one.FrameBytes * 8 / 1000
		list = append(list, one)
	}
	return list
}

// meanBytes is the size of a stream's frames as they are sent.
func meanBytes(r *tester.Result, stream string) float64 {
	for i := range r.Streams {
		if r.Streams[i].Name == stream {
			return r.Streams[i].MeanBytes
		}
	}
	return 0
}

// standing is the trial that stands for a point: the last that confirmed its rate, else the last at that rate.
func standing(p *bench.Point) *tester.Trial {
	if p.Raw == nil || p.Mpps == 0 {
		return nil
	}
	for _, purpose := range []string{tester.PurposeConfirm, tester.PurposeSearch, tester.PurposeFixed} {
		for i := len(p.Raw.Trials) - 1; i >= 0; i-- {
			t := &p.Raw.Trials[i]
			if t.Used && t.Purpose == purpose && math.Abs(t.OfferedPPS/1e6/float64(p.Mpps)-1) < 1e-4 {
				return t
			}
		}
	}
	return nil
}

// uplink derives a stream's direction from its sending port.
func uplink(r *tester.Result, stream string) bool {
	for i := range r.Streams {
		if r.Streams[i].Name == stream {
			return strings.HasSuffix(r.Streams[i].Port, "access")
		}
	}
	return false
}

func trial(t *tester.Trial) report.Trial {
	x := report.Trial{
		Purpose: t.Purpose, AskedMpps: t.RatePPS / 1e6, OfferedMpps: t.OfferedPPS / 1e6, Seconds: t.Seconds,
		Sent: t.Sent, Received: t.Received,
		Lost: t.Lost, Duplicate: t.Duplicate, Reordered: t.Reordered, Wrong: t.Wrong, LossRatio: t.LossRatio,
		Used:          t.Used,
		TesterLimited: t.TesterLimited, StealRatio: t.Steal, Switches: t.Switches, GapUs: t.GapUS,
		ClockGHz: figure.Number(t.ClockGHz),
	}
	if !t.Used {
		x.Discarded = slices.Clone(t.Disturbed)
		switch {
		case t.Purpose == tester.PurposeWarmup:
			x.Discarded, x.Used = nil, true // never meant to be judged
		case t.Interrupted:
			x.Discarded = append(x.Discarded, "interrupted")
		}
	}
	return x
}

// stepsOf are the trials of a step load.
func stepsOf(r *tester.Result, full float64) []report.Step {
	var list []report.Step
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.Used || t.Purpose != tester.PurposeStep || t.Sent == 0 {
			continue
		}
		step := report.Step{
			Percent: math.Round(t.RatePPS / full * 100), OfferedMpps: t.OfferedPPS / 1e6,
			ReceivedMpps: t.OfferedPPS / 1e6 * (1 - t.LossRatio), LossRatio: t.LossRatio,
		}
		if t.Latency != nil {
			step.P99 = figure.Number(t.Latency.P99)
		}
		list = append(list, step)
	}
	return list
}

// prove adds another measurement of the same run, and an example of a wrong packet.
func prove(run *report.Run, p *bench.Point, example string) {
	if run.Add(p.Proof); run.WrongFrame == "" && p.Wrong > 0 {
		run.WrongFrame = example
	}
}

// join adds another search of a profile to the runs that have it: each goal gets a spread.
func (s *suite) join(r *bench.LinkResult) {
	for i := range r.Points {
		p := &r.Points[i]
		k := slices.IndexFunc(s.r.Runs, func(run report.Run) bool {
			return run.Profile == r.Profile && run.Ratio == p.Reading
		})
		if k < 0 || !p.Complete {
			continue
		}
		run := &s.r.Runs[k]
		prove(run, p, r.WrongFrame)
		for _, rate := range p.Rates {
			for g := range run.Goals {
				if to := &run.Goals[g]; rate.Found && to.Found && to.LossTarget == rate.Loss {
					to.Add(float64(rate.Mpps))
				}
			}
		}
		if t := p.Tester; t != nil && t.Mpps > 0 && run.Tester != nil {
			run.Tester.Mpps = run.Tester.Mpps.With(float64(t.Mpps))
		}
	}
}
