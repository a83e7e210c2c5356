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
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/testkit"
)

func put(field []byte, s string) { copy(field, s) }

// rows fills every table of a fake data plane with one or two rows.
func rows(s *dptest.Server) {
	port := api.PortRow{Role: api.RoleAccess, Up: 1, MTU: 1500, MAC: [6]byte{2, 0, 0, 0, 0, 1}, RxPackets: 12, RxMissed: 1, Offload: api.OffloadEncapsulation, OffloadEntries: 3, OffloadRefused: 2,
		Steering: api.SteeringRSSInner}
	put(port.Name[:], "access")
	put(port.Driver[:], "synth")
	put(port.OffloadWhy[:], "full: no")
	s.SetTable(api.TablePort, api.Body(&port))

	session := api.SessionRow{
		SEID: 1, Encap: api.EncapQinQPPPoE, STag: 100, CTag: 7, PPPoESession: 9, TEIDLocal: 16, TEIDPeer: 17, UplinkPackets: 5,
		UEIP4: api.FromAddr(netip.MustParseAddr("10.64.0.1")), UplinkDropped: 2, Subport: 1, Pipe: 5,
	}
	put(session.Name[:], "home-00001")
	put(session.PipeProfile[:], "gold")
	put(session.Port[:], "access")
	mobile := api.SessionRow{
		SEID: 0x1f, Encap: api.EncapNone, TEIDLocal: 3, TEIDPeer: 4, Buffered: 6,
		UEIP4: api.FromAddr(netip.MustParseAddr("10.45.0.1")), UEIP6: api.FromPrefix(netip.MustParsePrefix("2001:db8:1::/64")),
	}
	put(mobile.Name[:], "n4.000000000000001f")
	s.SetTable(api.TableSession, api.AppendRow(api.Body(&session), &mobile))

	detection := api.RuleRow{QERs: 2, QER: [4]uint32{7, 1}, URRs: 1, URR: [4]uint32{9},
		QFI: 9, PDR: 2, FAR: 3, Precedence: 100, Source: api.SourceFromCore, Action: api.FARBuffer | api.FARNotify,
		TEIDPeer: 17, Peer: api.FromAddr(netip.MustParseAddr("10.1.0.2")), Packets: 5, Bytes: 500, Dropped: 1, Buffered: 4,
		MBR: 2_500_000}
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
	mirror := api.MirrorRow{To: api.MirrorToERSPAN, Collector: api.FromAddr(netip.MustParseAddr("192.0.2.9")), Packets: 7, Bytes: 700, Limited: 2}
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
	s.SetTable(api.TableChannel, api.Body(&ppp))
	other := api.TrafficRow{Other: 1, QFI: api.NoQFI, UplinkPackets: 2, UplinkBytes: 128}
	traffic := api.TrafficRow{QFI: 9, DownlinkPackets: 3, DownlinkBytes: 300}
	put(traffic.Instance[:], "internet")
	put(traffic.DNN[:], "ims")
	s.SetTable(api.TableTraffic, api.AppendRow(api.Body(&other), &traffic))
	s.SetTable(api.TableEvent, api.Body(&api.EventRow{Type: api.EventTypeUsage, Subscribers: 1, Raised: 4, Acknowledged: 3, Waiting: 1}))

	route := api.RouteRow{
		Prefix: api.FromPrefix(netip.MustParsePrefix("0.0.0.0/0")), Via: api.FromAddr(netip.MustParseAddr("192.0.2.2")), Resolved: 1,
	}
	put(route.Interface[:], "core0")
	put(route.VRF[:], "red")
	s.SetTable(api.TableRoute, api.AppendRow(api.Body(&route), &api.RouteRow{Resolved: 1,
		Prefix: api.FromPrefix(netip.MustParsePrefix("10.0.0.0/8")), Discard: api.DiscardUnreachable}))

	neighbour := api.NeighbourRow{Address: api.FromAddr(netip.MustParseAddr("2001:db8::1")), State: 4}
	put(neighbour.Interface[:], "core0")
	s.SetTable(api.TableNeighbour, api.Body(&neighbour))

	rule, rest := api.ACLRow{Rule: 3, Action: api.ActionDeny, Packets: 8}, api.ACLRow{Rule: 0xffffffff, Action: api.ActionPermit}
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

	stream := api.SynthRow{Offered: 9, Received: 8, Lost: 1, Wrong: 1, WrongLength: 2, WrongFrame: [256]byte{0xab, 0xcd}}
	put(stream.Name[:], "up")
	s.SetTable(api.TableSynth, api.Body(&stream))

	path := api.PathRow{Local: api.FromAddr(netip.MustParseAddr("192.0.2.1")), Alive: 1}
	put(path.Name[:], "upf")
	s.SetTable(api.TablePath, api.Body(&path))
}

// owned is a control plane with one association and one session.
type owned struct{}

func (owned) Associations() []Association {
	return []Association{{ID: "smf1", Address: "10.0.0.2:8805", State: "up", Sessions: 1, Features: "FTUP", Heartbeat: 250,
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
}

func (owned) N4() *n4.Snapshot {
	return &n4.Snapshot{NodeID: "upf1", Listen: []string{"10.0.0.1:8805"}, Features: []string{"FTUP"}, Sessions: 1,
		Recovery: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Received: map[string]uint64{"heartbeat-request": 2},
		Rejected: map[string]uint64{"too-short": 1}, Associations: []n4.AssociationRow{},
		Refusals: []n4.Refusal{{Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Count: 2, Peer: "10.0.0.2",
			Message: "session-establishment-request", Reason: "rule-failure", Cause: 73, IE: 21, Rule: "PDR 1", Text: "the F-TEID is taken"}}}
}

func (owned) Subscribers(key string, _ uint32) []Subscriber {
	list := []Subscriber{{User: "anna", State: "up", Kind: "pppoe", Line: "access:1.2", IPv4: "10.0.0.1", UplinkBytes: 7}}
	if key != "" {
		list[0].Attempts = []Attempt{{User: "anna", Kind: "pppoe", Count: 2, Why: "wrong password"}}
	}
	return list
}
func (owned) AddressPools() []AddressPool { return []AddressPool{{Name: "homes", Size: 9, Used: 1}} }
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
	rows(s)
	c, err := dp.Dial(t.Context(), s.Path)
	testkit.Must(t, err)
	defer c.Close()
	for _, test := range []struct{ name, json, table string }{
		{"port",
			`[{"name":"access","driver":"synth","role":"access","mtu":1500,"up":true,"gone":false,"speed_mbps":0,"mac":"02:00:00:00:00:01","rx_packets":12,"rx_bytes":0,"tx_packets":0,"tx_bytes":0,"rx_missed":1,"rx_no_buffer":0,"tx_dropped":0,"offload":"encapsulation","offload_entries":3,"offload_refused":2,"offload_why":"full: no","steering":"rss-inner"}]`,
			`
PORT    DRIVER  ROLE    STATE   MTU  MAC                RX PACKETS  RX BYTES  TX PACKETS  TX BYTES  RX MISSED  TX DROPPED  STEERING   OFFLOAD        ENTRIES  REFUSED  WHY NOT MORE
access  synth   access  up     1500  02:00:00:00:00:01          12         0           0         0          1           0  rss-inner  encapsulation        3        2  full: no
`},
		{"n4", `{"node_id":"upf1","listen":["10.0.0.1:8805"],"recovery":"2026-01-02T03:04:05Z","features":["FTUP"],"sessions":1,"in_flight":0,"queued":0,"requests":0,"answers":0,"answer_bytes":0,"lost":0,"received":{"heartbeat-request":2},"sent":null,"rejected":{"too-short":1},"events":null,"took":null,"refusals":[{"time":"2026-01-02T03:04:06Z","count":2,"peer":"10.0.0.2","message":"session-establishment-request","reason":"rule-failure","cause":73,"offending_ie":21,"rule":"PDR 1","text":"the F-TEID is taken"}],"associations":[]}`, `
N4        NAME               VALUE
server    node id            upf1
server    listen             10.0.0.1:8805
server    recovery           2026-01-02T03:04:05Z
server    features           FTUP
now       associations       0
now       sessions           1
now       in flight          0
now       queued             0
now       requests of ours   0
now       answers kept       0
total     lost               0
received  heartbeat-request  2
rejected  too-short          1
refused   10.0.0.2           03:04:06 session-establishment-request: cause 73 rule-failure, IE 21, PDR 1: the F-TEID is taken (2 times)
`},
		{"session",
			`[{"name":"home-00001","seid":1,"worker":0,"pdrs":0,"port":"access","encap":"qinq-pppoe","s_tag":100,"c_tag":7,"pppoe_session":9,"mac":"00:00:00:00:00:00","ue_ip4":"10.64.0.1","ue_ip6":"","teid_local":16,"teid_peer":17,"uplink_packets":5,"uplink_bytes":0,"downlink_packets":0,"downlink_bytes":0,"uplink_dropped":2,"downlink_dropped":0,"buffered":0,"scheduler_pipe":"access/1/5","scheduler_profile":"gold","association":"","cp_seid":0,"dnn":"","user":"","seid_hex":"0x1","cp_seid_hex":""},` +
				`{"name":"n4.000000000000001f","seid":31,"worker":0,"pdrs":0,"port":"","encap":"none","s_tag":0,"c_tag":0,"pppoe_session":0,"mac":"00:00:00:00:00:00","ue_ip4":"10.45.0.1","ue_ip6":"2001:db8:1::/64","teid_local":3,"teid_peer":4,"uplink_packets":0,"uplink_bytes":0,"downlink_packets":0,"downlink_bytes":0,"uplink_dropped":0,"downlink_dropped":0,"buffered":6,"scheduler_pipe":"","scheduler_profile":"","association":"smf1","cp_seid":7,"dnn":"internet","user":"001010000000001","seid_hex":"0x1f","cp_seid_hex":"0x7"}]`,
			`
SESSION              PORT    ENCAP       TAGS           MAC                ASSOCIATION  SEID UP/CP  DNN       USER             WORKER  UE IPV4    UE IPV6          TEID LOCAL/PEER  UP PACKETS  DOWN PACKETS  DROPPED  BUFFERED  PIPE        PIPE PROFILE
home-00001           access  qinq-pppoe  100.7 pppoe 9  00:00:00:00:00:00  -            0x1/0x0     -         -                     0  10.64.0.1  -                0x10/0x11                 5             0        2         0  access/1/5  gold
n4.000000000000001f  -       none        -              -                  smf1         0x1f/0x7    internet  001010000000001       0  10.45.0.1  2001:db8:1::/64  0x3/0x4                   0             0        0         6  -           -
`},
		{"rule", `[{"session":"n4.000000000000001f","pdr":2,"far":3,"precedence":100,"source":"core","destination":"access","action":"buffer notify","teid_local":0,"teid_peer":17,"local":"","peer":"10.1.0.2","packets":5,"bytes":500,"dropped":1,"buffered":4,"qers":[7,1],"urrs":[9],"qfi":9,"gate":"open","mbr_kbps":20000}]`, `
SESSION              PDR  PRECEDENCE  FROM  LOCAL  FAR  QER  QFI  URR  GATE  MBR KBIT/S  ACTION         TO      PEER           PACKETS  BYTES  DROPPED  BUFFERED
n4.000000000000001f    2         100  core  -        3  7,1    9    9  open       20000  buffer notify  access  10.1.0.2 0x11        5    500        1         4
`},
		{"urr", `[{"session":"n4.000000000000001f","urr":1,"sequence":2,"bytes":{"total":30,"uplink":10,"downlink":20},"packets":{"total":3,"uplink":1,"downlink":2},"quota_left":{"total":70,"uplink":null,"downlink":80},"duration":9,"exhausted":false}]`, `
SESSION              URR  REPORTS  UP BYTES  DOWN BYTES  UP PACKETS  DOWN PACKETS  SECONDS  QUOTA LEFT  EXHAUSTED
n4.000000000000001f    1        2        10          20           1             2        9          70  no
`},
		{"nat", `[{"name":"internet","mode":"blocks","addresses":2,"block":512,` +
			`"blocks":252,"used":1,"resting":0,"subscribers":1,"mappings":9,"made":12,"unreported":0,` +
			`"pairs":3,"pairs_made":5,"pairs_refused":2}]`, `
INSTANCE  MODE    ADDRESSES  BLOCKS  USED  RESTING  SUBSCRIBERS  PORTS A BLOCK  MAPPINGS  MADE  UNREPORTED  PAIRS  PAIRS REFUSED
internet  blocks          2     252     1        0            1            512         9    12           0      3              2
`},
		{"nat-block", `[{"name":"internet","session":"n4.000000000000001f",` +
			`"outside":"203.0.113.4","inside":"10.45.0.1",` +
			`"first":1024,"last":1535,"worker":0,"mappings":9}]`, `
INSTANCE  SESSION              INSIDE     OUTSIDE      FIRST  LAST  MAPPINGS  WORKER
internet  n4.000000000000001f  10.45.0.1  203.0.113.4   1024  1535         9       0
`},
		{"nptv6", `[{"name":"internet","inside":"fd00::/48","outside":"2001:db8:7::/48",` +
			`"packets_out":3,"packets_in":2}]`, `
INSTANCE  INSIDE     OUTSIDE          PACKETS OUT  PACKETS IN
internet  fd00::/48  2001:db8:7::/48            3           2
`},
		{"mirror", `[{"name":"tap","to":"erspan","target":"","collector":"192.0.2.9","packets":7,"bytes":700,"limited":2,"no_buffer":0,"failed":0}]`, `
MIRROR  TO      TARGET  COLLECTOR  PACKETS  BYTES  LIMITED  NO BUFFER  FAILED
tap     erspan  -       192.0.2.9        7    700        2          0       0
`},
		{"clone", `[{"name":"n6","device":"n6","namespace":"/run/netns/fabric","attached":true,"link":true,"mtu":1500,"to_kernel":12,"from_kernel":9,"refused":1,"dropped":0,"why":""}]`, `
INTERFACE  DEVICE  NAMESPACE          ATTACHED  LINK   MTU  TO KERNEL  FROM KERNEL  REFUSED  DROPPED  WHY
n6         n6      /run/netns/fabric  yes       yes   1500         12            9        1        0  -
`},
		{"gtsm", `[{"name":"n6","hops":1,"passed":40,"dropped":2}]`, `
INTERFACE  HOPS  PASSED  DROPPED
n6            1      40        2
`},
		{"mss", `[{"name":"","uplink":7,"downlink":0,"malformed":0},` +
			`{"name":"internet","uplink":12,"downlink":9,"malformed":1}]`, `
INSTANCE  UPLINK  DOWNLINK  MALFORMED
-              7         0          0
internet      12         9          1
`},
		{"channel", `[{"name":"ppp-control","frames":900,"over_subscriber":1,"over_line":20,"over_s_tag":3,` +
			`"over_port":4,"full":5,"refused":0}]`, `
REASON       FRAMES  OVER SUBSCRIBER  OVER LINE  OVER S-TAG  OVER PORT  FULL  REFUSED
ppp-control     900                1         20           3          4     5        0
`},
		{"counter", `[{"name":"slice","each":false,"sessions":3,"packets":90,"bytes":9000,"period_packets":40,"period_bytes":4000,"mark_packets":0,"mark_bytes":5000,"reached":1}]`, `
COUNTER  EACH  SESSIONS  PACKETS  BYTES  PERIOD PACKETS  PERIOD BYTES  MARK PACKETS  MARK BYTES  REACHED
slice    no           3       90   9000              40          4000             0        5000        1
`},
		{"traffic", `[{"instance":"","dnn":"","qfi":null,"other":true,"uplink_packets":2,` +
			`"uplink_bytes":128,"downlink_packets":0,"downlink_bytes":0},` +
			`{"instance":"internet","dnn":"ims","qfi":9,"other":false,"uplink_packets":0,` +
			`"uplink_bytes":0,"downlink_packets":3,"downlink_bytes":300}]`, `
INSTANCE  DNN      QFI  UP PACKETS  UP BYTES  DOWN PACKETS  DOWN BYTES
other     other  other           2       128             0           0
internet  ims        9           0         0             3         300
`},
		{"instance", `[{"name":"internet","lookup":"destination","tunnels":2,"ue_addresses":1,"unknown_ue":7,"unknown_teid":0}]`, `
INSTANCE  LOOKUP       TUNNELS  UE ADDRESSES  UNKNOWN UE  UNKNOWN TEID
internet  destination        2             1           7             0
`},
		{"association", `[{"id":"smf1","set":"","address":"10.0.0.2:8805","state":"up","since":"2026-01-02T03:04:05Z","recovery":"0001-01-01T00:00:00Z","sessions":1,"features":"FTUP","heartbeat_us":250}]`, `
ASSOCIATION  SET  ADDRESS        STATE  SINCE                 RECOVERY  SESSIONS  HEARTBEAT µS  FEATURES
smf1         -    10.0.0.2:8805  up     2026-01-02T03:04:05Z  -                1           250  FTUP
`},
		{"event", `[{"name":"usage","subscribers":1,"raised":4,"acknowledged":3,"suppressed":0,"waiting":1}]`, `
EVENT  RAISED  ACKNOWLEDGED  WAITING  SUPPRESSED  SUBSCRIBERS
usage       4             3        1           0            1
`},
		{"route",
			`[{"prefix":"10.0.0.0/8","via":"",` +
				`"interface":"","resolved":true,"vrf":"","discard":"unreachable"},` +
				`{"prefix":"0.0.0.0/0","via":"192.0.2.2","interface":"core0","resolved":true,"vrf":"red","discard":""}]`, `
PREFIX      VIA          INTERFACE  RESOLVED  VRF
10.0.0.0/8  unreachable  -          yes       -
0.0.0.0/0   192.0.2.2    core0      yes       red
`},
		{"ignored-route",
			`[{"prefix":"10.0.0.0/8","vrf":"red","namespace":"/run/netns/red","table":254,"metric":20,` +
				`"via":"172.16.0.2",` +
				`"device":"eth0","hops":0,"reason":"device","text":"by a device"}]`, `
PREFIX      VRF  NAMESPACE       TABLE  METRIC  VIA         DEVICE  HOPS  REASON  TEXT
10.0.0.0/8  red  /run/netns/red    254      20  172.16.0.2  eth0       0  device  by a device
`},
		{"neighbour", `[{"interface":"core0","address":"2001:db8::1","mac":"00:00:00:00:00:00","state":"static","age_s":0,"held":0}]`, `
INTERFACE  ADDRESS      MAC                STATE   AGE S  HELD
core0      2001:db8::1  00:00:00:00:00:00  static      0     0
`},
		{"acl", `[{"name":"uplink","rule":3,"default":false,"action":"deny","packets":8},{"name":"uplink","rule":0,"default":true,"action":"permit","packets":0}]`, `
ACL        RULE  ACTION  PACKETS
uplink        3  deny          8
uplink  default  permit        0
`},
		{"scheduler", `[{"port":"access","subport":0,"pipe":5,"traffic_class":3,"queued":0,"packets":2,"bytes":0,"dropped_packets":0,"dropped_bytes":0,"dropped_yellow":0,"dropped_red":0},{"port":"access","subport":0,"pipe":null,"traffic_class":0,"queued":4,"packets":0,"bytes":0,"dropped_packets":0,"dropped_bytes":0,"dropped_yellow":0,"dropped_red":0}]`, `
PORT    SUBPORT  PIPE  CLASS  QUEUED  PACKETS  BYTES  DROPPED  YELLOW  RED
access        0     5      3       0        2      0        0       0    0
access        0   all      0       4        0      0        0       0    0
`},
		{"graph", `{"nodes":[{"name":"port-rx","calls":4,"packets":128,"ticks":1920,"packets_per_call":32,"ticks_per_packet":15,"workers":[{"worker":0,"calls":2,"packets":64,"ticks":640},{"worker":1,"calls":2,"packets":64,"ticks":1280}]}],"edges":[{"from":"port-rx","to":"drop","packets":0},{"from":"port-rx","to":"access-input","packets":5}]}`, `
NODE     PACKETS  CALLS  PACKETS/CALL  TICKS/PACKET
port-rx      128      4          32.0          15.0
`},
		{"drop", `[{"name":"no-route","text":"No route to the destination.","packets":3},{"name":"never","text":"","packets":0}]`, `
REASON    PACKETS  MEANING
no-route        3  No route to the destination.
(1 more reasons without packets; -j lists them)
`},
		{"punt", `[]`, `
REASON  PACKETS  MEANING
`},
		{"worker", `[{"worker":0,"cpu":-1,"walks":0,"busy_ticks":100,"idle_ticks":300,"packets":10,"sessions":0,"flows":0,"flow_inserts":0,"flow_evictions":0,"handed_over":0,"longest_us":0,"stalls":0,"stalled_us":0}]`, `
WORKER  CPU  BUSY %  PACKETS  TICKS/PACKET  SESSIONS  FLOWS  INSERTS  EVICTIONS  HANDED OVER  LONGEST us  STALLS
     0  any    25.0       10          10.0         0      0        0          0            0           0       0
`},
		{"path", `[{"name":"upf","local":"192.0.2.1","peer":"","alive":true,"recovery":0,"echo_sent":0,"echo_received":0,"error_indications_sent":0,"error_indications_received":0}]`, `
PATH  LOCAL      PEER  ALIVE  ECHO SENT  ECHO RECEIVED  ERRORS SENT  ERRORS RECEIVED
upf   192.0.2.1  -     -              0              0            0                0
`},
		{"collector", `[{"address":"192.0.2.9:514","protocol":"syslog","state":"down",` +
			`"since":"0001-01-01T00:00:00Z","sent":3,"lost":4,"error":"no"}]`, `
COLLECTOR      PROTOCOL  STATE  SINCE  SENT  LOST  ERROR
192.0.2.9:514  syslog    down   -         3     4  no
`},
		{"subscriber", `[{"user":"anna","state":"up","kind":"pppoe","line":"access:1.2","mac":"","pppoe_session":0,"circuit":"","remote":"","ipv4":"10.0.0.1","ipv6":"","delegated":"","profile":"","instance":"","uplink_list":"","downlink_list":"","scheduler_profile":"","up_kbit":0,"down_kbit":0,"since":"0001-01-01T00:00:00Z","uplink_packets":0,"uplink_bytes":7,"downlink_packets":0,"downlink_bytes":0,"session":"","object":""}]`, `
SUBSCRIBER  STATE  KIND   LINE        MAC  IPV4      IPV6  DELEGATED  PROFILE  SINCE  UP BYTES  DOWN BYTES
anna        up     pppoe  access:1.2  -    10.0.0.1  -     -          -        -             7           0
`},
		{"pool", `[{"name":"homes","instance":"","network":"","length":0,"size":9,"used":1,"reserved":0,"held":0,"declined":0,"given":0,"again":0,"refused":0}]`, `
POOL   INSTANCE  NETWORK  LENGTH  SIZE  USED  RESERVED  HELD  DECLINED  GIVEN  AGAIN  REFUSED
homes  -         -             0     9     1         0     0         0      0      0        0
`},
		{"radius", `[{"name":"one","use":"accounting","address":"","transport":"","state":"alive","since":"0001-01-01T00:00:00Z","last_answer":"0001-01-01T00:00:00Z","requests":0,"repeated":0,"accepts":0,"rejects":0,"responses":3,"timeouts":0,"bad":0,"waiting":0}]`, `
RADIUS  USE         ADDRESS  TRANSPORT  STATE  SINCE  REQUESTS  REPEATED  ACCEPTS  REJECTS  RESPONSES  TIMEOUTS  BAD  WAITING
one     accounting  -        -          alive  -             0         0        0        0          3         0    0        0
`},
		{"stream", `[{"name":"up","offered":9,"offered_bytes":0,"received":8,"received_bytes":0,"checked":0,"wrong":1,"lost":1,"stray":0,"wrong_offset":0,"wrong_frame":"abcd"}]`, `
STREAM  OFFERED  RECEIVED  CHECKED  WRONG  LOST  STRAY
up            9         8        0      1     1      0
`},
		{"total", `{"in":10,"originated":1,"out":8,"punted":0,"held":1,"dropped":2,"merged":0,"missing":0,"buffers":64,"buffers_free":63,"sessions":0,"commits":0,"refused_commits":0,"clients":0,"clients_closed":0,"holders":[{"name":"scheduler","held":5,"limit":32}]}`, `
WHAT                         COUNT
packets in                      10
  originated here                1
packets out                      8
  punted to the host path        0
  held now                       1
  dropped                        2
  merged by reassembly           0
  missing from the balance       0
buffers                         64
  free                          63
  held: scheduler, of 32         5
sessions                         0
commits                          0
  refused                        0
clients of dp.sock               0
  closed: slow, or too many      0
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := Lookup(test.name)
			v, err := table.Get(t.Context(), c, owned{}, "", 0)
			testkit.Must(t, err)
			data, err := json.Marshal(v)
			testkit.ErrorIf(t, err != nil || string(data) != test.json,
				"JSON %s\nwant %s (%v)", data, test.json, err)
			var b bytes.Buffer
			if err := table.Print(&b, data); err != nil || b.String() != strings.TrimPrefix(test.table, "\n") {
				t.Errorf("got\n%swant%s(%v)", b.String(), test.table, err)
			}
		})
	}
	testkit.ErrorIf(t, len(Tables) != 34, "%d tables: add the new ones here", len(Tables))
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
		{"edges", func(b *bytes.Buffer) error { return g.WriteEdges(b) }, "NODE     NEXT\nport-rx  drop access-input\ndrop     x\n"},
		{"workers", func(b *bytes.Buffer) error { return g.WriteWorkers(b) }, "NODE     WORKER  PACKETS  CALLS  PACKETS/CALL  TICKS/PACKET\nport-rx       1        2      1           2.0           1.5\n" +
			"port-rx       2        2      9           0.2             -\n"},
		{"dot", func(b *bytes.Buffer) error { return g.WriteDot(b) }, "digraph isthmus {\n\trankdir=LR;\n\tnode [shape=box, fontname=\"sans-serif\"];\n" +
			"\t\"port-rx\" [label=\"port-rx\\n2 packets\\n1.5 ticks\", style=filled, fillcolor=lightyellow];\n\t\"drop\" [label=\"drop\"];\n" +
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

// What the control plane alone knows, without a data plane and without PFCP.
func TestAssociations(t *testing.T) {
	table := Lookup("association")
	for _, test := range []struct {
		control Control
		key     string
		want    int
	}{{nil, "", 0}, {owned{}, "", 1}, {owned{}, "smf1", 1}, {owned{}, "smf2", 0}} {
		v, err := table.Get(t.Context(), nil, test.control, test.key, 0)
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
