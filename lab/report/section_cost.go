// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"isthmus/controlplane/sheet"
)

// These sections show costs inside the gateway.

// isPort: a node is the port's own work, which the floor has, too.
func isPort(name string) bool { return strings.HasPrefix(name, "port-") }

func (r *Report) cost() *section {
	s := &section{
		ID: SectionCost, Title: "Where the time goes",
		Intro: "Ticks of the time stamp counter for each packet that one worker receives, stage by stage. With synth " +
			"ports packets are made and taken " +
			"inside the graph: there is no link, only the gateway's work and the floor of these ports.",
	}
	total := table{
		Title: "Ticks a packet", Left: 3,
		Heads: []string{"profile", "link", "direction", "frame B", "ticks: total", "floor", "own",
			"total, lowest to highest", "Mpps", "of"},
		Note: ticksNote,
	}
	nodes := table{
		Title: "Nodes", Left: 4, Fold: true, Heads: []string{"profile", "link", "direction", "node",
			"ticks of each received", "ticks of its packets", "packets a call"},
	}
	for i := range r.Costs {
		c := &r.Costs[i]
		name := c.Profile
		for _, line := range []*CostLine{&c.Uplink, &c.Downlink} {
			if len(line.Nodes) == 0 {
				continue
			}
			s.Figures = append(s.Figures, newFigure(fmt.Sprintf("%s, %s: %s, %s B", name, c.Link, line.Name,
				bytesOf(line.FrameBytes)), "", nodeChart(name, line))...)
			for _, n := range line.Nodes {
				nodes.Rows = append(nodes.Rows, []string{name, c.Link, line.Name, n.Name, ticks(n.Share),
					ticks(n.TicksPerPacket), ticks(n.PacketsPerCall)})
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
func nodeChart(profile string, line *CostLine) *sheet.Plot {
	c := &sheet.Plot{
		Text: fmt.Sprintf("%s, %s: ticks of each node", profile, line.Name),
		X:    sheet.Axis{Label: "ticks for each received packet"},
		Key:  []string{"gateway", "", "", "", "", "port"},
	}
	sum := 0.0
	for _, n := range line.Nodes {
		sum += n.Share
	}
	rest, small := 0.0, 0
	for _, n := range line.Nodes {
		// Invisibly small parts stay in the table.
		if n.Share < sum/200 {
			rest, small = rest+n.Share, small+1
			continue
		}
		style := 0
		if isPort(n.Name) {
			style = 5
		}
		c.Bars = append(c.Bars, sheet.Bar{
			Name: n.Name, Value: n.Share, Style: style,
			Label: fmt.Sprintf("%s · %s", ticks(n.Share), percentOf(n.Share, sum)),
		})
	}
	if small > 0 {
		c.Bars = append(c.Bars,
			sheet.Bar{Name: numbered(small, "other"), Value: rest, Label: ticks(rest), Style: 5})
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
		Intro: "The same cost with more and more subscribers whose flows come in random order: tables leave the " +
			"caches. On synth ports, one worker.",
	}
	t := table{
		Title: "Cost by subscribers", Left: 1,
		Heads: []string{"profile", "subscribers", "flows", "ticks: total", "floor", "own", "total, lowest to highest",
			"uplink", "downlink", "Mpps"},
	}
	for _, set := range r.Subscribers {
		c := &sheet.Plot{Text: set.Title + ": ticks a packet against subscribers",
			X: sheet.Axis{Label: "subscribers"}, Y: sheet.Axis{Label: "ticks a packet", Zero: true}}
		lines := []sheet.Line{{Name: "both", Style: 0}, {Name: "uplink", Style: 1},
			{Name: "downlink", Style: 2}, {Name: "floor", Style: 5, Dashed: true}}
		for i, p := range set.Points {
			c.X.Names = append(c.X.Names, whole(p.Subscribers))
			addSpreads(lines, i, p.Ticks, p.Uplink, p.Downlink, p.Floor)
			t.Rows = append(t.Rows, []string{set.Profile, whole(p.Subscribers), whole(p.Flows),
				p.Ticks.Text(ticks), p.Floor.Both(ticks),
				ownTicks(p.Own), p.Ticks.Extent(ticks), p.Uplink.Both(ticks),
				p.Downlink.Both(ticks), p.Mpps.Both(mpps)})
		}
		c.Lines = measured(lines...)
		s.Figures = append(s.Figures, newFigure(set.Title, "", c)...)
	}
	s.Tables = newTable(t)
	return s
}
