// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// taken counts what passes of n that come at once.
func taken(b *Bucket, now time.Time, n, rate int, burst time.Duration) (passed int) {
	for range n {
		if _, ok := b.Take(now, rate, burst); ok {
			passed++
		}
	}
	return passed
}

func TestTake(t *testing.T) {
	var b Bucket
	now := time.Unix(1000, 0)
	testkit.Equal(t, taken(&b, now, 500, 100, time.Second), 100, "a full bucket")
	now = now.Add(250 * time.Millisecond)
	testkit.Equal(t, taken(&b, now, 500, 100, time.Second), 25, "a quarter of a second later")
	wait, ok := b.Take(now, 100, time.Second)
	testkit.Equal(t, ok, false, "empty")
	testkit.Equal(t, wait, 10*time.Millisecond, "until the next")
	_, ok = b.Take(now.Add(wait-1), 100, time.Second)
	testkit.Equal(t, ok, false, "too early")
	_, ok = b.Take(now.Add(wait), 100, time.Second)
	testkit.Equal(t, ok, true, "when it was said")
	testkit.Equal(t, taken(&b, now.Add(time.Hour), 500, 100, time.Second), 100, "an hour later")
	testkit.Equal(t, taken(&b, now, 500, 0, time.Second), 500, "no limit")
}

// A bucket of a short burst holds one; a clock set back by a day does not close it.
func TestEdges(t *testing.T) {
	var b Bucket
	now := time.Unix(1000000, 0)
	testkit.Equal(t, taken(&b, now, 9, 2, 0), 1, "no burst")
	now = now.Add(-24 * time.Hour)
	wait, ok := b.Take(now, 2, 0)
	testkit.Equal(t, ok, false, "the clock was put back")
	testkit.Equal(t, wait, 500*time.Millisecond, "one token's time")
	testkit.Equal(t, taken(&b, now.Add(time.Second), 3, 2_000_000_000, time.Second), 3, "more than one a ns")
}

func TestConcurrent(t *testing.T) {
	var b Bucket
	var passed atomic.Int64
	var all sync.WaitGroup
	now := time.Unix(1000, 0)
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			passed.Add(int64(taken(&b, now, 1000, 700, time.Second)))
		}()
	}
	all.Wait()
	testkit.Equal(t, passed.Load(), 700, "what four goroutines got")
}

func TestTable(t *testing.T) {
	x := NewTable[[2]uint16](64)
	seen := map[*Bucket]bool{}
	for i := range uint16(1000) {
		b := x.Of([2]uint16{i, 1})
		testkit.ErrorIf(t, b != x.Of([2]uint16{i, 1}), "a key's bucket changes")
		seen[b] = true
	}
	testkit.ErrorIf(t, len(seen) < 32, "1000 keys in %d places of 64", len(seen))
}
