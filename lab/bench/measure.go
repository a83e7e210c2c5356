// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/lab/figure"
)

// counters is what the data plane has counted at one moment.
type counters struct {
	at      time.Time
	streams map[string]api.SynthRow
	busy    uint64 // ticks
	packets uint64
	inserts uint64 // of flows
	evicted uint64
	nodes   map[string]api.NodeRow
	drops   map[string]uint64
	total   api.TotalRow
	parts   []part // of a chain, in its order; of a single gateway one
}

func newCounters() *counters {
	return &counters{streams: map[string]api.SynthRow{}, nodes: map[string]api.NodeRow{}, drops: map[string]uint64{}}
}

// add joins what another data plane has counted, but for its synth streams.
func (c *counters) add(o *counters) {
	c.at, c.busy, c.packets = o.at, c.busy+o.busy, c.packets+o.packets
	c.inserts, c.evicted = c.inserts+o.inserts, c.evicted+o.evicted
	for name, n := range o.nodes {
		sum := c.nodes[name]
		sum.Calls, sum.Packets, sum.Ticks = sum.Calls+n.Calls, sum.Packets+n.Packets, sum.Ticks+n.Ticks
		c.nodes[name] = sum
	}
	for reason, n := range o.drops {
		c.drops[reason] += n
	}
	c.total.In, c.total.Out, c.total.Punted = c.total.In+o.total.In, c.total.Out+o.total.Out,
		c.total.Punted+o.total.Punted
	c.total.Held, c.total.Dropped = c.total.Held+o.total.Held, c.total.Dropped+o.total.Dropped
	c.parts = append(c.parts, o.parts...)
}

// quiet: no packet is under way. None is held, and all that came in have gone out. A worker that the kernel interrupted
// in a walk has packets although nothing moves.
func (c *counters) quiet() bool {
	t := &c.total
	return t.Held == 0 && t.In+t.Originated == t.Out+t.Punted+t.Dropped+t.Merged
}

// missing: some stream's packets have not all come.
func (c *counters) missing() bool {
	for _, s := range c.streams {
		if s.Received < s.Offered {
			return true
		}
	}
	return false
}

func (d *dataPlane) read(ctx context.Context) (*counters, error) {
	c := newCounters()
	synth, err := dp.Table[api.SynthRow](ctx, d.Client, api.TableSynth, "", 0)
	if err != nil {
		return nil, err
	}
	c.at = time.Now()
	workers, err := dp.Table[api.WorkerRow](ctx, d.Client, api.TableWorker, "", 0)
	if err != nil {
		return nil, err
	}
	nodes, err := dp.Table[api.NodeRow](ctx, d.Client, api.TableNode, "", 0)
	if err != nil {
		return nil, err
	}
	drops, err := dp.Table[api.DropRow](ctx, d.Client, api.TableDrop, "", 0)
	if err != nil {
		return nil, err
	}
	totals, err := dp.Table[api.TotalRow](ctx, d.Client, api.TableTotal, "", 0)
	if err != nil {
		return nil, err
	}
	for i := range synth {
		c.streams[api.CString(synth[i].Name[:])] = synth[i]
	}
	for i := range workers {
		c.busy += workers[i].BusyTicks
		c.packets += workers[i].Packets
		c.inserts += workers[i].FlowInserts
		c.evicted += workers[i].FlowEvictions
	}
	for i := range nodes {
		n := c.nodes[api.CString(nodes[i].Name[:])]
		n.Calls, n.Packets, n.Ticks = n.Calls+nodes[i].Calls, n.Packets+nodes[i].Packets, n.Ticks+nodes[i].Ticks
		c.nodes[api.CString(nodes[i].Name[:])] = n
	}
	for i := range drops {
		c.drops[api.CString(drops[i].Name[:])] = drops[i].Packets
	}
	if len(totals) == 1 {
		c.total = totals[0]
	}
	return c, nil
}

// slice is one stretch of measurement.
type slice struct {
	mpps, ticks float64
	bits, wire  float64 // received by the gateway, per second: L2 with FCS, and with preamble and gap
	up, down    float64 // Mpps
}

// between computes a slice from two readings; list are the streams that ran.
func between(a, b *counters, list []*stream) slice {
	var s slice
	seconds := b.at.Sub(a.at).Seconds()
	for _, st := range list {
		n := float64(b.streams[st.name].Received - a.streams[st.name].Received)
		size := float64(st.body.Size[0]) + fcs
		s.mpps += n / seconds / 1e6
		s.bits += n * size * 8 / seconds
		s.wire += n * (size + gap) * 8 / seconds
		if st.uplink {
			s.up += n / seconds / 1e6
		} else {
			s.down += n / seconds / 1e6
		}
	}
	if packets := b.packets - a.packets; packets > 0 {
		s.ticks = float64(b.busy-a.busy) / float64(packets)
	}
	return s
}

// Spread is the median of a figure over the repetitions, and how far they lie apart.
type Spread = figure.Spread

// each are a figure's repetitions.
func each(list []slice, value func(*slice) float64) []float64 {
	v := make([]float64, len(list))
	for i := range list {
		v[i] = value(&list[i])
	}
	return v
}

func spread(list []slice, value func(*slice) float64) Spread { return figure.Of(each(list, value)...) }

// phase is what one direction, or both together, gave.
type phase struct {
	work, floor []slice
	nodes       []NodeCost
}

// NodeCost is one line of the breakdown.
type NodeCost struct {
	Name           string  `json:"name"`
	Packets        uint64  `json:"packets"`
	PacketsPerCall float64 `json:"packets_per_call"`
	TicksPerPacket float64 `json:"ticks_per_packet"` // of packets that went through the node
	Share          float64 `json:"ticks_per_received_packet"`
}

// runner measures phases on one data plane.
type runner struct {
	d        *dataPlane
	all      []*stream
	progress *progress
}

// selected returns the streams of a phase.
func selected(all []*stream, floor, uplink, downlink bool) []*stream {
	var list []*stream
	for _, s := range all {
		if s.floor == floor && !s.filler && (s.uplink && uplink || !s.uplink && downlink) {
			list = append(list, s)
		}
	}
	return list
}

// stretch runs streams for a while; counters are read after a short run-up and before they stop.
func (r *runner) stretch(ctx context.Context, list []*stream, d time.Duration) (s slice, a, b *counters, err error) {
	if err = r.d.run(ctx, list, true); err != nil {
		return
	}
	defer func() {
		if stop := r.d.run(ctx, list, false); err == nil {
			err = stop
		}
	}()
	if err = r.progress.sleep(ctx, min(d/5, 100*time.Millisecond)); err != nil {
		return
	}
	if a, err = r.d.read(ctx); err != nil {
		return
	}
	if err = r.progress.sleep(ctx, d); err != nil {
		return
	}
	if b, err = r.d.read(ctx); err != nil {
		return
	}
	return between(a, b, list), a, b, nil
}

// measure alternates the port floor and the gateway's work, so that both see the same disturbances.
func (r *runner) measure(ctx context.Context, uplink, downlink bool, seconds float64) (*phase, error) {
	work, floor := selected(r.all, false, uplink, downlink), selected(r.all, true, uplink, downlink)
	repetitions := 3
	if seconds >= 3 {
		repetitions = 5
	}
	part := time.Duration(seconds / float64(repetitions) * float64(time.Second))
	p := &phase{}
	total := map[string]api.NodeRow{}
	packets := uint64(0)
	for range repetitions {
		f, _, _, err := r.stretch(ctx, floor, part/4)
		if err != nil {
			return nil, err
		}
		w, a, b, err := r.stretch(ctx, work, part-part/4)
		if err != nil {
			return nil, err
		}
		p.floor, p.work = append(p.floor, f), append(p.work, w)
		packets += b.packets - a.packets
		for name, n := range b.nodes {
			t, before := total[name], a.nodes[name]
			t.Calls, t.Packets, t.Ticks = t.Calls+n.Calls-before.Calls, t.Packets+n.Packets-before.Packets,
				t.Ticks+n.Ticks-before.Ticks
			total[name] = t
		}
	}
	p.nodes = breakdown(total, packets)
	return p, nil
}

// breakdown lists the nodes that saw packets, dearest first.
func breakdown(total map[string]api.NodeRow, packets uint64) []NodeCost {
	var list []NodeCost
	for name, n := range total {
		if n.Packets == 0 || n.Calls == 0 || packets == 0 {
			continue
		}
		list = append(list, NodeCost{
			Name: name, Packets: n.Packets, PacketsPerCall: round1(float64(n.Packets) / float64(n.Calls)),
			TicksPerPacket: round1(float64(n.Ticks) / float64(n.Packets)),
			Share:          round1(float64(n.Ticks) / float64(packets)),
		})
	}
	slices.SortFunc(list, func(a, b NodeCost) int {
		switch {
		case a.Share != b.Share:
			if a.Share > b.Share {
				return -1
			}
			return 1
		case a.Name < b.Name:
			return -1
		}
		return 1
	})
	return list
}

// checkResult is the outcome of comparing packets.
type checkResult struct {
	offered, received, checked, wrong, lost uint64
	dropped                                 map[string]uint64
	example                                 string // the first wrong frame
}

// add joins the outcome of another stretch.
func (c *checkResult) add(o checkResult) {
	c.offered, c.received, c.lost = c.offered+o.offered, c.received+o.received, c.lost+o.lost
	c.checked, c.wrong = c.checked+o.checked, c.wrong+o.wrong
	if c.dropped == nil {
		c.dropped = map[string]uint64{}
	}
	for reason, n := range o.dropped {
		c.dropped[reason] += n
	}
	if c.example == "" {
		c.example = o.example
	}
}

// settle waits until nothing moves: what was held has left. A worker that the kernel interrupted while it made packets
// has counted them as offered and not yet as received by a node. Where some are missing, it gets more time.
func (r *runner) settle(ctx context.Context) (*counters, error) {
	last, calm := uint64(0), 0
	for range 40 {
		c, err := r.d.read(ctx)
		if err != nil {
			return nil, err
		}
		sum := c.total.In + c.total.Out + c.total.Dropped
		if sum == last && c.quiet() {
			calm++
		} else {
			calm = 0
		}
		if calm > 0 && !c.missing() || calm >= 20 {
			return c, nil
		}
		last = sum
		if err := r.progress.sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return r.d.read(ctx)
}

// verdict compares two settled readings.
func (r *runner) verdict(a, b *counters) checkResult {
	c := checkResult{dropped: map[string]uint64{}}
	for _, s := range r.all {
		x, y := a.streams[s.name], b.streams[s.name]
		c.offered += y.Offered - x.Offered
		c.received += y.Received - x.Received
		c.checked += y.Checked - x.Checked
		if wrong := y.Wrong - x.Wrong; wrong > 0 {
			c.wrong += wrong
			if c.example == "" {
				c.example = fmt.Sprintf("stream %s, first difference at byte %d of %d:\n  %x", s.name, y.WrongOffset,
					y.WrongLength,
					y.WrongFrame[:min(int(y.WrongLength), len(y.WrongFrame))])
			}
		}
	}
	if c.offered > c.received {
		c.lost = c.offered - c.received
	}
	for reason, n := range b.drops {
		if n > a.drops[reason] {
			c.dropped[reason] = n - a.drops[reason]
		}
	}
	return c
}
