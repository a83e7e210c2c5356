// SPDX-License-Identifier: Apache-2.0

package sheet

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
		if got := LinearTicks(test.low, test.high, test.n); !slices.Equal(got, test.want) {
			t.Errorf("%v to %v: %v, want %v", test.low, test.high, got, test.want)
		}
	}
}

func TestTicksCover(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		low := math.Pow(10, random.Float64()*12-6)
		high := low * (1 + math.Pow(10, random.Float64()*6-3))
		for name, list := range map[string][]float64{"linear": LinearTicks(low, high, 6), "log": LogTicks(low,
			high)} {
			n := len(list)
			if n < 2 || n > 16 || list[0] > low*(1+1e-6) || list[n-1] < high*(1-1e-6) ||
				!slices.IsSorted(list) {
				t.Fatalf("%s %v to %v: %v", name, low, high, list)
			}
		}
	}
}

func TestTicksOfNonsense(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0} {
		for _, w := range []float64{math.NaN(), math.Inf(1), 0, 1} {
			if n := len(LinearTicks(v, w, 5)); n > 100 {
				t.Errorf("%v to %v: %d ticks", v, w, n)
			}
			if n := len(LogTicks(v, w)); n > 100 {
				t.Errorf("log %v to %v: %d ticks", v, w, n)
			}
		}
	}
}
