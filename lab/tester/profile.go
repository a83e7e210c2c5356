// SPDX-License-Identifier: Apache-2.0

// Package tester has the profile that isthmus-traffic reads and the result that it writes (docs/traffic.md).
package tester

import "go.yaml.in/yaml/v3"

// Profile is the tester's one file: ports, streams and what to do with them. The reader goes by the tag `in`: "!" where
// the key must be given, how a value is read (scalar in read.go), words that are allowed, bounds (of a text in bytes),
// and behind "=" what stands for an absent key. The tag `list` says how many entries a list has, and what they are.
type Profile struct {
	Name       string   `yaml:"name" in:"!name"`
	Title      string   `yaml:"title,omitempty" in:"text 0..255"`
	GatewayCPU *int     `yaml:"gateway_cpu,omitempty" in:"whole 0..1023"` // of its worker, to see how far it is
	CPUs       []int    `yaml:"cpus,omitempty,flow" in:"whole 0..1023" list:"0..64 CPUs"`
	HugePages  bool     `yaml:"huge_pages" in:"bool =true"`
	MemoryMB   int      `yaml:"memory_mb,omitempty" in:"whole 64..1048576 =1024"` // without huge pages
	Ports      []Port   `yaml:"ports" in:"!" list:"1..96 ports"`
	Streams    []Stream `yaml:"streams" in:"!" list:"1..256 streams"`
	Run        Plan     `yaml:"run" in:"={}"`
	Capture    *Capture `yaml:"capture,omitempty"`
}

// Port is a DPDK device of the tester. A memif port is a zero-copy client unless Args say otherwise.
type Port struct {
	Name        string `yaml:"name" in:"!name"`
	Driver      string `yaml:"driver" in:"!driver"`
	Device      string `yaml:"device,omitempty" in:"text 1..255"`
	Args        string `yaml:"args,omitempty" in:"text 0..255"`
	MTU         int    `yaml:"mtu,omitempty" in:"whole 256..9216 =1500"`
	Descriptors int    `yaml:"descriptors,omitempty" in:"whole 64..32768 =1024"`
	Queues      int    `yaml:"queues,omitempty" in:"whole 1..16 =1"` // each way
	MAC         string `yaml:"mac,omitempty" in:"mac"`
	// ARP and ND are answered for these
	Addresses []string `yaml:"addresses,omitempty,flow" in:"address" list:"0..8 addresses"`
}

// Stream is a set of flows that are sent at one port and must arrive at another. One of Share (1 when none is given),
// Rate and Answers says how many packets are sent.
type Stream struct {
	Name  string `yaml:"name" in:"!name"`
	Port  string `yaml:"port" in:"!word"`
	Sink  string `yaml:"sink" in:"!word"`
	Share int    `yaml:"share,omitempty" in:"whole 1..65535"` // weight in packets
	Rate  Rate   `yaml:"rate,omitempty" in:"rate max"`        // of its own: 100kpps, 10Mbit, max
	// name of a stream: each packet of it that arrives is answered
	Answers string `yaml:"answers,omitempty" in:"word"`
	Flows   int    `yaml:"flows,omitempty" in:"whole 1..16777216 =1"`
	// so many consecutive flows stay on one queue
	Block int     `yaml:"block,omitempty" in:"whole 1..16777216 =1"`
	Order string  `yaml:"order,omitempty" in:"word turn|random|zipf =turn"`
	Zipf  float64 `yaml:"zipf,omitempty" in:"real 0.01..4 =1"`
	Seed  int     `yaml:"seed,omitempty" in:"whole 0..1000000000000000000 =1"`
	Size  Sizes   `yaml:"size" in:"!"`
	// the whole payload of one packet in this many; 0 never
	CheckPayload *int    `yaml:"check_payload,omitempty" in:"whole 0..4294967295 =1"`
	Send         Stack   `yaml:"send" in:"!"`
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
	Rate      Rate    `yaml:"rate,omitempty" in:"rate part"`
	Layer     string  `yaml:"layer,omitempty" in:"word l2|l3 =l2"`
	Tolerance Part    `yaml:"tolerance,omitempty" in:"part 0..1 =1%"`
	Loss      Part    `yaml:"loss,omitempty" in:"part 0..1"`
	P99us     float64 `yaml:"p99_us,omitempty" in:"real 0.001..60000000"`
}

// Modes of a Plan.
const (
	ModeFixed  = "fixed"
	ModeSearch = "search"
	ModeSteps  = "steps"
)

// Plan is what to do: the section `run` of the file. What is empty has the tester's own preset.
type Plan struct {
	Mode string `yaml:"mode" in:"word fixed|search|steps =fixed"`
	// fixed: of all streams with a share; steps: what percentages refer to
	Rate      Rate      `yaml:"rate,omitempty" in:"rate max"`
	Seconds   float64   `yaml:"seconds,omitempty" in:"seconds 0.01..86400"`
	Steps     []Rate    `yaml:"steps,omitempty,flow" in:"rate part|max" list:"1..64 rates"`
	Search    *Search   `yaml:"search,omitempty" in:"={}"`
	Latency   *Latency  `yaml:"latency,omitempty" in:"={}"`
	Warmup    *float64  `yaml:"warmup,omitempty" in:"seconds 0..600 =0.2"`
	Drain     float64   `yaml:"drain,omitempty" in:"seconds 0.001..60 =0.5"`
	LinkWait  float64   `yaml:"link_wait,omitempty" in:"seconds 0.1..600 =10"`
	Disturbed *Disturbs `yaml:"disturbed,omitempty" in:"={}"`
}

// Search is for the highest rate at each goal.
type Search struct {
	Min     Rate     `yaml:"min,omitempty" in:"rate =1kpps"`
	Max     Rate     `yaml:"max,omitempty" in:"rate"`
	Goals   []Goal   `yaml:"goals,flow" in:"=[{loss: 0}]" list:"1..4 goals"`
	Exceed  Part     `yaml:"exceed,omitempty" in:"part 0..0.99 =50%"`
	Width   Part     `yaml:"width,omitempty" in:"part 0.0001..0.5 =0.5%"`
	Initial float64  `yaml:"initial,omitempty" in:"seconds 0.01..3600 =0.5"`
	Final   float64  `yaml:"final,omitempty" in:"seconds 0.01..3600 =1"`
	Sum     float64  `yaml:"sum,omitempty" in:"seconds 0.01..36000 =3"`
	Confirm *float64 `yaml:"confirm,omitempty" in:"seconds 0..3600 =2"`
}

// Goal is a loss that counts as good, such as "0.001%". What is empty is the search's.
type Goal struct {
	Loss    Part    `yaml:"loss" in:"!part 0..0.5"`
	Exceed  Part    `yaml:"exceed,omitempty" in:"part 0..0.99"`
	Width   Part    `yaml:"width,omitempty" in:"part 0.0001..0.5"`
	Initial float64 `yaml:"initial,omitempty" in:"seconds 0.01..3600"`
	Final   float64 `yaml:"final,omitempty" in:"seconds 0.01..3600"`
	Sum     float64 `yaml:"sum,omitempty" in:"seconds 0.01..36000"`
}

// Latency asks for trials at parts of the rate found. Seconds 0: none.
type Latency struct {
	At      []Part  `yaml:"at,omitempty,flow" in:"part 0.001..1 =[10%, 50%, 90%]" list:"0..64 parts of the rate"`
	Seconds float64 `yaml:"seconds" in:"seconds 0..3600 =1"`
}

// Disturbs says when a trial counts as disturbed, and how often it is repeated then.
type Disturbs struct {
	Repeats int  `yaml:"repeats" in:"whole 0..100 =3"`
	Steal   Part `yaml:"steal,omitempty" in:"part 0..1 =0.1%"`
}

// Capture is a sample of received frames for tshark.
type Capture struct {
	File  string `yaml:"file" in:"!text 1..255"`
	Every int    `yaml:"every,omitempty" in:"whole 1..4294967295 =1024"`
	Count int    `yaml:"count,omitempty" in:"whole 0..10000000 =1000"`
}

// YAML is the file.
func (p *Profile) YAML() ([]byte, error) { return yaml.Marshal(p) }

// Pointer to a value, for fields where zero is not the preset.
func Pointer[T any](v T) *T { return &v }
