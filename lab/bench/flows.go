// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"isthmus/lab/figure"
)

// Of flow profiles only: the phase in which every packet is the first of its flow, and the floor that memory sets.

// Fill is the phase in which the flow table fills: each flow sends one packet, in turn, and misses.
type Fill struct {
	Packets          uint64  `json:"packets"`
	Lost             uint64  `json:"lost"`
	Seconds          float64 `json:"seconds"`
	Cost                     // of one pair, the floor's flows in turn, too
	FlowInserts      uint64  `json:"flow_inserts"`
	InsertsPerSecond float64 `json:"inserts_per_second"` // of a worker's busy time
	SteadyInserts    uint64  `json:"steady_inserts"`     // later, while known flows were measured
	Evictions        uint64  `json:"flow_evictions"`     // of the whole run
}

// MemoryFloor is the cost of a random read-modify-write of a 64-byte line, with as many in progress as the CPU takes,
// over as many lines as flows. Measured on a worker's CPU before the data plane starts and after it has ended.
type MemoryFloor struct {
	Bytes     uint64 `json:"bytes"`
	HugePages bool   `json:"huge_pages"`
	Ticks     Spread `json:"ticks_per_access"`
}

// fillTime is how long one of its stretches may take.
const fillTime = 5 * time.Minute

// fill sends each flow's first packet: over the floor's ports, then through the function.
func (r *runner) fill(ctx context.Context, m *measurement) error {
	list, err := m.layout.streams(m.profile, m.profile.UplinkShare, checkEvery)
	if err != nil {
		return err
	}
	for _, s := range list {
		s.body.RandomOrder, s.body.Limit = 0,
			uint64(s.body.Flows)*uint64(m.options.Workers) // each worker goes through all, for its own
	}
	old := r.all
	r.all = list
	if err := r.d.replace(ctx, old, list); err != nil {
		return err
	}
	floor, _, _, err := r.untilSent(ctx, selected(list, true, true, true))
	if err != nil {
		return err
	}
	work, a, b, err := r.untilSent(ctx, selected(list, false, true, true))
	if err != nil {
		return err
	}
	m.load.add(r.verdict(a, b))
	f := &Fill{
		Packets: b.packets - a.packets, Seconds: round3(b.at.Sub(a.at).Seconds()),
		Cost: Cost{
			Mpps: figure.Rounded(work.mpps, 3), TicksPerPacket: figure.Rounded(work.ticks, 1),
			FloorTicksPerPacket: figure.Rounded(floor.ticks, 1),
			OwnTicksPerPacket: figure.Pairs([]float64{work.ticks},
				[]float64{floor.ticks}).Rounded(round1).Number(),
		},
		FlowInserts: b.inserts - a.inserts, Lost: m.load.lost,
	}
	if busy := float64(b.busy-a.busy) / float64(m.hello.TSCHz); busy > 0 {
		f.InsertsPerSecond = round1(float64(f.FlowInserts) / busy)
	}
	m.fill = f
	return nil
}

// untilSent runs streams that have a limit until they have reached it.
func (r *runner) untilSent(ctx context.Context, list []*stream) (s slice, a, b *counters, err error) {
	if a, err = r.settle(ctx); err != nil {
		return
	}
	began := time.Now()
	if err = r.d.run(ctx, list, true); err != nil {
		return
	}
	for {
		if b, err = r.d.read(ctx); err != nil {
			return
		}
		if !slices.ContainsFunc(list,
			func(s *stream) bool { return b.streams[s.name].Offered < s.body.Limit }) {
			break
		}
		if time.Since(began) > fillTime {
			err = fmt.Errorf("the first packets of %s's flows were not sent in %s", list[0].name, fillTime)
			return
		}
		if err = r.progress.sleep(ctx, 5*time.Millisecond); err != nil {
			return
		}
	}
	took := b.at
	if err = r.d.run(ctx, list, false); err != nil {
		return
	}
	if b, err = r.settle(ctx); err != nil {
		return
	}
	a.at, b.at = began, took
	return between(a, b, list), a, b, nil
}

// memory measures the floor that memory gives, as a part of a run.
type memory struct {
	lines []line
	huge  bool
	nanos []slice // ticks hold nanoseconds
}

type line [8]uint64

// newMemory takes room for as many lines, in huge pages where the data plane may have them and they are free.
func newMemory(lines int, huge bool) (*memory, error) {
	const page = 2 << 20
	length := (lines*int(unsafe.Sizeof(line{})) + page - 1) / page * page
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	m := &memory{huge: huge}
	var room []byte
	err := errors.New("no huge pages are wanted")
	if huge {
		room, err = unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_HUGETLB)
	}
	if err != nil {
		m.huge = false
		if room, err = unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, flags); err != nil {
			return nil, fmt.Errorf("%d bytes for the memory floor: %w", length, err)
		}
	}
	m.lines = unsafe.Slice((*line)(unsafe.Pointer(&room[0])), lines)
	return m, nil
}

func (m *memory) free() {
	size := int(unsafe.Sizeof(line{}))
	unix.MunmapPtr(unsafe.Pointer(&m.lines[0]), uintptr((len(m.lines)*size+(2<<20)-1)/(2<<20)*(2<<20)))
}

// measure touches lines at random on one of the CPUs given (none: anywhere), in three stretches.
func (m *memory) measure(cpus []int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if len(cpus) > 0 {
		var before, one unix.CPUSet
		one.Set(cpus[0])
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		defer unix.SchedSetaffinity(0, &before)
	}
	const accesses = 1 << 21
	x := touch(m.lines, min(len(m.lines), accesses), 1) // warm
	for range 3 {
		var a, b unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &a); err != nil {
			return err
		}
		x = touch(m.lines, accesses, x)
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &b); err != nil {
			return err
		}
		m.nanos = append(m.nanos, slice{ticks: float64(b.Nano()-a.Nano()) / accesses})
	}
	return nil
}

// touch changes lines in random order. No access waits for another one, so the CPU has as many under way as it can.
func touch(lines []line, n int, x uint64) uint64 {
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
		l := &lines[(x>>32)*uint64(len(lines))>>32]
		l[0] += x
		l[7] ^= x
	}
	return x
}

func (m *memory) result(tscHz figure.Number) *MemoryFloor {
	ticks := spread(m.nanos, func(s *slice) float64 { return s.ticks * float64(tscHz) / 1e9 })
	return &MemoryFloor{Bytes: uint64(len(m.lines)) * uint64(unsafe.Sizeof(line{})), HugePages: m.huge,
		Ticks: ticks.Rounded(round1)}
}

// printFlows writes what flow profiles have beside the rest.
func (r *Result) printFlows(w io.Writer) error {
	f, m := r.Fill, r.MemoryFloor
	if f == nil || m == nil {
		return nil
	}
	known := r.Spread.Ticks.Median
	fmt.Fprintln(w)
	cells := [][]string{
		{"table-fill, every packet a miss", f2(f.Mpps), f1(f.TicksPerPacket), f1(f.FloorTicksPerPacket),
			unresolved(f.OwnTicksPerPacket), fmt.Sprint(f.Lost), "",
			fmt.Sprint(f.FlowInserts)},
		{"steady, flows known", f2(r.Mpps), f1(known), f1(r.FloorTicksPerPacket),
			unresolved(r.OwnTicksPerPacket),
			fmt.Sprint(r.Offered - min(r.Received, r.Offered) - f.Lost),
			unknown(float64(r.OwnTicksPerPacket)/max(m.Ticks.Median, 0.1),
				f2), fmt.Sprint(f.SteadyInserts)},
		{"one random 64 B read-modify-write", "", "", f1(m.Ticks.Median), "", "", "", ""},
	}
	titles := []string{"PHASE, BOTH WAYS", "MPPS", "TICKS: TOTAL", "FLOOR", "OWN", "LOST", "OWN/MEMORY",
		"FLOWS INSERTED"}
	if err := writeTable(w, 1, titles, cells); err != nil {
		return err
	}
	pages := "4 KiB pages"
	if m.HugePages {
		pages = "huge pages"
	}
	_, err := fmt.Fprintf(w,
		"memory: %s MiB, a line for each of %d flows, %s, %.1f to %.1f ticks; %.2f M flows inserted a second of a "+
			"worker; %d evicted\n",
		f1(float64(m.Bytes)/(1<<20)), r.Flows, pages, m.Ticks.Min, m.Ticks.Max, f.InsertsPerSecond/1e6,
		f.Evictions)
	return err
}

// flowMemory takes the memory of a layout's flows, and measures it for the first time.
func flowMemory(l fixture, opt *Options) (*memory, error) {
	r := &Result{}
	l.describe(r)
	m, err := newMemory(r.Flows, !opt.NoHuge)
	if err != nil {
		return nil, err
	}
	if err := m.measure(opt.CPUs); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}
