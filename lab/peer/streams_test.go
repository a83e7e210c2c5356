// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"isthmus/lab/tester"
)

// The tester's two ends.
const (
	access = "access"
	core   = "core"
)

func testSetup() Setup {
	return Setup{
		CPU: 1, Descriptors: 1024, Ends: []End{
			{access, "02:00:00:aa:00:01", "02:00:00:00:01:00"}, {core, "02:00:00:cc:00:01", "02:00:00:cc:00:02"},
		},
	}
}

// baseStreams are a gateway's: two kinds of subscribers up, one down, and ICMP echo.
func baseStreams() []tester.Stream {
	send := tester.Stack{
		{Name: "ethernet", Fields: tester.Fields{"source": tester.Count{Base: "02:01:00:00:00:00"},
			"destination": "02:00:00:aa:00:01"}},
		{Name: "pppoe", Fields: tester.Fields{"session": 1}}, {Name: "ipv4", Fields: tester.Fields{"ttl": 63}},
	}
	receive := tester.Stack{{Name: "ethernet", Fields: tester.Fields{}}, {Name: "gtpu", Fields: tester.Fields{}}}
	return []tester.Stream{
		{Name: "a-up", Port: access, Sink: core, Share: 2, Flows: 300, Order: "random", Seed: 3, Size: tester.Size(650),
			Send: send, Receive: receive},
		{Name: "b-up", Port: access, Sink: core, Share: 3, Flows: 500, Order: "random", Seed: 4, Size: tester.Size(650),
			Send: send, Receive: receive},
		{Name: "down", Port: core, Sink: access, Share: 4, Flows: 800, Size: tester.Sizes{64: 7, 1518: 1},
			Send: receive, Receive: send},
		{Name: "ping", Port: access, Sink: core, Rate: "1000pps", Send: send},
		{Name: "pong", Port: core, Sink: access, Answers: "ping", Send: receive},
	}
}

func TestSamePackets(t *testing.T) {
	setup := testSetup()
	for _, c := range []struct {
		change Change
		check  func(sent, base, got tester.Stack) bool
	}{
		{Everything, func(_, base, got tester.Stack) bool { return reflect.DeepEqual(got, base) }},
		{Nothing, func(sent, _, got tester.Stack) bool { return reflect.DeepEqual(got, sent) }},
		{SwapMACs, func(sent, _, got tester.Stack) bool {
			return reflect.DeepEqual(got[0].Fields["source"], sent[0].Fields["destination"]) &&
				reflect.DeepEqual(got[0].Fields["destination"], sent[0].Fields["source"]) &&
				reflect.DeepEqual(got[1:], sent[1:])
		}},
	} {
		base := baseStreams()
		got, err := (&Peer{Packets: Same, Change: c.change}).streams(base, &setup)
		if err != nil || len(got) != 3 {
			t.Fatalf("change %d: %d streams, %v", c.change, len(got), err)
		}
		for i := range got {
			if !c.check(base[i].Send, base[i].Receive, got[i].Receive) {
				t.Errorf("change %d, stream %s: must arrive as %v", c.change, got[i].Name, got[i].Receive)
			}
		}
		if !reflect.DeepEqual(base, baseStreams()) {
			t.Errorf("change %d altered the gateway's own streams", c.change)
		}
	}
}

func TestPlainPackets(t *testing.T) {
	setup := testSetup()
	got, err := (&Peer{Packets: Plain, Change: NewMACsTTL}).streams(baseStreams(), &setup)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d streams, %v", len(got), err)
	}
	up, down := got[0], got[1]
	if up.Share != 5 || up.Flows != 800 || up.Order != "random" || !reflect.DeepEqual(up.Size, tester.Size(650)) {
		t.Errorf("uplink: %+v", up)
	}
	if down.Share != 4 || down.Flows != 800 || down.Port != core || down.Sink != access {
		t.Errorf("downlink: %+v", down)
	}
	ethernet, ipv4 := up.Receive[0].Fields, up.Receive[1].Fields
	if ethernet["source"] != setup.Ends[1].MAC || ethernet["destination"] != setup.Ends[1].FarMAC ||
		ipv4["ttl"] != plainTTL-1 {
		t.Errorf("uplink must arrive as %v", up.Receive)
	}
	if up.Send[1].Fields["ttl"] != plainTTL || up.Send[0].Fields["destination"] != setup.Ends[0].MAC {
		t.Errorf("uplink is sent as %v", up.Send)
	}
	if down.Receive[0].Fields["destination"] != setup.Ends[0].FarMAC {
		t.Errorf("downlink must arrive as %v", down.Receive)
	}
	tagged, err := (&Peer{Packets: Tagged, Change: Nothing}).streams(baseStreams(), &setup)
	if err != nil || len(tagged) != 2 || tagged[0].Send[1].Name != "vlan" || tagged[0].Send[2].Name != "vlan" {
		t.Fatalf("tagged: %v, %v", tagged, err)
	}
	if !reflect.DeepEqual(tagged[0].Send, tagged[0].Receive) {
		t.Error("qos_sched changes nothing")
	}
	if want := (tester.Sizes{70: 7, 1518: 1}); !reflect.DeepEqual(tagged[1].Size, want) {
		t.Errorf("64 bytes do not hold two tags, a UDP datagram and the tester's tag: %v, want %v", tagged[1].Size,
			want)
	}
}

func TestStreamsNotForPeers(t *testing.T) {
	setup := testSetup()
	for name, base := range map[string][]tester.Stream{
		"no share": {{Name: "a", Port: access, Rate: "1kpps"}}, "empty": nil,
		"another port": {{Name: "a", Port: "g2-access", Share: 1}},
	} {
		for _, packets := range []Packets{Same, Plain} {
			if got, err := (&Peer{Packets: packets}).streams(base, &setup); err == nil {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// nth is a counted address of a flow as the tester counts it.
func nth(t *testing.T, c tester.Count, flow int) string {
	t.Helper()
	step := flow / max(c.Each, 1)
	if c.Count > 0 {
		step %= c.Count
	}
	a := netip.MustParseAddr(c.Base.(string))
	for range step {
		a = a.Next()
	}
	return a.String()
}

// Every flow that is sent has its entry in l3fwd's table, and leads to the other port.
func TestExactRulesAreTheFlows(t *testing.T) {
	const flows = 600
	file := filepath.Join(t.TempDir(), "rules")
	if err := writeExactRules(file, 2, flows); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for in := bufio.NewScanner(strings.NewReader(string(text))); in.Scan(); {
		rules[in.Text()] = true
	}
	setup := testSetup()
	p := &Peer{Packets: Plain, Change: NewMACsTTL}
	for out, from := range []int{1, 0} { // port 0 is the access side
		send, _ := p.plainStacks(from, &setup)
		ipv4, udp := send[1].Fields, send[2].Fields
		for flow := range flows {
			rule := fmt.Sprintf("R%s %s %d %d 0x11 %d", nth(t, ipv4["destination"].(tester.Count), flow),
				nth(t, ipv4["source"].(tester.Count), flow), udp["destination"], udp["source"], out)
			if !rules[rule] {
				t.Fatalf("flow %d from port %d has no rule %q", flow, from, rule)
			}
		}
	}
	if len(rules) != 2*flows {
		t.Errorf("%d rules for %d flows", len(rules), 2*flows)
	}
}
