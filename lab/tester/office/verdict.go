// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"isthmus/lab/tester"
)

// Exit status of a run.
const (
	Good       = 0
	NotGood    = 1 // something was wrong, lost above the goal, or an expectation failed
	Incomplete = 2
)

// judged: a stream's expectation is judged in a trial of this purpose. A stream with a share of the trial's rate is
// judged in fixed and confirming trials only, where that rate is the run's own. Others are judged in all measured
// trials.
func judged(p *tester.Checked, stream int, purpose string) bool {
	s := &p.Streams[stream]
	switch purpose {
	case tester.PurposeFixed, tester.PurposeConfirm:
		return s.Expect != nil
	case tester.PurposeStep, tester.PurposeLatency:
		return s.Expect != nil && s.Share == 0
	}
	return false
}

// broken returns how a stream failed its `expect`; empty: it did not.
func broken(p *tester.Checked, stream int, t *tester.Trial) string {
	s, c := &p.Streams[stream], &t.Streams[stream]
	e, loss := s.Expect, 0.0
	if c.Sent > 0 {
		loss = float64(c.Lost) / float64(c.Sent)
	}
	if value, of, ok := e.Rate.Scan(); ok {
		got, tolerance := received(e, c, of), e.Tolerance.Value()
		// The last bits of a rate at the edge are rounding, not the gateway.
		if math.Abs(got-value) > value*(tolerance+1e-9) {
			layer := ""
			if of == tester.Bits && e.Layer == "l3" {
				layer = " (layer 3)"
			}
			return fmt.Sprintf("stream \"%s\": received %s%s, expected %s within %.6g %%", s.Name,
				show(of, got), layer, show(of, value), tolerance*100)
		}
	}
	if most := e.Loss.Value(); e.Loss != "" && loss > most {
		return fmt.Sprintf("stream \"%s\": lost %.6g %% (%d of %d), expected at most %.6g %%", s.Name, loss*100,
			c.Lost, c.Sent, most*100)
	}
	if e.P99us > 0 && (c.Received == 0 || c.Latency.P99 > e.P99us) {
		nothing := ""
		if c.Received == 0 {
			nothing = ", but nothing arrived"
		}
		return fmt.Sprintf("stream \"%s\": 99 %% arrived within %.6g us, expected %.6g us%s", s.Name,
			c.Latency.P99, e.P99us, nothing)
	}
	return ""
}

// received is the received rate in the expectation's unit, a second; for a part, of the sent rate.
func received(e *tester.Expect, c *tester.StreamTrial, of tester.Unit) float64 {
	switch {
	case of == tester.OfRate && c.Sent == 0:
		return 0
	case of == tester.OfRate:
		return float64(c.Received) / float64(c.Sent)
	case of == tester.Packets:
		return c.ReceivedPPS
	case e.Layer == "l3":
		return c.GbpsL3 * 1e9
	}
	return c.GbpsL2 * 1e9
}

func show(of tester.Unit, value float64) string {
	switch of {
	case tester.OfRate:
		return fmt.Sprintf("%.6g %% of what was sent", value*100)
	case tester.Packets:
		return fmt.Sprintf("%.6g kpps", value/1e3)
	}
	return fmt.Sprintf("%.6g Mbit/s", value/1e6)
}

// counts: a trial is part of the result. Discarded ones are not, nor failed confirmations, which are overload.
func counts(r *tester.Result, t *tester.Trial) bool {
	if t.Purpose != tester.PurposeConfirm || !t.Used {
		return t.Used
	}
	return r.Search != nil && slices.ContainsFunc(r.Search.Goals, func(g tester.GoalResult) bool {
		return g.Confirmed && g.RatePPS == t.RatePPS
	})
}

// mainTrial is the trial whose streams the report shows: the fixed one, the last confirmation, or the last that counts;
// nil without one.
func mainTrial(r *tester.Result) (best *tester.Trial) {
	for i := range r.Trials {
		t := &r.Trials[i]
		switch {
		case !counts(r, t), t.Purpose == tester.PurposeWarmup, t.Purpose == tester.PurposeMaximum,
			t.Purpose == tester.PurposeLatency:
		case best != nil && best.Purpose == tester.PurposeConfirm && t.Purpose != tester.PurposeConfirm:
		default:
			best = t
		}
	}
	return best
}

// Judge fills in status and verdict.
func Judge(p *tester.Checked, r *tester.Result) {
	var wrong, twice uint64
	for i := range r.Trials {
		wrong, twice = wrong+r.Trials[i].Wrong, twice+r.Trials[i].Duplicate
	}
	r.Status = NotGood
	switch {
	case !r.Complete:
		r.Status, r.Verdict = Incomplete, cmp.Or(r.Error, "not complete")
	case wrong > 0:
		r.Verdict = fmt.Sprintf("%d packets arrived with wrong contents", wrong)
	case twice > 0:
		r.Verdict = fmt.Sprintf("%d packets arrived twice", twice)
	default:
		if r.Verdict = cmp.Or(judgeSearch(p, r), judgeTrials(p, r)); r.Verdict == "" {
			r.Status, r.Verdict = Good, "good"+remark(r)
		}
	}
}

// order of the goals: from the strictest to the loosest.
func order(r *tester.Result) (list []*tester.GoalResult) {
	for i := 0; r.Search != nil && i < len(r.Search.Goals); i++ {
		list = append(list, &r.Search.Goals[i])
	}
	slices.SortStableFunc(list, func(a, b *tester.GoalResult) int { return cmp.Compare(a.Loss, b.Loss) })
	return list
}

func judgeSearch(p *tester.Checked, r *tester.Result) string {
	for _, g := range order(r) {
		if !g.Found {
			return fmt.Sprintf("no rate has a loss of at most %.6g %%: %s", g.Loss*100,
				cmp.Or(g.Reason, "none was found"))
		}
		if seconds := *p.Run.Search.Confirm; seconds > 0 && !g.Confirmed {
			return fmt.Sprintf("the rate for a loss of at most %.6g %% did not hold in a trial of %.6g s",
				g.Loss*100, seconds)
		}
	}
	return ""
}

func judgeTrials(p *tester.Checked, r *tester.Result) string {
	loss := strictest(p)
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.Purpose == tester.PurposeFixed && t.Used && t.LossRatio > loss {
			var sent, lost uint64
			for k := range t.Streams {
				if p.Streams[k].Expect == nil {
					sent, lost = sent+t.Streams[k].Sent, lost+t.Streams[k].Lost
				}
			}
			return fmt.Sprintf("%d of %d packets were lost (%.4g %%), allowed are %.6g %%", lost, sent,
				t.LossRatio*100, loss*100)
		}
		for k := 0; counts(r, t) && k < len(t.Streams); k++ {
			if judged(p, k, t.Purpose) {
				if why := broken(p, k, t); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// remark is what keeps a good result from proving all that was asked for. A rate shown by the gateway is a good result,
// but its limit may be higher.
func remark(r *tester.Result) string {
	any := func(is func(t *tester.Trial) bool) bool {
		return slices.ContainsFunc(r.Trials, func(t tester.Trial) bool { return is(&t) })
	}
	found := func(is func(g *tester.GoalResult) bool) bool { return slices.ContainsFunc(order(r), is) }
	switch {
	case any(func(t *tester.Trial) bool { return counts(r, t) && t.Stale > 0 }):
		return ", but packets came so late that they may have come twice, and as many may be missing"
	case any(func(t *tester.Trial) bool { return t.Purpose == tester.PurposeFixed && t.Used && t.TesterLimited }):
		return ", but the tester offered less than what was asked for"
	case found(func(g *tester.GoalResult) bool { return g.TesterLimited }):
		return ", but what limits is the tester: the gateway may do more"
	case found(func(g *tester.GoalResult) bool { return g.Disturbed }):
		return ", but the machine disturbed the trials that were lost: the gateway may do more"
	}
	return ""
}
