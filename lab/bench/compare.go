// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"isthmus/controlplane/view"
)

// Comparison is a vepc profile in both I/O arrangements of the paper, in turn: functions attached to each other directly, and
// through a virtual switch that relays every hop.
type Comparison struct {
	Profile      string        `json:"profile"`
	Size         int           `json:"frame_bytes"`
	Sessions     int           `json:"sessions"`
	Rounds       int           `json:"rounds"` // wanted
	Command      string        `json:"command"`
	Interrupted  bool          `json:"interrupted"`
	Arrangements []Arrangement `json:"arrangements"`
	Paper        VEPCPaper     `json:"paper"` // at 128 B
}

// Arrangement is one of the two.
type Arrangement struct {
	Name    string        `json:"name"`
	Switch  string        `json:"switch"`
	Missing string        `json:"missing,omitempty"` // why it was not measured
	Error   string        `json:"error,omitempty"`   // of the run that failed
	Median  *VEPC         `json:"median"`            // the run with the median rate
	Results []*LinkResult `json:"results"`
}

// missing tells why a switch cannot run here; nil: it can.
func missing(word string) error {
	if word == SwitchOVS {
		return missingOVS()
	}
	return nil
}

// Compare measures both arrangements, alternating. A result comes back whenever something was measured, also beside an error.
func Compare(ctx context.Context, opt Options, rounds int) (*Comparison, error) {
	size, ok := vepcSize(opt.Profile)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s has no arrangements to compare; vepc profiles have", opt.Profile)
	case opt.Combined:
		return nil, errors.New("combined, nothing is between the functions: there is no arrangement to compare")
	case rounds < 1:
		return nil, fmt.Errorf("%d rounds: one is the least", rounds)
	}
	if _, err := newScene(opt, 0); err != nil {
		return nil, err
	}
	c := &Comparison{
		Profile: opt.Profile, Size: size, Sessions: opt.Sessions, Rounds: rounds, Command: opt.Command, Paper: vepcPaper(),
		Arrangements: []Arrangement{{Name: "direct (memif)", Switch: SwitchNone}, {Name: "switch (ovs, vhost-user)", Switch: SwitchOVS}},
	}
	err := c.run(ctx, rounds, func(ctx context.Context, word string) (*LinkResult, error) {
		one := opt
		one.Switch = word
		if one.Keep != "" {
			one.Keep += "/" + word
		}
		return Measure(ctx, one)
	})
	return c, err
}

// run fills the arrangements by what measure finds.
func (c *Comparison) run(ctx context.Context, rounds int, measure func(ctx context.Context, word string) (*LinkResult, error)) error {
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
			r, err := measure(ctx, a.Switch)
			if r != nil && len(r.Points) > 0 {
				a.Results = append(a.Results, r)
			}
			if err != nil && ctx.Err() == nil { // the other one is still worth its time
				a.Error = err.Error()
			}
		}
	}
	c.Interrupted = ctx.Err() != nil
	for i := range c.Arrangements {
		c.Arrangements[i].choose()
	}
	if c.Interrupted && !slices.ContainsFunc(c.Arrangements, func(a Arrangement) bool { return len(a.Results) > 0 }) {
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
		a.Median = sorted[(n-1)/2].VEPC
	}
}

// Verdict is nil when every run was right. An arrangement that cannot run here is none.
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

// WriteJSON writes both arrangements' results.
func (c *Comparison) WriteJSON(file string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// Print writes one table, with the paper's rows. Its columns are the paper's.
func (c *Comparison) Print(w io.Writer) error {
	fmt.Fprintf(w, "UE - eNodeB - SGW-U - PGW-U - PDN and back, %d B, %d sessions, %d round(s), alternating\n\n", c.Size, c.Sessions, c.Rounds)
	var cells [][]string
	var notes []string
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
		if a.Missing != "" {
			notes = append(notes, a.Name+" was not measured: "+a.Missing)
		}
		cells = append(cells, row)
	}
	p := &c.Paper
	below := func(us float64) string { return "< " + f1(us) }
	cells = append(cells,
		[]string{"paper, SR-IOV + offload *", f1(p.Mpps), f1(p.Gbps), f2(p.Load * paperServer), f1(p.LoadPerMpps), f2(p.CoresPerInstance),
			strconv.Itoa(p.Instances), "-", below(p.RTTp90us), "-"},
		[]string{"paper, virtual switch *", f1(p.SwitchMpps), f1(p.SwitchGbps), f2(p.SwitchBusy * paperServer), f1(p.SwitchLoad), f2(p.SwitchCores),
			strconv.Itoa(p.SwitchInstances), "-", below(p.SwitchRTTp90us), "-"})
	err := view.WriteTable(w, []string{"ARRANGEMENT", "MPPS", "GB/S L2", "CPU LOAD, CORES", "LOAD/MPPS, % OF 24", "CORES/INSTANCE",
		"INSTANCES/24 CORES", "RTT P50 US", "P90", "P99 (MAX)"}, append([]bool{false}, slices.Repeat([]bool{true}, 9)...), cells)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nInstances here are scaled: 24 cores divided by those that an instance reserves. RTT is ICMP echo UE - PDN - UE beside the load%s.\n"+
		"* 128 B, 24 cores, with network cards; here all functions and the tester are on one machine.\n", c.loads())
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
	return nil
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

// typical is the round trip at half the rate, or whichever there is.
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
	row := []string{name, strconv.FormatFloat(t.Mpps, 'f', 3, 64), strconv.FormatFloat(t.GbpsL2, 'f', 3, 64), f2(t.LoadCores),
		f2(t.LoadPerMpps), f2(t.CoresPerInstance), instances, "-", "-", "-"}
	if rtt := t.typical(); rtt != nil {
		row[7], row[8], row[9] = f1(rtt.P50), f1(rtt.P90), f1(rtt.P99)+" ("+f1(rtt.Max)+")"
	}
	return row
}
