// SPDX-License-Identifier: Apache-2.0

// Package cputest measures the cost of work, for tests that bound it. Elapsed time includes other work of the machine.
package cputest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Bound fails the test when the work takes the process more CPU time than this, garbage collection included. Wrong
// algorithms take hundreds of times as much as right ones: leave room for a machine that is ten times slower.
func Bound(t testing.TB, most time.Duration, what string, work func()) {
	t.Helper()
	before := spent(t)
	work()
	took := spent(t) - before
	t.Logf("%s: %v of CPU time", what, took)
	if took > most {
		t.Errorf("%s: took %v of CPU time, at most %v wanted", what, took, most)
	}
}

func spent(t testing.TB) time.Duration {
	t.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
