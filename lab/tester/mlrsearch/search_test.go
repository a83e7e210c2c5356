// SPDX-License-Identifier: Apache-2.0

// The search against RFC 9971's own example, and against models of gateways whose limit is known.
package mlrsearch

import (
	"math"
	"slices"
	"testing"
)

func want(t *testing.T, what string, holds bool) {
	t.Helper()
	if !holds {
		t.Fatalf("not so: %s", what)
	}
}

// RFC 9971 appendix C, with its goals "RFC2544", "TST009", "1s final", "20% exceed".
func TestExampleOfRFC9971(t *testing.T) {
	const rate = 1e6
	goals := []Goal{
		{Final: 60, Sum: 60}, {Exceed: 0.5, Final: 60, Sum: 120},
		{Loss: 0.005, Exceed: 0.5, Final: 1, Sum: 120}, {Loss: 0.005, Exceed: 0.2, Final: 60, Sum: 60},
	}
	s := New(rate, rate, goals)
	const U, L, N = upperBound, lowerBound, undecided
	for i, point := range []struct {
		times         int
		seconds, loss float64
		want          [4]bound
	}{
		{0, 0, 0, [4]bound{N, N, N, N}},
		{59, 1, 0, [4]bound{N, N, N, N}},    // "first short good"
		{1, 1, 0.01, [4]bound{U, N, N, N}},  // "first short bad"
		{59, 1, 0.01, [4]bound{U, N, N, U}}, // "last short bad"
		{1, 1, 0, [4]bound{U, N, L, U}},     // "last short good"
		// The tables of points 5 and 6 call the load a lower bound of "20% exceed", though its exceed ratios
		// are 42.857 % and 27.273 % in that column. The code of appendix A, which defines the bounds, does not.
		{1, 60, 0.001, [4]bound{U, N, L, U}}, // "first long bad"
		{1, 60, 0, [4]bound{U, L, L, U}},     // "first long good"
	} {
		for range point.times {
			s.Add(Trial{Rate: rate, Seconds: point.seconds, LossRatio: point.loss,
				ReceivedPPS: rate * (1 - point.loss)})
		}
		for g, goal := range goals {
			got := s.sumsOf(rate, goal.Loss, goal.Final, 0).classify(goal.Sum, goal.Exceed)
			if got != point.want[g] {
				t.Errorf("point %d, goal %d: %d, want %d", i, g, got, point.want[g])
			}
		}
	}
	want(t, "sums of point 6", s.sumsOf(rate, 0.005, 60, 0) == sums{fullLow: 120, shortHigh: 60, shortLow: 60})
	// "Conditional Throughput Computations"
	for g, expected := range map[int]float64{1: 1e6, 2: 1e6, 3: 999e3} {
		if got := s.conditional(rate, &goals[g]); math.Abs(got-expected) > 1e-3 {
			t.Errorf("conditional throughput of goal %d: %v", g, got)
		}
	}
	want(t, "no throughput of a load without a trial", s.conditional(2*rate, &goals[3]) == 0)
}

// model of a gateway.
type model struct {
	limit       float64 // packets per second that are forwarded at most
	queue       float64 // packets that wait beyond it
	slow        float64 // part of the excess that overload takes from the limit itself
	burstChance float64 // of a trial
	burst       float64 // part that is lost then
	floor       float64 // part that is always lost
	tester      float64 // packets per second that the tester can offer; 0 any
	seed        uint64
	longest     float64 // of the trials so far
	trials      int
}

// chance is SplitMix64; 0..1.
func chance(seed *uint64) float64 {
	*seed += 0x9e3779b97f4a7c15
	z := *seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

func (m *model) trial(rate, seconds float64) Trial {
	offered := rate
	if m.tester > 0 {
		offered = min(rate, m.tester)
	}
	excess := max(0, offered-m.limit)
	lost := max(0, excess*(1+m.slow)*seconds-m.queue) + offered*seconds*m.floor
	if m.burstChance > 0 && chance(&m.seed) < m.burstChance {
		lost += offered * seconds * m.burst
	}
	ratio := min(1, lost/(offered*seconds))
	m.trials++
	m.longest = max(m.longest, seconds)
	return Trial{Rate: rate, Seconds: seconds, LossRatio: ratio, ReceivedPPS: offered * (1 - ratio),
		TesterLimited: offered < rate*0.995}
}

func goal(loss float64) Goal {
	return Goal{Loss: loss, Exceed: 0.5, Width: 0.005, Initial: 0.5, Final: 1, Sum: 3}
}

const low, high = 10e3, 40e6

// search continues until it ends.
func (m *model) search(t *testing.T, s *Search) *Search {
	t.Helper()
	for {
		rate, seconds, more := s.Next()
		if !more {
			break
		}
		want(t, "the load is allowed", rate >= s.Min && rate <= s.Max)
		want(t, "the duration is the goal's", seconds >= 0.1 && seconds <= 1)
		want(t, "a trial is left", m.trials < Trials)
		s.Add(m.trial(rate, seconds))
	}
	want(t, "every trial is kept", len(s.Trials) == m.trials)
	for i, r := range s.Results {
		if r.Upper != 0 && r.Lower >= r.Upper {
			t.Fatalf("goal %d: bounds %v and %v", i, r.Lower, r.Upper)
		}
	}
	return s
}

func (m *model) run(t *testing.T, goals ...Goal) *Search {
	t.Helper()
	return m.search(t, New(low, high, goals))
}

func narrow(t *testing.T, r Result, width float64) {
	t.Helper()
	if !r.Found || (r.Upper-r.Lower)/r.Upper > width*(1+1e-6) || r.GaveUp() || r.AtMaximum || r.TesterLimited ||
		r.Disturbed {
		t.Fatalf("%+v", r)
	}
}

// The limit may lie anywhere between the ends; overload may make things worse than the limit.
func TestHardLimit(t *testing.T) {
	for i := range 200 {
		limit := low * math.Pow(high/low, (float64(i)+0.5)/200)
		for slow := range 3 {
			m := model{limit: limit, slow: float64(slow)}
			r := m.run(t, goal(0)).Results[0]
			narrow(t, r, 0.005)
			want(t, "the limit lies between the bounds", r.Lower <= limit && r.Upper > limit)
			want(t, "all of the lower bound is forwarded", r.Conditional == r.Lower)
			want(t, "trials are as long as asked for", m.longest == 1)
			want(t, "few trials are enough", m.trials <= 24 || slow > 0 && m.trials <= 60)
		}
	}
}

// At a loss goal the limit is where excess / offered is the goal.
func TestLossGoal(t *testing.T) {
	m := model{limit: 3e6}
	r := m.run(t, goal(0.02)).Results[0]
	narrow(t, r, 0.005)
	want(t, "the limit lies between the bounds", r.Lower <= 3e6/0.98 && r.Upper >= 3e6/0.98)
	// Full-length trials there lost a little less than 2 %.
	want(t, "the conditional throughput", r.Conditional <= 3e6*1.0001 && r.Conditional >= 3e6*0.994)
}

// Bursts of loss in a fifth of the trials: the exceed ratio lets them pass.
func TestNoisyLimit(t *testing.T) {
	exact := 0
	for seed := range uint64(100) {
		m := model{limit: 2.2e6, burstChance: 0.2, burst: 0.001, seed: seed + 1}
		for _, r := range m.run(t, goal(0), goal(1e-5)).Results {
			narrow(t, r, 0.005)
			want(t, "never above the limit", r.Lower <= 2.2e6*1.00001)
			if r.Upper > 2.2e6 {
				exact++
			}
		}
		// A burst in every second trial stays bounded, and never above the limit.
		m = model{limit: 2.2e6, burstChance: 0.5, burst: 0.5, seed: seed + 1}
		r := m.run(t, goal(0), goal(1e-5)).Results
		want(t, "never above the limit", r[0].Lower <= 2.2e6 && r[1].Lower <= 2.2e6*1.00001)
	}
	// A load well below the limit is refused only when two of its two or three trials have a burst.
	want(t, "most results are exact", exact >= 120)
}

// A queue makes short trials look better than long ones; the result follows trials of full length.
func TestQueue(t *testing.T) {
	for packets := 1000.0; packets < 1e6; packets *= 3 {
		m := model{limit: 1e6, queue: packets}
		r := m.run(t, goal(0)).Results[0]
		narrow(t, r, 0.005)
		want(t, "the bounds", r.Lower <= (1e6+packets)*(1+1e-9) && r.Upper >= 1e6+packets)
	}
}

func TestNothingArrives(t *testing.T) {
	m := model{}
	for _, r := range m.run(t, goal(0), goal(1e-5)).Results {
		want(t, "it gave up", r == Result{Upper: low, Reason: reasonLowest})
	}
	want(t, "soon", m.trials <= 6)
}

func TestLossEverywhere(t *testing.T) {
	m := model{limit: 2e6, floor: 1e-3}
	for _, r := range m.run(t, goal(0), goal(1e-5)).Results {
		want(t, "it gave up", !r.Found && r.GaveUp())
	}
	want(t, "soon", m.trials <= 40)

	// Three in a hundred thousand: too much for the strict goal, good for a loose one.
	m = model{limit: 2e6, floor: 3e-5}
	r := m.run(t, goal(1e-4), goal(0)).Results
	want(t, "the strict goal gave up", !r[1].Found && r[1].GaveUp())
	narrow(t, r[0], 0.005)
	want(t, "the loose one is met", r[0].Lower > 1.98e6 && r[0].Lower < 2.01e6)
}

func TestAtMaximum(t *testing.T) {
	m := model{limit: 50e6}
	for _, r := range m.run(t, goal(0), goal(1e-5)).Results {
		want(t, "it is the maximum", r == Result{Found: true, Lower: high, Conditional: high, AtMaximum: true})
	}
	want(t, "soon", m.trials <= 4)
}

// The tester offers 5 Mpps, the gateway forwards 8: the result is the tester's limit, and marked so. When the gateway
// forwards 3, the result is the gateway's.
func TestTesterLimited(t *testing.T) {
	m := model{limit: 8e6, tester: 5e6}
	r := m.run(t, goal(0)).Results[0]
	want(t, "the tester is the limit, not the machine", r.Found && r.TesterLimited && !r.Disturbed)
	want(t, "it did not give up", !r.GaveUp() && !r.AtMaximum)
	// A trial counts as offered when 99.5 % were.
	want(t, "the bounds", r.Lower <= 5e6/0.995*(1+1e-9) && r.Upper >= 5e6/0.995)

	m = model{limit: 3e6, tester: 5e6}
	r = m.run(t, goal(0)).Results[0]
	narrow(t, r, 0.005)
	want(t, "the gateway is the limit", r.Lower <= 3e6 && r.Upper > 3e6)

	m = model{limit: 3e6, tester: 5e3}
	r = m.run(t, goal(0)).Results[0]
	want(t, "not even the lowest", !r.Found && r.TesterLimited && r.Reason == reasonTester)
}

// Goals share trials: the second costs a few more only. The order in the profile does not matter.
func TestGoalsShareTrials(t *testing.T) {
	alone, both := model{limit: 3e6}, model{limit: 3e6}
	alone.run(t, goal(0))
	both.run(t, goal(0.001), goal(0))
	want(t, "the second is cheap", both.trials < 2*alone.trials)
	m := model{limit: 3e6}
	s := m.run(t, goal(0.05), goal(0.001), goal(0))
	want(t, "the strictest comes first", slices.Equal(s.Order(), []int{2, 1, 0}))
	for g, r := range s.Results {
		limit := 3e6 / (1 - s.Goals[g].Loss)
		narrow(t, r, 0.005)
		want(t, "the bounds", r.Lower <= limit*(1+1e-9) && r.Upper >= limit)
	}
}

// A result that is refuted moves down, again and again if it must, and never costs more than all trials.
func TestRefuted(t *testing.T) {
	m := model{limit: 3e6}
	s := m.run(t, goal(0), goal(1e-5))
	failed := Trial{LossRatio: 0.5}
	for round := range Trials {
		before, other := s.Results[0].Lower, s.Results[1].Lower
		from := before
		if round%2 == 0 {
			from *= 0.999
		}
		s.Refute(0, from, failed)
		if m.search(t, s); s.Results[0].GaveUp() {
			break
		}
		narrow(t, s.Results[0], 0.005)
		want(t, "the result moved down", s.Results[0].Lower < before && s.Results[0].Upper <= before)
		want(t, "the other goal's stays", s.Results[1].Lower == other)
	}
	before := s.refuted[0]
	s.Refute(0, 3e6, failed)
	want(t, "a higher load changes nothing", s.refuted[0] == before)
	r := s.Results[0]
	want(t, "all trials are used", len(s.Trials) == Trials && r.Reason == reasonTrials && !r.TesterLimited)
}

// A rate that the tester could not hold in a confirmation is its limit, not the gateway's.
func TestRefutedByTester(t *testing.T) {
	m := model{limit: 3e6}
	s := m.run(t, goal(0))
	s.Refute(0, s.Results[0].Lower, Trial{TesterLimited: true})
	r := m.search(t, s).Results[0]
	want(t, "the tester is the limit", r.Found && r.TesterLimited && !r.GaveUp())
}

// Losses in disturbed trials stop the search, but are no proof against the gateway.
func TestDisturbed(t *testing.T) {
	s := New(low, high, []Goal{goal(0)})
	for {
		rate, seconds, more := s.Next()
		if !more {
			break
		}
		loss := 0.0
		if rate > 3e6 {
			loss = 0.1
		}
		s.Add(Trial{Rate: rate, Seconds: seconds, LossRatio: loss, ReceivedPPS: rate * (1 - loss),
			Disturbed: rate > 2e6 && rate < 4e6})
	}
	r := s.Results[0]
	want(t, "the bounds", r.Found && r.Lower <= 3e6 && r.Upper > 3e6)
	want(t, "the machine is to blame", r.Disturbed && !r.TesterLimited && !r.GaveUp())
}

// Every answer is random: the search ends all the same, with bounds in order.
func TestRandomAnswers(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		at := seed
		s := New(1e3, 1e3*float64(1+seed), []Goal{goal(0), goal(1e-5)})
		for trials := 0; ; trials++ {
			rate, seconds, more := s.Next()
			if !more {
				break
			}
			want(t, "the load is allowed", rate >= s.Min && rate <= s.Max)
			want(t, "the trials are bounded", trials < Trials)
			loss := 0.0
			if chance(&at) >= 0.5 {
				loss = chance(&at) * 2e-5
			}
			s.Add(Trial{Rate: rate, Seconds: seconds, LossRatio: loss, ReceivedPPS: rate * (1 - loss),
				TesterLimited: chance(&at) < 0.1})
		}
		for _, r := range s.Results {
			want(t, "the bounds are in order", r.Upper == 0 || r.Lower < r.Upper)
		}
	}
}

// One load only, and equal durations in all phases.
func TestOneLoad(t *testing.T) {
	g := []Goal{{Width: 0.01, Initial: 1, Final: 1, Sum: 1}}
	m := model{limit: 3e6}
	r := m.search(t, New(1e6, 1e6, g)).Results[0]
	want(t, "it is good", r.AtMaximum && m.trials == 1)
	m = model{limit: 3e6}
	r = m.search(t, New(4e6, 4e6, g)).Results[0]
	want(t, "it is bad", !r.Found && r.GaveUp() && m.trials == 1)
	m = model{limit: 3e6}
	r = m.search(t, New(1e6, 4e6, g)).Results[0]
	narrow(t, r, 0.01)
	want(t, "the bounds", r.Lower <= 3e6 && r.Upper > 3e6)
}
