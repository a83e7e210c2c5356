// SPDX-License-Identifier: Apache-2.0

package tester

import "testing"

func TestProfileYAML(t *testing.T) {
	p := Profile{
		Name: "x", CPUs: []int{0, 1}, HugePages: true,
		Ports: []Port{{Name: "a", Driver: "net_memif", Device: "/a.sock", Args: "id=0",
			MAC: "02:00:00:00:00:01", Addresses: []string{"192.0.2.2", "fd00::2"}}},
		Streams: []Stream{{
			Name: "s", Port: "a", Sink: "a", Share: 1, Flows: 4, Size: Sizes{64: 7, 594: 4},
			Send: Stack{
				{Name: "ethernet", Fields: Fields{"source": Count{Base: "02:01:00:00:00:00", Each: 4}}},
				{Name: "gtpu", Fields: Fields{"teid": 5, "extensions": PDUSession(true, 9)}},
				{Name: "icmp"},
			},
			Expect: &Expect{Loss: Percent(1)},
		}},
		Run: Plan{
			Mode: ModeSearch, Rate: PPS(1.5e6), Search: &Search{Goals: []Goal{{Loss: "0"}, {Loss: Percent(1e-5)}},
				Confirm: Pointer(0.0)},
			Latency: &Latency{},
		},
	}
	data, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: x
cpus: [0, 1]
huge_pages: true
ports:
    - name: a
      driver: net_memif
      device: /a.sock
      args: id=0
      mac: "02:00:00:00:00:01"
      addresses: [192.0.2.2, 'fd00::2']
streams:
    - name: s
      port: a
      sink: a
      share: 1
      flows: 4
      size: {64: 7, 594: 4}
      send:
        - {ethernet: {source: {base: "02:01:00:00:00:00", each: 4}}}
        - {gtpu: {extensions: [{pdu-session: {qfi: 9, type: uplink}}], teid: 5}}
        - {icmp: {}}
      expect:
        loss: 100%
run:
    mode: search
    rate: 1500000pps
    search:
        goals: [{loss: "0"}, {loss: 0.001%}]
        confirm: 0
    latency:
        seconds: 0
`
	if string(data) != want {
		t.Errorf("got\n%s", data)
	}
}

func TestJoin(t *testing.T) {
	a := &Histogram{Count: 90, Min: 1, Max: 2, Mean: 1.5, Buckets: [][3]float64{{1, 2, 90}}}
	b := &Histogram{Count: 10, Min: 8, Max: 9, Mean: 9, Buckets: [][3]float64{{8, 10, 10}}}
	h := Join(nil, a, b, &Histogram{})
	if h.Count != 100 || h.Min != 1 || h.Max != 9 || h.Mean != 2.25 || h.P50 != 2 || h.P90 != 2 || h.P99 != 9 ||
		len(h.Buckets) != 2 {
		t.Errorf("%+v", h)
	}
	if Join(nil, &Histogram{}) != nil || Join(a) != a {
		t.Error("of none and of one")
	}
}

// Everything that the YAML can hold can be read.
func TestTheYAMLIsRead(t *testing.T) {
	p := Profile{
		Name: "x", Title: "a: title", HugePages: false, MemoryMB: 512,
		Ports: []Port{
			{Name: "a", Driver: "net_memif", Device: "/tmp/a.sock", Args: "id=0", MTU: 1600,
				Descriptors: 512, MAC: "02:00:00:00:00:01",
				Addresses: []string{"192.0.2.2", "fd00::2"}},
			{Name: "b", Driver: "net_memif", Device: "/tmp/b.sock", Args: "id=0"},
		},
		Streams: []Stream{
			{
				Name: "s", Port: "a", Sink: "b", Share: 1, Flows: 64, Order: "zipf", Zipf: 1, Seed: 3,
				Size: Sizes{82: 7, 594: 4}, CheckPayload: Pointer(8),
				Send: Stack{
					{Name: "ethernet", Fields: Fields{"source": "02:00:00:00:00:01",
						"destination": Count{Base: "02:01:00:00:00:00", Each: 4}}},
					{Name: "ipv6", Fields: Fields{"source": Count{Base: "2001:db8:1::7",
						Step: "0:0:0:1::", Count: 16}, "destination": "2001:db8::1"}},
					{Name: "udp", Fields: Fields{"source": 1, "destination": 2}},
				},
			},
			{
				Name: "ping", Port: "a", Sink: "b", Rate: PPS(1000), Size: Size(128),
				Expect: &Expect{Loss: Percent(1), Rate: "1000pps", Tolerance: "5%", P99us: 500},
				Send: Stack{
					{Name: "ethernet", Fields: Fields{"source": "02:00:00:00:00:01",
						"destination": "02:00:00:00:00:02"}},
					{Name: "ipv4", Fields: Fields{"source": "10.0.0.1", "destination": "10.0.0.2",
						"ttl": 63}},
					{Name: "icmp", Fields: Fields{"type": 8, "id": 7}},
				},
			},
			{
				Name: "pong", Port: "b", Sink: "a", Answers: "ping", Size: Size(128),
				Expect: &Expect{Loss: Percent(1)},
				Send: Stack{
					{Name: "ethernet", Fields: Fields{"source": "02:00:00:00:00:02",
						"destination": "02:00:00:00:00:01"}},
					{Name: "ipv4", Fields: Fields{"source": "10.0.0.2", "destination": "10.0.0.1"}},
					{Name: "icmp", Fields: Fields{"type": 0, "id": 7}},
				},
			},
		},
		Run: Plan{
			Mode: ModeSearch, Rate: PPS(1e5), Seconds: 0.5, Steps: []Rate{"50%", "100%"},
			Warmup: Pointer(0.1),
			Drain:  0.2, LinkWait: 3,
			Search: &Search{Min: "10kpps", Max: "1Mpps", Goals: []Goal{{Loss: "0"}, {Loss: Percent(1e-5)}},
				Exceed: "50%", Width: "1%", Initial: 0.1, Final: 0.2, Sum: 0.4, Confirm: Pointer(0.0)},
			Latency:   &Latency{At: []Part{"10%", "90%"}, Seconds: 0.5},
			Disturbed: &Disturbs{Repeats: 1, Steal: "0.1%"},
		},
		Capture: &Capture{File: "/tmp/x.pcap", Every: 10, Count: 5},
	}
	data, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("profile.yaml", data); err != nil {
		t.Error(err)
	}
}
