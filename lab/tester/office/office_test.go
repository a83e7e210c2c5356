// SPDX-License-Identifier: Apache-2.0

package office

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
	"isthmus/lab/tester"
	"isthmus/lab/tester/mlrsearch"
	"isthmus/traffic/job"
)

func TestFixed(t *testing.T) {
	b := newBench(t, profile(aFixed)).run()
	b.is(Good, "good")
	testkit.Equal(t, b.purposes(), "warmup 100000, fixed 1e+06, latency 100000, latency 900000", "trials")
	b.true(b.r.Trials[0].AskedSeconds == 0.2 && b.r.Trials[1].AskedSeconds == 10, "seconds")
	b.true(b.r.Trials[3].Part == 0.9 && *b.r.Reference == tester.Reference{RatePPS: 1e6, Goal: -1}, "parts")
	b.true(mainTrial(&b.r) == &b.r.Trials[1], "the main trial")

	// Bits per second are those of all streams with a share, by their mean size: 200 bytes.
	b = newBench(t, profile("mode: fixed, rate: 1.6Gbit")).run()
	b.true(b.r.Trials[1].RatePPS == 1e6, "a rate in bits")

	b = newBench(t, profile("mode: fixed, rate: 3.1Mpps")).run()
	b.is(NotGood, "")
	b.true(b.r.Complete && strings.Contains(b.r.Verdict, "packets were lost"), b.r.Verdict)

	// As fast as possible: latency refers to what arrived.
	b = newBench(t, profile("mode: fixed, rate: max")).run()
	b.is(NotGood, "")
	b.true(math.IsInf(b.r.Trials[1].RatePPS, 1) && math.Abs(b.r.Reference.RatePPS-3e6) < 10 &&
		math.Abs(b.r.Trials[2].RatePPS-3e5) < 1, b.purposes())

	// No loss, but no good result either.
	b = newBench(t, profile(aFixed))
	b.m.wrong = 1e-4
	b.run().is(NotGood, "")
	b.true(b.r.Complete && b.r.Trials[1].Lost == 0 && strings.Contains(b.r.Verdict, "wrong contents"), b.r.Verdict)
}

func TestDisturbedTrialsAreRepeated(t *testing.T) {
	for _, c := range []struct {
		from, to        int
		loss            float64
		status          int
		discarded, used int
	}{{2, 3, 0.1, Good, 2, 1}, {1, 100, 0, Good, 0, 1}, {2, 100, 0.1, NotGood, 3, 1}} {
		b := newBench(t, profile(aFixed))
		b.m.disturbFrom, b.m.disturbTo, b.m.disturbLoss = c.from, c.to, c.loss
		b.run().is(c.status, "")
		testkit.Equal(t, b.count(tester.PurposeFixed, false), c.discarded, "discarded")
		testkit.Equal(t, b.count(tester.PurposeFixed, true), c.used, "used")
		if c.status != Good { // after three repetitions a trial counts, with its mark
			testkit.Equal(t, strings.Join(mainTrial(&b.r).Disturbed, " "), "steal", "the mark")
		}
	}

	// A tester that falls behind at a rate that it has managed before is no limit.
	b := newBench(t, profile("mode: search, search: {max: 10Mpps, goals: [{loss: 0}, {loss: 1%}]}"))
	b.m.late = 4
	b.run().is(Good, "good")
	b.true(b.count(tester.PurposeSearch, false) == 1 && !b.r.Search.Goals[0].TesterLimited, "hindered")

	// All trials of the search are disturbed and lose: the number of trials stays bounded.
	b = newBench(t, profile(aSearch))
	b.m.disturbFrom, b.m.disturbTo, b.m.disturbLoss = 2, math.MaxInt, 0.05
	b.run().is(NotGood, "")
	discarded := b.count(tester.PurposeSearch, false) + b.count(tester.PurposeMaximum, false) +
		b.count(tester.PurposeConfirm, false)
	b.true(discarded > 10 && discarded <= mostDiscards && b.r.Search.Goals[0].Disturbed &&
		len(b.r.Trials) < mostDiscards+mlrsearch.Trials, "bounded")
}

func (b *bench) found(goal int, limit float64) {
	b.t.Helper()
	g := &b.r.Search.Goals[goal]
	b.true(g.Found && g.Confirmed && g.RatePPS <= limit*(1+1e-6) && g.UpperPPS >= limit*(1-1e-6) &&
		(g.UpperPPS-g.RatePPS)/g.UpperPPS <= 0.005*(1+1e-6), "found")
}

func TestSearch(t *testing.T) {
	b := newBench(t, profile(aSearch)).run()
	b.is(Good, "good")
	b.found(0, 3e6)
	b.found(1, 3e6/0.99)
	// The maximum was not given, so it was measured; the warm-up knew none.
	b.true(b.r.Trials[1].Purpose == tester.PurposeMaximum && math.IsInf(b.r.Trials[1].RatePPS, 1), b.purposes())
	b.true(b.r.MaximumPPS == 20e6 && b.r.Search.Max == 26e6 && b.r.Search.Min == 1000, "limits")
	b.true(b.r.Trials[0].RatePPS == 1e4, "warm-up")
	// Latency at parts of the loosest goal's rate.
	b.true(*b.r.Reference == tester.Reference{RatePPS: b.r.Search.Goals[1].RatePPS, Goal: 1}, "the reference")
	b.true(b.count(tester.PurposeLatency, true) == 2 && b.m.longest == 2 && b.m.shortest == 0.2 &&
		len(b.r.Trials) < 50 && mainTrial(&b.r).Purpose == tester.PurposeConfirm, b.purposes())
}

func TestConfirmation(t *testing.T) {
	// In the longer trials for confirmation the gateway forwards only 98 %: the search continues below.
	b := newBench(t, profile(aSearch))
	b.m.weakSeconds, b.m.weak = 2, 0.98
	b.run().is(Good, "good")
	confirms := b.count(tester.PurposeConfirm, true)
	g := &b.r.Search.Goals[0]
	b.true(confirms > 2 && confirms <= mostConfirms && g.Confirmed && g.RatePPS <= 3e6*0.98 &&
		g.RatePPS >= 3e6*0.98*0.985, "below")

	// When nothing holds, that is the result, after a bounded number of trials.
	b = newBench(t, profile(aSearch))
	b.m.weakSeconds, b.m.weak = 2, 1e-6
	b.run()
	confirms = b.count(tester.PurposeConfirm, true)
	b.true(b.r.Status != Good && !b.r.Search.Goals[0].Confirmed && confirms > 1 && confirms <= mostConfirms &&
		len(b.r.Trials) < mlrsearch.Trials+mostConfirms+10, "nothing holds")

	b = newBench(t, profile("mode: search, search: {confirm: 0}")).run()
	b.is(Good, "good")
	b.true(b.count(tester.PurposeConfirm, true) == 0 && !b.r.Search.Goals[0].Confirmed, "no confirmation")
}

func TestSearchAtTheTestersLimit(t *testing.T) {
	b := newBench(t, profile(aSearch))
	b.m.limit = 30e6
	b.run().is(Good, "good, but what limits is the tester")
	g := &b.r.Search.Goals[0]
	b.true(g.TesterLimited && g.RatePPS > 19e6 && g.RatePPS <= 20e6/0.995, "the tester's")

	// A maximum that the profile gives is no limit of the tester.
	b = newBench(t, profile("mode: search, search: {max: 10Mpps}"))
	b.m.limit = 30e6
	g = &b.run().r.Search.Goals[0]
	b.true(g.AtMaximum && !g.TesterLimited && b.r.Trials[0].RatePPS == 1e6 && b.r.MaximumPPS == 0, "given")

	b = newBench(t, profile("mode: search, search: {min: 4Mpps}")).run()
	b.is(NotGood, "no rate has a loss of at most 0 %")
	b.true(b.r.Complete && b.count(tester.PurposeLatency, true) == 0, "nothing found")
	newBench(t, profile("mode: search, search: {min: 30Mpps}")).run().is(Incomplete, "the search has no room")

	b = newBench(t, profile("mode: search, warmup: 0"))
	b.m.tester = 0
	b.run().is(Incomplete, "the ports took no packet at all when as many as possible were sent")
}

func TestWrongGatewayEndsASearch(t *testing.T) {
	b := newBench(t, profile(aSearch))
	b.m.wrong = 0.25
	b.run().is(Incomplete,
		"25 % of the packets that arrived are wrong, in two trials one after the other: the gateway "+
			"does not do what the profile expects; the first of stream \"up\": header, byte 46 (gtpu.teid), flow 17")
	testkit.Equal(t, b.m.trials, 2, "trials")

	// Half a per cent does not stop the search, but spoils the verdict.
	b = newBench(t, profile(aSearch))
	b.m.wrong = 0.005
	b.run().is(NotGood, "")
	b.found(0, 3e6)
}

func TestSteps(t *testing.T) {
	text := strings.Replace(profile("mode: steps, rate: 1Mpps, steps: [50%, 120%, 4Mpps]"), "p99_us: 25",
		"p99_us: 25, tolerance: 30%", 1) // the model drops of all streams alike
	b := newBench(t, text).run()
	b.is(Good, "good") // the last one loses, which steps are for
	b.true(b.r.Trials[1].RatePPS == 0.5e6 && b.r.Trials[1].Part == 0.5 && b.r.Trials[2].RatePPS == 1.2e6 &&
		b.r.Trials[3].RatePPS == 4e6 && b.r.Trials[3].Lost > 0 && len(b.r.Trials) == 4, b.purposes())

	// Parts of what the tester offers at most.
	b = newBench(t, profile("mode: steps, rate: max, steps: [10%]")).run()
	b.true(b.r.Trials[1].Purpose == tester.PurposeMaximum && b.r.Trials[2].RatePPS == 2e6, b.purposes())
}

func TestNothingArrives(t *testing.T) {
	b := newBench(t, profile(aSearch))
	b.m.dead = 2
	b.run().is(Incomplete,
		"stream \"down\": nothing arrives: 5000 packets were sent at port \"core\" in 2.0 s, none "+
			"came to port \"access\"; the links are up: look at the gateway's drops, addresses and sessions")
	b.true(b.m.trials == 2 && b.m.longest == 2, b.purposes())

	// It comes to life while addresses are resolved.
	b = newBench(t, profile(aSearch))
	b.m.dead, b.m.deadTrials = 7, 1
	b.run().is(Good, "good")
	testkit.Equal(t, b.count(tester.PurposeWarmup, true), 2, "warm-ups")

	b = newBench(t, profile("mode: fixed, rate: 1Mpps, warmup: 0, seconds: 1")) // the first trial shows it
	b.m.dead, b.m.otherPort, b.m.foreign = 7, true, 12
	b.run().is(Incomplete, "")
	for _, want := range []string{"arrived at another port than \"core\"", "12 frames came that are nobody's",
		"2 more streams are silent"} {
		b.true(strings.Contains(b.r.Verdict, want), b.r.Verdict)
	}

	b = newBench(t, profile(aFixed))
	b.m.dead, b.m.refuses = 1, true
	b.run().is(Incomplete, "")
	b.true(strings.Contains(b.r.Verdict, "nobody reads at the other end of \"access\""), b.r.Verdict)

	// A stream that must not come through is not missed.
	b = newBench(t, strings.Replace(profile(aFixed), "{rate: 3856kbit, layer: l3, p99_us: 25}", "{loss: 100%}", 1))
	b.m.dead = 4
	b.run().is(Good, "good")
}

func TestInterrupted(t *testing.T) {
	for stop := 1; stop < 18; stop++ {
		run, at := aSearch, stop
		if stop%2 == 0 {
			run, at = aFixed, stop%8/2+1
		}
		b := newBench(t, profile(run))
		b.m.stopAt = at
		b.run().is(Incomplete, "interrupted")
		// The last trial's measurements are there, but do not count.
		last := &b.r.Trials[len(b.r.Trials)-1]
		b.true(b.r.Interrupted && !b.r.Complete && len(b.r.Trials) == at && !last.Used && last.Sent > 0,
			b.purposes())
		if stop == 17 {
			b.true(b.r.Search.Goals[0].Found && b.r.Search.Goals[0].RatePPS <= 3e6*(1+1e-6), "so far")
		}
	}
}

func TestLinkGoesDown(t *testing.T) {
	b := newBench(t, profile(aSearch))
	b.m.failAt = 5
	Run(b.m.p, &b.m, nil, &b.r)
	Judge(b.m.p, &b.r)
	b.is(Incomplete, "the link went down: core")
	testkit.Equal(t, len(b.r.Trials), 4, "trials")
}

func TestExpectations(t *testing.T) {
	b := newBench(t, profile(aFixed)).run()
	p, e := b.m.p, b.m.p.Streams[2].Expect
	b.true(judged(p, 2, tester.PurposeLatency) && !judged(p, 2, tester.PurposeSearch) &&
		!judged(p, 0, tester.PurposeFixed), "what is judged")
	main := mainTrial(&b.r)
	says := func(want string) {
		t.Helper()
		got := broken(p, 2, main)
		testkit.ErrorIf(t, (want == "") != (got == "") || !strings.Contains(got, want), "%s", got)
	}
	// 1,000 packets of 482 bytes per second are within 1 % of what is expected, and 1.1 % more are not.
	e.Rate = "3894.946kbit"
	says("")
	e.Rate = "3898.84kbit"
	says("stream \"policed\": received 3.856 Mbit/s (layer 3), expected 3.89884 Mbit/s within 1 %")
	Judge(p, &b.r)
	b.is(NotGood, "stream \"policed\": received 3.856 Mbit/s (layer 3)")
	e.Rate, e.Tolerance = "1kpps", "0"
	says("")
	e.Rate = "50%"
	says("received 100 % of what was sent, expected 50 %")
	e.Rate, e.P99us = "", 19 // the latencies of the model are 10 to 20 us
	says("expected 19 us")
	e.P99us, e.Loss = 21, "0"
	says("")
	main.Streams[2].Lost = 1
	says("stream \"policed\": lost 0.01 % (1 of 10000), expected at most 0 %")
}

// The report of a search, and that of a better and a worse result.
func TestText(t *testing.T) {
	b := newBench(t, strings.Replace(profile(aSearch), "name: test", "name: test\ntitle: two ways", 1)).run()
	b.r.Seconds = 12.5
	print := func() string {
		var text strings.Builder
		Print(&text, b.m.p, &b.r)
		return text.String()
	}
	says := func(text string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			testkit.ErrorIf(t, !strings.Contains(text, want), "no %q in\n%s", want, text)
		}
	}
	b.r.Search.Goals[0].RatePPS, b.r.Search.Goals[0].UpperPPS = 2e6, 2.01e6
	says(print(), "test, two ways: 3 streams, 200 B on average, ", " trials in 12.5 s\n",
		"loss <= 0 %         2.0000 Mpps     3.200 Gb/s L2     3.520 Gb/s L1  not 2.0100  confirmed\n",
		"the tester itself offers up to 20.0000 Mpps at these ports, ", "\nconfirm, ",
		" Mpps for 2 s; tester 0 ticks a packet, clock 0.00 GHz\n", "LOAD, MPPS", "\n10 % ",
		"parts of the rate for loss <= 1 %, ", "expectation held in ", "\ngood\n")

	g, main := &b.r.Search.Goals[0], mainTrial(&b.r)
	b.r.MaximumPPS, g.TesterLimited, g.Confirmed = 3e6, true, false
	main.Wrong, main.Disturbed = 3, []string{"steal"}
	main.Streams[0].WrongFrames = []tester.WrongFrame{{Kind: "header", Where: "gtpu.teid", Offset: 2, Length: 476,
		Flow: 17, Frame: "0102ff", Expected: "010200"}}
	b.r.Trials[1].Used, b.r.Trials[1].Disturbed = false, []string{"steal", "gap", "missed"}
	Judge(b.m.p, &b.r)
	says(print(), "stream up, flow 17: wrong header at byte 2 (gtpu.teid) of 476\n", "arrived   0102ff\n",
		"expected  010200\n                  ^^\n", "too little to be sure",
		"LIMITED BY THE TESTER  NOT CONFIRMED\n",
		"1 disturbed trials were discarded and repeated: stolen time 1, context switches 0, pauses 1, "+
			"missed frames 1, "+
			"CPUs far apart 0, tester fell behind 0\n", "1 trials count though they were disturbed",
		"NOT GOOD: 3 packets arrived with wrong contents\n")

	// A run that did not even begin.
	b.r = tester.Result{Error: "no link"}
	Judge(b.m.p, &b.r)
	testkit.Equal(t, print(),
		"test, two ways: 3 streams, 200 B on average, 0 trials in 0.0 s\nNOT COMPLETE: no link\n", "the text")
}

func TestVerdict(t *testing.T) {
	b := newBench(t, profile(aSearch)).run()
	r := &b.r
	is := func(status int, verdict string) {
		t.Helper()
		Judge(b.m.p, r)
		b.is(status, verdict)
	}
	loose := &r.Search.Goals[1]
	loose.Disturbed = true
	is(Good, "good, but the machine disturbed the trials")
	loose.TesterLimited = true
	is(Good, "good, but what limits is the tester: the gateway may do more")
	loose.Disturbed, loose.TesterLimited = false, false
	// Not even a trial that was discarded may have wrong contents.
	r.Trials[1].Used, r.Trials[1].Wrong = false, 1
	is(NotGood, "1 packets arrived with wrong contents")
	r.Trials[1].Wrong, r.Trials[2].Duplicate = 0, 2
	is(NotGood, "2 packets arrived twice")
	r.Trials[2].Duplicate, loose.Confirmed = 0, false
	is(NotGood, "the rate for a loss of at most 1 % did not hold in a trial of 2 s")
	*b.m.p.Run.Search.Confirm = 0
	is(Good, "good")
	loose.Found = false
	is(NotGood, "no rate has a loss of at most 1 %: ")
	loose.Found = true

	// A good result names its limits.
	b = newBench(t, profile(aFixed)).run()
	r = &b.r
	r.Trials[1].TesterLimited = true
	is(Good, "good, but the tester offered less than what was asked for")
	r.Trials[1].Stale = 1
	is(Good, "good, but packets came so late that they may have come twice")
	// A repeated trial does not count for expectations.
	b.m.p.Streams[2].Expect.Loss, r.Trials[1].Streams[2].Lost = "0", 1
	is(NotGood, "stream \"policed\": lost")
	r.Trials[1].Used = false
	is(Good, "good")
	r.Complete = false
	is(Incomplete, "not complete")
}

func TestJSON(t *testing.T) {
	b := newBench(t, profile(aSearch)).run()
	file := filepath.Join(t.TempDir(), "result.json")
	testkit.Must(t, WriteJSON(file, &b.r))
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	r := &tester.Result{}
	testkit.Must(t, json.Unmarshal(text, r))
	testkit.Equal(t, len(r.Trials), len(b.r.Trials), "trials")
	var plain struct{ Trials []map[string]any }
	testkit.Must(t, json.Unmarshal(text, &plain))
	rate, has := plain.Trials[1]["rate_pps"]
	testkit.ErrorIf(t, !has || rate != nil, "a rate without limit is %v", rate)
	for i := range r.Trials {
		one := &r.Trials[i]
		drawn := one.Purpose == tester.PurposeConfirm || one.Purpose == tester.PurposeLatency
		testkit.ErrorIf(t, (len(one.Latency.Buckets) > 0) != drawn || one.Latency.Count == 0, "%s: %d buckets",
			one.Purpose, len(one.Latency.Buckets))
		said := one.Streams[2].Expectation
		testkit.ErrorIf(t, (said == "held") != (drawn && counts(r, one)) || one.Streams[0].Expectation != "",
			"%s: expectation %q", one.Purpose, said)
	}
	err = WriteJSON("/nonexistent/result.json", &b.r)
	testkit.Refused(t, err, "no such file")
}

func TestEvents(t *testing.T) {
	var text strings.Builder
	testkit.Must(t, Event(&text, &tester.Trial{Purpose: "maximum", RatePPS: math.Inf(1), AskedSeconds: 0.5}, false))
	testkit.Equal(t, text.String(),
		`{"event":"begin","purpose":"maximum","rate_pps":null,"asked_seconds":0.5}`+"\n", "begin")
	b := newBench(t, profile(aFixed)).run()
	text.Reset()
	testkit.Must(t, Event(&text, &b.r.Trials[1], true))
	// One line, with all of a trial but its histograms.
	testkit.Equal(t, strings.Count(text.String(), "\n"), 1, "lines")
	var e struct {
		Event string
		tester.Trial
	}
	testkit.Must(t, json.Unmarshal([]byte(text.String()), &e))
	testkit.ErrorIf(t, e.Event != "end" || e.Purpose != "fixed" || e.Latency.Count != 3000 ||
		e.Latency.Buckets != nil || len(e.Streams) != 3 || e.Streams[0].Latency.Buckets != nil, "%s", &text)
}

// The engine's ticks, in microseconds: 1 to 100, without the round trip of a stream that answers. Buckets are 1/32
// wide.
func TestLatencies(t *testing.T) {
	text := strings.Replace(profile("mode: fixed, rate: 1kpps"), "rate: 1kpps, size: 500", "answers: up, size: 500",
		1)
	text = strings.Replace(text, ",\n   expect: {rate: 3856kbit, layer: l3, p99_us: 25}", "", 1)
	text = strings.Replace(text, "policed, port: access, sink: core", "policed, port: core, sink: access", 1)
	b := newBench(t, text)
	b.m.e.ready.TSCHz = 2e9
	counts := make([]job.StreamCount, 3)
	for ticks := uint64(2000); ticks <= 200000; ticks += 2000 {
		h := &counts[0].Latency
		h.Bucket[bucketOf(ticks)]++
		h.Count, h.Sum, h.Min, h.Max = h.Count+1, h.Sum+ticks, 2000, ticks
	}
	counts[2].Latency = job.Histogram{Count: 1, Sum: 4e6, Min: 4e6, Max: 4e6}
	counts[2].Latency.Bucket[bucketOf(4e6)] = 1
	h := b.m.e.result(&job.Trial{Seconds: 1}, counts).Latency
	testkit.ErrorIf(t, h.Count != 100 || h.Min != 1 || h.Max != 100 || math.Abs(h.Mean-50.5) > 1e-9 || h.P50 < 50 ||
		h.P50 > 51.6 || h.P99 < 99 || h.P999 != 100, "%+v", h)
	sum := 0.0
	for _, bucket := range h.Buckets {
		testkit.ErrorIf(t, bucket[0] > bucket[1], "%v", bucket)
		sum += bucket[2]
	}
	testkit.Equal(t, sum, 100, "packets in buckets")
	for i := range job.Buckets - 1 { // without gap or overlap
		testkit.ErrorIf(t, highest(nil, i)+1 != lowest(i+1), "bucket %d", i)
	}
}
