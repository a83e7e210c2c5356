// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/testkit"
)

func put(field []byte, s string) { copy(field, s) }

// rows are those of a fake data plane that show something special; the others stay as Fill made them.
func rows(s *dptest.Server) {
	port := api.PortRow{Role: api.RoleAccess, Up: 1, MTU: 1500, MAC: [6]byte{2, 0, 0, 0, 0, 1}, RxPackets: 12,
		RxMissed: 1, Offload: api.OffloadEncapsulation, OffloadEntries: 3, OffloadRefused: 2,
		Steering: api.SteeringRSSInner}
	put(port.Name[:], "access")
	put(port.Driver[:], "synth")
	put(port.OffloadWhy[:], "full: no")
	s.SetTable(api.TablePort, api.Body(&port))

	session := api.SessionRow{
		SEID: 1, Encap: api.EncapQinQPPPoE, STag: 100, CTag: 7, PPPoESession: 9, TEIDLocal: 16, TEIDPeer: 17,
		UplinkPackets: 5,
		UEIP4:         api.FromAddr(netip.MustParseAddr("10.64.0.1")), UplinkDropped: 2, Subport: 1, Pipe: 5,
	}
	put(session.Name[:], "home-00001")
	put(session.PipeProfile[:], "gold")
	put(session.Port[:], "access")
	mobile := api.SessionRow{
		SEID: 0x1f, Encap: api.EncapNone, TEIDLocal: 3, TEIDPeer: 4, Buffered: 6,
		UEIP4: api.FromAddr(netip.MustParseAddr("10.45.0.1")),
		UEIP6: api.FromPrefix(netip.MustParsePrefix("2001:db8:1::/64")),
	}
	put(mobile.Name[:], "n4.000000000000001f")
	s.SetTable(api.TableSession, api.AppendRow(api.Body(&session), &mobile))

	detection := api.RuleRow{QERs: 2, QER: [4]uint32{7, 1}, URRs: 1, URR: [4]uint32{9},
		QFI: 9, PDR: 2, FAR: 3, Precedence: 100, Source: api.SourceFromCore, Action: api.FARBuffer | api.FARNotify,
		TEIDPeer: 17, Peer: api.FromAddr(netip.MustParseAddr("10.1.0.2")), Packets: 5, Bytes: 500, Dropped: 1,
		Buffered: 4,
		MBR:      2_500_000}
	put(detection.Session[:], "n4.000000000000001f")
	s.SetTable(api.TableRule, api.Body(&detection))
	usage := api.URRRow{URR: 1, Sequence: 2, Bytes: [3]uint64{30, 10, 20}, Packets: [3]uint64{3, 1, 2},
		QuotaLeft: [3]uint64{70, 1<<64 - 1, 80}, Duration: 9}
	put(usage.Session[:], "n4.000000000000001f")
	s.SetTable(api.TableURR, api.Body(&usage))
	instance := api.InstanceRow{Lookup: api.LookupDestination, Tunnels: 2, UEAddresses: 1, UnknownUE: 7}
	put(instance.Name[:], "internet")
	s.SetTable(api.TableInstance, api.Body(&instance))
	nat := api.NATRow{Mode: api.NATModeBlocks, Addresses: 2, Block: 512, Blocks: 252,
		Used: 1, Subscribers: 1, Mappings: 9, Made: 12, Pairs: 3, PairsMade: 5, PairsRefused: 2}
	put(nat.Name[:], "internet")
	s.SetTable(api.TableNAT, api.Body(&nat))
	block := api.NATBlockRow{Port: [2]uint16{1024, 1535}, Mappings: 9,
		Outside: api.FromAddr(netip.MustParseAddr("203.0.113.4")),
		Inside:  api.FromAddr(netip.MustParseAddr("10.45.0.1"))}
	put(block.Name[:], "internet")
	put(block.Session[:], "n4.000000000000001f")
	s.SetTable(api.TableNATBlock, api.Body(&block))
	prefixes := api.NPTv6Row{Inside: api.FromPrefix(netip.MustParsePrefix("fd00::/48")),
		Outside: api.FromPrefix(netip.MustParsePrefix("2001:db8:7::/48")), PacketsOut: 3, PacketsIn: 2}
	put(prefixes.Name[:], "internet")
	s.SetTable(api.TableNPTv6, api.Body(&prefixes))
	mirror := api.MirrorRow{To: api.MirrorToERSPAN, Collector: api.FromAddr(netip.MustParseAddr("192.0.2.9")),
		Packets: 7, Bytes: 700, Limited: 2}
	put(mirror.Name[:], "tap")
	s.SetTable(api.TableMirror, api.Body(&mirror))
	counter := api.CounterRow{Sessions: 3, Packets: 90, Bytes: 9000, PeriodPackets: 40, PeriodBytes: 4000,
		MarkBytes: 5000, Reached: 1}
	put(counter.Name[:], "slice")
	s.SetTable(api.TableCounter, api.Body(&counter))
	clone := api.CloneRow{Attached: 1, Link: 1, MTU: 1500, ToKernel: 12, FromKernel: 9, Refused: 1}
	put(clone.Name[:], "n6")
	put(clone.Device[:], "n6")
	put(clone.Netns[:], "/run/netns/fabric")
	s.SetTable(api.TableClone, api.Body(&clone))
	guard := api.GTSMRow{Hops: 1, Passed: 40, Dropped: 2}
	put(guard.Name[:], "n6")
	s.SetTable(api.TableGTSM, api.Body(&guard))
	nameless, mss := api.MSSRow{Uplink: 7}, api.MSSRow{Uplink: 12, Downlink: 9, Malformed: 1}
	put(mss.Name[:], "internet")
	s.SetTable(api.TableMSS, api.AppendRow(api.Body(&nameless), &mss))
	ppp := api.ChannelRow{Frames: 900, OverSubscriber: 1, OverLine: 20, OverSTag: 3, OverPort: 4, Full: 5}
	put(ppp.Name[:], "ppp-control")
	down := api.ChannelRow{Frames: 800}
	put(down.Name[:], "down")
	s.SetTable(api.TableChannel, api.AppendRow(api.Body(&ppp), &down))
	other := api.TrafficRow{Other: 1, QFI: api.NoQFI, UplinkPackets: 2, UplinkBytes: 128}
	traffic := api.TrafficRow{QFI: 9, DownlinkPackets: 3, DownlinkBytes: 300}
	put(traffic.Instance[:], "internet")
	put(traffic.DNN[:], "ims")
	s.SetTable(api.TableTraffic, api.AppendRow(api.Body(&other), &traffic))
	s.SetTable(api.TableEvent, api.Body(&api.EventRow{Type: api.EventTypeUsage, Subscribers: 1, Raised: 4,
		Acknowledged: 3, Waiting: 1}))

	route := api.RouteRow{
		Prefix: api.FromPrefix(netip.MustParsePrefix("0.0.0.0/0")), Via: api.FromAddr(netip.MustParseAddr("192.0.2.2")),
		Resolved: 1,
	}
	put(route.Interface[:], "core0")
	put(route.VRF[:], "red")
	s.SetTable(api.TableRoute, api.AppendRow(api.Body(&route), &api.RouteRow{Resolved: 1,
		Prefix: api.FromPrefix(netip.MustParsePrefix("10.0.0.0/8")), Discard: api.DiscardUnreachable}))

	neighbour := api.NeighbourRow{Address: api.FromAddr(netip.MustParseAddr("2001:db8::1")), State: 4}
	put(neighbour.Interface[:], "core0")
	s.SetTable(api.TableNeighbour, api.Body(&neighbour))

	rule, rest := api.ACLRow{Rule: 3, Action: api.ActionDeny, Packets: 8},
		api.ACLRow{Rule: 0xffffffff, Action: api.ActionPermit}
	put(rule.Name[:], "uplink")
	put(rest.Name[:], "uplink")
	s.SetTable(api.TableACL, api.AppendRow(api.Body(&rule), &rest))

	pipe, all := api.SchedulerRow{Pipe: 5, TrafficClass: 3, Packets: 2}, api.SchedulerRow{Pipe: 0xffffffff, Queued: 4}
	put(pipe.Port[:], "access")
	put(all.Port[:], "access")
	s.SetTable(api.TableScheduler, api.AppendRow(api.Body(&pipe), &all))

	n0, n1 := api.NodeRow{Calls: 2, Packets: 64, Ticks: 640}, api.NodeRow{Worker: 1, Calls: 2, Packets: 64, Ticks: 1280}
	put(n0.Name[:], "port-rx")
	put(n1.Name[:], "port-rx")
	s.SetTable(api.TableNode, api.AppendRow(api.Body(&n0), &n1))
	e0, e1 := api.EdgeRow{}, api.EdgeRow{}
	put(e0.From[:], "port-rx")
	put(e0.To[:], "drop")
	put(e1.From[:], "port-rx")
	e1.Packets = 5
	put(e1.To[:], "access-input")
	s.SetTable(api.TableEdge, api.AppendRow(api.Body(&e0), &e1))

	drop := api.DropRow{Packets: 3}
	put(drop.Name[:], "no-route")
	put(drop.Text[:], "No route to the destination.")
	never := api.DropRow{}
	put(never.Name[:], "never")
	s.SetTable(api.TableDrop, api.AppendRow(api.Body(&drop), &never))
	s.SetTable(api.TablePunt, nil)

	s.SetTable(api.TableWorker, api.Body(&api.WorkerRow{CPU: -1, BusyTicks: 100, IdleTicks: 300, Packets: 10}))
	total := api.TotalRow{In: 10, Originated: 1, Out: 8, Dropped: 2, Held: 1, Buffers: 64, BuffersFree: 63}
	s.SetTable(api.TableTotal, api.Body(&total))
	holder := api.HolderRow{Held: 5, Limit: 32}
	put(holder.Name[:], "scheduler")
	s.SetTable(api.TableHolder, api.Body(&holder))

	stream := api.SynthRow{Offered: 9, Received: 8, Lost: 1, Wrong: 1, WrongLength: 2,
		WrongFrame: [256]byte{0xab, 0xcd}}
	put(stream.Name[:], "up")
	s.SetTable(api.TableSynth, api.Body(&stream))

	path := api.PathRow{Local: api.FromAddr(netip.MustParseAddr("192.0.2.1")), Alive: 1}
	put(path.Name[:], "upf")
	s.SetTable(api.TablePath, api.Body(&path))
}

// owned is a control plane with one association and one session.
type owned struct{}

var control = Control{owned{}, owned{}, owned{}}

func (owned) Associations() []Association {
	return []Association{{ID: "smf1", Address: "10.0.0.2:8805", State: "up", Sessions: 1, Features: "FTUP",
		Heartbeat: 250,
		Since:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
}

func (owned) N4() *n4.Snapshot {
	return &n4.Snapshot{NodeID: "upf1", Listen: []string{"10.0.0.1:8805"},
		Peers: []string{"10.0.0.2:8805"}, Features: []string{"FTUP"}, Sessions: 1,
		Recovery: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Received: map[string]uint64{"heartbeat-request": 2},
		Rejected: map[string]uint64{"too-short": 1}, Associations: []n4.AssociationRow{},
		Refusals: []n4.Refusal{{Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Count: 2, Peer: "10.0.0.2",
			Message: "session-establishment-request", Reason: "rule-failure", Cause: 73, IE: 21, Rule: "PDR 1",
			Text: "the F-TEID is taken"}}}
}

func (owned) Instances() []config.Instance {
	return []config.Instance{{Name: "internet", Names: []string{"ims"}, Interfaces: []config.Name{"n6"},
		Endpoints: []config.Address{{Addr: netip.MustParseAddr("10.30.0.1")}},
		Sources:   []string{"core", "sgi-lan"},
		Pools:     []config.Prefix{{Prefix: netip.MustParsePrefix("10.45.0.0/16")}}}}
}

func (owned) Subscribers(key string, _ uint32) []Subscriber {
	list := []Subscriber{{User: "anna", State: "up", Kind: "pppoe", Line: "access:1.2", IPv4: "10.0.0.1",
		UplinkBytes: 7}}
	if key != "" {
		list[0].Attempts = []Attempt{{User: "anna", Kind: "pppoe", Count: 2, Why: "wrong password"}}
	}
	return list
}
func (owned) AddressPools() []AddressPool { return []AddressPool{{Name: "homes", Size: 9, Used: 1}} }
func (owned) FramesLost() uint64          { return 6 }
func (owned) Senders() []Sender {
	return []Sender{{Line: "access:1.2", MAC: "02:00:00:00:00:01", Frames: 9}}
}
func (owned) Collectors() []Collector {
	return []Collector{{Address: "192.0.2.9:514", Protocol: "syslog", State: "down", Sent: 3, Lost: 4, Error: "no"}}
}
func (owned) RADIUS() []RADIUSServer {
	return []RADIUSServer{{Name: "one", Use: "accounting", State: "alive", Responses: 3}}
}

func (owned) IgnoredRoutes() []IgnoredRoute {
	return []IgnoredRoute{{Prefix: "10.0.0.0/8", VRF: "red", Namespace: "/run/netns/red", Table: 254, Metric: 20,
		Via: "172.16.0.2", Device: "eth0", Reason: "device", Text: "by a device"}}
}

func (owned) Owner(seid uint64) (Owner, bool) {
	return Owner{"smf1", 7, "internet", "001010000000001"}, seid == 0x1f
}

// Every table: its JSON (names are a promise) and how it is printed.
func TestTables(t *testing.T) {
	s := dptest.Start(t)
	for _, table := range Tables {
		s.Fill(table.Rows)
	}
	rows(s)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	defer c.Close()
	for _, table := range Tables {
		v, err := table.Get(t.Context(), c, control, "", 0)
		testkit.Must(t, err)
		data, err := json.Marshal(v)
		testkit.Must(t, err)
		text := bytes.NewBufferString(string(data) + "\n\n")
		testkit.Must(t, table.Print(text, data))
		testkit.Golden(t, "testdata/"+table.Name+".txt", text.String())
	}
}

// The data plane gives routes in the order of its table.
func TestRoutesAreSorted(t *testing.T) {
	s := dptest.Start(t)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	defer c.Close()
	var table []byte
	want := []string{"10.0.0.0/8", "10.0.0.0/16", "192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0"}
	for _, i := range []int{4, 2, 3, 1, 0} {
		r := api.RouteRow{Prefix: api.FromPrefix(netip.MustParsePrefix(want[i]))}
		if i == 4 {
			copy(r.VRF[:], "red")
		}
		table = api.AppendRow(table, &r)
	}
	s.SetTable(api.TableRoute, table)
	v, err := Lookup("route").Fetch(t.Context(), c, "", 0)
	testkit.Must(t, err)
	var got []string
	for _, r := range v.([]Route) {
		got = append(got, r.Prefix)
	}
	testkit.Equal(t, strings.Join(got, " "), strings.Join(want, " "), "order")
}

func TestGraphForms(t *testing.T) {
	g := &Graph{
		Nodes: []Node{{Name: "port-rx", Calls: 1, Packets: 2, Ticks: 3,
			Workers: []NodeWorker{{1, 1, 2, 3}, {2, 9, 2, 7e9}}}, {Name: "drop"}},
		Edges: []Edge{{"port-rx", "drop", 0}, {"port-rx", "access-input", 0}, {"drop", "x", 0}},
	}
	for _, test := range []struct {
		name  string
		write func(*bytes.Buffer) error
		want  string
	}{
		{"edges", func(b *bytes.Buffer) error { return g.WriteEdges(b) },
			"NODE     NEXT\nport-rx  drop access-input\ndrop     x\n"},
		{"workers", func(b *bytes.Buffer) error { return g.WriteWorkers(b) },
			"NODE     WORKER  PACKETS  CALLS  PACKETS/CALL  TICKS/PACKET\nport-rx       1        2      1           " +
				"2.0           1.5\n" +
				"port-rx       2        2      9           0.2             -\n"},
		{"dot", func(b *bytes.Buffer) error { return g.WriteDot(b) },
			"digraph isthmus {\n\trankdir=LR;\n\tnode [shape=box, fontname=\"sans-serif\"];\n" +
				"\t\"port-rx\" [label=\"port-rx\\n2 packets\\n1.5 ticks\", style=filled, " +
				"fillcolor=lightyellow];\n\t\"drop\" [label=\"drop\"];\n" +
				"\t\"drop\" -> \"x\";\n\t\"port-rx\" -> \"access-input\";\n\t\"port-rx\" -> \"drop\";\n}\n"},
	} {
		var b bytes.Buffer
		if err := test.write(&b); err != nil || b.String() != test.want {
			t.Errorf("%s: got\n%swant\n%s(%v)", test.name, b.String(), test.want, err)
		}
	}
}

// Ticks of polls that found nothing are no packet's.
func TestGraphIdle(t *testing.T) {
	row := func(packets uint64) float64 {
		g := NewGraph([]api.NodeRow{{Calls: 4, Packets: packets, Ticks: 80}}, nil)
		if ticks := g.Nodes[0].TicksPerPacket; ticks != nil {
			return *ticks
		}
		return -1
	}
	got := [...]float64{row(0), row(3), row(4), row(8)}
	testkit.Equal(t, got, [...]float64{-1, -1, 20, 10}, "ticks per packet of 4 calls")
}

// What the control plane alone knows, without a data plane.
func TestAssociations(t *testing.T) {
	table := Lookup("association")
	for _, test := range []struct {
		key  string
		want int
	}{{"", 1}, {"smf1", 1}, {"smf2", 0}} {
		v, err := table.Get(t.Context(), nil, control, test.key, 0)
		all, ok := v.([]Association)
		testkit.ErrorIf(t, err != nil || !ok || all == nil || len(all) != test.want, "%+v: %v %v", test, v, err)
	}
	testkit.ErrorIf(t, !table.OfControl() || Lookup("session").OfControl(), "who is asked")
}

// A rule says what becomes of its packets now.
func TestRuleSaysWhatItDoes(t *testing.T) {
	for _, test := range []struct {
		row          api.RuleRow
		gate, action string
	}{
		{api.RuleRow{Action: api.FARForward}, "open", "forward"},
		{api.RuleRow{Action: api.FARForward, Flags: api.RowQuotaUsed}, "quota", "forward"},
		{api.RuleRow{Action: api.FARForward, Flags: api.RowGateClosed | api.RowQuotaUsed}, "closed", "forward"},
		{api.RuleRow{Action: api.FARForward | api.FARDuplicate, Flags: api.RowRedirects}, "open", "redirect duplicate"},
	} {
		var v Rule
		v.finish(&test.row)
		testkit.Equal(t, v.Gate, test.gate, "gate of %+v", test.row)
		testkit.Equal(t, v.Action, test.action, "action of %+v", test.row)
		testkit.ErrorIf(t, v.MBR != nil, "an MBR without a meter: %v", v.MBR)
	}
}

// Reasons of packets that have done their work are of the data plane, and no alert counts them.
func TestServedReasons(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/prometheus/isthmus.rules.yaml")
	testkit.Must(t, err)
	want := `{reason!~"` + strings.Join(served, "|") + `"}`
	testkit.Equal(t, strings.Count(string(rules), "isthmus_dropped_packets_total"+want), 2, "rules with %s", want)
	var sources strings.Builder
	for _, module := range []string{"lcp", "redirect"} {
		files, err := filepath.Glob("../../dataplane/modules/" + module + "/*.c")
		testkit.Must(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			testkit.Must(t, err)
			sources.Write(text)
		}
	}
	for _, reason := range served {
		testkit.ErrorIf(t, !strings.Contains(sources.String(), `"`+reason+`"`),
			"the data plane has no reason %s", reason)
	}
}
