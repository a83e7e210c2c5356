// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"cmp"
	"slices"
)

// Join adds histograms up and finds their common percentiles, each as the upper end of its bucket. Nil and empty ones
// are skipped; nil without others. A single one is returned as it is.
func Join(list ...*Histogram) *Histogram {
	list = slices.DeleteFunc(slices.Clone(list), func(h *Histogram) bool { return h == nil || h.Count == 0 })
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	sum := Histogram{Min: list[0].Min}
	counts := map[[2]float64]float64{}
	for _, h := range list {
		sum.Mean = (sum.Mean*float64(sum.Count) + h.Mean*float64(h.Count)) / float64(sum.Count+h.Count)
		sum.Count += h.Count
		sum.Min, sum.Max = min(sum.Min, h.Min), max(sum.Max, h.Max)
		for _, b := range h.Buckets {
			counts[[2]float64{b[0], b[1]}] += b[2]
		}
	}
	for bounds, n := range counts {
		sum.Buckets = append(sum.Buckets, [3]float64{bounds[0], bounds[1], n})
	}
	slices.SortFunc(sum.Buckets, func(a, b [3]float64) int { return cmp.Compare(a[0], b[0]) })
	sum.P50, sum.P90, sum.P99, sum.P999 = sum.quantile(0.5), sum.quantile(0.9), sum.quantile(0.99),
		sum.quantile(0.999)
	return &sum
}

// quantile is the value at or below which a part (0..1) of all lies.
func (h *Histogram) quantile(part float64) float64 {
	seen, total := 0.0, 0.0
	for _, b := range h.Buckets {
		total += b[2]
	}
	for _, b := range h.Buckets {
		if seen += b[2]; seen >= part*total {
			return min(b[1], h.Max)
		}
	}
	return h.Max
}
