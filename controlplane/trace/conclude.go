// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"slices"
	"strings"

	"isthmus/controlplane/printable"
)

// deciding are nodes whose words are a part of what becomes of a packet, with those before them.
var deciding = map[string]string{
	"gtpu-encap": "by GTP-U ", "udp-encap": "in UDP ", "access-encap": "with ",
	"fragment-core": "", "fragment-access": "", "duplicate": "", "nat-uplink": "",
	"icmp-echo": "", "icmp-error": "", "gtpu-control": "", "redirect": "", "arp-access": "", "nd-access": "",
}

// endings are what has become of packets that were neither sent nor dropped nor punted, by their last node; of others
// they are held.
var endings = map[string]string{"scheduler": "queued", "gtpu-control": "ended here", "lcp-echo": "ended here"}

// notAsked begins the words of a node that cannot say what it would do to a hypothetical packet.
const notAsked = "it would be given to "

// conclude says what becomes of a packet: how it ends, by which port, and what happens to it, or instead of it, on the
// way.
func (p *Packet) conclude() string {
	word := p.Outcome
	if n := len(p.Steps); word == "held" && n > 0 {
		switch ending := endings[p.Steps[n-1].Node]; {
		case strings.HasPrefix(p.Text, notAsked):
			word = "not known"
		case ending != "":
			word = ending
		}
	}
	var parts []string
	text := p.Text
	if p.OutPort != "" {
		word += " on " + p.OutPort
		text = strings.TrimSuffix(text, " on "+p.OutPort)
	}
	if text != "" {
		parts = append(parts, text)
	}
	for _, s := range p.Steps {
		before, decides := deciding[s.Node]
		if decides && s.Text != "" && !slices.Contains(parts, before+s.Text) {
			parts = append(parts, before+s.Text)
		}
	}
	if len(parts) == 0 {
		return printable.Text(word)
	}
	return printable.Text(word + ": " + strings.Join(parts, "; "))
}
