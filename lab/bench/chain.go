// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/lab/figure"
)

// Chains: several data planes in a row, with the tester at both ends. A fabric joins them: memif (direct attachment),
// or a program that relays.

// chain is a scene's functions from the access side to the core side.
type chain struct {
	functions []chainFunction
	fabric    string // SwitchNone, …
}

// chainFunction is one data plane of a chain.
type chainFunction struct {
	name   string
	cpus   []int                                         // of its workers; nil: not pinned
	config func(access, core *wire) []byte               // at the links on both its sides
	load   func(ctx context.Context, d *dataPlane) error // what is not in the configuration
}

// relay is a program between functions whose CPU time counts, too.
type relay interface {
	name() string
	pids() []int
	cores() int                                // busy whatever the load
	drops(ctx context.Context) (uint64, error) // packets, since it began
}

// fabric makes the links of a chain. Names are unique in a run and at most 6 bytes long.
type fabric interface {
	// edge is a link between a function and the tester.
	edge(ctx context.Context, name string) (*wire, error)
	// joint is a link between two functions: the near one has it on its core side, the far one on its access side.
	joint(ctx context.Context, name string) (near, far *wire, err error)
	// ready is called when every function has its ports.
	ready(ctx context.Context) error
	relays() []relay
	remove()
}

// fabrics by the word of --switch.
var fabrics = map[string]func(ctx context.Context, m *outside) (fabric, error){
	SwitchNone: func(_ context.Context, m *outside) (fabric, error) { return &direct{m}, nil },
	SwitchOVS:  startOVS,
}

// SwitchNone is direct attachment: memif or share from function to function.
const SwitchNone = "none"

// direct joins functions by links of the tester's kind.
type direct struct{ m *outside }

func (f *direct) edge(ctx context.Context, name string) (*wire, error) {
	return makeWire(ctx, f.m.opt.Link, f.m.dir, name)
}

// joint: the near function listens, and both ends copy (share: the sender). A zero-copy client suits programs that take
// no more memory once they run. DPDK 22.11's driver closes the heap's own descriptors with a connection, and a gateway
// that grows afterwards has none left.
func (f *direct) joint(_ context.Context, name string) (near, far *wire, err error) {
	socket := filepath.Join(f.m.dir, name+".sock")
	line := func(role string) *wire {
		return &wire{gateway: sharedPort(f.m.opt.Link, socket, role), socket: socket, remove: func() {}}
	}
	return line("server"), line("client"), nil
}

func (f *direct) ready(context.Context) error { return nil }
func (f *direct) relays() []relay             { return nil }
func (f *direct) remove()                     {}

// startChain runs the scene's functions and the links between them.
func (m *outside) startChain(ctx context.Context, s *scene, prefix string) (running *device, err error) {
	make, known := fabrics[s.chain.fabric]
	if !known {
		return nil, fmt.Errorf("no switch %q; there is %s", s.chain.fabric, strings.Join(SwitchNames(), ", "))
	}
	d := &device{scene: s, prefix: prefix, workers: m.opt.Workers}
	defer func() {
		if err != nil {
			d.stop()
		}
	}()
	f, err := make(ctx, m)
	if err != nil {
		return nil, err
	}
	d.unlink, d.relays = append(d.unlink, f.remove), f.relays()
	if d.access, err = f.edge(ctx, prefix+"a"); err != nil {
		return nil, err
	}
	d.unlink = append(d.unlink, d.access.remove)
	if d.core, err = f.edge(ctx, prefix+"c"); err != nil {
		return nil, err
	}
	d.unlink = append(d.unlink, d.core.remove)
	began, left := time.Now(), d.access
	for i := range s.chain.functions {
		right, next := d.core, (*wire)(nil)
		if i+1 < len(s.chain.functions) {
			if right, next, err = f.joint(ctx, prefix+"j"+strconv.Itoa(i)); err != nil {
				return nil, err
			}
			d.unlink = append(d.unlink, right.remove, next.remove)
		}
		if err = m.startStage(ctx, d, &s.chain.functions[i], left, right); err != nil {
			return nil, err
		}
		left = next
	}
	if err = f.ready(ctx); err != nil {
		return nil, err
	}
	d.load = time.Since(began)
	return d, nil
}

// startStage runs one function and brings its state into it.
func (m *outside) startStage(ctx context.Context, d *device, f *chainFunction, left, right *wire) error {
	text := f.config(left, right)
	plan, err := plan.Make(f.name, text)
	if err != nil {
		return err
	}
	if m.opt.Keep != "" {
		if err := keep(m.opt.Keep, d.prefix+f.name+".yaml", text); err != nil {
			return err
		}
	}
	one, err := start(ctx, m.opt.DPBinary, plan, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	if d.dataPlane == nil {
		d.dataPlane, d.text = one, text
	} else {
		d.rest = append(d.rest, one)
	}
	if err = one.Apply(ctx, plan.Changes()); err == nil {
		err = f.load(ctx, one)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, one.explain(err))
	}
	return nil
}

// configurations are those of all functions, one document each, joined directly.
func (c *chain) configurations(at func(name, role string) *wire) []byte {
	var all []byte
	left := at("access", "server")
	for i := range c.functions {
		f := &c.functions[i]
		right, next := at("core", "server"), (*wire)(nil)
		if i+1 < len(c.functions) {
			joint := f.name + "-" + c.functions[i+1].name
			right, next = at(joint, "server"), at(joint, "client")
		}
		if len(c.functions) > 1 {
			all = append(all, "---\n# "+f.name+"\n"...)
		}
		all = append(all, f.config(left, right)...)
		left = next
	}
	return all
}

// SwitchNames are what --switch takes.
func SwitchNames() []string {
	return slices.Sorted(maps.Keys(fabrics))
}

// part is what one function, or one program between functions, has done until a moment.
type part struct {
	name     string
	at       time.Time
	busy     uint64 // ticks of its workers
	packets  uint64
	cpu      time.Duration // of the process, user and system
	tscHz    uint64
	cpus     []int
	reserved int // CPUs that it takes for itself: its workers
	relay    bool
}

// read counts all of a chain; of a single gateway, just that.
func (d *device) read(ctx context.Context) (*counters, error) {
	if d.scene == nil || d.scene.chain == nil {
		return d.dataPlane.read(ctx)
	}
	sum := newCounters()
	for i, one := range d.all() {
		c, err := one.read(ctx)
		if err != nil {
			return nil, err
		}
		f := &d.scene.chain.functions[i]
		h := one.Hello()
		c.parts = []part{{f.name, c.at, c.busy, c.packets, processTime(one.cmd.Process.Pid), h.TSCHz, f.cpus, d.workers,
			false}}
		sum.add(c)
	}
	for _, r := range d.relays {
		p := part{name: r.name(), at: time.Now(), reserved: r.cores(), relay: true}
		for _, pid := range r.pids() {
			p.cpu += processTime(pid)
		}
		sum.parts = append(sum.parts, p)
	}
	return sum, nil
}

// settle waits until nothing moves in any of the chain.
func (d *device) settle(ctx context.Context) (*counters, error) {
	if d.scene == nil || d.scene.chain == nil {
		return d.dataPlane.settle(ctx)
	}
	for _, one := range d.all() {
		if _, err := one.settle(ctx); err != nil {
			return nil, err
		}
	}
	sum, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range d.relays {
		n, err := r.drops(ctx)
		if err != nil {
			return nil, err
		}
		sum.drops[r.name()] += n
	}
	return sum, nil
}

// explain adds the last output of a function that died.
func (d *device) explain(err error) error {
	if err == nil {
		return nil
	}
	for _, one := range d.all() {
		if e := one.explain(err); !errors.Is(e, err) || e.Error() != err.Error() {
			return e
		}
	}
	return err
}

// processTime is a process's CPU time so far, in steps of the kernel's 10 ms; 0 when it is gone.
func processTime(pid int) time.Duration {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, text, found := strings.Cut(string(data), ") ") // the name before it may hold anything
	fields := strings.Fields(text)
	if !found || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseUint(fields[11], 10, 64)
	system, _ := strconv.ParseUint(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ is 100 for every process on Linux
}

// FunctionLoad is one function's part of a trial.
type FunctionLoad struct {
	Name           string        `json:"name"`
	Relay          bool          `json:"relay,omitempty"` // a switch between functions, none of ours
	CPUs           []int         `json:"cpus"`
	Reserved       int           `json:"reserved_cores"` // poll mode: its workers keep them at any load
	Mpps           figure.Number `json:"mpps"`
	TicksPerPacket figure.Number `json:"ticks_per_packet"`
	// of its workers' time, walks that found packets; stolen time counts
	BusyCores figure.Number `json:"busy_cores"`
	CPUCores  figure.Number `json:"cpu_cores"`  // CPU time of the whole process by time passed; polling counts
	LoadCores figure.Number `json:"load_cores"` // the lower of the two: the work is less than either
}

// functions are the loads between a window's readings.
func (w *window) functions() []FunctionLoad {
	if w.a == nil || w.b == nil || len(w.a.parts) != len(w.b.parts) {
		return nil
	}
	var list []FunctionLoad
	for i := range w.b.parts {
		a, b := &w.a.parts[i], &w.b.parts[i]
		seconds := b.at.Sub(a.at).Seconds()
		if seconds <= 0 {
			continue
		}
		f := FunctionLoad{Name: b.name, Relay: b.relay, CPUs: b.cpus, Reserved: b.reserved,
			CPUCores: figure.Rounded((b.cpu-a.cpu).Seconds()/seconds, 6)}
		if packets := b.packets - a.packets; packets > 0 && b.tscHz > 0 {
			f.Mpps = figure.Rounded(float64(packets)/seconds/1e6, 6)
			f.TicksPerPacket = figure.Rounded(float64(b.busy-a.busy)/float64(packets), 1)
			f.BusyCores = figure.Rounded(float64(b.busy-a.busy)/seconds/float64(b.tscHz), 6)
		}
		if f.LoadCores = f.CPUCores; !f.Relay { // what a relay does is known by its CPU time alone
			f.LoadCores = min(f.BusyCores, f.CPUCores)
		}
		list = append(list, f)
	}
	return list
}
