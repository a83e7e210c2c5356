// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// entry is one line of subscribers; no two share anything.
func entry(name string, number, count int, more string) string {
	many := ""
	if count > 0 {
		many = fmt.Sprintf("count: %d, ", count)
	}
	return fmt.Sprintf("  - {name: %s, %sport: access, mac: 02:00:00:%02x:00:00, s_tag: %d, c_tag: 1, path: upf, "+
		"teid_uplink: %d, "+
		"teid_downlink: %d, ipv4: 10.%d.0.0%s}\n", name, many, number, number*20, number<<20, number<<20, number, more)
}

func withScheduler(workers int, subports string, entries ...string) string {
	return fmt.Sprintf("engine: {workers: %d, limits: {sessions: 100000}}\n", workers) + base +
		"schedulers:\n  - {port: access, rate: 1Gbit, subports: " + subports +
		", profiles: [{name: p, rate: 1Mbit}]}\n" +
		"subscribers:\n" + strings.Join(entries, "")
}

func parseAfter(t *testing.T, before *Config, text string) *Config {
	t.Helper()
	var placement Placement
	if before != nil {
		placement = before.Placement()
	}
	c, err := ParseWith("x.yaml", []byte(text), nil, placement)
	testkit.Must(t, err)
	seen := map[[2]uint32]string{}
	for _, h := range c.Subscribers {
		if len(c.Schedulers) == 0 {
			break
		}
		g := c.Schedulers[0].Groups[h.Subport]
		testkit.FatalIf(t, h.Pipe >= g.Pipes || int(h.Worker) != g.Worker,
			"%s: pipe %d of %d, worker %d of %d", h.Name, h.Pipe, g.Pipes, h.Worker, g.Worker)
		at := [2]uint32{h.Subport, h.Pipe}
		other, twice := seen[at]
		testkit.FatalIf(t, twice, "%s and %s share pipe %v", other, h.Name, at)
		seen[at] = h.Name
	}
	return c
}

// moved counts who is in both and has another place.
func moved(a, b *Config) int {
	places, n := map[string][3]uint32{}, 0
	for _, h := range a.Subscribers {
		places[h.Name] = [3]uint32{uint32(h.Worker), h.Subport, h.Pipe}
	}
	for _, h := range b.Subscribers {
		if was, ok := places[h.Name]; ok && was != [3]uint32{uint32(h.Worker), h.Subport, h.Pipe} {
			n++
		}
	}
	return n
}

// Whichever subscribers are added or removed, anywhere in the file: no other moves, and no scheduler changes.
func TestNobodyElseMoves(t *testing.T) {
	single, early, homes, late := entry("single", 1, 0, ""), entry("early", 2, 100, ""), entry("home", 3, 1000, ""),
		entry("late", 4, 0, "")
	all := parseAfter(t, nil, withScheduler(2, "{count: 4}", single, early, homes, late))
	for name, entries := range map[string][]string{
		"the first leaves":      {early, homes, late},
		"a range before leaves": {single, homes, late},
		"both leave":            {homes, late},
		"the range shrinks":     {single, early, entry("home", 3, 999, ""), late},
		"one comes first":       {entry("new", 5, 0, ""), single, early, homes, late},
		"another order":         {late, homes, early, single},
	} {
		c := parseAfter(t, all, withScheduler(2, "{count: 4}", entries...))
		testkit.Equal(t, moved(all, c), 0, "%s: others moved", name)
		for g := range c.Schedulers[0].Groups {
			testkit.ErrorIf(t, c.Schedulers[0].Groups[g].Pipes != all.Schedulers[0].Groups[g].Pipes,
				"%s: subport %d is resized", name, g)
		}
		// Without the placement before, names decide: subport and worker are the same, of pipes most.
		fresh := parseAfter(t, nil, withScheduler(2, "{count: 4}", entries...))
		for i := range fresh.Subscribers {
			if fresh.Subscribers[i].Subport != c.Subscribers[i].Subport ||
				fresh.Subscribers[i].Worker != c.Subscribers[i].Worker {
				t.Fatalf("%s: %s changed its subport", name, fresh.Subscribers[i].Name)
			}
		}
	}
	for _, text := range []string{"round-robin", "2"} { // these decide the subport; the pipe stays as well
		more := ", scheduler: {subport: " + text + "}"
		a := parseAfter(t, nil, withScheduler(2, "{count: 4}", entry("a", 1, 100, more), entry("b", 2, 1000, more)))
		b := parseAfter(t, a, withScheduler(2, "{count: 4}", entry("b", 2, 1000, more)))
		testkit.Equal(t, moved(a, b), 0, "%s: moved", text)
	}
}

func TestWorkersWithoutScheduler(t *testing.T) {
	engine := "engine: {workers: 2}\n" + base + "subscribers:\n"
	all := parseAfter(t, nil, engine+entry("single", 1, 0, "")+entry("home", 2, 1000, ""))
	testkit.Equal(t, moved(all, parseAfter(t, nil, engine+entry("home", 2, 1000, ""))), 0, "moved")
	on := [2]int{}
	for _, h := range all.Subscribers {
		on[h.Worker]++
	}
	testkit.ErrorIf(t, on[0] < 450 || on[1] < 450, "spread: %v", on)
}

// Names spread subscribers evenly, sizes follow, and where the file gives sizes they are used to the last pipe.
func TestPlacementFits(t *testing.T) {
	c := parseAfter(t, nil, withScheduler(2, "{count: 64}", entry("home", 1, 65536, "")))
	for _, g := range c.Schedulers[0].Groups {
		testkit.ErrorIf(t, g.Pipes != 1024 && g.Pipes != 2048, "%d pipes", g.Pipes)
	}
	parseAfter(t, nil, withScheduler(1, "{}", entry("home", 1, 65536, "")))
	full := parseAfter(t, nil, withScheduler(1, "{count: 4, pipes: 256}", entry("home", 1, 1024, "")))
	for _, h := range full.Subscribers {
		testkit.FatalIf(t, h.Pipe > 255, "%v", h.Pipe)
	}
	// Some had to go where their names do not say; they stay there when room appears.
	n := moved(full, parseAfter(t, full, withScheduler(1, "{count: 4, pipes: 256}", entry("home", 1, 1000, ""))))
	testkit.ErrorIf(t, n != 0, "%d moved", n)
	_, err := Parse("x.yaml", []byte(withScheduler(1, "{count: 4, pipes: 256}", entry("home", 1, 1025, ""))))
	testkit.Refused(t, err, "x.yaml:10: schedulers[0].subports[0].pipes: 257 subscribers in subport")
	_, err = Parse("x.yaml", []byte(withScheduler(1, "{count: 4, pipes: 256}",
		entry("home", 1, 300, ", scheduler: {subport: 1}"))))
	testkit.Refused(t, err, "300 subscribers in subport 1, room for 256")
}

// A placement is a hint: nonsense in it costs nothing but the hint.
func TestForeignPlacement(t *testing.T) {
	text := withScheduler(2, "{count: 2}", entry("home", 1, 10, ""))
	for _, s := range []PortPlacement{
		{Pipes: []uint32{1 << 31, 7}, Places: map[string][2]uint32{"home-00001": {9, 9}, "home-00002": {1, 1 << 31}}},
		{Pipes: []uint32{16}, Places: map[string][2]uint32{"home-00001": {0, 1}}},
		{Pipes: []uint32{16, 16}, Places: map[string][2]uint32{"home-00001": {0, 1}, "home-00002": {0, 1}}},
		{},
	} {
		c, err := ParseWith("x.yaml", []byte(text), nil, Placement{"access": s})
		testkit.ErrorIf(t, err != nil || c.Schedulers[0].Groups[0].Pipes != 16, "%v", err)
	}
}
