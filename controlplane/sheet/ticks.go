// SPDX-License-Identifier: Apache-2.0

package sheet

import "math"

// niceStep returns the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	if v <= 0 || !finite(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// LinearTicks returns about n round values that cover low to high: the first is at most low, the last at least high.
func LinearTicks(low, high float64, n int) []float64 {
	if !finite(low) || !finite(high) {
		return []float64{0, 1}
	}
	if high <= low {
		high = low + 1
	}
	step := niceStep((high - low) / float64(max(n, 1)))
	first, last := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
	var ticks []float64
	for i := first; i <= last; i++ {
		// Rounding takes away what 3 * 0.1 has too much.
		ticks = append(ticks, roundTo(i*step, step))
	}
	return ticks
}

func roundTo(v, step float64) float64 {
	digits := 2 - math.Floor(math.Log10(step))
	if unit := math.Pow(10, math.Abs(digits)); digits < 0 {
		return math.Round(v/unit) * unit
	} else {
		return math.Round(v*unit) / unit
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// LogTicks returns round values that cover low to high, both above 0: powers of ten, and 2 and 5 times them where less
// than about two decades are covered.
func LogTicks(low, high float64) []float64 {
	if !finite(low) || !finite(high) || low <= 0 || high <= 0 {
		return []float64{1, 10}
	}
	multiples := []float64{1, 2, 5}
	if high/low > 150 {
		multiples = []float64{1}
	}
	var all []float64
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, m := range multiples {
			all = append(all, m*math.Pow(10, e))
		}
	}
	first, last := 0, len(all)-1
	for first+1 < len(all) && all[first+1] <= low*(1+1e-9) {
		first++
	}
	for last > first+1 && all[last-1] >= high*(1-1e-9) {
		last--
	}
	return all[first : last+1]
}
