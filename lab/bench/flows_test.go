// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"isthmus/api"
)

// A session of a flow profile has two bearers each way; a server's port beyond the first bearer's is the second one's.
func TestFlowSessions(t *testing.T) {
	for _, test := range []struct{ profile, want string }{
		{"upf-8m-flows",
			"1 100 0 [1] [1]; 2 100 0 [1] [1]; 3 99 1 [2] [2]; 4 99 1 [2] [2]; qers [{1 9 0} {2 10 0}] urrs 2"},
		{"upf-16m-flows",
			"1 100 0 [1 3 4] [1 3]; 2 100 0 [1 3 4] [1 3]; 3 99 1 [2 3 4] [2 3]; 4 99 1 [2 3 4] [2 3]; " +
				"qers [{1 9 0} {2 10 0} {3 0 0} {4 0 1}] urrs 3"},
	} {
		change, err := mobile(t, test.profile, 16).session(5)
		if err != nil {
			t.Fatal(err)
		}
		var s api.Session
		rest, err := api.ReadRow(change.Body, &s)
		if err != nil {
			t.Fatal(err)
		}
		pdrs, rest, err := api.TakeRows[api.PDR](rest)
		if err != nil || len(pdrs) != int(s.PDRs) {
			t.Fatal(pdrs, err)
		}
		_, rest, _ = api.TakeRows[api.FAR](rest)
		qers, rest, _ := api.TakeRows[api.QER](rest)
		urrs, rest, _ := api.TakeRows[api.URR](rest)
		sdfs, rest, err := api.TakeRows[api.SDF](rest)
		if err != nil || len(rest) != 0 || len(sdfs) != 1 || sdfs[0].RemotePort != [2]uint16{5016, 5031} ||
			int(s.QERs) != len(qers) || int(s.URRs) != len(urrs) {
			t.Errorf("%s: %+v, %d bytes behind, %v", test.profile, sdfs, len(rest), err)
		}
		var words []string
		for i := range pdrs {
			p := &pdrs[i]
			words = append(words, fmt.Sprintf("%d %d %d %v %v", p.ID, p.Precedence, p.SDFCount,
				p.QER[:p.QERs], p.URR[:p.URRs]))
			if (p.Match&api.PDRSDF != 0) != (p.SDFCount > 0) {
				t.Errorf("%s: PDR %d matches %#x", test.profile, p.ID, p.Match)
			}
		}
		type policed struct {
			id    uint32
			qfi   byte
			share uint32
		}
		var list []policed
		for i := range qers {
			list = append(list, policed{qers[i].ID, qers[i].QFI, qers[i].Share})
		}
		if got := fmt.Sprintf("%s; qers %v urrs %d", strings.Join(words, "; "), list,
			len(urrs)); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.profile, got, test.want)
		}
	}
}

// The numbers of flows are the paper's, and the data plane's tables have room for them.
func TestFlowNumbers(t *testing.T) {
	for profile, want := range map[string]int{"upf-8m-flows": 8388608, "upf-16m-flows": 16777216} {
		p, err := Lookup(profile)
		if err != nil {
			t.Fatal(err)
		}
		l := mobile(t, profile, p.Sessions)
		var r Result
		if l.describe(&r); r.Flows != want || !strings.Contains(string(l.yaml()), fmt.Sprintf("flows: %d,",
			want)) {
			t.Errorf("%s: %d flows\n%s", profile, r.Flows, l.yaml())
		}
		list, err := l.streams(p, p.UplinkShare, 1)
		if err != nil || list[0].body.Flows+list[1].body.Flows != uint32(want) {
			t.Errorf("%s: %v", profile, err)
		}
	}
}

// Each access changes one line, and all lines have their turn.
func TestMemoryFloor(t *testing.T) {
	const lines = 1000
	m, err := newMemory(lines, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.free()
	touch(m.lines, 20*lines, 1)
	for i := range m.lines {
		if m.lines[i][0] == 0 || m.lines[i][7] == 0 || m.lines[i][3] != 0 {
			t.Fatalf("line %d: %v", i, m.lines[i])
		}
	}
	if err := m.measure(nil); err != nil {
		t.Fatal(err)
	}
	if f := m.result(2e9); f.Bytes != 64*lines || f.HugePages || f.Ticks.Min <= 0 || f.Ticks.Max < f.Ticks.Median {
		t.Errorf("%+v", f)
	}
}

// The phases stand apart, each with total, floor and own; one lost packet is a failure.
func TestFlowPhases(t *testing.T) {
	r := &Result{
		Common:    Common{Cost: Cost{9, 150, 50, 100}, Flows: 8388608, Offered: 100, Received: 100},
		CheckPass: CheckPass{Checked: 1}, Fill: &Fill{Cost: Cost{0, 900, 60, 840}, FlowInserts: 8388608,
			InsertsPerSecond: 3.25e6}, MemoryFloor: &MemoryFloor{Bytes: 512 << 20, Ticks: Spread{Median: 25,
			Min: 20, Max: 30}},
	}
	r.Spread.Ticks.Median = 150
	var b bytes.Buffer
	if err := r.printFlows(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"900.0   60.0  840.0     0           -         8388608",
		"150.0   50.0  100.0     0        4.00", "512.0 MiB", "3.25 M flows"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if err := r.Verdict(); err != nil {
		t.Error(err)
	}
	loss := 1e-9
	if r.LossRatio = &loss; r.Verdict() == nil {
		t.Error("a lost packet was good")
	}
}
