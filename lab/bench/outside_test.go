// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/lab/tester"
	"isthmus/lab/tester/office"
)

// The test binary plays isthmus-traffic-engine when this variable is set: it waits for an interrupt.
const actAs = "ISTHMUS_FAKE_ENGINE"

func TestMain(m *testing.M) {
	if os.Getenv(actAs) != "" {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, os.Interrupt)
		<-ended
		return
	}
	os.Exit(m.Run())
}

func TestADeviceThatEndsIsTold(t *testing.T) {
	t.Setenv(actAs, "waits")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := TesterProfile(everyProfile()[0])
	if err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	close(exited)
	end := End{Name: "thing", Exited: exited, Words: func() string { return "out of buffers" }}
	_, err = RunAgainst(t.Context(), end, p, TesterOptions{Engine: program})
	if err == nil || !strings.Contains(err.Error(), "thing ended while it was measured\nout of buffers") {
		t.Errorf("%v", err)
	}
}

// everyProfile are options for each profile that is measured from outside.
func everyProfile() []Options {
	var list []Options
	for _, profiles := range [][]Profile{Profiles, OutsideProfiles} {
		for _, p := range profiles {
			list = append(list, Options{Profile: p.Name, Subscribers: 1000, Workers: 1, Sessions: 100, Link: LinkMemif,
				Seconds: 1, Goal: 1e-5})
		}
	}
	return list
}

func wires(t *testing.T) (access, core *wire) {
	t.Helper()
	var err error
	if access, err = makeWire(t.Context(), LinkMemif, "/tmp", "a"); err != nil {
		t.Fatal(err)
	}
	if core, err = makeWire(t.Context(), LinkMemif, "/tmp", "c"); err != nil {
		t.Fatal(err)
	}
	return access, core
}

// The gateway's configurations are what `isthmus config check` takes, for one gateway and for the last of many.
func TestOutsideConfigurationsAreAccepted(t *testing.T) {
	access, core := wires(t)
	for _, opt := range everyProfile() {
		for _, first := range []int{0, 39 * 65536} {
			if first > 0 {
				opt.Subscribers = 65536
			}
			s, err := newScene(opt, first)
			if err != nil {
				t.Fatal(err)
			}
			plan, text, err := s.plan(access, core)
			if err != nil {
				t.Fatalf("%s: %v", opt.Profile, err)
			}
			sessions := 0
			for i := range plan.Objects {
				if plan.Objects[i].Kind == api.KindSession {
					sessions++
				}
			}
			if sessions != s.subscribers || !strings.Contains(string(text),
				"net_memif, device: '/tmp/a.sock', args: 'id=0,role=server'") {
				t.Errorf("%s: %d sessions", opt.Profile, sessions)
			}
		}
	}
}

// The relay that shows the floor is a configuration that is accepted too, with buffers for the scene's frames.
func TestRelayConfigurationsAreAccepted(t *testing.T) {
	access, core := wires(t)
	for _, opt := range everyProfile() {
		s, err := newScene(opt, 0)
		if err != nil {
			t.Fatal(err)
		}
		text := relayConfig(&opt, s, access, core)
		if _, err := plan.Make("relay", text); err != nil {
			t.Errorf("%s: %v\n%s", opt.Profile, err, text)
		}
		if large := strings.Contains(string(text), "buffer_size"); large != (s.mtu > usualMTU) {
			t.Errorf("%s:\n%s", opt.Profile, text)
		}
	}
}

// Every load of every profile is what the tester takes, and its engine where that is built.
func TestTesterProfilesAreAccepted(t *testing.T) {
	engine, unbuilt := exec.LookPath(filepath.Join(buildFolder(), "isthmus-traffic-engine"))
	access, core := wires(t)
	for _, opt := range everyProfile() {
		s, err := newScene(opt, 0)
		if err != nil {
			t.Fatal(err)
		}
		m := &outside{opt: opt}
		d := &device{scene: s, access: access, core: core}
		for i := range s.points {
			pt := &s.points[i]
			for k, streams := range [][]tester.Stream{append(slices.Clone(pt.streams), s.echo...), pt.up, pt.down} {
				if streams == nil {
					continue
				}
				p := s.profile(opt.Profile, &opt, ports([]*device{d}, &opt), streams)
				if p.Run = m.plan(searchFull); k > 0 {
					p.Run = m.plan(searchRough)
				}
				data, err := p.YAML()
				if err != nil {
					t.Fatal(err)
				}
				c, err := tester.Parse("profile.yaml", data)
				if err == nil && unbuilt == nil {
					err = office.Check(t.Context(), engine, c)
				}
				if err != nil {
					t.Errorf("%s, %s: %v", opt.Profile, pt.name, err)
				}
			}
		}
	}
}

// The tester's expected packets are built like the synth encoder's, which a test of its own compares with hand-written
// bytes.
func TestStreamsFollowTheLayout(t *testing.T) {
	s, err := newScene(Options{Profile: "agf-asymmetric", Subscribers: 1000, Workers: 1}, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.points) != 2 {
		t.Fatalf("%d readings of 89:11", len(s.points))
	}
	for i, want := range []int{31, 8} {
		pt := &s.points[i]
		if len(pt.streams) != 4 || len(pt.up) != 2 || len(pt.down) != 2 {
			t.Fatalf("%s: %d, %d, %d streams", pt.name, len(pt.streams), len(pt.up), len(pt.down))
		}
		for _, st := range pt.streams {
			share, size := pattern, 504
			if uplink(st.Port) {
				share, size = want, 128
			}
			if st.Share != share || st.Size[size] != 1 || st.Flows != 2000 {
				t.Errorf("%s: %+v", st.Name, st)
			}
		}
	}
	up := s.points[0].streams[1] // PPPoE, uplink
	text := func(s tester.Stack) string {
		p := tester.Profile{Streams: []tester.Stream{{Send: s}}}
		data, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, want := range []string{"02:01:00:00:09:f4", "base: 1000, each: 4096", "base: 10.64.9.244, each: 4",
		"pppoe: {session: {base: 1, each: 4}}", "base: 5000, count: 4"} {
		if !strings.Contains(text(up.Send), want) {
			t.Errorf("sent uplink lacks %q:\n%s", want, text(up.Send))
		}
	}
	for _, want := range []string{"teid: {base: 268438004, each: 4}", "type: uplink", "id: any",
		"destination: 198.51.100.1"} {
		if !strings.Contains(text(up.Receive), want) {
			t.Errorf("received uplink lacks %q:\n%s", want, text(up.Receive))
		}
	}
	if echo := s.echo; len(echo) != 2 || echo[1].Answers != echo[0].Name || echo[0].Expect == nil ||
		echo[1].Expect == nil {
		t.Errorf("echo streams: %+v", echo)
	}
}

func TestSmallFramesHaveNoIPv6(t *testing.T) {
	if p := routerPoint(64); len(p.streams) != 2 || p.note == "" {
		t.Errorf("64 B: %d streams, %q", len(p.streams), p.note)
	}
	if p := routerPoint(128); len(p.streams) != 4 || p.note != "" {
		t.Errorf("128 B: %d streams, %q", len(p.streams), p.note)
	}
	imix := routerPoint(0)
	if len(imix.streams) != 4 || imix.streams[0].Size[64] != 7 || imix.streams[1].Size[leastIPv6] != 7 ||
		imix.streams[1].Size[1518] != 1 {
		t.Errorf("IMIX: %+v", imix.streams)
	}
}

func TestImpossibleSizes(t *testing.T) {
	for _, test := range []struct {
		profile string
		size    int
	}{{"rfc2544", 63}, {"rfc2544", 1519}, {"jumbo", 1518}, {"jumbo", 20000}} {
		if _, err := newScene(Options{Profile: test.profile, Size: test.size, Workers: 1, Subscribers: 2},
			0); err == nil {
			t.Errorf("%+v was taken", test)
		}
	}
	if _, err := newScene(Options{Profile: "nothing"}, 0); err == nil || !strings.Contains(err.Error(), "jumbo") {
		t.Errorf("unknown profile: %v", err)
	}
}

func TestAccounting(t *testing.T) {
	r := &tester.Result{Trials: []tester.Trial{
		{Purpose: tester.PurposeWarmup, Sent: 100, Received: 100, Lost: 0, Control: 2},
		{Purpose: tester.PurposeSearch, Sent: 1000, Received: 900, Lost: 100, Stray: 3,
			Streams: []tester.StreamTrial{{Refused: 60}, {Refused: 5}}},
	}}
	a, b := newCounters(), newCounters()
	a.drops["port-tx-full"], b.drops["port-tx-full"] = 7, 37
	b.total.In, b.total.Out = 1035, 1000
	got := account(r, a, b)
	if got.Sent != 1100 || got.Received != 1000 || got.Refused != 65 || got.Dropped["port-tx-full"] != 30 ||
		got.Missing != 2 || got.Late != 3 || got.In != 1035 || got.Other != 2 {
		t.Errorf("%+v", got)
	}
	got.add(got)
	if got.Missing != 4 || got.Dropped["port-tx-full"] != 60 {
		t.Errorf("twice: %+v", got)
	}
}

func TestHeadlineIsTheConfirmedRate(t *testing.T) {
	search := func(rate float64, found bool) *tester.SearchResult {
		return &tester.SearchResult{Goals: []tester.GoalResult{
			{Loss: 0, RatePPS: 5, Outcome: tester.Outcome{Found: true}},
			{Loss: 1e-5, RatePPS: rate, Outcome: tester.Outcome{Found: found}}}}
	}
	trial := func(purpose string, rate float64, used bool) tester.Trial {
		return tester.Trial{Purpose: purpose, RatePPS: rate, Used: used}
	}
	trials := []tester.Trial{
		trial(tester.PurposeSearch, 10, true), trial(tester.PurposeConfirm, 10, false),
		trial(tester.PurposeConfirm, 10, true),
		trial(tester.PurposeConfirm, 5, true), trial(tester.PurposeLatency, 1, true),
	}
	for _, test := range []struct {
		name string
		r    tester.Result
		want int
	}{
		{"confirmed", tester.Result{Search: search(10, true), Trials: trials}, 2},
		{"not confirmed", tester.Result{Search: search(10, true), Trials: trials[:1]}, 0},
		{"not found", tester.Result{Search: search(10, false), Trials: trials}, -1},
		{"another rate", tester.Result{Search: search(20, true), Trials: trials}, -1},
		{"fixed", tester.Result{Trials: []tester.Trial{trial(tester.PurposeWarmup, 1, true),
			trial(tester.PurposeFixed, 10, true)}}, 1},
	} {
		if got := headline(&test.r); got != test.want {
			t.Errorf("%s: trial %d, want %d", test.name, got, test.want)
		}
	}
}

func TestLinkVerdict(t *testing.T) {
	tooMuch := 2e-5
	good := func() *LinkResult {
		return &LinkResult{Goal: 1e-5, Points: []Point{{Name: "p", Proof: Proof{Checked: 5}, Complete: true,
			Rates: []Rate{{Outcome: tester.Outcome{Found: true, Confirmed: true}}}}}}
	}
	for _, test := range []struct {
		name   string
		change func(*LinkResult)
		want   string
	}{
		{"good", func(*LinkResult) {}, ""},
		{"wrong", func(r *LinkResult) { r.Wrong, r.WrongFrame = 1, "at gtpu.teid" }, "gtpu.teid"},
		{"twice", func(r *LinkResult) { r.Points[0].Duplicate = 3 }, "twice"},
		{"silent", func(r *LinkResult) { r.Points[0].Checked = 0 }, "no packet came through"},
		{"no rate", func(r *LinkResult) {
			r.Points[0].Rates[0] = Rate{Outcome: tester.Outcome{Reason: "all lost"}}
		}, "all lost"},
		{"not confirmed", func(r *LinkResult) { r.Points[0].Rates[0].Confirmed = false }, "did not hold"},
		{"not complete", func(r *LinkResult) { r.Points[0].Complete = false }, "not complete"},
		{"interrupted", func(r *LinkResult) { r.Points[0].Complete, r.Interrupted = false, true }, "interrupted"},
		{"fixed, lost", func(r *LinkResult) { r.FixedRate, r.Points[0].LossRatio = 1000, &tooMuch },
			"above the target"},
		{"fixed, good", func(r *LinkResult) { r.FixedRate, r.Points[0].Rates = 1000, nil }, ""},
		{"limited by the tester is a mark, no failure", func(r *LinkResult) { r.TesterLimited = true }, ""},
	} {
		r := good()
		test.change(r)
		err := r.Verdict()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

func TestTheTesterMustBeShownFaster(t *testing.T) {
	for _, test := range []struct {
		mpps    float64
		limited bool
	}{{0, true}, {1.29, true}, {1.31, false}} {
		p, b := Point{Cost: Cost{Mpps: 1}}, TesterBlock{}
		b.judge(test.mpps, &p)
		if b.Limited != test.limited || float64(b.Ratio) != test.mpps {
			t.Errorf("%g Mpps: %+v", test.mpps, b)
		}
	}
}

func TestPossibleInstances(t *testing.T) {
	if fit, missing := possible(2, 1, []int{0, 1, 2, 3}); fit != 2 || missing != "" {
		t.Errorf("%d, %q", fit, missing)
	}
	fit, missing := possible(3, 2, []int{0, 1, 2, 3})
	if fit != 1 || !strings.Contains(missing,
		"3 instances need 9 CPUs (6 for workers, 3 for the tester's threads); we may use 4 (0, 1, 2, 3), so 5 are "+
			"missing") {
		t.Errorf("%d, %q", fit, missing)
	}
}

// An unmeasured instance has no speed.
func TestUnmeasuredInstancesHaveNoSpeed(t *testing.T) {
	streams := []tester.StreamTrial{
		{Name: "0-qinq-up", Sent: 10, Received: 9, Lost: 1, ReceivedPPS: 1000},
		{Name: "1-qinq-up", Sent: 5, Received: 5, ReceivedPPS: 1000},
	}
	p := Point{Cost: Cost{Mpps: 3, TicksPerPacket: 200}, GbpsL2: 1,
		Raw: &tester.Result{Trials: []tester.Trial{{Purpose: tester.PurposeFixed, Used: true, Streams: streams}}}}
	n := Instances{Wanted: 2}
	n.fill(&Options{}, &p)
	if p.Mpps != 0 || p.GbpsL2 != 0 || p.TicksPerPacket != 0 || n.SumMpps != 0 || n.Scaling != 0 {
		t.Errorf("%+v", n)
	}
	if len(n.Each) != 2 || n.Each[0].Lost != 1 || n.Each[1].Received != 5 || n.Each[0].Mpps != 0 || n.failed != "" {
		t.Errorf("%+v", n)
	}
	n = Instances{Wanted: 3}
	if n.fill(&Options{}, &p); n.failed == "" {
		t.Error("an instance without packets is a failure")
	}
}

func TestPlacement(t *testing.T) {
	cpus := allowedCPUs()
	if len(cpus) < 2 {
		t.Skip("one CPU")
	}
	worker, threads, control, err := Placement("", "", "", 1, 1)
	if err != nil || !slices.Equal(worker, cpus[len(cpus)-1:]) || !slices.Equal(threads, cpus[:1]) ||
		slices.Contains(control, worker[0]) {
		t.Errorf("%v %v %v %v", worker, threads, control, err)
	}
	worker, threads, control, err = Placement("", "", "", 5000, 5000)
	if err != nil || worker != nil || threads != nil || control != nil {
		t.Errorf("too many: %v %v %v %v", worker, threads, control, err)
	}
	if _, _, _, err = Placement("1,2", "", "", 1, 1); err == nil {
		t.Error("two CPUs for one worker")
	}
	if _, _, _, err = Placement("none", "0,1", "", 1, 1); err == nil {
		t.Error("two CPUs for one thread")
	}
}

// buildFolder is where the programs are: ./dev test names it.
func buildFolder() string {
	if folder := os.Getenv("BUILD"); folder != "" {
		return folder
	}
	return "../../build"
}
