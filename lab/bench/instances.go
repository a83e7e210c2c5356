// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"strings"

	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// Gateways side by side: each with its own process, worker CPUs, ports and subscribers; one tester with a thread
// for each.

// Instances is what gateways side by side gave.
type Instances struct {
	Wanted   int            `json:"wanted"`
	Possible int            `json:"instances_possible"` // with a CPU for each worker and each thread of the tester
	Reason   string         `json:"reason,omitempty"`   // why it could not be measured
	Measured bool           `json:"measured"`           // false: only shown to work side by side
	OneMpps  figure.Number  `json:"one_mpps"`           // one instance alone, in the same run
	SumMpps  figure.Number  `json:"sum_mpps"`
	Scaling  figure.Number  `json:"scaling"` // sum / (wanted * one)
	Each     []InstanceRate `json:"each"`

	failed string
}

// InstanceRate is one instance's part of the trial that stands for all.
type InstanceRate struct {
	Mpps      figure.Number `json:"mpps"` // received by the tester; 0 when nothing was measured
	Sent      uint64        `json:"sent"`
	Received  uint64        `json:"received"`
	Lost      uint64        `json:"lost"`
	Wrong     uint64        `json:"wrong"`
	CPUs      []int         `json:"cpus"`
	TesterCPU int           `json:"tester_cpu"` // -1: not pinned
}

// functionalRate is each instance's rate when nothing can be measured.
const functionalRate = 1000 // packets per second

// maxInstances is what the tester has ports and streams for.
const maxInstances = 40

// possible returns how many instances fit the CPUs, and which CPUs are missing for the wanted number.
func possible(wanted, workers int, cpus []int) (fit int, missing string) {
	each := workers + 1
	fit = len(cpus) / each
	if fit >= wanted {
		return wanted, ""
	}
	return fit,
		fmt.Sprintf("%d instances need %d CPUs (%d for workers, %d for the tester's threads); we may use %d (%s), so "+
			"%d are missing",
			wanted, wanted*each, wanted*workers, wanted, len(cpus), joinInts(cpus), wanted*each-len(cpus))
}

func joinInts(list []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}

// instance is the i-th gateway's share of options and scene.
func instance(opt Options, i int) (Options, *scene, error) {
	if len(opt.CPUs) > 0 {
		opt.CPUs = opt.CPUs[i*opt.Workers : (i+1)*opt.Workers]
	}
	room := 1
	for room < opt.Subscribers {
		room *= 2
	}
	s, err := newScene(opt, i*room)
	return opt, s, err
}

// measureInstances measures one gateway alone and all of them at once, or, where CPUs are missing, only shows that they
// work side by side.
func measureInstances(ctx context.Context, opt Options) (*LinkResult, error) {
	if opt.Instances > maxInstances {
		return nil, fmt.Errorf("%d instances: at most %d are possible", opt.Instances, maxInstances)
	}
	if opt.Link != LinkMemif && opt.Link != LinkShare {
		return nil, fmt.Errorf("instances are measured over memif or share")
	}
	n := &Instances{Wanted: opt.Instances, Each: []InstanceRate{}}
	n.Possible, n.Reason = possible(opt.Instances, opt.Workers, allowedCPUs())
	n.Measured = n.Reason == ""
	if !n.Measured {
		opt.CPUs, opt.TesterCPUs, opt.ControlCPUs = nil, nil, nil
		opt.Rate = float64(functionalRate * opt.Instances)
	} else if len(opt.CPUs) != opt.Instances*opt.Workers || len(opt.TesterCPUs) != opt.Instances {
		return nil,
			fmt.Errorf("%d instances need %d CPUs for their workers and %d for the tester; given are %d and %d",
				opt.Instances,
				opt.Instances*opt.Workers, opt.Instances, len(opt.CPUs), len(opt.TesterCPUs))
	}
	_, s, err := instance(opt, 0)
	if err != nil {
		return nil, err
	}
	m, done, err := newOutside(opt)
	if err != nil {
		return nil, err
	}
	defer done()
	r := newLinkResult(&opt, s)
	r.Instances, r.Subscribers, r.Flows = n, s.subscribers*opt.Instances, s.flows*opt.Instances
	if n.Measured {
		one, err := m.sideBySide(ctx, 1, r)
		if err != nil || ctx.Err() != nil {
			r.finish(1, ctx.Err() != nil, err)
			return r, err
		}
		n.OneMpps = one.Mpps
	}
	all, err := m.sideBySide(ctx, opt.Instances, r)
	if err == nil && n.Measured && ctx.Err() == nil {
		err = m.floorOfOne(ctx, s, all)
	}
	if all != nil {
		n.fill(&opt, all)
		r.Points = append(r.Points, *all)
	}
	r.finish(1, ctx.Err() != nil, err)
	return r, err
}

// floorOfOne gives the point of all instances the floor of one's links, with the packets of one.
func (m *outside) floorOfOne(ctx context.Context, s *scene, all *Point) error {
	one := *m
	one.opt.CPUs, one.opt.TesterCPUs = m.opt.CPUs[:m.opt.Workers], m.opt.TesterCPUs[:1]
	r := LinkResult{Points: []Point{{cost: all.cost}}}
	err := one.capability(ctx, s, &r)
	all.FloorTicksPerPacket, all.OwnTicksPerPacket, all.OwnRange = r.Points[0].FloorTicksPerPacket,
		r.Points[0].OwnTicksPerPacket, r.Points[0].OwnRange
	return err
}

// sideBySide measures that many gateways at once with the profile's first load, the same for each.
func (m *outside) sideBySide(ctx context.Context, count int, r *LinkResult) (*Point, error) {
	var devices []*device
	defer func() {
		for _, d := range devices {
			d.stop()
		}
	}()
	var streams []tester.Stream
	all := m.opt
	for i := range count {
		opt, s, err := instance(all, i)
		if err != nil {
			return nil, err
		}
		m.opt.CPUs = opt.CPUs
		prefix := fmt.Sprintf("%d-", i)
		d, err := m.start(ctx, s, prefix)
		if err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		devices = append(devices, d)
		streams = append(streams, prefixed(prefix, append(append([]tester.Stream(nil), s.points[0].streams...),
			s.echo...))...)
	}
	m.opt = all
	r.gateway(devices[0])
	if len(all.TesterCPUs) > count {
		m.opt.TesterCPUs = all.TesterCPUs[:count]
	}
	pt := devices[0].scene.points[0]
	p := devices[0].scene.profile(m.opt.Profile, &m.opt, ports(devices, &m.opt), streams)
	m.opt = all
	p.MemoryMB *= count
	p.Run = m.plan(searchFull)
	if m.opt.Rate > 0 {
		p.Run.Latency.Seconds = 0
	}
	pt.name, pt.streams = fmt.Sprintf("%s, %d instance(s)", pt.name, count), streams
	run, err := m.run(ctx, devices, p, pt.name)
	if run == nil {
		return nil, err
	}
	r.hello(run.result)
	point := newPoint(&pt, run)
	return &point, err
}

// prefixed names streams and their ports after an instance.
func prefixed(prefix string, list []tester.Stream) []tester.Stream {
	for i := range list {
		s := &list[i]
		s.Name, s.Port, s.Sink = prefix+s.Name, prefix+s.Port, prefix+s.Sink
		if s.Answers != "" {
			s.Answers = prefix + s.Answers
		}
	}
	return list
}

// fill divides the trial that stands for all among the instances.
func (n *Instances) fill(opt *Options, p *Point) {
	best := headline(p.Raw)
	if best < 0 {
		n.failed = "no rate was found for all instances together"
		return
	}
	trial := &p.Raw.Trials[best]
	for i := range n.Wanted {
		e := InstanceRate{TesterCPU: -1, CPUs: []int{}}
		prefix, pps := fmt.Sprintf("%d-", i), 0.0
		for j := range trial.Streams {
			s := &trial.Streams[j]
			if !strings.HasPrefix(s.Name, prefix) {
				continue
			}
			e.Sent, e.Received, e.Lost = e.Sent+s.Sent, e.Received+s.Received, e.Lost+s.Lost
			pps += s.ReceivedPPS
			for _, k := range s.Wrong {
				e.Wrong += k
			}
		}
		if n.Measured {
			e.Mpps, e.TesterCPU = figure.Rounded(pps/1e6, 6), opt.TesterCPUs[i]
			e.CPUs = opt.CPUs[i*opt.Workers : (i+1)*opt.Workers]
		}
		if e.Received == 0 && n.failed == "" {
			n.failed = fmt.Sprintf("instance %d let no packet through", i)
		}
		n.Each = append(n.Each, e)
	}
	if n.Measured {
		n.SumMpps = p.Mpps
		if n.OneMpps > 0 {
			n.Scaling = figure.Rounded(n.SumMpps/(figure.Number(n.Wanted)*n.OneMpps), 3)
		}
		return
	}
	// Shown to work, and no more: no figure may be taken for a speed.
	p.Mpps, p.GbpsL2, p.GbpsL1, p.TicksPerPacket, p.Nodes, p.Latency = 0, 0, 0, 0, nil, []LoadLatency{}
	p.LossRatio = nil
}

func (n *Instances) print(w io.Writer) error {
	fmt.Fprintln(w)
	if !n.Measured {
		_, err := fmt.Fprintf(w, "%d instances side by side: not measured, because %s.\n"+
			"They were run unpinned at %d packets per second each, to show that they work side by side: %s.\n"+
			"Their speed and scaling cannot be shown on this machine, and are not extrapolated.\n",
			n.Wanted, n.Reason, functionalRate,
			n.sums())
		return err
	}
	var cells [][]string
	for i, e := range n.Each {
		cells = append(cells, []string{fmt.Sprint(i), f3(e.Mpps), joinInts(e.CPUs), fmt.Sprint(e.TesterCPU),
			fmt.Sprint(e.Lost)})
	}
	if err := writeTable(w, 0, []string{"INSTANCE", "MPPS", "CPUS", "TESTER CPU", "LOST"}, cells); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "sum %.3f Mpps of %d instances; one alone %.3f; scaling %.2f\n", n.SumMpps, n.Wanted,
		n.OneMpps, n.Scaling)
	return err
}

func (n *Instances) sums() string {
	var received, lost, wrong uint64
	for _, e := range n.Each {
		received, lost, wrong = received+e.Received, lost+e.Lost, wrong+e.Wrong
	}
	return fmt.Sprintf("%d packets came through, %d lost, %d wrong", received, lost, wrong)
}
