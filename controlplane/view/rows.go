// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	"isthmus/api"
)

func mac(b [6]byte) string { return net.HardwareAddr(b[:]).String() }

// word names a number of an enum; numbers without a name stay numbers.
func word(names map[uint32]string, v uint32) string {
	if s, ok := names[v]; ok {
		return s
	}
	return strconv.FormatUint(uint64(v), 10)
}

var (
	roles   = map[uint32]string{api.RoleAccess: "access", api.RoleCore: "core"}
	encaps  = map[uint32]string{api.EncapNone: "none", api.EncapQinQ: "qinq", api.EncapQinQPPPoE: "qinq-pppoe"}
	actions = map[uint32]string{api.ActionDeny: "deny", api.ActionPermit: "permit"}
	states  = map[uint32]string{1: "incomplete", 2: "reachable", 3: "stale", 4: "static"}
)

// Port is one port of the data plane.
type Port struct {
	Name       string `json:"name"`
	Driver     string `json:"driver"`
	Role       string `json:"role"`
	MTU        uint32 `json:"mtu"`
	Up         bool   `json:"up"`
	SpeedMbps  uint32 `json:"speed_mbps"`
	MAC        string `json:"mac"`
	RxPackets  uint64 `json:"rx_packets"`
	RxBytes    uint64 `json:"rx_bytes"`
	TxPackets  uint64 `json:"tx_packets"`
	TxBytes    uint64 `json:"tx_bytes"`
	RxMissed   uint64 `json:"rx_missed"`
	RxNoBuffer uint64 `json:"rx_no_buffer"`
	TxDropped  uint64 `json:"tx_dropped"`
}

func newPort(r *api.PortRow) Port {
	return Port{
		Name: api.CString(r.Name[:]), Driver: api.CString(r.Driver[:]), Role: word(roles, r.Role), MTU: r.MTU, Up: r.Up != 0,
		SpeedMbps: r.SpeedMbps, MAC: mac(r.MAC), RxPackets: r.RxPackets, RxBytes: r.RxBytes, TxPackets: r.TxPackets,
		TxBytes: r.TxBytes, RxMissed: r.RxMissed, RxNoBuffer: r.RxNoBuffer, TxDropped: r.TxDropped,
	}
}

var portColumns = []column[Port]{
	str("PORT", func(p *Port) string { return p.Name }),
	str("DRIVER", func(p *Port) string { return p.Driver }),
	str("ROLE", func(p *Port) string { return p.Role }),
	str("STATE", func(p *Port) string { return yesNo(p.Up, "up", "down") }),
	num("MTU", func(p *Port) uint64 { return uint64(p.MTU) }),
	str("MAC", func(p *Port) string { return p.MAC }),
	num("RX PACKETS", func(p *Port) uint64 { return p.RxPackets }),
	num("RX BYTES", func(p *Port) uint64 { return p.RxBytes }),
	num("TX PACKETS", func(p *Port) uint64 { return p.TxPackets }),
	num("TX BYTES", func(p *Port) uint64 { return p.TxBytes }),
	num("RX MISSED", func(p *Port) uint64 { return p.RxMissed + p.RxNoBuffer }),
	num("TX DROPPED", func(p *Port) uint64 { return p.TxDropped }),
}

// Route is one route.
type Route struct {
	Prefix    string `json:"prefix"`
	Via       string `json:"via"` // empty: directly attached
	Interface string `json:"interface"`
	Resolved  bool   `json:"resolved"`
}

func newRoute(r *api.RouteRow) Route {
	prefix := r.Prefix.Netip()
	text := ""
	if prefix.IsValid() {
		text = prefix.String() // with its length, also for a host
	}
	return Route{text, r.Via.String(), api.CString(r.Interface[:]), r.Resolved != 0}
}

var routeColumns = []column[Route]{
	str("PREFIX", func(r *Route) string { return r.Prefix }),
	str("VIA", func(r *Route) string { return r.Via }),
	str("INTERFACE", func(r *Route) string { return r.Interface }),
	str("RESOLVED", func(r *Route) string { return yesNo(r.Resolved, "yes", "no") }),
}

// Neighbour is one entry of the neighbour table.
type Neighbour struct {
	Interface string `json:"interface"`
	Address   string `json:"address"`
	MAC       string `json:"mac"`
	State     string `json:"state"`
	AgeS      uint32 `json:"age_s"`
	Held      uint32 `json:"held"`
}

func newNeighbour(r *api.NeighbourRow) Neighbour {
	return Neighbour{
		api.CString(r.Interface[:]), r.Address.String(), mac(r.MAC), word(states, uint32(r.State)), r.AgeS, r.Held,
	}
}

var neighbourColumns = []column[Neighbour]{
	str("INTERFACE", func(n *Neighbour) string { return n.Interface }),
	str("ADDRESS", func(n *Neighbour) string { return n.Address }),
	str("MAC", func(n *Neighbour) string { return n.MAC }),
	str("STATE", func(n *Neighbour) string { return n.State }),
	num("AGE S", func(n *Neighbour) uint64 { return uint64(n.AgeS) }),
	num("HELD", func(n *Neighbour) uint64 { return uint64(n.Held) }),
}

// ACL is one firewall rule, or the default action when Default is set.
type ACL struct {
	Name    string `json:"name"`
	Rule    uint32 `json:"rule"`
	Default bool   `json:"default"`
	Action  string `json:"action"`
	Packets uint64 `json:"packets"`
}

func newACL(r *api.ACLRow) ACL {
	a := ACL{Name: api.CString(r.Name[:]), Rule: r.Rule, Action: word(actions, r.Action), Packets: r.Packets}
	if r.Rule == 0xffffffff {
		a.Rule, a.Default = 0, true
	}
	return a
}

var aclColumns = []column[ACL]{
	str("ACL", func(a *ACL) string { return a.Name }),
	cellNum("RULE", func(a *ACL) string { return yesNo(a.Default, "default", strconv.FormatUint(uint64(a.Rule), 10)) }),
	str("ACTION", func(a *ACL) string { return a.Action }),
	num("PACKETS", func(a *ACL) uint64 { return a.Packets }),
}

// Scheduler is one queue group: a traffic class of a pipe, or of a whole subport when Pipe is absent.
type Scheduler struct {
	Port           string  `json:"port"`
	Subport        uint32  `json:"subport"`
	Pipe           *uint32 `json:"pipe"`
	TrafficClass   uint32  `json:"traffic_class"`
	Queued         uint32  `json:"queued"`
	Packets        uint64  `json:"packets"`
	Bytes          uint64  `json:"bytes"`
	DroppedPackets uint64  `json:"dropped_packets"`
	DroppedBytes   uint64  `json:"dropped_bytes"`
}

func newScheduler(r *api.SchedulerRow) Scheduler {
	s := Scheduler{
		Port: api.CString(r.Port[:]), Subport: r.Subport, TrafficClass: r.TrafficClass, Queued: r.Queued, Packets: r.Packets,
		Bytes: r.Bytes, DroppedPackets: r.DroppedPackets, DroppedBytes: r.DroppedBytes,
	}
	if r.Pipe != 0xffffffff {
		pipe := r.Pipe
		s.Pipe = &pipe
	}
	return s
}

var schedulerColumns = []column[Scheduler]{
	str("PORT", func(s *Scheduler) string { return s.Port }),
	num("SUBPORT", func(s *Scheduler) uint64 { return uint64(s.Subport) }),
	cellNum("PIPE", func(s *Scheduler) string {
		if s.Pipe == nil {
			return "all"
		}
		return strconv.FormatUint(uint64(*s.Pipe), 10)
	}),
	num("CLASS", func(s *Scheduler) uint64 { return uint64(s.TrafficClass) }),
	num("QUEUED", func(s *Scheduler) uint64 { return uint64(s.Queued) }),
	num("PACKETS", func(s *Scheduler) uint64 { return s.Packets }),
	num("BYTES", func(s *Scheduler) uint64 { return s.Bytes }),
	num("DROPPED", func(s *Scheduler) uint64 { return s.DroppedPackets }),
}

// Reason is a named reason for which packets were dropped or punted.
type Reason struct {
	Name    string `json:"name"`
	Text    string `json:"text"`
	Packets uint64 `json:"packets"`
}

func newReason(r *api.DropRow) Reason {
	return Reason{api.CString(r.Name[:]), api.CString(r.Text[:]), r.Packets}
}

var reasonColumns = []column[Reason]{
	str("REASON", func(r *Reason) string { return r.Name }),
	num("PACKETS", func(r *Reason) uint64 { return r.Packets }),
	str("MEANING", func(r *Reason) string { return r.Text }),
}

// reasons makes a noun whose table leaves out the reasons that never happened; its JSON has them all.
func reasons(name, short string, table uint32) *Noun {
	n := list(name, short, false, table, newReason, reasonColumns)
	n.Print = func(w io.Writer, data []byte) error {
		var all []Reason
		if err := json.Unmarshal(data, &all); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		some := slices.DeleteFunc(slices.Clone(all), func(r Reason) bool { return r.Packets == 0 })
		if err := write(w, reasonColumns, some); err != nil {
			return err
		}
		if none := len(all) - len(some); none > 0 {
			_, err := fmt.Fprintf(w, "(%d more reasons without packets; -j lists them)\n", none)
			return err
		}
		return nil
	}
	return n
}

// Worker is one worker thread.
type Worker struct {
	Worker        uint32 `json:"worker"`
	CPU           int32  `json:"cpu"` // -1: not pinned
	Walks         uint64 `json:"walks"`
	BusyTicks     uint64 `json:"busy_ticks"`
	IdleTicks     uint64 `json:"idle_ticks"`
	Packets       uint64 `json:"packets"`
	Sessions      uint64 `json:"sessions"`
	Flows         uint64 `json:"flows"`
	FlowInserts   uint64 `json:"flow_inserts"`
	FlowEvictions uint64 `json:"flow_evictions"`
	HandedOver    uint64 `json:"handed_over"`
	LongestUS     uint64 `json:"longest_us"`
	Stalls        uint64 `json:"stalls"`
	StalledUS     uint64 `json:"stalled_us"`
}

func newWorker(r *api.WorkerRow) Worker {
	return Worker{
		r.Worker, r.CPU, r.Walks, r.BusyTicks, r.IdleTicks, r.Packets, r.Sessions, r.Flows, r.FlowInserts, r.FlowEvictions,
		r.HandedOver, r.LongestUs, r.Stalls, r.StalledUs,
	}
}

var workerColumns = []column[Worker]{
	num("WORKER", func(w *Worker) uint64 { return uint64(w.Worker) }),
	cellNum("CPU", func(w *Worker) string { return yesNo(w.CPU < 0, "any", strconv.Itoa(int(w.CPU))) }),
	cellNum("BUSY %", func(w *Worker) string { return ratio(100*w.BusyTicks, w.BusyTicks+w.IdleTicks) }),
	num("PACKETS", func(w *Worker) uint64 { return w.Packets }),
	cellNum("TICKS/PACKET", func(w *Worker) string { return ratio(w.BusyTicks, w.Packets) }),
	num("SESSIONS", func(w *Worker) uint64 { return w.Sessions }),
	num("FLOWS", func(w *Worker) uint64 { return w.Flows }),
	num("INSERTS", func(w *Worker) uint64 { return w.FlowInserts }),
	num("EVICTIONS", func(w *Worker) uint64 { return w.FlowEvictions }),
	num("HANDED OVER", func(w *Worker) uint64 { return w.HandedOver }),
	num("LONGEST us", func(w *Worker) uint64 { return w.LongestUS }),
	num("STALLS", func(w *Worker) uint64 { return w.Stalls }),
}

// Path is one GTP-U peer.
type Path struct {
	Name                     string `json:"name"`
	Local                    string `json:"local"`
	Peer                     string `json:"peer"`
	Alive                    bool   `json:"alive"`
	Recovery                 uint32 `json:"recovery"`
	EchoSent                 uint64 `json:"echo_sent"`
	EchoReceived             uint64 `json:"echo_received"`
	ErrorIndicationsSent     uint64 `json:"error_indications_sent"`
	ErrorIndicationsReceived uint64 `json:"error_indications_received"`
}

func newPath(r *api.PathRow) Path {
	return Path{
		api.CString(r.Name[:]), r.Local.String(), r.Peer.String(), r.Alive != 0, r.Recovery, r.EchoSent, r.EchoReceived,
		r.ErrorIndicationsSent, r.ErrorIndicationsReceived,
	}
}

var pathColumns = []column[Path]{
	str("PATH", func(p *Path) string { return p.Name }),
	str("LOCAL", func(p *Path) string { return p.Local }),
	str("PEER", func(p *Path) string { return p.Peer }),
	str("ALIVE", func(p *Path) string { return yesNo(p.Alive, "yes", "no") }),
	num("ECHO SENT", func(p *Path) uint64 { return p.EchoSent }),
	num("ECHO RECEIVED", func(p *Path) uint64 { return p.EchoReceived }),
	num("ERRORS SENT", func(p *Path) uint64 { return p.ErrorIndicationsSent }),
	num("ERRORS RECEIVED", func(p *Path) uint64 { return p.ErrorIndicationsReceived }),
}

// Stream is one synth stream.
type Stream struct {
	Name          string `json:"name"`
	Offered       uint64 `json:"offered"`
	OfferedBytes  uint64 `json:"offered_bytes"`
	Received      uint64 `json:"received"`
	ReceivedBytes uint64 `json:"received_bytes"`
	Checked       uint64 `json:"checked"`
	Wrong         uint64 `json:"wrong"`
	Lost          uint64 `json:"lost"`
	Stray         uint64 `json:"stray"`
	WrongOffset   uint32 `json:"wrong_offset"`
	WrongFrame    string `json:"wrong_frame"` // hexadecimal, empty when none was wrong
}

func newStream(r *api.SynthRow) Stream {
	s := Stream{
		Name: api.CString(r.Name[:]), Offered: r.Offered, OfferedBytes: r.OfferedBytes, Received: r.Received,
		ReceivedBytes: r.ReceivedBytes, Checked: r.Checked, Wrong: r.Wrong, Lost: r.Lost, Stray: r.Stray,
	}
	if r.WrongLength > 0 {
		s.WrongOffset = r.WrongOffset
		s.WrongFrame = fmt.Sprintf("%x", r.WrongFrame[:min(int(r.WrongLength), len(r.WrongFrame))])
	}
	return s
}

var streamColumns = []column[Stream]{
	str("STREAM", func(s *Stream) string { return s.Name }),
	num("OFFERED", func(s *Stream) uint64 { return s.Offered }),
	num("RECEIVED", func(s *Stream) uint64 { return s.Received }),
	num("CHECKED", func(s *Stream) uint64 { return s.Checked }),
	num("WRONG", func(s *Stream) uint64 { return s.Wrong }),
	num("LOST", func(s *Stream) uint64 { return s.Lost }),
	num("STRAY", func(s *Stream) uint64 { return s.Stray }),
}
