// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
	"testing"

	"isthmus/lab/figure"
)

func TestNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{fixed(1234567.891, 1), "1,234,567.9"}, {fixed(-1234, 0), "−1,234"}, {fixed(-0.001, 1), "0.0"},
		{fixed(999.5, 0), "1,000"},
		{fixed(math.NaN(), 1), "–"}, {mpps(0), "0"}, {mpps(0.0438), "0.0438"}, {mpps(6.844), "6.84"},
		{percent(0), "0 %"},
		{percent(1e-5), "0.001 %"}, {percent(6.1e-6), "0.00061 %"}, {percent(3e-12), "0.0000000003 %"},
		{percent(0.1234), "12.3 %"},
		{percent(0.00123), "0.12 %"}, {micro(8.4), "8.40"}, {micro(1234), "1,234"}, {duration(59), "59 s"},
		{duration(541.8), "9 min 2 s"},
		{bytesOf(361.8), "361.8"}, {times(0.0641), "0.064"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

func TestSpread(t *testing.T) {
	s := Spread{}
	for _, v := range []float64{3, 1, 2} {
		s = s.With(v)
	}
	if s.Median != 2 || s.Min != 1 || s.Max != 3 || s.Runs != 3 || !slices.Equal(s.Each, []float64{3, 1, 2}) {
		t.Errorf("%+v", s)
	}
	if s = s.With(4); s.Median != 2.5 || s.Runs != 4 {
		t.Errorf("%+v", s)
	}
	if figure.Once(0.0).Has() || !figure.Once(1.0).Has() {
		t.Error("a measurement of 0 is none")
	}
}

func TestBinsKeepEveryPacket(t *testing.T) {
	list, total := bins([][3]float64{{1, 10, 1000}, {10, 10.1, 50}, {0, 0.5, 7}, {100, 100, 3}, {5, 4, 99}, {1, 2, 0}})
	sum := 0.0
	for _, n := range list {
		sum += n
	}
	if total != 1060 || math.Abs(sum-total) > 1e-6 {
		t.Errorf("%v of %v packets", sum, total)
	}
}
