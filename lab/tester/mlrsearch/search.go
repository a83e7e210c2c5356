// SPDX-License-Identifier: Apache-2.0

// Package mlrsearch finds the highest rate at a loss goal: MLRsearch (RFC 9971), with bisection in logarithmic space.
// It is pure: it takes results of trials, and returns the next load.
//
// Each goal goes through a number of targets, the first with short trials and four times the width, the last the goal
// itself. The bounds of one phase are the first loads of the next. A target is reached when its bounds are close
// enough. Trials of a duration count for every target, so later goals start with the results of earlier ones.
package mlrsearch

import (
	"cmp"
	"math"
	"slices"
)

const (
	Trials = 200  // a search that needs more gives up with what it has
	phases = 3    // of each goal: short trials and a wide interval first, then longer and narrower
	slack  = 1e-9 // relative; rates and durations that differ by less are the same
)

// Why a search gives up.
const (
	reasonLowest = "the lowest rate allowed lost more than the goal"
	reasonTrials = "no trial was left before the interval was as narrow as asked for"
	reasonEnded  = "the search was ended before the interval was as narrow as asked for"
	reasonTester = "the tester could not offer the lowest rate allowed"
)

// Goal is a loss that counts as good, and how well it is measured. Loss and Exceed are below 1, Width is above 0.
type Goal struct {
	Loss   float64 // highest loss ratio of a trial that counts as good
	Exceed float64 // part of the trials' time that may be bad ("goal exceed ratio")
	Width  float64 // relative width of the result's interval
	// Seconds of the first trials, of the last ones, and of all at a load ("Goal Duration Sum").
	Initial, Final, Sum float64
}

// Trial is what a trial gave. RFC 9971 "Trial Result"; the effective duration is the duration asked for.
type Trial struct {
	Rate, Seconds float64 // packets per second
	LossRatio     float64
	ReceivedPPS   float64 // RFC 9971 "Trial Forwarding Rate"
	TesterLimited bool    // the tester offered less than Rate: a low loss proves nothing about the gateway
	Disturbed     bool    // by the machine: a high loss proves nothing about the gateway
}

// Result is what was found for a goal.
type Result struct {
	Found         bool    // a lower bound exists
	Lower, Upper  float64 // "Relevant Lower Bound", "Relevant Upper Bound" in packets per second; Upper 0: none met
	Conditional   float64 // "Conditional Throughput": packets per second forwarded at the lower bound
	AtMaximum     bool    // the highest load allowed was good: no upper bound
	TesterLimited bool    // what stopped the search was the tester, not the gateway
	Disturbed     bool    // what stopped the search were disturbed trials: the gateway may do more
	// Reason is why the search gave up without an interval as narrow as requested; else empty.
	Reason string
}

// GaveUp is true when the trials were used up, or no load was good.
func (r *Result) GaveUp() bool { return r.Reason != "" }

// Search is one search.
type Search struct {
	Min, Max float64 // packets per second
	Goals    []Goal
	Trials   []Trial
	Results  []Result // by index of goal; valid after Conclude

	// State: which goal (place in order) and phase it is at, and what the phase before has found.
	order                []int // goals from the strictest to the loosest
	initial              int   // trials of the initial phase that are done
	current, phase       int
	again                bool // all goals had their results; now each is looked at again,
	passTrials           int  // until no trial came since this many
	hintLower, hintUpper float64
	pending              float64 // load that is being decided; 0 none
	expand               float64 // how many widths the next step outwards goes
	refuted              []refutation
}

// refutation: loads from here upwards are bad whatever trials showed; 0: none.
type refutation struct {
	from float64
	by   Trial
}

// New begins a search from min to max packets per second, min <= max. Goals are served from the strictest to the
// loosest; every trial counts for all of them.
func New(min, max float64, goals []Goal) *Search {
	s := &Search{Min: min, Max: max, Goals: goals, Results: make([]Result, len(goals)), expand: 1,
		refuted: make([]refutation, len(goals))}
	for i := range goals {
		s.order = append(s.order, i)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(goals[a].Loss, goals[b].Loss) })
	return s
}

// Order returns the indices of the goals from the strictest to the loosest.
func (s *Search) Order() []int { return s.order }

// blame is what a trial can be evidence of, beside the gateway's limit.
type blame uint

const (
	blameTester blame = 1 << iota
	blameMachine
)

func (t *Trial) blame(loss float64) (b blame) {
	// The gateway did not forward packets that were not offered: a high loss proves nothing against it.
	if t.TesterLimited && t.LossRatio <= loss {
		b |= blameTester
	}
	if t.Disturbed {
		b |= blameMachine
	}
	return b
}

// loss counts what the tester did not offer: that was not forwarded either.
func (t *Trial) loss() float64 {
	if t.TesterLimited {
		return math.Max(t.LossRatio, 1-t.ReceivedPPS/t.Rate)
	}
	return t.LossRatio
}

// sums of the durations of the trials at one load, as one goal sees them (RFC 9971 appendix A): full are trials of the
// goal's final duration or longer.
type sums struct{ fullLow, fullHigh, shortLow, shortHigh float64 }

// sumsOf leaves out the high losses that are to blame on one of without.
func (s *Search) sumsOf(rate, loss, final float64, without blame) (sum sums) {
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.Rate != rate {
			continue
		}
		high := t.LossRatio > loss || t.TesterLimited
		to := [...]*float64{&sum.shortLow, &sum.shortHigh, &sum.fullLow, &sum.fullHigh}
		at := 0
		if high {
			if t.blame(loss)&without != 0 {
				continue
			}
			at = 1
		}
		if t.Seconds >= final*(1-slack) {
			at += 2
		}
		*to[at] += t.Seconds
	}
	return sum
}

type bound int

const (
	undecided bound = iota
	lowerBound
	upperBound
)

// classify returns a load's class by its sums, for a goal with this duration sum and exceed ratio. Names as in RFC 9971
// appendix A.
func (s sums) classify(durationSum, exceed float64) bound {
	exceedCoefficient := exceed / (1 - exceed)
	balancing := s.shortLow * exceedCoefficient
	positiveExcess := math.Max(0, s.shortHigh-balancing)
	effectiveHighLoss := s.fullHigh + positiveExcess
	effectiveFullLength := s.fullLow + effectiveHighLoss
	effectiveWhole := math.Max(effectiveFullLength, durationSum)
	quantileDuration := effectiveWhole * exceed
	pessimisticHighLoss := effectiveWhole - s.fullLow
	pessimisticIsLower := pessimisticHighLoss <= quantileDuration
	optimisticIsLower := effectiveHighLoss <= quantileDuration
	switch {
	case pessimisticIsLower && optimisticIsLower:
		return lowerBound
	case pessimisticIsLower || optimisticIsLower:
		return undecided
	}
	return upperBound
}

// conditional is the "Conditional Throughput" of a load for a goal in packets per second (RFC 9971 appendix B). 0
// without a trial of full length.
func (s *Search) conditional(rate float64, g *Goal) float64 {
	var full []*Trial
	for i := range s.Trials {
		if t := &s.Trials[i]; t.Rate == rate && t.Seconds >= g.Final*(1-slack) {
			full = append(full, t)
		}
	}
	slices.SortStableFunc(full, func(a, b *Trial) int { return cmp.Compare(a.loss(), b.loss()) })
	sum := s.sumsOf(rate, g.Loss, g.Final, 0)
	remaining := math.Max(g.Sum, sum.fullLow+sum.fullHigh) * (1 - g.Exceed)
	quantile := -1.0
	for _, t := range full {
		if quantile >= 0 && remaining <= 0 {
			break
		}
		quantile = t.loss()
		remaining -= t.Seconds
	}
	if quantile < 0 || remaining > 0 {
		return 0
	}
	return rate * (1 - quantile)
}

// target is what a load must fulfil in a phase of a goal; in the last phase it is the goal itself.
type target struct {
	loss, exceed float64
	seconds, sum float64 // of a trial; of all trials at a load
	width        float64 // natural logarithm of the highest ratio of upper to lower bound
}

func (g *Goal) target(phase int) target {
	before := phases - 1 - phase // phases that are still to come
	t := target{loss: g.Loss, exceed: g.Exceed, seconds: g.Final, sum: g.Sum,
		width: -math.Log1p(-math.Min(g.Width, 0.5)) * float64(int(1)<<before)}
	if before > 0 {
		// From the initial duration to the sum in equal ratios; a single trial is never longer than the final
		// duration.
		initial := math.Min(g.Initial, g.Final)
		t.sum = initial * math.Pow(math.Max(1, g.Sum/initial), float64(phase)/(phases-1))
		t.seconds = math.Min(t.sum, g.Final)
	}
	return t
}

func (s *Search) classify(goal int, t *target, rate float64) bound {
	if from := s.refuted[goal].from; from > 0 && rate >= from {
		return upperBound
	}
	return s.sumsOf(rate, t.loss, t.seconds, 0).classify(t.sum, t.exceed)
}

// bounds are the "Relevant Upper Bound", the lowest of all, and the "Relevant Lower Bound", the highest below it. 0:
// none.
func (s *Search) bounds(goal int, t *target) (lower, upper float64) {
	upper = s.refuted[goal].from
	for i := range s.Trials {
		rate := s.Trials[i].Rate
		if (upper == 0 || rate < upper) && s.classify(goal, t, rate) == upperBound {
			upper = rate
		}
	}
	for i := range s.Trials {
		rate := s.Trials[i].Rate
		if rate > lower && (upper == 0 || rate < upper) && s.classify(goal, t, rate) == lowerBound {
			lower = rate
		}
	}
	return lower, upper
}
