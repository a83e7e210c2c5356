// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// These sections show costs inside the gateway.

// isPort says whether a node is the port's own work, which the floor has, too.
func isPort(name string) bool { return strings.HasPrefix(name, "port-") }

func (r *Report) cost() *section {
	s := &section{
		ID: SectionCost, Title: "Where the time goes",
		Intro: "Ticks of the time stamp counter for each packet that one worker receives, stage by stage. With synth ports packets are made and taken " +
			"inside the graph: there is no link, only the gateway's work and the floor of these ports.",
	}
	total := table{
		Title: "Ticks a packet", Left: 3,
		Heads: []string{"profile", "link", "direction", "frame B", "ticks: total", "floor", "own", "total, lowest to highest", "Mpps", "of"},
		Note:  ticksNote,
	}
	nodes := table{
		Title: "Nodes", Left: 4, Fold: true, Heads: []string{"profile", "link", "direction", "node", "ticks of each received", "ticks of its packets", "packets a call"},
	}
	for i := range r.Costs {
		c := &r.Costs[i]
		name := c.Profile
		for _, line := range []*CostLine{&c.Uplink, &c.Downlink} {
			if len(line.Nodes) == 0 {
				continue
			}
			s.Figures = append(s.Figures, newFigure(fmt.Sprintf("%s, %s: %s, %s B", name, c.Link, line.Name, bytesOf(line.FrameBytes)), "", nodeChart(name, line))...)
			for _, n := range line.Nodes {
				nodes.Rows = append(nodes.Rows, []string{name, c.Link, line.Name, n.Name, ticks(n.Share), ticks(n.TicksPerPacket), ticks(n.PacketsPerCall)})
			}
		}
		for _, line := range []*CostLine{&c.Uplink, &c.Downlink, &c.Both, c.Alternate} {
			if line == nil || !line.Ticks.Has() {
				continue
			}
			size := notApplicable
			if line.FrameBytes > 0 {
				size = bytesOf(line.FrameBytes)
			}
			total.Rows = append(total.Rows, []string{name, c.Link, line.Name, size,
				line.Ticks.Text(ticks), line.Floor.Both(ticks), ownTicks(line.Own),
				line.Ticks.Extent(ticks), line.Mpps.Both(mpps), whole(line.Ticks.Runs)})
		}
	}
	s.Tables = append(newTable(total), newTable(nodes)...)
	return s
}

// nodeChart ranks the nodes of one direction.
func nodeChart(profile string, line *CostLine) *barChart {
	c := &barChart{
		text: words("%s, %s: ticks of each node", profile, line.Name), label: "ticks for each received packet",
		key: []string{"gateway", "", "", "", "", "port"},
	}
	sum := 0.0
	for _, n := range line.Nodes {
		sum += n.Share
	}
	rest, small := 0.0, 0
	for _, n := range line.Nodes {
		// What is too small to see stays in the table.
		if n.Share < sum/200 {
			rest, small = rest+n.Share, small+1
			continue
		}
		style := 0
		if isPort(n.Name) {
			style = 5
		}
		c.bars = append(c.bars, bar{
			name: n.Name, value: n.Share, style: style, label: words("%s · %s", ticks(n.Share), percentOf(n.Share, sum)),
			title: words("%s: %s ticks for each received packet, %s packets a call", n.Name, ticks(n.Share), ticks(n.PacketsPerCall)),
		})
	}
	if small > 0 {
		c.bars = append(c.bars, bar{name: numbered(small, "other"), value: rest, label: ticks(rest), style: 5})
	}
	return c
}

func percentOf(v, all float64) string {
	if all == 0 {
		return notApplicable
	}
	return fixed(100*v/all, 0) + " %"
}

// population draws the cost against the number of subscribers.
func (r *Report) population() *section {
	s := &section{
		ID: SectionSubscribers, Title: "Sensitivity to the number of subscribers",
		Intro: "The same cost with more and more subscribers whose flows come in random order: tables leave the caches. On synth ports, one worker.",
	}
	t := table{
		Title: "Cost by subscribers", Left: 1,
		Heads: []string{"profile", "subscribers", "flows", "ticks: total", "floor", "own", "total, lowest to highest", "uplink", "downlink", "Mpps"},
	}
	for _, set := range r.Subscribers {
		c := &chart{text: set.Title + ": ticks a packet against subscribers", x: axis{label: "subscribers"}, y: axis{label: "ticks a packet", zero: true}}
		lines := []series{{name: "both", style: 0}, {name: "uplink", style: 1}, {name: "downlink", style: 2}, {name: "floor", style: 5, dashed: true}}
		for i, p := range set.Points {
			c.x.names = append(c.x.names, whole(p.Subscribers))
			for k, v := range []Spread{p.Ticks, p.Uplink, p.Downlink, p.Floor} {
				if v.Has() {
					lines[k].points = append(lines[k].points, point{float64(i), v.Median, v.Min, v.Max,
						fmt.Sprintf("%s subscribers, %s: %s ticks",
							whole(p.Subscribers), lines[k].name, v.Text(ticks))})
				}
			}
			t.Rows = append(t.Rows, []string{set.Profile, whole(p.Subscribers), whole(p.Flows),
				p.Ticks.Text(ticks), p.Floor.Both(ticks),
				ownTicks(p.Own), p.Ticks.Extent(ticks), p.Uplink.Both(ticks),
				p.Downlink.Both(ticks), p.Mpps.Both(mpps)})
		}
		for _, l := range lines {
			if len(l.points) > 0 {
				c.series = append(c.series, l)
			}
		}
		s.Figures = append(s.Figures, newFigure(set.Title, "", c)...)
	}
	s.Tables = newTable(t)
	return s
}
