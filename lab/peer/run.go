// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// Options of RunAll.
type Options struct {
	Setup       Setup // Dir may be empty: a folder of its own, removed at the end
	Repetitions int   // 0: 5
	// Base is the gateway's measurement: its streams, its two ports "access" and "core", and the run. That is a
	// search, or a fixed rate, which shows that every program works, without its speed.
	Base *tester.Profile
	// Latency asks for trials at parts of the rate that was found, of which the first is in the row; nil: none.
	Latency *tester.Latency
	// Say takes progress messages; may be nil.
	Say func(format string, args ...any)
}

// Measure runs the tester's profile against a running program. The profile's ports are those of the Running.
type Measure func(ctx context.Context, name string, r *Running, p *tester.Profile) (*tester.Result, error)

// Row is what one program gave. Rates are sums of both directions, of packets that came out as they must, at the
// loss goal.
type Row struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Does    string        `json:"does"`
	Note    string        `json:"note,omitempty"`
	Ours    bool          `json:"ours,omitempty"`
	Floor   bool          `json:"floor,omitempty"`
	Mpps    figure.Number `json:"mpps"`    // median
	GbpsL2  figure.Number `json:"gbps_l2"` // that came out, in the repetition of the median
	// TicksPerPacket are TSC ticks of the one CPU per packet: a polling thread is always busy, so it is ticks per
	// second divided by the median rate. The gateway's is computed the same way here.
	TicksPerPacket figure.Number `json:"ticks_per_packet"`
	// its rate to the gateway's on the same link, of rounds side by side
	Ratio      figure.Number `json:"ratio"`
	RatioRange figure.Spread `json:"ratio_range"`
	// it was offered a fixed rate: neither ticks nor a ratio are known
	FixedRate   bool          `json:"fixed_rate,omitempty"`
	Spread      figure.Spread `json:"spread"` // of the rate in Mpps
	Repetitions int           `json:"repetitions"`
	Runs        []float64     `json:"runs"` // Mpps, in the order of time
	LossRatio   *float64      `json:"loss_ratio"`
	// Latency at the part of the rate that was asked for, in the repetition of the median.
	Latency       *tester.Histogram `json:"latency_us,omitempty"`
	Link          string            `json:"link"`
	Command       string            `json:"command"`
	Packets       string            `json:"packets"`
	TesterLimited bool              `json:"tester_limited,omitempty"` // in any repetition: the program can do more
	// why there is no figure, or not of every repetition
	WhyNot string `json:"why_not,omitempty"`
}

// subject is a peer that takes part, and what it gave so far.
type subject struct {
	peer    *Peer
	row     Row
	profile *tester.Profile
	runs    []run
	out     bool // left out from now on
}

// run is one repetition.
type run struct {
	pps, gbps, loss, tscHz float64
	limited                bool
	latency                *tester.Histogram
}

// defaultRepetitions are what a median is made of.
const defaultRepetitions = 5

// RunAll measures every peer in alternating order, the gateway among them, and returns a row for each, in the given
// order. The row of a peer that does not work has the reason, and the others go on. When ctx ends, the rows have the
// results so far, with an error.
func RunAll(ctx context.Context, list []*Peer, opt Options, measure Measure) ([]Row, error) {
	if opt.Repetitions <= 0 {
		opt.Repetitions = defaultRepetitions
	}
	if opt.Say == nil {
		opt.Say = func(string, ...any) {}
	}
	if opt.Setup.Dir == "" {
		dir, err := os.MkdirTemp("", "isthmus-peers-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		opt.Setup.Dir = dir
	}
	if err := opt.Setup.check(); err != nil {
		return nil, err
	}
	build(ctx, &opt)
	subjects := prepare(ctx, list, &opt)
	var failed error
	for repetition := range opt.Repetitions {
		for _, i := range order(len(subjects), repetition) {
			s := subjects[i]
			if s.out {
				continue
			}
			if failed = ctx.Err(); failed != nil {
				break
			}
			opt.Say("repetition %d of %d: %s", repetition+1, opt.Repetitions, s.peer.Name)
			if err := s.once(ctx, &opt, repetition, measure); err != nil && ctx.Err() == nil {
				s.leaveOut(&opt, err)
			}
		}
	}
	rows := make([]Row, len(subjects))
	for i, s := range subjects {
		rows[i] = s.result()
	}
	compare(rows)
	if failed == nil {
		failed = ctx.Err()
	}
	return rows, failed
}

// check refuses a set-up that no program could be started with.
func (s *Setup) check() error {
	if s.Descriptors < 64 || s.Descriptors > 16384 || s.Descriptors&(s.Descriptors-1) != 0 {
		return fmt.Errorf("%d descriptors: a memif ring has a power of two of them, 64 to 16384", s.Descriptors)
	}
	if len(s.Ends) < 2 || len(s.Ends) > plainNetworks || len(s.Ends)%2 != 0 {
		return fmt.Errorf("%d ports: a comparison has pairs of them, up to %d", len(s.Ends), plainNetworks)
	}
	for _, e := range s.Ends {
		if e.Name == "" || e.MAC == "" || e.FarMAC == "" {
			return errors.New("the set-up of a comparison lacks a MAC address")
		}
	}
	return nil
}

// build runs scripts/peers.sh to build DPDK's examples, where this program is in its checkout. It returns at once when
// they exist. After a failure each example reports it.
func build(ctx context.Context, opt *Options) {
	folder, err := FindPrograms("")
	if err != nil || opt.Setup.ProgramsFolder != "" {
		return
	}
	script := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(folder))), "scripts", "peers.sh")
	if _, err := os.Stat(script); err != nil {
		return
	}
	if out, err := exec.CommandContext(ctx, script).CombinedOutput(); err != nil {
		opt.Say("scripts/peers.sh: %v\n%s", err, bytes.TrimSpace(out))
	}
}

// prepare makes the subjects. Those that cannot take part are marked.
func prepare(ctx context.Context, list []*Peer, opt *Options) []*subject {
	var subjects []*subject
	for _, p := range list {
		s := &subject{peer: p, row: Row{
			Name: p.Name, Does: p.Does, Note: p.Note, Ours: p.Ours, Floor: p.Floor, Link: p.Link,
			Packets: p.Packets.String(),
		}}
		subjects = append(subjects, s)
		var err error
		if s.row.Version, err = p.Version(ctx, &opt.Setup); err == nil {
			s.profile, err = p.profile(opt)
		}
		if err != nil {
			s.leaveOut(opt, err)
		}
	}
	return subjects
}

// warmup is the shortest that every program gets: some look for their links ten times a second, and go to work
// after that.
const warmup = 0.5

// profile is the base with the peer's own streams.
func (p *Peer) profile(opt *Options) (*tester.Profile, error) {
	profile := *cmp.Or(p.Base, opt.Base)
	switch profile.Run.Mode {
	case tester.ModeSearch, tester.ModeFixed:
	default:
		return nil, fmt.Errorf("a comparison searches, or has a fixed rate; not %q", profile.Run.Mode)
	}
	streams, err := p.streams(profile.Streams, &opt.Setup)
	if err != nil {
		return nil, err
	}
	profile.Name, profile.Title, profile.Streams, profile.Capture = p.Name, opt.Base.Name+": "+p.Name, streams, nil
	profile.Run.Latency = cmp.Or(opt.Latency, &tester.Latency{})
	if profile.Run.Warmup == nil || *profile.Run.Warmup < warmup {
		profile.Run.Warmup = tester.Pointer(warmup)
	}
	return &profile, nil
}

// OrderWords describes order for a report.
const OrderWords = "there and back, each pair of repetitions beginning with the next program"

// order is who runs when in a repetition: there and back, and each pair of repetitions begins with the next one. So no
// program always has the same neighbours or the same time since the start (ABBA, BCCB, …).
func order(n, repetition int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = (i + repetition/2) % n
	}
	if repetition%2 == 1 {
		slices.Reverse(list)
	}
	return list
}

// once runs the program for one repetition.
func (s *subject) once(ctx context.Context, opt *Options, repetition int, measure Measure) error {
	setup := opt.Setup
	setup.Dir = filepath.Join(opt.Setup.Dir, fmt.Sprintf("%d-%s", repetition, s.peer.Name))
	if err := os.MkdirAll(setup.Dir, 0o755); err != nil {
		return err
	}
	setup.Flows = s.flows()
	running, err := s.peer.Start(ctx, setup)
	if err != nil {
		return err
	}
	defer running.Stop()
	s.row.Command = strings.Join(running.Command, " ")
	profile, err := running.connect(s.profile)
	if err != nil {
		return err
	}
	result, failed := measure(ctx, s.peer.Name, running, profile)
	// A program of DPDK may die of its link's end (net_memif frees queues that are being polled): what was
	// measured is good.
	if result == nil || !result.Complete {
		return cmp.Or(failed, errors.New("the tester did not come to an end"))
	}
	one, err := read(result, profile.Run.Mode)
	if err != nil {
		return errors.Join(err, failed)
	}
	s.runs = append(s.runs, *one)
	opt.Say("  %.3f Mpps", one.pps/1e6)
	return nil
}

// flows is the most that any of the streams has.
func (s *subject) flows() int {
	n := 1
	for i := range s.profile.Streams {
		n = max(n, s.profile.Streams[i].Flows)
	}
	return n
}

// read takes the figures of a result.
func read(r *tester.Result, mode string) (*run, error) {
	if n, example := r.Wrong(); n > 0 {
		return nil, fmt.Errorf("%d packets came out wrong: %s", n, example)
	}
	if mode == tester.ModeFixed {
		return readFixed(r)
	}
	return readSearch(r)
}

// readFixed takes what came through at a fixed rate.
func readFixed(r *tester.Result) (*run, error) {
	trials := r.Of(tester.PurposeFixed)
	if len(trials) == 0 {
		return nil, errors.New("the tester's result has no trial")
	}
	t := trials[len(trials)-1]
	if t.Received == 0 || t.Seconds <= 0 {
		return nil, fmt.Errorf("none of %d packets came out", t.Sent)
	}
	return &run{pps: float64(t.Received) / t.Seconds, gbps: t.GbpsL2, loss: t.LossRatio, limited: t.TesterLimited}, nil
}

// readSearch takes the figures of the last goal, the most lenient, from a search.
func readSearch(r *tester.Result) (*run, error) {
	if r.Search == nil || len(r.Search.Goals) == 0 {
		return nil, errors.New("the tester's result has no search")
	}
	goal := r.Search.Goals[len(r.Search.Goals)-1]
	if !goal.Found || goal.RatePPS <= 0 {
		return nil, fmt.Errorf("at no rate was the loss at most %g %%", goal.Loss*100)
	}
	one := &run{pps: goal.RatePPS, tscHz: r.Machine.TSCHz, limited: goal.TesterLimited || goal.AtMaximum}
	nearest := math.Inf(1)
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.Used || t.LossRatio > goal.Loss || t.Received == 0 || t.Seconds <= 0 {
			continue
		}
		if away := math.Abs(t.RatePPS - goal.RatePPS); away <= nearest { // the last of equals is the confirmation
			nearest, one.gbps, one.loss = away, t.GbpsL2, t.LossRatio
		}
	}
	if trials := r.Of(tester.PurposeLatency); len(trials) > 0 && trials[0].Latency != nil {
		latency := *trials[0].Latency
		latency.Buckets = nil
		one.latency = &latency
	}
	return one, nil
}

// leaveOut ends a peer's part, and keeps what it gave before.
func (s *subject) leaveOut(opt *Options, err error) {
	s.out = true
	s.row.WhyNot = err.Error()
	opt.Say("peer %s left out: %s", s.peer.Name, s.row.WhyNot)
}

// result makes the row of what was measured.
func (s *subject) result() Row {
	row := s.row
	row.Runs = []float64{}
	row.Repetitions = len(s.runs)
	if len(s.runs) == 0 {
		if row.WhyNot == "" {
			row.WhyNot = "interrupted before it was measured"
		}
		return row
	}
	loss := 0.0
	sorted := slices.Clone(s.runs)
	slices.SortStableFunc(sorted, func(a, b run) int { return cmp.Compare(a.pps, b.pps) })
	for _, one := range s.runs {
		row.Runs = append(row.Runs, one.pps/1e6)
		row.TesterLimited = row.TesterLimited || one.limited
		loss = max(loss, one.loss)
	}
	n := len(sorted)
	middle := sorted[n/2]
	pps := (sorted[(n-1)/2].pps + middle.pps) / 2
	row.Mpps, row.GbpsL2, row.Latency = figure.Number(pps/1e6), figure.Number(middle.gbps), middle.latency
	if row.FixedRate = s.profile.Run.Mode == tester.ModeFixed; !row.FixedRate {
		row.TicksPerPacket = figure.Number(middle.tscHz / pps)
	}
	row.Spread, row.LossRatio = figure.Of(row.Runs...), &loss
	return row
}

// compare sets the ratios: to the gateway's rate on the same link, in the same repetition.
func compare(rows []Row) {
	for i := range rows {
		row := &rows[i]
		for j := range rows {
			if ours := &rows[j]; ours.Ours && ours.Link == row.Link && !row.FixedRate {
				row.RatioRange = figure.Ratios(row.Runs, ours.Runs)
				row.Ratio = figure.Number(row.RatioRange.Median)
			}
		}
	}
}
