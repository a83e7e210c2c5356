// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"

	"isthmus/lab/bench"
	"isthmus/lab/figure"
	"isthmus/lab/peer"
	"isthmus/lab/report"
)

// synthCost is a result on synth ports.
func synthCost(r *bench.Result) report.Cost {
	line := func(name string, bytes int, s bench.Spreads, list []bench.NodeCost) report.CostLine {
		return report.CostLine{
			Name: name, FrameBytes: float64(bytes), Spreads: s, Nodes: list,
		}
	}
	c := report.Cost{
		Profile: r.Profile, Link: bench.LinkSynth, Title: r.Profile, Ratio: r.Ratio,
		Subscribers: r.Subscribers, Flows: r.Flows, TSCHz: r.TSCHz,
		Checked: r.Checked, Wrong: r.Wrong, LossRatio: r.LossRatio,
		Both:     line("both, "+r.Ratio, 0, r.Spread, r.Nodes),
		Uplink:   line("uplink", r.Uplink.FrameBytes, r.Uplink.Spread, r.Uplink.Nodes),
		Downlink: line("downlink", r.Downlink.FrameBytes, r.Downlink.Spread, r.Downlink.Nodes),
	}
	if a := r.Alternate; a != nil {
		other := line("both, "+a.Ratio, 0, a.Spread, []report.Node{})
		c.Alternate = &other
	}
	return c
}

// linkCost is the cost over a link, at the rate found: of both directions, and of each alone.
func linkCost(r *bench.LinkResult, p *bench.Point) report.Cost {
	line := func(name string, d *bench.LinkDirection) report.CostLine {
		out := report.CostLine{Name: name, Spreads: once(d.Cost, d.OwnRange), Nodes: d.Nodes}
		fmt.Sscanf(d.FrameBytes, "%g B", &out.FrameBytes)
		return out
	}
	return report.Cost{
		Profile: r.Profile, Link: r.Link, Title: r.Title, Ratio: p.Reading, Subscribers: r.Subscribers,
		Flows: r.Flows, TSCHz: r.TSCHz,
		Checked: p.Checked, Wrong: p.Wrong, LossRatio: p.LossRatio,
		Both:   report.CostLine{Name: "both, " + p.Reading, Spreads: once(p.Cost, p.OwnRange), Nodes: p.Nodes},
		Uplink: line("uplink", p.Uplink), Downlink: line("downlink", p.Downlink),
	}
}

// once is what was measured a single time, with the range of its difference.
func once(c bench.Cost, own figure.Difference) bench.Spreads {
	return bench.Spreads{Mpps: figure.Once(c.Mpps), Ticks: figure.Once(c.TicksPerPacket),
		Floor: figure.Once(c.FloorTicksPerPacket), Own: own}
}

func populationPoint(r *bench.Result) report.PopulationPoint {
	return report.PopulationPoint{
		Subscribers: r.Subscribers, Flows: r.Flows, Spreads: r.Spread,
		Uplink: r.Uplink.Spread.Ticks, Downlink: r.Downlink.Spread.Ticks,
	}
}

func flowPoint(r *bench.Result) report.FlowPoint {
	return report.FlowPoint{
		Flows: r.Flows, Sessions: r.Sessions, Spreads: r.Spread, Memory: r.MemoryFloor.Ticks,
		HugePages: r.MemoryFloor.HugePages,
		FillTicks: r.Fill.TicksPerPacket, FillFloor: r.Fill.FloorTicksPerPacket,
		FillOwn: figure.Pairs([]float64{float64(r.Fill.TicksPerPacket)},
			[]float64{float64(r.Fill.FloorTicksPerPacket)}),
		InsertsPerSec: figure.Number(r.Fill.InsertsPerSecond), LossRatio: *r.LossRatio, Wrong: r.Wrong,
		Checked: r.Checked,
	}
}

// peerGroup is a comparison.
func peerGroup(rows []peer.Row, profile, title, link string, rounds int) report.PeerGroup {
	g := report.PeerGroup{
		Profile: profile, Title: title, Link: link, Rounds: rounds,
		Order: "there and back, each pair of rounds beginning with the next program",
		Peers: []report.Peer{},
	}
	for i := range rows {
		row := &rows[i]
		p := report.Peer{
			Name: row.Name, Does: row.Does, Note: row.Note, Version: row.Version, Packets: row.Packets, Ours: row.Ours,
			Floor: row.Floor,
			Ratio: row.Ratio, RatioRange: row.RatioRange, LossRatio: row.LossRatio,
			TesterLimited: row.TesterLimited, Error: row.WhyNot, Command: row.Command,
		}
		if row.Link != link {
			p.Link = row.Link
		}
		p.Mpps, p.Ticks = figure.Of(row.Runs...), figure.Once(row.TicksPerPacket)
		g.Peers = append(g.Peers, p)
	}
	return g
}

func instancePoint(r *bench.LinkResult) report.InstancePoint {
	n := r.Instances
	p := report.InstancePoint{Instances: n.Wanted, CPUs: n.Wanted * (r.Workers + 1),
		Mpps: figure.Once(n.SumMpps), Scaling: n.Scaling}
	if k := len(r.Points); k > 0 {
		p.GbpsL2 = r.Points[k-1].GbpsL2
	}
	return p
}

// cannot returns what the machine cannot show, and what was measured all the same.
func cannot(n *bench.Instances) string {
	var received, lost, wrong uint64
	for i := range n.Each {
		received, lost, wrong = received+n.Each[i].Received, lost+n.Each[i].Lost, wrong+n.Each[i].Wrong
	}
	return fmt.Sprintf("Not measured with %d instances: %s. Their speed and scaling cannot be shown on this machine, "+
		"and are not extrapolated. "+
		"They were run side by side at a low rate, to show that they work: %d packets came through, %d were lost, %d "+
		"wrong.",
		n.Wanted, n.Reason, received, lost, wrong)
}
