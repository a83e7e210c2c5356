// SPDX-License-Identifier: Apache-2.0

// Package lab makes a whole mobile network on one machine: UE – eNodeB – SGW-U – PGW-U – PDN, or UE – gNB – UPF [– UPF]
// – DN. Every function is a pair of isthmus and isthmus-dp in a network namespace of its own, joined by veth. An
// emulated MME, SGW-C and PGW-C, or AMF and SMF, speaks PFCP to them. Ordinary programs run in the namespaces of the UE
// and of the PDN.
//
// The lab's parts in the system are found by name alone: namespaces that begin with Prefix, processes inside them, and
// one folder. So the next lab, or Clean, removes all of a killed one.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"isthmus/controlplane/agent/spawn"
	"isthmus/lab/smf"
)

// Prefix begins the names of all network namespaces of a lab.
const Prefix = "ilab-"

// DefaultDir is where a lab keeps its files.
const DefaultDir = "/run/isthmus-lab"

// Options of a lab.
type Options struct {
	Generation string // "4g", "5g", "isp" or "home"
	Dir        string
	UEs        int
	N9         bool   // 5g: a second UPF behind the first, which also has a network beside it (uplink classifier)
	Handover   bool   // a second radio node
	IPv6       bool   // GTP-U over IPv6
	Homes      int    // isp, home: wireline subscribers
	PPPoE      bool   // home: not DHCP
	IPv6Only   bool   // home
	IGP        string // isp: "ospf", "isis"; empty: BGP
	Announce   string // isp: pool, host
	Graceful   bool   // isp: no static defaults in gateways
	Routes     int    // isp: of Demonstration.Routes
	Flood      int    // isp: seconds of Demonstration.Flood, for which the first gateway has a port
	DPBinary   string
	Out        io.Writer                        // what the user reads
	Progress   func(what string, share float64) // the step of a start that begins; may be nil
}

// MaxUEs is the room of the address pools.
const MaxUEs = 60000

// Lab is a running network.
type Lab struct {
	journal
	programs
	controllers
	opt     Options
	top     *topology
	program string // isthmus
	dp      string // isthmus-dp
	lock    *os.File
	closers []io.Closer
	started time.Time
}

func (opt *Options) check() error {
	switch {
	case generations[opt.Generation].anchor == "":
		return fmt.Errorf("no lab %q; there are 4g, 5g, isp and home", opt.Generation)
	case opt.Generation == "home" && (opt.Homes < 1 || opt.Homes > MaxSigningIn):
		return fmt.Errorf("%d homes are not between 1 and %d", opt.Homes, MaxSigningIn)
	case opt.Generation != "home" && (opt.UEs < 1 || opt.UEs > MaxUEs):
		return fmt.Errorf("%d UEs are not between 1 and %d", opt.UEs, MaxUEs)
	case opt.N9 && opt.Generation == "4g":
		return errors.New("N9 is an interface of 5G: isthmus lab 5g --n9")
	case opt.Generation == "isp" && (opt.Homes < 1 || opt.Homes > MaxHomes):
		return fmt.Errorf("%d homes are not between 1 and %d", opt.Homes, MaxHomes)
	case opt.IGP != "" && opt.IGP != "ospf" && opt.IGP != "isis":
		return fmt.Errorf("no interior protocol %q; there are ospf and isis", opt.IGP)
	case opt.Generation == "isp" && opt.Announce != "pool" && opt.Announce != "host":
		return fmt.Errorf("%q cannot be announced; pool or host can", opt.Announce)
	case opt.Routes < 0 || opt.Routes > MaxRoutes:
		return fmt.Errorf("%d routes are not between 0 and %d", opt.Routes, MaxRoutes)
	case opt.Flood < 0 || opt.Flood > MaxFlood:
		return fmt.Errorf("a flood of %d seconds is not between 0 and %d", opt.Flood, MaxFlood)
	case opt.IGP != "" && opt.Routes != 0:
		return errors.New("routes are fed by BGP: --routes without --igp")
	case opt.IGP != "" && opt.Flood != 0:
		return errors.New("a flood is judged by BGP and BFD: --flood without --igp")
	case os.Geteuid() != 0:
		return errors.New("the lab makes network namespaces and needs root for it: sudo isthmus lab " + opt.Generation)
	}
	tools := []string{"ip", "nsenter", "ethtool"}
	if opt.Generation == "home" {
		tools = append(tools, "freeradius", "dhclient")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("the lab needs the program %q (Debian: iproute2, util-linux, ethtool, freeradius, "+
				"isc-dhcp-client)", tool)
		}
	}
	if opt.Generation == "isp" {
		return checkFRR()
	}
	return nil
}

// Start makes the network and attaches the UEs. Close takes it away again, also after an error.
func Start(ctx context.Context, opt Options) (*Lab, error) {
	if opt.Dir == "" {
		opt.Dir = DefaultDir
	}
	if opt.Generation == "isp" {
		opt.Announce = cmp.Or(opt.Announce, "pool")
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	l := &Lab{opt: opt, top: newTopology(&opt), started: time.Now()}
	l.out = opt.Out
	l.programs.journal, l.starter, l.ended = &l.journal, newStarter(), make(chan *process, 1)
	l.controllers.journal, l.controllers.opt, l.controllers.top = &l.journal, &l.opt, l.top
	l.network, l.assocs = &smf.Network{}, map[string]*smf.Association{}
	var err error
	if l.program, err = spawn.FindProgram("isthmus"); err != nil {
		return nil, err
	}
	if l.dp, err = spawn.FindDP(opt.DPBinary); err != nil {
		return nil, err
	}
	if l.dp, err = exec.LookPath(l.dp); err != nil { // before anything is made
		return nil, fmt.Errorf("--dp-binary: %w", err)
	}
	if l.lock, err = takeLock(opt.Dir); err != nil {
		return nil, err
	}
	if left := namespaces(); len(left) > 0 {
		l.say("removing what an earlier lab left: %d namespaces", len(left))
	}
	if err := sweep(opt.Dir); err != nil {
		l.lock.Close()
		return nil, err
	}
	if err := l.build(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

type buildStep struct {
	what string
	do   func(context.Context) error
}

// build does the steps of a start in their order.
func (l *Lab) build(ctx context.Context) error {
	steps := []buildStep{
		{"namespaces and links", l.makeNetwork},
		{"functions", l.startFunctions},
		{"servers", l.startServers},
		{"associations", l.associate},
		{"UEs", l.attach},
		{"control", l.serveControl},
	}
	if l.opt.Generation == "home" {
		steps = []buildStep{
			steps[0],
			{"RADIUS", l.startRADIUS},
			steps[1],
			steps[2],
			{"access switch", l.startSwitch},
			{"homes", l.startHomesSigningIn},
			steps[len(steps)-1],
		}
	}
	if l.opt.Generation == "isp" {
		steps = slices.Insert(steps, len(steps)-1, buildStep{"routing daemons", l.startRouting},
			buildStep{"homes", l.startHomes}, buildStep{"convergence", l.converge})
	}
	for i, step := range steps {
		if l.opt.Progress != nil {
			l.opt.Progress(step.what, float64(i)/float64(len(steps)))
		}
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w%s", step.what, err, l.refusals())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.say("%-22s %s", step.what, l.summary(step.what)+fmt.Sprintf(" (%.1f s)", time.Since(began).Seconds()))
	}
	return nil
}

func (l *Lab) summary(step string) string {
	switch step {
	case "namespaces and links":
		return fmt.Sprintf("%d namespaces, %d links", len(l.top.nodes), len(l.top.links))
	case "functions":
		return fmt.Sprintf("%d, each isthmus + isthmus-dp; files in %s", len(l.top.functions), l.opt.Dir)
	case "servers":
		iperf := map[bool]string{true: ", iperf3"}[l.hasIperf()]
		return fmt.Sprintf("HTTP, DNS%s at %s and %s", iperf, serverIPv4, serverIPv6)
	case "routing daemons":
		igp := map[string]string{"": "BGP", "ospf": "OSPF", "isis": "IS-IS"}
		return fmt.Sprintf("FRR with %s and BFD at %d nodes", igp[l.opt.IGP], len(l.top.routers))
	case "RADIUS":
		return fmt.Sprintf("FreeRADIUS with %d users at %s", l.opt.Homes, l.top.cores[0].addr)
	case "access switch":
		return fmt.Sprintf("S-tag %d, a C-tag a line", homesSTag)
	case "homes":
		if l.opt.Generation == "home" {
			return fmt.Sprintf("%d signed in by %s", l.opt.Homes,
				map[bool]string{true: "PPPoE", false: "DHCP"}[l.opt.PPPoE])
		}
		return fmt.Sprintf("%d wireline subscribers", l.opt.Homes)
	case "convergence":
		return "subscribers and the data network reach each other"
	case "associations":
		return fmt.Sprintf("%d over PFCP", len(l.assocs))
	case "UEs":
		return fmt.Sprintf("%d attached", len(l.bearers))
	}
	return "isthmus lab show"
}

// Wait returns when ctx ends (nil) or a function did for good (an error with its last words).
func (l *Lab) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case p := <-l.ended:
		return fmt.Errorf("%s ended (%s) again and again; last lines of %s:\n%s", p.name, p.state, p.log, p.words())
	}
}

// Close ends everything and removes it. It may be called again.
func (l *Lab) Close() error {
	if l.lock == nil {
		return nil
	}
	l.closing.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	for _, c := range l.clients {
		for _, a := range c.Associations() {
			a.Release(ctx) // a good end for functions that still answer
		}
	}
	cancel()
	for _, c := range l.clients {
		c.Close()
	}
	for _, c := range slices.Backward(l.closers) {
		c.Close()
	}
	for _, p := range slices.Backward(l.procs) {
		p.stop()
	}
	close(l.starter)
	err := sweep(l.opt.Dir)
	l.lock.Close()
	l.lock = nil
	return err
}

// folder of a function.
func (l *Lab) folder(f *function) string { return filepath.Join(l.opt.Dir, f.name) }

// UE addresses: the i-th UE (from 1) has 10.45.x.y and 2001:db8:45:i::/64, in which its own address ends with 1.
func ueAddresses(i int) smf.UE {
	return smf.UE{
		IPv4: netip.AddrFrom4([4]byte{10, 45, byte(i >> 8), byte(i)}),
		IPv6: netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, 0x45, byte(i >> 8), byte(i)}), 64),
	}
}

// host is a UE's own address in its prefix.
func host(p netip.Prefix) netip.Addr {
	b := p.Addr().As16()
	b[15] = 1
	return netip.AddrFrom16(b)
}

var (
	poolIPv4   = netip.MustParsePrefix("10.45.0.0/16")
	poolIPv6   = netip.MustParsePrefix("2001:db8:45::/48")
	serverIPv4 = netip.MustParseAddr("198.51.100.1")
	serverIPv6 = netip.MustParseAddr("2001:db8:100::1")
	edgeIPv4   = netip.MustParseAddr("203.0.113.1")
	edgeRange  = netip.MustParsePrefix("203.0.113.0/24")
)
