// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"isthmus/api"
)

// Tables in the order of the help.
var Tables = []*Table{
	portTable, cloneTable, gtsmTable, remarkTable, sessionTable, subscriberTable, poolTable, radiusTable, ruleTable,
	urrTable, instanceTable, mssTable, natTable, natBlockTable, collectorTable, nptv6Table, mirrorTable, counterTable,
	trafficTable, associationTable, n4Table, eventTable, routeTable, ignoredRouteTable, neighbourTable, aclTable,
	schedulerTable, graphTable, dropTable, puntTable, channelTable, senderTable, workerTable, pathTable, streamTable,
	totalTable,
}

// word names a number of an enum; numbers without a name stay numbers.
func word(names map[uint32]string, v uint32) string {
	if s, ok := names[v]; ok {
		return s
	}
	return strconv.FormatUint(uint64(v), 10)
}

// words are the enums of the contract, by the tag `word` of a field.
var words = map[string]map[uint32]string{
	"offload": {
		api.OffloadNone: "none", api.OffloadEncapsulation: "encapsulation", api.OffloadFull: "full",
		api.OffloadAuto: "auto",
	},
	"steering": {
		api.SteeringNone: "none", api.SteeringSoftware: "software", api.SteeringRSS: "rss",
		api.SteeringRSSInner: "rss-inner", api.SteeringFlowRules: "flow-rules",
	},
	"role":   {api.RoleAccess: "access", api.RoleCore: "core"},
	"encap":  {api.EncapNone: "none", api.EncapQinQ: "qinq", api.EncapQinQPPPoE: "qinq-pppoe"},
	"action": {api.ActionDeny: "deny", api.ActionPermit: "permit"},
	"state":  {1: "incomplete", 2: "reachable", 3: "stale", 4: "static"},
	"source": {
		api.SourceFromAccess: "access", api.SourceFromCore: "core", api.SourceFromSGILAN: "sgi-lan",
		api.SourceFromCP: "cp",
	},
	"lookup": {api.LookupNone: "none", api.LookupDestination: "destination", api.LookupSource: "source"},
	"mirror": {api.MirrorToPort: "port", api.MirrorToGTPU: "gtpu", api.MirrorToERSPAN: "erspan"},
	"nat":    {api.NATModeBlocks: "blocks", api.NATModeDeterministic: "deterministic"},
	"discard": {
		api.DiscardNone: "", api.DiscardBlackhole: "blackhole", api.DiscardUnreachable: "unreachable",
		api.DiscardProhibit: "prohibit", api.DiscardUnassigned: "unassigned",
	},
	"event": {
		api.EventTypeUsage: "usage", api.EventTypeDownlinkData: "downlink-data",
		api.EventTypeErrorIndication: "error-indication", api.EventTypePathDown: "path-down",
		api.EventTypePathUp: "path-up", api.EventTypeInactive: "inactive",
		api.EventTypeBufferFull: "buffer-full", api.EventTypeMissed: "missed",
		api.EventTypeWatermark: "watermark", api.EventTypeLCPDown: "lcp-down",
		api.EventTypeNATAllocate: "nat-allocate", api.EventTypeNATRelease: "nat-release",
	},
}

// Clone is a network device of the kernel for an interface.
type Clone struct {
	Name       string `json:"name"` // of the interface
	Device     string `json:"device"`
	Netns      string `json:"namespace"`
	Attached   bool   `json:"attached"` // the data plane has the device open
	Link       bool   `json:"link"`
	MTU        uint32 `json:"mtu"`
	ToKernel   uint64 `json:"to_kernel"`   // packets
	FromKernel uint64 `json:"from_kernel"` // packets
	Refused    uint64 `json:"refused"`     // packets that the kernel did not take
	Dropped    uint64 `json:"dropped"`     // packets from the kernel
	Why        string `json:"why"`         // what is missing
}

var cloneTable = list[api.CloneRow]("clone", "interfaces' devices in the kernel", true, api.TableClone,
	columns[Clone](`INTERFACE=Name, DEVICE, NAMESPACE=Netns, ATTACHED, LINK, MTU,
		TO KERNEL, FROM KERNEL, REFUSED, DROPPED, WHY`)).
	rates("name", "device", "to_kernel from_kernel refused dropped")

// GTSM is how far away BGP on an interface may come from.
type GTSM struct {
	Name    string `json:"name"`    // of the interface
	Hops    uint32 `json:"hops"`    // from which BGP may come at most
	Passed  uint64 `json:"passed"`  // BGP packets to us
	Dropped uint64 `json:"dropped"` // BGP packets from further away
}

var gtsmTable = list[api.GTSMRow]("gtsm", "how far away BGP may come from", true, api.TableGTSM,
	columns[GTSM]("INTERFACE=Name, HOPS, PASSED, DROPPED")).
	rates("name", "", "passed dropped")

// Remark is the DSCP that packets get which come in by an interface.
type Remark struct {
	Name     string `json:"name"`     // of the interface
	DSCP     uint32 `json:"dscp"`     // that they get
	Packets  uint64 `json:"packets"`  // that came in
	Remarked uint64 `json:"remarked"` // of those, with another DSCP
}

var remarkTable = list[api.RemarkRow]("remark", "the DSCP of received packets", true, api.TableRemark,
	columns[Remark]("INTERFACE=Name, DSCP, PACKETS, REMARKED")).
	rates("name", "dscp", "packets remarked").
	metrics("interface=Name", `
	remark_packets_total=Packets: IP packets that came in by an interface with remark.
	remark_remarked_packets_total=Remarked: Those of them that had another DSCP.`)

// MSS is how many SYNs of an instance's sessions asked for longer segments than they may.
type MSS struct {
	Name      string `json:"name"`      // of the network instance of the SYNs; empty: none
	Uplink    uint64 `json:"uplink"`    // SYNs whose MSS was lowered
	Downlink  uint64 `json:"downlink"`  // SYNs whose MSS was lowered
	Malformed uint64 `json:"malformed"` // SYNs left alone: their options cannot be read
}

var mssTable = list[api.MSSRow]("mss", "SYNs whose MSS was lowered", true, api.TableMSS,
	columns[MSS]("INSTANCE=Name, UPLINK, DOWNLINK, MALFORMED")).
	rates("name", "", "uplink downlink malformed").
	metrics("instance=Name", `
	mss_uplink_packets_total=Uplink: SYNs from subscribers whose MSS was lowered.
	mss_downlink_packets_total=Downlink: SYNs to subscribers whose MSS was lowered.
	mss_malformed_packets_total=Malformed: SYNs whose options could not be read.`)

// Channel is what went between subscribers and the control plane for one reason, or down.
type Channel struct {
	Name           string `json:"name"` // reason, or down: frames to subscribers
	Frames         uint64 `json:"frames"`
	OverSubscriber uint64 `json:"over_subscriber"` // dropped above engine.rates.punt_subscriber
	OverLine       uint64 `json:"over_line"`       // dropped above punt_line
	OverSTag       uint64 `json:"over_s_tag"`      // dropped above punt_s_tag
	OverPort       uint64 `json:"over_port"`       // dropped above punt_port
	Full           uint64 `json:"full"`            // dropped: the other side is too slow
	Refused        uint64 `json:"refused"`         // no reader; down: malformed, or no such access port
	Lost           uint64 `json:"lost"`            // down: the control plane found the channel closed or full
}

var channelTable = newChannelTable()

func newChannelTable() *Table {
	n := list[api.ChannelRow]("channel", "frames between subscribers and the control plane", false,
		api.TableChannel, columns[Channel](`REASON=Name, FRAMES, OVER SUBSCRIBER, OVER LINE, OVER S-TAG=OverSTag,
			OVER PORT, FULL, REFUSED, LOST`))
	n.Join = func(c Control, v any) {
		rows, _ := v.([]Channel)
		for i := range rows {
			if rows[i].Name == "down" {
				rows[i].Lost = c.FramesLost()
			}
		}
	}
	return n
}

// Port is one port of the data plane.
type Port struct {
	Name       string `json:"name"`
	Driver     string `json:"driver"`
	Role       string `json:"role" word:"role"` // access, core
	MTU        uint32 `json:"mtu"`              // IP bytes
	Up         bool   `json:"up"`               // the link
	Gone       bool   `json:"gone"`             // the device was taken away
	SpeedMbps  uint32 `json:"speed_mbps"`
	MAC        string `json:"mac"`
	RxPackets  uint64 `json:"rx_packets"`
	RxBytes    uint64 `json:"rx_bytes"`
	TxPackets  uint64 `json:"tx_packets"`
	TxBytes    uint64 `json:"tx_bytes"`
	RxMissed   uint64 `json:"rx_missed"`    // by the device; of net_af_packet by the kernel
	RxNoBuffer uint64 `json:"rx_no_buffer"` // no packet buffer was free
	TxDropped  uint64 `json:"tx_dropped"`   // packets that the device did not take
	RxErrors   uint64 `json:"rx_errors"`    // frames that the device found bad (FCS, length)
	TxErrors   uint64 `json:"tx_errors"`    // frames that the device did not send

	Offload        string `json:"offload" word:"offload"` // none, encapsulation, full: what the device does
	OffloadEntries uint32 `json:"offload_entries"`        // flows that the device forwards
	OffloadRefused uint64 `json:"offload_refused"`        // flows left to the software
	OffloadWhy     string `json:"offload_why"`            // why the device does no more

	// rss: the device spreads packets over workers by the outer header; rss-inner, flow-rules: by TEID, inner header,
	// tags; software: it does not
	Steering string `json:"steering" word:"steering"`
}

func (p *Port) state() string {
	switch {
	case p.Gone:
		return "gone"
	case p.Up:
		return "up"
	}
	return "down"
}

var portTable = list[api.PortRow]("port", "ports and their counters", true, api.TablePort,
	columns[Port](`PORT=Name, DRIVER, ROLE, STATE, MTU, MAC, RX PACKETS, RX BYTES, TX PACKETS, TX BYTES, RX MISSED,
		RX ERRORS, TX DROPPED, TX ERRORS, STEERING, OFFLOAD, ENTRIES=OffloadEntries, REFUSED=OffloadRefused,
		WHY NOT MORE=OffloadWhy`,
		num("RX MISSED", func(p *Port) uint64 { return p.RxMissed + p.RxNoBuffer }),
		str("STATE", (*Port).state))).
	rates("name", "", `rx_packets rx_bytes tx_packets tx_bytes rx_missed rx_no_buffer rx_errors tx_dropped
		tx_errors`).
	metrics("port=Name", `
	port_receive_packets_total=RxPackets: Packets received by the port.
	port_receive_bytes_total=RxBytes: Bytes received by the port.
	port_transmit_packets_total=TxPackets: Packets sent by the port.
	port_transmit_bytes_total=TxBytes: Bytes sent by the port.
	port_receive_missed_total=RxMissed: Packets that the device lost because its queue was full.
	port_receive_no_buffer_total=RxNoBuffer: Packets that the device lost because no buffer was free.
	port_receive_errors_total=RxErrors: Frames that the device found bad.
	port_transmit_dropped_total=TxDropped: Packets that the device did not take.
	port_transmit_errors_total=TxErrors: Frames that the device did not send.
	port_offload_entries=OffloadEntries: Flows that the device forwards by itself.
	port_offload_refused_total=OffloadRefused: Flows that the device, or what they need, left to the software.
	port_up=Up: 1 when the link is up.`)

// Neighbour is one entry of the neighbour table.
type Neighbour struct {
	Interface string `json:"interface"`
	Address   string `json:"address"`
	MAC       string `json:"mac"`
	State     string `json:"state" word:"state"` // incomplete, reachable, stale, static
	AgeS      uint32 `json:"age_s"`
	Held      uint32 `json:"held"` // packets that wait for the MAC address
}

var neighbourTable = list[api.NeighbourRow]("neighbour", "neighbours (ARP, ND, static)", true, api.TableNeighbour,
	columns[Neighbour]("INTERFACE, ADDRESS, MAC, STATE, AGE S, HELD"))

// ACL is one firewall rule, or the default action when Default is set.
type ACL struct {
	Name    string `json:"name"`                 // of the access list
	Rule    uint32 `json:"rule"`                 // from 0
	Default bool   `json:"default"`              // the default action, no rule
	Action  string `json:"action" word:"action"` // permit, deny
	Packets uint64 `json:"packets"`
}

func (v *ACL) finish(r *api.ACLRow) {
	if r.Rule == 0xffffffff {
		v.Rule, v.Default = 0, true
	}
}

var aclTable = list("acl", "firewall rules and their hits", true, api.TableACL,
	columns[ACL]("ACL=Name, RULE, ACTION, PACKETS",
		cellNum("RULE", func(a *ACL) string { return yesNo(a.Default, "default", fmt.Sprint(a.Rule)) })),
	(*ACL).finish).
	rates("name rule default", "action", "packets")

// Scheduler is one queue group: a traffic class of a pipe, or of a whole subport when Pipe is absent.
type Scheduler struct {
	Port           string  `json:"port"`
	Subport        uint32  `json:"subport"`
	Pipe           *uint32 `json:"pipe"` // null: the whole subport
	TrafficClass   uint32  `json:"traffic_class"`
	Queued         uint32  `json:"queued"` // packets now
	Packets        uint64  `json:"packets"`
	Bytes          uint64  `json:"bytes"`
	DroppedPackets uint64  `json:"dropped_packets"`
	DroppedBytes   uint64  `json:"dropped_bytes"`
	DroppedYellow  uint64  `json:"dropped_yellow"` // of dropped_packets, of a whole subport: AFx2
	DroppedRed     uint64  `json:"dropped_red"`    // the same of AFx3
}

func (v *Scheduler) finish(r *api.SchedulerRow) {
	if r.Pipe != 0xffffffff {
		v.Pipe = &r.Pipe
	}
}

var schedulerTable = list("scheduler", "scheduler queues", true, api.TableScheduler,
	columns[Scheduler](`PORT, SUBPORT, PIPE, CLASS=TrafficClass, QUEUED, PACKETS, BYTES, DROPPED=DroppedPackets,
		YELLOW=DroppedYellow, RED=DroppedRed`,
		cellNum("PIPE", func(s *Scheduler) string { return cmp.Or(optional(s.Pipe), "all") })),
	(*Scheduler).finish).
	rates("port subport pipe traffic_class", "queued", "packets bytes dropped_packets dropped_bytes")

// Reason is a named reason for which packets were dropped or punted.
type Reason struct {
	Name    string `json:"name"`
	Text    string `json:"text"` // what happened, and what to look at
	Packets uint64 `json:"packets"`
}

// served are the reasons of packets that are gone because they have done their work.
var served = []string{"lcp-echo-heard", "redirect-answered", "redirect-silent"}

// Served says that a packet that ended for this reason is no loss.
func Served(reason string) bool { return slices.Contains(served, reason) }

var reasonColumns = columns[Reason]("REASON=Name, PACKETS, MEANING=Text")

var (
	dropTable = reasons("drop", "dropped packets by reason", api.TableDrop).
			metrics("reason=Name", "dropped_packets_total=Packets: Dropped packets.")
	puntTable = reasons("punt", "packets given to the host path, by reason", api.TablePunt).
			metrics("reason=Name", "punted_packets_total=Packets: Packets given to the host path.")
)

// reasons makes a table that, printed, leaves out the reasons that never happened; its JSON has them all.
func reasons(name, short string, table uint32) *Table {
	n := list[api.DropRow](name, short, false, table, reasonColumns).rates("name", "", "packets")
	n.Print = printer(name, func(w io.Writer, all []Reason) error {
		some := slices.DeleteFunc(slices.Clone(all), func(r Reason) bool { return r.Packets == 0 })
		if err := write(w, reasonColumns, some); err != nil {
			return err
		}
		if none := len(all) - len(some); none > 0 {
			_, err := fmt.Fprintf(w, "(%d more reasons without packets; -j lists them)\n", none)
			return err
		}
		return nil
	})
	return n
}

// Worker is one worker thread.
type Worker struct {
	Worker        uint32 `json:"worker"`
	CPU           int32  `json:"cpu"`        // -1: not pinned
	Walks         uint64 `json:"walks"`      // rounds
	BusyTicks     uint64 `json:"busy_ticks"` // of walks that found packets
	IdleTicks     uint64 `json:"idle_ticks"` // of walks that found none
	Packets       uint64 `json:"packets"`
	Sessions      uint64 `json:"sessions"`       // that the worker owns
	Flows         uint64 `json:"flows"`          // entries of the fast path
	FlowInserts   uint64 `json:"flow_inserts"`   // flows that got an entry
	FlowEvictions uint64 `json:"flow_evictions"` // entries that made room
	HandedOver    uint64 `json:"handed_over"`    // packets given to another worker
	LongestUS     uint64 `json:"longest_us"`     // the longest walk
	Stalls        uint64 `json:"stalls"`         // walks, yields and sleeps that took 10 ms too long
	StalledUS     uint64 `json:"stalled_us"`     // time of all stalls
}

var workerTable = list[api.WorkerRow]("worker", "worker threads", false, api.TableWorker,
	columns[Worker](`WORKER, CPU, BUSY %, PACKETS, TICKS/PACKET, SESSIONS, FLOWS, INSERTS=FlowInserts,
		EVICTIONS=FlowEvictions, HANDED OVER, LONGEST us, STALLS`,
		cellNum("CPU", func(w *Worker) string { return yesNo(w.CPU < 0, "any", strconv.Itoa(int(w.CPU))) }),
		cellNum("BUSY %", func(w *Worker) string { return ratio(100*w.BusyTicks, w.BusyTicks+w.IdleTicks) }),
		cellNum("TICKS/PACKET", func(w *Worker) string { return ratio(w.BusyTicks, w.Packets) }))).
	rates("worker", "cpu sessions flows", "packets busy_ticks idle_ticks handed_over flow_inserts stalls").
	metrics("worker=Worker", `
	worker_walks_total=Walks: Walks of the graph.
	worker_busy_ticks_total=BusyTicks: TSC ticks of walks that found packets.
	worker_idle_ticks_total=IdleTicks: TSC ticks of walks that found none.
	worker_packets_total=Packets: Packets that the worker received.
	worker_handed_over_total=HandedOver: Packets handed to another worker.
	worker_flow_inserts_total=FlowInserts: Flows inserted.
	worker_flow_evictions_total=FlowEvictions: Flows evicted.
	worker_stalls_total=Stalls: Walks of more than 10 ms, pauses of the machine among them.
	worker_flows=Flows: Flows held.
	worker_sessions=Sessions: Sessions that the worker owns.`)

// Path is one GTP-U peer.
type Path struct {
	Name                     string `json:"name"`
	Local                    string `json:"local"` // our address
	Peer                     string `json:"peer"`
	Alive                    bool   `json:"alive"`         // Echo Requests are answered
	Recovery                 uint32 `json:"recovery"`      // restart counter of the peer
	EchoSent                 uint64 `json:"echo_sent"`     // Echo Requests
	EchoReceived             uint64 `json:"echo_received"` // Echo Responses
	ErrorIndicationsSent     uint64 `json:"error_indications_sent"`
	ErrorIndicationsReceived uint64 `json:"error_indications_received"`
}

var pathTable = list[api.PathRow]("path", "GTP-U paths", true, api.TablePath,
	columns[Path](`PATH=Name, LOCAL, PEER, ALIVE, ECHO SENT, ECHO RECEIVED,
		ERRORS SENT=ErrorIndicationsSent, ERRORS RECEIVED=ErrorIndicationsReceived`,
		str("ALIVE", func(p *Path) string {
			if p.Alive && p.EchoReceived == 0 { // it counts as alive until echo requests go unanswered
				return "-"
			}
			return yesNo(p.Alive, "yes", "no")
		}))).
	rates("name", "alive local peer", "echo_sent echo_received error_indications_sent error_indications_received")

// Stream is one synth stream.
type Stream struct {
	Name          string `json:"name"`
	Offered       uint64 `json:"offered"` // packets
	OfferedBytes  uint64 `json:"offered_bytes"`
	Received      uint64 `json:"received"` // packets
	ReceivedBytes uint64 `json:"received_bytes"`
	Checked       uint64 `json:"checked"`      // packets that were compared
	Wrong         uint64 `json:"wrong"`        // packets
	Lost          uint64 `json:"lost"`         // packets
	Stray         uint64 `json:"stray"`        // packets of no stream
	WrongOffset   uint32 `json:"wrong_offset"` // first wrong byte of the last wrong packet
	WrongFrame    string `json:"wrong_frame"`  // its bytes, hexadecimal; empty: none was wrong
}

func (v *Stream) finish(r *api.SynthRow) {
	if v.WrongFrame, v.WrongOffset = "", 0; r.WrongLength > 0 {
		v.WrongOffset = r.WrongOffset
		v.WrongFrame = fmt.Sprintf("%x", r.WrongFrame[:min(int(r.WrongLength), len(r.WrongFrame))])
	}
}

var streamTable = list("stream", "synth streams", true, api.TableSynth,
	columns[Stream]("STREAM=Name, OFFERED, RECEIVED, CHECKED, WRONG, LOST, STRAY"), (*Stream).finish).
	rates("name", "", "offered received offered_bytes received_bytes lost wrong")
