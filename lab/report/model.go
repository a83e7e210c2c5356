// SPDX-License-Identifier: Apache-2.0

// Package report turns the results of benchmarks into one self-contained HTML page, the same tables as text, and
// data.json, from which both can be made again.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"

	"isthmus/lab/bench"
	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// Schema is the version of data.json. It changes when a field gets another meaning.
const Schema = 1

// Names of the two files in a report's folder.
const (
	PageFile = "index.html"
	DataFile = "data.json"
)

// Report is everything that the page shows. Rates are in Mpps (10^6 packets a second, of both directions together
// unless said otherwise) as received. Gb/s are 10^9 bits a second; times are in seconds, latencies in microseconds;
// ratios are of 1.
type Report struct {
	Schema        int     `json:"schema"`
	Title         string  `json:"title"`
	Fixture       string  `json:"fixture,omitempty"` // not empty: invented, which the page states
	Started       string  `json:"started"`           // RFC 3339
	Seconds       float64 `json:"seconds"`
	BudgetSeconds float64 `json:"budget_seconds"`
	Quick         bool    `json:"quick"`
	Complete      bool    `json:"complete"` // every part ran to its end
	Interrupted   bool    `json:"interrupted"`
	LossTarget    float64 `json:"loss_target"` // of the headline: 0.00001 is 0.001 %

	Missing  []Missing `json:"missing"` // what was meant to be measured and was not
	Notes    []Note    `json:"notes"`   // what this machine cannot show
	Machine  Machine   `json:"machine"`
	Versions []Version `json:"versions"`
	Commands []Command `json:"commands"`
	Paper    []Paper   `json:"paper"`

	Runs        []Run        `json:"runs"`        // over a real link, one for each profile
	Floors      []Floor      `json:"floors"`      // what the link alone carries
	Instances   []Instances  `json:"instances"`   // several gateways at once
	Costs       []Cost       `json:"costs"`       // ticks of each node
	Subscribers []Population `json:"subscribers"` // the same with more and more subscribers, on synth ports
	Flows       []FlowCurve  `json:"flows"`       // and with more and more flows
	Peers       []PeerGroup  `json:"peers"`
	Routers     []PeerGroup  `json:"routers"` // one for each number of ports and frame size
}

// Missing is a part that was not measured, or not to its end.
type Missing struct {
	Section string `json:"section"` // of the page, one of the Section constants
	Part    string `json:"part"`    // in words
	Why     string `json:"why"`
}

// Note belongs to a section of the page.
type Note struct {
	Section string `json:"section"`
	Text    string `json:"text"`
}

// Machine is where it was measured.
type Machine struct {
	Host       string        `json:"host"`
	CPU        string        `json:"cpu"`
	CPUs       int           `json:"cpus"` // that the kernel has
	Hypervisor string        `json:"hypervisor"`
	Kernel     string        `json:"kernel"`
	System     string        `json:"system"`
	MemoryGB   float64       `json:"memory_gb"`
	HugePages  string        `json:"huge_pages"`
	TSCHz      figure.Number `json:"tsc_hz"`
	// lowest and highest estimate, from a chain of dependent additions; 0: not known
	ClockGHz   [2]figure.Number `json:"clock_ghz"`
	StealRatio float64          `json:"steal_ratio"` // of the worst trial that counts
	Placement  string           `json:"placement"`   // which CPU did what
}

// Version of a program or library that took part.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Command is a command line that was run.
type Command struct {
	What string `json:"what"`
	Line string `json:"line"`
}

// Paper is a published figure that ours stands beside.
type Paper struct {
	Profile     string       `json:"profile"` // of ours that it is compared with
	Ratio       string       `json:"ratio,omitempty"`
	Source      string       `json:"source"`
	What        string       `json:"what"`
	MppsPerCore float64      `json:"mpps_per_core"`
	GbpsPerCore float64      `json:"gbps_per_core"`
	Cycles      float64      `json:"cycles_per_packet"`
	Differs     []Difference `json:"differs"`
}

// Difference is one line of how the two set-ups differ.
type Difference struct {
	What   string `json:"what"`
	Theirs string `json:"theirs"`
	Ours   string `json:"ours"`
}

// Spread is the median of repetitions, and how far they lie apart. Runs 0 means not measured.
type Spread = figure.Spread

// Groups of runs.
const (
	GroupAccess  = "agf"     // the access gateway's own profiles
	GroupRFC2544 = "rfc2544" // one frame size each, and the mix
	GroupJumbo   = "jumbo"
)

// Run is one profile measured from outside, over a link.
type Run struct {
	Profile     string  `json:"profile"`
	Title       string  `json:"title"`
	Group       string  `json:"group"`
	Ratio       string  `json:"ratio"` // how the shares of the two directions are read
	Link        string  `json:"link"`
	Workers     int     `json:"workers"`
	Subscribers int     `json:"subscribers"`
	Flows       int     `json:"flows"`
	FrameBytes  float64 `json:"frame_bytes"`    // mean, as the gateway receives them, with FCS
	Mix         bool    `json:"mix"`            // of several sizes
	Note        string  `json:"note,omitempty"` // what is special about its packets
	// busy ticks of the gateway's workers at the headline's rate
	Ticks       figure.Number     `json:"ticks_per_packet"`
	Floor       figure.Number     `json:"floor_ticks_per_packet"`  // of the same ports without a gateway between them
	Own         figure.Difference `json:"own_ticks_per_packet"`    // the difference, between the extremes of both
	TesterTicks figure.Number     `json:"tester_ticks_per_packet"` // to send, receive and check one
	Directions  []Direction       `json:"directions"`
	Goals       []Goal            `json:"goals"`
	Tester      *Capability       `json:"tester"`
	Latency     []Load            `json:"latency"`
	Echo        []Load            `json:"echo"` // round trip of ICMP echo beside the load
	Steps       []Step            `json:"steps"`
	Trials      []Trial           `json:"trials"`
	bench.Proof
	WrongFrame string   `json:"wrong_frame,omitempty"`
	Account    *Account `json:"account"`
	Incomplete string   `json:"incomplete"` // why it ended early; empty: it did not
	Seconds    float64  `json:"seconds"`
}

// Account is the fate of every packet of a run: sent = received + late + refused + dropped + missing.
type Account = bench.Accounting

// Direction is one way of a run: its part of the found rate, or on its own.
type Direction struct {
	Name       string            `json:"name"`
	Alone      bool              `json:"alone"`
	FrameBytes float64           `json:"frame_bytes"`
	Mpps       float64           `json:"mpps"`
	GbpsL2     float64           `json:"gbps_l2"`
	LossRatio  float64           `json:"loss_ratio"`
	Ticks      figure.Number     `json:"ticks_per_packet"` // of the gateway
	Floor      figure.Number     `json:"floor_ticks_per_packet"`
	Own        figure.Difference `json:"own_ticks_per_packet"`
}

// Goal is the highest rate found at a loss target.
type Goal struct {
	LossTarget float64 `json:"loss_target"`
	tester.Outcome
	Mpps      Spread        `json:"mpps"`
	UpperMpps figure.Number `json:"upper_mpps"` // the lowest rate that lost more than the target
	GbpsL2    figure.Number `json:"gbps_l2"`
	GbpsL1    figure.Number `json:"gbps_l1"`
	LossRatio *float64      `json:"loss_ratio"` // measured at that rate
}

// Add joins another search's result; bits follow the median.
func (g *Goal) Add(mpps float64) {
	before := g.Mpps.Median
	g.Mpps = g.Mpps.With(mpps)
	if before > 0 {
		factor := figure.Number(g.Mpps.Median / before)
		g.GbpsL2, g.GbpsL1 = g.GbpsL2*factor, g.GbpsL1*factor
	}
}

// Capability is what the tester does on the same link without gateway.
type Capability struct {
	How    string        `json:"how"`
	Error  string        `json:"error,omitempty"` // why it could not be shown
	Mpps   Spread        `json:"mpps"`
	Ratio  figure.Number `json:"ratio"`  // to the rate found through the gateway
	Needed figure.Number `json:"needed"` // for the result to be the gateway's
}

// Enough: the tester was shown to be fast enough.
func (c *Capability) Enough() bool { return c != nil && c.Ratio >= c.Needed && c.Mpps.Runs > 0 }

// Load is latency at one rate.
type Load struct {
	Percent float64 `json:"percent"` // of the found rate
	Mpps    float64 `json:"mpps"`
	Lost    uint64  `json:"lost"` // echo: requests without an answer
	Latency Latency `json:"latency_us"`
}

// Latency in microseconds, as the tester has it.
type Latency = tester.Histogram

// Step is one rate of a step load.
type Step struct {
	Percent      float64       `json:"percent"`
	OfferedMpps  float64       `json:"offered_mpps"`
	ReceivedMpps float64       `json:"received_mpps"`
	LossRatio    float64       `json:"loss_ratio"`
	P99          figure.Number `json:"p99_us"`
}

// Trial is one stretch of sending and counting. Packets are of both directions.
type Trial struct {
	Purpose       string        `json:"purpose"`
	AskedMpps     float64       `json:"asked_mpps"`
	OfferedMpps   float64       `json:"offered_mpps"`
	Seconds       float64       `json:"seconds"`
	Sent          uint64        `json:"sent"`
	Received      uint64        `json:"received"`
	Lost          uint64        `json:"lost"`
	Duplicate     uint64        `json:"duplicate"`
	Reordered     uint64        `json:"reordered"`
	Wrong         uint64        `json:"wrong"`
	LossRatio     float64       `json:"loss_ratio"`
	Used          bool          `json:"used"`
	Discarded     []string      `json:"discarded"` // why it was not used
	TesterLimited bool          `json:"tester_limited"`
	StealRatio    float64       `json:"steal_ratio"`
	Switches      uint64        `json:"switches"` // involuntary context switches of the tester
	GapUs         float64       `json:"gap_us"`   // the longest time that the tester was away
	ClockGHz      figure.Number `json:"clock_ghz"`
}

// Floor is what a link carries without a gateway: the simplest program that moves frames from one port to the other.
type Floor struct {
	Name       string  `json:"name"`
	Link       string  `json:"link"`
	FrameBytes float64 `json:"frame_bytes"`
	Mix        bool    `json:"mix"`
	Mpps       Spread  `json:"mpps"`
}

// Instances is the sum over several gateways, each with its own cores, ports and subscribers.
type Instances struct {
	Profile string          `json:"profile"`
	Title   string          `json:"title"`
	Points  []InstancePoint `json:"points"` // measured ones only
	Cannot  string          `json:"cannot"` // what this machine cannot show
}

// InstancePoint is one number of gateways.
type InstancePoint struct {
	Instances int           `json:"instances"`
	CPUs      int           `json:"cpus"` // of gateways and tester together
	Mpps      Spread        `json:"mpps"` // sum
	GbpsL2    figure.Number `json:"gbps_l2"`
	Scaling   figure.Number `json:"scaling"` // sum over instances times the rate of one
}

// Cost is what a packet costs in ticks of the time stamp counter, for one worker.
type Cost struct {
	Profile     string        `json:"profile"`
	Link        string        `json:"link"` // "synth": packets are made and taken inside the graph
	Title       string        `json:"title"`
	Ratio       string        `json:"ratio"`
	Subscribers int           `json:"subscribers"`
	Flows       int           `json:"flows"`
	Both        CostLine      `json:"both"`
	Uplink      CostLine      `json:"uplink"`
	Downlink    CostLine      `json:"downlink"`
	Alternate   *CostLine     `json:"alternate,omitempty"` // the other reading of the ratio
	TSCHz       figure.Number `json:"tsc_hz"`
	Checked     uint64        `json:"checked"`
	Wrong       uint64        `json:"wrong"`
	LossRatio   *float64      `json:"loss_ratio"`
}

// CostLine is the cost of one direction, or of both together.
type CostLine struct {
	Name       string  `json:"name"`
	FrameBytes float64 `json:"frame_bytes"`
	bench.Spreads
	Nodes []Node `json:"nodes"` // dearest first
}

// Node is one stage of the graph.
type Node = bench.NodeCost

// Population is the cost of one profile with more and more subscribers.
type Population struct {
	Profile string            `json:"profile"`
	Title   string            `json:"title"`
	Points  []PopulationPoint `json:"points"`
}

// PopulationPoint is one number of subscribers.
type PopulationPoint struct {
	Subscribers int `json:"subscribers"`
	Flows       int `json:"flows"`
	bench.Spreads
	Uplink   Spread `json:"uplink_ticks_per_packet"`
	Downlink Spread `json:"downlink_ticks_per_packet"`
}

// FlowCurve is the cost of a flow profile with more and more flows, on synth ports, one worker.
type FlowCurve struct {
	Profile string      `json:"profile"`
	Title   string      `json:"title"`
	Points  []FlowPoint `json:"points"`
}

// FlowPoint is one number of flows: known ones in random order, and before that each one's first packet.
type FlowPoint struct {
	Flows    int `json:"flows"`
	Sessions int `json:"sessions"`
	bench.Spreads
	// one random 64-byte read-modify-write over a line for each flow
	Memory        Spread            `json:"memory_ticks_per_access"`
	HugePages     bool              `json:"huge_pages"`
	FillTicks     figure.Number     `json:"fill_ticks_per_packet"`
	FillFloor     figure.Number     `json:"fill_floor_ticks_per_packet"`
	FillOwn       figure.Difference `json:"fill_own_ticks_per_packet"` // of one pair: it has no range
	InsertsPerSec figure.Number     `json:"inserts_per_second"`
	LossRatio     float64           `json:"loss_ratio"`
	Wrong         uint64            `json:"wrong"`
	Checked       uint64            `json:"checked"`
}

// PeerGroup is the same traffic through several programs on the same link, in alternating order.
type PeerGroup struct {
	Profile    string  `json:"profile"`
	Title      string  `json:"title"`
	Link       string  `json:"link"`
	FrameBytes float64 `json:"frame_bytes"`
	Rounds     int     `json:"rounds"`
	Order      string  `json:"order"`
	Peers      []Peer  `json:"peers"`
}

// Peer is one program; Ours is the gateway itself.
type Peer struct {
	Name          string        `json:"name"`
	Does          string        `json:"does"` // what work it does for a packet
	Note          string        `json:"note,omitempty"`
	Packets       string        `json:"packets"` // what it was sent: "same" as the gateway, or in words
	Floor         bool          `json:"floor"`   // moves packets and does nothing else
	Version       string        `json:"version"`
	Link          string        `json:"link,omitempty"` // when it is not the group's
	Ours          bool          `json:"ours"`
	Mpps          Spread        `json:"mpps"`
	Ticks         Spread        `json:"ticks_per_packet"`
	Ratio         figure.Number `json:"ratio"`       // its rate to ours; of ours 1
	RatioRange    Spread        `json:"ratio_range"` // of rounds side by side
	LossRatio     *float64      `json:"loss_ratio"`
	TesterLimited bool          `json:"tester_limited"`
	Error         string        `json:"error"` // why it was not measured
	Command       string        `json:"command"`
}

// Partial: some expected part is missing.
func (r *Report) Partial() bool {
	if !r.Complete || r.Interrupted || len(r.Missing) > 0 {
		return true
	}
	for i := range r.Runs {
		if r.Runs[i].Incomplete != "" {
			return true
		}
	}
	return false
}

// Headline returns the rate at the report's loss target.
func (r *Report) Headline(run *Run) *Goal {
	for i := range run.Goals {
		if g := &run.Goals[i]; math.Abs(g.LossTarget-r.LossTarget) <= r.LossTarget/1e6 && g.Found {
			return g
		}
	}
	return nil
}

// triples finds arrays of three numbers that the encoder spread over five lines; no string holds a line's end.
var triples = regexp.MustCompile(`\[\n\s*([-+.\deE]+),\n\s*([-+.\deE]+),\n\s*([-+.\deE]+)\n\s*\]`)

// JSON returns data.json.
func (r *Report) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, err
	}
	return append(triples.ReplaceAll(data, []byte("[$1, $2, $3]")), '\n'), nil
}

// Read reads data.json again, strictly: a file of another program or version is no report.
func Read(file string) (*Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%s: no report: %w", file, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("%s: has schema %d, this program reads %d", file, r.Schema, Schema)
	}
	return r, nil
}

// Write writes data.json and the page into a folder, which it makes. Each file appears whole or not at all.
func (r *Report) Write(dir string) error {
	data, err := r.JSON()
	if err != nil {
		return err
	}
	page, err := r.HTML()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{DataFile: data, PageFile: page} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".new", content, 0o644); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return nil
}
