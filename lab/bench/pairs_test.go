// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fields reads back a result as a program sees it.
func fields(t *testing.T, result any) map[string]any {
	t.Helper()
	file := filepath.Join(t.TempDir(), "result.json")
	if err := WriteJSON(file, result); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]any{}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// measuredPhase has a stretch of work beside each stretch of the floor.
func measuredPhase(work, floor []float64) *phase {
	p := &phase{}
	for i := range work {
		p.work = append(p.work, slice{ticks: work[i], mpps: 10})
		p.floor = append(p.floor, slice{ticks: floor[i], mpps: 40})
	}
	return p
}

func measured(t *testing.T, work, floor []float64) *Result {
	t.Helper()
	l, err := newFixture(Options{Profile: "agf-symmetric", Workers: 1, Subscribers: 2}, "auto")
	if err != nil {
		t.Fatal(err)
	}
	p := measuredPhase(work, floor)
	m := &measurement{options: Options{Workers: 1}, layout: l, uplink: p, downlink: p, both: p}
	return m.result()
}

// The machine became faster by a half in the middle of the run: medians of different moments would give 110.
func TestOwnIsOfPairs(t *testing.T) {
	r := measured(t, []float64{300, 310, 150, 290, 145}, []float64{180, 190, 31, 171, 25})
	f := fields(t, r)
	own, _ := f["spread"].(map[string]any)["own_ticks_per_packet"].(map[string]any)
	if f["own_ticks_per_packet"] != 120.0 || own["min"] != 119.0 || own["max"] != 120.0 {
		t.Errorf("own %v, of pairs %v", f["own_ticks_per_packet"], own)
	}
	var b bytes.Buffer
	if err := r.Print(&b); err != nil || !strings.Contains(b.String(), "120.0  119.0..120.0") {
		t.Errorf("%v: no interval in\n%s", err, b.String())
	}
}

// A difference that is negative, or smaller than its pairs lie apart, is no figure.
func TestUnresolvedOwn(t *testing.T) {
	for name, work := range map[string][]float64{
		"negative": {90, 91, 92}, "below the spread": {101, 109, 104}, "of both signs": {95, 120, 130},
	} {
		r := measured(t, work, []float64{100, 100, 100})
		f := fields(t, r)
		if f["own_ticks_per_packet"] != nil || f["uplink"].(map[string]any)["own_ticks_per_packet"] != nil {
			t.Errorf("%s: own is %v", name, f["own_ticks_per_packet"])
		}
		var b bytes.Buffer
		if err := r.Print(&b); err != nil || strings.Count(b.String(), "not resolved") != 3 {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}

// An unmeasured value is null for programs, and a real 0 stays 0.
func TestNotMeasuredIsNull(t *testing.T) {
	s, err := newScene(Options{Profile: "rfc2544", Link: LinkMemif, Workers: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := newLinkResult(&Options{Profile: "rfc2544", Link: LinkMemif, Workers: 1}, s)
	r.Points = []Point{{Name: "64 B", Rates: []Rate{{}}, Tester: &TesterBlock{}}}
	r.Instances = &Instances{Each: []InstanceRate{{}}}
	r.VEPC = &VEPC{}
	r.finish(1, false, nil)
	f := fields(t, r)
	point := f["points"].([]any)[0].(map[string]any)
	for what, list := range map[string]map[string]any{
		"mpps gbps_l2 gbps_l1 ticks_per_packet floor_ticks_per_packet own_ticks_per_packet loss_ratio tsc_hz " +
			"latency_us " +
			"paper_mpps_per_core paper_cycles_per_packet": f,
		"mpps ticks_per_packet floor_ticks_per_packet own_ticks_per_packet loss_ratio": f["uplink"].(map[string]any),
		"mpps gbps_l2 gbps_l1 ticks_per_packet floor_ticks_per_packet own_ticks_per_packet tester_ticks_per_packet " +
			"loss_ratio": point,
		"mpps upper_mpps conditional_mpps": point["rates"].([]any)[0].(map[string]any),
		"mpps ratio":                       point["tester"].(map[string]any),
		"one_mpps sum_mpps scaling":        f["instances"].(map[string]any),
		"mpps gbps_l2 busy_cores load_cores load_cores_per_mpps mpps_per_load_core " +
			"cores_per_instance": f["vepc"].(map[string]any),
	} {
		for _, name := range strings.Fields(what) {
			if v, there := list[name]; !there || v != nil {
				t.Errorf("%s is %v, there: %v", name, v, there)
			}
		}
	}
	if f["wrong"] != 0.0 || f["offered"] != 0.0 {
		t.Errorf("counts are %v and %v", f["wrong"], f["offered"])
	}
}
