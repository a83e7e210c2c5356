// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"isthmus/controlplane/n4"
)

// n4Table is the PFCP server itself; its associations are in its JSON too, and have a table of their own.
var n4Table = &Table{
	Name: "n4", Short: "the PFCP server: messages, refusals, events",
	Answer: reflect.TypeFor[n4.Snapshot](),
	Own:    func(c Control, _ string, _ uint32) any { return c.N4() },
	Print: printer("n4", func(w io.Writer, s n4.Snapshot) error {
		return WriteTable(w, []string{"N4", "NAME", "VALUE"}, []bool{false, false, false}, n4Cells(&s))
	}),
}

func n4Cells(s *n4.Snapshot) [][]string {
	if s.NodeID == "" {
		return nil
	}
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	cells := [][]string{
		{"server", "node id", s.NodeID},
		{"server", "listen", strings.Join(s.Listen, " ")},
		{"server", "peers", strings.Join(s.Peers, " ")},
		{"server", "recovery", stamp(s.Recovery)},
		{"server", "features", strings.Join(s.Features, " ")},
		{"now", "associations", strconv.Itoa(len(s.Associations))},
		{"now", "sessions", strconv.Itoa(s.Sessions)},
		{"now", "in flight", strconv.FormatInt(s.InFlight, 10)},
		{"now", "queued", strconv.Itoa(s.Queued)},
		{"now", "requests of ours", strconv.Itoa(s.Requests)},
		{"now", "answers kept", strconv.FormatInt(s.Answers, 10)},
		{"total", "lost", number(s.Lost)},
	}
	for _, group := range []struct {
		name   string
		counts map[string]uint64
	}{{"received", s.Received}, {"sent", s.Sent}, {"rejected", s.Rejected}, {"events", s.Events}} {
		for _, name := range slices.Sorted(maps.Keys(group.counts)) {
			cells = append(cells, []string{group.name, name, number(group.counts[name])})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Took)) {
		if t := s.Took[name]; t.Requests > 0 {
			cells = append(cells, []string{"mean time", name,
				fmt.Sprintf("%.3f ms", 1000*t.Seconds/float64(t.Requests))})
		}
	}
	for _, r := range s.Refusals {
		cells = append(cells, []string{"refused", r.Peer, refusalText(&r)})
	}
	return cells
}

// refusalText is one line: when, what, why.
func refusalText(r *n4.Refusal) string {
	text := fmt.Sprintf("%s %s: cause %d %s", r.Time.Format("15:04:05"), r.Message, r.Cause, r.Reason)
	if r.IE != 0 {
		text += fmt.Sprintf(", IE %d", r.IE)
	}
	if r.Rule != "" {
		text += ", " + r.Rule
	}
	if r.Text != "" {
		text += ": " + r.Text
	}
	if r.Count > 1 {
		text += fmt.Sprintf(" (%d times)", r.Count)
	}
	return text
}
