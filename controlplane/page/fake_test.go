// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/controlplane/auth"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/view"
)

// gateway is a source with counters that advance by the second.
type gateway struct {
	lock     sync.Mutex
	seconds  float64
	away     bool
	sessions int
	dnns     int // beside "internet"
	homes    int // who signed in
	mobile   bool
	both     bool           // the graph of an access gateway beside a UPF
	drops    int            // reasons more
	asked    map[string]int // by table
}

// hostile is what a subscriber may call itself.
const hostile = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'">`

func (g *gateway) set(change func()) {
	g.lock.Lock()
	defer g.lock.Unlock()
	change()
}

func (g *gateway) Status() Status {
	g.lock.Lock()
	defer g.lock.Unlock()
	s := Status{Host: "gateway", Started: time.Now().Add(-5 * time.Hour).Truncate(time.Hour), Version: "1.2.3",
		DPVersion: "1.2.3", DataPlane: "ready", Objects: 1013}
	if g.away {
		s.DataPlane, s.Error = "away", "it ended by signal 6 (SIGABRT), 5 times in a row"
	}
	return s
}

// at is a counter with a rate a second, with a wave.
func (g *gateway) at(rate float64) uint64 {
	return uint64(rate * (g.seconds + 8*math.Sin(g.seconds/9)/2 + 5))
}

func (g *gateway) Table(_ context.Context, name, key string, limit uint32) (any, error) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.asked == nil {
		g.asked = map[string]int{}
	}
	g.asked[name]++
	if name == "subscriber" {
		return g.homeRows(key), nil
	}
	if name == "n4" {
		if g.mobile {
			return g.n4(), nil
		}
		return struct{}{}, nil
	}
	if g.away {
		return nil, errors.New("the data plane is away; isthmus status says why")
	}
	switch name {
	case "port":
		return []view.Port{
			{Name: "n3", RxPackets: g.at(1.1e6), RxBytes: g.at(1.3e8), TxPackets: g.at(2.4e6),
				TxBytes: g.at(2.9e9)},
			{Name: "n6", RxPackets: g.at(2.4e6), RxBytes: g.at(2.8e9), TxPackets: g.at(1.1e6),
				TxBytes: g.at(1.2e8)},
		}, nil
	case "total":
		return view.Total{In: g.at(3.5e6), Out: g.at(3.49e6), Dropped: g.at(9e3), Buffers: 65536,
			BuffersFree: 60000,
			Sessions:    uint64(g.sessions)}, nil
	case "traffic":
		nine := uint32(9)
		list := []view.Traffic{{Other: true}, {Instance: "n3", DNN: "internet", QFI: &nine,
			UplinkBytes: g.at(1e8)}, {Instance: "n6", DNN: "internet", QFI: &nine, DownlinkBytes: g.at(2e9)}}
		for i := range g.dnns {
			list = append(list, view.Traffic{DNN: fmt.Sprintf("dnn-%03d", i), UplinkBytes: g.at(1e3)})
		}
		return list, nil
	case "drop":
		return g.reasons(), nil
	case "worker":
		return []view.Worker{{Worker: 0, BusyTicks: g.at(1.1e9), IdleTicks: g.at(1e9)}, {Worker: 1,
			BusyTicks: g.at(1.6e9), IdleTicks: g.at(5e8)}}, nil
	case "graph":
		return g.graph(), nil
	case "session":
		return g.sessionRows(key, int(limit)), nil
	case "rule":
		return []view.Rule{
			{Session: key, PDR: 1, FAR: 1, Precedence: 100, Source: "access", Destination: "core",
				Action: "forward", Packets: g.at(60), Bytes: g.at(6e4), QERs: []uint32{1},
				URRs: []uint32{1, 2}},
			{Session: key, PDR: 2, FAR: 2, Precedence: 100, Source: "core", Destination: "access",
				Action: "forward", TEIDPeer: 0x1000, Peer: "10.3.0.7", QERs: []uint32{}, URRs: []uint32{},
				Packets: g.at(90), Bytes: g.at(1.2e5)},
		}, nil
	case "urr":
		return []view.URR{{Session: key, URR: 1, Sequence: 3, Bytes: view.Volume{Uplink: g.at(6e4),
			Downlink: g.at(1.2e5)}}}, nil
	case "association":
		var list []view.Association
		for _, a := range g.n4().Associations {
			list = append(list, view.Association{ID: a.ID, Address: a.Address, State: a.State,
				Since: a.Since, Sessions: a.Sessions, Heartbeat: int64(a.RoundTrip * 1000)})
		}
		return list, nil
	case "route":
		return []view.Route{{Prefix: "0.0.0.0/0", Via: "10.6.0.254", Interface: "n6", Resolved: true},
			{Prefix: "10.6.0.0/24", Interface: "n6", Resolved: true}}, nil
	case "path":
		return []view.Path{{Name: "gnb-1", Local: "10.3.0.1", Peer: "10.3.0.7", Alive: true, EchoSent: 12,
			EchoReceived: 12}}, nil
	case "neighbour":
		return []view.Neighbour{{Interface: "n6", Address: "10.6.0.254", MAC: "02:00:00:00:00:01",
			State: "reachable", AgeS: 12}}, nil
	}
	return nil, fmt.Errorf("nothing called %q to show", name)
}

func (g *gateway) n4() *n4.Snapshot {
	return &n4.Snapshot{NodeID: "upf", Received: map[string]uint64{"session-establishment-request": g.at(1.9e3)},
		Sent:     map[string]uint64{"session-establishment-response": g.at(1.9e3)},
		Rejected: map[string]uint64{"no-resources": g.at(3)},
		Took: map[string]measure.Timing{"session-establishment-request": {Requests: g.at(1900),
			Seconds: 0.0004 * float64(g.at(1900)),
			Buckets: []measure.Bucket{{Seconds: 0.0005, Requests: g.at(1800)},
				{Seconds: 0.001, Requests: g.at(1900)}}}},
		Associations: []n4.AssociationRow{{ID: "smf-1", Address: "10.4.0.9", State: "up",
			Sessions: g.sessions, Heartbeats: 10, RoundTrip: 0.42}}}
}

func (g *gateway) graph() *view.Graph {
	graph := &view.Graph{}
	if g.both {
		return g.wideGraph()
	}
	node := func(name string, rate, ticks float64) {
		graph.Nodes = append(graph.Nodes, view.Node{Name: name, Packets: g.at(rate), Ticks: g.at(rate * ticks)})
	}
	node("port-rx", 3.5e6, 22)
	node("core-input", 1.1e6, 9)
	node("flow-input", 2.4e6, 61)
	node("ip-input", 1.1e6, 14)
	node("gtpu-input", 1.1e6, 20)
	node("session-tunnel", 1.1e6, 33)
	node("policer-uplink", 1.1e6, 17)
	node("ip-output", 1.09e6, 15)
	node("port-tx", 3.49e6, 12)
	node("drop", 1e4, 30)
	node("icmp-echo", 0, 0)
	for _, e := range [][2]string{
		{"port-rx", "core-input"}, {"port-rx", "flow-input"}, {"core-input", "ip-input"}, {"core-input",
			"drop"}, {"ip-input", "gtpu-input"},
		{"ip-input", "icmp-echo"}, {"gtpu-input", "session-tunnel"}, {"session-tunnel", "policer-uplink"},
		{"policer-uplink", "ip-output"},
		{"policer-uplink", "drop"}, {"ip-output", "port-tx"}, {"ip-output", "ip-input"}, {"flow-input",
			"port-tx"}, {"icmp-echo", "ip-output"},
	} {
		graph.Edges = append(graph.Edges, view.Edge{From: e[0], To: e[1]})
	}
	return graph
}

func (g *gateway) reasons() []view.Reason {
	list := []view.Reason{{Name: "policer-red", Packets: g.at(8e3)}, {Name: "ue-spoofed",
		Packets: g.at(900)}, {Name: "no-route"}}
	for i := range g.drops {
		list = append(list, view.Reason{Name: fmt.Sprintf("reason-%02d", i),
			Packets: g.at(float64(10 + i))})
	}
	return list
}

// ways are the front page's paths through the graph, for packets of homes and UEs.
var ways = []string{
	"port-rx access-input firewall-uplink session-uplink policer-uplink gtpu-encap ip-output fragment-core port-tx",
	"port-rx core-input ip-input gtpu-input firewall-downlink session-downlink policer-downlink access-encap " +
		"fragment-access scheduler scheduler-tx port-tx",
	"port-rx core-input ip-input gtpu-input firewall-tunnel session-tunnel buffer redirect policer-uplink ip-forward " +
		"icmp-error ip-output port-tx",
	"port-rx core-input ip-input firewall-ue session-ue policer-downlink gtpu-encap",
	"access-input access-punt punt", "core-input reassembly ip-input", "session-tunnel duplicate ip-output",
	"access-input drop", "firewall-uplink drop", "firewall-downlink drop", "policer-downlink drop",
	"ip-output drop",
}

func (g *gateway) wideGraph() *view.Graph {
	graph := &view.Graph{}
	nodes, edges := map[string]bool{}, map[view.Edge]bool{}
	for i, way := range ways {
		names := strings.Fields(way)
		for k, name := range names {
			if !nodes[name] {
				nodes[name] = true
				graph.Nodes = append(graph.Nodes, view.Node{Name: name, Packets: g.at(1e5 +
					float64(7*i+k)), Ticks: g.at(3e6)})
			}
			if k > 0 && !edges[view.Edge{From: names[k-1], To: name}] {
				edge := view.Edge{From: names[k-1], To: name}
				edges[edge] = true
				graph.Edges = append(graph.Edges, edge)
			}
		}
	}
	return graph
}

func (g *gateway) sessionRows(key string, limit int) []view.Session {
	rows := make([]view.Session, 0, g.sessions)
	for i := range g.sessions {
		if i > 0 && key != "" && key != fmt.Sprintf("ue-%05d", i) {
			continue
		}
		s := view.Session{Name: fmt.Sprintf("ue-%05d", i), SEID: 1<<60 + uint64(i) + 1,
			SEIDHex: fmt.Sprintf("0x%x", 1<<60+uint64(i)+1), Encap: "none",
			UEIP4:     fmt.Sprintf("10.%d.%d.%d", 45+i>>16, i>>8&255, i&255),
			TEIDLocal: uint32(0x1000 + i), UplinkBytes: g.at(float64(100 + i)),
			DownlinkBytes: g.at(float64(1000 + 2*i)), UplinkPackets: g.at(float64(i % 7)),
			DNN: "internet", User: fmt.Sprintf("208930000%06d", i)}
		if i == 0 {
			s.Name, s.User = `<b onclick="x">&amp;"`, hostile
		}
		if key == "" || key == s.Name {
			rows = append(rows, s)
		}
	}
	for i := range g.homes { // the first is starting
		if h := g.home(i); i > 0 && (key == "" || key == h.Object) {
			rows = append(rows, view.Session{Name: h.Object, Encap: "pppoe", Port: "access", STag: 100,
				CTag: uint16(i), MAC: h.MAC, PPPoESession: h.PPPoESession, UEIP4: h.IPv4,
				UplinkBytes: g.at(9e5), DownlinkBytes: g.at(4e6), UplinkPackets: g.at(900),
				DownlinkPackets: g.at(3000)})
		}
	}
	return rows[:min(len(rows), limit)]
}

// home is a subscriber that signed in: with a hostile name, from a hostile line.
func (g *gateway) home(i int) view.Subscriber {
	s := view.Subscriber{User: fmt.Sprintf("home%04d@isp.example", i), State: "up", Kind: "pppoe",
		Line: fmt.Sprintf("access:100.%d", i), MAC: fmt.Sprintf("02:00:00:00:ab:%02x", i),
		PPPoESession: uint16(i + 1), Circuit: fmt.Sprintf("olt-7/%d", i), IPv4: fmt.Sprintf("10.64.0.%d", i),
		Delegated: fmt.Sprintf("2001:db8:%x::/48", i), Profile: "home", Instance: "internet", UpRate: 40_000,
		DownRate: 100_000, Since: time.Now().Add(-90 * time.Minute), UplinkBytes: g.at(9e5),
		DownlinkBytes: g.at(4e6), Session: fmt.Sprintf("%016x", 4096+i), Object: rules.Key(uint64(4096 + i))}
	if i == 0 {
		s.State, s.User, s.Circuit, s.Remote = "starting", hostile, hostile, hostile
	}
	return s
}

func (g *gateway) homeRows(key string) []view.Subscriber {
	list := []view.Subscriber{}
	for i := range g.homes {
		if h := g.home(i); key == "" || key == h.User || key == h.Object || key == h.MAC {
			list = append(list, h)
		}
	}
	if key == hostile+"away" {
		list = append(list, view.Subscriber{User: key, State: "away", Kind: "pppoe", Line: "access:100.9"})
	}
	if key != "" && len(list) > 0 {
		now := time.Now()
		list[0].Attempts = []view.Attempt{{User: list[0].User, Kind: "pppoe", First: now, Last: now, Count: 1},
			{User: hostile, Kind: "pppoe", First: now.Add(-time.Hour), Last: now, Count: 12,
				Why: "refused: " + hostile}}
	}
	return list
}

// signIns are 20 a second, of which one lasts.
func (g *gateway) signIns() map[string]measure.Timing {
	g.lock.Lock()
	defer g.lock.Unlock()
	all, n := map[string]measure.Timing{}, uint64(g.seconds)
	for i, phase := range []string{"queue", "authentication", "address", "session", "total"} {
		end := []float64{0.001, 0.025, 0.0001, 0.01, 0.05}[i]
		all[phase] = measure.Timing{Requests: 20 * n, Buckets: []measure.Bucket{{Seconds: end, Requests: 19 * n},
			{Seconds: 2 * end, Requests: 20 * n}}}
	}
	return all
}

// live is a page on a server of its own.
type live struct {
	*Page
	gateway *gateway
	server  *httptest.Server
	clock   time.Time
}

func newLive(t testing.TB, g *gateway, opt Options) *live {
	if g.homes > 0 {
		opt.SignIns = g.signIns
	}
	l := &live{Page: New(g, opt), gateway: g, clock: time.Now().Add(-time.Hour)}
	l.server = httptest.NewServer(auth.Local(l.Handler()))
	t.Cleanup(func() {
		l.lock.Lock()
		l.hub.closeAll("the test ends")
		l.lock.Unlock()
		l.server.Close()
	})
	return l
}

// seconds lets time pass.
func (l *live) seconds(n int) {
	for range n {
		l.gateway.set(func() { l.gateway.seconds++ })
		l.clock = l.clock.Add(time.Second)
		l.step(context.Background(), l.clock)
	}
}
