// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
	"strings"
	"time"

	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// LinkResult is the JSON of a benchmark that the tester measured. Fields in common with others are of the first point;
// checked and wrong are of all.
type LinkResult struct {
	Common
	Uplink    LinkDirection     `json:"uplink"` // alone
	Downlink  LinkDirection     `json:"downlink"`
	LatencyUS *tester.Histogram `json:"latency_us"` // at 50 % of the rate
	Peers     any               `json:"peers"`

	Fill        *LinkFill `json:"fill,omitempty"` // of a profile whose flows have a table
	Title       string    `json:"title"`
	Complete    bool      `json:"complete"`
	Interrupted bool      `json:"interrupted"`
	Error       string    `json:"error"` // why it is not complete
	Goal        float64   `json:"goal"`
	FixedRate   float64   `json:"fixed_rate_pps"` // 0: searched
	Quick       bool      `json:"quick"`
	// the tester was not shown to be fast enough for some point
	TesterLimited bool             `json:"tester_limited"`
	Points        []Point          `json:"points"`
	Instances     *Instances       `json:"instances,omitempty"`
	VEPC          *VEPC            `json:"vepc,omitempty"`
	Decoded       uint64           `json:"decoded"` // of Checked: also walked through by the independent decoder
	TesterCPUs    []int            `json:"tester_cpus"`
	ControlCPUs   []int            `json:"control_cpus"`
	Switches      uint64           `json:"switches"`
	Discarded     int              `json:"discarded_trials"`
	ClockGHz      [2]figure.Number `json:"clock_ghz"` // lowest and highest estimate of the core's clock
	Versions      LinkVersions     `json:"versions"`
	Started       string           `json:"started"`
	WrongFrame    string           `json:"wrong_frame"`
}

// LinkVersions of what took part.
type LinkVersions struct {
	Versions
	Tester string `json:"isthmus_traffic"`
	DPDK   string `json:"dpdk"`
}

// Point is one load: the rates found, latency at parts of them, and what it cost.
type Point struct {
	Name        string            `json:"name"`
	Reading     string            `json:"ratio,omitempty"`
	Note        string            `json:"note,omitempty"`
	FrameBytes  int               `json:"frame_bytes,omitempty"` // 0: several sizes
	MeanBytes   float64           `json:"mean_bytes"`
	Rates       []Rate            `json:"rates"` // a goal each, strictest first
	Cost                          // at the run's goal
	GbpsL2      figure.Number     `json:"gbps_l2"`
	GbpsL1      figure.Number     `json:"gbps_l1"`
	LossRatio   *float64          `json:"loss_ratio"`
	Offered     uint64            `json:"offered"`
	Received    uint64            `json:"received"`
	Dropped     map[string]uint64 `json:"dropped"`
	OwnRange    figure.Difference `json:"own_range"`
	Uplink      *LinkDirection    `json:"uplink,omitempty"`
	Downlink    *LinkDirection    `json:"downlink,omitempty"`
	Latency     []LoadLatency     `json:"latency"`
	Accounting  Accounting        `json:"accounting"`
	Tester      *TesterBlock      `json:"tester,omitempty"`
	Nodes       []NodeCost        `json:"nodes"`
	Functions   []FunctionLoad    `json:"functions,omitempty"`     // of a chain
	TesterTicks figure.Number     `json:"tester_ticks_per_packet"` // sending, receiving and checking one packet
	Trials      int               `json:"trials"`
	Discarded   int               `json:"discarded_trials"`
	Disturbed   map[string]int    `json:"disturbed"` // why trials counted as disturbed
	Steal       float64           `json:"steal_ratio"`
	Switches    uint64            `json:"switches"`
	ClockGHz    [2]figure.Number  `json:"clock_ghz"`
	Proof
	Complete bool           `json:"complete"`
	Raw      *tester.Result `json:"raw"` // what isthmus-traffic wrote; histograms of latency trials only

	example string
	cost    Spread // ticks for a packet
	failed  string // why the tester itself was not satisfied
}

// Rate is the highest rate at one loss goal.
type Rate struct {
	Loss            float64       `json:"loss"`
	Mpps            figure.Number `json:"mpps"`
	UpperMpps       figure.Number `json:"upper_mpps"` // 0: none met
	ConditionalMpps figure.Number `json:"conditional_mpps"`
	tester.Outcome
}

// LinkDirection is one direction alone.
type LinkDirection struct {
	Cost
	OwnRange      figure.Difference `json:"own_range"`
	FrameBytes    string            `json:"frame_bytes"`
	LossRatio     *float64          `json:"loss_ratio"`
	TesterLimited bool              `json:"tester_limited"`
	Dropped       map[string]uint64 `json:"dropped"`
	Nodes         []NodeCost        `json:"nodes"`

	cost Spread // ticks for a packet
}

// LoadLatency is what packets waited at one part of the rate found.
type LoadLatency struct {
	Load      float64           `json:"load"`
	Mpps      figure.Number     `json:"mpps"`
	LossRatio float64           `json:"loss_ratio"`
	Ticks     figure.Number     `json:"ticks_per_packet"`
	LatencyUS *tester.Histogram `json:"latency_us"` // both directions
	Uplink    *tester.Histogram `json:"uplink_us,omitempty"`
	Downlink  *tester.Histogram `json:"downlink_us,omitempty"`
	Echo      *tester.Histogram `json:"echo_us,omitempty"` // ICMP echo: round trip
	EchoSent  uint64            `json:"echo_sent"`
	EchoLost  uint64            `json:"echo_lost"` // requests and answers; those that arrive after the trial are not answered any more
}

// TesterBlock shows what the tester can do on the same link with the same packets.
type TesterBlock struct {
	Mpps    figure.Number `json:"mpps"`
	Ratio   figure.Number `json:"ratio"`   // to the gateway's rate
	Limited bool          `json:"limited"` // ratio below 1.3: the result may be the tester's limit
	Device  string        `json:"device"`
	Version string        `json:"version"`
	Error   string        `json:"error,omitempty"` // why it could not be shown
}

func newLinkResult(opt *Options, s *scene) *LinkResult {
	return &LinkResult{
		Common: Common{
			Profile: opt.Profile, Link: opt.Link, Workers: opt.Workers, Seconds: opt.Seconds,
			Subscribers: s.subscribers, Flows: s.flows, Rules: s.rules, Blocklist: s.blocklist,
			CPUs: opt.CPUs, Command: opt.Command, Dropped: map[string]uint64{},
			PaperMpps: figure.Number(s.paper), PaperCycles: figure.Number(s.paperCycles),
		},
		Goal: opt.Goal, FixedRate: opt.Rate, Quick: opt.Quick, Title: s.title, TesterCPUs: opt.TesterCPUs,
		ControlCPUs: opt.ControlCPUs, Peers: []struct{}{}, Points: []Point{},
		Started:  time.Now().UTC().Format(time.RFC3339),
		Versions: LinkVersions{Versions: Versions{Isthmus: opt.Version, Kernel: kernel()}},
	}
}

// hello notes a tester's greeting.
func (r *LinkResult) hello(t *tester.Result) {
	r.Versions.Tester, r.Versions.DPDK = t.Version, t.Machine.DPDK
}

// finish fills the fields about the whole from the points, of which there should be that many.
func (r *LinkResult) finish(wanted int, interrupted bool, err error) {
	r.Interrupted, r.Complete = interrupted, !interrupted && err == nil && len(r.Points) == wanted
	if err != nil {
		r.Error = err.Error()
	}
	clocks := []figure.Number{}
	if r.Fill != nil {
		r.Checked, r.Wrong = r.Checked+r.Fill.Checked, r.Wrong+r.Fill.Wrong
	}
	for i := range r.Points {
		p := &r.Points[i]
		r.Complete = r.Complete && p.Complete
		r.Checked, r.Decoded, r.Wrong = r.Checked+p.Checked, r.Decoded+p.Decoded, r.Wrong+p.Wrong
		r.Switches, r.Discarded, r.StealRatio = r.Switches+p.Switches, r.Discarded+p.Discarded,
			max(r.StealRatio, p.Steal)
		r.TesterLimited = r.TesterLimited || p.limited()
		if r.WrongFrame == "" {
			r.WrongFrame = p.example
		}
		clocks = append(clocks, p.ClockGHz[:]...)
	}
	r.ClockGHz = bounds(clocks)
	if len(r.Points) == 0 {
		return
	}
	p := &r.Points[0]
	r.Cost, r.GbpsL2, r.GbpsL1 = p.Cost, p.GbpsL2, p.GbpsL1
	r.LossRatio, r.Offered, r.Received, r.Dropped = p.LossRatio, p.Offered, p.Received, p.Dropped
	if p.Uplink != nil {
		r.Uplink = *p.Uplink
	}
	if p.Downlink != nil {
		r.Downlink = *p.Downlink
	}
	for i := range p.Latency {
		if p.Latency[i].Load == 0.5 {
			h := *p.Latency[i].LatencyUS
			h.Buckets = nil
			r.LatencyUS = &h
		}
	}
}

// limited: the tester may have ended the search.
func (p *Point) limited() bool {
	if n := len(p.Rates); n > 0 && (p.Rates[n-1].TesterLimited || p.Rates[n-1].AtMaximum) {
		return true
	}
	return p.Tester != nil && p.Tester.Limited
}

// bounds are the lowest and highest of those that are known (not 0).
func bounds(list []figure.Number) (b [2]figure.Number) {
	list = slices.DeleteFunc(slices.Clone(list), func(v figure.Number) bool { return v <= 0 })
	if len(list) > 0 {
		b = [2]figure.Number{figure.Rounded(slices.Min(list), 3), figure.Rounded(slices.Max(list), 3)}
	}
	return b
}

// newPoint makes a point of a run.
func newPoint(pt *point, run *linkRun) Point {
	t := run.result
	p := Point{
		Name: pt.name, Reading: pt.reading, Note: pt.note, FrameBytes: pt.bytes, Accounting: run.account,
		Complete:  t.Complete,
		Disturbed: map[string]int{}, Dropped: map[string]uint64{}, Raw: t, Rates: []Rate{}, Latency: []LoadLatency{},
	}
	p.MeanBytes = meanBytes(pt.streams)
	p.judge(t)
	if t.Search != nil {
		for i := range t.Search.Goals {
			p.Rates = append(p.Rates, newRate(t, &t.Search.Goals[i]))
		}
	}
	if i := headline(t); i >= 0 {
		trial, w := &t.Trials[i], run.window(i)
		p.Mpps, p.GbpsL2 = figure.Rounded(trial.OfferedPPS/1e6, 6), figure.Rounded(trial.GbpsL2, 3)
		p.GbpsL1 = figure.Rounded(trial.GbpsL1, 3)
		if n := len(p.Rates); n > 0 {
			p.Mpps = p.Rates[n-1].Mpps
		}
		p.LossRatio, p.TesterTicks = &trial.LossRatio, figure.Rounded(trial.BusyTicks, 1)
		p.Offered, p.Received = judged(trial)
		p.cost = run.cost(i)
		p.TicksPerPacket, p.Nodes, p.Dropped = figure.Number(p.cost.Median), w.nodes(), dropped(w.a, w.b)
		p.Functions = w.functions()
	}
	p.latency(run)
	strip(t)
	return p
}

// judged adds up the streams that the loss goal is about: all but echo.
func judged(t *tester.Trial) (sent, received uint64) {
	for i := range t.Streams {
		if s := &t.Streams[i]; !strings.HasSuffix(s.Name, echoUp) && !strings.HasSuffix(s.Name, echoDown) {
			sent, received = sent+s.Sent, received+s.Received
		}
	}
	return sent, received
}

// newRate is a goal's result; the rate is what was really offered when it was confirmed.
func newRate(t *tester.Result, g *tester.GoalResult) Rate {
	rate := g.RatePPS
	if i := standing(t, g); i >= 0 && t.Trials[i].OfferedPPS > 0 {
		rate = min(rate, t.Trials[i].OfferedPPS)
	}
	return Rate{
		Loss: g.Loss, Mpps: figure.Rounded(rate/1e6, 6), UpperMpps: figure.Rounded(g.UpperPPS/1e6, 6),
		ConditionalMpps: figure.Rounded(g.ConditionalPPS/1e6, 6), Outcome: g.Outcome,
	}
}

// judge sums up all trials of a run: packets, machine and tester.
func (p *Point) judge(t *tester.Result) {
	wrong, example := t.Wrong()
	p.Add(Proof{Wrong: wrong})
	if p.example == "" {
		p.example = example
	}
	clocks := p.ClockGHz[:]
	for i := range t.Trials {
		trial := &t.Trials[i]
		p.Trials++
		p.Add(Proof{Checked: trial.Received, Decoded: trial.Decoded(), Duplicate: trial.Duplicate,
			Reordered: trial.Reordered + trial.Stale})
		for _, why := range trial.Disturbed {
			p.Disturbed[why]++
		}
		if !trial.Used && trial.Purpose != tester.PurposeWarmup {
			p.Discarded++
			continue
		}
		p.Steal, p.Switches = max(p.Steal, trial.Steal), p.Switches+trial.Switches
		clocks = append(clocks, figure.Number(trial.ClockGHz))
	}
	p.ClockGHz = bounds(clocks)
	if t.Status == 1 && p.failed == "" {
		p.failed = t.Verdict
	}
	p.Complete = p.Complete && t.Complete
}

// headline is the representative trial of a run: of its last goal, or of a fixed rate the last. -1: none.
func headline(t *tester.Result) int {
	if t.Search != nil && len(t.Search.Goals) > 0 {
		return standing(t, &t.Search.Goals[len(t.Search.Goals)-1])
	}
	return lastTrial(t, tester.PurposeFixed, 0)
}

// standing is the last trial used that confirmed a goal's rate; without confirmation the search's own at that rate.
func standing(t *tester.Result, g *tester.GoalResult) int {
	if !g.Found {
		return -1
	}
	if i := lastTrial(t, tester.PurposeConfirm, g.RatePPS); i >= 0 {
		return i
	}
	return lastTrial(t, tester.PurposeSearch, g.RatePPS)
}

// lastTrial is the last one used for a purpose at a rate, 0: any.
func lastTrial(t *tester.Result, purpose string, rate float64) int {
	for i := len(t.Trials) - 1; i >= 0; i-- {
		trial := &t.Trials[i]
		if trial.Used && trial.Purpose == purpose && (rate == 0 || math.Abs(trial.RatePPS/rate-1) < 1e-4) {
			return i
		}
	}
	return -1
}

// newDirection makes a direction of its own run.
func newDirection(run *linkRun, size tester.Sizes) *LinkDirection {
	d := &LinkDirection{FrameBytes: sizes(size), Dropped: map[string]uint64{}}
	if g := run.result.Search; g != nil && len(g.Goals) > 0 {
		d.TesterLimited = g.Goals[0].TesterLimited || g.Goals[0].AtMaximum
	}
	if i := headline(run.result); i >= 0 {
		trial, w := &run.result.Trials[i], run.window(i)
		d.cost = run.cost(i)
		d.Mpps, d.LossRatio = figure.Rounded(trial.OfferedPPS/1e6, 6), &trial.LossRatio
		d.TicksPerPacket = figure.Number(d.cost.Median)
		d.Nodes, d.Dropped = w.nodes(), dropped(w.a, w.b)
	}
	return d
}

// latency collects the latency trials.
func (p *Point) latency(run *linkRun) {
	t := run.result
	for i := range t.Trials {
		trial := &t.Trials[i]
		if !trial.Used || trial.Purpose != tester.PurposeLatency {
			continue
		}
		w := run.window(i)
		ticks, _ := w.cost()
		l := LoadLatency{
			Load: trial.Part, Mpps: figure.Rounded(trial.OfferedPPS/1e6, 6), LossRatio: trial.LossRatio,
			Ticks: figure.Rounded(ticks, 1),
		}
		l.collect(t, trial)
		p.Latency = append(p.Latency, l)
	}
}

// collect joins the streams' histograms by direction; echo streams are on their own.
func (l *LoadLatency) collect(t *tester.Result, trial *tester.Trial) {
	var up, down []*tester.Histogram
	for i := range trial.Streams {
		s := &trial.Streams[i]
		switch {
		case strings.HasSuffix(s.Name, echoUp):
			l.EchoSent, l.EchoLost = l.EchoSent+s.Sent, l.EchoLost+s.Lost
		case strings.HasSuffix(s.Name, echoDown):
			l.EchoLost += s.Lost
			l.Echo = tester.Join(l.Echo, s.Latency)
		case uplink(portOf(t, s.Name)):
			up = append(up, s.Latency)
		default:
			down = append(down, s.Latency)
		}
	}
	l.Uplink, l.Downlink = tester.Join(up...), tester.Join(down...)
	l.LatencyUS = tester.Join(l.Uplink, l.Downlink)
}

func portOf(t *tester.Result, stream string) string {
	for i := range t.Streams {
		if t.Streams[i].Name == stream {
			return t.Streams[i].Port
		}
	}
	return ""
}

// strip removes histograms from trials that are not about latency: they would be most of the file.
func strip(t *tester.Result) {
	for i := range t.Trials {
		trial := &t.Trials[i]
		if trial.Purpose == tester.PurposeLatency {
			continue
		}
		if trial.Latency != nil {
			trial.Latency.Buckets = nil
		}
		for j := range trial.Streams {
			if trial.Streams[j].Latency != nil {
				trial.Streams[j].Latency.Buckets = nil
			}
		}
	}
}

func meanBytes(list []tester.Stream) float64 {
	sum, weight := 0.0, 0.0
	for i := range list {
		bytes, n := 0.0, 0.0
		for size, w := range list[i].Size {
			bytes, n = bytes+float64(size*w), n+float64(w)
		}
		if n > 0 {
			sum, weight = sum+bytes/n*float64(list[i].Share), weight+float64(list[i].Share)
		}
	}
	if weight == 0 {
		return 0
	}
	return round1(sum / weight)
}
