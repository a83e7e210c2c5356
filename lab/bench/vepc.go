// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// The evolved packet core: UE - eNodeB - SGW-U - PGW-U - PDN and back. The tester is the UEs and the packet data
// network; every function is a data plane of its own, or all three are one.

// VEPC is the paper's table of a chain.
type VEPC struct {
	Arrangement  string         `json:"arrangement"` // separate or combined
	Switch       string         `json:"switch"`
	Sessions     int            `json:"sessions"`
	Functions    []FunctionLoad `json:"functions"` // at the rate found
	Mpps         figure.Number  `json:"mpps"`      // through the whole chain, both ways together
	GbpsL2       figure.Number  `json:"gbps_l2"`
	BusyCores    figure.Number  `json:"busy_cores"`
	CPUCores     figure.Number  `json:"cpu_cores"`
	LoadCores    figure.Number  `json:"load_cores"` // of each function the lower of the two
	CoresPerMpps figure.Number  `json:"load_cores_per_mpps"`
	LoadPerMpps  figure.Number  `json:"load_percent_per_mpps_of_24_cores"` // as the paper has it
	MppsPerCore  figure.Number  `json:"mpps_per_load_core"`
	// reserved: workers, and a switch's cores shared by the functions
	CoresPerInstance figure.Number `json:"cores_per_instance"`
	InstancesBy      []InstancesBy `json:"instances_by_cores"`
	RTT              []RoundTrip   `json:"rtt_us"` // ICMP echo UE - PDN - UE in parallel with the load
	Paper            VEPCPaper     `json:"paper"`
}

// InstancesBy is how many function instances a server has room for.
type InstancesBy struct {
	Cores     int `json:"cores"`
	Instances int `json:"instances"`
}

// RoundTrip is ICMP echo at a part of the rate found.
type RoundTrip struct {
	Load float64 `json:"load"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Sent uint64  `json:"sent"`
	Lost uint64  `json:"lost"`
}

// VEPCPaper are the paper's figures at 128 B: 24 cores, the better of its two arrangements.
type VEPCPaper struct {
	Mpps             float64 `json:"mpps"`
	Cores            int     `json:"cores"`
	Instances        int     `json:"instances"`
	CoresPerInstance float64 `json:"cores_per_instance"`
	MppsPerCore      float64 `json:"mpps_per_core"`
	LoadPerMpps      float64 `json:"load_percent_per_mpps"`
	RTTp90us         float64 `json:"rtt_p90_us"`
	SwitchCores      float64 `json:"switch_cores_per_instance"` // with its virtual switch
	SwitchMpps       float64 `json:"switch_mpps"`
	SwitchLoad       float64 `json:"switch_load_percent_per_mpps"`
	SwitchRTTp90us   float64 `json:"switch_rtt_p90_us"`
	Gbps             float64 `json:"gbps"`
	Load             float64 `json:"load"` // of all cores, at the peak
	SwitchGbps       float64 `json:"switch_gbps"`
	SwitchBusy       float64 `json:"switch_load"`
	SwitchInstances  int     `json:"switch_instances"`
}

func vepcPaper() VEPCPaper {
	return VEPCPaper{
		Mpps: 13, Cores: 24, Instances: 22, CoresPerInstance: 1.1, MppsPerCore: 13.0 / (24 * 0.52), LoadPerMpps: 4,
		RTTp90us:    1000,
		SwitchCores: 3.3, SwitchMpps: 2.5, SwitchLoad: 18, SwitchRTTp90us: 1500, Gbps: 15.5, Load: 0.52,
		SwitchGbps: 2.9, SwitchBusy: 0.45,
		SwitchInstances: 7,
	}
}

// paperServer is the paper's number of cores.
const paperServer = 24

// vepcSize is the frame size of a vepc profile.
func vepcSize(profile string) (int, bool) {
	text, ok := strings.CutPrefix(profile, "vepc-")
	size, err := strconv.Atoi(text)
	return size, ok && err == nil && (size == 128 || size == 256 || size == 512 || size == 1024)
}

// Addresses of the chain. Tunnel endpoints are in networks of their own where all functions are one process.
const (
	radioIP   = "192.0.10.1" // the eNodeB's, towards the UEs
	radioFar  = "192.0.10.2"
	sgiIP     = "198.51.100.1" // the PGW-U's, towards the packet data network
	sgiFar    = "198.51.100.2"
	enbMAC    = "02:00:00:e0:00:02"
	sgwS1MAC  = "02:00:00:e1:00:01"
	sgwS5MAC  = "02:00:00:e1:00:02"
	pgwMAC    = "02:00:00:e2:00:01"
	enbIP     = "192.0.4.1" // S1-U
	sgwS1IP   = "192.0.4.2"
	sgwS5IP   = "192.0.5.1" // S5
	pgwIP     = "192.0.5.2"
	teidENB   = 0x40000000
	teidSGWUp = 0x10000000
	teidSGW   = 0x20000000
	teidPGW   = 0x30000000
)

// vepcFunctions are the three with their legs; their instances' names differ, so that they can be in one process.
func vepcFunctions(workers int) [3]function {
	return [3]function{
		{name: "enodeb", workers: workers, access: leg{instance: "radio"},
			core: leg{instance: "s1u-enb", local: enbIP, teid: teidENB, peers: []string{sgwS1IP}, peerTEID: teidSGWUp}},
		{name: "sgwu", workers: workers, first: 1 << 32,
			access: leg{instance: "s1u", local: sgwS1IP, teid: teidSGWUp, peers: []string{enbIP}, peerTEID: teidENB},
			core:   leg{instance: "s5", local: sgwS5IP, teid: teidSGW, peers: []string{pgwIP}, peerTEID: teidPGW}},
		{name: "pgwu", workers: workers, first: 2 << 32, usage: true,
			access: leg{instance: "s5-pgw", local: pgwIP, teid: teidPGW, peers: []string{sgwS5IP}, peerTEID: teidSGW},
			core:   leg{instance: "sgi"}},
	}
}

// vepc makes the configurations.
type vepc struct {
	opt       Options
	functions [3]function
}

// vepcScene is the chain with its loads.
func vepcScene(opt Options, size int) (*scene, error) {
	if opt.Sessions < 1 || opt.Sessions > maxSessions {
		return nil, fmt.Errorf("%d sessions: 1 to %d are possible", opt.Sessions, maxSessions)
	}
	if opt.Switch == "" {
		opt.Switch = SwitchNone
	}
	if opt.Combined && opt.Switch != SwitchNone {
		return nil, fmt.Errorf("a switch relays between functions; combined, there is nothing to relay")
	}
	if opt.Link != LinkMemif && opt.Link != LinkShare && opt.Link != "" {
		return nil, fmt.Errorf("the chain is measured over memif or share")
	}
	if opt.Instances > 1 {
		return nil, fmt.Errorf("one chain at a time")
	}
	v := &vepc{opt: opt, functions: vepcFunctions(opt.Workers)}
	s := &scene{
		title: fmt.Sprintf("UE - eNodeB - SGW-U - PGW-U - PDN and back, %d B", size), flows: 2 * opt.Sessions,
		memoryMB: 1024, mtu: usualMTU, chain: &chain{fabric: opt.Switch}, echo: v.echo(), config: v.combined,
		ports: func(access, core *wire) []tester.Port {
			return []tester.Port{farPort(access, "access", AccessFarMAC, 1600, radioFar),
				farPort(core, "core", peerMAC, 1600, sgiFar)}
		},
	}
	if opt.Combined {
		s.chain.functions = []chainFunction{{name: "epc", cpus: v.cpus(0, 1), config: v.combined,
			load: v.load(0, 1, 2)}}
	} else {
		configs := [3]func(access, core *wire) []byte{v.enodeb, v.sgwu, v.pgwu}
		for i := range v.functions {
			s.chain.functions = append(s.chain.functions,
				chainFunction{name: v.functions[i].name, cpus: v.cpus(i, 3), config: configs[i], load: v.load(i)})
		}
	}
	send := func(up, down bool) []tester.Stream { return v.streams(size, up, down) }
	s.points = []point{{name: fmt.Sprintf("%d B, 1:1", size), reading: "1:1", bytes: size, streams: send(true, true),
		up: send(true, false), down: send(false, true)}}
	s.finish = v.finish
	return s, nil
}

// load brings functions' sessions in.
func (v *vepc) load(which ...int) func(context.Context, *dataPlane) error {
	return func(ctx context.Context, d *dataPlane) error {
		for _, i := range which {
			if err := v.functions[i].put(ctx, d, v.opt.Sessions); err != nil {
				return err
			}
		}
		return nil
	}
}

// cpus are the i-th function's of n; nil, and so not pinned, unless there is one for every worker of all.
func (v *vepc) cpus(i, n int) []int {
	w := v.opt.Workers
	if len(v.opt.CPUs) < n*w {
		return nil
	}
	return v.opt.CPUs[i*w : (i+1)*w]
}

// shared: workers share a CPU.
func shared(cpus []int) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(cpus)))) < len(cpus)
}

// WorkersOf is how many workers' CPUs a run wants.
func WorkersOf(opt Options) int {
	n := opt.Workers * opt.Instances
	if _, ok := vepcSize(opt.Profile); ok && !opt.Combined {
		n *= len(vepcFunctions(opt.Workers))
	}
	return n
}

// writer collects lines of a configuration.
type writer struct{ strings.Builder }

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// buffers are large enough for a frame each.
func (w *writer) buffers(mtu int) {
	if mtu > usualMTU {
		w.line("  buffer_size: %d", mtu+284)
		w.line("  packet_buffers: 16384")
	}
}

// head is what every function's file begins with; n is how many functions are in it.
func (v *vepc) head(w *writer, cpus []int, n int) {
	w.line("engine:")
	w.line("  workers: %d", v.opt.Workers)
	if len(cpus) > 0 {
		w.line("  cpus: [%s]", joinInts(cpus))
	}
	if shared(v.opt.CPUs) || len(cpus) == 0 {
		w.line("  idle_sleep: true") // others need the CPU
	}
	w.line("  huge_pages: %s", hugeWord(&v.opt))
	sessions := max(n*v.opt.Sessions, 1024)
	w.line("  limits: {sessions: %d, flows: 65536, rules: %d, urrs: %d, shared_meters: 64}", min(sessions, maxSessions),
		2*sessions, sessions)
	w.line("control: {metrics: ''}")
	w.line("policers: [{name: %s, type: trtcm, cir: 20Gbit, pir: 40Gbit}]", policerName)
}

// neighbour has a known MAC, so that no packet waits for ARP.
type neighbour struct{ on, address, mac string }

func (w *writer) neighbours(list ...neighbour) {
	w.line("neighbours:")
	for _, n := range list {
		w.line("  - {interface: %s, address: %s, mac: '%s'}", n.on, n.address, n.mac)
	}
}

func (w *writer) port(name string, at *wire, mac string) {
	w.line("  - {name: %s, %s, role: core, mtu: 1600, mac: '%s'}", name, at.gateway, mac)
}

const (
	radioInstance = "  - {name: radio, interfaces: [radio0], lookup: source, sources: [%s]}"
	sgiInstance   = "  - {name: sgi, interfaces: [sgi0], lookup: destination, pools: [" + uePool + "], sources: [core]}"
)

func (v *vepc) enodeb(access, core *wire) []byte {
	w := &writer{}
	v.head(w, v.cpus(0, 3), 1)
	w.line("ports:")
	w.port("access", access, accessMAC)
	w.port("core", core, enbMAC)
	w.line("interfaces:")
	w.line("  - {name: radio0, port: access, addresses: [%s/24]}", radioIP)
	w.line("  - {name: s1u0, port: core, addresses: [%s/24]}", enbIP)
	w.line("routes: [{prefix: %s, via: %s}]", uePool, radioFar)
	w.neighbours(neighbour{"radio0", radioFar, AccessFarMAC}, neighbour{"s1u0", sgwS1IP, sgwS1MAC})
	w.line("instances:")
	w.line(radioInstance, "access")
	w.line("  - {name: s1u-enb, interfaces: [s1u0], endpoints: [%s], sources: [core]}", enbIP)
	return []byte(w.String())
}

func (v *vepc) sgwu(access, core *wire) []byte {
	w := &writer{}
	v.head(w, v.cpus(1, 3), 1)
	w.line("ports:")
	w.port("access", access, sgwS1MAC)
	w.port("core", core, sgwS5MAC)
	w.line("interfaces:")
	w.line("  - {name: s1u0, port: access, addresses: [%s/24]}", sgwS1IP)
	w.line("  - {name: s5-0, port: core, addresses: [%s/24]}", sgwS5IP)
	w.neighbours(neighbour{"s1u0", enbIP, enbMAC}, neighbour{"s5-0", pgwIP, pgwMAC})
	w.line("instances:")
	w.line("  - {name: s1u, interfaces: [s1u0], endpoints: [%s], sources: [access]}", sgwS1IP)
	w.line("  - {name: s5, interfaces: [s5-0], endpoints: [%s], sources: [core]}", sgwS5IP)
	return []byte(w.String())
}

func (v *vepc) pgwu(access, core *wire) []byte {
	w := &writer{}
	v.head(w, v.cpus(2, 3), 1)
	w.line("ports:")
	w.port("access", access, pgwMAC)
	w.port("core", core, coreMAC)
	w.line("interfaces:")
	w.line("  - {name: s5-0, port: access, addresses: [%s/24]}", pgwIP)
	w.line("  - {name: sgi0, port: core, addresses: [%s/24]}", sgiIP)
	w.line("routes: [{prefix: 203.0.113.0/24, via: %s}]", sgiFar)
	w.neighbours(neighbour{"s5-0", sgwS5IP, sgwS5MAC}, neighbour{"sgi0", sgiFar, peerMAC})
	w.line("instances:")
	w.line("  - {name: s5-pgw, interfaces: [s5-0], endpoints: [%s], sources: [access]}", pgwIP)
	w.line(sgiInstance)
	return []byte(w.String())
}

// combined is all three in one process: packets go round inside it, from endpoint to endpoint. The endpoints'
// interfaces are VLANs that are never used on the wire.
func (v *vepc) combined(access, core *wire) []byte {
	w := &writer{}
	v.head(w, v.cpus(0, 1), 3)
	w.line("ports:")
	w.port("access", access, accessMAC)
	w.port("core", core, coreMAC)
	w.line("interfaces:")
	w.line("  - {name: radio0, port: access, addresses: [%s/24]}", radioIP)
	w.line("  - {name: sgi0, port: core, addresses: [%s/24]}", sgiIP)
	ends := []struct{ instance, face, address string }{
		{"s1u-enb", "enb0", enbIP}, {"s1u", "s1u0", sgwS1IP}, {"s5", "s5-0", sgwS5IP}, {"s5-pgw", "pgw0", pgwIP},
	}
	for i, e := range ends {
		w.line("  - {name: %s, port: core, outer_vlan: %d, addresses: [%s/32]}", e.face, 11+i, e.address)
	}
	w.line("routes:")
	w.line("  - {prefix: %s, via: %s}", uePool, radioFar)
	w.line("  - {prefix: 203.0.113.0/24, via: %s}", sgiFar)
	w.neighbours(neighbour{"radio0", radioFar, AccessFarMAC}, neighbour{"sgi0", sgiFar, peerMAC})
	w.line("instances:")
	w.line(radioInstance, "access")
	w.line(sgiInstance)
	for _, e := range ends {
		w.line("  - {name: %s, interfaces: [%s], endpoints: [%s]}", e.instance, e.face, e.address)
	}
	return []byte(w.String())
}

// stack is a UE's packet at the radio side or behind the PGW-U. Each way it is routed once: by the PGW-U, by the
// eNodeB.
func (v *vepc) stack(uplink, radio, received bool, user tester.Stack) tester.Stack {
	ours, theirs := accessMAC, AccessFarMAC
	if !radio {
		ours, theirs = coreMAC, peerMAC
	}
	ethernet := tester.Fields{"source": theirs, "destination": ours}
	if received {
		ethernet = tester.Fields{"source": ours, "destination": theirs}
	}
	ip := tester.Layer{Name: user[0].Name, Fields: tester.Fields{}}
	for k, f := range user[0].Fields {
		ip.Fields[k] = f
	}
	ip.Fields["ttl"] = 64
	if received {
		ip.Fields["ttl"] = 63
	}
	return append(tester.Stack{{Name: "ethernet", Fields: ethernet}, ip}, user[1:]...)
}

func (v *vepc) streams(size int, up, down bool) []tester.Stream {
	var list []tester.Stream
	for _, uplink := range []bool{true, false} {
		if uplink && !up || !uplink && !down {
			continue
		}
		user := userStack(half{}, uplink, 1)
		s := tester.Stream{
			Name: "down", Port: "core", Sink: "access", Share: 1, Flows: v.opt.Sessions, Block: 1, Order: "random",
			Seed: len(list) + 1,
			Size: tester.Size(size), Send: v.stack(uplink, uplink, false, user),
			Receive: v.stack(uplink, !uplink, true, user),
		}
		if uplink {
			s.Name, s.Port, s.Sink = "up", s.Sink, s.Port
		}
		list = append(list, s)
	}
	return list
}

// echo are ICMP echo requests of some UEs to a server in the packet data network, and its answers.
func (v *vepc) echo() []tester.Stream {
	stream := func(name, port, sink string, uplink bool) tester.Stream {
		user := echoStack(half{}, uplink)
		return tester.Stream{
			Name: name, Port: port, Sink: sink, Flows: min(echoFlows, v.opt.Sessions), Order: "turn",
			Size: tester.Size(echoBytes),
			Send: v.stack(uplink, uplink, false, user), Receive: v.stack(uplink, !uplink, true, user),
			Expect: &tester.Expect{Loss: "100%"},
		}
	}
	ping, pong := stream(echoUp, "access", "core", true), stream(echoDown, "core", "access", false)
	ping.Rate, pong.Answers = tester.PPS(echoRate), echoUp
	return []tester.Stream{ping, pong}
}

// finish makes the paper's table of the first point.
func (v *vepc) finish(r *LinkResult) {
	t := &VEPC{Arrangement: "separate", Switch: v.opt.Switch, Sessions: v.opt.Sessions, Paper: vepcPaper(),
		Functions:   []FunctionLoad{},
		InstancesBy: []InstancesBy{}, RTT: []RoundTrip{}}
	if v.opt.Combined {
		t.Arrangement = "combined"
	}
	r.VEPC = t
	if t.Switch == SwitchOVS {
		r.Link = "vhost-user"
	}
	if len(r.Points) == 0 {
		return
	}
	p := &r.Points[0]
	t.Mpps, t.GbpsL2, t.Functions = p.Mpps, p.GbpsL2, append(t.Functions, p.Functions...)
	reserved, functions := 0, 0
	for i := range t.Functions {
		f := &t.Functions[i]
		if !f.Relay {
			functions++
		}
		t.BusyCores, t.CPUCores, t.LoadCores = t.BusyCores+f.BusyCores, t.CPUCores+f.CPUCores, t.LoadCores+f.LoadCores
		reserved += f.Reserved
	}
	if t.Mpps > 0 && t.LoadCores > 0 {
		t.CoresPerMpps, t.MppsPerCore = figure.Rounded(t.LoadCores/t.Mpps,
			3), figure.Rounded(t.Mpps/t.LoadCores, 3)
		t.LoadPerMpps = figure.Rounded(100*t.LoadCores/t.Mpps/paperServer, 3)
	}
	if functions > 0 && reserved > 0 {
		t.CoresPerInstance = figure.Rounded(float64(reserved)/float64(functions), 3)
		for _, cores := range []int{1, 2, 4, 8, 16, paperServer} {
			t.InstancesBy = append(t.InstancesBy, InstancesBy{cores,
				int(figure.Number(cores) / t.CoresPerInstance)})
		}
	}
	for i := range p.Latency {
		if l := &p.Latency[i]; l.Echo != nil {
			e := l.Echo
			t.RTT = append(t.RTT, RoundTrip{l.Load, e.P50, e.P90, e.P99, e.Max, l.EchoSent, l.EchoLost})
		}
	}
}

// print writes the table beside the paper's.
func (t *VEPC) print(w io.Writer) error {
	fmt.Fprintf(w, "\nvEPC: %s functions, switch %s, %d sessions\n", t.Arrangement, t.Switch, t.Sessions)
	var cells [][]string
	for i := range t.Functions {
		f := &t.Functions[i]
		cells = append(cells, []string{f.Name, joinInts(f.CPUs), unknown(f.Mpps, f3),
			unknown(f.TicksPerPacket, f1),
			unknown(f.BusyCores, f2), unknown(f.CPUCores, f2), unknown(f.LoadCores, f2)})
	}
	err := writeTable(w, 2, []string{"FUNCTION", "CPUS", "MPPS", "TICKS/PACKET", "BUSY CORES", "CPU CORES",
		"LOAD CORES"}, cells)
	if err != nil {
		return err
	}
	p := &t.Paper
	cells = [][]string{
		{"Mpps through the chain", unknown(t.Mpps, f3), f1(p.Mpps), f1(p.SwitchMpps)},
		{"Mpps per loaded core", unknown(t.MppsPerCore, f3), f2(p.MppsPerCore),
			f2(p.SwitchMpps / (float64(p.Cores) * 0.45))},
		{"load per Mpps, % of 24 cores", unknown(t.LoadPerMpps, f2), f1(p.LoadPerMpps), f1(p.SwitchLoad)},
		{"cores per instance", unknown(t.CoresPerInstance, f2), f1(p.CoresPerInstance), f1(p.SwitchCores)},
	}
	for _, n := range t.InstancesBy {
		if n.Cores == p.Cores {
			cells = append(cells, []string{"instances on 24 cores", strconv.Itoa(n.Instances),
				strconv.Itoa(p.Instances), "7"})
		}
	}
	for _, l := range t.RTT {
		cells = append(cells, []string{fmt.Sprintf("RTT p50/p90/p99 at %.0f %%, µs", 100*l.Load), f1(l.P50) + "/" +
			f1(l.P90) + "/" + f1(l.P99),
			"p90 < " + f1(p.RTTp90us), "p90 < " + f1(p.SwitchRTTp90us)})
	}
	fmt.Fprintln(w)
	return writeTable(w, 1, []string{"FIGURE", "HERE", "PAPER, DIRECT", "PAPER, SWITCH"}, cells)
}
