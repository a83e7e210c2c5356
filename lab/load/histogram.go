// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math/bits"
	"time"

	"isthmus/lab/figure"
)

// histogram counts durations in buckets that are 1/64 wide, or a microsecond where that is more.
type histogram struct {
	counts [64 * 32]uint64
	count  uint64
	max    time.Duration
}

const subBuckets = 64

func bucket(us uint64) int {
	if us < subBuckets {
		return int(us)
	}
	shift := bits.Len64(us) - 7 // leaves 64 … 127
	return min(subBuckets*shift+int(us>>shift), 64*32-1)
}

// upper is the largest value of a bucket.
func upper(i int) uint64 {
	if i < 2*subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return (uint64(i-subBuckets*shift)+1)<<shift - 1
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)/time.Microsecond))]++
	h.count++
	h.max = max(h.max, d)
}

// Latency are percentiles in microseconds, each the upper end of its bucket.
type Latency struct {
	Count uint64        `json:"count"`
	P50   figure.Number `json:"p50_us"`
	P90   figure.Number `json:"p90_us"`
	P99   figure.Number `json:"p99_us"`
	Max   figure.Number `json:"max_us"`
}

func (h *histogram) latency() Latency {
	l := Latency{Count: h.count, Max: figure.Number(h.max) / figure.Number(time.Microsecond)}
	for _, q := range []struct {
		part float64
		to   *figure.Number
	}{{0.5, &l.P50}, {0.9, &l.P90}, {0.99, &l.P99}} {
		var seen uint64
		for i := range h.counts {
			if seen += h.counts[i]; h.counts[i] > 0 && float64(seen) >= q.part*float64(h.count) {
				*q.to = min(figure.Number(upper(i)), l.Max)
				break
			}
		}
	}
	return l
}
