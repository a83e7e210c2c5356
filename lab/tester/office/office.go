// SPDX-License-Identifier: Apache-2.0

// Package office runs a profile: chooses the trials, interprets them, and gives the verdict. The engine runs each
// trial.
package office

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"isthmus/lab/tester"
	"isthmus/lab/tester/mlrsearch"
)

const (
	mostDiscards = 60   // disturbed trials that are repeated in a run; later ones count with their mark
	mostConfirms = 24   // trials for confirmation in a run
	wrongPart    = 0.01 // of the packets, in two trials one after the other, ends a search
	probeSeconds = 2.0  // a gateway may have to resolve addresses first
	warmupPPS    = 1e4  // when no rate is known beforehand
	offeredPart  = 0.98 // of the highest rate offered so far, which the tester should manage again
	// Above the rate at which the ports took packets at full load: that rate may be the gateway's, which held the
	// tester up, so the search looks beyond it.
	maximumRoom = 1.3
)

// Source runs trials.
type Source interface {
	Trial(rate, seconds float64) (*tester.Trial, error)
}

// Progress is called for each trial as it begins (with purpose, rate and seconds alone) and ends.
type Progress func(t *tester.Trial, ended bool)

// errInterrupted is why an interrupted run is not complete.
var errInterrupted = errors.New("interrupted")

// run is one run of a profile.
type run struct {
	p          *tester.Checked
	source     Source
	tell       Progress
	r          *tester.Result
	search     *mlrsearch.Search // nil: none
	arrived    bool              // that something arrives has been seen
	offered    float64           // highest rate that the tester has offered so far
	wrongInRow int               // trials with more than wrongPart wrong packets
	discarded  int               // disturbed trials that were repeated
	confirms   int
}

// Run runs everything that the profile asks for, and fills in the trials' results. The progress function may be nil.
func Run(p *tester.Checked, source Source, tell Progress, r *tester.Result) {
	u := &run{p: p, source: source, tell: tell, r: r}
	if tell == nil {
		u.tell = func(*tester.Trial, bool) {}
	}
	r.Reference = &tester.Reference{Goal: -1}
	if err := u.all(); err != nil {
		r.Error = err.Error()
	}
	r.Complete = r.Error == ""
	if r.Reference.RatePPS == 0 {
		r.Reference = nil
	}
}

// ---- one trial ------------------------------------------------------------------------------------------------------

// kind of a trial.
type kind struct {
	purpose       string
	rate, seconds float64
	loss          float64 // more makes a disturbed trial one to repeat
	part          float64 // of steps and latency
}

// one runs a trial and keeps it. With last it counts even when it was disturbed.
func (u *run) one(k kind, last bool) (*tester.Trial, error) {
	u.tell(&tester.Trial{Purpose: k.purpose, RatePPS: k.rate, AskedSeconds: k.seconds}, false)
	t, err := u.source.Trial(k.rate, k.seconds)
	if err != nil {
		return nil, err
	}
	t.Purpose, t.Part, t.RatePPS, t.AskedSeconds = k.purpose, k.part, k.rate, k.seconds
	// A disturbed trial without loss is valid. A tester that falls behind at a rate that it has offered before was
	// hindered too.
	lost := t.LossRatio > k.loss || !math.IsInf(k.rate, 1) && t.TesterLimited
	hindered := len(t.Disturbed) > 0 || t.TesterLimited && k.rate < offeredPart*u.offered
	u.offered = math.Max(u.offered, t.OfferedPPS)
	t.Used = !t.Interrupted && (last || !hindered || !lost)
	if !t.Used && !t.Interrupted {
		u.discarded++
	}
	for i := range t.Streams {
		if t.Used && judged(u.p, i, k.purpose) {
			t.Streams[i].Expectation = cmp.Or(broken(u.p, i, t), "held")
		}
	}
	u.r.Trials = append(u.r.Trials, *t)
	u.tell(t, true)
	if t.Interrupted {
		u.r.Interrupted = true
		return nil, errInterrupted
	}
	return t, nil
}

// judge runs a trial, repeated while it is disturbed and loses more than it may.
func (u *run) judge(k kind) (*tester.Trial, error) {
	for try := 0; ; try++ {
		t, err := u.one(k, try >= u.p.Run.Disturbed.Repeats || u.discarded >= mostDiscards)
		if err != nil {
			return nil, err
		}
		rate := k.rate
		if math.IsInf(rate, 1) {
			rate = warmupPPS
		}
		if err := u.checkArrival(t, rate); err != nil {
			return nil, err
		}
		if err := u.checkContents(t); err != nil {
			return nil, err
		}
		if t.Used {
			return t, nil
		}
	}
}

// checkContents ends a search against a gateway that does something else.
func (u *run) checkContents(t *tester.Trial) error {
	if u.p.Run.Mode != tester.ModeSearch {
		return nil
	}
	if u.wrongInRow++; float64(t.Wrong) <= wrongPart*float64(t.Received) {
		u.wrongInRow = 0
	}
	if u.wrongInRow < 2 {
		return nil
	}
	part, first := 1.0, "no sample was kept"
	if t.Received > 0 {
		part = math.Min(1, float64(t.Wrong)/float64(t.Received))
	}
	for i := range t.Streams {
		if s := &t.Streams[i]; len(s.WrongFrames) > 0 {
			w := &s.WrongFrames[0]
			first = fmt.Sprintf("the first of stream \"%s\": %s, byte %d (%s), flow %d", s.Name, w.Kind,
				w.Offset, w.Where, w.Flow)
			break
		}
	}
	return fmt.Errorf("%.3g %% of the packets that arrived are wrong, in two trials one after the other: the gateway "+
		"does not do what the profile expects; %s", 100*part, first)
}

// ---- does anything arrive? ------------------------------------------------------------------------------------------

// silent are the streams of which packets were sent and none arrived where it should, though it should.
func (u *run) silent(t *tester.Trial) (list []int) {
	for i := range t.Streams {
		s, e := &t.Streams[i], u.p.Streams[i].Expect
		meant := e != nil && e.Loss.Value() >= 1
		// Whether the engine counts packets at a wrong port as received or not.
		if s.Sent > 0 && s.Received <= s.Wrong["port"] && !meant {
			list = append(list, i)
		}
	}
	return list
}

// checkArrival looks at the first trial: a stream of which nothing arrived gets one longer trial.
func (u *run) checkArrival(t *tester.Trial, rate float64) error {
	if u.arrived || len(u.silent(t)) == 0 {
		u.arrived = true
		return nil
	}
	t, err := u.one(kind{purpose: tester.PurposeWarmup, rate: rate, seconds: probeSeconds, loss: 1}, true)
	if err != nil {
		return err
	}
	silent := u.silent(t)
	if u.arrived = len(silent) == 0; u.arrived {
		return nil
	}
	return u.silence(t, silent)
}

func (u *run) silence(t *tester.Trial, silent []int) error {
	s, c := &u.p.Streams[silent[0]], &t.Streams[silent[0]]
	var more strings.Builder
	hint := func(format string, args ...any) { fmt.Fprintf(&more, "; "+format, args...) }
	if c.Refused == c.Sent {
		hint("the port took none of them: nobody reads at the other end of \"%s\"", s.Port)
	} else if c.Refused > 0 {
		hint("the port did not take %d of them", c.Refused)
	}
	astray := c.Wrong["port"]
	if astray > 0 {
		hint("%d arrived at another port than \"%s\"", astray, s.Sink)
	}
	if t.Foreign > 0 {
		hint("%d frames came that are nobody's: the gateway may damage the last 16 bytes, or other traffic runs",
			t.Foreign)
	}
	if t.Foreign == 0 && astray == 0 && c.Refused < c.Sent {
		hint("the links are up: look at the gateway's drops, addresses and sessions")
	}
	if len(silent) > 1 {
		hint("%d more streams are silent", len(silent)-1)
	}
	return fmt.Errorf("stream \"%s\": nothing arrives: %d packets were sent at port \"%s\" in %.1f s, none came to "+
		"port \"%s\"%s", s.Name, c.Sent, s.Port, t.Seconds, s.Sink, &more)
}

// ---- modes ----------------------------------------------------------------------------------------------------------

// strictest is the lowest loss of the goals: what other trials are judged by.
func strictest(p *tester.Checked) float64 {
	least := math.Inf(1)
	for i := range p.Run.Search.Goals {
		least = math.Min(least, p.Run.Search.Goals[i].Loss.Value())
	}
	return least
}

func (u *run) all() error {
	shared := u.p.SharedBytes() > 0
	if err := u.warmUp(shared); err != nil {
		return err
	}
	switch u.p.Run.Mode {
	case tester.ModeFixed:
		return u.fixed()
	case tester.ModeSteps:
		return u.steps()
	}
	if err := u.searched(); err != nil {
		return err
	}
	return u.latency()
}

// warmUp sends a tenth of the run's rate, as far as it is known.
func (u *run) warmUp(shared bool) error {
	plan, rate := &u.p.Run, 0.0
	if shared {
		known := plan.Rate
		if plan.Mode == tester.ModeSearch {
			known = plan.Search.Max
		}
		if rate = u.p.RatePPS(known) / 10; !(rate > 0) || math.IsInf(rate, 1) {
			rate = warmupPPS
		}
	}
	if *plan.Warmup <= 0 {
		return nil
	}
	t, err := u.one(kind{purpose: tester.PurposeWarmup, rate: rate, seconds: *plan.Warmup, loss: 1}, true)
	if err != nil {
		return err
	}
	if err := u.checkArrival(t, rate); err != nil {
		return err
	}
	return u.checkContents(t)
}

func (u *run) fixed() error {
	rate := u.p.RatePPS(u.p.Run.Rate)
	t, err := u.judge(kind{purpose: tester.PurposeFixed, rate: rate, seconds: u.p.Run.Seconds,
		loss: strictest(u.p)})
	if err != nil {
		return err
	}
	if math.IsInf(rate, 1) { // parts of it would be overload still: they refer to what arrived
		rate = t.OfferedPPS * (1 - t.LossRatio)
	}
	u.r.Reference.RatePPS = rate
	return u.latency()
}

func (u *run) steps() error {
	plan := &u.p.Run
	base := u.p.RatePPS(plan.Rate)
	if math.IsInf(base, 1) {
		if err := u.maximum(); err != nil {
			return err
		}
		base = u.r.MaximumPPS
	}
	u.r.Reference.RatePPS = base
	for _, step := range plan.Steps {
		rate := u.p.RatePPS(step)
		if value, of, _ := step.Scan(); of == tester.OfRate {
			rate = value * base
		}
		part := 0.0
		if base > 0 && !math.IsInf(rate, 1) {
			part = rate / base
		}
		if _, err := u.judge(kind{tester.PurposeStep, rate, plan.Seconds, strictest(u.p), part}); err != nil {
			return err
		}
	}
	return nil
}

// latency measures at parts of the rate found.
func (u *run) latency() error {
	plan, base := u.p.Run.Latency, u.r.Reference.RatePPS
	if plan.Seconds <= 0 || base <= 0 {
		return nil
	}
	for _, at := range plan.At {
		part := at.Value()
		if _, err := u.judge(kind{tester.PurposeLatency, part * base, plan.Seconds, strictest(u.p),
			part}); err != nil {
			return err
		}
	}
	return nil
}

// maximum is the highest rate that the tester offers.
func (u *run) maximum() error {
	t, err := u.judge(kind{purpose: tester.PurposeMaximum, rate: math.Inf(1),
		seconds: u.p.Run.Search.Goals[0].Initial, loss: 1})
	if err != nil {
		return err
	}
	if u.r.MaximumPPS = t.OfferedPPS; t.OfferedPPS <= 0 {
		return errors.New("the ports took no packet at all when as many as possible were sent")
	}
	return nil
}

// ---- the search, over real trials -----------------------------------------------------------------------------------

func (u *run) searched() error {
	least, most, err := u.limits()
	if err != nil {
		return err
	}
	var goals []mlrsearch.Goal
	for i := range u.p.Run.Search.Goals {
		g := &u.p.Run.Search.Goals[i]
		goals = append(goals, mlrsearch.Goal{Loss: g.Loss.Value(), Exceed: g.Exceed.Value(),
			Width: g.Width.Value(), Initial: g.Initial, Final: g.Final, Sum: g.Sum})
	}
	u.search = mlrsearch.New(least, most, goals)
	confirmed := make([]bool, len(goals))
	err = u.tryAll(confirmed)
	u.found(confirmed)
	if err != nil {
		return err
	}
	for i := range u.search.Results {
		if r := &u.search.Results[i]; r.GaveUp() && len(u.search.Trials) >= mlrsearch.Trials {
			u.r.Error = fmt.Sprintf("the search for a loss of at most %.6g %% gave up after %d trials: %s",
				goals[i].Loss*100, len(u.search.Trials), r.Reason)
		}
	}
	return nil
}

// limits are the lowest and the highest rate of the search.
func (u *run) limits() (least, most float64, err error) {
	plan := u.p.Run.Search
	least, most = u.p.RatePPS(plan.Min), u.p.RatePPS(plan.Max)
	if most <= 0 {
		if err = u.maximum(); err != nil {
			return 0, 0, err
		}
		most = maximumRoom * u.r.MaximumPPS
	}
	if least > most {
		err = fmt.Errorf("the search has no room: from %.0f to %.0f packets per second", least, most)
	}
	return least, most, err
}

// tryAll goes from the maximum downwards, then confirms each result; after a failure the search continues below.
func (u *run) tryAll(confirmed []bool) error {
	for again := true; again; {
		for {
			rate, seconds, more := u.search.Next()
			if !more {
				break
			}
			t, err := u.judge(kind{purpose: tester.PurposeSearch, rate: rate, seconds: seconds,
				loss: strictest(u.p)})
			if err != nil {
				u.search.Conclude()
				return err
			}
			u.search.Add(asSearch(t))
		}
		var err error
		if again, err = u.confirm(confirmed); err != nil {
			return err
		}
	}
	return nil
}

func asSearch(t *tester.Trial) mlrsearch.Trial {
	return mlrsearch.Trial{Rate: t.RatePPS, Seconds: t.AskedSeconds, LossRatio: t.LossRatio,
		ReceivedPPS: t.OfferedPPS * (1 - t.LossRatio), TesterLimited: t.TesterLimited,
		Disturbed: len(t.Disturbed) > 0}
}

// confirm confirms each goal's result, one trial for a rate. It returns true after a new trial, which the search must
// see.
func (u *run) confirm(confirmed []bool) (again bool, err error) {
	seconds := *u.p.Run.Search.Confirm
	for _, g := range u.search.Order() {
		found, loss := &u.search.Results[g], u.search.Goals[g].Loss
		if seconds <= 0 {
			break
		}
		confirmed[g] = false
		if !found.Found {
			continue
		}
		t, fresh := u.confirmation(found.Lower), false
		if t == nil && u.confirms < mostConfirms {
			if t, err = u.judge(kind{purpose: tester.PurposeConfirm, rate: found.Lower, seconds: seconds,
				loss: loss}); err != nil {
				return false, err
			}
			u.confirms++
			u.search.Add(asSearch(t))
			fresh = true
		}
		if t != nil && t.LossRatio <= loss && !t.TesterLimited {
			confirmed[g] = true
		} else if t != nil {
			u.refute(g, t)
			return true, nil
		}
		if fresh {
			return true, nil
		}
	}
	return false, nil
}

// confirmation is the trial for confirmation at this rate, or nil.
func (u *run) confirmation(rate float64) *tester.Trial {
	i := slices.IndexFunc(u.r.Trials, func(t tester.Trial) bool {
		return t.Purpose == tester.PurposeConfirm && t.Used && t.RatePPS == rate
	})
	if i < 0 {
		return nil
	}
	return &u.r.Trials[i]
}

// refute handles a failed confirmation. One may fail by chance: the search goes on right below. After a second failure
// for the same goal, the next ones would forward as much as it did, so higher loads cannot hold.
func (u *run) refute(goal int, t *tester.Trial) {
	failed := asSearch(t)
	from := failed.Rate
	if u.search.Refuted(goal) && !t.TesterLimited {
		from = math.Min(from, failed.ReceivedPPS/(1-u.search.Goals[goal].Loss))
	}
	u.search.Refute(goal, from, failed)
}

// found fills in what the search has found. A maximum that was measured is the tester's limit.
func (u *run) found(confirmed []bool) {
	s := u.search
	out := &tester.SearchResult{Min: s.Min, Max: s.Max, Trials: len(s.Trials)}
	u.r.Search = out
	for i := range s.Results {
		f := &s.Results[i]
		out.Goals = append(out.Goals, tester.GoalResult{Loss: s.Goals[i].Loss,
			Outcome: tester.Outcome{Found: f.Found, Confirmed: confirmed[i], AtMaximum: f.AtMaximum,
				TesterLimited: f.TesterLimited || f.AtMaximum && u.r.MaximumPPS > 0,
				Disturbed:     f.Disturbed, GaveUp: f.GaveUp(), Reason: f.Reason},
			RatePPS: f.Lower, UpperPPS: f.Upper, ConditionalPPS: f.Conditional})
	}
	for _, g := range s.Order() { // the loosest that was found is the last
		if s.Results[g].Found {
			*u.r.Reference = tester.Reference{RatePPS: s.Results[g].Lower, Goal: g}
		}
	}
}
