// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/measure"
	"isthmus/controlplane/pfcp"
)

// Config is what the server runs with. Zero values of numbers and times take the defaults of withDefaults.
type Config struct {
	Listen       []netip.AddrPort // addresses of this host, none unspecified: answers and F-SEIDs name them
	Node         pfcp.NodeID      // zero: the first listen address
	Features     uint64           // UP* bits, see Features
	UEPools      []pfcp.UEPool    // told to CP functions with UPUeip
	Peers        []Peer
	AllowUnknown bool // peers that are not listed may associate

	HeartbeatInterval time.Duration // negative: none are sent
	Timeout           time.Duration // T1 (TS 29.244 §6.4)
	Retries           int           // N1; negative: none
	Headless          time.Duration // how long sessions outlive their association's path; negative: not at all

	RequestRate int // requests per second taken from one peer
	UnknownRate int // messages per second taken from all addresses that are neither associated nor configured

	Associations           int // at a time; slots of configured peers are reserved
	AssociationsPerAddress int // of an address that is not configured
	InFlight               int // session requests that the session layer works on; more are answered with cause 74
	Answers                int // answers that are kept for one peer's retransmissions; its oldest makes room
	AnswerBytes            int // the same in bytes, of one peer; that of all peers is four times as much
	Queue                  int // messages that wait per worker
	Workers                int // goroutines that decode session messages
	Window                 int // session reports to one CP function that are unanswered; more wait

	// AnswerTime is how long an answer is kept: how often and how far apart a peer repeats its request is the
	// peer's choice (TS 29.244 §6.4), not our N1 and T1.
	AnswerTime time.Duration

	// MissAlarm is how many requests per second for sessions that do not exist an association may make before it is
	// called guessing (row A13).
	MissAlarm int

	Measures *measure.Set // nil: nothing is measured
}

// Peer is a CP function that may associate.
type Peer struct {
	Addr    netip.AddrPort // where it sends from; the port is where our requests go
	Node    string         // node id; empty: any from that address
	Set     string         // SMF set; empty: what it says itself
	Connect bool           // we set the association up
}

func byDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (c Config) withDefaults() Config {
	byDefault(&c.HeartbeatInterval, 10*time.Second)
	byDefault(&c.Timeout, time.Second)
	byDefault(&c.Retries, 3)
	byDefault(&c.Headless, time.Hour)
	byDefault(&c.RequestRate, 100000)
	byDefault(&c.UnknownRate, 1000)
	byDefault(&c.Associations, 64)
	byDefault(&c.AssociationsPerAddress, 4)
	byDefault(&c.InFlight, 8192)
	byDefault(&c.Answers, 1<<18)
	byDefault(&c.AnswerBytes, 64<<20)
	byDefault(&c.AnswerTime, 30*time.Second)
	byDefault(&c.Queue, 4096)
	byDefault(&c.Workers, min(runtime.GOMAXPROCS(0), 8))
	byDefault(&c.Window, 1024)
	byDefault(&c.MissAlarm, 100)
	c.Retries = max(c.Retries, 0)
	c.Peers = slices.Clone(c.Peers)
	for i := range c.Peers {
		q := &c.Peers[i]
		q.Node, q.Set = nodeName(q.Node), nodeName(q.Set)
		if a, err := netip.ParseAddr(q.Node); err == nil {
			q.Node = a.String() // as an association's id has it
		}
	}
	if c.Node == (pfcp.NodeID{}) && len(c.Listen) > 0 {
		c.Node.Addr = c.Listen[0].Addr()
	}
	return c
}

func (c *Config) check() error {
	if len(c.Listen) == 0 {
		return errors.New("PFCP: no address to listen on")
	}
	for _, a := range c.Listen {
		// An answer leaves from the address that the request came to (TS 29.244 §6.3), and a UP F-SEID names
		// it.
		if !a.Addr().IsValid() || a.Addr().IsUnspecified() || a.Addr().IsMulticast() {
			return fmt.Errorf("PFCP: listen address %s: name one address of this host", a)
		}
	}
	if len(c.Peers) > c.Associations {
		return fmt.Errorf("PFCP: %d peers are configured, but only %d associations are allowed", len(c.Peers), c.Associations)
	}
	type identity struct {
		addr netip.Addr
		node string
	}
	seen := make(map[identity]bool)
	for i, p := range c.Peers {
		// A peer sends from any port (TS 29.244 §6.3), so on one address only the node id tells who asks.
		who := identity{p.Addr.Addr(), p.Node}
		if seen[who] {
			return fmt.Errorf("PFCP: peer %s: another one has the same address and node id", p.Addr)
		}
		seen[who] = true
		if !p.Addr.Addr().IsValid() || p.Addr.Addr().IsUnspecified() {
			return fmt.Errorf("PFCP: peer %d has no address", i+1)
		}
		if p.Connect && c.listenerOf(p.Addr.Addr()) < 0 {
			return fmt.Errorf("PFCP: peer %s: no listen address of its family", p.Addr)
		}
	}
	return nil
}

// listenerOf returns the first listen address that can reach a, or -1.
func (c *Config) listenerOf(a netip.Addr) int {
	for i, l := range c.Listen {
		if l.Addr().Is4() == a.Is4() {
			return i
		}
	}
	return -1
}

func (c *Config) answerBounds() answerBounds {
	return answerBounds{keep: c.AnswerTime, count: c.Answers, most: int64(c.AnswerBytes), total: 4 * int64(c.AnswerBytes), other: c.Associations}
}

// Capabilities is what the roles and the rest of the configuration make possible.
type Capabilities struct {
	UserPlane    bool // roles upf, sgwu, pgwu: gateways, as against emulated gNBs and eNBs
	PDN          bool // roles upf, pgwu: the side of the data network
	ChooseFTEID  bool // we allocate F-TEIDs
	Pools        bool // an instance has UE pools
	Applications bool // PFD management is on
}

// Features tells the UP function features (TS 29.244 §8.2.25) that are true.
func Features(c Capabilities) uint64 {
	// Whatever the role: end markers, PDI optimisation, packets in measurements, quota actions and validity times,
	// buffering with its two BAR parameters, and SMF sets with an association for each member.
	f := pfcp.UPEmpu | pfcp.UPPdiu | pfcp.UPMnop | pfcp.UPQuoac | pfcp.UPVtime | pfcp.UPSset | pfcp.UPMpas
	if c.UserPlane {
		f |= pfcp.UPDdnd | pfcp.UPDlbd
	}
	if c.ChooseFTEID {
		f |= pfcp.UPFtup
	}
	if c.PDN {
		f |= pfcp.UPFrrt | pfcp.UPTreu | pfcp.UPIP6pl
		if c.Pools {
			f |= pfcp.UPUeip
		}
		if c.Applications {
			f |= pfcp.UPPfdm
		}
	}
	return f
}

// featureNames are in the order of the bits.
var featureNames = strings.Fields(`BUCP DDND DLBD TRST FTUP PFDM HEEU TREU EMPU PDIU UDBC QUOAC TRACE FRRT PFDE EPFAR
	DPDRA ADPDP UEIP SSET MNOP MTE BUNDL GCOM MPAS RTTL VTIME NORP IPTV IP6PL TSCU MPTCP`)

var cpFeatureNames = strings.Fields("LOAD OVRL EPFAR SSET BUNDL MPAS ARDR UIAUR")

func nameBits(bits uint64, names []string) []string {
	out := []string{}
	for i, n := range names {
		if bits&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}
