// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"isthmus/api"
)

// MobileProfiles are those of single mobile functions with synth ports. The frame is the same both ways, FCS included.
var MobileProfiles = []Profile{
	{Name: "sgwu", Title: "SGW-U: GTP-U (S1-U) to GTP-U (S5) and back, 128 B", Uplink: 128, Downlink: 128,
		UplinkShare: pattern, Reading: "1:1"},
	{Name: "pgwu", Title: "PGW-U: GTP-U (S5) to IP (SGi) and back, a policer and a volume URR for each session, 128 B",
		Uplink:   128,
		Downlink: 128, UplinkShare: pattern, Reading: "1:1"},
	{Name: "upf", Title: "UPF: GTP-U (N3, QFI) to IP (N6) and back, a policer and a volume URR for each session, 128 B",
		Uplink:   128,
		Downlink: 128, UplinkShare: pattern, Reading: "1:1"},
	{Name: "upf-8m-flows",
		Title: "UPF, 8,388,608 flows: 131,072 subscribers, 2 bearers each, 32 flows a bearer, a policer and a URR " +
			"for each bearer, 128 B",
		Uplink: 128, Downlink: 128, UplinkShare: pattern, Reading: "1:1", Sessions: 1 << 17},
	{Name: "upf-16m-flows",
		Title: "UPF, 16,777,216 flows: 262,144 subscribers; 3 policers (bearer, session, slice) and 2 URRs (bearer, " +
			"session), 128 B",
		Uplink: 128, Downlink: 128, UplinkShare: pattern, Reading: "1:1", Sessions: 1 << 18},
}

// A flow is a 5-tuple of one direction: half of a bearer's 32 go up, half down.
const (
	bearerFlows  = 16              // each way
	sessionWays  = 2 * bearerFlows // flows of a session each way
	SessionFlows = 2 * sessionWays // of both bearers, both ways
)

// maxSessions is what the data plane takes; maxFlowSessions have as many flows as a worker's table does.
const (
	maxSessions     = 1 << 20
	maxFlowSessions = 1 << 24 / SessionFlows
)

// most is how many sessions a mobile profile may have.
func (p *Profile) most() int {
	if p.Sessions > 0 {
		return maxFlowSessions
	}
	return maxSessions
}

// The mobile fixture: radio nodes behind a router on the access side, one peer or the packet data network on the
// core side.
const (
	ranIP       = "192.0.3.1" // ours on the access side
	ranRouterIP = "192.0.3.2"
	ranNet      = "198.51.102.0/24"
	ranFirst    = "198.51.102.1"
	ranNodes    = 64         // eNodeBs or gNBs, sessions in turn
	teidRAN     = 0x40000000 // that the radio nodes gave
	teidPeer    = 0x30000000 // that the next function gave
)

// mobileLayout is one function with its sessions between the ports access and core.
type mobileLayout struct {
	function
	sessions int
	cpus     []int
	huge     string
	ports    []string // of the configuration, a line each; nil: synth ports
	mtu      int      // above usualMTU: buffers hold such a frame
	vlans    bool     // on both sides
	idle     bool     // workers without work sleep
	steered  int      // workers whose packets come to them; 0: to any
}

// newMobile makes the layout of a profile, nil for those of the access gateway.
func newMobile(opt Options, huge string) (*mobileLayout, error) {
	p, err := Lookup(opt.Profile)
	if err != nil {
		return nil, err
	}
	if opt.Sessions < 1 || opt.Sessions > p.most() {
		return nil, fmt.Errorf("%d sessions: 1 to %d are possible", opt.Sessions, p.most())
	}
	if opt.Workers < 1 || opt.Workers > 16 {
		return nil, fmt.Errorf("%d workers: 1 to 16 are possible", opt.Workers)
	}
	if len(opt.CPUs) > 0 && len(opt.CPUs) != opt.Workers {
		return nil, fmt.Errorf("%d CPUs for %d workers", len(opt.CPUs), opt.Workers)
	}
	l := &mobileLayout{sessions: opt.Sessions, cpus: opt.CPUs, huge: huge, steered: opt.steered()}
	l.name, l.workers = opt.Profile, opt.Workers
	l.access = leg{instance: "access", local: ranIP, teid: teidUp, peerTEID: teidRAN}
	for i := range ranNodes {
		l.access.peers = append(l.access.peers, fmt.Sprintf("198.51.102.%d", 1+i))
	}
	l.core = leg{instance: "core"}
	switch opt.Profile {
	case "sgwu":
		l.core.local, l.core.teid, l.core.peerTEID, l.core.peers = coreIP, teidDown, teidPeer, []string{upfIP}
	case "upf":
		l.usage, l.qfi = true, qfi
	case "pgwu":
		l.usage = true
	}
	if p.Sessions > 0 {
		l.usage, l.qfi, l.flows, l.more = true, qfi, sessionWays, opt.Profile == "upf-16m-flows"
	}
	return l, nil
}

// yaml is the configuration: what a network's operator writes. Sessions and paths are not in it.
func (l *mobileLayout) yaml() []byte {
	b := &writer{}
	p := b.line
	p("engine:")
	p("  workers: %d", l.workers)
	if len(l.cpus) > 0 {
		p("  cpus: [%s]", joinInts(l.cpus))
	}
	p("  huge_pages: %s", l.huge)
	b.buffers(l.mtu)
	if l.idle {
		p("  idle_sleep: true")
	}
	p("  rates: {new_flows: 0, subscriber_new_flows: 0}") // what the gateway can do
	n := max(l.sessions, 1024)
	if l.flows > 0 {
		p("  limits: {sessions: %d, flows: %d, rules: %d, urrs: %d, shared_meters: %d}", n,
			max(2*l.sessions*l.flows, 65536), 4*n, 3*n, 3*n+64)
	} else {
		p("  limits: {sessions: %d, flows: 65536, rules: %d, urrs: %d, shared_meters: 64}", n, 2*n, n)
	}
	p("control: {metrics: ''}")
	p("ports:")
	for _, line := range l.portLines() {
		p("  - %s", line)
	}
	n3, n6 := "", ""
	if l.vlans {
		n3, n6 = fmt.Sprintf("outer_vlan: %d, ", vlanN3), fmt.Sprintf("outer_vlan: %d, ", vlanN6)
	}
	p("interfaces:")
	p("  - {name: access0, port: access, %saddresses: [%s/24]}", n3, ranIP)
	p("  - {name: core0, port: core, %saddresses: [%s/24]}", n6, coreIP)
	p("routes:")
	p("  - {prefix: %s, via: %s}", ranNet, ranRouterIP)
	p("  - {prefix: 198.51.100.0/24, via: %s}", routerIP)
	p("  - {prefix: 203.0.113.0/24, via: %s}", routerIP)
	p("neighbours:")
	p("  - {interface: access0, address: %s, mac: '%s'}", ranRouterIP, AccessFarMAC)
	p("  - {interface: core0, address: %s, mac: '%s'}", routerIP, peerMAC)
	p("policers:")
	p("  - {name: %s, type: trtcm, cir: 20Gbit, pir: 40Gbit}", policerName)
	p("instances:")
	p("  - {name: access, interfaces: [access0], endpoints: [%s], sources: [access]}", ranIP)
	if l.core.tunnel() {
		p("  - {name: core, interfaces: [core0], endpoints: [%s], sources: [core]}", coreIP)
	} else {
		p("  - {name: core, interfaces: [core0], lookup: destination, pools: [%s], sources: [core]}", uePool)
	}
	return []byte(b.String())
}

func (l *mobileLayout) portLines() []string {
	if l.ports != nil {
		return l.ports
	}
	return []string{
		fmt.Sprintf("{name: access, driver: synth, role: core, mtu: 1600, mac: '%s'}", accessMAC),
		fmt.Sprintf("{name: core, driver: synth, role: core, mtu: 1600, mac: '%s'}", coreMAC),
		"{name: floor-access, driver: synth, role: core, mtu: 1600, xconnect: floor-core}",
		"{name: floor-core, driver: synth, role: core, mtu: 1600, xconnect: floor-access}",
	}
}

// uePool holds every address of ue().
const uePool = "10.64.0.0/10"

func (l *mobileLayout) load(ctx context.Context, d *dataPlane) error {
	return l.put(ctx, d, l.sessions)
}

// memoryMB: beside the preset a half full table of flows, and 4 KiB for each session's rules.
func (l *mobileLayout) memoryMB() int {
	if l.flows == 0 {
		return 0
	}
	return 2048 + (2*l.sessions*l.flows*2*64+l.sessions*4096)>>20
}

func (l *mobileLayout) describe(r *Result) {
	r.Sessions, r.Flows, r.CPUs = l.sessions, l.sessions, l.cpus
	if l.flows > 0 {
		r.Flows = 2 * l.sessions * l.flows
	}
}

// warm sends both ways until every session has had its first packet, which costs more. Of n flows in random order, n
// (ln n + 3) packets leave one untouched in 5 of 100 runs. Slow machines stop after a while.
func (r *runner) warm(ctx context.Context, l fixture) error {
	m, ok := l.(*mobileLayout)
	if !ok || m.flows > 0 { // their first packets are a phase of their own
		return nil
	}
	list, n := selected(r.all, false, true, true), float64(m.sessions)
	enough := uint64(n * (math.Log(n) + 3))
	if err := r.d.run(ctx, list, true); err != nil {
		return err
	}
	for end := time.Now().Add(longestWarm); time.Now().Before(end); {
		c, err := r.d.read(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(s *stream) bool { return c.streams[s.name].Received < enough }) {
			break
		}
		if err := r.progress.sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return r.d.run(ctx, list, false)
}

// longestWarm is how long that may take.
const longestWarm = 15 * time.Second

// streams are one flow for each session in both directions, for the function and, on the cross-connected ports, for
// the floor.
func (l *mobileLayout) streams(p Profile, share, checkEvery int) ([]*stream, error) {
	var list []*stream
	for _, floor := range []bool{false, true} {
		for _, uplink := range []bool{true, false} {
			size := p.Downlink - fcs
			if uplink {
				size = p.Uplink - fcs
			}
			s, err := l.stream(uplink, floor, size, checkEvery)
			if err != nil {
				return nil, err
			}
			s.body.Share, s.body.Seed = uint32(share), uint64(len(list)+1)
			if !uplink {
				s.body.Share = pattern
			}
			list = append(list, s)
		}
	}
	return list, nil
}

func (l *mobileLayout) stream(uplink, floor bool, size, checkEvery int) (*stream, error) {
	in, out, err := l.frame(uplink, size)
	if err != nil {
		return nil, err
	}
	s := &stream{name: "down", uplink: uplink, floor: floor}
	from, to := "core", "access"
	if uplink {
		s.name, from, to = "up", to, from
	}
	if floor {
		s.name, from, to = s.name+"-floor", "floor-"+from, "floor-"+to
	}
	s.body = api.Synth{
		Flows: uint32(l.sessions * l.each()), CheckEvery: uint32(checkEvery), Sizes: 1, RandomOrder: 1,
		Size:         [8]uint16{uint16(size)},
		WorkerModulo: uint32(l.steered), WorkerDivide: uint32(l.each()),
	}
	copy(s.body.Port[:], from)
	copy(s.body.Sink[:], to)
	if s.body.In, err = in.template(true); err != nil {
		return nil, err
	}
	s.body.Out, err = out.template(false)
	return s, err
}
