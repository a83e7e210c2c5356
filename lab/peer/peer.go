// SPDX-License-Identifier: Apache-2.0

// Package peer runs other programs in the gateway's place, to compare their speed. These are dpdk-testpmd (the cost of
// moving packets at all), the examples of Debian's DPDK that forward, route or schedule, and Linux itself. Each is
// driven by the same tester over the same link and on the same CPU, one at a time and in alternating order.
//
// A peer gets the gateway's own packets where it can forward them, else plain IPv4 packets of the same size. Its output
// is compared in full either way: a peer that changes or loses packets has no figure.
package peer

import (
	"cmp"
	"context"
	"fmt"

	"isthmus/lab/tester"
)

// Packets are the kind of packets that a peer gets.
type Packets int

// Kinds of Packets.
const (
	Same   Packets = iota // the gateway's
	Plain                 // IPv4 and UDP, of the same size
	Tagged                // two VLAN tags, IPv4 and UDP, of the same size
)

func (p Packets) String() string {
	switch p {
	case Plain:
		return "plain IPv4 of the same size: it reads no PPPoE and no GTP-U"
	case Tagged:
		return "IPv4 with two VLAN tags, of the same size: it schedules by the tags"
	}
	return "same"
}

// Change is what a peer does to a packet on its way, besides moving it to the other port.
type Change int

// Kinds of Change.
const (
	Everything Change = iota // as the gateway does; the profile's own streams define the expected packets
	Nothing
	SwapMACs   // source and destination address change places
	NewMACs    // addresses of the next hop and of the port
	NewMACsTTL // and the TTL is one less: a router (RFC 1812 §5.3.1)
)

// Links between tester and peer.
const (
	LinkMemif = "memif"
	LinkVeth  = "veth"   // the tester's end, and of a program of DPDK the other one too, is a net_af_packet port
	LinkAFXDP = "af_xdp" // the same with net_af_xdp
)

// End is one port of a program, and the tester's at the other end of its link.
type End struct {
	Name   string // of the tester's port
	MAC    string // of the program's port
	FarMAC string // of the tester's
}

// Setup is what every program of a comparison is started with.
type Setup struct {
	Dir            string // an existing folder for the peer's files and sockets; its path must be short (memif)
	CPU            int    // where packets are forwarded
	MainCPU        int    // where the program's other threads may run; usually the tester's CPU
	Descriptors    int    // of each memif ring; a power of two
	NoHuge         bool
	Flows          int    // in each direction, of plain packets
	Ends           []End  // pairs: packets received at one leave at the other
	ProgramsFolder string // of the examples; empty: as by FindPrograms
}

// Peer is a program that can stand in the gateway's place. The gateway itself takes part as a Peer that its owner
// makes.
type Peer struct {
	Name    string
	Does    string // what it does for a packet, in words
	Note    string // what a reader must know to judge its figure; may be empty
	Link    string
	Packets Packets
	Change  Change
	Ours    bool // the gateway: what the others on the same link are compared with
	Floor   bool // only moves packets: the cost of the link itself
	// Base is what the gateway is measured with on this link, in place of the comparison's; nil: that.
	Base *tester.Profile
	// Version returns what would run; an error is why it cannot.
	Version func(ctx context.Context, s *Setup) (string, error)
	// Start starts it. The caller stops what was started.
	Start func(ctx context.Context, s Setup) (*Running, error)
	over  func(link string) // has it take another link; nil: it has one alone
	// queues: it sends on a queue for each thread, of which veth's drivers have one.
	queues bool
}

// Running is a program in the gateway's place. Its ports wait for the tester.
type Running struct {
	Command []string
	Ports   map[string]tester.Port // the tester's ends, by their names: driver, device, arguments
	Exited  <-chan struct{}        // closed when the program has ended
	Words   func() string          // its last words
	Stop    func()                 // ends it and removes what it left; may be called again
}

// All returns every peer, the floor first.
func All() []*Peer {
	list := []*Peer{
		testpmd("io", "moves packets from port to port, looks at none", Nothing),
		testpmd("macswap", "moves packets from port to port, swaps their MAC addresses", SwapMACs),
	}
	list = append(list, examples()...)
	return append(list, linuxForwarding(LinkVeth))
}

// Forwarders returns those that forward by routes, over one link.
func Forwarders(link string) []*Peer {
	var list []*Peer
	switch link {
	case LinkMemif, LinkVeth, LinkAFXDP:
		for _, p := range examples() {
			if p.Change == NewMACsTTL && p.Name != exactMatch && (link == LinkMemif || !p.queues) {
				p.over(link)
				list = append(list, p)
			}
		}
	}
	if link == LinkVeth || link == LinkAFXDP {
		list = append(list, linuxForwarding(link))
	}
	return list
}

// connect returns the profile with its ports at what runs, and everything else of the tester's ports as it was.
func (r *Running) connect(p *tester.Profile) (*tester.Profile, error) {
	copied := *p
	copied.Ports = append([]tester.Port(nil), p.Ports...)
	for i := range copied.Ports {
		to := &copied.Ports[i]
		far, ok := r.Ports[to.Name]
		if !ok {
			return nil, fmt.Errorf("a comparison has no port %q", to.Name)
		}
		to.Driver, to.Device, to.Args = far.Driver, far.Device, far.Args
		to.Descriptors = cmp.Or(far.Descriptors, to.Descriptors)
	}
	return &copied, nil
}
