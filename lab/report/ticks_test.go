// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLinearTicks(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		n         int
		want      []float64
	}{
		{0, 10, 5, []float64{0, 2, 4, 6, 8, 10}},
		{0, 0.7, 7, []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}},
		{10, 90, 8, []float64{10, 20, 30, 40, 50, 60, 70, 80, 90}},
		{0, 0, 4, []float64{0, 0.25, 0.5, 0.75, 1}},
		{-3, 4, 4, []float64{-4, -2, 0, 2, 4}},
	} {
		if got := linearTicks(test.low, test.high, test.n); !slices.Equal(got, test.want) {
			t.Errorf("%v to %v: %v, want %v", test.low, test.high, got, test.want)
		}
	}
}

func TestTicksCover(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		low := math.Pow(10, random.Float64()*12-6)
		high := low * (1 + math.Pow(10, random.Float64()*6-3))
		for name, list := range map[string][]float64{"linear": linearTicks(low, high, 6), "log": logTicks(low, high)} {
			n := len(list)
			if n < 2 || n > 16 || list[0] > low*(1+1e-6) || list[n-1] < high*(1-1e-6) || !slices.IsSorted(list) {
				t.Fatalf("%s %v to %v: %v", name, low, high, list)
			}
		}
	}
}

func TestTicksOfNonsense(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0} {
		for _, w := range []float64{math.NaN(), math.Inf(1), 0, 1} {
			if n := len(linearTicks(v, w, 5)); n > 100 {
				t.Errorf("%v to %v: %d ticks", v, w, n)
			}
			if n := len(logTicks(v, w)); n > 100 {
				t.Errorf("log %v to %v: %d ticks", v, w, n)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{fixed(1234567.891, 1), "1,234,567.9"}, {fixed(-1234, 0), "−1,234"}, {fixed(-0.001, 1), "0.0"}, {fixed(999.5, 0), "1,000"},
		{fixed(math.NaN(), 1), "–"}, {mpps(0), "0"}, {mpps(0.0438), "0.0438"}, {mpps(6.844), "6.84"}, {percent(0), "0 %"},
		{percent(1e-5), "0.001 %"}, {percent(6.1e-6), "0.00061 %"}, {percent(3e-12), "0.0000000003 %"}, {percent(0.1234), "12.3 %"},
		{percent(0.00123), "0.12 %"}, {micro(8.4), "8.40"}, {micro(1234), "1,234"}, {duration(59), "59 s"}, {duration(541.8), "9 min 2 s"},
		{plain(0.25), "0.25"}, {plain(1000), "1,000"}, {plain(0.001), "0.001"}, {bytesOf(361.8), "361.8"}, {times(0.0641), "0.064"},
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
	if Once(0).has() || !Once(1).has() {
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
