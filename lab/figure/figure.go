// SPDX-License-Identifier: Apache-2.0

// Package figure has benchmarks' results: numbers that may be unmeasured, medians of repetitions with their range, and
// differences of measurements side by side.
package figure

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Number is a rate, a size or a cost, none of which is ever 0: that stands for "not measured", null in JSON.
type Number float64

// MarshalJSON is of json.Marshaler. Reading null back leaves 0.
func (n Number) MarshalJSON() ([]byte, error) {
	if n == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Spread is the median of repetitions, and how far they lie apart. Runs 0 means not measured, null in JSON.
type Spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Runs   int       `json:"runs"`
	Each   []float64 `json:"each,omitempty"` // in the order of time, where they are known
}

// plain has no method, so that it is encoded as it is.
type plain Spread

// MarshalJSON is of json.Marshaler.
func (s Spread) MarshalJSON() ([]byte, error) {
	if !s.Has() {
		return []byte("null"), nil
	}
	return json.Marshal(plain(s))
}

// Of is the spread of repetitions.
func Of(each ...float64) Spread {
	n := len(each)
	if n == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(each))
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Runs: n,
		Each: each}
}

// Once is the spread of a single measurement; of 0, nothing was measured.
func Once[N ~float64](v N) Spread {
	if v <= 0 {
		return Spread{}
	}
	return Of(float64(v))
}

// With returns the spread of one more measurement. It needs to know each of those before.
func (s Spread) With(v float64) Spread { return Of(append(slices.Clone(s.Each), v)...) }

// Has: something was measured.
func (s Spread) Has() bool { return s.Runs > 0 }

// Rounded has every figure rounded.
func (s Spread) Rounded(f func(float64) float64) Spread {
	each := slices.Clone(s.Each)
	for i := range each {
		each[i] = f(each[i])
	}
	return Spread{f(s.Median), f(s.Min), f(s.Max), s.Runs, each}
}

// Difference is what one thing costs more than another, of two measurements that scatter.
type Difference struct{ Spread }

// MarshalJSON has null in the place of the median of a difference that is not resolved.
func (d Difference) MarshalJSON() ([]byte, error) {
	if !d.Has() {
		return []byte("null"), nil
	}
	return json.Marshal(struct {
		Median Number `json:"median"` // in the place of the embedded one
		plain
	}{d.Number(), plain(d.Spread)})
}

// Rounded has every figure rounded.
func (d Difference) Rounded(f func(float64) float64) Difference {
	return Difference{d.Spread.Rounded(f)}
}

// Pairs is the difference of adjacent pairs: common slowdowns cancel out.
func Pairs(total, part []float64) Difference {
	each := make([]float64, min(len(total), len(part)))
	for i := range each {
		each[i] = total[i] - part[i]
	}
	return Difference{Of(each...)}
}

// Ratios are of pairs that were measured next to each other.
func Ratios(list, to []float64) Spread {
	each := make([]float64, min(len(list), len(to)))
	for i := range each {
		each[i] = list[i] / to[i]
	}
	return Of(each...)
}

// Apart is the difference of what was measured at different times: it may lie anywhere between the extremes.
func Apart(total, part Spread) Difference {
	if !total.Has() || !part.Has() {
		return Difference{}
	}
	return Difference{Spread{Median: total.Median - part.Median, Min: total.Min - part.Max,
		Max: total.Max - part.Min, Runs: min(total.Runs, part.Runs)}}
}

// Unresolved replaces a difference below its range.
const Unresolved = "not resolved"

// Resolved: a difference is larger than its range, and never negative.
func (d Difference) Resolved() bool { return d.Has() && d.Min > 0 && d.Median > d.Max-d.Min }

// Number is the median of a difference that is resolved.
func (d Difference) Number() Number {
	if !d.Resolved() {
		return 0
	}
	return Number(d.Median)
}

// Words prints a difference, and nothing without one.
func (d Difference) Words(decimals int) string {
	switch {
	case !d.Has():
		return ""
	case !d.Resolved():
		return Unresolved
	}
	return strconv.FormatFloat(d.Median, 'f', decimals, 64)
}

// Range prints how far the repetitions lie apart, and nothing where there is one alone.
func (s Spread) Range(decimals int) string {
	if s.Runs < 2 {
		return ""
	}
	return strconv.FormatFloat(s.Min, 'f', decimals, 64) + ".." + strconv.FormatFloat(s.Max, 'f', decimals, 64)
}

// Rounded is a number with a fixed number of decimals.
func Rounded[N ~float64](v N, decimals int) Number {
	unit := math.Pow10(decimals)
	return Number(math.Round(float64(v)*unit) / unit)
}

// None stands on a page where there is no figure.
const None = "–"

// Text prints the median.
func (s Spread) Text(format func(float64) string) string {
	if !s.Has() {
		return None
	}
	return format(s.Median)
}

// Extent prints how far the repetitions lie apart.
func (s Spread) Extent(format func(float64) string) string {
	if s.Runs < 2 {
		return None
	}
	return format(s.Min) + " to " + format(s.Max)
}

// Both prints the median and, where there are repetitions, how far they lie apart.
func (s Spread) Both(format func(float64) string) string {
	if s.Runs < 2 {
		return s.Text(format)
	}
	return s.Text(format) + " (" + s.Extent(format) + ")"
}
