// SPDX-License-Identifier: Apache-2.0

// Package demo shows the gateway at work: both benchmark profiles for a few seconds, every packet of a first pass
// checked, and one table beside the paper's figures.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"isthmus/controlplane/view"
	"isthmus/lab/bench"
	"isthmus/lab/figure"
)

// Options of the demonstration.
type Options struct {
	Seconds     float64
	Subscribers int
	NoHuge      bool
	DPBinary    string
	Version     string
	Out         io.Writer
	Progress    io.Writer
}

// Run shows everything; it fails when a packet was wrong or lost.
func Run(ctx context.Context, opt Options) error {
	fmt.Fprintf(opt.Out, "Isthmus %s: an access gateway with %d subscribers, half QinQ and half QinQ + PPPoE, on one "+
		"worker.\n\n"+
		"  uplink    subscriber -> firewall (blocklist) -> classify, strip tags -> police -> GTP-U -> route -> core\n"+
		"  downlink  core -> firewall (allowlist) -> strip GTP-U, match flow -> QinQ, PPPoE -> schedule -> "+
		"subscriber\n\n",
		opt.Version, opt.Subscribers)
	var results []*bench.Result
	cpus, err := bench.ChooseCPUs("", 1)
	if err != nil {
		return err
	}
	for _, p := range bench.Profiles {
		fmt.Fprintf(opt.Out, "%s (%s) ...\n", p.Name, p.Title)
		r, err := bench.Run(ctx, bench.Options{
			Profile: p.Name, Seconds: opt.Seconds, Workers: 1, CPUs: cpus, Subscribers: opt.Subscribers,
			NoHuge:   opt.NoHuge,
			DPBinary: opt.DPBinary, Version: opt.Version, Command: "isthmus demo", Progress: opt.Progress,
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(opt.Out, "  every packet compared: %d checked, %d wrong, %d lost\n", r.CheckPass.Checked,
			r.CheckPass.Wrong, r.CheckPass.Lost)
		results = append(results, r)
	}
	fmt.Fprintln(opt.Out)
	if err := table(opt.Out, results); err != nil {
		return err
	}
	var errs []error
	for _, r := range results {
		errs = append(errs, r.Verdict())
	}
	return errors.Join(errs...)
}

// scale explains the paper's columns beside ours.
const scale = `The paper's figures are per physical core at 1.7 GHz. ` +
	`They include a network card and its driver; ours do not:
packets are made and taken inside the graph (synth ports), so the two columns are no race, only a scale.
`

// table is the one table at the end.
func table(w io.Writer, results []*bench.Result) error {
	var cells [][]string
	num := func(v figure.Number, digits int) string { return strconv.FormatFloat(float64(v), 'f', digits, 64) }
	for _, r := range results {
		cells = append(cells, []string{
			r.Profile, num(r.Uplink.TicksPerPacket, 0), num(r.Downlink.TicksPerPacket, 0), num(r.TicksPerPacket, 0),
			num(r.FloorTicksPerPacket, 0), r.Spread.Own.Words(0), r.Spread.Own.Range(0), num(r.Mpps,
				2), num(r.GbpsL2, 1),
			num(r.PaperMpps, 2), num(r.PaperCycles, 0),
		})
	}
	titles := []string{
		"PROFILE", "UP TICKS", "DOWN TICKS", "BOTH TICKS", "FLOOR", "OWN", "OF PAIRS", "MPPS", "GB/S",
		"PAPER MPPS", "PAPER CYCLES",
	}
	right := []bool{false, true, true, true, true, true, true, true, true, true, true}
	if err := view.WriteTable(w, titles, right, cells); err != nil {
		return err
	}
	r := results[0]
	huge := "with huge pages"
	if !r.HugePages {
		huge = "without huge pages, which is slower"
	}
	_, err := fmt.Fprintf(w, `
Ticks are TSC ticks per packet (%.0f MHz), the port floor included, and own without it: the
median of pairs measured next to each other, lowest..highest beside it. One worker, %s, on
%s.
`+scale, float64(r.TSCHz)/1e6, huge, r.CPU)
	return err
}
