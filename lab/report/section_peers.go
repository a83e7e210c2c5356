// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// peers draws other programs beside ours.
func (r *Report) peers() *section {
	return peerSection(&section{
		ID: SectionPeers, Title: "Other programs on the same link",
		Intro: "The same packets, the same link, the same tester, in the same run and in alternating order. They do less work for a packet than the " +
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
		c := &barChart{text: g.Title + ": rates of other programs", label: "Mpps", key: []string{"this gateway", "peer", "", "", "", "floor"}}
		t := table{
			Title: "Rates: " +
				g.Title, Left: 3, Note: words("Order: %s; %d rounds. Ratio: to this gateway on the same link, of rounds side by side.", g.Order, g.Rounds),
			Heads: []string{"program", "link", "mark", "Mpps", "lowest to highest", "of", "ticks", "loss", "ratio"},
		}
		what := table{Title: "What each does: " + g.Title, Left: 4, Heads: []string{"program", "version", "does", "packets"}}
		for i := range g.Peers {
			p := &g.Peers[i]
			link := p.Link
			if link == "" {
				link = g.Link
			}
			loss := notApplicable
			if p.Mpps.Has() {
				loss = lossText(p.LossRatio)
				c.bars = append(c.bars, p.bar(link, g.Link))
			}
			t.Rows = append(t.Rows, []string{p.Name, link, p.mark(), p.Mpps.Text(mpps),
				p.Mpps.Extent(mpps), whole(p.Mpps.Runs), p.Ticks.Both(ticks), loss,
				p.times()})
			what.Rows = append(what.Rows, []string{p.Name, p.Version, p.does(), p.Packets})
		}
		slices.SortStableFunc(c.bars, func(a, b bar) int { return cmp.Compare(b.value, a.value) })
		s.Figures = append(s.Figures, newFigure(g.Title,
			"Bars: medians; the lines across show the lowest and the highest. Floor: programs that move packets and do nothing else.", c)...)
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

func (p *Peer) bar(link, usual string) bar {
	b := bar{
		name: p.Name, value: p.Mpps.Median, low: p.Mpps.Min, high: p.Mpps.Max, style: 1, label: mpps(p.Mpps.Median),
		title: words("%s: %s Mpps (%s), %s of ours. It does: %s", p.Name, p.Mpps.Text(mpps),
			p.Mpps.Extent(mpps), ratioText(p.Ratio), p.Does),
	}
	if p.Ours {
		b.style = 0
	} else if p.Ratio > 0 {
		b.label += " · " + ratioText(p.Ratio) + " ours"
	}
	if p.Floor {
		b.style = 5
	}
	if p.TesterLimited {
		b.label = "≥ " + b.label
	}
	if link != usual {
		b.name += " (" + link + ")"
	}
	return b
}
