// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"isthmus/controlplane/command"
	"isthmus/controlplane/dp"
	"isthmus/lab/tester"
)

// Options of one benchmark.
type Options struct {
	Profile     string
	Seconds     float64 // synth: for each direction; else the length of a trial
	Workers     int
	AnyWorker   bool // synth: packets come to any worker, and others' are handed over
	Subscribers int
	Sessions    int   // of mobile functions
	Routes      int   // of the profiles router and router6
	CPUs        []int // of the workers
	NoHuge      bool
	DPBinary    string
	Version     string
	Command     string    // for the report
	Progress    io.Writer // where the bar goes

	// The fields below are for links that are measured from outside.
	Link        string        // LinkMemif, …
	Goal        float64       // highest loss ratio, beside 0
	Rate        float64       // packets per second: measure at this rate in place of the search; 0: search
	Steps       []tester.Rate // percentages of Rate, one after the other, in place of Rate alone: "50%", "120%"
	Quick       bool          // a rough search, few extras
	Combined    bool          // vepc: all functions in one process
	Switch      string        // vepc: SwitchNone, …: what relays between the functions
	SwitchCPUs  []int         // of its polling threads; nil: one, not pinned
	Size        int           // rfc2544: this size alone; 0: all
	Instances   int           // gateways side by side
	TesterCPUs  []int         // a thread of the tester each; nil: one thread, not pinned
	ControlCPUs []int         // where everything else may run; nil: anywhere
	TesterBin   string        // isthmus-traffic-engine
	// folder for the tester's profiles and results and the gateway's configuration; empty: not kept
	Keep string
}

// steered is api.Synth.WorkerModulo.
func (o Options) steered() int {
	if o.AnyWorker {
		return 0
	}
	return o.Workers
}

// lossTarget is the vAGF paper's: at most 0.001 %.
const lossTarget = 1e-5

const (
	checkSeconds = 0.4
	checkEvery   = 1024 // during measurement
)

// Run measures one profile. The result is valid also when packets were wrong or lost: ask Verdict.
func Run(ctx context.Context, opt Options) (*Result, error) {
	p, err := Lookup(opt.Profile)
	if err != nil {
		return nil, err
	}
	if opt.Seconds <= 0 {
		return nil, fmt.Errorf("%g seconds is too short", opt.Seconds)
	}
	l, err := newFixture(opt, hugeWord(&opt))
	if err != nil {
		return nil, err
	}
	plan, err := planOf(l)
	if err != nil {
		return nil, err
	}
	var lines *memory
	if p.Sessions > 0 {
		if lines, err = flowMemory(l, &opt); err != nil {
			return nil, err
		}
		defer lines.free()
	}
	d, err := start(ctx, opt.DPBinary, plan, l.memoryMB())
	if err != nil {
		return nil, err
	}
	stop := sync.OnceFunc(d.Stop)
	defer stop()
	began := time.Now()
	if err := d.Apply(ctx, plan.Changes()); err != nil {
		return nil, d.explain(err)
	}
	if err := l.load(ctx, d); err != nil {
		return nil, d.explain(err)
	}
	loaded := time.Since(began)
	phases := 3.0
	if p.AlternateShare > 0 {
		phases++
	}
	seconds := time.Duration((phases*opt.Seconds*1.2 + 3*checkSeconds) * float64(time.Second))
	r := &runner{d: d, progress: &progress{bar: command.NewProgress(opt.Progress, p.Name), title: p.Name,
		total: seconds}}
	defer r.progress.bar.Done()
	m := &measurement{options: opt, profile: p, layout: l, hello: d.Hello(), loaded: loaded, steal: readSteal()}
	if err := r.everything(ctx, m); err != nil {
		return nil, d.explain(err)
	}
	m.steal = readSteal().since(m.steal)
	result := m.result()
	if lines != nil {
		stop() // its workers leave the CPU
		if err := lines.measure(opt.CPUs); err != nil {
			return nil, err
		}
		result.MemoryFloor = lines.result(result.TSCHz)
	}
	return result, nil
}

// fixture is what a profile measures with synth ports.
type fixture interface {
	yaml() []byte
	load(ctx context.Context, d *dataPlane) error // what is not in the configuration
	streams(p Profile, share, checkEvery int) ([]*stream, error)
	describe(r *Result)
	memoryMB() int // of the data plane without huge pages; 0: its preset
}

// newFixture is that of the profile.
func newFixture(opt Options, huge string) (fixture, error) {
	for i := range MobileProfiles {
		if MobileProfiles[i].Name == opt.Profile {
			return newMobile(opt, huge)
		}
	}
	if slices.ContainsFunc(RoutingProfiles, func(p Profile) bool { return p.Name == opt.Profile }) {
		return newRouting(opt, huge)
	}
	return newLayout(opt, huge)
}

// measurement is everything that a run found out.
type measurement struct {
	options                      Options
	profile                      Profile
	layout                       fixture
	hello                        hello
	loaded                       time.Duration
	check                        checkResult // every packet compared
	load                         checkResult // under full load
	uplink, downlink, both, more *phase
	fill                         *Fill // of a flow profile
	steal                        steal
}

// everything runs every phase in order.
func (r *runner) everything(ctx context.Context, m *measurement) (err error) {
	p, seconds := m.profile, m.options.Seconds
	if p.Sessions > 0 {
		if err = r.fill(ctx, m); err != nil {
			return err
		}
		before, err := r.settle(ctx)
		if err != nil {
			return err
		}
		defer func() {
			if after, e := r.settle(ctx); e == nil {
				m.fill.SteadyInserts, m.fill.Evictions = after.inserts-before.inserts, after.evicted
			}
		}()
	}
	if err = r.load(ctx, m, p.UplinkShare, 1); err != nil {
		return err
	}
	if m.check, err = r.checkPass(ctx); err != nil {
		return err
	}
	// One direction alone fills its vectors, at any ratio.
	err = r.under(ctx, m, pattern, func() error {
		if err = r.warm(ctx, m.layout); err != nil {
			return err
		}
		if m.uplink, err = r.measure(ctx, true, false, seconds); err != nil {
			return err
		}
		m.downlink, err = r.measure(ctx, false, true, seconds)
		return err
	})
	if err != nil {
		return err
	}
	err = r.under(ctx, m, p.UplinkShare, func() error {
		m.both, err = r.measure(ctx, true, true, seconds)
		return err
	})
	if err != nil || p.AlternateShare == 0 {
		return err
	}
	return r.under(ctx, m, p.AlternateShare, func() error {
		m.more, err = r.measure(ctx, true, true, seconds)
		return err
	})
}

// under loads streams, runs fn and adds up what became of the packets.
func (r *runner) under(ctx context.Context, m *measurement, share int, fn func() error) error {
	if err := r.load(ctx, m, share, checkEvery); err != nil {
		return err
	}
	before, err := r.settle(ctx)
	if err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	after, err := r.settle(ctx)
	if err != nil {
		return err
	}
	m.load.add(r.verdict(before, after))
	return nil
}

// load replaces the streams of the data plane; their counters begin at zero.
func (r *runner) load(ctx context.Context, m *measurement, share, every int) error {
	list, err := m.layout.streams(m.profile, share, every)
	if err != nil {
		return err
	}
	old := r.all
	r.all = list
	return r.d.replace(ctx, old, list)
}

// checkPass sends through the gateway for a short time and compares every packet.
func (r *runner) checkPass(ctx context.Context) (checkResult, error) {
	a, err := r.settle(ctx)
	if err != nil {
		return checkResult{}, err
	}
	list := selected(r.all, false, true, true)
	if err := r.d.run(ctx, list, true); err != nil {
		return checkResult{}, err
	}
	if err := r.progress.sleep(ctx, time.Duration(checkSeconds*float64(time.Second))); err != nil {
		return checkResult{}, err
	}
	if err := r.d.run(ctx, list, false); err != nil {
		return checkResult{}, err
	}
	b, err := r.settle(ctx)
	if err != nil {
		return checkResult{}, err
	}
	return r.verdict(a, b), nil
}

// Configuration returns the YAML that a benchmark runs. Links from outside have their sockets in /run/isthmus.
func Configuration(opt Options) ([]byte, error) {
	if opt.Link != "" && opt.Link != LinkSynth {
		s, err := newScene(opt, 0)
		if err != nil {
			return nil, err
		}
		at := func(name, role string) *wire {
			return &wire{gateway: sharedPort(opt.Link, "/run/isthmus/"+name+".sock", role)}
		}
		if s.chain != nil {
			return s.chain.configurations(at), nil
		}
		return s.config(at("access", "server"), at("core", "server")), nil
	}
	if _, err := Lookup(opt.Profile); err != nil {
		return nil, err
	}
	l, err := newFixture(opt, hugeWord(&opt))
	if err != nil {
		return nil, err
	}
	return l.yaml(), nil
}

// Streams returns a benchmark's streams through the gateway, for a data plane that runs its Configuration.
func Streams(opt Options, every int, rate uint64) ([]dp.Change, error) {
	p, err := Lookup(opt.Profile)
	if err != nil {
		return nil, err
	}
	l, err := newFixture(opt, "auto")
	if err != nil {
		return nil, err
	}
	all, err := l.streams(p, p.UplinkShare, every)
	if err != nil {
		return nil, err
	}
	var list []dp.Change
	for _, s := range selected(all, false, true, true) {
		s.body.Rate = rate
		list = append(list, s.change())
	}
	return list, nil
}
