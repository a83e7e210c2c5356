// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Sections of mobile sessions: the PFCP interface (TS 29.244: N4, Sxa, Sxb) and the network instances.

// DynamicPrefix begins the keys of all objects that sessions over PFCP make; names in the file may not.
const DynamicPrefix = "n4."

// PFCPPort is where PFCP entities listen (TS 29.244 clause 6.1).
const PFCPPort = 8805

// PFCP configures the server. It runs when Listen is not empty.
type PFCP struct {
	At           `yaml:""`
	Listen       []Socket      `yaml:"listen" maxlen:"4" doc:"Addresses of the host on which we speak PFCP, with a port where it is not 8805; they stand in F-SEIDs. Empty: no PFCP."`
	NodeID       string        `yaml:"node_id" max:"255" doc:"Our Node ID, a domain name or an address; empty: the first address of listen."`
	Roles        []string      `yaml:"roles" maxlen:"5" enum:"upf|sgwu|pgwu|gnb|enb" doc:"What this process is, in any combination: its features and the rules it accepts. gnb and enb emulate a radio node's user plane."`
	Peers        []PFCPPeer    `yaml:"peers" maxlen:"256" doc:"CP functions (SMF, SGW-C, PGW-C) that may set up an association."`
	AllowUnknown bool          `yaml:"allow_unknown" doc:"Let any peer set up an association. For closed networks and tests only."`
	FTEID        string        `yaml:"fteid" default:"both" enum:"up|cp|both" doc:"Who allocates F-TEIDs: up takes only CHOOSE, cp only given ones, both either."`
	EmptyAction  string        `yaml:"empty_action" default:"refuse" enum:"refuse|unchanged" doc:"Apply Action 0 in an Update FAR (free5GC's path switch): refuse (TS 29.244 clause 8.2.26), or unchanged: the FAR's action stays."`
	Monitoring   string        `yaml:"monitoring_time" default:"report" enum:"report|pair" doc:"Usage up to a URR's monitoring time. report: when the time comes; pair: together with the usage after it."`
	Takeover     bool          `yaml:"takeover" doc:"A new session may take a UE address that a live session has; the old one loses it. false: refused."`
	Heartbeat    Heartbeat     `yaml:"heartbeat" doc:"How a peer that is gone is found out, and how requests are repeated (TS 29.244 clause 6.4)."`
	Guard        []Address     `yaml:"guard" maxlen:"64" doc:"Further hosts that no UE may send to, such as management addresses; those of listen, peers and the data plane are guarded anyhow."`
	MBRBurst     MBRBurst      `yaml:"mbr_burst" doc:"Bursts that the MBR of a QER lets pass."`
	Headless     time.Duration `yaml:"headless" default:"3600" max:"2592000" doc:"Seconds that sessions live on after their association failed; 0: they are deleted at once."`
	Store        string        `yaml:"store" max:"255" doc:"File in which sessions outlive the control plane; empty: sessions.db in control.state, or beside control.socket."`
	Rates        PFCPRates     `yaml:"rates" doc:"Most messages per second that are answered."`
	Limits       SessionLimits `yaml:"limits" doc:"Most of everything that peers may ask for."`
}

// MBRBurst is how large the buckets of policers are that sessions over PFCP bring.
type MBRBurst struct {
	At     `yaml:""`
	Window time.Duration `yaml:"window" unit:"ms" default:"100" min:"1" max:"60000" doc:"Milliseconds at the rate, where the QER has no averaging window."`
	Least  uint32        `yaml:"least" default:"16384" min:"3044" max:"1073741824" doc:"Bytes; no bucket is smaller, however low the rate. At least two full Ethernet frames."`
}

// Enabled: there is a PFCP interface.
func (p *PFCP) Enabled() bool { return len(p.Listen) > 0 }

// Infrastructure is what no UE may send to: our N4 addresses and those of the CP functions (PFCP.peers bounds their
// number).
func (p *PFCP) Infrastructure() []netip.Addr {
	var all []netip.Addr
	add := func(a netip.Addr) {
		if a.IsValid() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	for _, s := range p.Listen {
		add(s.Addr())
	}
	for i := range p.Peers {
		add(p.Peers[i].Address.Addr())
	}
	for _, a := range p.Guard {
		add(a.Addr)
	}
	return all
}

// Is: the process has a role.
func (p *PFCP) Is(role string) bool { return slices.Contains(p.Roles, role) }

// Node is the Node ID, the default filled in.
func (p *PFCP) Node() string {
	if p.NodeID == "" && p.Enabled() {
		return p.Listen[0].Addr().String()
	}
	return p.NodeID
}

type PFCPPeer struct {
	At      `yaml:""`
	Address Socket `yaml:"address" req:"true" doc:"Where it sends from; with a port where requests to it do not go to 8805."`
	NodeID  string `yaml:"node_id" max:"255" doc:"Its Node ID. Empty: any that is no other entry's Node ID or address, and of no other peer's association."`
	Set     string `yaml:"set" max:"255" doc:"SMF set, of peers of the file only. Empty: the claimed set, if that has no member, or a member named this address."`
	Connect bool   `yaml:"connect" doc:"Set up the association from here, and again when it is lost."`
}

type Heartbeat struct {
	At       `yaml:""`
	Interval time.Duration `yaml:"interval" default:"10" max:"3600" doc:"Seconds between Heartbeat Requests; 0: none are sent."`
	Retries  uint32        `yaml:"retries" default:"3" max:"20" doc:"N1: how often an unanswered request of any kind is repeated."`
	Timeout  time.Duration `yaml:"timeout" default:"1" min:"1" max:"60" doc:"T1: seconds to wait for each answer."`
}

type PFCPRates struct {
	At         `yaml:""`
	Requests   uint32 `yaml:"requests" default:"100000" min:"1" doc:"Requests from one peer."`
	Heartbeats uint32 `yaml:"heartbeats" default:"1000" min:"1" doc:"Messages from addresses without an association, all together."`
}

// SessionLimits bounds what a peer can make us hold. The upper bounds of rules are the data plane's.
type SessionLimits struct {
	At                     `yaml:""`
	Associations           uint32 `yaml:"associations" default:"64" min:"1" max:"65536" doc:"Associations at a time."`
	Sessions               uint32 `yaml:"sessions" max:"1048576" doc:"Sessions; 0: engine.limits.sessions less the subscribers of the file."`
	SessionsPerAssociation uint32 `yaml:"sessions_per_association" max:"1048576" doc:"Sessions of one association; 0: all that there may be."`
	PDRs                   uint32 `yaml:"pdrs" default:"32" min:"1" max:"32" doc:"PDRs of one session."`
	FARs                   uint32 `yaml:"fars" default:"32" min:"1" max:"32" doc:"FARs of one session."`
	QERs                   uint32 `yaml:"qers" default:"32" min:"1" max:"32" doc:"QERs of one session."`
	URRs                   uint32 `yaml:"urrs" default:"16" min:"1" max:"16" doc:"URRs of one session."`
	Filters                uint32 `yaml:"filters" default:"256" min:"1" max:"256" doc:"SDF filters of one session, each list of ports counted out."`
	Applications           uint32 `yaml:"applications" default:"1024" max:"65536" doc:"Applications with PFDs; 0: PFD management is not offered."`
	PFDs                   uint32 `yaml:"pfds" default:"64" min:"1" max:"256" doc:"PFDs of one application."`
}

// Instance is a network instance (TS 29.244 clause 8.2.4).
type Instance struct {
	At         `yaml:""`
	Name       Name            `yaml:"name" req:"true" doc:"The Network Instance that peers name in their rules."`
	Names      []string        `yaml:"names" maxlen:"64" max:"255" doc:"Further Network Instances of rules that mean it, such as APNs; \"*\": all that no instance has."`
	Interfaces []Name          `yaml:"interfaces" req:"true" maxlen:"8" doc:"Its IP interfaces; an interface belongs to one instance."`
	Endpoints  []Address       `yaml:"endpoints" maxlen:"4" doc:"Addresses of our F-TEIDs, each of one of its interfaces."`
	Lookup     string          `yaml:"lookup" default:"none" enum:"none|destination|source" doc:"How its packets without GTP-U find their session. destination: to a UE (N6, SGi); source: from a UE (gnb, enb); none: they are routed."`
	Pools      []Prefix        `yaml:"pools" maxlen:"16" doc:"UE addresses: CHOOSE allocates from them; packets to unused ones are dropped. IPv6: /64 and shorter."`
	Announce   string          `yaml:"announce" default:"none" enum:"none|pool|host" doc:"Routes for routing daemons at its interfaces' clones. pool: its pools; host: sessions' addresses; both: framed routes, NAT44's addresses."`
	UEToUE     string          `yaml:"ue_to_ue" default:"inside" enum:"inside|allow|out|drop" doc:"Packets between UEs. inside, allow: they turn round here; out: they leave by the route and come back (at most 16 pools); drop."`
	PinPeer    bool            `yaml:"pin_peer" doc:"Take a G-PDU only from the address that the session's FAR sends to."`
	DSCP       uint8           `yaml:"dscp" max:"63" with:"endpoints" doc:"DSCP of the outer headers of its tunnels, where the FAR has no Transport Level Marking."`
	MSS        MSS             `yaml:"mss" default:"none" doc:"TCP's MSS in SYNs: path, none, 536 and up."`
	QFIDSCP    map[uint8]uint8 `yaml:"qfi_dscp" max:"63" doc:"QFI to DSCP: of its tunnels' outer headers, of IP packets that leave without a tunnel; unless the FAR has Transport Level Marking."`
	UDPPort    uint16          `yaml:"udp_port" with:"endpoints" doc:"Our port for rules with UDP/IP instead of GTP-U as outer header; 0: none."`
	AccessList RuleSet         `yaml:"access_list" doc:"Rules on IP packets to sessions that come into the instance: inside G-PDUs, or by lookup. The way back enters another instance."`
	NAT        NAT             `yaml:"nat" doc:"NAT44 of the subscribers whose packets leave by its interfaces."`
	NPTv6      []NPTv6         `yaml:"nptv6" maxlen:"16" doc:"NPTv6 of packets that leave by its interfaces."`
	Shaping    Shaping         `yaml:"shaping" doc:"Hierarchical scheduling of what the downlink of its sessions sends into tunnels: a pipe for each session."`
	Sources    []string        `yaml:"sources" maxlen:"4" enum:"access|core|sgi-lan|cp" doc:"Source and destination interfaces that it serves when a rule names no network instance."`
}

// Shaping names a scheduler of a core port.
type Shaping struct {
	At      `yaml:""`
	Port    Name `yaml:"port" req:"true" doc:"Core port with a scheduler, by which the tunnels' packets leave."`
	Profile Name `yaml:"profile" doc:"Pipe profile; absent: the scheduler's first."`
}

// Socket is an address with the port of PFCP unless another is given: "10.0.0.1", "2001:db8::1", "[2001:db8::1]:9000".
type Socket struct{ netip.AddrPort }

func (s *Socket) UnmarshalText(b []byte) error {
	var a Address
	if a.UnmarshalText(b) == nil {
		s.AddrPort = netip.AddrPortFrom(a.Addr, PFCPPort)
		return nil
	}
	v, err := netip.ParseAddrPort(string(b))
	if err != nil || v.Addr().Zone() != "" || v.Addr().Is4In6() || v.Port() == 0 {
		return fmt.Errorf("%q is neither an IP address nor ADDRESS:PORT", clip(string(b)))
	}
	s.AddrPort = v
	return nil
}

func (s Socket) schema() map[string]any { return textLike(`^\[?[0-9A-Fa-f:.]+(\]?:[0-9]{1,5})?$`) }

// nodeIDReason returns why a text is no Node ID (TS 29.244 clause 8.2.38: an address, or a name of RFC 1035 labels); ""
// if it is one.
func nodeIDReason(id string) string {
	if _, err := netip.ParseAddr(id); err == nil {
		return ""
	}
	for _, label := range strings.Split(id, ".") {
		if len(label) == 0 || len(label) > 63 {
			return "has a label of no or more than 63 bytes"
		}
		for _, c := range label {
			if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
				return fmt.Sprintf("holds %q", c)
			}
		}
	}
	return ""
}
