// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"isthmus/api"
	"isthmus/lab/figure"
)

// Cost is a rate, and what each packet costs at it: busy ticks of the gateway's workers.
type Cost struct {
	Mpps                figure.Number `json:"mpps"`
	TicksPerPacket      figure.Number `json:"ticks_per_packet"`
	FloorTicksPerPacket figure.Number `json:"floor_ticks_per_packet"` // of the ports alone
	OwnTicksPerPacket   figure.Number `json:"own_ticks_per_packet"`   // what is above the floor; null: not resolved
}

// Spreads are those of repetitions.
type Spreads struct {
	Mpps  Spread            `json:"mpps"`
	Ticks Spread            `json:"ticks_per_packet"`
	Floor Spread            `json:"floor_ticks_per_packet"`
	Own   figure.Difference `json:"own_ticks_per_packet"` // of pairs, each measured next to each other
}

// cost is the median of each.
func (s *Spreads) cost() Cost {
	return Cost{figure.Number(s.Mpps.Median), figure.Number(s.Ticks.Median), figure.Number(s.Floor.Median),
		s.Own.Number()}
}

// Proof is how many packets were compared with the expected ones, and the result.
type Proof struct {
	Checked   uint64 `json:"checked"`
	Decoded   uint64 `json:"decoded"` // of them also by the decoder that the gateway does not share
	Wrong     uint64 `json:"wrong"`
	Duplicate uint64 `json:"duplicate"`
	Reordered uint64 `json:"reordered"`
}

// Add adds another measurement's.
func (p *Proof) Add(more Proof) {
	p.Checked, p.Decoded, p.Wrong = p.Checked+more.Checked, p.Decoded+more.Decoded, p.Wrong+more.Wrong
	p.Duplicate, p.Reordered = p.Duplicate+more.Duplicate, p.Reordered+more.Reordered
}

// Common is what results have in common, wherever the packets came from.
type Common struct {
	Profile     string            `json:"profile"`
	Link        string            `json:"link"`
	Workers     int               `json:"workers"`
	Seconds     float64           `json:"seconds"` // of a trial; synth: of each direction
	Cost                          // at the loss goal, both directions together
	GbpsL2      figure.Number     `json:"gbps_l2"`
	GbpsL1      figure.Number     `json:"gbps_l1"`
	LossRatio   *float64          `json:"loss_ratio"`
	TSCHz       figure.Number     `json:"tsc_hz"`
	Offered     uint64            `json:"offered"`
	Received    uint64            `json:"received"`
	Dropped     map[string]uint64 `json:"dropped"`
	Checked     uint64            `json:"checked"` // packets compared with what must arrive
	Wrong       uint64            `json:"wrong"`
	Subscribers int               `json:"subscribers"`
	Flows       int               `json:"flows"`
	Rules       int               `json:"downlink_rules"`
	Blocklist   int               `json:"uplink_rules"`
	LoadSeconds float64           `json:"load_seconds"` // to bring the whole state into the data plane
	CPU         string            `json:"cpu"`
	CPUs        []int             `json:"cpus"` // of the workers; null: not pinned
	HugePages   bool              `json:"huge_pages"`
	StealRatio  float64           `json:"steal_ratio"` // synth: of the whole run; else of the worst trial
	Command     string            `json:"command"`
	PaperMpps   figure.Number     `json:"paper_mpps_per_core"` // null: the paper has no such figure
	PaperCycles figure.Number     `json:"paper_cycles_per_packet"`
}

// machine notes a data plane's environment.
func (c *Common) machine(h *hello) {
	c.TSCHz, c.CPU, c.HugePages = figure.Number(h.TSCHz), api.CString(h.CPU[:]), h.Flags&api.HelloHuge != 0
}
