// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"isthmus/lab/tester"
)

const (
	framesShown = 3
	bytesShown  = 128
)

// Print writes the result as text for people.
func Print(to io.Writer, p *tester.Checked, r *tester.Result) {
	title := ""
	if p.Title != "" {
		title = ", " + p.Title
	}
	fmt.Fprintf(to, "%s%s: %d streams, %.4g B on average, %d trials in %.1f s\n", p.Name, title, len(p.Streams),
		p.SharedBytes(), len(r.Trials), r.Seconds)
	if r.Search != nil {
		printSearch(to, p, r)
	}
	printTrials(to, r, tester.PurposeStep, "STEP, MPPS")
	if t := mainTrial(r); t != nil && t.Purpose != tester.PurposeStep {
		printStreams(to, t)
	}
	if printTrials(to, r, tester.PurposeLatency, "LOAD, MPPS") && r.Reference.Goal >= 0 {
		fmt.Fprintf(to, "  parts of the rate for loss <= %.4g %%, %.4f Mpps\n",
			r.Search.Goals[r.Reference.Goal].Loss*100, r.Reference.RatePPS/1e6)
	}
	printWrong(to, r)
	if len(r.Trials) > 0 {
		fmt.Fprintln(to)
	}
	printDisturbed(to, r)
	printExpectations(to, p, r)
	fmt.Fprintf(to, "%s%s\n", [...]string{"", "NOT GOOD: ", "NOT COMPLETE: "}[r.Status], r.Verdict)
}

func printSearch(to io.Writer, p *tester.Checked, r *tester.Result) {
	s, best := r.Search, 0.0
	fmt.Fprintf(to, "\nsearch: %d trials between %.4f and %.4f Mpps\n", s.Trials, s.Min/1e6, s.Max/1e6)
	for _, g := range order(r) {
		printFound(to, p, g)
		best = math.Max(best, g.RatePPS)
	}
	if r.MaximumPPS <= 0 || best <= 0 {
		return
	}
	little := ""
	if r.MaximumPPS < 1.3*best {
		little = ": too little to be sure that the gateway is what limits"
	}
	fmt.Fprintf(to, "  the tester itself offers up to %.4f Mpps at these ports, %.2f times that%s\n",
		r.MaximumPPS/1e6, r.MaximumPPS/best, little)
}

func printFound(to io.Writer, p *tester.Checked, g *tester.GoalResult) {
	fmt.Fprintf(to, "  %-16s", fmt.Sprintf("loss <= %.4g %%", g.Loss*100))
	if !g.Found {
		fmt.Fprintf(to, " not found: %s\n", cmp.Or(g.Reason, "the search did not come to its end"))
		return
	}
	bytes, rate := p.SharedBytes(), g.RatePPS
	fmt.Fprintf(to, " %9.4f Mpps %9.3f Gb/s L2 %9.3f Gb/s L1", rate/1e6, rate*bytes*8e-9,
		rate*(bytes+wireBytes)*8e-9)
	if g.UpperPPS > 0 {
		fmt.Fprintf(to, "  not %.4f", g.UpperPPS/1e6)
	}
	confirmed := "NOT CONFIRMED"
	if g.Confirmed {
		confirmed = "confirmed"
	}
	for _, w := range []struct {
		is   bool
		word string
	}{{g.AtMaximum, "highest rate allowed"}, {g.TesterLimited, "LIMITED BY THE TESTER"},
		{g.Disturbed, "DISTURBED, may be more"}, {*p.Run.Search.Confirm > 0, confirmed},
		{g.GaveUp, "(" + g.Reason + ")"}} {
		if w.is {
			fmt.Fprintf(to, "  %s", w.word)
		}
	}
	fmt.Fprintln(to)
}

func mark(is bool, words string) string {
	if !is {
		return ""
	}
	return words
}

func printStreams(to io.Writer, t *tester.Trial) {
	rate := fmt.Sprintf("%.4f Mpps", t.RatePPS/1e6)
	if math.IsInf(t.RatePPS, 1) {
		rate = "as fast as possible"
	}
	fmt.Fprintf(to, "\n%s, %s for %.3g s%s%s; tester %.0f ticks a packet, clock %.2f GHz\n", t.Purpose, rate,
		t.AskedSeconds, mark(t.TesterLimited, ", the tester offered less"),
		mark(len(t.Disturbed) > 0, ", disturbed"), t.BusyTicks, t.ClockGHz)
	fmt.Fprintf(to, "%-16s %12s %12s %9s %9s %9s %9s %7s %8s %8s %9s %9s %9s\n", "STREAM", "SENT", "RECEIVED",
		"LOST", "LOST %", "REORDER", "TWICE", "WRONG", "MPPS", "GB/S L2", "P50 US", "P99 US", "MAX US")
	for i := range t.Streams {
		s, lost := &t.Streams[i], 0.0
		if s.Sent > 0 {
			lost = 100 * float64(s.Lost) / float64(s.Sent)
		}
		fmt.Fprintf(to, "%-16s %12d %12d %9d %9.4g %9d %9d %7d %8.4f %8.3f %9.1f %9.1f %9.1f\n", s.Name, s.Sent,
			s.Received, s.Lost, lost, s.Reordered+s.Stale, s.Duplicate, wrongOf(s), s.ReceivedPPS/1e6,
			s.GbpsL2, s.Latency.P50, s.Latency.P99, s.Latency.Max)
	}
	if t.Foreign > 0 || t.Stray > 0 {
		fmt.Fprintf(to, "  %d frames were nobody's, %d of an earlier trial\n", t.Foreign, t.Stray)
	}
}

// printTrials writes a line for each trial of a kind that counts: offered, received, latency. It returns whether there
// is one.
func printTrials(to io.Writer, r *tester.Result, purpose, title string) bool {
	list := r.Of(purpose)
	if len(list) == 0 {
		return false
	}
	fmt.Fprintf(to, "\n%-16s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", title, "OFFERED", "ARRIVED", "LOST %",
		"MIN US", "P50", "P90", "P99", "P99.9", "MAX")
	for _, t := range list {
		name, h := fmt.Sprintf("%.4g %%", t.Part*100), t.Latency
		switch {
		case math.IsInf(t.RatePPS, 1):
			name = "max"
		case t.Part <= 0:
			name = fmt.Sprintf("%.4g Mpps", t.RatePPS/1e6)
		}
		fmt.Fprintf(to, "%-16s %9.4f %9.4f %9.4g %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f%s%s\n", name,
			t.OfferedPPS/1e6, perSecond(float64(t.Received), t.Seconds)/1e6, t.LossRatio*100, h.Min, h.P50,
			h.P90, h.P99, h.P999, h.Max, mark(len(t.Disturbed) > 0, "  disturbed"),
			mark(t.TesterLimited, "  tester limited"))
	}
	return true
}

func printWrong(to io.Writer, r *tester.Result) {
	shown := 0
	for i := range r.Trials {
		for k := range r.Trials[i].Streams {
			s := &r.Trials[i].Streams[k]
			for _, w := range s.WrongFrames {
				if shown++; shown > framesShown {
					return
				}
				fmt.Fprintf(to, "%sstream %s, flow %d: wrong %s at byte %d (%s) of %d\n",
					mark(shown == 1, "\n"), s.Name, w.Flow, w.Kind, w.Offset, w.Where, w.Length)
				fmt.Fprintf(to, "    %-10s%s\n    %-10s%s\n", "arrived", bytesOf(w.Frame, bytesShown),
					"expected", bytesOf(w.Expected, bytesShown))
				if w.Offset < min(len(w.Frame)/2, bytesShown) {
					fmt.Fprintf(to, "    %s^^\n", strings.Repeat(" ", 10+2*w.Offset+w.Offset/8))
				}
			}
		}
	}
}

func printDisturbed(to io.Writer, r *tester.Result) {
	discarded, counted, behind, by := 0, 0, 0, map[string]int{}
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.Used && len(t.Disturbed) > 0 {
			counted++
		}
		if t.Used || t.Interrupted {
			continue
		}
		discarded++
		for _, why := range t.Disturbed {
			by[why]++
		}
		if len(t.Disturbed) == 0 {
			behind++
		}
	}
	if discarded > 0 {
		fmt.Fprintf(to,
			"%d disturbed trials were discarded and repeated: stolen time %d, context switches %d, pauses "+
				"%d, missed frames %d, CPUs far apart %d, tester fell behind %d\n", discarded, by["steal"],
			by["switched"], by["gap"], by["missed"], by["far"], behind)
	}
	if counted > 0 {
		fmt.Fprintf(to,
			"%d trials count though they were disturbed: they lost nothing, or could not be repeated any "+
				"more\n", counted)
	}
}

func printExpectations(to io.Writer, p *tester.Checked, r *tester.Result) {
	for k := range p.Streams {
		all, failed, first := 0, 0, ""
		for i := range r.Trials {
			t := &r.Trials[i]
			if !counts(r, t) || !judged(p, k, t.Purpose) {
				continue
			}
			all++
			if why := broken(p, k, t); why != "" {
				failed++
				first = cmp.Or(first, why)
			}
		}
		if failed > 0 {
			fmt.Fprintf(to, "expectation failed in %d of %d trials: %s\n", failed, all, first)
		} else if all > 0 {
			fmt.Fprintf(to, "expectation held in %d trials: stream \"%s\"\n", all, p.Streams[k].Name)
		}
	}
}

// Short is a result as it is written and kept. Histograms are left out of the many trials of a search, which no curves
// are drawn of, and expectations of trials that say nothing about the result.
func Short(r *tester.Result) *tester.Result {
	out := *r
	out.Trials = make([]tester.Trial, 0, len(r.Trials))
	drawn := []string{tester.PurposeFixed, tester.PurposeConfirm, tester.PurposeStep, tester.PurposeLatency}
	for i := range r.Trials {
		t := r.Trials[i]
		if !slices.Contains(drawn, t.Purpose) {
			t = bare(&t)
		}
		t.Streams = slices.Clone(t.Streams)
		for k := range t.Streams {
			if !counts(r, &t) {
				t.Streams[k].Expectation = ""
			}
		}
		out.Trials = append(out.Trials, t)
	}
	return &out
}

// WriteJSON writes what is short of the result; file "-": to standard output, for people. A file is whole for who reads
// it.
func WriteJSON(file string, r *tester.Result) error {
	out := Short(r)
	if file == "-" {
		text, err := json.MarshalIndent(out, "", " ")
		if err == nil {
			_, err = os.Stdout.Write(append(text, '\n'))
		}
		return err
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".part", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

// Event is a line of JSON for a trial that begins or ends, without histograms.
func Event(to io.Writer, t *tester.Trial, ended bool) error {
	var text []byte
	var err error
	if ended {
		short := bare(t)
		text, err = json.Marshal(&short)
		text = append([]byte(`{"event":"end",`), text[min(1, len(text)):]...)
	} else {
		begin := struct {
			Event        string   `json:"event"`
			Purpose      string   `json:"purpose"`
			RatePPS      *float64 `json:"rate_pps"`
			AskedSeconds float64  `json:"asked_seconds"`
		}{"begin", t.Purpose, &t.RatePPS, t.AskedSeconds}
		if math.IsInf(t.RatePPS, 1) {
			begin.RatePPS = nil
		}
		text, err = json.Marshal(&begin)
	}
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}
