// SPDX-License-Identifier: Apache-2.0

// Package l3fwd compares routers: the product, Linux, DPDK's l3fwd and l3fwd-graph. Each runs on one CPU, with two,
// four and six ports and frames of several sizes, over several kinds of links. The packets and the tester are the same
// for all.
package l3fwd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"isthmus/lab/bench"
	"isthmus/lab/figure"
	"isthmus/lab/peer"
	"isthmus/lab/tester"
)

// Profile is the name of the comparison.
const Profile = "l3fwd"

// MaxPorts of a comparison.
const MaxPorts = 6

// Links in the order of the tables.
var Links = []string{bench.LinkMemif, bench.LinkShare, bench.LinkVirtio, bench.LinkAFPacket, bench.LinkAFXDP}

// Options of a comparison.
type Options struct {
	Bench  bench.Options // Workers is 1; Link is not used
	Ports  int           // 0: 2, 4, 6
	Link   string        // empty: Links
	Peers  bool          // others beside the product
	Rounds int
	Say    func(format string, args ...any)
}

// Result of a comparison. The first fields are those of every benchmark, of the first point and the product.
type Result struct {
	Profile   string            `json:"profile"`
	Link      string            `json:"link"`
	Workers   int               `json:"workers"`
	Seconds   float64           `json:"seconds"` // of a trial
	Mpps      figure.Number     `json:"mpps"`
	GbpsL2    figure.Number     `json:"gbps_l2"`
	GbpsL1    figure.Number     `json:"gbps_l1"`
	Ticks     figure.Number     `json:"ticks_per_packet"`
	LossRatio *float64          `json:"loss_ratio"`
	Latency   *tester.Histogram `json:"latency_us"`
	Peers     []peer.Row        `json:"peers"`

	Goal        float64 `json:"goal"`
	Rounds      int     `json:"rounds"`
	Order       string  `json:"order"`
	Command     string  `json:"command"`
	Started     string  `json:"started"`
	CPU         int     `json:"cpu"`
	HugePages   bool    `json:"huge_pages"`
	Complete    bool    `json:"complete"`
	Interrupted bool    `json:"interrupted"`
	Points      []Point `json:"points"`
}

// Point is one number of ports and size of frames.
type Point struct {
	Ports    int     `json:"ports"`
	Bytes    int     `json:"frame_bytes"`
	Figure   string  `json:"figure"`    // of the paper
	LineGbps float64 `json:"line_gbps"` // of its ports together, in one direction
	Rows     []Row   `json:"rows"`
}

// Row is one program over one link.
type Row struct {
	peer.Row
	LineShare   figure.Number `json:"line_share"`   // of the paper's ports at this frame size, 1 is all
	CPUPerMpps  figure.Number `json:"cpu_per_mpps"` // percent of a CPU: all of it is busy
	OfLinuxVeth figure.Number `json:"of_linux"`     // its rate to the best of Linux over veth, with as many CPUs
}

// figures of the paper (ADLINK, aTCA-6200A), by the number of ports: what they carry at line rate.
var figures = map[int]struct {
	name string
	gbps float64
}{4: {"5: four 1GbE ports", 4}, 2: {"6: two 10GbE ports", 20}, 6: {"7: two 10GbE and four 1GbE ports", 24}}

// sizes are those of the paper's figures and RFC 2544.
func (o *Options) sizes() []int {
	switch {
	case o.Bench.Size != 0:
		return []int{o.Bench.Size}
	case o.Bench.Quick:
		return []int{64, 512, 1518}
	}
	return []int{64, 128, 256, 512, 1024, 1280, 1518}
}

func (o *Options) ports() []int {
	switch {
	case o.Ports != 0:
		return []int{o.Ports}
	case o.Bench.Quick:
		return []int{2, MaxPorts}
	}
	return []int{2, 4, MaxPorts}
}

func (o *Options) check() error {
	if o.Ports%2 != 0 || o.Ports < 0 || o.Ports > MaxPorts {
		return fmt.Errorf("%d ports: 2, 4 or %d are compared", o.Ports, MaxPorts)
	}
	if s := o.Bench.Size; s != 0 && (s < 64 || s > 1518) {
		return fmt.Errorf("%d B: an Ethernet frame has 64 to 1518", s)
	}
	if o.Link != "" && !slices.Contains(Links, o.Link) {
		return fmt.Errorf("routers are not compared over %s", o.Link)
	}
	if o.Bench.Workers != 1 || len(o.Bench.CPUs) != 1 || len(o.Bench.TesterCPUs) == 0 {
		return errors.New("routers are compared on one pinned CPU: give --cpus and --tester-cpus")
	}
	return nil
}

// Run measures. A result comes back whenever something was measured, also beside an error.
func Run(ctx context.Context, opt Options) (*Result, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	b := &opt.Bench
	r := &Result{
		Profile: Profile, Workers: 1, Seconds: b.Seconds, Goal: b.Goal, Rounds: opt.Rounds,
		Order: peer.OrderWords, Command: b.Command, Started: time.Now().Format(time.RFC3339), CPU: b.CPUs[0],
		HugePages: !b.NoHuge, Points: []Point{},
	}
	// All compared programs have the same CPUs for their other threads.
	restore, err := bench.Confine(b.ControlCPUs)
	if err != nil {
		return nil, err
	}
	defer restore()
	for _, ports := range opt.ports() {
		for _, size := range opt.sizes() {
			rows, err := opt.point(ctx, ports, size)
			if len(rows) > 0 {
				r.add(ports, size, rows)
			}
			if err != nil {
				r.Interrupted = ctx.Err() != nil
				if r.Interrupted && len(r.Points) > 0 {
					err = nil
				}
				return r, err
			}
		}
	}
	r.Complete = true
	return r, nil
}

// ends are those of a number of ports.
func ends(ports int) []peer.End {
	var list []peer.End
	for i := range ports {
		list = append(list, peer.End{
			Name: fmt.Sprintf("p%d", i), MAC: fmt.Sprintf("02:00:00:f0:%02x:01", i),
			FarMAC: fmt.Sprintf("02:00:00:f0:%02x:02", i),
		})
	}
	return list
}

// flows of each port.
const flows = 4096

// base is the common input, and the tester's plan.
func (o *Options) base(list []peer.End, size int) *tester.Profile {
	b := &o.Bench
	p := &tester.Profile{
		Name: Profile, Title: fmt.Sprintf("%d ports, %d B", len(list), size), CPUs: b.TesterCPUs,
		GatewayCPU: &b.CPUs[0], HugePages: !b.NoHuge, Run: bench.SearchPlan(*b),
	}
	if b.NoHuge {
		p.MemoryMB = 1024
	}
	for i, e := range list {
		p.Ports = append(p.Ports, tester.Port{Name: e.Name, MAC: e.FarMAC, MTU: 1600})
		p.Streams = append(p.Streams, tester.Stream{
			Name: e.Name, Port: e.Name, Sink: list[i^1].Name, Share: 1, Flows: flows, Order: "random",
			Seed: i + 1, Size: tester.Size(size),
		})
	}
	return p
}

// point measures all programs with some ports and a size.
func (o *Options) point(ctx context.Context, ports, size int) ([]peer.Row, error) {
	o.Say("%d ports, %d B", ports, size)
	b := &o.Bench
	list := ends(ports)
	base := o.base(list, size)
	setup := peer.Setup{CPU: b.CPUs[0], MainCPU: b.TesterCPUs[0], Descriptors: 1024, NoHuge: b.NoHuge, Ends: list}
	measure := func(ctx context.Context, name string, r *peer.Running, p *tester.Profile) (*tester.Result, error) {
		end := bench.End{Name: name, Exited: r.Exited, Words: r.Words}
		return bench.RunAgainst(ctx, end, p, bench.TesterOptions{Engine: b.TesterBin, NoHuge: b.NoHuge})
	}
	opt := peer.Options{Setup: setup, Repetitions: o.Rounds, Base: base, Latency: base.Run.Latency, Say: o.Say}
	return peer.RunAll(ctx, o.programs(list), opt, measure)
}

// programs are those that are compared.
func (o *Options) programs(list []peer.End) []*peer.Peer {
	var all []*peer.Peer
	for _, link := range Links {
		if o.Link != "" && o.Link != link {
			continue
		}
		all = append(all, o.ours(link, list))
		if o.Peers {
			all = append(all, peer.Forwarders(peerLink(link))...)
		}
	}
	return all
}

// peerLink is the peers' name of a link.
func peerLink(link string) string {
	if link == bench.LinkAFPacket {
		return peer.LinkVeth
	}
	return link
}

// ours is the product as a router.
func (o *Options) ours(link string, list []peer.End) *peer.Peer {
	opt := o.Bench
	opt.Link = link
	var routers []bench.RouterEnd
	for i, e := range list {
		net := netip.PrefixFrom(netip.MustParseAddr(peer.Network(i)), 24)
		routers = append(routers, bench.RouterEnd{Name: e.Name, MAC: e.MAC, FarMAC: e.FarMAC, Network: net})
	}
	return &peer.Peer{
		Name: "isthmus", Does: "the router: all header checks, routes, neighbours, counters",
		Link: peerLink(link), Ours: true, Packets: peer.Plain, Change: peer.NewMACsTTL,
		Version: func(context.Context, *peer.Setup) (string, error) { return opt.Version, nil },
		Start: func(ctx context.Context, _ peer.Setup) (*peer.Running, error) {
			r, err := bench.StartRouter(ctx, opt, routers)
			if err != nil {
				return nil, err
			}
			return &peer.Running{
				Command: r.Command(), Ports: r.Ports(), Exited: r.Exited(), Words: r.Words,
				Stop: r.Stop,
			}, nil
		},
	}
}

// linuxRate is the best of Linux over veth; 0: not measured.
func linuxRate(rows []peer.Row) (best figure.Number) {
	for i := range rows {
		if rows[i].Name == peer.Linux {
			best = max(best, rows[i].Mpps)
		}
	}
	return best
}

// add makes a point of rows.
func (r *Result) add(ports, size int, rows []peer.Row) {
	paper := figures[ports]
	p := Point{Ports: ports, Bytes: size, Figure: paper.name, LineGbps: paper.gbps}
	linux := linuxRate(rows)
	for i := range rows {
		row := Row{Row: rows[i]}
		if row.Mpps > 0 {
			row.LineShare = row.Mpps * figure.Number(float64(size+20)*8/1000/paper.gbps)
		}
		if row.Mpps > 0 && !row.FixedRate { // the offered rate, not its limit
			row.CPUPerMpps = 100 / row.Mpps
			if linux > 0 {
				row.OfLinuxVeth = row.Mpps / linux
			}
		}
		p.Rows = append(p.Rows, row)
	}
	r.Points = append(r.Points, p)
	if len(r.Points) > 1 {
		return
	}
	for i := range rows {
		if first := &rows[i]; first.Ours && first.Mpps > 0 {
			r.Link, r.Mpps, r.GbpsL2, r.Ticks = first.Link, first.Mpps, first.GbpsL2, first.TicksPerPacket
			r.GbpsL1 = first.Mpps * figure.Number(size+20) * 8 / 1000
			r.LossRatio, r.Latency, r.Peers = first.LossRatio, first.Latency, rows
			return
		}
	}
}

// Verdict is nil when the product forwarded at every point over every link, within the goal.
func (r *Result) Verdict() error {
	var failed []error
	for _, p := range r.Points {
		for i := range p.Rows {
			row := &p.Rows[i]
			why := row.WhyNot
			if why == "" && row.LossRatio != nil && *row.LossRatio > r.Goal {
				why = fmt.Sprintf("%g %% lost", 100**row.LossRatio)
			}
			if row.Ours && why != "" {
				failed = append(failed, fmt.Errorf("%d ports, %d B, %s: %s", p.Ports, p.Bytes, row.Link, why))
			}
		}
	}
	if !r.Complete && len(failed) == 0 {
		failed = append(failed, errors.New("interrupted"))
	}
	return errors.Join(failed...)
}
