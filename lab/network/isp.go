// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"
)

// `isthmus lab isp`: two gateways, each with wireline and mobile subscribers. Each has a namespace with clones of its
// core ports and FRR in it. Two FRR routers with the data network stand behind them.

// gateways of the lab, the preferred one first.
const gateways = 2

const (
	netHomes = 64 // gateway addresses of wireline subscribers
	netLinks = 70 // and the following: between gateways, routers, data network
)

// accessMAC is both gateways' towards homes, so that homes need not learn another when one takes over.
const accessMAC = "02:00:00:00:64:01"

// serviceIPv4 is both gateways' tunnel address of wireline subscribers: routing decides between them.
var serviceIPv4 = netip.MustParseAddr("10.99.0.1")

func gatewayName(i int) string { return fmt.Sprintf("gw%d", i+1) }

// fabric is the namespace of a gateway's clones and routing daemons.
func fabric(i int) string { return fmt.Sprintf("fab%d", i+1) }

func newISP(opt *Options, w words) *topology {
	t := &topology{nodes: []string{"cp", "ue", w.pdn, "ran", "lan", "home"}, bridges: []string{"ran", "lan"}}
	t.cores = []core{{"amf", "AMF", coreAddress(0)}, {"smf", "SMF", coreAddress(1)}}
	t.addRadio(w, 0)
	t.join(port(w.radio, w.access), end{node: "ran", name: "gnb", bridged: true}, tunnelMTU)
	t.join(end{node: "home", name: "wan"}, end{node: "lan", name: "home", bridged: true}, tunnelMTU)
	for i := range 2 {
		t.addRouter(fmt.Sprintf("r%d", i+1), i)
	}
	for i := gateways - 1; i >= 0; i-- { // the anchor last
		t.addGateway(opt, w, i)
	}
	t.joinRouters(w)
	if opt.IGP == "" {
		t.addVPN(0)
	}
	t.joinCores()
	return t
}

// linkNumber is the network between gateway g and router r.
func linkNumber(g, r int) int { return netLinks + 2*g + r }

func (t *topology) addGateway(opt *Options, w words, g int) {
	name := gatewayName(g)
	f := &function{
		name: name, role: w.anchorRole, title: w.anchorTitle, core: 1, access: w.access, coreSide: w.core,
		standby: g > 0, homes: opt.Homes, announce: opt.Announce,
		interfaces: []iface{
			{name: "access", addresses: both(netHomes, 1), mtu: ipMTU, access: true},
			{name: w.access, addresses: both(netAccess, 2+g), mtu: tunnelMTU, endpoint: true,
				sources: "access"},
		},
	}
	access := port(name, "access")
	access.mac = accessMAC
	t.join(access, end{node: "lan", name: name, bridged: true}, tunnelMTU)
	t.join(port(name, w.access), end{node: "ran", name: name, bridged: true}, tunnelMTU)
	fab := &router{name: fabric(g), title: name, as: 65001 + g, gateway: true, prepend: g}
	for r, other := range t.routers[:2] {
		n := linkNumber(g, r)
		i := iface{name: fmt.Sprintf("core%d", r+1), addresses: both(n, 1), mtu: tunnelMTU}
		i.lookup, i.instance, i.clone = "destination", w.core, fabric(g)
		if r == 0 {
			i.addresses = append(i.addresses, netip.PrefixFrom(serviceIPv4, 32))
			i.sources = "core"
		}
		f.interfaces = append(f.interfaces, i)
		t.join(port(name, i.name), end{node: other.name, name: name, addresses: both(n, 2)}, tunnelMTU)
		fab.peers = append(fab.peers, routerPeer{i.name, n, 2, other.as, other.name})
		other.peers = append(other.peers, routerPeer{name, n, 1, fab.as, name})
	}
	t.add(f)
	t.nodes = append(t.nodes, fab.name)
	fab.id = net4(linkNumber(g, 0), 1).Addr()
	t.routers = append(t.routers, fab)
}

func (t *topology) addRouter(name string, i int) {
	t.nodes = append(t.nodes, name)
	t.routers = append(t.routers, &router{name: name, title: name, as: 65000, id: net4(netLinks+5+i, 1).Addr()})
}

func (t *topology) joinRouters(w words) {
	a, b := t.routers[0], t.routers[1]
	const between = netLinks + 4
	wire := func(near, far string, n int) {
		t.join(end{node: near, name: far, addresses: both(n, 1)},
			end{node: far, name: near, addresses: both(n, 2)}, tunnelMTU)
	}
	wire(a.name, b.name, between)
	a.peers = append(a.peers, routerPeer{b.name, between, 2, b.as, b.name})
	b.peers = append(b.peers, routerPeer{a.name, between, 1, a.as, a.name})
	for i, r := range []*router{a, b} {
		n := netLinks + 5 + i
		wire(r.name, w.pdn, n)
		r.stub = n
	}
}

// ispHosts are addresses and routes of nodes, and what makes routers of them.
func (l *Lab) ispHosts() []string {
	w := generations["isp"]
	lines := []string{
		fmt.Sprintf("%s addr add %s/32 dev lo", w.pdn, serverIPv4),
		fmt.Sprintf("%s addr add %s/128 dev lo nodad", w.pdn, serverIPv6),
	}
	for _, family := range []struct {
		option string
		of     func(n, host int) netip.Prefix
		from   netip.Addr
	}{{"-4", net4, serverIPv4}, {"-6", net6, serverIPv6}} {
		a, b := family.of(netLinks+5, 1).Addr(), family.of(netLinks+6, 1).Addr()
		lines = append(lines, fmt.Sprintf("%s %s route add default src %s nexthop via %s nexthop via %s",
			w.pdn, family.option, family.from, a, b))
	}
	// A tunnel endpoint serves the interface that has its address, which is towards the first router. Which of two
	// the kernel's hash gives, by a seed of the boot, must not matter.
	lines = append(lines, fmt.Sprintf("%s route add %s src %s via %s", w.pdn, serviceIPv4, serverIPv4,
		net4(netLinks+5, 1).Addr()))
	if l.opt.IGP == "" {
		lines = append(lines, vpnHosts()...)
	}
	return lines
}

// ispHints are what a user may type next.
func (l *Lab) ispHints() string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "\nIn another terminal:\n")
	for _, line := range []string{
		fmt.Sprintf("isthmus lab exec dn ping %s              # a home; a UE: %s", homeOf(0).IPv4,
			ueAddresses(1).IPv4),
		fmt.Sprintf("isthmus lab exec home curl http://%s/", serverIPv4),
		fmt.Sprintf("vtysh --vty_socket %s -c 'show bfd peers brief'", l.frrFolder("r1")),
		fmt.Sprintf("isthmus lab exec %s ip route                   # clones of the first gateway, with FRR",
			fabric(0)),
		fmt.Sprintf("isthmus --socket %s/isthmus.sock status", filepath.Join(l.opt.Dir, gatewayName(0))),
		fmt.Sprintf("isthmus lab exec %s ping %s             # in the second VRF: %s has the UE's address",
			vpnServers, ueAddresses(1).IPv4, vpnSite),
		"isthmus lab show",
	} {
		fmt.Fprintf(b, "  sudo %s\n", line)
	}
	return b.String()
}

// convergence is how long converge may take.
const convergence = time.Minute

// converge starts the echo servers and waits until all nodes reach each other.
func (l *Lab) converge(ctx context.Context) error {
	w := generations["isp"]
	for _, node := range []string{"ue", "home"} {
		if err := l.serveEcho(node); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, convergence)
	defer cancel()
	ue, first := ueAddresses(1), homeOf(0)
	targets := []netip.Addr{ue.IPv4, host(ue.IPv6), first.IPv4, host(first.IPv6)}
	err := reached(ctx, w.pdn, targets)
	if err == nil && l.opt.IGP == "" {
		err = reached(ctx, vpnServers, targets[:2]) // the site has the UE's
	}
	return err
}

// reached waits until all answer a node.
func reached(ctx context.Context, node string, targets []netip.Addr) error {
	for _, target := range targets {
		for {
			_, received, _, err := pings(ctx, node, target.String(), 1, time.Second)
			if err == nil && received == 1 {
				break
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return fmt.Errorf("%s does not answer %s: %w", target, node, err)
			}
		}
	}
	return nil
}
