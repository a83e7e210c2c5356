// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"encoding/json"
	"testing"
)

func TestDifferences(t *testing.T) {
	for _, test := range []struct {
		name string
		s    Difference
		want string
	}{
		{"pairs", Pairs([]float64{10, 30, 21}, []float64{4, 23, 15}), "6.0"},
		{"one pair", Pairs([]float64{10}, []float64{4}), "6.0"},
		{"one pair, negative", Pairs([]float64{4}, []float64{10}), Unresolved},
		{"none", Pairs(nil, []float64{1}), ""},
		{"apart", Apart(Of(100, 101, 102), Of(40, 41, 42)), "60.0"},
		{"apart, overlapping", Apart(Of(100, 150), Of(90, 110)), Unresolved},
		{"apart, as wide as large", Apart(Of(100, 110), Of(80, 100)), Unresolved},
		{"one of the two unknown", Apart(Of(100), Spread{}), ""},
	} {
		if got := test.s.Words(1); got != test.want {
			t.Errorf("%s: %q, not %q", test.name, got, test.want)
		}
		if resolved := test.want == "6.0" || test.want == "60.0"; resolved != (test.s.Number() != 0) {
			t.Errorf("%s: %v", test.name, test.s.Number())
		}
	}
	if s := Apart(Of(100, 102), Of(40, 44)); s.Min != 56 || s.Max != 62 {
		t.Errorf("between %v and %v", s.Min, s.Max)
	}
}

// A program reads back what was written.
func TestJSON(t *testing.T) {
	type all struct {
		N Number
		S Spread
	}
	for want, d := range map[string]Difference{
		"null": {},
		`{"median":6,"min":6,"max":6,"runs":1,"each":[6]}`:       Pairs([]float64{10}, []float64{4}),
		`{"median":null,"min":-6,"max":-6,"runs":1,"each":[-6]}`: Pairs([]float64{4}, []float64{10}),
	} {
		text, err := json.Marshal(d)
		var back Difference
		if err != nil || string(text) != want || json.Unmarshal(text, &back) != nil ||
			back.Words(1) != d.Words(1) {
			t.Errorf("%s, %v; back %+v", text, err, back)
		}
	}
	for want, v := range map[string]all{`{"N":null,"S":null}`: {},
		`{"N":1.5,"S":{"median":2,"min":1,"max":3,"runs":2,` +
			`"each":[3,1]}}`: {1.5, Of(3, 1)}} {
		text, err := json.Marshal(v)
		var back all
		if err != nil || string(text) != want || json.Unmarshal(text, &back) != nil || back.N != v.N ||
			back.S.Min != v.S.Min {
			t.Errorf("%s, %v; back %+v", text, err, back)
		}
	}
}
