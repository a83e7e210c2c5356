// SPDX-License-Identifier: Apache-2.0

package aaa

import (
	"maps"
	"os"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// fate is the manual's text for an unusable attribute.
func fate[V any](r rule[V]) string {
	switch {
	case r.use == nil:
		return "–"
	case r.tunes:
		return "left out"
	}
	return "refused"
}

// The manual's table has each attribute and value that we know, its dialect, and the effect of an unusable one.
func TestManualOfAttributes(t *testing.T) {
	dialects := map[uint32]string{0: "standard", 9: "Cisco", 311: "Microsoft", 4874: "Juniper", 14122: "WISPr",
		14988: "Mikrotik"}
	want, got := map[string]string{}, map[string]string{}
	for a, r := range fields {
		want[a.String()] = dialects[a.Vendor()] + ", " + fate(r)
	}
	for name, r := range words {
		want[name] = "Cisco, " + fate(r)
	}
	for key, r := range settings {
		want["subscriber:"+key] = "ours, " + fate(r)
	}
	text, err := os.ReadFile("../../docs/radius.md")
	testkit.Must(t, err)
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.Contains(cells[0], "attribute") {
			continue
		}
		outcome := strings.TrimSpace(cells[3])
		for _, one := range []string{"left out", "refused"} {
			if strings.HasPrefix(outcome, one) {
				outcome = one
			}
		}
		for _, name := range strings.Split(strings.Trim(cells[0], " "), ", ") {
			name = strings.Trim(name, "`")
			testkit.ErrorIf(t, got[name] != "", "%s is there twice", name)
			got[name] = cells[1] + ", " + outcome
		}
	}
	for name := range maps.Keys(want) {
		testkit.Equal(t, got[name], want[name], "%s", name)
		delete(got, name)
	}
	testkit.ErrorIf(t, len(got) != 0, "not in the code: %v", got)
}
