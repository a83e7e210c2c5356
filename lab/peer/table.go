// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the rows as a table: the floor and our gateway are marked, and a missing figure has its reason.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "PEER\tLINK\tMPPS\tLOWEST\tHIGHEST\tGB/S\tTICKS\tRATIO\tRUNS\t")
	for i := range rows {
		r := &rows[i]
		if r.Repetitions == 0 {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\t0\t\n", r.Name, r.Link)
			continue
		}
		ratio, ticks, more := "-", "-", ""
		if r.TicksPerPacket > 0 {
			ticks = fmt.Sprintf("%.0f", r.TicksPerPacket)
		}
		if r.Ratio > 0 {
			ratio = strings.TrimSpace(fmt.Sprintf("%.2f %s", r.Ratio, r.RatioRange.Range(2)))
		}
		if r.TesterLimited {
			more = ">="
		}
		fmt.Fprintf(t, "%s\t%s\t%s%.3f\t%.3f\t%.3f\t%.2f\t%s\t%s\t%d\t\n", r.Name, r.Link, more, r.Mpps, r.Spread.Min,
			r.Spread.Max, r.GbpsL2,
			ticks, ratio, r.Repetitions)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printNotes(w, rows)
}

// printNotes explains the figures below the table.
func printNotes(w io.Writer, rows []Row) error {
	var err error
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	say("MPPS: median of both directions together; RATIO: to our gateway's on the same link, of repetitions side by " +
		"side, lowest..highest; TICKS: of the TSC, of one always busy CPU per packet.")
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Repetitions == 0:
			say("%s: left out: %s", r.Name, r.WhyNot)
			continue
		case r.WhyNot != "":
			say("%s: ended early: %s", r.Name, r.WhyNot)
		case r.Ours:
			say("%s: our gateway", r.Name)
		}
		kind := ""
		if r.Floor {
			kind = " (the floor: what the link costs)"
		}
		if !r.Ours {
			say("%s: %s%s; packets: %s", r.Name, r.Does, kind, r.Packets)
		}
		if r.TesterLimited {
			say("%s: the tester could not offer more", r.Name)
		}
		if r.Note != "" {
			say("%s: %s", r.Name, r.Note)
		}
	}
	return err
}
