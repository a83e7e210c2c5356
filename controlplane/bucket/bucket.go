// SPDX-License-Identifier: Apache-2.0

// Package bucket is the control plane's token bucket. It is full at first, and 8 bytes large: its state is the moment
// at which it is full again (GCRA).
package bucket

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Bucket may be used by any goroutine.
type Bucket struct {
	full atomic.Int64 // ns since 1970
}

// Take takes a token of rate a second; those of burst accumulate, at least one. Rate 0 is no limit. Without a token:
// false, and the time until the next.
func (b *Bucket) Take(now time.Time, rate int, burst time.Duration) (wait time.Duration, ok bool) {
	if rate <= 0 {
		return 0, true
	}
	at, step := now.UnixNano(), max(int64(time.Second)/int64(rate), 1)
	depth := max(int64(burst), step)
	for {
		old := b.full.Load()
		if old > at+depth { // the clock was put back: that must not close it for long
			b.full.CompareAndSwap(old, at+depth)
			continue
		}
		next := max(old, at) + step
		if next > at+depth {
			return time.Duration(next - at - depth), false
		}
		if b.full.CompareAndSwap(old, next) {
			return 0, true
		}
	}
}

// Table has buckets for keys that strangers choose: keys of one place share it. Outsiders cannot find out which.
type Table[K comparable] struct {
	seed    maphash.Seed
	buckets []Bucket
}

// NewTable makes size buckets.
func NewTable[K comparable](size int) *Table[K] {
	return &Table[K]{maphash.MakeSeed(), make([]Bucket, size)}
}

// Of is a key's bucket.
func (t *Table[K]) Of(key K) *Bucket {
	return &t.buckets[maphash.Comparable(t.seed, key)%uint64(len(t.buckets))]
}
