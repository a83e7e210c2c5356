// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"isthmus/controlplane/sheet"
)

// peers draws other programs beside ours.
func (r *Report) peers() *section {
	return peerSection(&section{
		ID: SectionPeers, Title: "Other programs on the same link",
		Intro: "The same packets, the same link, the same tester, in the same run and in alternating order. They do " +
			"less work for a packet than the " +
			"gateway, some almost none: read what each does. The ratio is their rate to ours.",
	}, r.Peers)
}

// routers draws routers of several ports.
func (r *Report) routers() *section {
	return peerSection(&section{
		ID: SectionRouters, Title: "Routers of two to six ports",
		Intro: "Figures 5 to 7 of the paper on the aTCA-6200A, without its cards: all ports send to their neighbour " +
			"and back, each program has one CPU and static neighbours, and every packet is compared. The ratio is " +
			"to the product over the same link.",
	}, r.Routers)
}

// peerSection adds groups to a section.
func peerSection(s *section, groups []PeerGroup) *section {
	for _, g := range groups {
		c := &sheet.Plot{Text: g.Title + ": rates of other programs", X: sheet.Axis{Label: "Mpps"},
			Key: []string{"this gateway", "peer", "", "", "", "floor"}}
		t := table{
			Title: "Rates: " +
				g.Title, Left: 3, Note: fmt.Sprintf("Order: %s; %d rounds. Ratio: to this gateway on the "+
				"same link, of rounds side by side.", g.Order, g.Rounds),
			Heads: []string{"program", "link", "mark", "Mpps", "lowest to highest", "of", "ticks", "loss", "ratio"},
		}
		what := table{Title: "What each does: " + g.Title, Left: 4,
			Heads: []string{"program", "version", "does", "packets"}}
		for i := range g.Peers {
			p := &g.Peers[i]
			link := p.Link
			if link == "" {
				link = g.Link
			}
			loss := notApplicable
			if p.Mpps.Has() {
				loss = lossText(p.LossRatio)
				c.Bars = append(c.Bars, p.bar(link, g.Link))
			}
			t.Rows = append(t.Rows, []string{p.Name, link, p.mark(), p.Mpps.Text(mpps),
				p.Mpps.Extent(mpps), whole(p.Mpps.Runs), p.Ticks.Both(ticks), loss,
				p.times()})
			what.Rows = append(what.Rows, []string{p.Name, p.Version, p.does(), p.Packets})
		}
		slices.SortStableFunc(c.Bars, func(a, b sheet.Bar) int { return cmp.Compare(b.Value, a.Value) })
		s.Figures = append(s.Figures, newFigure(g.Title,
			"Bars: medians; the lines across show the lowest and the highest. Floor: programs that move packets and "+
				"do nothing else.", c)...)
		s.Tables = append(s.Tables, newTable(t)...)
		s.Tables = append(s.Tables, newTable(what)...)
	}
	return s
}

// times is its ratio, and how far those of the rounds lie apart.
func (p *Peer) times() string {
	if p.RatioRange.Runs < 2 {
		return ratioText(p.Ratio)
	}
	return ratioText(p.Ratio) + " (" + p.RatioRange.Extent(times) + ")"
}

// mark is why a figure must not be taken at its face.
func (p *Peer) mark() string {
	switch {
	case p.Error != "" && p.Mpps.Has():
		return "PARTIAL: " + p.Error
	case p.Error != "":
		return "NOT MEASURED: " + p.Error
	case p.TesterLimited:
		return "tester-limited"
	}
	return "good"
}

func (p *Peer) does() string {
	first, size := utf8.DecodeRuneInString(p.Note)
	if p.Note == "" {
		return p.Does
	}
	return p.Does + ". " + string(unicode.ToUpper(first)) + p.Note[size:]
}

func (p *Peer) bar(link, usual string) sheet.Bar {
	b := sheet.Bar{Name: p.Name, Value: p.Mpps.Median, Low: p.Mpps.Min, High: p.Mpps.Max, Style: 1,
		Label: mpps(p.Mpps.Median)}
	if p.Ours {
		b.Style = 0
	} else if p.Ratio > 0 {
		b.Label += " · " + ratioText(p.Ratio) + " ours"
	}
	if p.Floor {
		b.Style = 5
	}
	if p.TesterLimited {
		b.Label = "≥ " + b.Label
	}
	if link != usual {
		b.Name += " (" + link + ")"
	}
	return b
}
