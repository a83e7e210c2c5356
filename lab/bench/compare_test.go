// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/lab/figure"
	"isthmus/lab/tester"
)

func comparison() *Comparison {
	return &Comparison{Profile: "vepc-128", Size: 128, Rounds: 3, Paper: vepcPaper(), Arrangements: []Arrangement{
		{Name: "direct", Switch: SwitchNone}, {Name: "switch", Switch: "none of those"},
	}}
}

// The arrangements take turns, the run with the median rate stands for its arrangement, and a failed one does not end
// the others.
func TestCompare(t *testing.T) {
	c := comparison()
	var order []string
	rates := []float64{3, 1, 2}
	err := c.run(t.Context(), 3, func(_ context.Context, a *Arrangement) (*LinkResult, error) {
		order = append(order, a.Switch)
		if a.Switch != SwitchNone {
			return nil, errors.New("no ports")
		}
		rate := figure.Number(rates[0])
		rates = rates[1:]
		v := &VEPC{Mpps: rate, LoadCores: 1.5, InstancesBy: []InstancesBy{{24, 12}}, RTT: []RoundTrip{{0.1, 1,
			2, 3, 4, 5, 0}, {0.5, 10, 20, 30, 40, 50, 0}}}
		p := Point{Name: "128 B", Cost: Cost{rate, 321.5, 99.5, 222},
			OwnRange: figure.Pairs([]float64{321.5}, []float64{99.5}),
			Latency: []LoadLatency{{Load: 0.5,
				LatencyUS: &tester.Histogram{P50: 7.5, P99: 8.5}}}, Tester: &TesterBlock{Ratio: 1.75}}
		return &LinkResult{Common: Common{Cost: p.Cost}, VEPC: v, Points: []Point{p}}, nil
	})
	if err != nil || len(order) != 4 || order[0] != SwitchNone || order[1] == SwitchNone || order[2] != SwitchNone {
		t.Fatalf("%v: %v", order, err)
	}
	if a := &c.Arrangements[0]; len(a.Results) != 3 || a.Median.Mpps != 2 {
		t.Errorf("%+v", a)
	}
	if err := c.Verdict(); err == nil || !strings.Contains(err.Error(), "switch: no ports") {
		t.Errorf("%v", err)
	}
	var b bytes.Buffer
	if err := c.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.000", "12 (scaled)", "30.0 (40.0)", "at 50 %", "failed", "13.0", "15.5",
		"12.48", "10.80", "< 1500.0",
		"321.5   99.5  222.0            1.75             7.5  8.5      0"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	file := filepath.Join(t.TempDir(), "c.json")
	if err := c.WriteJSON(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	var back Comparison
	if err != nil || json.Unmarshal(data, &back) != nil || len(back.Arrangements) != 2 ||
		len(back.Arrangements[0].Results) != 3 {
		t.Errorf("%v\n%s", err, data)
	}
}

// A switch that is not installed is reported as missing, and is no failure.
func TestCompareMissing(t *testing.T) {
	c := comparison()
	c.Arrangements = c.Arrangements[1:]
	c.Arrangements[0].Missing = "not installed"
	if err := c.Verdict(); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	if err := c.Print(&b); err != nil || !strings.Contains(b.String(), "missing") || !strings.Contains(b.String(),
		"switch was not measured: not installed") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestCompareRefusals(t *testing.T) {
	good := Options{Profile: "vepc-128", Link: LinkMemif, Sessions: 10, Workers: 1, Instances: 1, Seconds: 1}
	for what, change := range map[string]func(*Options) int{
		"profile":  func(o *Options) int { o.Profile = "sgwu"; return 1 },
		"rounds":   func(*Options) int { return 0 },
		"sessions": func(o *Options) int { o.Sessions = 0; return 1 },
	} {
		opt := good
		rounds := change(&opt)
		if c, err := Compare(t.Context(), opt, rounds); err == nil {
			t.Errorf("%s: %+v", what, c)
		}
	}
}
