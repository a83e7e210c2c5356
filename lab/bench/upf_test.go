// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"isthmus/lab/tester"
)

// Shares and sizes are those of the paper's Table 6, flows those of its Table 5.
func TestUPFProfiles(t *testing.T) {
	const same = "128/128 256/256 512/512 650/650 1024/1024 1528/1528"
	const wide = "128/1408 256/2816 512/5632 576/6336 750/8250"
	for name, want := range map[string]string{
		"upf-1": "1:3 " + same, "upf-2": "1:1 " + same, "upf-3": "3:1 " + same, "upf-4": "1:3 " + wide,
		"upf-5": "1:1 " + wide, "upf-6": "3:1 " + wide,
	} {
		sessions, goal := Presets(name)
		s, err := newScene(Options{Profile: name, Sessions: sessions, Workers: 1, Link: LinkShare}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for i := range s.points {
			up, down := s.points[i].streams[0], s.points[i].streams[2]
			if i == 0 {
				words = append(words, fmt.Sprintf("%d:%d", up.Share, down.Share))
			}
			words = append(words, size(up.Size)+"/"+size(down.Size))
		}
		flows := 0
		for i := range s.fill {
			if flows += s.fill[i].Flows; s.fill[i].Order != "turn" {
				t.Errorf("%s: filled in order %s", name, s.fill[i].Order)
			}
		}
		if got := strings.Join(words, " "); got != want || flows != 8388608 || s.flows != flows ||
			goal != "0" || len(s.fill) != 4 {
			t.Errorf("%s: %s, %d flows, goal %q; want %s", name, got, flows, goal, want)
		}
	}
	for _, bad := range []string{"upf-0", "upf-7", "upf-x", "upf"} {
		if _, ok := upfProfile(bad); ok {
			t.Errorf("%s is one of the six", bad)
		}
	}
}

// A table that is not full is reported, since its loads then have misses.
func TestFillThatIsNotFull(t *testing.T) {
	for inserted, want := range map[uint64]bool{1000: false, 990: true} {
		var b bytes.Buffer
		if err := (&LinkFill{Flows: 1000, FlowInserts: inserted}).print(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "NOT FULL: 10 flows"); got != want {
			t.Errorf("%d of 1000: %s", inserted, b.String())
		}
	}
}

func size(s tester.Sizes) string { return strings.TrimSuffix(sizes(s), " B") }

// A bearer's packets carry its QFI and its ports in both directions, and a VLAN tag on each side.
func TestUPFStreams(t *testing.T) {
	l := mobile(t, "upf-8m-flows", 100)
	for i, want := range []string{
		"id: 3 | ttl: 64 | each: 16, count: 64 | qfi: 9, type: uplink | teid: {base: 268435456, each: 16} | base: " +
			"5000, count: 16 | id: 6 | ttl: 62",
		"qfi: 10, type: uplink | base: 5016, count: 16",
		"id: 6 | base: 5000, count: 16 | id: 3 | id: any | base: 1073741824, each: 16 | qfi: 9, type: downlink | " +
			"ttl: 63",
		"base: 5016, count: 16 | qfi: 10, type: downlink",
	} {
		streams := append(l.outside(true, 128, 1), l.outside(false, 128, 1)...)
		p := tester.Profile{Streams: streams[i : i+1]}
		data, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(want, " | ") {
			if !strings.Contains(string(data), part) {
				t.Errorf("stream %d lacks %q:\n%s", i, part, data)
			}
		}
	}
}
