// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
)

// topology is what a lab is made of, as data: nodes are namespaces, links are veth pairs.
type topology struct {
	nodes     []string
	links     []link
	functions []*function // in the order of the path, radio nodes first
	cores     []core
	bridges   []string // nodes that are a bridge
	routers   []*router
}

// link joins an interface of one node to one of another. A bridge port has no addresses.
type link struct {
	a, b end
	mtu  int
}

type end struct {
	node, name string
	addresses  []netip.Prefix // of the kernel; those of functions are in their own files
	port       bool           // a function's data plane has it: the kernel keeps its hands off
	bridged    bool           // a port of the node's bridge
	mac        string         // empty: the kernel's choice
}

// function is one pair of isthmus and isthmus-dp.
type function struct {
	name, role string
	title      string     // "eNodeB"
	n4         netip.Addr // where it speaks PFCP
	core       int        // of topology.cores: its controller
	interfaces []iface
	routes     []route
	access     string // network instances
	coreSide   string
	local      string // beside an uplink classifier
	standby    bool   // takes over from the anchor
	homes      int    // wireline subscribers
	announce   string
}

type iface struct {
	name      string
	addresses []netip.Prefix
	mtu       int
	endpoint  bool   // GTP-U ends here
	lookup    string // empty: none
	sources   string
	instance  string // empty: one of its own, named alike
	access    bool   // wireline subscribers are there
	clone     string // node with its device; empty: none
	vrf       string
}

type route struct {
	prefix netip.Prefix
	via    netip.Addr
}

// core is one emulated control function.
type core struct {
	name, title string
	addr        netip.Addr
}

const (
	ipMTU     = 1500 // towards UEs and servers
	tunnelMTU = 1600 // with room for the outer headers of GTP-U over IPv6
)

// net4 and net6 make the addresses of the two ends of network n.
func net4(n, host int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), 0, byte(host)}), 24)
}

func net6(n, host int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, byte(n), 15: byte(host)}), 64)
}

func both(n, host int) []netip.Prefix { return []netip.Prefix{net4(n, host), net6(n, host)} }

// Networks by number.
const (
	netRadio  = 200 // and 201: the second radio node's
	netAccess = 1   // S1-U, N3
	netMiddle = 5   // S5/S8-U, N9
	netCore   = 60  // SGi, N6
	netEdge   = 61  // N6 beside the first UPF
)

// words of a generation.
type words struct {
	radio, radioRole, radioTitle         string
	access, middle, core                 string // interfaces and network instances
	relay, relayRole, relayTitle         string
	anchor, anchorRole, anchorTitle, pdn string
}

var generations = map[string]words{
	"4g": {"enb", "enb", "eNodeB", "s1u", "s5u", "sgi", "sgw", "sgwu", "SGW-U", "pgw", "pgwu", "PGW-U", "pdn"},
	"5g": {"gnb", "gnb", "gNB", "n3", "n9", "n6", "upf1", "upf", "UPF (N9)", "upf", "upf", "UPF", "dn"},
	"isp": {radio: "gnb", radioRole: "gnb", radioTitle: "gNB", access: "n3", core: "core", anchor: "gw1",
		anchorRole:  "upf",
		anchorTitle: "gateway", pdn: "dn"},
	"home": {access: "access", core: "n6", anchor: bngNode, anchorTitle: "access gateway", pdn: "dn"},
}

func newTopology(opt *Options) *topology {
	w := generations[opt.Generation]
	switch opt.Generation {
	case "isp":
		return newISP(opt, w)
	case "home":
		return newHome(opt, w)
	}
	t := &topology{nodes: []string{"cp", "ue", w.pdn}}
	relay := opt.Generation == "4g" || opt.N9
	if opt.Generation == "4g" {
		t.cores = []core{
			{"mme", "MME", coreAddress(0)}, {"sgwc", "SGW-C", coreAddress(1)}, {"pgwc", "PGW-C", coreAddress(2)},
		}
	} else {
		t.cores = []core{{"amf", "AMF", coreAddress(0)}, {"smf", "SMF", coreAddress(1)}}
	}
	radios := 1
	if opt.Handover {
		radios = 2
		t.nodes, t.bridges = append(t.nodes, "ran"), []string{"ran"}
	}
	for i := range radios {
		t.addRadio(w, i)
	}
	first := w.anchor
	if relay {
		t.addRelay(w, opt)
		first = w.relay
	}
	t.addAnchor(w, relay, min(1+btoi(relay && opt.Generation == "4g"), len(t.cores)-1))
	t.joinAccess(w, radios, first)
	if relay {
		t.join(port(w.relay, w.middle), port(w.anchor, w.middle), tunnelMTU)
	}
	t.join(port(w.anchor, w.core), end{node: w.pdn, name: w.core, addresses: both(netCore, 2)}, ipMTU)
	t.joinCores()
	return t
}

func (t *topology) join(a, b end, mtu int) { t.links = append(t.links, link{a, b, mtu}) }

// port is the end of a link that a function's data plane has.
func port(node, name string) end { return end{node: node, name: name, port: true} }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func coreAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 40, 0, byte(1 + i)}) }

func (t *topology) add(f *function) {
	f.n4 = netip.AddrFrom4([4]byte{10, 40, 0, byte(11 + len(t.functions))})
	t.nodes = append(t.nodes, f.name)
	t.functions = append(t.functions, f)
}

func (t *topology) addRadio(w words, i int) {
	name, side := w.radio, fmt.Sprintf("ue%d", i)
	if i > 0 {
		name = fmt.Sprintf("%s%d", w.radio, i+1)
	}
	t.add(&function{
		name: name, role: w.radioRole, title: w.radioTitle, access: "radio", coreSide: w.access,
		interfaces: []iface{
			{name: "radio", addresses: both(netRadio+i, 1), mtu: ipMTU, lookup: "source", sources: "access"},
			{name: w.access, addresses: both(netAccess, 1+2*i), mtu: tunnelMTU, endpoint: true, sources: "core"},
		},
		routes: []route{{poolIPv4, net4(netRadio+i, 2).Addr()}, {poolIPv6, net6(netRadio+i, 2).Addr()}},
	})
	t.join(end{node: "ue", name: side, addresses: both(netRadio+i, 2)}, port(name, "radio"), ipMTU)
}

func (t *topology) addRelay(w words, opt *Options) {
	f := &function{
		name: w.relay, role: w.relayRole, title: w.relayTitle, core: 1, access: w.access, coreSide: w.middle,
		interfaces: []iface{
			{name: w.access, addresses: both(netAccess, 2), mtu: tunnelMTU, endpoint: true, sources: "access"},
			{name: w.middle, addresses: both(netMiddle, 1), mtu: tunnelMTU, endpoint: true, sources: "core"},
		},
	}
	if opt.N9 {
		f.local = "edge"
		f.interfaces = append(f.interfaces, iface{name: "edge", addresses: both(netEdge, 1), mtu: ipMTU,
			lookup: "destination"})
		f.routes = []route{{edgeRange, net4(netEdge, 2).Addr()}}
		t.nodes = append(t.nodes, "edge")
		t.join(port(f.name, "edge"), end{node: "edge", name: "n6", addresses: both(netEdge, 2)}, ipMTU)
	}
	t.add(f)
}

func (t *topology) addAnchor(w words, relay bool, controller int) {
	in := iface{name: w.access, addresses: both(netAccess, 2), mtu: tunnelMTU, endpoint: true, sources: "access"}
	if relay {
		in.name, in.addresses = w.middle, both(netMiddle, 2)
	}
	t.add(&function{
		name: w.anchor, role: w.anchorRole, title: w.anchorTitle, core: controller, access: in.name, coreSide: w.core,
		interfaces: []iface{
			in, {name: w.core, addresses: both(netCore, 1), mtu: ipMTU, lookup: "destination", sources: "core"},
		},
		routes: []route{
			{netip.MustParsePrefix("0.0.0.0/0"), net4(netCore, 2).Addr()},
			{netip.MustParsePrefix("::/0"), net6(netCore, 2).Addr()},
		},
	})
}

// joinAccess connects radio nodes to the first function: one by a wire, several by a bridge.
func (t *topology) joinAccess(w words, radios int, first string) {
	if radios == 1 {
		t.join(port(w.radio, w.access), port(first, w.access), tunnelMTU)
		return
	}
	for i, f := range append(t.functions[:radios:radios], t.find(first)) {
		t.join(port(f.name, w.access), end{node: "ran", name: fmt.Sprintf("port%d", i), bridged: true},
			tunnelMTU)
	}
}

func (t *topology) find(name string) *function {
	for _, f := range t.functions {
		if f.name == name {
			return f
		}
	}
	return nil
}

// joinCores connects each function to its controller: a wire with one address at each end.
func (t *topology) joinCores() {
	for _, f := range t.functions {
		t.links = append(t.links, link{
			end{node: f.name, name: "n4", addresses: []netip.Prefix{netip.PrefixFrom(f.n4, 32)}},
			end{node: "cp", name: "n4-" + f.name, addresses: []netip.Prefix{netip.PrefixFrom(t.cores[f.core].addr,
				32)}}, ipMTU,
		})
	}
}
