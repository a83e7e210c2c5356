// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/n4"
)

// farAction spells the bits of a FAR's action: "buffer notify".
func farAction(bits uint32) string {
	var words []string
	for _, a := range []struct {
		bit  uint32
		word string
	}{{api.FARDrop, "drop"}, {api.FARForward, "forward"}, {api.FARBuffer, "buffer"}, {api.FARNotify, "notify"},
		{api.FARDuplicate, "duplicate"}} {
		if bits&a.bit != 0 {
			words = append(words, a.word)
		}
	}
	return strings.Join(words, " ")
}

// Rule is one PDR with its FAR.
type Rule struct {
	Session     string `json:"session"`
	PDR         uint32 `json:"pdr"`
	FAR         uint32 `json:"far"`
	Precedence  uint32 `json:"precedence"`
	Source      string `json:"source" word:"source"`      // interface
	Destination string `json:"destination" word:"source"` // interface
	// Of the FAR: drop, forward, buffer, notify, duplicate; redirect: forward with redirect information.
	Action    string   `json:"action"`
	TEIDLocal uint32   `json:"teid_local"`
	TEIDPeer  uint32   `json:"teid_peer"`
	Local     string   `json:"local"` // our address
	Peer      string   `json:"peer"`
	Packets   uint64   `json:"packets"` // forwarded or answered
	Bytes     uint64   `json:"bytes"`
	Dropped   uint64   `json:"dropped"`  // by gate, FAR, meters, quotas, redirection, buffer or the limit of flows
	Buffered  uint64   `json:"buffered"` // packets
	QERs      []uint32 `json:"qers"`     // ids
	URRs      []uint32 `json:"urrs"`     // ids
	QFI       *uint32  `json:"qfi"`      // null: none
	Gate      string   `json:"gate"`     // open, closed, quota: a used-up quota lets no packet pass
	MBR       *uint64  `json:"mbr_kbps"` // the lowest of its meters; null: none
}

func (v *Rule) finish(r *api.RuleRow) {
	v.Action = farAction(r.Action)
	if r.Flags&api.RowRedirects != 0 {
		v.Action = strings.Replace(v.Action, "forward", "redirect", 1)
	}
	v.Gate = "open"
	switch {
	case r.Flags&api.RowGateClosed != 0:
		v.Gate = "closed"
	case r.Flags&api.RowQuotaUsed != 0:
		v.Gate = "quota"
	}
	if r.MBR != 0 {
		kbps := r.MBR / 125
		v.MBR = &kbps
	}
	v.QFI = qfi(&r.QFI)
	v.QERs, v.URRs = ids(r.QER[:], r.QERs), ids(r.URR[:], r.URRs)
}

// qfi is nil where there is none.
func qfi(v *uint32) *uint32 {
	if *v == api.NoQFI {
		return nil
	}
	return v
}

func optional[N uint32 | uint64](v *N) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// ids are the used ones, never nil.
func ids(list []uint32, used uint32) []uint32 {
	return append([]uint32{}, list[:min(int(used), len(list))]...)
}

// joined are numbers as one word: "1,2".
func joined(list []uint32) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
}

// tunnel prints one end: "10.0.0.1 0x10".
func tunnel(address string, teid uint32) string {
	if teid == 0 {
		return address
	}
	return strings.TrimSpace(fmt.Sprintf("%s %#x", address, teid))
}

var ruleTable = list("rule", "packet detection rules of sessions", true, api.TableRule,
	columns[Rule](`SESSION, PDR, PRECEDENCE, FROM=Source, LOCAL, FAR, QER, QFI, URR,
		GATE, MBR KBIT/S, ACTION, TO=Destination, PEER, PACKETS, BYTES, DROPPED, BUFFERED`,
		cellNum("QER", func(r *Rule) string { return joined(r.QERs) }),
		cellNum("QFI", func(r *Rule) string { return optional(r.QFI) }),
		cellNum("MBR KBIT/S", func(r *Rule) string { return optional(r.MBR) }),
		cellNum("URR", func(r *Rule) string { return joined(r.URRs) }),
		str("LOCAL", func(r *Rule) string { return tunnel(r.Local, r.TEIDLocal) }),
		str("PEER", func(r *Rule) string { return tunnel(r.Peer, r.TEIDPeer) })),
	(*Rule).finish).
	rates("session pdr", "source destination", "packets bytes dropped")

// Volume is bytes or packets of a URR.
type Volume struct {
	Total    uint64 `json:"total"` // since the last report
	Uplink   uint64 `json:"uplink"`
	Downlink uint64 `json:"downlink"`
}

func newVolume(v [3]uint64) Volume { return Volume{v[0], v[1], v[2]} } // API_TOTAL, API_UPLINK, API_DOWNLINK

// Quota is what is left; null where there is no quota.
type Quota struct {
	Total    *uint64 `json:"total"`
	Uplink   *uint64 `json:"uplink"`
	Downlink *uint64 `json:"downlink"`
}

func newQuota(v [3]uint64) Quota {
	left := func(i int) *uint64 {
		if v[i] == 1<<64-1 {
			return nil
		}
		return &v[i]
	}
	return Quota{left(0), left(1), left(2)}
}

// String is the least that is left of the three.
func (q Quota) String() string {
	var least *uint64
	for _, v := range []*uint64{q.Total, q.Uplink, q.Downlink} {
		if v != nil && (least == nil || *v < *least) {
			least = v
		}
	}
	return optional(least)
}

// URR is one usage report rule: what it measured since its last report.
type URR struct {
	Session   string `json:"session"`
	URR       uint32 `json:"urr"`      // id
	Sequence  uint32 `json:"sequence"` // reports so far
	Bytes     Volume `json:"bytes"`
	Packets   Volume `json:"packets"`
	QuotaLeft Quota  `json:"quota_left"` // each null where there is no such quota
	Duration  uint32 `json:"duration"`   // seconds
	Exhausted bool   `json:"exhausted"`  // a quota is used up
}

func (v *URR) finish(r *api.URRRow) {
	v.Bytes, v.Packets, v.QuotaLeft = newVolume(r.Bytes), newVolume(r.Packets), newQuota(r.QuotaLeft)
}

var urrTable = list("urr", "usage report rules: measured since the last report", true, api.TableURR,
	columns[URR](`SESSION, URR, REPORTS=Sequence, UP BYTES, DOWN BYTES, UP PACKETS, DOWN PACKETS,
		SECONDS=Duration, QUOTA LEFT, EXHAUSTED`,
		num("UP BYTES", func(u *URR) uint64 { return u.Bytes.Uplink }),
		num("DOWN BYTES", func(u *URR) uint64 { return u.Bytes.Downlink }),
		num("UP PACKETS", func(u *URR) uint64 { return u.Packets.Uplink }),
		num("DOWN PACKETS", func(u *URR) uint64 { return u.Packets.Downlink }),
		cellNum("QUOTA LEFT", func(u *URR) string { return u.QuotaLeft.String() })),
	(*URR).finish)

// Instance is one network instance.
type Instance struct {
	Name        string   `json:"name"`
	Names       []string `json:"names"`                // further Network Instances that rules name; *: all others
	Interfaces  []string `json:"interfaces"`           // IP interfaces
	Endpoints   []string `json:"endpoints"`            // addresses of our F-TEIDs
	Lookup      string   `json:"lookup" word:"lookup"` // none, destination, source
	Sources     []string `json:"sources"`              // interfaces of rules that name no instance
	Pools       []string `json:"pools"`                // prefixes of UE addresses
	Tunnels     uint32   `json:"tunnels"`              // F-TEIDs of sessions on its endpoints
	UEAddresses uint32   `json:"ue_addresses"`         // of sessions
	UnknownUE   uint64   `json:"unknown_ue"`           // packets to its pools that no session has
	UnknownTEID uint64   `json:"unknown_teid"`         // G-PDUs to its endpoints that no session has
}

var instanceTable = newInstanceTable()

func newInstanceTable() *Table {
	n := list[api.InstanceRow]("instance", "network instances", true, api.TableInstance,
		columns[Instance](`INSTANCE=Name, NAMES, INTERFACES, ENDPOINTS, LOOKUP, SOURCES, POOLS, TUNNELS,
			UE ADDRESSES, UNKNOWN UE, UNKNOWN TEID`)).
		rates("name", "tunnels ue_addresses", "unknown_ue unknown_teid").
		metrics("instance=Name", `
	instance_tunnels=Tunnels: F-TEIDs of sessions on the instance's endpoints.
	instance_ue_addresses=UEAddresses: UE addresses of sessions in the instance.
	instance_unknown_teid_packets_total=UnknownTEID: G-PDUs to the instance's endpoints with a TEID that no session has.
	instance_unknown_ue_packets_total=UnknownUE: Packets to a UE address of the instance's pools that no session has.`)
	n.Join = func(c Control, v any) {
		rows, _ := v.([]Instance)
		by := map[string]config.Instance{}
		for _, in := range c.Instances() {
			by[string(in.Name)] = in
		}
		for i := range rows {
			in := by[rows[i].Name]
			rows[i].configured(&in)
		}
	}
	return n
}

// configured fills in what the configuration says, so that no list is null.
func (v *Instance) configured(in *config.Instance) {
	v.Names, v.Interfaces, v.Endpoints = texts(in.Names), texts(in.Interfaces), texts(in.Endpoints)
	v.Sources, v.Pools = texts(in.Sources), texts(in.Pools)
}

func texts[T any](list []T) []string {
	all := make([]string, len(list))
	for i := range list {
		all[i] = fmt.Sprint(list[i])
	}
	return all
}

// NAT is the NAT44 of one network instance.
type NAT struct {
	Name        string `json:"name"`
	Mode        string `json:"mode" word:"nat"` // blocks, deterministic
	Addresses   uint32 `json:"addresses"`       // external ones
	Block       uint32 `json:"block"`           // ports of a block
	Blocks      uint32 `json:"blocks"`          // of all addresses
	Used        uint32 `json:"used"`            // blocks
	Resting     uint32 `json:"resting"`         // blocks between two subscribers
	Subscribers uint32 `json:"subscribers"`     // that have a block
	Mappings    uint64 `json:"mappings"`        // now
	Made        uint64 `json:"made"`            // mappings, since start
	Unreported  uint64 `json:"unreported"`      // blocks whose record waits for the control plane
	// Pairs of addresses of protocols without ports: now, since start, and packets that would have made one.
	Pairs        uint64 `json:"pairs"`         // now
	PairsMade    uint64 `json:"pairs_made"`    // since start
	PairsRefused uint64 `json:"pairs_refused"` // packets
}

var natTable = list[api.NATRow]("nat", "NAT44 of network instances", true, api.TableNAT,
	columns[NAT](`INSTANCE=Name, MODE, ADDRESSES, BLOCKS, USED, RESTING, SUBSCRIBERS,
		PORTS A BLOCK=Block, MAPPINGS, MADE, UNREPORTED, PAIRS, PAIRS REFUSED`)).
	rates("name", "used mappings pairs", "made pairs_made pairs_refused").
	metrics("instance=Name", `
	nat_blocks=Blocks: Blocks of ports of the instance's NAT44.
	nat_blocks_used=Used: Blocks that subscribers have.
	nat_blocks_resting=Resting: Blocks that rest between two subscribers.
	nat_blocks_unreported=Unreported: Blocks whose record is not in the log yet.
	nat_subscribers=Subscribers: Subscribers that have a block.
	nat_mappings=Mappings: Mappings.
	nat_mappings_made_total=Made: Mappings since start.
	nat_pairs=Pairs: Pairs of addresses of protocols without ports.
	nat_pairs_made_total=PairsMade: Pairs since start.
	nat_pairs_refused_packets_total=PairsRefused: Packets that would have made a pair, and were dropped.`)

// NPTv6 is a pair of prefixes of a network instance.
type NPTv6 struct {
	Name       string `json:"name"` // of the instance
	Inside     string `json:"inside"`
	Outside    string `json:"outside"`
	PacketsOut uint64 `json:"packets_out"` // translated
	PacketsIn  uint64 `json:"packets_in"`  // translated
}

var nptv6Table = list[api.NPTv6Row]("nptv6", "IPv6 prefixes that are translated", true, api.TableNPTv6,
	columns[NPTv6]("INSTANCE=Name, INSIDE, OUTSIDE, PACKETS OUT, PACKETS IN")).
	rates("name inside", "outside", "packets_out packets_in").
	metrics("instance=Name inside=Inside", `
	nptv6_out_packets_total=PacketsOut: Packets whose source was translated to the outside.
	nptv6_in_packets_total=PacketsIn: Packets whose destination was translated to the inside.`)

// NATBlock is a block of ports that a subscriber has.
type NATBlock struct {
	Name     string `json:"name"` // of the instance
	Session  string `json:"session"`
	Inside   string `json:"inside"`  // address of the subscriber
	Outside  string `json:"outside"` // external address
	First    uint16 `json:"first"`   // port
	Last     uint16 `json:"last"`    // port
	Mappings uint32 `json:"mappings"`
	Worker   uint32 `json:"worker"`
}

func (v *NATBlock) finish(r *api.NATBlockRow) { v.First, v.Last = r.Port[0], r.Port[1] }

var natBlockTable = list("nat-block", "blocks of ports that subscribers have", true, api.TableNATBlock,
	columns[NATBlock]("INSTANCE=Name, SESSION, INSIDE, OUTSIDE, FIRST, LAST, MAPPINGS, WORKER"), (*NATBlock).finish)

// Mirror is a mirror and what it copied.
type Mirror struct {
	Name      string `json:"name"`
	To        string `json:"to" word:"mirror"` // port, gtpu, erspan
	Target    string `json:"target"`           // port or path
	Collector string `json:"collector"`        // of ERSPAN
	Packets   uint64 `json:"packets"`          // copies
	Bytes     uint64 `json:"bytes"`            // of copies
	Limited   uint64 `json:"limited"`          // packets not copied: above the rate
	NoBuffer  uint64 `json:"no_buffer"`        // packets not copied: no buffer was free
	Failed    uint64 `json:"failed"`           // copies that could not be sent
}

var mirrorTable = list[api.MirrorRow]("mirror", "mirrors and what they copied", true, api.TableMirror,
	columns[Mirror]("MIRROR=Name, TO, TARGET, COLLECTOR, PACKETS, BYTES, LIMITED, NO BUFFER, FAILED")).
	rates("name", "target", "packets bytes limited no_buffer failed").
	metrics("mirror=Name", `
	mirror_packets_total=Packets: Copies of packets.
	mirror_bytes_total=Bytes: Bytes of copies, without what was put in front.
	mirror_limited_packets_total=Limited: Packets that were not copied: beyond the mirror's rate.
	mirror_no_buffer_packets_total=NoBuffer: Packets that were not copied for want of a packet buffer.
	mirror_failed_packets_total=Failed: Copies that could not be sent.`)

// Counter is what sessions forwarded together.
type Counter struct {
	Name          string `json:"name"`
	Each          bool   `json:"each"` // watermarks are of each session by itself
	Sessions      uint32 `json:"sessions"`
	Packets       uint64 `json:"packets"`        // since start
	Bytes         uint64 `json:"bytes"`          // since start
	PeriodPackets uint64 `json:"period_packets"` // in this period
	PeriodBytes   uint64 `json:"period_bytes"`   // in this period
	MarkPackets   uint64 `json:"mark_packets"`   // watermark
	MarkBytes     uint64 `json:"mark_bytes"`     // watermark
	Reached       uint64 `json:"reached"`        // how often
}

var counterTable = list[api.CounterRow]("counter", "sums of sessions, and watermarks", true, api.TableCounter,
	columns[Counter](`COUNTER=Name, EACH, SESSIONS, PACKETS, BYTES, PERIOD PACKETS, PERIOD BYTES,
		MARK PACKETS, MARK BYTES, REACHED`)).
	rates("name", "sessions", "packets bytes").
	metrics("counter=Name", `
	aggregate_packets_total=Packets: Packets that the counter's sessions forwarded.
	aggregate_bytes_total=Bytes: Bytes of them.
	aggregate_watermarks_reached_total=Reached: Watermarks that were reached.
	aggregate_sessions=Sessions: Sessions that count.`)

// Traffic is what rules forwarded whose packets came by one network instance, of sessions with one DNN, with one QFI.
type Traffic struct {
	Instance        string  `json:"instance"` // by which packets came
	DNN             string  `json:"dnn"`      // cut at 31 bytes
	QFI             *uint32 `json:"qfi"`      // null: none
	Other           bool    `json:"other"`    // all that found no row of its own
	UplinkPackets   uint64  `json:"uplink_packets"`
	UplinkBytes     uint64  `json:"uplink_bytes"`
	DownlinkPackets uint64  `json:"downlink_packets"`
	DownlinkBytes   uint64  `json:"downlink_bytes"`
}

func (v *Traffic) finish(r *api.TrafficRow) {
	v.QFI = qfi(&r.QFI)
}

// NewTraffic makes the shown row of a contract row.
func NewTraffic(r *api.TrafficRow) (v Traffic) {
	fillTraffic(r, &v)
	v.finish(r)
	return v
}

var fillTraffic = filler[api.TrafficRow, Traffic]()

// Words are the row's network instance, DNN and QFI: "other" of those that share one, no QFI "none".
func (v *Traffic) Words() (instance, dnn, qfi string) {
	switch {
	case v.Other:
		return "other", "other", "other"
	case v.QFI == nil:
		return v.Instance, v.DNN, "none"
	}
	return v.Instance, v.DNN, strconv.FormatUint(uint64(*v.QFI), 10)
}

var trafficTable = list("traffic", "what went through, by network instance, DNN and QFI", true, api.TableTraffic,
	columns[Traffic](`INSTANCE, DNN, QFI, UP PACKETS=UplinkPackets, UP BYTES=UplinkBytes,
		DOWN PACKETS=DownlinkPackets, DOWN BYTES=DownlinkBytes`,
		str("INSTANCE", func(t *Traffic) string { instance, _, _ := t.Words(); return instance }),
		str("DNN", func(t *Traffic) string { _, dnn, _ := t.Words(); return dnn }),
		cellNum("QFI", func(t *Traffic) string { _, _, qfi := t.Words(); return qfi })),
	(*Traffic).finish).
	rates("instance dnn qfi other", "", "uplink_packets uplink_bytes downlink_packets downlink_bytes")

// Event is one kind of report to the control plane.
type Event struct {
	Name         string `json:"name"`        // kind of report
	Subscribers  uint32 `json:"subscribers"` // connections that read it
	Raised       uint64 `json:"raised"`
	Acknowledged uint64 `json:"acknowledged"`
	Suppressed   uint64 `json:"suppressed"` // by limits
	Waiting      uint64 `json:"waiting"`
}

func (v *Event) finish(r *api.EventRow) { v.Name = word(words["event"], r.Type) }

var eventTable = list("event", "reports to the control plane", false, api.TableEvent,
	columns[Event]("EVENT=Name, RAISED, ACKNOWLEDGED, WAITING, SUPPRESSED, SUBSCRIBERS"), (*Event).finish).
	rates("name", "waiting", "raised acknowledged suppressed").
	metrics("event=Name", `
	events_raised_total=Raised: Reports of the data plane.
	events_suppressed_total=Suppressed: Reports that the limits suppressed.
	events_waiting=Waiting: Reports that the control plane has not acknowledged.`)

// Control is what the control plane knows beside the data plane's tables. Calls come from any goroutine.
type Control struct {
	Mobile
	Access
	Kernel
}

// Mobile is the part of Control that is about sessions of CP functions, and what goes out for them.
type Mobile interface {
	Associations() []Association
	N4() *n4.Snapshot
	// Instances are those of the running configuration.
	Instances() []config.Instance
	// Owner returns the owner of a session; false: of the configuration.
	Owner(seid uint64) (Owner, bool)
	// Collectors are those of nat_log.
	Collectors() []Collector
}

// Owner is the control plane's part of a mobile session.
type Owner struct {
	Association string // node id
	CPSEID      uint64
	DNN         string // APN or DNN
	User        string // IMSI, MSISDN or NAI, if the CP function sent it
}

// Association is one PFCP association.
type Association struct {
	ID        string    `json:"id"`  // node id
	Set       string    `json:"set"` // SMF set
	Address   string    `json:"address"`
	State     string    `json:"state"`    // up, failed, releasing
	Since     time.Time `json:"since"`    // set up, or failed
	Recovery  time.Time `json:"recovery"` // recovery time stamp of the peer
	Sessions  int       `json:"sessions"`
	Features  string    `json:"features"`
	Heartbeat int64     `json:"heartbeat_us"` // round trip of the last heartbeat; 0: none yet
}

var associationColumns = columns[Association](
	"ASSOCIATION=ID, SET, ADDRESS, STATE, SINCE, RECOVERY, SESSIONS, HEARTBEAT µS=Heartbeat, FEATURES")

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ofControl makes the table of rows that only the control plane knows, which have a name.
func ofControl[V any](
	name, short string, columns []column[V], all func(Control) []V, nameOf func(*V) string,
) *Table {
	return &Table{
		Name: name, Short: short, Key: true, Answer: reflect.TypeFor[[]V](), Titles: titlesOf(columns),
		Own: func(c Control, key string, limit uint32) any {
			list := append([]V{}, all(c)...) // never nil, so that it encodes as []
			list = slices.DeleteFunc(list, func(v V) bool { return key != "" && nameOf(&v) != key })
			if limit > 0 && len(list) > int(limit) {
				list = list[:limit]
			}
			return list
		},
		Print: printer(name, func(w io.Writer, list []V) error { return write(w, columns, list) }),
	}
}

var associationTable = ofControl("association", "PFCP associations with CP functions", associationColumns,
	Control.Associations, func(a *Association) string { return a.ID }).
	rates("id", "state sessions address heartbeat_us since", "")

// Collector is a host that records of NAT44 go to.
type Collector struct {
	Address  string    `json:"address"`
	Protocol string    `json:"protocol"` // syslog, ipfix
	State    string    `json:"state"`    // up, down: there is an error
	Since    time.Time `json:"since"`
	Sent     uint64    `json:"sent"` // records
	Lost     uint64    `json:"lost"` // records not sent, or refused by the host
	Error    string    `json:"error"`
}

var collectorTable = ofControl("collector", "collectors of nat_log, and whether records reach them",
	columns[Collector]("COLLECTOR=Address, PROTOCOL, STATE, SINCE, SENT, LOST, ERROR"),
	Control.Collectors, func(c *Collector) string { return c.Address }).
	metrics("protocol=Protocol collector=Address", `
	nat_log_up=State:up: 1 while records of NAT44 can be sent to a collector of nat_log.
	nat_log_records_total=Sent: Records of NAT44 that were sent to a collector.
	nat_log_lost_records_total=Lost: Records that could not be sent, or that its host refused.`)
