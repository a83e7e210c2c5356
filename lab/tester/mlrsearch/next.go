// SPDX-License-Identifier: Apache-2.0

package mlrsearch

import "math"

func (s *Search) within(rate float64) float64 { return math.Min(s.Max, math.Max(s.Min, rate)) }

// initialRate is of the initial phase: one trial at the maximum, one at the rate that was forwarded then, and one on
// the other side of the expected limit. It returns false when that is over.
func (s *Search) initialRate() (rate float64, more bool) {
	if s.initial == 0 || len(s.Trials) == 0 {
		return s.Max, true
	}
	g := &s.Goals[s.order[0]]
	t := g.target(0)
	last := &s.Trials[len(s.Trials)-1]
	switch {
	case s.initial < 3 && (last.LossRatio > g.Loss || last.TesterLimited):
		// At a loss goal above 0 the load may be higher than what arrives.
		rate = s.within(last.ReceivedPPS / (1 - g.Loss))
		if rate >= last.Rate*math.Exp(-t.width/2) && last.Rate > s.Min {
			rate = s.within(last.Rate * math.Exp(-t.width))
		}
	case s.initial == 2:
		rate = s.within(last.Rate * math.Exp(t.width))
	default:
		return 0, false
	}
	return rate, rate != last.Rate
}

// nominate returns a load that is not measured to the end, a bound of the phase before, a step outwards, or the middle.
// False: the target is reached, or cannot be.
func (s *Search) nominate(goal int, t *target) (rate float64, more bool) {
	lower, upper := s.bounds(goal, t)
	for _, c := range [...]float64{s.pending, s.hintLower, s.hintUpper} {
		// A load outside the bounds decides nothing any more.
		if c > lower && (upper == 0 || c < upper) && s.classify(goal, t, c) == undecided {
			return c, true
		}
	}
	switch {
	case lower == 0 && upper == 0:
		return s.Max, true
	case lower == 0:
		if upper <= s.Min {
			return 0, false
		}
		rate = upper * math.Exp(-t.width*s.expand)
		if rate < s.Min*math.Exp(t.width) {
			rate = s.Min
		}
		s.expand *= 2
		return rate, true
	case upper == 0:
		if lower >= s.Max {
			return 0, false
		}
		rate = lower * math.Exp(t.width*s.expand)
		if rate > s.Max*math.Exp(-t.width) {
			rate = s.Max
		}
		s.expand *= 2
		return rate, true
	}
	return math.Sqrt(lower * upper), wide(lower, upper, t)
}

// wide: an interval is wider than the target allows.
func wide(lower, upper float64, t *target) bool { return math.Log(upper/lower) > t.width*(1+slack) }

// toBlame: a load is an upper bound only because of trials disturbed by others than the gateway.
func (s *Search) toBlame(goal int, t *target, upper float64, others blame) bool {
	if upper > 0 && upper == s.refuted[goal].from {
		return s.refuted[goal].by.blame(t.loss)&others != 0
	}
	return upper > 0 && s.sumsOf(upper, t.loss, t.seconds, others).classify(t.sum, t.exceed) != upperBound
}

// Conclude sets the results from what is known by now, for a search that ends early.
func (s *Search) Conclude() {
	for g := range s.Goals {
		s.Results[g] = s.conclude(g)
	}
}

func (s *Search) conclude(goal int) (r Result) {
	t := s.Goals[goal].target(phases - 1)
	r.Lower, r.Upper = s.bounds(goal, &t)
	r.Found = r.Lower > 0
	r.AtMaximum = r.Found && r.Upper == 0 && r.Lower >= s.Max
	if r.Found {
		r.Conditional = s.conditional(r.Lower, &s.Goals[goal])
	}
	r.TesterLimited = s.toBlame(goal, &t, r.Upper, blameTester)
	r.Disturbed = !r.TesterLimited && s.toBlame(goal, &t, r.Upper, blameTester|blameMachine)
	switch {
	case r.Upper > 0 && r.Upper <= s.Min && r.TesterLimited:
		r.Reason = reasonTester
	case r.Upper > 0 && r.Upper <= s.Min:
		r.Reason = reasonLowest
	case r.AtMaximum || r.Found && r.Upper > 0 && !wide(r.Lower, r.Upper, &t):
	case len(s.Trials) < Trials:
		r.Reason = reasonEnded
	default:
		r.Reason = reasonTrials
	}
	return r
}

// advance goes to the next phase or goal. It returns false at the end.
func (s *Search) advance() bool {
	goal := s.order[s.current]
	t := s.Goals[goal].target(s.phase)
	s.hintLower, s.hintUpper = s.bounds(goal, &t)
	s.pending, s.expand = 0, 1
	if s.phase+1 < phases {
		s.phase++
		return true
	}
	s.hintLower, s.hintUpper, s.phase = 0, 0, 0
	if s.again {
		s.phase = phases - 1
	}
	s.current++
	return s.current < len(s.Goals)
}

// Next returns the next load; false, after Conclude, when every goal has its result, or no trial is left. It may be
// called again after more trials were added or a result was refuted.
func (s *Search) Next() (rate, seconds float64, more bool) {
	if len(s.Goals) == 0 {
		return 0, 0, false
	}
	if len(s.Trials) < Trials && s.initial < 3 {
		if rate, more = s.initialRate(); more {
			s.initial++
			return rate, s.Goals[s.order[0]].target(0).seconds, true
		}
		s.initial = 3
	}
	for len(s.Trials) < Trials {
		goal := s.order[s.current]
		t := s.Goals[goal].target(s.phase)
		if rate, more = s.nominate(goal, &t); more {
			s.pending = rate
			return rate, t.seconds, true
		}
		if s.advance() {
			continue
		}
		// Trials for one goal may change another's result: each is checked again until none changes.
		settled := s.again && len(s.Trials) == s.passTrials
		s.again, s.passTrials, s.current, s.phase = true, len(s.Trials), 0, phases-1
		if settled {
			break
		}
	}
	s.Conclude()
	return 0, 0, false
}

// Add takes a trial's result, also of trials that Next did not request. At most Trials are kept.
func (s *Search) Add(t Trial) {
	if len(s.Trials) < Trials {
		s.Trials = append(s.Trials, t)
	}
}

// Refute records a failed confirmation: for the goal, loads from `from` upwards count as upper bounds, and Next
// continues below.
func (s *Search) Refute(goal int, from float64, failed Trial) {
	if old := s.refuted[goal].from; old == 0 || from < old {
		s.refuted[goal] = refutation{from, failed}
	}
}

// Refuted: Refute was called for the goal.
func (s *Search) Refuted(goal int) bool { return s.refuted[goal].from > 0 }
