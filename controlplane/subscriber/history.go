// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"isthmus/controlplane/access"
)

// history has the last attempts to sign in. Lines of one VLAN share a part of it, so that a bad access line, or a flood
// of made-up MAC addresses, does not displace all others. Equal consecutive attempts are one.
type history struct {
	now   func() time.Time
	parts [256][]past // each a ring
	next  [256]int
}

const attemptsOfPart = 64

// past is one attempt, or several alike.
type past struct {
	line    access.Line
	user    string
	circuit string // of the last of them; at most 255 bytes, as DHCP and PPPoE have it
	kind    access.Kind
	first   time.Time
	last    time.Time
	count   int
	why     string // empty: accepted, with the whole answer
}

func (h *history) part(l *access.Line) int {
	f := fnv.New32a()
	f.Write([]byte(l.Port))
	f.Write([]byte{byte(l.STag >> 8), byte(l.STag), byte(l.CTag >> 8), byte(l.CTag)})
	return int(f.Sum32() % uint32(len(h.parts)))
}

// longestWhy bounds what a RADIUS server's words take.
const longestWhy = 160

// note keeps an attempt; why is empty when it was let in, with all.
func (h *history) note(r *access.Request, user, why string) {
	if len(why) > longestWhy {
		why = strings.ToValidUTF8(why[:longestWhy], "") + "…"
	}
	if user == "" {
		user = r.User
	}
	now := h.now()
	n := h.part(&r.Line)
	ring := h.parts[n]
	for i := range ring {
		p := &ring[i]
		if p.line == r.Line && p.user == user && p.kind == r.Kind && p.why == why && why != "" {
			p.last, p.circuit = now, string(r.Agent.CircuitID)
			p.count++
			return
		}
	}
	p := past{r.Line, user, string(r.Agent.CircuitID), r.Kind, now, now, 1, why}
	if len(ring) < attemptsOfPart {
		h.parts[n] = append(ring, p)
		return
	}
	ring[h.next[n]] = p
	h.next[n] = (h.next[n] + 1) % attemptsOfPart
}

// attempts are the last ones that a condition holds for, the newest first.
func (h *history) attempts(most int, is func(*past) bool) (list []past) {
	for i := range h.parts {
		for k := range h.parts[i] {
			if is(&h.parts[i][k]) {
				list = append(list, h.parts[i][k])
			}
		}
	}
	slices.SortFunc(list, func(a, b past) int { return b.last.Compare(a.last) })
	return list[:min(len(list), most)]
}
