// SPDX-License-Identifier: Apache-2.0

// Package tester has the profile that isthmus-traffic reads and the result that it writes
// (docs/reference/tester.md), and runs the program.
package tester

import "go.yaml.in/yaml/v3"

// Profile is the tester's one file: ports, streams and the run. The reader goes by the tag `in`: "!" for a required
// key, how a value is read (scalar in read.go), permitted words, and bounds (of a text in bytes). Behind "=" stands the
// default. The tag `list` says how many entries a list has, and of which kind.
type Profile struct {
	Name  string `yaml:"name" in:"!name"`                  // of the profile
	Title string `yaml:"title,omitempty" in:"text 0..255"` // for people
	// of its worker, to measure how far it is
	GatewayCPU *int `yaml:"gateway_cpu,omitempty" in:"whole 0..1023"`
	// a thread each; one or two for a port
	CPUs      []int    `yaml:"cpus,omitempty,flow" in:"whole 0..1023" list:"0..64 CPUs"`
	HugePages bool     `yaml:"huge_pages" in:"bool =true"`
	MemoryMB  int      `yaml:"memory_mb,omitempty" in:"whole 64..1048576 =1024"` // without huge pages
	Ports     []Port   `yaml:"ports" in:"!" list:"1..96 ports"`
	Streams   []Stream `yaml:"streams" in:"!" list:"1..256 streams"` // together at most 67,108,864 flows
	Run       Plan     `yaml:"run" in:"={}"`                         // what to do
	Capture   *Capture `yaml:"capture,omitempty"`                    // a sample of received frames for tshark
}

// Port is a DPDK device of the tester. A memif port is a zero-copy client, unless Args override that.
type Port struct {
	Name string `yaml:"name" in:"!name"`
	// pci, net_memif, net_af_xdp, net_af_packet, net_tap, net_ring …, or share: a gateway of ours on this machine
	Driver string `yaml:"driver" in:"!driver"`
	Device string `yaml:"device,omitempty" in:"text 1..255"` // socket, interface or PCI address
	// of the driver. net_memif: role=client, and zero-copy=yes with huge pages, unless given
	Args string `yaml:"args,omitempty" in:"text 0..255"`
	MTU  int    `yaml:"mtu,omitempty" in:"whole 256..9216 =1500"`
	// of a queue. A power of two: net_memif up to 16384, share up to 8192
	Descriptors int `yaml:"descriptors,omitempty" in:"whole 64..32768 =1024"`
	// each way; memif gateways need one for each worker
	Queues int    `yaml:"queues,omitempty" in:"whole 1..16 =1"`
	MAC    string `yaml:"mac,omitempty" in:"mac"` // without it the device's
	// ARP and ND are answered for these
	Addresses []string `yaml:"addresses,omitempty,flow" in:"address" list:"0..8 addresses"`
}

// Stream is a set of flows that are sent at one port and must arrive at another. One of Share (1 by default), Rate and
// Answers sets the number of packets.
type Stream struct {
	Name string `yaml:"name" in:"!name"`
	Port string `yaml:"port" in:"!word"` // where it is sent
	Sink string `yaml:"sink" in:"!word"` // where it must arrive
	// weight in packets of the run's rate; 1 without share, rate and answers
	Share int `yaml:"share,omitempty" in:"whole 1..65535"`
	// of its own, in place of a share: 100kpps, 10Mbit, max
	Rate Rate `yaml:"rate,omitempty" in:"rate max"`
	// name of a stream: each packet of it that arrives is answered (round trip)
	Answers string `yaml:"answers,omitempty" in:"word"`
	// as many as those of the answered stream
	Flows int `yaml:"flows,omitempty" in:"whole 1..16777216 =1"`
	// with several queues: so many consecutive flows stay on one queue
	Block int     `yaml:"block,omitempty" in:"whole 1..16777216 =1"`
	Order string  `yaml:"order,omitempty" in:"word turn|random|zipf =turn"`
	Zipf  float64 `yaml:"zipf,omitempty" in:"real 0.01..4 =1"` // exponent
	// the same seed gives the same packets
	Seed int `yaml:"seed,omitempty" in:"whole 0..1000000000000000000 =1"`
	// bytes of L2 frames with FCS, 64 to 9216; or up to 16 sizes with weights: {64: 7, 594: 4, 1518: 1}
	Size Sizes `yaml:"size" in:"!"`
	// the whole payload of one packet in so many is compared; 0: of none
	CheckPayload *int  `yaml:"check_payload,omitempty" in:"whole 0..4294967295 =1"`
	Send         Stack `yaml:"send" in:"!"` // 1 to 16 layers, outermost first, up to 256 bytes
	// layers that must arrive. Without them anything that keeps tag and payload is good
	Receive Stack   `yaml:"receive,omitempty"`
	Expect  *Expect `yaml:"expect,omitempty"` // the stream's own goal
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
	Rate Rate `yaml:"rate,omitempty" in:"rate part"` // packets, bits, or a part of what was sent
	// where bits are counted: l2 with FCS, l3 from the innermost IP header on
	Layer     string  `yaml:"layer,omitempty" in:"word l2|l3 =l2"`
	Tolerance Part    `yaml:"tolerance,omitempty" in:"part 0..1 =1%"`     // around the rate
	Loss      Part    `yaml:"loss,omitempty" in:"part 0..1"`              // highest
	P99us     float64 `yaml:"p99_us,omitempty" in:"real 0.001..60000000"` // microseconds
}

// Modes of a Plan.
const (
	ModeFixed  = "fixed"
	ModeSearch = "search"
	ModeSteps  = "steps"
)

// Plan is the section `run` of the file. Empty fields have the tester's defaults.
type Plan struct {
	// one trial (fixed), the highest rate at each goal (search), or steps
	Mode string `yaml:"mode" in:"word fixed|search|steps =fixed"`
	// of all streams with a share (fixed), or what parts refer to (steps). Bits are made packets by the mean size
	Rate    Rate    `yaml:"rate,omitempty" in:"rate max"`
	Seconds float64 `yaml:"seconds,omitempty" in:"seconds 0.01..86400"` // of a trial; 10, in steps 1
	// rates that rise: [10%, 50%, 100%]
	Steps     []Rate    `yaml:"steps,omitempty,flow" in:"rate part|max" list:"1..64 rates"`
	Search    *Search   `yaml:"search,omitempty" in:"={}"`
	Latency   *Latency  `yaml:"latency,omitempty" in:"={}"`                    // trials after fixed and search
	Warmup    *float64  `yaml:"warmup,omitempty" in:"seconds 0..600 =0.2"`     // at a tenth of the rate
	Drain     float64   `yaml:"drain,omitempty" in:"seconds 0.001..60 =0.5"`   // wait for the last packets
	LinkWait  float64   `yaml:"link_wait,omitempty" in:"seconds 0.1..600 =10"` // for all links
	Disturbed *Disturbs `yaml:"disturbed,omitempty" in:"={}"`
}

// Search is for the highest rate at each goal.
type Search struct {
	Min Rate `yaml:"min,omitempty" in:"rate =1kpps"` // it gives up there
	// it begins there; without it at the tester's maximum
	Max   Rate   `yaml:"max,omitempty" in:"rate"`
	Goals []Goal `yaml:"goals,flow" in:"=[{loss: 0}]" list:"1..4 goals"`
	// part of a load's trial time that may be above the loss
	Exceed  Part    `yaml:"exceed,omitempty" in:"part 0..0.99 =50%"`
	Width   Part    `yaml:"width,omitempty" in:"part 0.0001..0.5 =0.5%"`    // of the interval
	Initial float64 `yaml:"initial,omitempty" in:"seconds 0.01..3600 =0.5"` // first trials
	Final   float64 `yaml:"final,omitempty" in:"seconds 0.01..3600 =1"`     // deciding trials
	Sum     float64 `yaml:"sum,omitempty" in:"seconds 0.01..36000 =3"`      // that a load needs
	// last trial at the rate found; 0: none
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
	Seconds float64 `yaml:"seconds" in:"seconds 0..3600 =1"` // of each; 0: none
}

// Disturbs defines when a trial counts as disturbed, and how often it is repeated then.
type Disturbs struct {
	Repeats int  `yaml:"repeats" in:"whole 0..100 =3"`
	Steal   Part `yaml:"steal,omitempty" in:"part 0..1 =0.1%"` // CPU time that the hypervisor took
}

// Capture is a sample of received frames for tshark.
type Capture struct {
	File string `yaml:"file" in:"!text 1..255"` // a pcap file
	// one received frame in so many; wrong ones always
	Every int `yaml:"every,omitempty" in:"whole 1..4294967295 =1024"`
	Count int `yaml:"count,omitempty" in:"whole 0..10000000 =1000"` // at most; as many wrong ones again
}

// YAML is the file.
func (p *Profile) YAML() ([]byte, error) { return yaml.Marshal(p) }

// Pointer to a value, for fields where zero is not the preset.
func Pointer[T any](v T) *T { return &v }
