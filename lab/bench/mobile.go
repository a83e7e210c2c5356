// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent"
)

// MobileProfiles are those of single mobile functions with synth ports. The frame is the same both ways, FCS included.
var MobileProfiles = []Profile{
	{Name: "sgwu", Title: "SGW-U: GTP-U (S1-U) to GTP-U (S5) and back, 128 B", Uplink: 128, Downlink: 128, UplinkShare: pattern, Reading: "1:1"},
	{Name: "pgwu", Title: "PGW-U: GTP-U (S5) to IP (SGi) and back, a policer and a volume URR for each session, 128 B", Uplink: 128,
		Downlink: 128, UplinkShare: pattern, Reading: "1:1"},
	{Name: "upf", Title: "UPF: GTP-U (N3, QFI) to IP (N6) and back, a policer and a volume URR for each session, 128 B", Uplink: 128,
		Downlink: 128, UplinkShare: pattern, Reading: "1:1"},
}

// maxSessions is what the data plane takes.
const maxSessions = 1 << 20

// The mobile fixture: radio nodes behind a router on the access side, one peer or the packet data network on the core side.
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
}

// newMobile makes the layout of a profile, nil for those of the access gateway.
func newMobile(opt Options, huge string) (*mobileLayout, error) {
	if opt.Sessions < 1 || opt.Sessions > maxSessions {
		return nil, fmt.Errorf("%d sessions: 1 to %d are possible", opt.Sessions, maxSessions)
	}
	if opt.Workers < 1 || opt.Workers > 16 {
		return nil, fmt.Errorf("%d workers: 1 to 16 are possible", opt.Workers)
	}
	if len(opt.CPUs) > 0 && len(opt.CPUs) != opt.Workers {
		return nil, fmt.Errorf("%d CPUs for %d workers", len(opt.CPUs), opt.Workers)
	}
	l := &mobileLayout{sessions: opt.Sessions, cpus: opt.CPUs, huge: huge}
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
	return l, nil
}

// yaml is the configuration: what a network's operator writes. Sessions and paths are not in it.
func (l *mobileLayout) yaml() []byte {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("engine:")
	p("  workers: %d", l.workers)
	if len(l.cpus) > 0 {
		p("  cpus: [%s]", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(l.cpus)), ", "), "[]"))
	}
	p("  huge_pages: %s", l.huge)
	p("  limits: {sessions: %d, flows: 65536, rules: %d, urrs: %d, shared_meters: 64}", max(l.sessions, 1024), max(2*l.sessions, 2048),
		max(l.sessions, 1024))
	p("control: {metrics: ''}")
	p("ports:")
	p("  - {name: access, driver: synth, role: core, mtu: 1600, mac: '%s'}", accessMAC)
	p("  - {name: core, driver: synth, role: core, mtu: 1600, mac: '%s'}", coreMAC)
	p("  - {name: floor-access, driver: synth, role: core, mtu: 1600, xconnect: floor-core}")
	p("  - {name: floor-core, driver: synth, role: core, mtu: 1600, xconnect: floor-access}")
	p("interfaces:")
	p("  - {name: access0, port: access, addresses: [%s/24]}", ranIP)
	p("  - {name: core0, port: core, addresses: [%s/24]}", coreIP)
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

// uePool holds every address of ue().
const uePool = "10.64.0.0/10"

func (l *mobileLayout) plan() (*agent.Plan, error) { return agent.MakePlan("benchmark", l.yaml()) }

func (l *mobileLayout) load(ctx context.Context, d *dataPlane) error {
	return l.put(ctx, d, l.sessions)
}

func (l *mobileLayout) describe(r *Result) {
	r.Sessions, r.Flows, r.CPUs = l.sessions, l.sessions, l.cpus
}

// warm sends both ways until every session has had its first packet, which costs more than the others: of n flows in random order,
// n (ln n + 3) packets leave one untouched in 5 of 100 runs. Slow machines stop after a while.
func (r *runner) warm(ctx context.Context, l fixture) error {
	m, ok := l.(*mobileLayout)
	if !ok {
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

// streams are one flow for each session in both directions, for the function and, on the cross-connected ports, for the floor.
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
		Flows: uint32(l.sessions), CheckEvery: uint32(checkEvery), Sizes: 1, RandomOrder: 1, Size: [8]uint16{uint16(size)},
		WorkerModulo: uint32(l.workers), WorkerDivide: 1,
	}
	copy(s.body.Port[:], from)
	copy(s.body.Sink[:], to)
	if s.body.In, err = in.template(true); err != nil {
		return nil, err
	}
	s.body.Out, err = out.template(false)
	return s, err
}
