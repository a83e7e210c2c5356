// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"isthmus/api"
	"isthmus/controlplane/command"
	"isthmus/lab/tester"
	"isthmus/lab/tester/office"
)

// device is a running gateway at two links, ready to be measured. A chain of functions counts as one device: the
// embedded data plane is the first of them, at the access link.
type device struct {
	*dataPlane
	rest         []*dataPlane // of a chain: the functions behind the first
	workers      int          // of a chain: of each function
	relays       []relay      // programs between functions
	unlink       []func()     // what else is to be removed
	scene        *scene
	prefix       string // of its ports and streams; distinguishes gateways side by side
	access, core *wire
	text         []byte // its configuration
	load         time.Duration
}

// outside measures a profile's gateway from outside.
type outside struct {
	opt Options
	dir string
}

// Measure measures one profile through the tester. A result is returned if anything was measured, also beside an error;
// an interrupted one is marked and has no error. Verdict judges it.
func Measure(ctx context.Context, opt Options) (*LinkResult, error) {
	if opt.Seconds <= 0 {
		return nil, fmt.Errorf("%g seconds is too short", opt.Seconds)
	}
	if opt.Instances > 1 {
		return measureInstances(ctx, opt)
	}
	s, err := newScene(opt, 0)
	if err != nil {
		return nil, err
	}
	m, done, err := newOutside(opt)
	if err != nil {
		return nil, err
	}
	defer done()
	r := newLinkResult(&opt, s)
	err = m.everything(ctx, s, r)
	r.finish(len(s.points), ctx.Err() != nil, err)
	if len(r.Points) == 0 && err == nil {
		err = ctx.Err() // interrupted before anything was measured
	}
	return r, err
}

// newOutside makes the run's folder and keeps us off the workers' CPUs.
func newOutside(opt Options) (m *outside, done func(), err error) {
	if _, err := office.Find(opt.TesterBin); err != nil {
		return nil, nil, err
	}
	restore, err := Confine(opt.ControlCPUs)
	if err != nil {
		return nil, nil, fmt.Errorf("CPUs %v: %w", opt.ControlCPUs, err)
	}
	dir, err := os.MkdirTemp("", "isthmus-bench-")
	if err != nil {
		restore()
		return nil, nil, err
	}
	m = &outside{opt: opt, dir: dir}
	return m, func() {
		os.RemoveAll(dir)
		restore()
	}, nil
}

// everything measures all points, then what the tester can do on the same link.
func (m *outside) everything(ctx context.Context, s *scene, r *LinkResult) error {
	d, err := m.start(ctx, s, "")
	if err != nil {
		return err
	}
	r.gateway(d)
	err = m.points(ctx, d, r)
	d.stop()
	if s.finish != nil {
		s.finish(r)
	}
	if err != nil || ctx.Err() != nil || len(m.opt.Steps) > 0 {
		return err
	}
	return m.capability(ctx, s, r)
}

// start runs a gateway with the scene's configuration, or the scene's chain of functions.
func (m *outside) start(ctx context.Context, s *scene, prefix string) (*device, error) {
	if s.chain != nil {
		return m.startChain(ctx, s, prefix)
	}
	d := &device{scene: s, prefix: prefix}
	var err error
	if d.access, err = makeWire(ctx, m.opt.Link, m.dir, prefix+"a"); err != nil {
		return nil, err
	}
	if d.core, err = makeWire(ctx, m.opt.Link, m.dir, prefix+"c"); err != nil {
		d.access.remove()
		return nil, err
	}
	unwire := func() { d.access.remove(); d.core.remove() }
	plan, text, err := s.plan(d.access, d.core)
	if err != nil {
		unwire()
		return nil, err
	}
	d.text = text
	if m.opt.Keep != "" {
		if err := keep(m.opt.Keep, prefix+"gateway.yaml", text); err != nil {
			unwire()
			return nil, err
		}
	}
	if d.dataPlane, err = start(ctx, m.opt.DPBinary, plan, s.dpMemoryMB); err != nil {
		unwire()
		return nil, err
	}
	d.unlink = []func(){unwire}
	began := time.Now()
	if err = d.Apply(ctx, plan.Changes()); err == nil && s.load != nil {
		err = s.load(ctx, d.dataPlane)
	}
	if err != nil {
		err = d.explain(err)
		d.stop()
		return nil, err
	}
	d.load = time.Since(began)
	return d, nil
}

func keep(dir, name string, data []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), data, 0o644)
}

func (d *device) stop() {
	for _, one := range d.all() {
		one.Stop()
	}
	for i := len(d.unlink) - 1; i >= 0; i-- {
		d.unlink[i]()
	}
}

// all are the device's data planes along the chain.
func (d *device) all() []*dataPlane {
	var list []*dataPlane
	if d.dataPlane != nil {
		list = append(list, d.dataPlane)
	}
	return append(list, d.rest...)
}

// farEnd is what the tester's run is watched by: the first gateway that ends. Call the function when the run is over.
func farEnd(devices []*device) (End, func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	var all []*dataPlane
	for _, d := range devices {
		all = append(all, d.all()...)
	}
	first := make(chan *dataPlane, len(all))
	for _, d := range all {
		go func() {
			select {
			case <-d.exited:
				first <- d
			case <-done:
			}
		}()
	}
	var dead *dataPlane
	go func() {
		select {
		case dead = <-first:
			close(ended)
		case <-done:
		}
	}()
	words := func() string { return fmt.Sprintf("(%s)\n%s", dead.cmd.ProcessState, dead.tail()) }
	return End{"isthmus-dp", ended, words}, func() { close(done) }
}

// ports are the tester's ends of the links of gateways side by side. A memif link has a queue for each worker, which
// sends on its own only.
func ports(devices []*device, opt *Options) []tester.Port {
	var list []tester.Port
	for _, d := range devices {
		for _, p := range d.scene.ports(d.access, d.core) {
			p.Name = d.prefix + p.Name
			if p.Driver == "net_memif" && opt.Workers > 1 {
				p.Queues = opt.Workers
			}
			list = append(list, p)
		}
	}
	return list
}

// run has the tester run a profile against gateways, whose counters are read around each trial and around the whole.
func (m *outside) run(ctx context.Context, devices []*device, p *tester.Profile, what string) (*linkRun, error) {
	quiet := context.WithoutCancel(ctx) // what is under way is read to its end
	before, err := settled(quiet, devices)
	if err != nil {
		return nil, err
	}
	g := &gauge{devices: devices, ctx: quiet}
	opt := m.testerOptions(what)
	bar, trials := command.NewProgress(m.opt.Progress, what), 0
	opt.Progress = func(t *tester.Trial, ended bool) {
		g.trial(ended)
		if !ended {
			trials++
			bar.Set(fmt.Sprintf("%s: trial %d, %s at %.3f Mpps", what, trials, t.Purpose, t.RatePPS/1e6), -1)
		}
	}
	end, done := farEnd(devices)
	result, err := RunAgainst(ctx, end, p, opt)
	done()
	bar.Done()
	if result == nil {
		return nil, err
	}
	run := &linkRun{result: result, windows: g.trials}
	after, e := settled(quiet, devices)
	run.account = account(result, before, after)
	if err == nil {
		err = e
	}
	if err == nil {
		err = g.err
	}
	return run, err
}

// settled reads the sum of gateways' counts when nothing moves in them any more.
func settled(ctx context.Context, devices []*device) (*counters, error) {
	sum := newCounters()
	for _, d := range devices {
		c, err := d.settle(ctx)
		if err != nil {
			return nil, d.explain(err)
		}
		sum.add(c)
	}
	return sum, nil
}

// linkRun is one run of the tester and what the gateway counted meanwhile.
type linkRun struct {
	result  *tester.Result
	windows []window
	account Accounting
}

// window of a trial by its index; empty without one.
func (r *linkRun) window(i int) window {
	if i < 0 || i >= len(r.windows) || len(r.windows) != len(r.result.Trials) {
		return window{}
	}
	return r.windows[i]
}

func (m *outside) testerOptions(what string) TesterOptions {
	opt := TesterOptions{Engine: m.opt.TesterBin, NoHuge: m.opt.NoHuge}
	if m.opt.Keep != "" {
		opt.Dir = filepath.Join(m.opt.Keep, fileName(what))
	}
	return opt
}

// fileName makes "650-B-1-1" of "650 B, 1:1".
func fileName(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' {
			out = append(out, c)
		} else if len(out) > 0 && out[len(out)-1] != '-' {
			out = append(out, '-')
		}
	}
	return string(out)
}

// points measures every load of the scene at one gateway.
func (m *outside) points(ctx context.Context, d *device, r *LinkResult) error {
	s := d.scene
	if s.fill != nil {
		if err := m.fillTable(ctx, d, r); err != nil || ctx.Err() != nil {
			return err
		}
	}
	for i := range s.points {
		pt := &s.points[i]
		p := s.profile(m.opt.Profile, &m.opt, ports([]*device{d}, &m.opt),
			append(append([]tester.Stream(nil), pt.streams...), s.echo...))
		p.Run = m.plan(searchFull)
		run, err := m.run(ctx, []*device{d}, p, pt.name)
		if run != nil {
			r.Points = append(r.Points, newPoint(pt, run))
			r.hello(run.result)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
		if err := m.directions(ctx, d, pt, &r.Points[len(r.Points)-1]); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// directions measures each direction alone, roughly.
func (m *outside) directions(ctx context.Context, d *device, pt *point, to *Point) error {
	for _, one := range []struct {
		name    string
		streams []tester.Stream
		to      **LinkDirection
	}{{"uplink", pt.up, &to.Uplink}, {"downlink", pt.down, &to.Downlink}} {
		if one.streams == nil || m.opt.Quick && m.opt.Rate == 0 || len(m.opt.Steps) > 0 {
			continue
		}
		p := d.scene.profile(m.opt.Profile, &m.opt, ports([]*device{d}, &m.opt), one.streams)
		p.Run = m.plan(searchRough)
		run, err := m.run(ctx, []*device{d}, p, pt.name+", "+one.name+" alone")
		if run != nil {
			*one.to = newDirection(run, one.streams[0].Size)
			to.Accounting.add(run.account)
			to.judge(run.result)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// Thoroughness of a search.
const (
	searchFull  = iota // both goals, confirmed, with latency
	searchRough        // the paper's goal alone
)

// fixedDrain is how many seconds a packet may take before it counts as lost at a fixed rate: enough for a gateway
// that shares its CPU with others.
const fixedDrain = 5

// plan is what the tester does.
func (m *outside) plan(how int) tester.Plan {
	s := m.opt.Seconds
	plan := tester.Plan{
		Mode: tester.ModeSearch, LinkWait: 10,
		Latency:   &tester.Latency{At: []tester.Part{"10%", "50%", "90%"}, Seconds: s},
		Disturbed: &tester.Disturbs{Repeats: 3, Steal: "0.1%"},
	}
	if m.opt.Quick {
		plan.Disturbed.Repeats = 1
	}
	if m.opt.Rate > 0 {
		plan.Mode, plan.Rate, plan.Seconds, plan.Drain = tester.ModeFixed, tester.PPS(m.opt.Rate), s, fixedDrain
		if len(m.opt.Steps) > 0 {
			plan.Mode, plan.Steps, plan.Latency = tester.ModeSteps, m.opt.Steps, &tester.Latency{Seconds: 0}
		}
		if how == searchRough {
			plan.Latency = &tester.Latency{Seconds: 0}
		}
		return plan
	}
	// Every trial above the gateway's rate waits that long for packets that were dropped.
	plan.Drain = 0.2
	if m.opt.Quick {
		plan.Drain = 0.1
	}
	goal := tester.Goal{Loss: tester.Percent(m.opt.Goal)}
	plan.Search = &tester.Search{
		Goals: []tester.Goal{goal}, Width: "0.5%", Initial: s / 2, Final: s, Sum: 3 * s, Confirm: tester.Pointer(2 * s),
	}
	switch {
	case how == searchRough:
		plan.Search.Width, plan.Search.Initial, plan.Search.Final, plan.Search.Sum = "2%", s/4, s/2, s/2
		plan.Search.Confirm = tester.Pointer(0.0)
		plan.Latency = &tester.Latency{Seconds: 0}
	case m.opt.Quick:
		plan.Search.Width, plan.Search.Initial, plan.Search.Final, plan.Search.Sum = "2%", s/4, s/2, s/2
		plan.Search.Confirm = tester.Pointer(s)
		plan.Latency.Seconds = s / 2
	}
	if m.opt.Goal > 0 && how == searchFull {
		plan.Search.Goals = []tester.Goal{{Loss: "0"}, goal}
	}
	return plan
}

// settle waits until nothing moves in the gateway any more.
func (d *dataPlane) settle(ctx context.Context) (*counters, error) {
	last := uint64(0)
	for range 40 {
		c, err := d.read(ctx)
		if err != nil {
			return nil, err
		}
		sum := c.total.In + c.total.Out + c.total.Dropped
		if sum == last && c.quiet() {
			return c, nil
		}
		last = sum
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return d.read(ctx)
}

// gateway notes a gateway's greeting.
func (r *LinkResult) gateway(d *device) {
	h := d.Hello()
	r.machine(&h)
	r.Versions.DataPlane = api.CString(h.Build[:])
	r.LoadSeconds = round3(d.load.Seconds())
}

// TesterProfile is the tester's input for a profile's first load: streams, two unconnected ports "access" and "core",
// and a search for the goal. Gateways of StartGateway and other programs can be measured with it.
func TesterProfile(opt Options) (*tester.Profile, error) {
	s, err := newScene(opt, 0)
	if err != nil {
		return nil, err
	}
	nowhere := &wire{}
	p := s.profile(opt.Profile, &opt, s.ports(nowhere, nowhere), s.points[0].streams)
	m := &outside{opt: opt}
	p.Run = m.plan(searchRough)
	return p, nil
}
