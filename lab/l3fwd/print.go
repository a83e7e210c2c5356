// SPDX-License-Identifier: Apache-2.0

package l3fwd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"isthmus/lab/bench"
)

// Print writes a table for each number of ports and size.
func (r *Result) Print(w io.Writer) error {
	for i := range r.Points {
		if err := r.Points[i].print(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "MPPS: both ways of all ports together, loss ≤ %g %%, one CPU, median of %d; "+
		"LINE: of the paper's ports;\n"+
		"OF LINUX: its rate to the best of Linux over veth; P50, P99: µs at half of the rate\n", 100*r.Goal, r.Rounds)
	return err
}

func (p *Point) print(w io.Writer) error {
	fmt.Fprintf(w, "%d ports, %d B (figure %s)\n", p.Ports, p.Bytes, p.Figure)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "PROGRAM\tLINK\tMPPS\tGB/S\tLINE\tTICKS\tCPU/MPPS\tOF LINUX\tP50\tP99\t")
	for i := range p.Rows {
		row := &p.Rows[i]
		if row.Repetitions == 0 {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\t\n", row.Name, row.Link)
			continue
		}
		more, p50, p99, linux, ticks, cpu := "", "-", "-", "-", "-", "-"
		if row.TesterLimited {
			more = ">="
		}
		if row.Latency != nil {
			p50, p99 = fmt.Sprintf("%.1f", row.Latency.P50), fmt.Sprintf("%.1f", row.Latency.P99)
		}
		if !row.FixedRate {
			ticks, cpu = fmt.Sprintf("%.0f", row.TicksPerPacket), fmt.Sprintf("%.0f %%", row.CPUPerMpps)
		}
		if row.OfLinuxVeth > 0 {
			linux = fmt.Sprintf("%.2f", row.OfLinuxVeth)
		}
		fmt.Fprintf(t, "%s\t%s\t%s%.3f\t%.2f\t%.1f %%\t%s\t%s\t%s\t%s\t%s\t\n", row.Name, row.Link, more, row.Mpps,
			row.GbpsL2, 100*row.LineShare, ticks, cpu, linux, p50, p99)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range p.Rows {
		if row := &p.Rows[i]; row.WhyNot != "" {
			fmt.Fprintf(w, "%s over %s: %s\n", row.Name, row.Link, row.WhyNot)
		}
	}
	fmt.Fprintln(w)
	return nil
}

// WriteJSON writes the result.
func (r *Result) WriteJSON(file string) error {
	return bench.WriteJSON(file, r)
}
