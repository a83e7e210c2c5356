// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Comparison is a profile over memif and over share, in turn; of vepc also with a virtual switch that relays every
// hop, the other I/O arrangement of the paper.
type Comparison struct {
	Profile      string        `json:"profile"`
	Size         int           `json:"frame_bytes"` // vepc
	Sessions     int           `json:"sessions"`    // vepc
	Rounds       int           `json:"rounds"`      // wanted
	Command      string        `json:"command"`
	Interrupted  bool          `json:"interrupted"`
	Arrangements []Arrangement `json:"arrangements"`
	Paper        VEPCPaper     `json:"paper"` // vepc, at 128 B
}

// Arrangement is one of them.
type Arrangement struct {
	Name    string        `json:"name"`
	Link    string        `json:"link"`
	Switch  string        `json:"switch"`
	Missing string        `json:"missing,omitempty"` // why it was not measured
	Error   string        `json:"error,omitempty"`   // of the run that failed
	Median  *VEPC         `json:"median"`            // vepc: of the run with the median rate
	Results []*LinkResult `json:"results"`

	middle *LinkResult // the run with the median rate
}

// missing returns why a switch cannot run here; nil: it can.
func missing(word string) error {
	if word == SwitchOVS {
		return missingOVS()
	}
	return nil
}

// Compare measures all arrangements, alternating. A result comes back whenever something was measured, also beside
// an error.
func Compare(ctx context.Context, opt Options, rounds int) (*Comparison, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("%d rounds: one is the least", rounds)
	}
	if _, err := newScene(opt, 0); err != nil {
		return nil, err
	}
	c := &Comparison{Profile: opt.Profile, Rounds: rounds, Command: opt.Command}
	for _, link := range []string{LinkMemif, LinkShare} {
		c.Arrangements = append(c.Arrangements, Arrangement{Name: "direct (" + link + ")", Link: link,
			Switch: SwitchNone})
	}
	if size, ok := vepcSize(opt.Profile); ok {
		c.Size, c.Sessions, c.Paper = size, opt.Sessions, vepcPaper()
		if !opt.Combined { // combined, nothing is between the functions
			c.Arrangements = append(c.Arrangements, Arrangement{Name: "switch (ovs, vhost-user)",
				Link: LinkMemif, Switch: SwitchOVS})
		}
	}
	err := c.run(ctx, rounds, func(ctx context.Context, a *Arrangement) (*LinkResult, error) {
		one := opt
		one.Link, one.Switch = a.Link, a.Switch
		if one.Keep != "" {
			one.Keep += "/" + fileName(a.Name)
		}
		return Measure(ctx, one)
	})
	return c, err
}

// run fills the arrangements by what measure finds.
func (c *Comparison) run(ctx context.Context, rounds int, measure func(ctx context.Context,
	a *Arrangement) (*LinkResult, error)) error {
	for i := range c.Arrangements {
		a := &c.Arrangements[i]
		a.Results = []*LinkResult{}
		if err := missing(a.Switch); err != nil {
			a.Missing = err.Error()
		}
	}
	for range rounds {
		for i := range c.Arrangements {
			a := &c.Arrangements[i]
			if a.Missing != "" || a.Error != "" || ctx.Err() != nil {
				continue
			}
			r, err := measure(ctx, a)
			if r != nil && len(r.Points) > 0 {
				a.Results = append(a.Results, r)
			}
			if err != nil && ctx.Err() == nil { // the others are still worth their time
				a.Error = err.Error()
			}
		}
	}
	c.Interrupted = ctx.Err() != nil
	for i := range c.Arrangements {
		c.Arrangements[i].choose()
	}
	if c.Interrupted && !slices.ContainsFunc(c.Arrangements,
		func(a Arrangement) bool { return len(a.Results) > 0 }) {
		return ctx.Err()
	}
	return nil
}

// choose takes the run with the median rate; of an even number the lower one.
func (a *Arrangement) choose() {
	sorted := slices.SortedFunc(slices.Values(a.Results), func(x, y *LinkResult) int {
		if x.Mpps < y.Mpps {
			return -1
		}
		return 1
	})
	if n := len(sorted); n > 0 {
		a.middle = sorted[(n-1)/2]
		a.Median = a.middle.VEPC
	}
}

// Verdict is nil when every run was right. An arrangement that cannot run here does not count.
func (c *Comparison) Verdict() error {
	var errs []error
	for i := range c.Arrangements {
		a := &c.Arrangements[i]
		if a.Error != "" {
			errs = append(errs, fmt.Errorf("%s: %s", a.Name, a.Error))
		}
		for _, r := range a.Results {
			if r.Error != "" && a.Error != "" { // the same
				continue
			}
			if err := r.Verdict(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", a.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// WriteJSON writes all arrangements' results.
func (c *Comparison) WriteJSON(file string) error {
	return WriteJSON(file, c)
}

// Print writes a table of rates and costs; of vepc another one, with the paper's rows.
func (c *Comparison) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d round(s), alternating\n\n", c.Profile, c.Rounds)
	if err := c.printCosts(w); err != nil {
		return err
	}
	if c.Size > 0 {
		fmt.Fprintln(w)
		if err := c.printPaper(w); err != nil {
			return err
		}
	}
	for i := range c.Arrangements {
		if a := &c.Arrangements[i]; a.Missing != "" {
			fmt.Fprintf(w, "%s was not measured: %s\n", a.Name, a.Missing)
		}
	}
	return nil
}

// printCosts writes what each load gave in each arrangement, in the run with the median rate.
func (c *Comparison) printCosts(w io.Writer) error {
	titles := []string{"LOAD", "LINK", "MPPS", "GB/S L2", "TICKS: TOTAL", "FLOOR", "OWN", "TESTER/GATEWAY",
		"P50 US AT 50 %", "P99", "WRONG"}
	var cells [][]string
	points := 1
	for i := range c.Arrangements {
		if m := c.Arrangements[i].middle; m != nil {
			points = max(points, len(m.Points))
		}
	}
	for k := range points {
		for i := range c.Arrangements {
			cells = append(cells, c.Arrangements[i].costs(k, len(titles)))
		}
	}
	return writeTable(w, 2, titles, cells)
}

// costs is one line of that table, for the k-th load.
func (a *Arrangement) costs(k, columns int) []string {
	row := append([]string{"", a.Name}, make([]string, columns-2)...)
	switch {
	case a.middle == nil && a.Missing != "":
		row[2] = "missing"
		return row
	case a.middle == nil || k >= len(a.middle.Points):
		row[2] = "failed"
		return row
	}
	p := &a.middle.Points[k]
	row[0], row[2], row[3] = p.Name, unknown(p.Mpps, f3), unknown(p.GbpsL2, f2)
	row[4], row[5], row[6] = unknown(p.TicksPerPacket, f1), unknown(p.FloorTicksPerPacket, f1), p.OwnRange.Words(1)
	if p.Tester != nil {
		row[7] = unknown(p.Tester.Ratio, f2)
	}
	for j := range p.Latency {
		if l := &p.Latency[j]; l.Load == 0.5 && l.LatencyUS != nil {
			row[8], row[9] = f1(l.LatencyUS.P50), f1(l.LatencyUS.P99)
		}
	}
	row[10] = fmt.Sprint(p.Wrong)
	return row
}

// printPaper writes the table of the paper, with its rows and its columns.
func (c *Comparison) printPaper(w io.Writer) error {
	fmt.Fprintf(w, "UE - eNodeB - SGW-U - PGW-U - PDN and back, %d B, %d sessions\n\n", c.Size, c.Sessions)
	var cells [][]string
	for i := range c.Arrangements {
		a := &c.Arrangements[i]
		row := append([]string{a.Name}, slices.Repeat([]string{"-"}, 9)...)
		switch {
		case a.Median != nil:
			row = a.Median.row(a.Name)
		case a.Missing != "":
			row[1] = "missing"
		default:
			row[1] = "failed"
		}
		cells = append(cells, row)
	}
	p := &c.Paper
	below := func(us float64) string { return "< " + f1(us) }
	cells = append(cells,
		[]string{"paper, SR-IOV + offload *", f1(p.Mpps), f1(p.Gbps), f2(p.Load * paperServer),
			f1(p.LoadPerMpps), f2(p.CoresPerInstance),
			strconv.Itoa(p.Instances), "-", below(p.RTTp90us), "-"},
		[]string{"paper, virtual switch *", f1(p.SwitchMpps), f1(p.SwitchGbps), f2(p.SwitchBusy * paperServer),
			f1(p.SwitchLoad), f2(p.SwitchCores),
			strconv.Itoa(p.SwitchInstances), "-", below(p.SwitchRTTp90us), "-"})
	err := writeTable(w, 1, []string{"ARRANGEMENT", "MPPS", "GB/S L2", "CPU LOAD, CORES", "LOAD/MPPS, % OF 24",
		"CORES/INSTANCE",
		"INSTANCES/24 CORES", "RTT P50 US", "P90", "P99 (MAX)"}, cells)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w,
		"\nInstances here are scaled: 24 cores divided by those that an instance reserves. RTT is ICMP echo UE - PDN "+
			"- UE beside the load%s.\n"+
			"* 128 B, 24 cores, with network cards; here all functions and the tester are on one machine.\n",
		c.loads())
	return err
}

// loads names the parts of the rate at which the RTTs of the table were taken.
func (c *Comparison) loads() string {
	for i := range c.Arrangements {
		if m := c.Arrangements[i].Median; m != nil {
			if rtt := m.typical(); rtt != nil && rtt.Load > 0 {
				return fmt.Sprintf(", at %.0f %% of each row's rate", 100*rtt.Load)
			}
		}
	}
	return ""
}

// typical is the round trip at half the rate, or any other.
func (t *VEPC) typical() *RoundTrip {
	for i := range t.RTT {
		if t.RTT[i].Load == 0.5 {
			return &t.RTT[i]
		}
	}
	if n := len(t.RTT); n > 0 {
		return &t.RTT[n-1]
	}
	return nil
}

// row is an arrangement's line of the table.
func (t *VEPC) row(name string) []string {
	instances := "-"
	for _, n := range t.InstancesBy {
		if n.Cores == paperServer {
			instances = strconv.Itoa(n.Instances) + " (scaled)"
		}
	}
	row := []string{name, unknown(t.Mpps, f3), unknown(t.GbpsL2, f3), unknown(t.LoadCores, f2),
		unknown(t.LoadPerMpps, f2),
		unknown(t.CoresPerInstance, f2), instances, "-", "-", "-"}
	if rtt := t.typical(); rtt != nil {
		row[7], row[8], row[9] = f1(rtt.P50), f1(rtt.P90), f1(rtt.P99)+" ("+f1(rtt.Max)+")"
	}
	return row
}
