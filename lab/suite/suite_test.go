// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus/lab/bench"
	"isthmus/lab/figure"
	"isthmus/lab/l3fwd"
	"isthmus/lab/peer"
	"isthmus/lab/report"
	"isthmus/lab/tester"
)

const goalLoss = 1e-5

// world answers like the real tools, and can misbehave on request.
type world struct {
	calls   []string
	fail    map[string]error // by call
	stop    string           // the call during which the user interrupts
	cancel  context.CancelFunc
	wrong   string  // the call whose packets are wrong
	factor  float64 // growth of each later search of a profile
	again   map[string]int
	machine int  // instances that fit
	gone    bool // one of the peers
}

func newWorld() *world {
	return &world{fail: map[string]error{}, again: map[string]int{}, factor: 1, machine: 1}
}

func (w *world) call(name string) error {
	w.calls = append(w.calls, name)
	if name == w.stop {
		w.cancel()
	}
	return w.fail[name]
}

func histogram() *tester.Histogram {
	return &tester.Histogram{Count: 100, Min: 1, Mean: 2, P50: 2, P90: 3, P99: 4, P999: 5, Max: 6,
		Buckets: [][3]float64{{1, 2, 60}, {2, 6, 40}}}
}

// linkPoint is a point with a rate at the goal in Mpps.
func linkPoint(name, reading string, rate float64) bench.Point {
	pps, mpps, loss := rate*1e6, figure.Number(rate), 4e-6
	good := tester.Outcome{Found: true, Confirmed: true}
	return bench.Point{
		Name: name, Reading: reading, MeanBytes: 650,
		Cost:   bench.Cost{Mpps: mpps, TicksPerPacket: 380, FloorTicksPerPacket: 150},
		GbpsL2: mpps * 5.2,
		GbpsL1: mpps * 5.36, LossRatio: &loss, Proof: bench.Proof{Checked: 1000},
		Complete: true,
		Rates: []bench.Rate{
			{Loss: 0, Mpps: mpps * 0.9, Outcome: good},
			{Loss: goalLoss, Mpps: mpps, UpperMpps: mpps * 1.01, Outcome: good},
		},
		Uplink: &bench.LinkDirection{Cost: bench.Cost{Mpps: 5, TicksPerPacket: 300}, LossRatio: &loss,
			FrameBytes: "650 B"},
		Downlink: &bench.LinkDirection{Cost: bench.Cost{Mpps: 4, TicksPerPacket: 400}, LossRatio: &loss,
			FrameBytes: "650 B"},
		Latency: []bench.LoadLatency{{Load: 0.5, Mpps: mpps / 2, LatencyUS: histogram(), Echo: histogram(),
			EchoLost: 2}},
		Tester: &bench.TesterBlock{Mpps: mpps * 2, Ratio: 2, Device: "isthmus-dp xconnect", Version: "dp 1"},
		Accounting: bench.Accounting{
			Sent: 1000, Received: 990, Refused: 7, Dropped: map[string]uint64{"policed": 3},
		},
		Raw: &tester.Result{
			Command: []string{"isthmus-traffic", "profile.yaml"},
			Streams: []tester.StreamInfo{{Name: "a-up", Port: "access", MeanBytes: 650},
				{Name: "a-down", Port: "core", MeanBytes: 650}, {Name: "ping", Port: "access"}},
			Trials: []tester.Trial{
				{Purpose: tester.PurposeSearch, RatePPS: pps, OfferedPPS: pps, Sent: 100, Received: 100,
					Disturbed: []string{"steal"}},
				{
					Purpose: tester.PurposeConfirm, Used: true, RatePPS: pps, OfferedPPS: pps, Sent: 1000,
					Received: 990, Lost: 10,
					Streams: []tester.StreamTrial{
						{Name: "a-up", Sent: 500, Lost: 10, ReceivedPPS: pps / 2,
							GbpsL2: rate / 2 * 5.2},
						{Name: "a-down", Sent: 500, ReceivedPPS: pps / 2,
							GbpsL2: rate / 2 * 5.2},
						{Name: "ping", Sent: 9, ReceivedPPS: 1e9, Expectation: "held"},
					},
				},
			},
		},
	}
}

func (w *world) link(ctx context.Context, opt bench.Options) (*bench.LinkResult, error) {
	name := opt.Profile
	switch {
	case len(opt.Steps) > 0:
		name = "steps"
	case opt.Instances > 1:
		name = "instances"
	}
	err := w.call(name)
	r := &bench.LinkResult{
		Common: bench.Common{Profile: opt.Profile, Link: opt.Link, Workers: 1,
			TSCHz: 2600000000, HugePages: true, CPUs: []int{1}},
		Title: "650 B both ways, 1:1", Complete: true, Goal: opt.Goal,
		TesterCPUs: []int{0}, ClockGHz: [2]figure.Number{3.6, 3.7}, FixedRate: opt.Rate,
	}
	r.Versions.DataPlane, r.Versions.Tester = "dp 1", "traffic 1"
	switch {
	case name == "steps":
		p := bench.Point{Name: "steps", Complete: true, Proof: bench.Proof{Checked: 1}, Raw: &tester.Result{}}
		for i := range opt.Steps {
			p.Raw.Trials = append(p.Raw.Trials, tester.Trial{
				Purpose: tester.PurposeStep, Used: true, RatePPS: opt.Rate * float64(i+1) / 10,
				OfferedPPS: opt.Rate * float64(i+1) / 10, Sent: 1000,
				LossRatio: 0.25, Latency: histogram(),
			})
		}
		r.Points = []bench.Point{p}
	case name == "instances":
		r.Instances = &bench.Instances{Wanted: opt.Instances, Reason: "CPUs are missing",
			Each: []bench.InstanceRate{{Received: 5}}}
		if opt.Instances <= w.machine {
			r.Instances.Measured, r.Instances.SumMpps, r.Instances.Scaling = true, 12, 0.97
		}
		r.Points = []bench.Point{linkPoint("sum", "", 12)}
	default:
		mpps := 6.0
		for range w.again[name] {
			mpps *= w.factor
		}
		w.again[name]++
		r.Points = []bench.Point{linkPoint("650 B, 1:1", "1:1", mpps)}
		if name == asymmetric {
			r.Points = []bench.Point{linkPoint("bits", "89:11 of bits", mpps),
				linkPoint("packets", "89:11 of packets", mpps)}
		}
		if name == "rfc2544" {
			r.Points = []bench.Point{linkPoint("64 B", "", 8), linkPoint("IMIX", "", 7)}
			r.Points[0].FrameBytes = 64
		}
	}
	if name == w.wrong {
		r.Wrong, r.Points[0].Wrong, r.WrongFrame = 1, 1, "gtpu.teid"
	}
	if ctx.Err() != nil {
		r.Interrupted, r.Points[0].Complete = true, false
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (w *world) synth(ctx context.Context, opt bench.Options) (*bench.Result, error) {
	name := "synth"
	if strings.HasSuffix(opt.Profile, "-flows") && !opt.NoHuge {
		name = "flows on huge pages"
	}
	if err := errors.Join(w.call(name), ctx.Err()); err != nil {
		return nil, err
	}
	some := bench.Spreads{Ticks: figure.Of(199, 200, 210), Mpps: figure.Of(12, 13, 14)}
	r := &bench.Result{
		Common: bench.Common{Profile: opt.Profile, Seconds: opt.Seconds,
			LossRatio: new(float64), Subscribers: opt.Subscribers, Checked: 1, TSCHz: 2600000000},
		Ratio: "1:1", Spread: some,
		Uplink: bench.Direction{FrameBytes: 650, Spread: some,
			Nodes: []bench.NodeCost{{Name: "gtpu-encap", Share: 30, TicksPerPacket: 30}}},
		Downlink: bench.Direction{FrameBytes: 650, Spread: some},
	}
	r.CheckPass.Checked = 1
	if strings.HasSuffix(opt.Profile, "-flows") {
		r.Sessions, r.Flows = opt.Sessions, opt.Sessions*bench.SessionFlows
		r.Fill = &bench.Fill{Cost: bench.Cost{TicksPerPacket: 900, FloorTicksPerPacket: 60},
			InsertsPerSecond: 2.5e6}
		r.MemoryFloor = &bench.MemoryFloor{Ticks: figure.Of(24, 25, 27)}
	}
	return r, nil
}

func (w *world) peers(ctx context.Context, _ bench.Options, rounds int) ([]peer.Row, error) {
	err := errors.Join(w.call("peers"), ctx.Err())
	rows := []peer.Row{
		{Name: "isthmus", Ours: true, Link: "memif", Mpps: 6, Runs: slices.Repeat([]float64{6}, rounds), Ratio: 1},
		{Name: "l3fwd", Link: "memif", Mpps: 12, Runs: []float64{11, 12, 13}, Ratio: 2, TicksPerPacket: 216},
	}
	if w.gone {
		rows = append(rows, peer.Row{Name: "gone", Link: "memif", WhyNot: "no such program"},
			peer.Row{Name: "away", WhyNot: "nor this"})
	}
	return rows, err
}

// measure runs the suite in a world and reads back what it wrote.
func measure(t *testing.T, w *world, quick bool) (*report.Report, string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.cancel = cancel
	dir := filepath.Join(t.TempDir(), "report")
	var lines bytes.Buffer
	_, failed := Run(ctx, Options{
		Base: bench.Options{Link: "memif", Goal: goalLoss, Workers: 1, Subscribers: 1000, Version: "v"}, Quick: quick,
		Dir: dir, Progress: &lines,
		Tools: Tools{Link: w.link, Synth: w.synth, Peers: w.peers, Place: func(opt *bench.Options) (bool, error) {
			return opt.Instances <= w.machine, nil
		}},
	})
	r, err := report.Read(filepath.Join(dir, report.DataFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, report.PageFile)); err != nil {
		t.Fatal(err)
	}
	return r, lines.String(), failed
}

func TestWholeSuite(t *testing.T) {
	w := newWorld()
	w.factor = 1.1
	r, lines, err := measure(t, w, false)
	if err != nil {
		t.Fatal(err)
	}
	if r.Partial() || !r.Complete || len(r.Missing) != 0 {
		t.Errorf("partial: complete %v, missing %v", r.Complete, r.Missing)
	}
	if !strings.Contains(lines, "about "+clock(r.BudgetSeconds)) || r.BudgetSeconds < 60 {
		t.Errorf("no budget at the start: %s", lines)
	}
	run := r.Runs[0]
	g := r.Headline(&run)
	if g == nil || g.Mpps.Runs != 3 || g.Mpps.Min != 6 || g.Mpps.Median < 6.59 || g.Mpps.Median > 6.61 ||
		g.Mpps.Max < 7.25 {
		t.Fatalf("headline: %+v", g)
	}
	if bits := g.Mpps.Median * 5.2; float64(g.GbpsL2) < bits-0.01 || float64(g.GbpsL2) > bits+0.01 {
		t.Errorf("bits do not follow the median: %v, want %v", g.GbpsL2, bits)
	}
	if run.Title != "650 B both ways" {
		t.Errorf("title: %q", run.Title)
	}
	if !run.Tester.Enough() || len(run.Steps) != len(stepList) || len(run.Echo) != 1 || run.Echo[0].Lost != 2 ||
		run.Latency[0].Percent != 50 {
		t.Errorf("run: %+v", run)
	}
	if run.Account.Refused != 7 || run.Account.Dropped["policed"] != 3 {
		t.Errorf("account: %+v", run.Account)
	}
	up := run.Directions[0]
	if len(run.Directions) != 4 || up.Name != "uplink" || up.LossRatio != 0.02 || up.FrameBytes != 650 ||
		up.Mpps > 3.01 || !run.Directions[2].Alone {
		t.Errorf("directions: %+v", run.Directions)
	}
	if len(run.Trials) != 2 || run.Trials[0].Used || run.Trials[0].Discarded[0] != "steal" {
		t.Errorf("trials: %+v", run.Trials)
	}
	if len(r.Costs) != 4 || len(r.Subscribers[0].Points) != 4 || len(r.Floors) == 0 || len(r.Peers[0].Peers) != 2 {
		t.Errorf("%d costs, %d floors", len(r.Costs), len(r.Floors))
	}
	if p := r.Peers[0].Peers[1]; p.Mpps.Median != 12 || p.Mpps.Min != 11 || p.Mpps.Runs != 3 {
		t.Errorf("peer: %+v", p)
	}
	if set := r.Instances[0]; len(set.Points) != 1 || !strings.Contains(set.Cannot, "not extrapolated") {
		t.Errorf("instances: %+v", set)
	}
	if c := r.Flows[0].Points; len(c) != 15 || c[0].Flows != 1<<10 || c[14].Flows != 1<<24 ||
		c[14].Memory.Median != 25 || c[14].FillTicks != 900 {
		t.Errorf("flows: %+v", c)
	}
	imix := slices.IndexFunc(r.Runs, func(run report.Run) bool { return run.Mix })
	if imix < 0 || r.Runs[imix].Title != "IMIX" {
		t.Error("no IMIX")
	}
}

func TestQuickIsShorter(t *testing.T) {
	long, quick := newWorld(), newWorld()
	a, _, _ := measure(t, long, false)
	b, _, err := measure(t, quick, true)
	if err != nil || b.BudgetSeconds > a.BudgetSeconds/3 || !b.Quick {
		t.Errorf("%v: %v s quick, %v s else", err, b.BudgetSeconds, a.BudgetSeconds)
	}
}

// Where the largest number of flows has no room in huge pages, no point of the curve has them.
func TestFlowsAreOfOneKindOfMemory(t *testing.T) {
	w := newWorld()
	w.fail["flows on huge pages"] = errors.New("no memory")
	r, _, err := measure(t, w, true)
	if err != nil || len(r.Flows[0].Points) != 8 || strings.Count(strings.Join(w.calls, ","),
		"flows on huge pages") != 1 {
		t.Errorf("%v: %v", err, w.calls)
	}
}

// Sections choose parts; none that is measured is an error.
func TestSections(t *testing.T) {
	w := newWorld()
	opt := Options{Base: bench.Options{Goal: goalLoss}, Sections: []string{report.SectionFlows}, Quick: true,
		Dir: t.TempDir(), Tools: Tools{Synth: w.synth}}
	r, err := Run(t.Context(), opt)
	if err != nil || !r.Complete || r.Partial() || len(r.Flows) != 1 || len(w.calls) != len(r.Flows[0].Points) {
		t.Errorf("%v: %d calls", err, len(w.calls))
	}
	opt.Sections = []string{"nothing"}
	if _, err := Run(t.Context(), opt); err == nil {
		t.Error("a section without parts was taken")
	}
}

// Routers are a section of their own, which a quick run has when it is asked for.
func TestRouters(t *testing.T) {
	row := l3fwd.Row{Row: peer.Row{Name: "isthmus", Link: peer.LinkMemif, Ours: true, Mpps: 6, Repetitions: 1}}
	routers := func(_ context.Context, o bench.Options) (*l3fwd.Result, error) {
		if o.Profile != l3fwd.Profile {
			t.Errorf("profile %q", o.Profile)
		}
		point := l3fwd.Point{Ports: 6, Bytes: 64, Figure: "7", Rows: []l3fwd.Row{row}}
		return &l3fwd.Result{Goal: goalLoss, Rounds: 1, Complete: true, Points: []l3fwd.Point{point}}, nil
	}
	opt := Options{Base: bench.Options{Goal: goalLoss}, Sections: []string{report.SectionRouters}, Quick: true,
		Dir: t.TempDir(), Tools: Tools{Routers: routers}}
	r, err := Run(t.Context(), opt)
	if err != nil || len(r.Routers) != 1 || len(r.Routers[0].Peers) != 1 {
		t.Fatalf("%v: %+v", err, r.Routers)
	}
	if title := r.Routers[0].Title; title != "6 ports, 64 B (figure 7)" {
		t.Errorf("title %q", title)
	}
	page, err := os.ReadFile(filepath.Join(opt.Dir, report.PageFile))
	if err != nil || !strings.Contains(string(page), "Routers of two to six ports") {
		t.Errorf("%v: the page has no such section", err)
	}
}

func TestFailingPartsDoNotStopTheOthers(t *testing.T) {
	w := newWorld()
	w.fail["agf-asymmetric"] = errors.New("the data plane ended\nits last words")
	w.fail["peers"] = errors.New("no peers here")
	r, _, err := measure(t, w, false)
	if err == nil || !strings.Contains(err.Error(), "last words") {
		t.Errorf("the error is %v", err)
	}
	if !r.Partial() || r.Interrupted || len(r.Runs) != 4 { // symmetric, two of RFC 2544, jumbo
		t.Errorf("partial %v, interrupted %v, %d runs", r.Partial(), r.Interrupted, len(r.Runs))
	}
	var parts []string
	for _, m := range r.Missing {
		parts = append(parts, m.Part)
	}
	if !slices.Contains(parts, "peers") || !slices.Contains(parts, "agf-asymmetric over memif") {
		t.Errorf("missing: %v", parts)
	}
	if !slices.Contains(w.calls, "jumbo") || !slices.Contains(w.calls, "instances") {
		t.Errorf("the rest was not measured: %v", w.calls)
	}
	if len(r.Peers) != 1 {
		t.Error("what the peers gave before the error is gone")
	}
}

func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	w := newWorld()
	w.stop = asymmetric
	r, _, err := measure(t, w, false)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "partial") {
		t.Errorf("the error is %v", err)
	}
	if !r.Interrupted || r.Complete || !r.Partial() {
		t.Errorf("interrupted %v, complete %v", r.Interrupted, r.Complete)
	}
	if last := r.Runs[len(r.Runs)-1]; last.Profile != asymmetric && last.Incomplete == "" || len(r.Runs) < 2 {
		t.Errorf("runs: %+v", r.Runs)
	}
	if slices.Contains(w.calls, "rfc2544") {
		t.Errorf("it went on: %v", w.calls)
	}
	if err != nil && strings.Contains(err.Error(), "jumbo") {
		t.Errorf("the error lists what was never begun: %v", err)
	}
	if len(r.Missing) < 2 || !strings.Contains(r.Missing[0].Why, "found by then is here") ||
		!strings.Contains(r.Missing[1].Why, "not measured") {
		t.Errorf("missing: %v", r.Missing)
	}
}

func TestWrongPacketsFailTheSuite(t *testing.T) {
	w := newWorld()
	w.wrong = "agf-symmetric"
	r, _, err := measure(t, w, false)
	if err == nil || !strings.Contains(err.Error(), "gtpu.teid") {
		t.Errorf("the error is %v", err)
	}
	if r.Runs[0].Wrong == 0 || r.Runs[0].WrongFrame != "gtpu.teid" {
		t.Errorf("run: %d wrong, %q", r.Runs[0].Wrong, r.Runs[0].WrongFrame)
	}
}

func TestPeersThatCannotRunAreMissing(t *testing.T) {
	w := newWorld()
	w.gone = true
	r, _, err := measure(t, w, true)
	if err == nil || !r.Partial() || len(r.Missing) != 2 || r.Missing[0].Why != "gone: no such program" ||
		len(r.Peers[0].Peers) != 4 {
		t.Errorf("%v: %+v", err, r.Missing)
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	_, err := Run(context.Background(), Options{Dir: filepath.Join(file, "sub"),
		Tools: Tools{Link: w.link, Synth: w.synth}})
	if err == nil || len(w.calls) != 0 {
		t.Errorf("%v after %v", err, w.calls)
	}
}

func TestMoreInstancesWhereTheyFit(t *testing.T) {
	w := newWorld()
	w.machine = 2
	r, _, _ := measure(t, w, true)
	set := r.Instances[0]
	if len(set.Points) != 2 || set.Points[1].Instances != 2 || set.Points[1].Scaling != 0.97 || set.Cannot == "" {
		t.Errorf("instances: %+v", set)
	}
}
