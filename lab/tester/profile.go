// SPDX-License-Identifier: Apache-2.0

// Package tester runs isthmus-traffic: it writes its profile, starts it, follows its events and reads its result. The
// structs here are the YAML that it reads and the JSON that it writes (docs/traffic.md).
package tester

import (
	"os"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Profile is the tester's one file: ports, streams and what to do with them.
type Profile struct {
	Name       string   `yaml:"name"`
	Title      string   `yaml:"title,omitempty"`
	GatewayCPU *int     `yaml:"gateway_cpu,omitempty"` // of its worker, to see how far it is
	CPUs       []int    `yaml:"cpus,omitempty,flow"`   // a thread each; none: one thread, not pinned
	HugePages  bool     `yaml:"huge_pages"`
	MemoryMB   int      `yaml:"memory_mb,omitempty"` // without huge pages
	Ports      []Port   `yaml:"ports"`
	Streams    []Stream `yaml:"streams"`
	Run        Plan     `yaml:"run"`
	Capture    *Capture `yaml:"capture,omitempty"`
}

// Port is a DPDK device of the tester. A memif port is a zero-copy client unless Args say otherwise.
type Port struct {
	Name        string   `yaml:"name"`
	Driver      string   `yaml:"driver"`
	Device      string   `yaml:"device,omitempty"`
	Args        string   `yaml:"args,omitempty"`
	MTU         int      `yaml:"mtu,omitempty"`
	Descriptors int      `yaml:"descriptors,omitempty"`
	Queues      int      `yaml:"queues,omitempty"` // each way
	MAC         string   `yaml:"mac,omitempty"`
	Addresses   []string `yaml:"addresses,omitempty,flow"` // ARP and ND are answered for these
}

// Stream is a set of flows that are sent at one port and must arrive at another.
type Stream struct {
	Name         string  `yaml:"name"`
	Port         string  `yaml:"port"`
	Sink         string  `yaml:"sink"`
	Share        int     `yaml:"share,omitempty"`   // weight in packets; or Rate; or Answers
	Rate         string  `yaml:"rate,omitempty"`    // of its own: 100kpps, 10Mbit, max
	Answers      string  `yaml:"answers,omitempty"` // name of a stream: each packet of it that arrives is answered
	Flows        int     `yaml:"flows,omitempty"`
	Block        int     `yaml:"block,omitempty"` // so many consecutive flows stay on one queue
	Order        string  `yaml:"order,omitempty"` // turn, random, zipf
	Zipf         float64 `yaml:"zipf,omitempty"`
	Seed         int     `yaml:"seed,omitempty"`
	Size         Sizes   `yaml:"size"`
	CheckPayload *int    `yaml:"check_payload,omitempty"` // the whole payload of one packet in this many; 0 never
	Send         Stack   `yaml:"send"`
	Receive      Stack   `yaml:"receive,omitempty"` // absent: anything that keeps tag and payload
	Expect       *Expect `yaml:"expect,omitempty"`
}

// Sizes are L2 frame sizes with FCS and their weights. One size is written as a number.
type Sizes map[int]int

// Size is a single one.
func Size(bytes int) Sizes { return Sizes{bytes: 1} }

// MarshalYAML writes a number where there is only one.
func (s Sizes) MarshalYAML() (any, error) {
	if len(s) == 1 {
		for bytes := range s {
			return bytes, nil
		}
	}
	n := &yaml.Node{}
	if err := n.Encode(map[int]int(s)); err != nil {
		return nil, err
	}
	n.Style = yaml.FlowStyle
	return n, nil
}

// Stack is an encapsulation, outermost layer first.
type Stack []Layer

// Layer is one header: its name ("ipv4") and its fields.
type Layer struct {
	Name   string
	Fields Fields
}

// Fields of a header by name; a value is a number, a string (an address, "any"), a Count, or a list (extensions).
type Fields map[string]any

// Count is a field that is counted from flow to flow: base + step * ((flow / each) % count).
type Count struct {
	Base  any `yaml:"base"`           // number or address
	Step  any `yaml:"step,omitempty"` // number, or for IPv6 an address: "0:0:0:1::"
	Each  int `yaml:"each,omitempty"`
	Count int `yaml:"count,omitempty"` // 0: never wraps
}

// MarshalYAML writes a layer as a map of one key, in one line.
func (l Layer) MarshalYAML() (any, error) {
	fields := l.Fields
	if fields == nil {
		fields = Fields{}
	}
	n := &yaml.Node{}
	if err := n.Encode(map[string]Fields{l.Name: fields}); err != nil {
		return nil, err
	}
	n.Style = yaml.FlowStyle
	return n, nil
}

// PDUSession is the GTP-U extension header of TS 38.415, for the field "extensions" of a gtpu layer.
func PDUSession(uplink bool, qfi int) []any {
	way := "downlink"
	if uplink {
		way = "uplink"
	}
	return []any{map[string]any{"pdu-session": map[string]any{"type": way, "qfi": qfi}}}
}

// Expect is what a stream's own result must be; a stream that has one is left out of the run's loss goal.
type Expect struct {
	Rate      string `yaml:"rate,omitempty"`
	Layer     string `yaml:"layer,omitempty"`
	Tolerance string `yaml:"tolerance,omitempty"`
	Loss      string `yaml:"loss,omitempty"`
	P99us     int    `yaml:"p99_us,omitempty"`
}

// Modes of a Plan.
const (
	ModeFixed  = "fixed"
	ModeSearch = "search"
	ModeSteps  = "steps"
)

// Plan is what to do: the section `run` of the file. What is empty has the tester's own preset.
type Plan struct {
	Mode      string    `yaml:"mode"`
	Rate      string    `yaml:"rate,omitempty"` // fixed: of all streams with a share; steps: what percentages refer to
	Seconds   float64   `yaml:"seconds,omitempty"`
	Steps     []string  `yaml:"steps,omitempty,flow"`
	Search    *Search   `yaml:"search,omitempty"`
	Latency   *Latency  `yaml:"latency,omitempty"`
	Warmup    *float64  `yaml:"warmup,omitempty"`
	Drain     float64   `yaml:"drain,omitempty"`
	LinkWait  float64   `yaml:"link_wait,omitempty"`
	Disturbed *Disturbs `yaml:"disturbed,omitempty"`
}

// Search is for the highest rate at each goal.
type Search struct {
	Min     string   `yaml:"min,omitempty"`
	Max     string   `yaml:"max,omitempty"`
	Goals   []Goal   `yaml:"goals,flow"`
	Exceed  float64  `yaml:"exceed,omitempty"`
	Width   string   `yaml:"width,omitempty"`
	Initial float64  `yaml:"initial,omitempty"`
	Final   float64  `yaml:"final,omitempty"`
	Sum     float64  `yaml:"sum,omitempty"`
	Confirm *float64 `yaml:"confirm,omitempty"`
}

// Goal is a loss that counts as good, such as "0.001%".
type Goal struct {
	Loss string `yaml:"loss"`
}

// Latency asks for trials at parts of the rate found. Seconds 0: none.
type Latency struct {
	At      []string `yaml:"at,omitempty,flow"`
	Seconds float64  `yaml:"seconds"`
}

// Disturbs says when a trial counts as disturbed, and how often it is repeated then.
type Disturbs struct {
	Repeats int    `yaml:"repeats"`
	Steal   string `yaml:"steal,omitempty"`
}

// Capture is a sample of received frames for tshark.
type Capture struct {
	File  string `yaml:"file"`
	Every int    `yaml:"every,omitempty"`
	Count int    `yaml:"count,omitempty"`
}

// YAML is the file.
func (p *Profile) YAML() ([]byte, error) { return yaml.Marshal(p) }

// Write writes the file.
func (p *Profile) Write(file string) error {
	data, err := p.YAML()
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// PPS writes a rate in packets per second as the file has it.
func PPS(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + "pps" }

// Percent writes a part (0.5) as the file has it ("50%").
func Percent(part float64) string {
	return strconv.FormatFloat(part*100, 'g', 12, 64) + "%"
}

// Pointer to a value, for fields where zero is not the preset.
func Pointer[T any](v T) *T { return &v }
