// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"isthmus/api"
	"isthmus/lab/figure"
)

type hello = api.Hello

// Direction is the cost of one direction alone.
type Direction struct {
	Cost
	FrameBytes int        `json:"frame_bytes"`
	Spread     Spreads    `json:"spread"`
	Nodes      []NodeCost `json:"nodes"`
}

// Result is the JSON of a benchmark on synth ports.
type Result struct {
	Common
	Uplink      Direction    `json:"uplink"`
	Downlink    Direction    `json:"downlink"`
	LatencyUs   *struct{}    `json:"latency_us"` // not measured
	Peers       []struct{}   `json:"peers"`
	Sessions    int          `json:"sessions,omitempty"` // of a mobile function
	Ratio       string       `json:"ratio"`
	Spread      Spreads      `json:"spread"`
	Nodes       []NodeCost   `json:"nodes"`
	CheckPass   CheckPass    `json:"check_pass"`
	Alternate   *Alternate   `json:"alternate,omitempty"`
	Fill        *Fill        `json:"fill,omitempty"` // of a flow profile; what else is here is of known flows
	MemoryFloor *MemoryFloor `json:"memory_floor,omitempty"`
	Versions    Versions     `json:"versions"`
	WrongFrame  string       `json:"wrong_frame,omitempty"`
}

// CheckPass is the outcome of the pass that compares every packet.
type CheckPass struct {
	Offered uint64            `json:"offered"`
	Checked uint64            `json:"checked"`
	Wrong   uint64            `json:"wrong"`
	Lost    uint64            `json:"lost"`
	Dropped map[string]uint64 `json:"dropped"`
}

// Alternate is the other reading of the paper's ratio.
type Alternate struct {
	Ratio string `json:"ratio"`
	Cost
	GbpsL2 figure.Number `json:"gbps_l2"`
	Spread Spreads       `json:"spread"`
}

// Versions of what took part.
type Versions struct {
	Isthmus   string `json:"isthmus"`
	DataPlane string `json:"isthmus_dp"`
	Kernel    string `json:"kernel"`
}

func round1(v float64) float64 { return math.Round(v*10) / 10 }
func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

func (p *phase) spreads() Spreads {
	ticks := func(s *slice) float64 { return s.ticks }
	return Spreads{
		Mpps:  spread(p.work, func(s *slice) float64 { return s.mpps }).Rounded(round3),
		Ticks: spread(p.work, ticks).Rounded(round1),
		Floor: spread(p.floor, ticks).Rounded(round1),
		Own:   figure.Pairs(each(p.work, ticks), each(p.floor, ticks)).Rounded(round1),
	}
}

func (p *phase) direction(size int) Direction {
	s := p.spreads()
	return Direction{s.cost(), size, s, p.nodes}
}

func (m *measurement) result() *Result {
	s := m.both.spreads()
	gbps := func(p *phase, f func(*slice) float64) figure.Number {
		return figure.Rounded(spread(p.work, f).Median/1e9, 3)
	}
	l2 := func(s *slice) float64 { return s.bits }
	r := &Result{
		Common: Common{
			Profile: m.profile.Name, Link: LinkSynth, Workers: m.options.Workers,
			Seconds: m.options.Seconds, Cost: s.cost(), LossRatio: new(float64), GbpsL2: gbps(m.both, l2),
			GbpsL1:  gbps(m.both, func(s *slice) float64 { return s.wire }),
			Offered: m.load.offered, Received: m.load.received, Dropped: m.load.dropped,
			Checked: m.check.checked + m.load.checked, Wrong: m.check.wrong + m.load.wrong,
			LoadSeconds: round3(m.loaded.Seconds()),
			StealRatio:  m.steal.ratio(), Command: m.options.Command,
			PaperMpps: figure.Number(m.profile.Paper), PaperCycles: figure.Number(m.profile.PaperCycles),
		},
		Uplink: m.uplink.direction(m.profile.Uplink), Downlink: m.downlink.direction(m.profile.Downlink),
		Peers: []struct{}{}, Ratio: m.profile.Reading, Spread: s, Nodes: m.both.nodes,
		CheckPass: CheckPass{m.check.offered, m.check.checked, m.check.wrong, m.check.lost, m.check.dropped},
		Versions:  Versions{m.options.Version, api.CString(m.hello.Build[:]), kernel()}, Fill: m.fill,
		WrongFrame: cmp.Or(m.check.example, m.load.example),
	}
	r.machine(&m.hello)
	m.layout.describe(r)
	if r.Offered > 0 {
		*r.LossRatio = float64(m.load.lost) / float64(r.Offered)
	}
	if m.more != nil {
		a := m.more.spreads()
		r.Alternate = &Alternate{m.profile.Alternate, a.cost(), gbps(m.more, l2), a}
	}
	return r
}

// loss is the lost part of the offered packets.
func (c *Common) loss() float64 {
	if c.LossRatio == nil {
		return 0
	}
	return *c.LossRatio
}

// Verdict returns why a result is not good, or nil.
func (r *Result) Verdict() error {
	target := lossTarget
	if r.Fill != nil { // flow profiles lose nothing
		target = 0
	}
	switch {
	case r.CheckPass.Checked == 0:
		return fmt.Errorf("no packet came through: dropped %s", reasons(r.CheckPass.Dropped))
	case r.Wrong > 0:
		return fmt.Errorf("%d of %d compared packets were wrong; %s", r.Wrong, r.Checked, r.WrongFrame)
	case r.CheckPass.Lost > 0:
		return fmt.Errorf("%d of %d packets were lost while every packet was compared: dropped %s", r.CheckPass.Lost,
			r.CheckPass.Offered, reasons(r.CheckPass.Dropped))
	case r.loss() > target:
		return fmt.Errorf("loss of %.6f %% is above the target of %.3f %%: dropped %s", 100*r.loss(),
			100*target, reasons(r.Dropped))
	}
	return nil
}

// reasons prints drop counts: "3 by policed, 1 by no-route".
func reasons(dropped map[string]uint64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(dropped)) {
		list = append(list, fmt.Sprintf("%d by %s", dropped[name], name))
	}
	if len(list) == 0 {
		return "none by the gateway"
	}
	return strings.Join(list, ", ")
}

// WriteJSON writes the machine-readable result.
func (r *Result) WriteJSON(file string) error {
	return WriteJSON(file, r)
}

// WriteJSON writes a result for programs.
func WriteJSON(file string, result any) error {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func fixed(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }

func f1[N ~float64](v N) string { return fixed(float64(v), 1) }
func f2[N ~float64](v N) string { return fixed(float64(v), 2) }
func f3[N ~float64](v N) string { return fixed(float64(v), 3) }

// Print writes the result for people.
func (r *Result) Print(w io.Writer) error {
	huge := "huge pages"
	if !r.HugePages {
		huge = "no huge pages (slower)"
	}
	what := fmt.Sprintf("%d subscribers, %d flows, %d + %d firewall rules", r.Subscribers, r.Flows, r.Blocklist,
		r.Rules)
	if r.Sessions > 0 {
		what = fmt.Sprintf("%d sessions, %d flows in random order", r.Sessions, r.Flows)
	}
	fmt.Fprintf(w, "%s: %s, %d worker(s), synth ports, %s\n", r.Profile, what, r.Workers, huge)
	fmt.Fprintf(w, "%s, TSC %.0f MHz, steal %.1f %%\n\n", r.CPU, float64(r.TSCHz)/1e6, 100*r.StealRatio)
	line := func(what string, s Spreads, gbps string) []string {
		return []string{
			what, f2(s.Mpps.Median), gbps, f1(s.Ticks.Median), f1(s.Floor.Median), s.Own.Words(1),
			s.Own.Range(1), s.Ticks.Range(1),
		}
	}
	cells := [][]string{
		line(fmt.Sprintf("uplink %d B", r.Uplink.FrameBytes), r.Uplink.Spread, ""),
		line(fmt.Sprintf("downlink %d B", r.Downlink.FrameBytes), r.Downlink.Spread, ""),
		line("both, "+r.Ratio, r.Spread, f2(r.GbpsL2)),
	}
	if a := r.Alternate; a != nil {
		cells = append(cells, line("both, "+a.Ratio, a.Spread, f2(a.GbpsL2)))
	}
	titles := []string{"DIRECTION", "MPPS", "GB/S L2", "TICKS: TOTAL", "FLOOR", "OWN", "OF PAIRS",
		"TOTAL, MIN..MAX"}
	if err := writeTable(w, 1, titles, cells); err != nil {
		return err
	}
	if err := r.printFlows(w); err != nil {
		return err
	}
	if err := r.printNodes(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nchecked %d packets, %d wrong; offered %d, received %d, loss %.6f %% (%s); state "+
		"loaded in %.2f s\n",
		r.Checked, r.Wrong, r.Offered, r.Received, 100*r.loss(), reasons(r.Dropped), r.LoadSeconds)
	return err
}

func (r *Result) printNodes(w io.Writer) error {
	for _, d := range []struct {
		what  string
		nodes []NodeCost
	}{{"uplink", r.Uplink.Nodes}, {"downlink", r.Downlink.Nodes}} {
		fmt.Fprintln(w)
		var cells [][]string
		for _, n := range d.nodes {
			cells = append(cells, []string{n.Name, f1(n.TicksPerPacket), f1(n.Share), f1(n.PacketsPerCall)})
		}
		titles := []string{strings.ToUpper(d.what) + " NODE", "TICKS/PACKET", "OF EACH RECEIVED", "PACKETS/CALL"}
		if err := writeTable(w, 1, titles, cells); err != nil {
			return err
		}
	}
	return nil
}

// steal is CPU time that the machine under us took, and all time, in clock ticks.
type steal struct{ stolen, all uint64 }

func readSteal() steal {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return steal{}
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	var s steal
	if in.Scan() {
		for i, word := range strings.Fields(in.Text())[1:] {
			n, _ := strconv.ParseUint(word, 10, 64)
			if i < 8 {
				s.all += n
			}
			if i == 7 {
				s.stolen = n
			}
		}
	}
	return s
}

func (s steal) since(before steal) steal { return steal{s.stolen - before.stolen, s.all - before.all} }

func (s steal) ratio() float64 {
	if s.all == 0 {
		return 0
	}
	return round3(float64(s.stolen) / float64(s.all))
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
