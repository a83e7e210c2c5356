// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"math"
	"sync"

	"isthmus/api"
	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// gauge reads the gateways' counters as the tester's trials begin and end.
type gauge struct {
	devices []*device
	ctx     context.Context
	mu      sync.Mutex
	pending *counters
	trials  []window // in the order of the tester's trials
	err     error    // the first that a reading gave
}

// window is a gateway's counts around one trial. The tester does not wait for the readings, so a few packets at both
// ends may lie outside. Ratios are unaffected; sums are of the whole run.
type window struct {
	a, b *counters // nil when they could not be read
}

// trial is that one begins, or has ended.
func (g *gauge) trial(ended bool) {
	c, err := g.read()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && g.err == nil {
		g.err = err
	}
	if !ended {
		g.pending = c
		return
	}
	g.trials = append(g.trials, window{g.pending, c})
	g.pending = nil
}

func (g *gauge) read() (*counters, error) {
	sum := newCounters()
	for _, d := range g.devices {
		c, err := d.read(g.ctx)
		if err != nil {
			return nil, d.explain(err)
		}
		sum.add(c)
	}
	return sum, nil
}

// cost is busy worker ticks per packet that the gateway received, and packets; zeros where nothing could be read.
func (w *window) cost() (ticks float64, packets uint64) {
	if w.a == nil || w.b == nil || w.b.packets <= w.a.packets {
		return 0, 0
	}
	packets = w.b.packets - w.a.packets
	return float64(w.b.busy-w.a.busy) / float64(packets), packets
}

// near is how far a trial's rate may be from another's for its cost to be compared with it.
const near = 0.05

// cost is the busy ticks for a packet in the run's representative trial, and the spread over trials at nearly its rate.
func (r *linkRun) cost(standing int) Spread {
	w := r.window(standing)
	ticks, _ := w.cost()
	if ticks == 0 {
		return Spread{}
	}
	all := figure.Of(ticks)
	for i := range r.result.Trials {
		t := &r.result.Trials[i]
		other := r.window(i)
		ticks, _ := other.cost()
		if i != standing && t.Used && ticks > 0 &&
			math.Abs(t.RatePPS/r.result.Trials[standing].RatePPS-1) < near &&
			(t.Purpose == tester.PurposeSearch || t.Purpose == tester.PurposeConfirm ||
				t.Purpose == tester.PurposeFixed) {
			all = all.With(ticks)
		}
	}
	all.Median = ticks
	return all.Rounded(round1)
}

// nodes is the breakdown of a window.
func (w *window) nodes() []NodeCost {
	if w.a == nil || w.b == nil {
		return nil
	}
	total := map[string]api.NodeRow{}
	for name, n := range w.b.nodes {
		before := w.a.nodes[name]
		n.Calls, n.Packets, n.Ticks = n.Calls-before.Calls, n.Packets-before.Packets, n.Ticks-before.Ticks
		total[name] = n
	}
	return breakdown(total, w.b.packets-w.a.packets)
}

// dropped are the drops between two readings by reason.
func dropped(a, b *counters) map[string]uint64 {
	list := map[string]uint64{}
	if a == nil || b == nil {
		return list
	}
	for reason, n := range b.drops {
		if n > a.drops[reason] {
			list[reason] = n - a.drops[reason]
		}
	}
	return list
}

// Accounting is the fate of every packet of a run: sent = received + late + refused + dropped + missing.
type Accounting struct {
	Sent     uint64            `json:"sent"`
	Received uint64            `json:"received"`
	Late     uint64            `json:"late"`    // came after their trial had been given up: lost for it, and yet there
	Refused  uint64            `json:"refused"` // at the gateway's door: its receive queue was full, or the link is down
	Dropped  map[string]uint64 `json:"dropped"` // by the gateway, with its reason
	Missing  int64             `json:"missing"` // below 0: more drops than losses (not the tester's packets)
	In       uint64            `json:"gateway_in"`
	Out      uint64            `json:"gateway_out"`
	Punted   uint64            `json:"gateway_punted"`
	Held     uint64            `json:"gateway_held"`
	Other    uint64            `json:"other"` // frames that the tester received and are no packets of its streams
}

// account sums up a whole run between two settled readings.
func account(r *tester.Result, a, b *counters) Accounting {
	t := Accounting{Dropped: dropped(a, b)}
	for i := range r.Trials {
		trial := &r.Trials[i]
		t.Sent, t.Received, t.Refused = t.Sent+trial.Sent, t.Received+trial.Received, t.Refused+trial.Refused()
		t.Late, t.Other = t.Late+trial.Stray, t.Other+trial.Foreign+trial.Control
	}
	t.Missing = int64(t.Sent) - int64(t.Received) - int64(t.Late) - int64(t.Refused)
	for _, n := range t.Dropped {
		t.Missing -= int64(n)
	}
	if a != nil && b != nil {
		t.In, t.Out, t.Punted = b.total.In-a.total.In, b.total.Out-a.total.Out, b.total.Punted-a.total.Punted
		t.Held = b.total.Held
	}
	return t
}

// add joins the account of another run.
func (t *Accounting) add(o Accounting) {
	t.Sent, t.Received, t.Refused, t.Missing = t.Sent+o.Sent, t.Received+o.Received, t.Refused+o.Refused,
		t.Missing+o.Missing
	t.In, t.Out, t.Punted, t.Held, t.Other = t.In+o.In, t.Out+o.Out, t.Punted+o.Punted, t.Held+o.Held, t.Other+o.Other
	t.Late += o.Late
	if t.Dropped == nil {
		t.Dropped = map[string]uint64{}
	}
	for reason, n := range o.Dropped {
		t.Dropped[reason] += n
	}
}
