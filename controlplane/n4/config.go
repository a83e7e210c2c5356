// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/pfcp"
)

// Config is the server's configuration: the part of the section that cannot change while it runs, and other options.
type Config struct {
	Listen       []config.Socket // addresses of this host, none unspecified: answers and F-SEIDs name them
	Node         pfcp.NodeID
	Features     uint64        // UP* bits, see Features
	UEPools      []pfcp.UEPool // sent to CP functions with UPUeip
	Peers        []config.PFCPPeer
	AllowUnknown bool
	Heartbeat    config.Heartbeat
	Headless     time.Duration // how long sessions outlive their association's path
	Rates        config.PFCPRates

	Associations           int // at a time; slots of configured peers are reserved
	AssociationsPerAddress int // of an address that is not configured
	InFlight               int // session requests that the session layer works on; more are answered with cause 74
	Answers                int // answers that are kept for one peer's retransmissions; its oldest makes room
	AnswerBytes            int // the same in bytes, of one peer; that of all peers is four times as much
	Queue                  int // messages that wait per worker
	Workers                int // goroutines that decode session messages
	Window                 int // session reports to one CP function that are unanswered; more wait

	// AnswerTime is how long an answer is kept. The peer chooses how often it repeats its request (TS 29.244 §6.4),
	// independent of our N1 and T1.
	AnswerTime time.Duration

	// MissAlarm is the number of requests per second for unknown sessions above which an association is guessing
	// (row A13).
	MissAlarm int

	Measures *measure.Set // nil: nothing is measured
}

// ConfigOf is all but Features, UEPools and Measures.
func ConfigOf(p *config.PFCP) Config {
	c := Config{Listen: p.Listen, Node: pfcp.ParseNodeID(p.Node()), Peers: slices.Clone(p.Peers),
		AllowUnknown: p.AllowUnknown, Heartbeat: p.Heartbeat, Headless: p.Headless, Rates: p.Rates,
		Associations: int(p.Limits.Associations), AssociationsPerAddress: 4, InFlight: 8192,
		Answers: 1 << 18, AnswerBytes: 64 << 20, AnswerTime: 30 * time.Second, Queue: 4096,
		Workers: min(runtime.GOMAXPROCS(0), 8), Window: 1024, MissAlarm: 100}
	for i := range c.Peers {
		q := &c.Peers[i]
		q.NodeID, q.Set = nodeName(q.NodeID), nodeName(q.Set)
		if a, err := netip.ParseAddr(q.NodeID); err == nil {
			q.NodeID = a.String() // as an association's id has it
		}
	}
	return c
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
	return answerBounds{keep: c.AnswerTime, count: c.Answers, most: int64(c.AnswerBytes),
		total: 4 * int64(c.AnswerBytes), other: c.Associations}
}

// Capabilities is what the roles and the rest of the configuration make possible.
type Capabilities struct {
	UserPlane    bool // roles upf, sgwu, pgwu: gateways, as against emulated gNBs and eNBs
	PDN          bool // roles upf, pgwu: the side of the data network
	ChooseFTEID  bool // we allocate F-TEIDs
	Pools        bool // an instance has UE pools
	Applications bool // PFD management is on
}

// Features returns the UP function features (TS 29.244 §8.2.25) that are true.
func Features(c Capabilities) uint64 {
	// In every role: end markers, PDI optimisation, packets in measurements, quota actions and validity times,
	// buffering with its two BAR parameters, SMF sets with an association for each member.
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
