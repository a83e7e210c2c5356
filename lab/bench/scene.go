// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus/controlplane/agent/plan"
	"isthmus/lab/tester"
)

// scene is what a profile is measured with from outside: one gateway and several loads.
type scene struct {
	title       string
	config      func(access, core *wire) []byte // the gateway's configuration at two links
	ports       func(access, core *wire) []tester.Port
	points      []point
	echo        []tester.Stream
	subscribers int
	flows       int
	rules       int
	blocklist   int
	paper       float64 // Mpps per physical core, 0: the paper has none
	paperCycles int
	memoryMB    int                                           // of the tester without huge pages
	dpMemoryMB  int                                           // of the gateway without huge pages; 0: its preset
	mtu         int                                           // of links that carry all of its frames
	load        func(ctx context.Context, d *dataPlane) error // what is not in the configuration; may be nil
	// each flow's first packet, before the points; nil: no such phase
	fill []tester.Stream
	// functions one behind the other in place of the one gateway of config
	chain  *chain
	finish func(*LinkResult) // adds what is the scene's own; may be nil
}

// usualMTU is what tunnels need around an Ethernet frame of 1518 bytes.
const usualMTU = 1600

// point is one load of a scene.
type point struct {
	name     string // "650 B, 1:1"
	reading  string // of the paper's ratio
	note     string
	bytes    int // frame size, 0 for mixes
	streams  []tester.Stream
	up, down []tester.Stream // one direction alone; nil: not measured
}

// uplink derives the direction of a stream from its sending port.
func uplink(port string) bool { return strings.HasSuffix(port, "access") }

// OutsideProfiles are the profiles that only a tester can measure; those of Profiles can be measured both ways.
var OutsideProfiles = []Profile{
	{Name: "rfc2544", Title: "IPv4 and IPv6 router, 64 B to 1518 B and IMIX, both ways"},
	{Name: "jumbo", Title: "IPv4 and IPv6 router, 9000 B, both ways"},
	{Name: "upf-1", Title: "UPF, 8,388,608 flows, 25 % of the packets up, 75 % down, 128 to 1528 B"},
	{Name: "upf-2", Title: "the same, 50 % and 50 %"},
	{Name: "upf-3", Title: "the same, 75 % and 25 %"},
	{Name: "upf-4", Title: "25 % and 75 %, 128 to 750 B up, 11 times as large down"},
	{Name: "upf-5", Title: "the same, 50 % and 50 %"},
	{Name: "upf-6", Title: "the same, 75 % and 25 %"},
	{Name: "vepc-128", Title: "UE - eNodeB - SGW-U - PGW-U - PDN and back, 128 B"},
	{Name: "vepc-256", Title: "the same, 256 B"},
	{Name: "vepc-512", Title: "the same, 512 B"},
	{Name: "vepc-1024", Title: "the same, 1024 B"},
}

// newScene makes the scene of a profile. The first subscriber's number distinguishes gateways side by side.
func newScene(opt Options, first int) (*scene, error) {
	switch opt.Profile {
	case "rfc2544":
		return routerScene(opt, routerSizes)
	case "jumbo":
		return jumboScene(opt)
	}
	if size, ok := vepcSize(opt.Profile); ok {
		return vepcScene(opt, size)
	}
	if mix, ok := upfProfile(opt.Profile); ok {
		return upfScene(opt, mix)
	}
	if OnlySynth(opt.Profile) {
		return nil, fmt.Errorf("%s is measured with synth ports only (--link %s)", opt.Profile, LinkSynth)
	}
	p, err := Lookup(opt.Profile)
	if err != nil {
		names := make([]string, 0, len(Profiles)+len(OutsideProfiles))
		for _, list := range [][]Profile{Profiles, OutsideProfiles} {
			for i := range list {
				names = append(names, list[i].Name)
			}
		}
		return nil, fmt.Errorf("no profile %q; there are %s", opt.Profile, strings.Join(names, ", "))
	}
	return subscriberScene(opt, p, first)
}

func hugeWord(opt *Options) string {
	if opt.NoHuge {
		return "off"
	}
	return "auto"
}

// subscriberScene is an access gateway with its subscribers.
func subscriberScene(opt Options, p Profile, first int) (*scene, error) {
	l, err := newLayout(opt, hugeWord(&opt))
	if err != nil {
		return nil, err
	}
	l.first, l.echo, l.idle = first, true, len(opt.CPUs) == 0
	l.kernelTags = opt.Link == LinkAFPacket
	l.makeRules()
	s := &scene{
		title: p.Title, subscribers: l.subscribers, flows: l.subscribers * l.flows, rules: len(l.rules) + 1,
		blocklist: blockRules,
		paper:     p.Paper, paperCycles: p.PaperCycles, memoryMB: 1024, mtu: usualMTU, echo: l.echoStreams(""),
		config: func(access, core *wire) []byte {
			l.ports = gatewayPorts(access, core)
			return l.yaml()
		},
		ports: func(access, core *wire) []tester.Port {
			return []tester.Port{
				farPort(access, "access", AccessFarMAC, 1600), farPort(core, "core", peerMAC, 1600, routerIP),
			}
		},
	}
	add := func(reading string, share int) {
		send := load{tester.Size(p.Uplink), tester.Size(p.Downlink), share, pattern}
		up, down := send, send
		up.downlinkShare, down.uplinkShare = 0, 0
		s.points = append(s.points, point{
			name: fmt.Sprintf("%d B up, %d B down, %s", p.Uplink, p.Downlink, reading), reading: reading,
			streams: l.testerStreams("", send), up: l.testerStreams("", up), down: l.testerStreams("", down),
		})
	}
	add(p.Reading, p.UplinkShare)
	if p.AlternateShare > 0 {
		add(p.Alternate, p.AlternateShare)
	}
	return s, nil
}

// plan compiles a gateway's configuration.
func (s *scene) plan(access, core *wire) (*plan.Plan, []byte, error) {
	text := s.config(access, core)
	plan, err := plan.Make("benchmark", text)
	return plan, text, err
}

// profile is the tester's file for some of the scene's streams; what to do with them is the caller's.
func (s *scene) profile(name string, opt *Options, ports []tester.Port, streams []tester.Stream) *tester.Profile {
	p := &tester.Profile{
		Name: name, Title: s.title, CPUs: opt.TesterCPUs, HugePages: !opt.NoHuge, Ports: ports, Streams: streams,
	}
	if opt.NoHuge {
		p.MemoryMB = s.memoryMB
	}
	if len(opt.CPUs) > 0 && len(opt.TesterCPUs) > 0 {
		p.GatewayCPU = &opt.CPUs[0]
	}
	return p
}

// sizes prints frame sizes: "650 B" or "7x64 4x594 1x1518 B".
func sizes(s tester.Sizes) string {
	if len(s) == 1 {
		for bytes := range s {
			return fmt.Sprintf("%d B", bytes)
		}
	}
	var list []string
	for _, bytes := range slices.Sorted(maps.Keys(s)) {
		list = append(list, fmt.Sprintf("%dx%d", s[bytes], bytes))
	}
	return strings.Join(list, " ") + " B"
}
