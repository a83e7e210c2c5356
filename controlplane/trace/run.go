// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
)

const (
	pollEvery = 25 * time.Millisecond
	silence   = time.Second // a packet of which nothing is heard is held, or on its way
)

// State is how a trace stands.
type State struct {
	Ended   string `json:"ended,omitempty"` // why; empty: it runs
	Packets uint64 `json:"packets"`         // followed
	Missed  uint64 `json:"missed"`          // chosen and not followed: more than the rate
	Lost    uint64 `json:"lost"`            // rows for which there was no room
	Hz      uint64 `json:"tsc_hz"`
}

// Update is what a running trace gives now and then: packets, and how it stands.
type Update struct {
	Packets []Packet `json:"packets,omitempty"`
	State   State    `json:"state"`
}

var ends = map[uint32]string{api.TraceEndTime: "time", api.TraceEndPackets: "count", api.TraceEndStopped: "stopped"}

// Run follows packets until the trace ends, ctx ends (which is no error) or give fails. Each update goes to give.
func Run(ctx context.Context, c *dp.Client, o *dp.TraceOrder, q *Query, give func(Update) error) error {
	s, err := c.Trace(ctx, o)
	if err != nil {
		return err
	}
	r := &run{c: c, q: q, number: s.Trace, give: give}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			done, err := r.poll(ctx, false)
			if err != nil {
				r.stop()
				return err
			}
			if done {
				return nil
			}
		case <-ctx.Done():
			r.stop()
			return nil
		}
	}
}

type run struct {
	c      *dp.Client
	q      *Query
	number uint32
	give   func(Update) error
	a      Assembler
	given  uint32
	last   time.Time
	quiet  int // polls without rows
}

// stop ends the trace, whatever became of the client's context.
func (r *run) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r.c.PollTrace(ctx, r.number, true)
}

// answered: the packet itself was lost, and what went on is the ICMP error about it.
func (p *Packet) answered() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Node == "icmp-error" })
}

// chosen leaves out what the query does not ask for, and says when it has all.
func (r *run) chosen(packets []Packet) (kept []Packet, all bool) {
	for _, p := range packets {
		dropped := p.Outcome == "dropped" || p.answered()
		if r.q.Drop != "" && (!dropped || r.q.Drop != "any" && r.q.Drop != p.Reason) {
			continue
		}
		kept = append(kept, p)
		r.given++
		if r.q.UntilDrop && dropped || r.q.Count != 0 && r.given == r.q.Count {
			return kept, true
		}
	}
	return kept, false
}

// over: nothing more will be heard.
func (r *run) over(s *api.TraceState) bool {
	switch {
	case s.End == api.TraceEndTime || s.End == api.TraceEndStopped:
		return true
	case r.q.Hypothetical != nil: // silence is no end of it: its worker may wait for a CPU
		return r.quiet >= 4 && r.given > 0 && !r.a.Waits()
	}
	// Of a packet whose first row was lost nothing more will be heard.
	return s.End == api.TraceEndPackets && r.quiet >= int(2*silence/pollEvery)
}

func (r *run) poll(ctx context.Context, stop bool) (done bool, err error) {
	rows, s, err := r.c.PollTrace(ctx, r.number, stop)
	if err != nil {
		return false, err
	}
	now := time.Now()
	r.a.Add(rows, now)
	r.quiet++
	if len(rows) > 0 {
		r.quiet = 0
	}
	state := State{Packets: s.Packets, Missed: s.Missed, Lost: s.Lost + r.a.Lost, Hz: s.TSCHz}
	wait := silence
	over := r.over(&s)
	if over {
		wait, now = 0, now.Add(time.Nanosecond)
	}
	if r.q.Hypothetical != nil && !over {
		wait = time.Hour // the trace ends before
	}
	packets, all := r.chosen(r.a.Take(now, wait))
	switch {
	case all:
		state.Ended = "count"
	case over && r.q.Hypothetical != nil:
		state.Ended = "count"
	case over:
		state.Ended = ends[s.End]
	}
	if state.Ended != "" && s.End != api.TraceEndTime && s.End != api.TraceEndStopped {
		r.stop()
	}
	if len(packets) == 0 && state.Ended == "" && now.Sub(r.last) < time.Second {
		return false, nil
	}
	r.last = now
	return state.Ended != "", r.give(Update{Packets: packets, State: state})
}
