// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"encoding/json"
	"fmt"
	"math"
)

// Result is the JSON of one run. Rates are packets per second, bits per second in units of 10^9 where named gbps, times
// seconds, latencies microseconds.
type Result struct {
	Profile     string        `json:"profile"`
	Title       string        `json:"title"`
	File        string        `json:"file"`
	Version     string        `json:"version"`
	Complete    bool          `json:"complete"` // else error or interrupted says why
	Interrupted bool          `json:"interrupted"`
	Error       string        `json:"error"`
	Command     []string      `json:"command"`
	Started     string        `json:"started"`
	Seconds     float64       `json:"seconds"` // how long all took
	Machine     Machine       `json:"machine"`
	Ports       []PortResult  `json:"ports"`
	Streams     []StreamInfo  `json:"streams"`
	Search      *SearchResult `json:"search,omitempty"`
	Reference   *Reference    `json:"reference,omitempty"` // of parts: in latency trials and steps
	// what the tester itself offered at most, when it was tried
	MaximumPPS float64 `json:"tester_maximum_pps,omitempty"`
	Status     int     `json:"status"`  // exit status without signals
	Verdict    string  `json:"verdict"` // "good", or why status is not 0
	Trials     []Trial `json:"trials"`  // in their order
}

// Reference is a rate, and the index of the goal that it is the result of (-1: it is the profile's).
type Reference struct {
	RatePPS float64 `json:"rate_pps"`
	Goal    int     `json:"goal"` // index of the goal that it is the result of; -1: the profile's
}

// Machine is where it ran.
type Machine struct {
	CPU       string  `json:"cpu"`
	Kernel    string  `json:"kernel"`
	TSCHz     float64 `json:"tsc_hz"`
	ClockGHz  float64 `json:"clock_ghz"` // estimated
	CPUs      []int   `json:"cpus"`
	HugePages bool    `json:"huge_pages"`
	DPDK      string  `json:"dpdk"`
}

// PortResult names a port.
type PortResult struct {
	Name      string  `json:"name"`
	Driver    string  `json:"driver"`
	Device    string  `json:"device"`
	SpeedMbps float64 `json:"speed_mbps"`
}

// StreamInfo names a stream.
type StreamInfo struct {
	Name      string  `json:"name"`
	Port      string  `json:"port"`
	Sink      string  `json:"sink"`
	Flows     int     `json:"flows"`
	MeanBytes float64 `json:"mean_bytes"`
	Share     float64 `json:"share"`
	Answers   string  `json:"answers,omitempty"` // name of the stream whose packets it answers
}

// SearchResult is what a search found, a goal each in the profile's order.
type SearchResult struct {
	Min    float64      `json:"min"`
	Max    float64      `json:"max"`
	Trials int          `json:"trials"`
	Goals  []GoalResult `json:"goals"` // in the profile's order
}

// Outcome is what became of the search for a goal.
type Outcome struct {
	Found     bool `json:"found"`
	Confirmed bool `json:"confirmed"`
	// the highest rate allowed was good: the real one may be higher
	AtMaximum     bool   `json:"at_maximum"`
	TesterLimited bool   `json:"tester_limited"` // the tester offered less than 99.5 %
	Disturbed     bool   `json:"disturbed"`      // disturbed trials limit: the real rate may be higher
	GaveUp        bool   `json:"gave_up"`
	Reason        string `json:"reason,omitempty"` // why it was not found, or why the search gave up
}

// GoalResult is the highest rate at one loss goal.
type GoalResult struct {
	Loss float64 `json:"loss"`
	Outcome
	RatePPS        float64 `json:"rate_pps"`        // lower bound
	UpperPPS       float64 `json:"upper_pps"`       // the lowest bad rate; 0: none
	ConditionalPPS float64 `json:"conditional_pps"` // forwarded at the rate
}

// Purposes of a trial.
const (
	PurposeWarmup  = "warmup"
	PurposeMaximum = "maximum" // what the tester can offer; everything above the gateway's rate is lost
	PurposeFixed   = "fixed"
	PurposeSearch  = "search"
	PurposeConfirm = "confirm"
	PurposeStep    = "step"
	PurposeLatency = "latency"
)

// Trial is one stretch of sending at one rate. sent = received + lost.
type Trial struct {
	Purpose      string  `json:"purpose"`        // warmup, maximum, fixed, search, confirm, step, latency
	Used         bool    `json:"used"`           // false: disturbed and repeated, or interrupted
	Part         float64 `json:"part,omitempty"` // latency and steps: of the reference
	RatePPS      float64 `json:"rate_pps"`       // asked; null: as fast as the ports took packets
	AskedSeconds float64 `json:"asked_seconds"`
	Seconds      float64 `json:"seconds"`
	OfferedPPS   float64 `json:"offered_pps"`
	Sent         uint64  `json:"sent"`
	Received     uint64  `json:"received"`
	Lost         uint64  `json:"lost"`
	LossRatio    float64 `json:"loss_ratio"` // of streams without an expectation of their own
	Duplicate    uint64  `json:"duplicate"`  // arrived twice
	Reordered    uint64  `json:"reordered"`  // overtaken by up to 32
	Stale        uint64  `json:"stale"`      // overtaken by more, which may hide losses
	Wrong        uint64  `json:"wrong"`      // good tag, wrong packet
	Foreign      uint64  `json:"foreign"`    // without a tag
	Control      uint64  `json:"control"`    // ARP and ND
	// arrived after their trial, which ends run.drain after its last packet
	Stray         uint64  `json:"stray"`
	GbpsL2        float64 `json:"gbps_l2"`        // received, with FCS
	GbpsL1        float64 `json:"gbps_l1"`        // with preamble and gap
	TesterLimited bool    `json:"tester_limited"` // it offered less than 99.5 %
	// causes: steal, switched, gap, missed, far (twice the shortest round trip of a cache line)
	Disturbed   []string      `json:"disturbed"`
	Steal       float64       `json:"steal"`         // part of CPU time that the hypervisor took
	Switches    uint64        `json:"switches"`      // preemptions
	GapUS       float64       `json:"gap_us"`        // longest
	Missed      uint64        `json:"missed"`        // by the tester's ports: no loss of the gateway's
	BusyTicks   float64       `json:"busy_ticks"`    // of the tester, for a packet sent and received
	RoundTripNs float64       `json:"round_trip_ns"` // of a cache line to the gateway's CPU and back
	ClockGHz    float64       `json:"clock_ghz"`
	Interrupted bool          `json:"interrupted"`
	Latency     *Histogram    `json:"latency_us,omitempty"`
	Streams     []StreamTrial `json:"streams"`
}

// MarshalJSON writes null for a rate without limit.
func (t Trial) MarshalJSON() ([]byte, error) {
	type fields Trial
	out := struct {
		fields
		RatePPS *float64 `json:"rate_pps"`
	}{fields: fields(t)}
	if !math.IsInf(t.RatePPS, 1) {
		out.RatePPS = &t.RatePPS
	}
	return json.Marshal(out)
}

// StreamTrial is one stream's part of a trial.
type StreamTrial struct {
	Name      string `json:"name"`
	Sent      uint64 `json:"sent"`
	Refused   uint64 `json:"refused"` // of those sent: the port's queue did not take them
	Received  uint64 `json:"received"`
	Lost      uint64 `json:"lost"`
	Duplicate uint64 `json:"duplicate"`
	Reordered uint64 `json:"reordered"`
	Stale     uint64 `json:"stale"`
	// by kind: port, length, header, checksum, payload, structure
	Wrong       map[string]uint64 `json:"wrong"`
	Decoded     uint64            `json:"decoded"` // compared field by field
	ReceivedPPS float64           `json:"received_pps"`
	GbpsL2      float64           `json:"gbps_l2"`
	GbpsL3      float64           `json:"gbps_l3"`
	Latency     *Histogram        `json:"latency_us,omitempty"`
	Expectation string            `json:"expectation,omitempty"`  // "held", or what did not hold
	WrongFrames []WrongFrame      `json:"wrong_frames,omitempty"` // up to four
}

// WrongFrame is an example of what was wrong.
type WrongFrame struct {
	Kind     string `json:"kind"`
	Where    string `json:"where"` // such as gtpu.teid
	Offset   int    `json:"offset"`
	Length   int    `json:"length"` // of the whole frame
	Flow     int    `json:"flow"`
	Frame    string `json:"frame"` // its beginning, in hexadecimal
	Expected string `json:"expected"`
}

// Histogram of latencies in microseconds.
type Histogram struct {
	Count   uint64       `json:"count"`
	Min     float64      `json:"min"`
	Mean    float64      `json:"mean"`
	P50     float64      `json:"p50"`
	P90     float64      `json:"p90"`
	P99     float64      `json:"p99"`
	P999    float64      `json:"p999"`
	Max     float64      `json:"max"`
	Buckets [][3]float64 `json:"histogram,omitempty"` // [low, high, count]; only those that are not empty
}

// Refused is the sum over the streams.
func (t *Trial) Refused() (n uint64) {
	for i := range t.Streams {
		n += t.Streams[i].Refused
	}
	return n
}

// Decoded is the sum over the streams.
func (t *Trial) Decoded() (n uint64) {
	for i := range t.Streams {
		n += t.Streams[i].Decoded
	}
	return n
}

// Of returns the used trials with a purpose, in order.
func (r *Result) Of(purpose string) []*Trial {
	var list []*Trial
	for i := range r.Trials {
		if r.Trials[i].Used && r.Trials[i].Purpose == purpose {
			list = append(list, &r.Trials[i])
		}
	}
	return list
}

// Wrong adds up the packets of all trials that were not as they must be, and describes the first.
func (r *Result) Wrong() (n uint64, example string) {
	for i := range r.Trials {
		n += r.Trials[i].Wrong
		for j := range r.Trials[i].Streams {
			s := &r.Trials[i].Streams[j]
			if example == "" && len(s.WrongFrames) > 0 {
				f := s.WrongFrames[0]
				example = fmt.Sprintf("stream %s, flow %d: %s at %s (byte %d)\n"+
					"  got      %s\n  expected %s", s.Name, f.Flow, f.Kind,
					f.Where, f.Offset, begin(f.Frame), begin(f.Expected))
			}
		}
	}
	return n, example
}

// begin is the beginning of a frame in hex: all headers that there may be.
func begin(hex string) string { return hex[:min(len(hex), 2*128)] }
