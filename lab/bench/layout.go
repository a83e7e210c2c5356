// SPDX-License-Identifier: Apache-2.0

// Package bench measures the gateway. From outside (Measure): it starts gateway and tester with a link between them and
// finds the highest rates, loss and latency. Inside (Run): it starts a data plane with synth ports and compares packets
// with an independent encoder. It measures a packet's cost beside the ports' own floor in the same run.
package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// fcs is the part of an Ethernet frame that never is in memory. The paper's sizes are read as whole L2 frames.
const fcs = 4

// gap is what a frame takes on a wire beside itself: preamble and inter-frame gap.
const gap = 20

// aclRules is the number of downlink rules, blockRules that of the uplink, as in the vAGF paper.
const (
	aclRules   = 4096
	blockRules = 150
)

// Profile is one benchmark of the paper. Sizes are of frames as the gateway receives them, FCS included.
type Profile struct {
	Name           string
	Title          string
	Uplink         int // bytes
	Downlink       int
	UplinkShare    int     // of 64 places in the uplink's pattern, so that uplink : downlink is as wanted
	Paper          float64 // Mpps per physical core
	PaperCycles    int
	Reading        string // how the ratio is read
	AlternateShare int    // the other reading, 0 none
	Alternate      string
	// preset of a flow profile: its rules lead from 5-tuples, of which each session has SessionFlows both ways
	Sessions int
}

// pattern is the number of places in a synth port's pattern of streams (dataplane/core/port_synth.c).
const pattern = 64

// Profiles known. 89:11 by bits is 504 * 64 : 128 * 31 bytes; by packets 64 : 8.
var Profiles = []Profile{
	{
		Name: "agf-symmetric", Title: "650 B both ways, 1:1", Uplink: 650, Downlink: 650, UplinkShare: pattern,
		Paper: 2.24, PaperCycles: 760, Reading: "1:1",
	},
	{
		Name: "agf-asymmetric", Title: "504 B down, 128 B up, 89:11", Uplink: 128, Downlink: 504, UplinkShare: 31,
		Paper: 2.80, PaperCycles: 608, Reading: "89:11 of bits", AlternateShare: 8, Alternate: "89:11 of packets",
	},
}

// AllProfiles are the profiles by kind.
func AllProfiles() [][]Profile {
	return [][]Profile{Profiles, MobileProfiles, RoutingProfiles, OutsideProfiles}
}

// Lookup returns a profile by name.
func Lookup(name string) (Profile, error) {
	var names []string
	for _, p := range slices.Concat(Profiles, MobileProfiles, RoutingProfiles) {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	for _, p := range OutsideProfiles {
		if p.Name == name {
			return Profile{}, fmt.Errorf("%s is measured from outside only, not with synth ports", name)
		}
	}
	return Profile{}, fmt.Errorf("no profile %q; there are %s", name, strings.Join(names, ", "))
}

// OnlySynth: a profile can only be measured inside the gateway.
func OnlySynth(name string) bool {
	inside := slices.Concat(MobileProfiles, RoutingProfiles)
	return slices.ContainsFunc(inside, func(p Profile) bool { return p.Name == name })
}

// layout places subscribers and their flows: half QinQ, half QinQ with PPPoE.
type layout struct {
	subscribers int
	workers     int
	steered     int // as in mobileLayout
	cpus        []int
	subports    int
	flows       int // downlink and uplink flows of one subscriber
	rules       []rule
	huge        string
	first       int      // number of the first subscriber, so that gateways side by side have subscribers of their own
	ports       []string // of the configuration, a line each; nil: synth ports
	echo        bool     // let ICMP through to the subscribers
	idle        bool     // workers without work sleep
	// kernelTags: the tester receives through AF_PACKET, which hands the outer tag over beside the frame; DPDK's
	// driver always puts it back as 0x8100.
	kernelTags bool
}

// rule permits packets to a prefix of subscribers, for one flow or all.
type rule struct {
	prefix string
	port   int // source port of the server, 0 any
}

const (
	perSTag  = 1024
	basePort = 5000 // UDP source port of a subscriber's first downlink flow
	userPort = 4000
)

// half is one of the two ranges of subscribers.
type half struct {
	name  string
	first int // number of its first subscriber
	count int
	sTag  int
	pppoe bool
}

func newLayout(opt Options, huge string) (*layout, error) {
	subscribers, workers, cpus := opt.Subscribers, opt.Workers, opt.CPUs
	if subscribers < 2 || subscribers > 65536 {
		return nil, fmt.Errorf("%d subscribers: 2 to 65536 are possible", subscribers)
	}
	if workers < 1 || workers > 16 {
		return nil, fmt.Errorf("%d workers: 1 to 16 are possible", workers)
	}
	if len(cpus) > 0 && len(cpus) != workers {
		return nil, fmt.Errorf("%d CPUs for %d workers", len(cpus), workers)
	}
	l := &layout{subscribers: subscribers, workers: workers, cpus: cpus, huge: huge}
	l.steered = opt.steered()
	// Service groups of about 256 subscribers, the same number for each worker.
	groups := min(max((subscribers+255)/256, workers), 64)
	l.subports = min((groups+workers-1)/workers*workers, 64/workers*workers)
	l.flows = max(aclRules/subscribers, 1)
	if l.flows > 64 {
		l.flows = 64
	}
	l.makeRules()
	return l, nil
}

// ue returns the IPv4 address of a subscriber.
func ue(i int) string { return fmt.Sprintf("10.%d.%d.%d", 64+i>>16, i>>8&255, i&255) }

// makeRules covers every flow of every subscriber with at most aclRules rules: a rule for each flow while there are
// few, else a rule for each block of subscribers.
func (l *layout) makeRules() {
	l.rules = nil
	if l.subscribers*l.flows <= aclRules && l.subscribers <= aclRules {
		for i := range l.subscribers {
			for k := range l.flows {
				l.rules = append(l.rules, rule{ue(l.first+i) + "/32", basePort + k})
			}
		}
		return
	}
	bits := 0
	for (l.subscribers+(1<<bits)-1)>>bits > aclRules {
		bits++
	}
	for i := 0; i < l.subscribers; i += 1 << bits {
		l.rules = append(l.rules, rule{fmt.Sprintf("%s/%d", ue(l.first+i), 32-bits), 0})
	}
}

// load: the configuration is all.
func (l *layout) load(context.Context, *dataPlane) error { return nil }

func (l *layout) memoryMB() int { return 0 }

func (l *layout) describe(r *Result) {
	r.Subscribers, r.Flows, r.Rules, r.Blocklist, r.CPUs = l.subscribers, l.subscribers*l.flows, len(l.rules),
		blockRules, l.cpus
}

func (l *layout) halves() []half {
	n := l.subscribers / 2
	return []half{
		{name: "qinq", first: l.first, count: n, sTag: 100},
		{name: "pppoe", first: l.first + n, count: l.subscribers - n, sTag: 1000, pppoe: true},
	}
}
