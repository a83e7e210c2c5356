// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The test binary acts as isthmus-traffic in the way of this variable.
const actAs = "ISTHMUS_FAKE_TESTER"

func TestMain(m *testing.M) {
	if how := os.Getenv(actAs); how != "" {
		os.Exit(fake(how, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fake behaves as isthmus-traffic does, or as it does when something is wrong.
func fake(how string, args []string) int {
	file := ""
	for i := range args {
		if args[i] == "--json" {
			file = args[i+1]
		}
	}
	write := func(complete, interrupted bool) {
		fmt.Fprintf(os.Stderr, "wrote the result\n")
		r := Result{Profile: "fake", Complete: complete, Interrupted: interrupted, Command: args,
			Trials: []Trial{{Purpose: PurposeFixed, Used: true}}}
		if !complete && !interrupted {
			r.Error = "port access has no link"
		}
		data, _ := json.Marshal(r)
		os.WriteFile(file, data, 0o644)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	fmt.Println("a driver prints what it likes")
	fmt.Println(`{"event":"ready"}`)
	fmt.Println(`{"event":"begin","purpose":"fixed","rate_pps":1000,"asked_seconds":0.01}`)
	if line := make([]byte, 1); how != "dies" {
		if n, _ := os.Stdin.Read(line); n != 1 {
			return 3 // the trial was never released
		}
	}
	switch how {
	case "waits":
		<-interrupted
		write(false, true)
		return 130
	case "stuck":
		signal.Ignore(os.Interrupt)
		select {}
	case "dies":
		fmt.Fprintln(os.Stderr, "EAL: Cannot get hugepage information.")
		return 2
	case "no link":
		write(false, false)
		return 2
	}
	fmt.Println(`{"event":"end","purpose":"fixed","rate_pps":1000,"sent":10,"received":9,"lost":1,"loss_ratio":0.1}`)
	fmt.Println(`{"event":"done","complete":true,"status":1}`)
	write(true, false)
	return 1
}

// play runs the fake tester.
func play(t *testing.T, ctx context.Context, how string, opt Options) (*Result, error) {
	t.Helper()
	t.Setenv(actAs, how)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opt.Binary = self
	return Run(ctx, &Profile{Name: "fake", Run: Plan{Mode: ModeFixed}}, opt)
}

func TestEventsAndResultArrive(t *testing.T) {
	var events []Event
	dir := t.TempDir()
	r, err := play(t, t.Context(), "good", Options{Dir: dir, Event: func(e Event) { events = append(events, e) }})
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, e := range events {
		names += e.Event + " "
	}
	if names != "ready begin end done " {
		t.Fatalf("events %q", names)
	}
	if e := events[1]; e.Purpose != PurposeFixed || e.RatePPS != 1000 || e.AskedSeconds != 0.01 {
		t.Errorf("begin: %+v", e)
	}
	if e := events[2]; e.Sent != 10 || e.Lost != 1 || e.LossRatio != 0.1 {
		t.Errorf("end: %+v", e)
	}
	if e := events[3]; !e.Complete || e.Status != 1 {
		t.Errorf("done: %+v", e)
	}
	if !r.Complete || r.Status != 1 || len(r.Trials) != 1 || !strings.Contains(r.Words, "wrote the result") {
		t.Errorf("result %+v", r)
	}
	want := fmt.Sprintf("--events --paced --json %[1]s/result.json %[1]s/profile.yaml", dir)
	if got := strings.Join(r.Command, " "); got != want {
		t.Errorf("command %q", got)
	}
}

func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := play(t, ctx, "waits", Options{Event: func(e Event) {
		if e.Event == EventBegin {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Complete || r.Status != 130 || len(r.Trials) != 1 {
		t.Errorf("result %+v", r)
	}
}

func TestErrorsCarryTheLastWords(t *testing.T) {
	for _, test := range []struct {
		how, want string
		result    bool
	}{
		{"dies", "Cannot get hugepage information", false},
		{"no link", "port access has no link", true},
	} {
		r, err := play(t, t.Context(), test.how, Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) || (r != nil) != test.result {
			t.Errorf("%s: %v, result %v", test.how, err, r)
		}
	}
}

func TestAnOldResultIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	if _, err := play(t, t.Context(), "good", Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if r, err := play(t, t.Context(), "dies", Options{Dir: dir}); err == nil || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestASilentTesterIsEnded(t *testing.T) {
	begin := time.Now()
	_, err := play(t, t.Context(), "stuck", Options{Patience: 100 * time.Millisecond})
	if !errors.Is(err, ErrStuck) {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

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

// Everything that the YAML can hold is what isthmus-traffic reads.
func TestCheckAcceptsTheYAML(t *testing.T) {
	program, err := exec.LookPath(filepath.Join(buildFolder(), "isthmus-traffic"))
	if err != nil {
		t.Skip("isthmus-traffic is not built")
	}
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
	file := filepath.Join(t.TempDir(), "profile.yaml")
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), program, file); err != nil {
		t.Error(err)
	}
}

// buildFolder is where the programs are: ./dev test names it.
func buildFolder() string {
	if folder := os.Getenv("BUILD"); folder != "" {
		return folder
	}
	return "../../build"
}
