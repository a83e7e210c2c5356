// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"strings"

	"isthmus/controlplane/view"
	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

// Verdict returns why a result is not good, or nil.
func (r *LinkResult) Verdict() error {
	if r.Wrong > 0 {
		return fmt.Errorf("%d of %d packets were wrong; %s", r.Wrong, r.Checked, r.WrongFrame)
	}
	for i := range r.Points {
		p := &r.Points[i]
		switch {
		case p.Duplicate > 0:
			return fmt.Errorf("%s: %d packets came twice", p.Name, p.Duplicate)
		case p.Checked == 0:
			return fmt.Errorf("%s: no packet came through: dropped %s", p.Name, reasons(p.Accounting.Dropped))
		case !p.Complete && !r.Interrupted:
			return fmt.Errorf("%s: not complete", p.Name)
		case !p.Complete:
			continue
		case r.FixedRate > 0 && p.LossRatio != nil && *p.LossRatio > r.Goal:
			return fmt.Errorf("%s: loss of %.6f %% is above the target of %g %%: dropped %s",
				p.Name, 100**p.LossRatio, 100*r.Goal,
				reasons(p.Dropped))
		case r.FixedRate == 0 && !p.met():
			return fmt.Errorf("%s: no rate met the target of %g %% loss: %s; dropped %s", p.Name, 100*r.Goal,
				p.whyNot(),
				reasons(p.Accounting.Dropped))
		case p.failed != "" && r.FixedRate > 0:
			return fmt.Errorf("%s: %s", p.Name, p.failed)
		}
	}
	if r.Instances != nil && r.Instances.failed != "" {
		return fmt.Errorf("%s", r.Instances.failed)
	}
	if r.Interrupted {
		return fmt.Errorf("interrupted: what was measured is kept; of the profile's loads %d complete, %d begun",
			r.complete(),
			len(r.Points)-r.complete())
	}
	return nil
}

// met: the run's last goal was found, and confirmed where requested.
func (p *Point) met() bool {
	if len(p.Rates) == 0 {
		return false
	}
	g := p.Rates[len(p.Rates)-1]
	return g.Found && g.Confirmed
}

func (p *Point) whyNot() string {
	if len(p.Rates) == 0 {
		return "nothing was searched"
	}
	g := p.Rates[len(p.Rates)-1]
	switch {
	case g.Found:
		return fmt.Sprintf("%.3f Mpps did not hold when it was confirmed", g.Mpps)
	case g.Reason != "":
		return g.Reason
	}
	return "none was found"
}

func (r *LinkResult) complete() (n int) {
	for i := range r.Points {
		if r.Points[i].Complete {
			n++
		}
	}
	return n
}

// WriteJSON writes the machine-readable result.
func (r *LinkResult) WriteJSON(file string) error {
	return WriteJSON(file, r)
}

// writeTable prints cells under their titles, all columns but the first ones to the right.
func writeTable(w io.Writer, left int, titles []string, cells [][]string) error {
	right := make([]bool, len(titles))
	for i := range right {
		right[i] = i >= left
	}
	return view.WriteTable(w, titles, right, cells)
}

// unknown prints a figure, or nothing without one.
func unknown[N ~float64](v N, format func(N) string) string {
	if v == 0 {
		return ""
	}
	return format(v)
}

// unresolved prints a difference of which the median alone is kept.
func unresolved(own figure.Number) string {
	if own == 0 {
		return figure.Unresolved
	}
	return f1(own)
}

// Print writes the result for people.
func (r *LinkResult) Print(w io.Writer) error {
	huge := "huge pages"
	if !r.HugePages {
		if huge = "no huge pages (slower)"; r.Link == LinkMemif {
			huge = "no huge pages (packets are copied, slower)"
		}
	}
	what := fmt.Sprintf("%d flows", r.Flows)
	if r.Subscribers > 0 {
		what = fmt.Sprintf("%d subscribers, %s, %d + %d firewall rules", r.Subscribers, what, r.Blocklist, r.Rules)
	}
	fmt.Fprintf(w, "%s: %s; %s, %d worker(s), %s links, %s\n", r.Profile, r.Title, what, r.Workers, r.Link, huge)
	fmt.Fprintf(w, "%s, TSC %.0f MHz, clock %.2f to %.2f GHz, worst steal %.2f %%, %d trial(s) discarded as "+
		"disturbed\n\n", r.CPU,
		float64(r.TSCHz)/1e6, r.ClockGHz[0], r.ClockGHz[1], 100*r.StealRatio, r.Discarded)
	if r.Fill != nil {
		if err := r.Fill.print(w); err != nil {
			return err
		}
	}
	steps := []func(io.Writer) error{r.printRates, r.printLatency, r.printDirections, r.printAccounting}
	if r.Instances != nil && !r.Instances.Measured {
		steps = steps[3:] // no figure may be taken for a speed
	}
	for _, step := range steps {
		if err := step(w); err != nil {
			return err
		}
	}
	if r.Instances != nil {
		if err := r.Instances.print(w); err != nil {
			return err
		}
	}
	if r.VEPC != nil {
		if err := r.VEPC.print(w); err != nil {
			return err
		}
	}
	return r.printWords(w)
}

func (r *LinkResult) printRates(w io.Writer) error {
	var cells [][]string
	for i := range r.Points {
		p := &r.Points[i]
		row := []string{p.Name, p.rate(0), unknown(p.Mpps, f3)}
		limited := ""
		if p.Tester != nil {
			limited = unknown(p.Tester.Ratio, f2)
			if p.Tester.Limited {
				limited += " limited"
			}
		}
		row = append(row, unknown(p.GbpsL2, f2), unknown(p.GbpsL1, f2), unknown(p.TicksPerPacket, f1),
			unknown(p.FloorTicksPerPacket, f1),
			p.OwnRange.Words(1), p.OwnRange.Range(1), limited, unknown(r.PaperMpps, f2))
		cells = append(cells, row)
	}
	goal := fmt.Sprintf("%g %% LOSS", 100*r.Goal)
	if r.FixedRate > 0 {
		goal = "FIXED RATE"
	}
	titles := []string{"MPPS AT", "0 LOSS", goal, "GB/S L2", "GB/S L1", "TICKS: TOTAL", "FLOOR", "OWN",
		"OWN, RANGE",
		"TESTER/GATEWAY", "PAPER/CORE"}
	return writeTable(w, 1, titles, cells)
}

// rate prints the rate at one loss.
func (p *Point) rate(loss float64) string {
	for _, g := range p.Rates {
		if g.Loss == loss && g.Found {
			return f3(g.Mpps)
		}
	}
	return ""
}

func (r *LinkResult) printLatency(w io.Writer) error {
	var cells [][]string
	row := func(name, what string, h *tester.Histogram, extra string) {
		if h != nil {
			cells = append(cells, []string{name, what, f1(h.P50), f1(h.P90), f1(h.P99), f1(h.P999), f1(h.Max), extra})
		}
	}
	for i := range r.Points {
		for _, l := range r.Points[i].Latency {
			name := fmt.Sprintf("%s at %.0f %%", r.Points[i].Name, 100*l.Load)
			row(name, "one way", l.LatencyUS, fmt.Sprintf("%.6f %%", 100*l.LossRatio))
			if l.EchoSent > 0 {
				row(name, "ICMP echo", l.Echo, fmt.Sprintf("%d of %d", l.EchoLost, l.EchoSent))
			}
		}
	}
	if len(cells) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	titles := []string{"LATENCY, US", "OF", "P50", "P90", "P99", "P99.9", "MAX", "LOST"}
	return writeTable(w, 2, titles, cells)
}

func (r *LinkResult) printDirections(w io.Writer) error {
	var cells [][]string
	for i := range r.Points {
		p := &r.Points[i]
		for _, d := range []struct {
			name string
			*LinkDirection
		}{{"uplink", p.Uplink}, {"downlink", p.Downlink}} {
			if d.LinkDirection != nil {
				cells = append(cells, []string{p.Name, d.name, d.FrameBytes, unknown(d.Mpps, f3),
					unknown(d.TicksPerPacket, f1), unknown(d.FloorTicksPerPacket,
						f1), d.OwnRange.Words(1),
					d.OwnRange.Range(1)})
			}
		}
	}
	if len(cells) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	titles := []string{"ONE DIRECTION ALONE", "WAY", "FRAMES", "MPPS", "TICKS: TOTAL", "FLOOR", "OWN",
		"OWN, RANGE"}
	return writeTable(w, 2, titles, cells)
}

func (r *LinkResult) printAccounting(w io.Writer) error {
	fmt.Fprintln(w)
	for i := range r.Points {
		p := &r.Points[i]
		a := &p.Accounting
		if _, err := fmt.Fprintf(w, "%s: sent %d = received %d + too late %d + refused by the full link %d + dropped "+
			"%s + missing %d\n",
			p.Name, a.Sent, a.Received, a.Late, a.Refused, reasons(a.Dropped), a.Missing); err != nil {
			return err
		}
	}
	return nil
}

// doubts are the reasons why a rate may be the tester's rather than the gateway's.
func (p *Point) doubts() (list []string) {
	if n := len(p.Rates); n > 0 {
		switch g := &p.Rates[n-1]; {
		case g.AtMaximum:
			list = append(list, "the highest rate that it can offer was good")
		case g.TesterLimited:
			list = append(list, "it fell behind its own schedule where the search ended")
		}
	}
	if t := p.Tester; t != nil && t.Limited {
		why := fmt.Sprintf("it reached %.2f times the gateway's rate with %s, and %.1f is needed", t.Ratio, t.Device,
			limitRatio)
		if t.Error != "" {
			why = "it could not be shown to be faster: " + t.Error
		}
		list = append(list, why)
	}
	return list
}

// printWords explains what the figures mean and what they do not.
func (r *LinkResult) printWords(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d packets compared, %d wrong; %d of them also decoded by the independent decoder.\n", r.Checked,
		r.Wrong, r.Decoded)
	for i := range r.Points {
		p := &r.Points[i]
		if p.Note != "" {
			fmt.Fprintf(&b, "%s: %s.\n", p.Name, p.Note)
		}
		for _, why := range p.doubts() {
			fmt.Fprintf(&b, "%s: limited by the tester: %s.\n", p.Name, why)
		}
	}
	if r.PaperMpps > 0 && (r.Instances == nil || r.Instances.Measured) {
		ours := "through shared memory (memif) that the gateway copies from and to"
		switch r.Link {
		case LinkMemif:
		case LinkShare:
			ours = "through buffers that gateway and tester share, without a copy"
		default:
			ours = "through a veth pair (" + r.Link + ")"
		}
		fmt.Fprintf(&b, "The paper's %.2f Mpps per physical core (%.0f cycles at 1.7 GHz) include a network card, "+
			"its driver and PCIe.\n"+
			"Ours go %s; there is no card. A scale, no race.\n", r.PaperMpps, r.PaperCycles, ours)
	}
	if r.Interrupted {
		b.WriteString("INTERRUPTED: these are the figures measured until then; the profile is not complete.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
