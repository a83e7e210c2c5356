// SPDX-License-Identifier: Apache-2.0

package cputest

import (
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

// failing notes a failure instead of failing.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Errorf(string, ...any) { f.failed = true }

func TestBound(t *testing.T) {
	f := &failing{TB: t}
	Bound(f, time.Hour, "nothing", func() {})
	testkit.ErrorIf(t, f.failed, "nothing took an hour")
	Bound(f, time.Millisecond, "work", func() {
		for before := spent(t); spent(t) < before+2*time.Millisecond; {
		}
	})
	testkit.ErrorIf(t, !f.failed, "two milliseconds are not more than one")
	f.failed = false
	Bound(f, 50*time.Millisecond, "waiting", func() { waitOut(100 * time.Millisecond) })
	testkit.ErrorIf(t, f.failed, "waiting is no work")
}

// waitOut lets time pass that must not be counted.
func waitOut(d time.Duration) { time.Sleep(d) }
