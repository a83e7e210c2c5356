// SPDX-License-Identifier: Apache-2.0

// Package config reads the YAML file that configures Isthmus. The structs below are the file's sections. Their tags
// drive the strict decoder (decode.go) and the JSON Schema (schema.go); no other code knows a key. Parse reports every
// fault with file, line and path. Its result is checked (check.go), has its ranges of subscribers expanded
// (subscribers.go), and is equal for equal meaning (reflect.DeepEqual).
package config

import (
	"os"
	"reflect"
	"strings"
	"time"

	"isthmus/controlplane/cpuset"
)

// Config is the whole file.
type Config struct {
	At         `yaml:""`
	Engine     Engine            `yaml:"engine" doc:"Workers, memory, limits and rates of the data plane. Changes need its restart, except rates."`
	Control    Control           `yaml:"control" doc:"The control plane: sockets, metrics, how the data plane is kept running."`
	Ports      []Port            `yaml:"ports" doc:"The ports of the data plane."`
	Interfaces []Interface       `yaml:"interfaces" doc:"IP interfaces: on the core side those that route, on the access side the gateway addresses that subscribers see."`
	Routes     []Route           `yaml:"routes" doc:"Static routes. Interfaces' networks are routes; pools and NAT addresses are discard routes, unless a route has just that prefix."`
	Neighbours []Neighbour       `yaml:"neighbours" doc:"Static neighbours; all others are found by ARP and ND."`
	Firewall   Firewall          `yaml:"firewall" doc:"Rules on the subscriber's IP header, for wireline subscribers; mobile sessions have instances[].access_list."`
	Policers   []Policer         `yaml:"policers" doc:"Profiles that subscribers refer to; each subscriber has a meter of its own."`
	Schedulers []Scheduler       `yaml:"schedulers" doc:"Hierarchical schedulers, one per access port: port, subport, pipe (subscriber), traffic class."`
	Paths      []Path            `yaml:"paths" doc:"GTP-U paths (TS 29.281): a peer, such as a UPF, and our end of the tunnels to it."`
	Instances  []Instance        `yaml:"instances" doc:"Network instances (TS 29.244): where mobile sessions have tunnel endpoints and UE addresses."`
	Mirrors    []Mirror          `yaml:"mirrors" maxlen:"64" doc:"Copies of subscribers' packets, for capture and analysis."`
	Counters   []Counter         `yaml:"counters" maxlen:"64" doc:"Sums of what sessions forward, and watermarks."`
	NATLog     NATLog            `yaml:"nat_log" doc:"Who gets a record of each block of ports given or taken back; show collector counts what was not sent."`
	PFCP       PFCP              `yaml:"pfcp" doc:"The interface to CP functions: N4, Sxa and Sxb."`
	Pools      []AddressPool     `yaml:"pools" maxlen:"256" doc:"Addresses of subscribers who sign in."`
	Access     Access            `yaml:"access" doc:"Subscribers who sign in, by PPPoE or DHCP."`
	RADIUS     RADIUS            `yaml:"radius" doc:"RADIUS servers: authentication, accounting, changes."`
	AAA        AAA               `yaml:"aaa" doc:"Who decides whether subscribers that sign in are let in."`
	Ranges     []SubscriberRange `yaml:"subscribers" doc:"Wireline subscribers, singly or in ranges."`

	Subscribers []Subscriber `yaml:"-"` // Subscribers with the ranges expanded, in the file's order
	Buffers     Buffers      `yaml:"-"` // Engine.PacketBuffers, divided among what holds packets
	Narrow      []Narrow     `yaml:"-"`
}

type Engine struct {
	At            `yaml:""`
	Workers       uint32 `yaml:"workers" default:"1" min:"1" max:"16" doc:"Worker threads; subscribers are spread over them."`
	CPUs          []int  `yaml:"cpus" min:"-1" max:"4095" word:"auto" doc:"CPU of each worker; -1 leaves one unpinned. Empty: none is pinned. auto: of the process' cpuset; without workers one on each."`
	AutoCPUs      bool   `yaml:"-"` // CPUs were chosen
	WhyCPUs       string `yaml:"-"` // for people
	HugePages     string `yaml:"huge_pages" default:"auto" enum:"auto|on|off" doc:"auto uses huge pages when the machine has free ones."`
	PacketBuffers uint32 `yaml:"packet_buffers" default:"32768" min:"1024" max:"4194304" doc:"Packet buffers of the whole process."`
	BufferSize    uint32 `yaml:"buffer_size" default:"2048" min:"512" max:"16384" doc:"Bytes of one packet buffer; larger frames are chained."`
	Limits        Limits `yaml:"limits" doc:"Sizes of tables, fixed at start."`
	Rates         Rates  `yaml:"rates" doc:"Most packets per second and worker that the gateway makes or hands up itself."`
	IdleSleep     bool   `yaml:"idle_sleep" doc:"A worker without work sleeps: for shared or small machines. Devices that cannot wake it, such as cards, are polled each 128 µs."`
	DropUEGTPU    bool   `yaml:"drop_ue_gtpu" default:"true" doc:"Drop any UDP packet to port 2152 that a subscriber sends."`
	UDPSums       string `yaml:"tunnel_checksums" default:"verify" enum:"verify|zero_over_ipv6|ignore" doc:"UDP checksums of received tunnel packets. verify: checked, and needed over IPv6; zero_over_ipv6: zero is accepted there (RFC 6936)."`
	BufferingTime uint32 `yaml:"buffering_time" default:"60" min:"1" max:"86400" doc:"Seconds that a packet waits for its idle UE where the CP function does not say how long (DL Buffering Duration)."`
	FlowIdle      uint32 `yaml:"flow_idle" default:"60" min:"1" max:"86400" doc:"Seconds: the entry of a flow without packets goes after one to two times that."`
	FlowLifetime  uint32 `yaml:"flow_lifetime" max:"1296000" doc:"Seconds, at most 15 times flow_idle: so old, a flow's entry is made again; 0: no limit."`
}

type Limits struct {
	At               `yaml:""`
	Sessions         uint32 `yaml:"sessions" default:"65536" min:"1" max:"1048576" doc:"Sessions, wireline and mobile."`
	Flows            uint32 `yaml:"flows" default:"262144" min:"64" max:"16777216" doc:"Cached flows per worker, 75 bytes each."`
	HeldPackets      uint32 `yaml:"held_packets" max:"1048576" doc:"Packet buffers that hold packets waiting for a neighbour; 0: a share of packet_buffers."`
	Fragments        uint32 `yaml:"fragments" max:"1048576" doc:"Packet buffers that hold fragments, which wait for others of their packets; 0: a share of packet_buffers."`
	Rules            uint32 `yaml:"rules" max:"33554432" doc:"PDRs of all sessions; 0: four a session."`
	URRs             uint32 `yaml:"urrs" max:"16777216" doc:"URRs of all sessions; 0: one a session, two where subscribers sign in."`
	SharedMeters     uint32 `yaml:"shared_meters" max:"33554432" doc:"Meters that several rules or sessions share; 0: two a session."`
	BufferedPackets  uint32 `yaml:"buffered_packets" max:"1048576" doc:"Packet buffers that hold downlink packets waiting for idle UEs; 0: a share of packet_buffers."`
	ScheduledPackets uint32 `yaml:"scheduled_packets" max:"4194304" doc:"Packet buffers that hold packets in schedulers' queues; 0: a share of packet_buffers."`
	Events           uint32 `yaml:"events" max:"1048576" doc:"Reports that wait for the control plane; 0: 65536."`
	Channel          uint32 `yaml:"channel" max:"1048576" doc:"KiB of control frames that wait; 0: 4096."`
	Neighbours       uint32 `yaml:"neighbours" max:"8000" doc:"Neighbours (ARP, ND); 0: 4096."`
	Unresolved       uint32 `yaml:"unresolved_neighbours" max:"8000" doc:"Neighbours of one interface that do not answer; 0: an eighth of neighbours."`
	Traffic          uint32 `yaml:"traffic" max:"65536" doc:"Rows of traffic; more are one, other. 0: 256."`
	Routes           uint32 `yaml:"routes" max:"8388608" doc:"Routes, IPv4 and IPv6 together; 0: 1,310,720."`
}

type Rates struct {
	At               `yaml:""`
	ICMPErrors       uint32 `yaml:"icmp_errors" default:"100" doc:"ICMP and ICMPv6 errors."`
	ErrorIndications uint32 `yaml:"error_indications" default:"100" doc:"GTP-U Error Indications (unknown TEID)."`
	Echo             uint32 `yaml:"echo" default:"1000" doc:"Answered echo requests, ICMP and GTP-U."`
	Punt             uint32 `yaml:"punt" default:"10000" doc:"Packets of a kind handed to the host path."`
	PuntSubscriber   uint32 `yaml:"punt_subscriber" max:"10000000" doc:"Frames of a kind of one subscriber; 0: 40."`
	PuntLine         uint32 `yaml:"punt_line" max:"10000000" doc:"The same of a line (access.ports[].vlans); 0: 100."`
	PuntSTag         uint32 `yaml:"punt_s_tag" max:"10000000" doc:"The same of an S-tag; 0: 5000."`
	PuntPort         uint32 `yaml:"punt_port" max:"10000000" doc:"The same of an access port; 0: 50000."`
	Events           uint32 `yaml:"events" default:"10000" max:"1000000" doc:"Reports of one kind to the control plane, whole process, usage reports apart; 0: 10000."`
	NewFlows         uint32 `yaml:"new_flows" default:"1000000" doc:"First packets of flows of all subscribers; other DSCPs than EF, CS6, CS7 get three quarters. 0: no limit."`
	SubscriberFlows  uint32 `yaml:"subscriber_new_flows" default:"20000" doc:"First packets of flows of one subscriber; 0: no limit."`
	Solicitations    uint32 `yaml:"solicitations" max:"1000000" doc:"ARP requests and neighbour solicitations for unknown hosts, whole process; 0: 1000."`
}

type Control struct {
	At           `yaml:""`
	DPSocket     string        `yaml:"dp_socket" default:"/run/isthmus/dp.sock" max:"107" doc:"Unix socket of the data plane."`
	Socket       string        `yaml:"socket" default:"/run/isthmus/isthmus.sock" max:"107" doc:"Unix socket that the command line talks to."`
	State        string        `yaml:"state" max:"255" doc:"Folder of what outlives the control plane: the file that config apply brought, and which pipes subscribers have. Empty: files beside socket."`
	Metrics      string        `yaml:"metrics" default:"127.0.0.1:9464" max:"255" doc:"Listen address of the Prometheus metrics, host:port; empty: none."`
	API          API           `yaml:"api" doc:"The HTTP API by TCP."`
	Page         bool          `yaml:"page" doc:"Serve the live page on the addresses of api.listen."`
	Restart      Restart       `yaml:"restart" doc:"Whether the control plane starts the data plane, and starts it again when it ends."`
	ResyncPeriod time.Duration `yaml:"resync_period" default:"30" max:"86400" doc:"Seconds between comparisons of what the data plane holds with what it should; 0: only after a connection."`
	UsagePeriod  time.Duration `yaml:"usage_period" default:"5" max:"86400" doc:"Seconds between snapshots of usage; at most about so much is lost with a data plane that ends. 0: all since the last reports."`
}

type Restart struct {
	At       `yaml:""`
	Policy   string        `yaml:"policy" default:"always" enum:"always|never|external" doc:"always: start it and start it again; never: start it once; external: something else starts it."`
	Delay    time.Duration `yaml:"delay_ms" unit:"ms" default:"100" max:"60000" doc:"Milliseconds to wait before the first new start; doubled each time it ends early."`
	MaxDelay time.Duration `yaml:"max_delay_ms" unit:"ms" default:"5000" max:"600000" doc:"Where the doubling stops."`
	Program  string        `yaml:"program" max:"255" doc:"Path of the data plane's program; empty: isthmus-dp beside isthmus."`
}

type Port struct {
	At          `yaml:""`
	Name        Name   `yaml:"name" req:"true" doc:"The port's name."`
	Driver      string `yaml:"driver" req:"true" enum:"synth|inject|share|net_af_packet|net_af_xdp|net_tap|net_memif|net_pcap|net_virtio_user|net_vhost|net_bond|pci" doc:"synth, inject: inside the graph; share: another program of ours; pci: a network card or VF; net_bond: several devices; else DPDK's virtual device."`
	Device      string `yaml:"device" max:"128" doc:"A Linux interface (net_af_…, net_pcap), TAP interface to make (net_tap), socket (share, net_memif, net_vhost, net_virtio_user), PCI address (pci)."`
	Args        string `yaml:"args" max:"255" doc:"Further DPDK device arguments, passed on as they are. share: role=client, else it listens; net_memif: id=0,role=server."`
	Bond        Bond   `yaml:"bond" doc:"What a port of driver net_bond is made of."`
	Role        string `yaml:"role" req:"true" enum:"access|core" doc:"Which side of the gateway the port is on."`
	MTU         uint32 `yaml:"mtu" default:"1500" min:"576" max:"9216" doc:"Largest IP packet on the port, bytes (on the access side: before VLAN tags, with PPPoE's 8 bytes)."`
	Queues      uint32 `yaml:"queues" max:"16" doc:"Receive queues; 0: one per worker where the device can."`
	QueueSize   uint32 `yaml:"queue_size" max:"32768" doc:"Descriptors per queue; 0: 1024."`
	MAC         MAC    `yaml:"mac" doc:"MAC address to use instead of the device's own."`
	Promiscuous bool   `yaml:"promiscuous" doc:"Receive every frame. An access port then still takes its own and group addresses only; it serves xconnect, and a mac that the device refuses."`
	Offload     string `yaml:"offload" default:"none" enum:"none|encapsulation|full|auto" doc:"Most that the device may do for sessions (rte_flow): encapsulation: tunnel headers; full: all; auto: what it takes. Only none was tried on cards."`
	SignIn      SignIn `yaml:"sign_in" doc:"How subscribers of an access port sign in, beside PPPoE and DHCP."`
	Xconnect    Name   `yaml:"xconnect" doc:"Port to which everything received here leaves untouched: measures the cost of the ports alone."`
}

// SignIn is what of strangers is a sign-in.
type SignIn struct {
	At     `yaml:""`
	Packet bool `yaml:"packet" doc:"Any IP packet or ARP of an unknown sender (first sign of life)."`
}

// Bond is link aggregation: IEEE 802.1AX with LACP, without it, or one link and its reserves.
type Bond struct {
	At      `yaml:""`
	Mode    string   `yaml:"mode" enum:"static|lacp|active-standby" doc:"static: all links, by a hash of addresses and ports; lacp: links that the far end agrees to (IEEE 802.1AX); active-standby: one link."`
	Members []Member `yaml:"members" maxlen:"8" doc:"The devices. They belong to the port and are no ports themselves; MTU, queues and MAC address are the port's."`
}

type Member struct {
	At     `yaml:""`
	Driver string `yaml:"driver" req:"true" enum:"net_af_packet|net_tap|pci" doc:"As of a port; those that can be given the port's MAC address."`
	Device string `yaml:"device" max:"128" doc:"As of a port."`
	Args   string `yaml:"args" max:"255" doc:"As of a port."`
}

type Interface struct {
	At        `yaml:""`
	Name      Name     `yaml:"name" req:"true" doc:"The interface's name."`
	Port      Name     `yaml:"port" req:"true" doc:"The port it is on."`
	OuterVLAN uint16   `yaml:"outer_vlan" max:"4094" doc:"Outer or only VLAN; 0: none."`
	InnerVLAN uint16   `yaml:"inner_vlan" max:"4094" with:"outer_vlan" doc:"Inner VLAN; 0: none."`
	Addresses []Prefix `yaml:"addresses" maxlen:"8" length:"given" doc:"Each with its prefix length."`
	VRF       Name     `yaml:"vrf" doc:"VRF of an interface of a core port; absent: the default one."`
	Reverse   string   `yaml:"reverse_path" default:"off" enum:"off|loose|strict" doc:"Core ports: what a packet's source must have (RFC 3704): a route, or one by this interface."`
	Proxy     bool     `yaml:"local_proxy" doc:"Access: answer ARP and ND for all of its networks' addresses."`
	Clone     Clone    `yaml:"clone" doc:"The kernel's device for an interface of a core port."`
	GTSM      uint8    `yaml:"gtsm" max:"254" doc:"Hops that BGP to us may come from (RFC 5082); 0: any."`
	Remark    int      `yaml:"remark" default:"-1" min:"-1" max:"63" doc:"DSCP of received packets; -1: their own."`
}

// Clone is a TAP device.
type Clone struct {
	At        `yaml:""`
	Device    string `yaml:"device" req:"true" max:"15" doc:"The device's name."`
	Namespace string `yaml:"namespace" max:"200" doc:"Namespace, as of ip netns, or its file; absent: our own."`
}

// File is the namespace's; empty: the data plane's own.
func (c *Clone) File() string {
	if c.Namespace == "" || strings.HasPrefix(c.Namespace, "/") {
		return c.Namespace
	}
	return "/run/netns/" + c.Namespace
}

type Route struct {
	At        `yaml:""`
	Prefix    Prefix    `yaml:"prefix" req:"true" doc:"Destination."`
	Via       Address   `yaml:"via" doc:"Next hop, IPv6 of IPv4 destinations too; link-local ones need interface; it may be behind another route. Absent: on the interface."`
	AlsoVia   []Address `yaml:"also_via" maxlen:"7" with:"via" doc:"Further next hops of equal cost."`
	Interface Name      `yaml:"interface" doc:"Interface to leave by; may be absent when via says it."`
	OnLink    bool      `yaml:"onlink" with:"interface" doc:"via is on the link, though in none of its prefixes."`
	Discard   string    `yaml:"discard" default:"none" enum:"none|blackhole|unreachable|prohibit" doc:"Packets end here. Answer to the sender: none (blackhole), host unreachable, administratively prohibited."`
	Announce  bool      `yaml:"announce" with:"discard" doc:"A summary for routing daemons at the VRF's clones."`
	VRF       Name      `yaml:"vrf" doc:"VRF that the route is of; absent: that of interface, or the default one."`
}

type Neighbour struct {
	At        `yaml:""`
	Interface Name    `yaml:"interface" req:"true" doc:"Interface on which the neighbour is."`
	Address   Address `yaml:"address" req:"true" doc:"Its IP address."`
	MAC       MAC     `yaml:"mac" req:"true" doc:"Its MAC address."`
}

type Firewall struct {
	At       `yaml:""`
	Uplink   RuleSet `yaml:"uplink" doc:"Packets from subscribers."`
	Downlink RuleSet `yaml:"downlink" doc:"Packets to subscribers."`
}

type RuleSet struct {
	At            `yaml:""`
	Default       string `yaml:"default" default:"permit" enum:"permit|deny" doc:"What happens to a packet that no rule matches."`
	PerSubscriber bool   `yaml:"per_subscriber" doc:"Add a rule that permits each subscriber's own addresses, after the rules given here."`
	Rules         []Rule `yaml:"rules" maxlen:"65536" doc:"The first rule that matches decides. At most 65536, those per subscriber included."`
}

// Empty says whether the rules permit everything.
func (r *RuleSet) Empty() bool { return r.Default == "permit" && len(r.Rules) == 0 }

type Rule struct {
	At              `yaml:""`
	Source          Prefix    `yaml:"source" doc:"Source prefix; absent: any."`
	Destination     Prefix    `yaml:"destination" doc:"Destination prefix; absent: any."`
	SourcePort      PortRange `yaml:"source_port" doc:"Source port or range."`
	DestinationPort PortRange `yaml:"destination_port" doc:"Destination port or range."`
	Protocol        Protocol  `yaml:"protocol" doc:"IP protocol, by name or number."`
	Action          string    `yaml:"action" req:"true" enum:"permit|deny" doc:"What happens to a packet that matches."`
}

type Policer struct {
	At     `yaml:""`
	Name   Name         `yaml:"name" req:"true" doc:"The profile's name."`
	Type   string       `yaml:"type" req:"true" enum:"srtcm|trtcm" doc:"Single rate (RFC 2697) or two rates (RFC 2698), three colours."`
	CIR    Rate         `yaml:"cir" req:"true" doc:"Committed information rate, of IP packets (the subscriber's IP header and up)."`
	CBS    Burst        `yaml:"cbs" default:"10ms" doc:"Committed burst."`
	EBS    Burst        `yaml:"ebs" default:"10ms" doc:"srtcm: excess burst."`
	PIR    Rate         `yaml:"pir" doc:"trtcm: peak information rate, at least the CIR."`
	PBS    Burst        `yaml:"pbs" default:"10ms" doc:"trtcm: peak burst."`
	Green  ColourAction `yaml:"green" default:"pass" doc:"Within the committed rate."`
	Yellow ColourAction `yaml:"yellow" default:"pass" doc:"Above the committed rate and within the excess."`
	Red    ColourAction `yaml:"red" default:"drop" doc:"Above all."`
	Aware  bool         `yaml:"colour_aware" doc:"A packet of DSCP AFx2 is yellow, of AFx3 red."`
}

type Scheduler struct {
	At            `yaml:""`
	Port          Name      `yaml:"port" req:"true" doc:"The access port that it feeds."`
	Rate          Rate      `yaml:"rate" req:"true" min:"8000" max:"800000000000" doc:"Rate of the port, on the wire; every rate of a scheduler is between 8kbit and 800Gbit."`
	FrameOverhead uint32    `yaml:"frame_overhead" default:"24" max:"64" doc:"Bytes that each frame takes on the wire beside itself: preamble, gap, FCS."`
	QueueSize     [4]uint32 `yaml:"queue_size" default:"[64, 64, 64, 64]" min:"2" max:"8192" doc:"Packets per queue of each traffic class; powers of two."`
	YellowSize    [4]uint32 `yaml:"yellow_size" max:"8192" doc:"Length from which on a queue takes no yellow packets (DSCP AFx2, RFC 2597); 0: queue_size."`
	RedSize       [4]uint32 `yaml:"red_size" max:"8192" doc:"The same of red packets (DSCP AFx3); 0: yellow_size."`
	RED           []RED     `yaml:"red" maxlen:"4" doc:"Random early detection, for the traffic classes named."`
	Subports      []Subport `yaml:"subports" req:"true" one:"true" maxlen:"64" doc:"Service groups; one entry may stand for several alike."`
	Profiles      []Profile `yaml:"profiles" req:"true" maxlen:"32" doc:"What a pipe (subscriber) may be given. The first is the default."`
	Classes       Classes   `yaml:"classes" doc:"How packets are put into traffic classes."`
	Groups        []Subport `yaml:"-"` // Subports with counts expanded
}

// RED is random early detection (RFC 7567) in each queue of a traffic class.
type RED struct {
	At          `yaml:""`
	Class       uint8  `yaml:"class" req:"true" max:"3" doc:"Traffic class."`
	Min         uint16 `yaml:"min" req:"true" min:"1" max:"1022" doc:"Average length of a queue, in packets, from which on packets are dropped, or marked if they are ECN-capable."`
	Max         uint16 `yaml:"max" req:"true" min:"2" max:"1023" doc:"Average length from which on all are dropped; not above the class's queue_size."`
	Probability uint8  `yaml:"probability" default:"10" min:"1" doc:"One packet in so many is dropped or marked just below max, fewer towards min."`
	Weight      uint8  `yaml:"weight" default:"9" min:"1" max:"12" doc:"Of the present length in the average: one in 2 to the power of this."`
}

type Subport struct {
	At         `yaml:""`
	Name       Name    `yaml:"name" doc:"Name that subscribers may refer to."`
	Count      uint32  `yaml:"count" default:"1" min:"1" max:"64" doc:"How many subports like this one."`
	Rate       Rate    `yaml:"rate" min:"8000" max:"800000000000" doc:"Rate of each; absent: an equal share of the port's."`
	Burst      Burst   `yaml:"burst" default:"10ms" doc:"Token bucket of each."`
	ClassRates [4]Rate `yaml:"class_rates" min:"8000" max:"800000000000" doc:"Upper rates of the four traffic classes; absent: the subport's."`
	Pipes      uint32  `yaml:"pipes" max:"65536" doc:"Room for so many subscribers; 0: those of the file, rounded up to a power of two. Core ports and ports with sign-ins need it."`
	Worker     int     `yaml:"worker" default:"-1" min:"-1" max:"15" doc:"Worker that owns its subscribers; -1: the subport's number modulo the workers."`
}

type Profile struct {
	At         `yaml:""`
	Name       Name     `yaml:"name" req:"true" doc:"The profile's name."`
	Rate       Rate     `yaml:"rate" req:"true" min:"8000" max:"800000000000" doc:"Rate of the pipe."`
	Burst      Burst    `yaml:"burst" default:"10ms" doc:"Its token bucket."`
	ClassRates [4]Rate  `yaml:"class_rates" min:"8000" max:"800000000000" doc:"Upper rates of the four traffic classes; absent: the pipe's."`
	Weights    [4]uint8 `yaml:"weights" default:"[1, 1, 1, 1]" min:"1" doc:"Weights of the four queues of class 3."`
}

type Classes struct {
	At   `yaml:""`
	DSCP map[uint8]Class `yaml:"dscp" doc:"DSCP to class. Absent ones: EF, CS5–CS7: 0; AF4x, CS4: 1; AF2x, AF3x, CS2, CS3: 2; AF1x: 3.1; CS1: 3.3; others: 3.0."`
	QFI  map[uint8]Class `yaml:"qfi" doc:"QFI to class; those not named go by the DSCP."`
}

type Path struct {
	At           `yaml:""`
	Name         Name            `yaml:"name" req:"true" doc:"The path's name."`
	Local        Address         `yaml:"local" req:"true" doc:"Our address: of a core interface."`
	Peer         Address         `yaml:"peer" req:"true" doc:"The peer's address."`
	DSCP         uint8           `yaml:"dscp" max:"63" doc:"DSCP of the outer header, where the subscriber has none."`
	QFIDSCP      map[uint8]uint8 `yaml:"qfi_dscp" max:"63" doc:"QFI to DSCP of the outer header, where the subscriber has none; those not named: dscp."`
	TTL          uint8           `yaml:"ttl" default:"64" min:"1" doc:"TTL or hop limit of the outer header."`
	SourcePort   uint16          `yaml:"source_port" doc:"UDP source port; 0: 2152."`
	EchoInterval uint32          `yaml:"echo_interval" max:"86400" doc:"Seconds between Echo Requests: 0 (none) or at least 60 (TS 29.281 clause 7.2.1)."`
}

type SubscriberRange struct {
	At              `yaml:""`
	Name            Name      `yaml:"name" req:"true" doc:"The subscriber's name; of a range: what the names begin with (home gives home-00001 and so on)."`
	Count           uint32    `yaml:"count" max:"1048576" doc:"Number of subscribers in a range; absent: one subscriber, named as given."`
	Port            Name      `yaml:"port" req:"true" doc:"Access port."`
	Encap           string    `yaml:"encap" default:"qinq" enum:"qinq|qinq-pppoe" doc:"Encapsulation on the access side."`
	TPID            uint16    `yaml:"tpid" default:"0x88a8" doc:"TPID of the outer tag that we send: 0x8100 or 0x88a8. Both are accepted."`
	MAC             MAC       `yaml:"mac" req:"true" doc:"MAC address of the home gateway (of the first one)."`
	STag            uint16    `yaml:"s_tag" req:"true" min:"1" max:"4094" doc:"Outer VLAN (first)."`
	CTag            uint16    `yaml:"c_tag" req:"true" min:"1" max:"4094" doc:"Inner VLAN (first)."`
	PerSTag         uint32    `yaml:"per_s_tag" max:"4094" doc:"C-tags used on each S-tag before the next S-tag begins; 0: as many as there are up to 4094."`
	PPPoESession    uint16    `yaml:"pppoe_session" max:"65534" doc:"PPPoE session id (first)."`
	IPv4            Address   `yaml:"ipv4" doc:"IPv4 address (first)."`
	IPv6            Prefix    `yaml:"ipv6" doc:"IPv6 prefix (first)."`
	Path            Name      `yaml:"path" req:"true" doc:"GTP-U path to the core."`
	TEIDUplink      uint32    `yaml:"teid_uplink" req:"true" min:"1" doc:"TEID that the peer gave us, for uplink (first)."`
	TEIDDownlink    uint32    `yaml:"teid_downlink" req:"true" min:"1" doc:"TEID that we gave the peer, for downlink (first)."`
	Step            Step      `yaml:"step" doc:"What each further subscriber of a range adds."`
	QFI             uint8     `yaml:"qfi" max:"63" doc:"QoS flow in both directions; 0: none, no PDU Session Container is sent."`
	QFIUplink       uint8     `yaml:"qfi_uplink" max:"63" doc:"QoS flow of the uplink, instead of qfi."`
	QFIDownlink     uint8     `yaml:"qfi_downlink" max:"63" doc:"QoS flow of the downlink, instead of qfi."`
	DSCP            uint8     `yaml:"dscp" max:"63" doc:"DSCP of the outer header; absent: the path's."`
	OwnDSCP         bool      `yaml:"-"` // dscp was given
	QoSRules        []QoSRule `yaml:"qos_rules" maxlen:"30" doc:"Which QoS flow an uplink packet belongs to; others have qfi_uplink. With DSCPs or priorities each packet is classified, else each flow."`
	UplinkPolicer   Name      `yaml:"uplink_policer" doc:"Policer profile for the uplink; absent: not policed."`
	DownlinkPolicer Name      `yaml:"downlink_policer" doc:"Policer profile for the downlink; absent: not policed."`
	Scheduler       Place     `yaml:"scheduler" doc:"Place in the port's scheduler."`
	Mirror          Name      `yaml:"mirror" doc:"Mirror that packets are copied to; absent: none but those that match."`
	Counter         Name      `yaml:"counter" doc:"Counter that it is a part of, beside those that match."`
	UplinkGate      string    `yaml:"uplink_gate" default:"open" enum:"open|closed" doc:"closed: nothing of the subscriber passes uplink."`
	DownlinkGate    string    `yaml:"downlink_gate" default:"open" enum:"open|closed" doc:"closed: nothing of the subscriber passes downlink."`
	MRU             uint16    `yaml:"mru" max:"9216" doc:"Largest IP packet that the subscriber takes, at least 576; 0: the port's MTU (minus 8 for PPPoE)."`
	MSS             MSS       `yaml:"mss" default:"path" doc:"TCP's MSS in SYNs: path, none, 536 and up."`
}

// QoSRule is a QoS rule of TS 23.501 clause 5.7.1.4, with the packet filters of clauses 5.7.6.2 and 5.7.6.3.
type QoSRule struct {
	At              `yaml:""`
	Precedence      uint8     `yaml:"precedence" req:"true" max:"99" doc:"Lower comes first; each of a subscriber has its own."`
	QFI             uint8     `yaml:"qfi" req:"true" min:"1" max:"63" doc:"QoS flow of the packets that match."`
	Source          Prefix    `yaml:"source" doc:"Source prefix, in the home; absent: any."`
	Destination     Prefix    `yaml:"destination" doc:"Destination prefix; absent: any."`
	SourcePort      PortRange `yaml:"source_port" doc:"Source port or range."`
	DestinationPort PortRange `yaml:"destination_port" doc:"Destination port or range."`
	Protocol        Protocol  `yaml:"protocol" doc:"IP protocol, by name or number."`
	DSCP            []uint8   `yaml:"dscp" maxlen:"64" max:"63" doc:"DSCPs of the home's packet; absent: any."`
	STagPriority    []uint8   `yaml:"s_tag_priority" maxlen:"8" max:"7" doc:"Priority code points of the outer VLAN tag (IEEE 802.1Q); absent: any."`
	CTagPriority    []uint8   `yaml:"c_tag_priority" maxlen:"8" max:"7" doc:"Priority code points of the inner VLAN tag; absent: any."`
	Policer         Name      `yaml:"policer" doc:"Profile of the QoS flow's own meter, beside that of uplink_policer."`
}

type Step struct {
	At           `yaml:""`
	MAC          uint32 `yaml:"mac" default:"1" doc:"Added to the MAC address as a number."`
	PPPoESession uint16 `yaml:"pppoe_session" default:"1" doc:"Added to the PPPoE session id; after 65534 comes 1."`
	IPv4         uint32 `yaml:"ipv4" default:"1" min:"1" doc:"Addresses."`
	IPv6         uint32 `yaml:"ipv6" default:"1" min:"1" doc:"Prefixes of the length given."`
	TEIDUplink   uint32 `yaml:"teid_uplink" default:"1" doc:"Added to teid_uplink."`
	TEIDDownlink uint32 `yaml:"teid_downlink" default:"1" min:"1" doc:"Added to teid_downlink."`
}

type Place struct {
	At      `yaml:""`
	Subport Where `yaml:"subport" default:"by-name" doc:"Number or name of a subport; round-robin: in turn; block: equal parts of the range; by-name: by the subscriber's name alone."`
	Profile Name  `yaml:"profile" doc:"Pipe profile; absent: the scheduler's first."`
}

// Parse reads and checks a file's text; file is only for messages.
func Parse(file string, data []byte) (*Config, error) {
	return ParseWith(file, data, nil, nil)
}

// ParseWith is Parse with an environment ("NAME=value"), for references (expand.go) and overrides (environment.go), and
// with the placement of the configuration before.
func ParseWith(file string, data []byte, environ []string, before Placement) (*Config, error) {
	return ParseOn(Site{Environ: environ}, file, data, before)
}

// Site is what a configuration stands in, beside its text.
type Site struct {
	Environ []string        // "NAME=value"
	CPUs    *cpuset.Machine // engine.cpus auto chooses there; nil: it pins no worker
	Kept    []int           // CPUs of the workers of a running data plane, which cannot change; nil: none is known
}

// Here is this process on this machine.
func Here() Site { return Site{Environ: os.Environ(), CPUs: cpuset.Live()} }

// ParseOn is ParseWith on a machine.
func ParseOn(site Site, file string, data []byte, before Placement) (*Config, error) {
	return parse(file, data, &checker{site: site, before: before})
}

func parse(file string, data []byte, k *checker) (*Config, error) {
	c, d := decode(file, data, k.site.Environ)
	d.environment(c, k.site.Environ)
	if err := d.errs.result(); err != nil {
		return nil, err
	}
	k.Config, k.file, k.errs = c, file, d.errs
	k.all()
	if err := k.errs.result(); err != nil {
		return nil, err
	}
	forget(reflect.ValueOf(c).Elem())
	return c, nil
}
