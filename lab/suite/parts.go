// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"isthmus/lab/bench"
	"isthmus/lab/l3fwd"
	"isthmus/lab/peer"
	"isthmus/lab/report"
	"isthmus/lab/tester"
)

// Lengths of the parts. A trial's length is that of bench.Options; the expected time of a whole part is an estimate
// for a machine with 2 CPUs.
type lengths struct {
	trial, sizeTrial, peerTrial float64 // seconds of a trial
	synth, population           float64 // seconds of each direction on synth ports
	repeats                     int     // more searches of the headline's profiles, rougher, later in the run
	rounds                      int     // of the peers
	subscribers                 []int
	flows                       []int // powers of two
	sizes                       []int // of frames; nil: all
	symmetric, asymmetric       float64
	repeat, steps, size, jumbo  float64
	cost, populationPoint, flow float64
	peerRound, instances        float64
	routers                     float64
}

func (s *suite) lengths() lengths {
	if s.opt.Quick {
		return lengths{
			trial: 0.5, sizeTrial: 0.4, peerTrial: 0.3, synth: 0.9, population: 0.6, rounds: 1,
			subscribers: []int{1000, 65536}, sizes: []int{64, 512, 1518},
			symmetric: 10, asymmetric: 17, steps: 6, size: 7, jumbo: 7, cost: 6, populationPoint: 5,
			flow:  12,
			flows: []int{10, 12, 14, 16, 18, 20, 22, 24}, peerRound: 40, instances: 4,
			routers: 700,
		}
	}
	return lengths{
		trial: 1, sizeTrial: 0.3, peerTrial: 0.5, synth: 3, population: 1.5, repeats: 2, rounds: 5,
		subscribers: []int{1000, 4096, 16384, 65536},
		symmetric:   60, asymmetric: 115, repeat: 45, steps: 12, size: 15, jumbo: 15, cost: 15,
		populationPoint: 8, flow: 20,
		flows: []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}, peerRound: 50, instances: 6,
		routers: 3600,
	}
}

// Profiles of the headline, and the profile of peers and instances.
const (
	symmetric  = "agf-symmetric"
	asymmetric = "agf-asymmetric"

	flowProfile = "upf-8m-flows"
)

// stepList are the loads of a step load, in percent of the rate found.
var stepList = []tester.Rate{"10%", "25%", "50%", "75%", "90%", "100%", "110%", "125%", "150%"}

// parts are all steps in their order: what matters most comes first.
func (s *suite) parts() []part {
	n := s.lengths()
	link := s.opt.Base.Link
	list := []part{
		{report.SectionHeadline, symmetric + " over " + link, n.symmetric, func(ctx context.Context) error {
			return s.link(ctx, symmetric, report.GroupAccess, s.options(symmetric, n.trial))
		}},
		{report.SectionHeadline, asymmetric + " over " + link, n.asymmetric, func(ctx context.Context) error {
			return s.link(ctx, asymmetric, report.GroupAccess, s.options(asymmetric, n.trial))
		}},
		{report.SectionSteps, "step load", n.steps, func(ctx context.Context) error {
			return s.steps(ctx,
				n.trial/2)
		}},
		{report.SectionCost, symmetric + " on synth ports", n.cost,
			func(ctx context.Context) error { return s.cost(ctx, symmetric, n.synth) }},
		{report.SectionCost, asymmetric + " on synth ports", n.cost,
			func(ctx context.Context) error { return s.cost(ctx, asymmetric, n.synth) }},
		{report.SectionPeers, "peers", n.peerRound * float64(n.rounds),
			func(ctx context.Context) error { return s.peers(ctx, n) }},
	}
	for k := range n.repeats {
		list = append(list, part{report.SectionHeadline, fmt.Sprintf("headline again, %d of %d", k+1,
			n.repeats), n.repeat, func(ctx context.Context) error {
			return s.again(ctx, n.trial/2)
		}})
	}
	list = append(list, s.sizeParts(n)...)
	named := slices.Contains(s.opt.Sections, report.SectionRouters)
	if s.opt.Tools.Routers != nil && (named || !s.opt.Quick) {
		list = append(list, part{report.SectionRouters, "routers", n.routers, s.routers})
	}
	return append(list,
		part{report.SectionSubscribers, "subscribers", n.populationPoint * float64(len(n.subscribers)),
			func(ctx context.Context) error {
				return s.population(ctx, n)
			}},
		part{report.SectionFlows, "flows", n.flow * float64(len(n.flows)),
			func(ctx context.Context) error { return s.flows(ctx, n) }},
		part{report.SectionInstances, "instances", n.instances,
			func(ctx context.Context) error { return s.instances(ctx, n.trial) }},
	)
}

// sizeParts are RFC 2544's: all sizes with one gateway, or a few with one each.
func (s *suite) sizeParts(n lengths) []part {
	var list []part
	add := func(name, profile, group string, size int, seconds float64) {
		list = append(list, part{report.SectionSizes, name, seconds, func(ctx context.Context) error {
			opt := s.options(profile, n.sizeTrial)
			opt.Size = size
			return s.link(ctx, profile, group, opt)
		}})
	}
	if n.sizes == nil {
		add("rfc2544, all sizes", "rfc2544", report.GroupRFC2544, 0, 8*n.size)
	}
	for _, size := range n.sizes {
		add(fmt.Sprintf("rfc2544, %d B", size), "rfc2544", report.GroupRFC2544, size, n.size)
	}
	add("jumbo", "jumbo", report.GroupJumbo, 0, n.jumbo)
	return list
}

// options are those of one profile.
func (s *suite) options(profile string, seconds float64) bench.Options {
	opt := s.opt.Base
	opt.Profile, opt.Seconds, opt.Quick, opt.Instances = profile, seconds, s.opt.Quick, 1
	return opt
}

// link measures a profile from outside. What was measured is kept, also when the rest failed.
func (s *suite) link(ctx context.Context, profile, group string, opt bench.Options) error {
	r, err := s.opt.Tools.Link(ctx, opt)
	if r != nil {
		s.keep(r, profile, group)
		if err == nil && !r.Interrupted {
			s.judge(profile, r.Verdict())
		}
	}
	return err
}

// judge notes that figures are void or a goal was missed, and continues.
func (s *suite) judge(what string, verdict error) {
	if verdict != nil {
		s.say("       %s: %v", what, verdict)
		s.bad = append(s.bad, fmt.Errorf("%s: %w", what, verdict))
	}
}

// again searches the headline's rates once more, so that they have a spread over the whole run.
func (s *suite) again(ctx context.Context, seconds float64) error {
	for _, profile := range []string{symmetric, asymmetric} {
		opt := s.options(profile, seconds)
		opt.Quick = true
		r, err := s.opt.Tools.Link(ctx, opt)
		if err != nil || ctx.Err() != nil {
			return err
		}
		s.join(r)
		s.judge(profile, r.Verdict())
	}
	return nil
}

// steps offers parts of the rate that was found.
func (s *suite) steps(ctx context.Context, seconds float64) error {
	run := s.find(symmetric)
	if run == nil || s.r.Headline(run) == nil {
		return errors.New("no rate was found that the steps could refer to")
	}
	opt := s.options(symmetric, seconds)
	opt.Rate, opt.Steps = s.r.Headline(run).Mpps.Median*1e6, stepList
	r, err := s.opt.Tools.Link(ctx, opt)
	if r != nil && len(r.Points) > 0 && r.Points[0].Raw != nil {
		run.Steps = stepsOf(r.Points[0].Raw, opt.Rate)
		prove(run, &r.Points[0], r.WrongFrame)
	}
	if err == nil && len(run.Steps) == 0 {
		err = errors.New("no step was measured")
	}
	if err == nil && len(run.Steps) < len(stepList) && ctx.Err() == nil {
		err = fmt.Errorf("%d of %d steps were measured", len(run.Steps), len(stepList))
	}
	return err
}

// cost measures the gateway's work on synth ports.
func (s *suite) cost(ctx context.Context, profile string, seconds float64) error {
	r, err := s.synth(ctx, s.options(profile, seconds))
	if err == nil {
		s.r.Costs = append(s.r.Costs, synthCost(r))
		s.judge(profile+" on synth ports", r.Verdict())
	}
	return err
}

func (s *suite) synth(ctx context.Context, opt bench.Options) (*bench.Result, error) {
	opt.Link = bench.LinkSynth
	r, err := s.opt.Tools.Synth(ctx, opt)
	if err == nil {
		s.version("isthmus-dp", r.Versions.DataPlane)
		if s.r.Machine.TSCHz == 0 {
			s.r.Machine.TSCHz = r.TSCHz
		}
	}
	return r, err
}

// population measures the cost with more and more subscribers.
func (s *suite) population(ctx context.Context, n lengths) error {
	set := report.Population{Profile: symmetric, Title: "650 B both ways, synth ports",
		Points: []report.PopulationPoint{}}
	var failed []error
	for _, subscribers := range n.subscribers {
		opt := s.options(symmetric, n.population)
		opt.Subscribers = subscribers
		r, err := s.synth(ctx, opt)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%d subscribers: %s", subscribers, oneLine(err)))
			continue
		}
		set.Points = append(set.Points, populationPoint(r))
		s.judge(fmt.Sprintf("%d subscribers", subscribers), r.Verdict())
	}
	if len(set.Points) > 0 {
		s.r.Subscribers = append(s.r.Subscribers, set)
	}
	return errors.Join(failed...)
}

// flows measures the cost with more and more flows, the largest number first. Where it does not fit into the machine's
// huge pages, no point has them, so that the curve is of one kind of memory.
func (s *suite) flows(ctx context.Context, n lengths) error {
	set := report.FlowCurve{Profile: flowProfile,
		Title:  "UPF, a policer and a URR for each of two bearers, 128 B both ways",
		Points: []report.FlowPoint{}}
	var failed []error
	noHuge := s.opt.Base.NoHuge
	for _, power := range slices.Backward(n.flows) {
		opt := s.options(flowProfile, n.population)
		opt.Sessions, opt.NoHuge = 1<<power/bench.SessionFlows, noHuge
		r, err := s.synth(ctx, opt)
		if err != nil && !noHuge && len(set.Points) == 0 && ctx.Err() == nil {
			s.say("       2^%d flows: %s; without huge pages, then", power, oneLine(err))
			noHuge, opt.NoHuge = true, true
			r, err = s.synth(ctx, opt)
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("2^%d flows: %s", power, oneLine(err)))
			continue
		}
		set.Points = append(set.Points, flowPoint(r))
		s.judge(fmt.Sprintf("2^%d flows", power), r.Verdict())
	}
	slices.Reverse(set.Points)
	if len(set.Points) > 0 {
		s.r.Flows = append(s.r.Flows, set)
	}
	return errors.Join(failed...)
}

// peers measures other programs.
func (s *suite) peers(ctx context.Context, n lengths) error {
	if s.opt.Tools.Peers == nil {
		return errors.New("there are no peers in this build")
	}
	rows, err := s.opt.Tools.Peers(ctx, s.options(symmetric, n.peerTrial), n.rounds)
	if len(rows) > 0 {
		s.r.Peers = append(s.r.Peers, peerGroup(rows, symmetric, "650 B both ways", s.opt.Base.Link, n.rounds))
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	var failed []error
	for i := range rows {
		if rows[i].WhyNot != "" {
			failed = append(failed, fmt.Errorf("%s: %s", rows[i].Name, oneLine(errors.New(rows[i].WhyNot))))
		}
	}
	return errors.Join(failed...)
}

// routers compares routers of several ports.
func (s *suite) routers(ctx context.Context) error {
	opt := s.options(l3fwd.Profile, s.lengths().peerTrial)
	r, err := s.opt.Tools.Routers(ctx, opt)
	if r == nil {
		return err
	}
	for i := range r.Points {
		p := &r.Points[i]
		var rows []peer.Row
		for k := range p.Rows {
			rows = append(rows, p.Rows[k].Row)
		}
		title := fmt.Sprintf("%d ports, %d B (figure %s)", p.Ports, p.Bytes, p.Figure)
		s.r.Routers = append(s.r.Routers, peerGroup(rows, l3fwd.Profile, title, r.Link, r.Rounds))
	}
	if err == nil && !r.Interrupted {
		s.judge(l3fwd.Profile, r.Verdict())
	}
	return err
}

// instances measures as many gateways as the machine has CPUs for, and reports its limits.
func (s *suite) instances(ctx context.Context, seconds float64) error {
	set := report.Instances{Profile: symmetric, Title: "650 B both ways", Points: []report.InstancePoint{}}
	if run := s.find(symmetric); run != nil && s.r.Headline(run) != nil {
		g := s.r.Headline(run)
		set.Points = append(set.Points, report.InstancePoint{Instances: 1, CPUs: run.Workers + 1, Mpps: g.Mpps,
			GbpsL2: g.GbpsL2, Scaling: 1})
	}
	defer func() {
		if len(set.Points) > 0 || set.Cannot != "" {
			s.r.Instances = append(s.r.Instances, set)
		}
	}()
	for count := 2; ; count *= 2 {
		opt := s.options(symmetric, seconds)
		opt.Instances, opt.Quick = count, true
		fits, err := s.opt.Tools.Place(&opt)
		if err != nil {
			return err
		}
		r, err := s.opt.Tools.Link(ctx, opt)
		if r == nil || r.Instances == nil || err != nil || ctx.Err() != nil {
			return err
		}
		s.judge(fmt.Sprintf("%d instances", count), r.Verdict())
		if !fits || !r.Instances.Measured {
			set.Cannot = cannot(r.Instances)
			return nil
		}
		set.Points = append(set.Points, instancePoint(r))
	}
}

// find returns the run of a profile with its first reading of the ratio.
func (s *suite) find(profile string) *report.Run {
	i := slices.IndexFunc(s.r.Runs, func(run report.Run) bool { return run.Profile == profile })
	if i < 0 {
		return nil
	}
	return &s.r.Runs[i]
}

// version notes a program's version once.
func (s *suite) version(name, version string) {
	known := slices.ContainsFunc(s.r.Versions, func(v report.Version) bool { return v.Name == name })
	if version != "" && !known {
		s.r.Versions = append(s.r.Versions, report.Version{Name: name, Version: version})
	}
}
