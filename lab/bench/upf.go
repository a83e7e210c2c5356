// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// The UPF from outside: the six traffic profiles of the offload paper's Table 6, with the flows of its Table 5 (131,072
// subscribers, 2 bearers each, 32 flows a bearer). Each side has a VLAN. Shares are of packets; a size is of a frame as
// it comes to the UPF.

const (
	upfSubscribers = 1 << 17
	upfJumbo       = 9100
	vlanN3         = 3
	vlanN6         = 6
	fillRate       = 5e5 // packets a second while the table fills
)

var (
	upfSame = [][2]int{{128, 128}, {256, 256}, {512, 512}, {650, 650}, {1024, 1024}, {1528, 1528}}
	upfWide = [][2]int{{128, 1408}, {256, 2816}, {512, 5632}, {576, 6336}, {750, 8250}} // 1:11
)

// upfMix is one of them.
type upfMix struct {
	up, down int // shares
	sizes    [][2]int
}

// upfProfile finds one by its name.
func upfProfile(name string) (upfMix, bool) {
	text, ok := strings.CutPrefix(name, "upf-")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 || n > 6 {
		return upfMix{}, false
	}
	m := upfMix{sizes: upfSame}
	if n > 3 {
		m.sizes = upfWide
	}
	m.up, m.down = [3]int{1, 1, 3}[(n-1)%3], [3]int{3, 1, 1}[(n-1)%3]
	return m, true
}

// Presets are a profile's sessions and highest good loss where they are not the usual ones: 0 and "".
func Presets(profile string) (sessions int, goal string) {
	if _, ok := upfProfile(profile); ok {
		return upfSubscribers, "0"
	}
	if p, err := Lookup(profile); err == nil {
		sessions = p.Sessions
	}
	return sessions, ""
}

// LinkFill is the phase in which each flow sends one packet, in turn, and misses. Its packets are no part of any point.
type LinkFill struct {
	Flows          int           `json:"flows"`
	Mpps           figure.Number `json:"mpps"` // offered
	TicksPerPacket figure.Number `json:"ticks_per_packet"`
	FlowInserts    uint64        `json:"flow_inserts"`
	Checked        uint64        `json:"checked"`
	Wrong          uint64        `json:"wrong"`
	Accounting     Accounting    `json:"accounting"`
}

// upfScene measures a UPF with one of the six profiles.
func upfScene(opt Options, mix upfMix) (*scene, error) {
	if opt.Sessions < 1 || opt.Sessions > maxFlowSessions {
		return nil, fmt.Errorf("%d sessions: 1 to %d are possible", opt.Sessions, maxFlowSessions)
	}
	if opt.Instances > 1 {
		return nil, fmt.Errorf("one UPF at a time")
	}
	l, err := newMobile(Options{Profile: "upf-8m-flows", Sessions: opt.Sessions, Workers: opt.Workers,
		CPUs: opt.CPUs}, hugeWord(&opt))
	if err != nil {
		return nil, err
	}
	l.idle, l.vlans, l.mtu = len(opt.CPUs) == 0, true, usualMTU
	if mix.sizes[len(mix.sizes)-1][1] > usualMTU {
		l.mtu = upfJumbo
	}
	s := &scene{
		title: fmt.Sprintf("UPF, %d:%d of packets up and down, a policer and a URR for each bearer", mix.up,
			mix.down),
		flows: opt.Sessions * SessionFlows, memoryMB: 1024, dpMemoryMB: l.memoryMB(), mtu: l.mtu, load: l.load,
		config: func(access, core *wire) []byte {
			line := "{name: %s, %s, role: core, mtu: %d, mac: '%s'}"
			l.ports = []string{fmt.Sprintf(line, "access", access.gateway, l.mtu, accessMAC),
				fmt.Sprintf(line, "core", core.gateway, l.mtu, coreMAC)}
			return l.yaml()
		},
		ports: func(access, core *wire) []tester.Port {
			return []tester.Port{farPort(access, "access", AccessFarMAC, l.mtu+100), farPort(core, "core",
				peerMAC, l.mtu+100)}
		},
	}
	for _, size := range mix.sizes {
		if opt.Size != 0 && opt.Size != size[0] {
			continue
		}
		name := fmt.Sprintf("%d B up, %d B down", size[0], size[1])
		if size[0] == size[1] {
			name = fmt.Sprintf("%d B", size[0])
		}
		s.points = append(s.points, point{
			name: name, streams: append(l.outside(true, size[0], mix.up), l.outside(false, size[1],
				mix.down)...),
			up: l.outside(true, size[0], 1), down: l.outside(false, size[1], 1),
		})
	}
	if len(s.points) == 0 {
		return nil, fmt.Errorf("%d B: the profile has no uplink frames of this size", opt.Size)
	}
	first := mix.sizes[0]
	s.fill = append(l.outside(true, first[0], 1), l.outside(false, first[1], 1)...)
	for i := range s.fill {
		s.fill[i].Order = "turn"
	}
	return s, nil
}

// outside are one direction's streams for the tester, one for each bearer. What must arrive is built from the layout.
func (l *mobileLayout) outside(uplink bool, size, share int) []tester.Stream {
	var list []tester.Stream
	for bearer := range 2 {
		user := func(ttl int) tester.Stack {
			s := userStack(half{}, uplink, bearerFlows)
			service := tester.Count{Base: basePort + bearer*bearerFlows, Count: bearerFlows}
			if s[0].Fields["ttl"] = ttl; uplink {
				s[1].Fields["destination"] = service
			} else {
				s[1].Fields["source"] = service
			}
			return s
		}
		name := fmt.Sprintf("up-%d", bearer+1)
		s := tester.Stream{
			Port: "access", Sink: "core", Share: share, Flows: l.sessions * bearerFlows, Block: bearerFlows,
			Order: "random",
			Seed:  1 + bearer, Size: tester.Size(size), Send: l.n3(true, bearer, user(63)),
			Receive: n6(true,
				user(62)),
		}
		if s.Name = name; !uplink {
			s.Name, s.Port, s.Sink, s.Seed = fmt.Sprintf("down-%d", bearer+1), s.Sink, s.Port, 3+bearer
			s.Send, s.Receive = n6(false, user(63)), l.n3(false, bearer, user(63))
		}
		list = append(list, s)
	}
	return list
}

// n3 is a packet in its tunnel: from a radio node (uplink), or to it. TS 29.281, TS 38.415.
func (l *mobileLayout) n3(uplink bool, bearer int, user tester.Stack) tester.Stack {
	radio := tester.Count{Base: ranFirst, Each: bearerFlows, Count: ranNodes}
	ethernet, outer := tester.Fields{"source": AccessFarMAC, "destination": accessMAC},
		tester.Fields{"source": radio, "destination": ranIP, "ttl": 64}
	teid := teidUp
	if !uplink {
		ethernet = tester.Fields{"source": accessMAC, "destination": AccessFarMAC}
		outer = tester.Fields{"source": ranIP, "destination": radio, "ttl": 64, "id": "any"}
		teid = teidRAN
	}
	return append(tester.Stack{
		{Name: "ethernet", Fields: ethernet}, {Name: "vlan", Fields: tester.Fields{"id": vlanN3}},
		{Name: "ipv4", Fields: outer},
		{Name: "udp", Fields: tester.Fields{"source": 2152, "destination": 2152}},
		{Name: "gtpu", Fields: tester.Fields{"teid": along(teid, bearerFlows),
			"extensions": tester.PDUSession(uplink, int(l.qfi)+bearer)}},
	}, user...)
}

// n6 is a packet on the side of the data network: leaving (uplink), or coming.
func n6(uplink bool, user tester.Stack) tester.Stack {
	ethernet := tester.Fields{"source": peerMAC, "destination": coreMAC}
	if uplink {
		ethernet = tester.Fields{"source": coreMAC, "destination": peerMAC}
	}
	return append(tester.Stack{{Name: "ethernet", Fields: ethernet}, {Name: "vlan",
		Fields: tester.Fields{"id": vlanN6}}}, user...)
}

// fillTable has each flow send its first packet.
func (m *outside) fillTable(ctx context.Context, d *device, r *LinkResult) error {
	s := d.scene
	p := s.profile(m.opt.Profile+"-fill", &m.opt, ports([]*device{d}, &m.opt), s.fill)
	rate := fillRate
	if m.opt.Rate > 0 {
		rate = m.opt.Rate
	}
	p.Run = tester.Plan{
		Mode: tester.ModeFixed, Rate: tester.PPS(rate), Seconds: 1.02 * float64(s.flows) / rate,
		Drain: fixedDrain, LinkWait: 10,
		Warmup: tester.Pointer(0.0), Latency: &tester.Latency{Seconds: 0},
		Disturbed: &tester.Disturbs{Repeats: 0, Steal: "100%"},
	}
	before, err := d.read(ctx)
	if err != nil {
		return err
	}
	run, err := m.run(ctx, []*device{d}, p, "table-fill")
	if run == nil {
		return err
	}
	after, e := d.read(context.WithoutCancel(ctx))
	if e != nil {
		return e
	}
	f := &LinkFill{Flows: s.flows, FlowInserts: after.inserts - before.inserts, Accounting: run.account}
	f.Wrong, _ = run.result.Wrong()
	for i := range run.result.Trials {
		f.Checked += run.result.Trials[i].Received
	}
	if i := headline(run.result); i >= 0 {
		w := run.window(i)
		ticks, _ := w.cost()
		f.Mpps, f.TicksPerPacket = figure.Rounded(run.result.Trials[i].OfferedPPS/1e6,
			6), figure.Rounded(ticks, 1)
	}
	r.Fill = f
	return err
}

func (f *LinkFill) print(w io.Writer) error {
	a, rest := &f.Accounting, ""
	if n := uint64(f.Flows); f.FlowInserts < n {
		rest = fmt.Sprintf("; NOT FULL: %d flows are still unknown, so the loads below have misses", n-f.FlowInserts)
	}
	_, err := fmt.Fprintf(w,
		"table-fill, one packet a flow in turn: %d flows at %.3f Mpps, %.1f ticks a packet, %d inserted; sent %d, "+
			"received %d, "+
			"refused by the full link %d, dropped %s, %d wrong%s\n\n", f.Flows, f.Mpps, f.TicksPerPacket,
		f.FlowInserts, a.Sent, a.Received, a.Refused,
		reasons(a.Dropped), f.Wrong, rest)
	return err
}
