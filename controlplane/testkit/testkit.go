// SPDX-License-Identifier: Apache-2.0

// Package testkit is what the tests of several packages share.
package testkit

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// Limit ends a test that would wait for ever. It is no measure of duration: on a busy machine anything may take
// seconds.
const Limit = time.Minute

// Must ends the test when a precondition fails; a nil error of any type is none.
func Must[E interface {
	comparable
	error
}](t testing.TB, err E) {
	t.Helper()
	var none E
	if err != none {
		t.Fatal(err)
	}
}

// ErrorIf reports an error if wrong.
func ErrorIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Errorf(format, args...)
	}
}

// FatalIf ends the test, too.
func FatalIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Fatalf(format, args...)
	}
}

// Equal compares; format and args name the subject.
func Equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, not %v", fmt.Sprintf(format, args...), got, want)
	}
}

var update = flag.Bool("update", false, "write the files that tests compare with")

// Golden compares a file with what it should be. -update writes it.
func Golden(t testing.TB, file, want string) {
	t.Helper()
	if *update {
		Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		Must(t, os.WriteFile(file, []byte(want), 0o644))
	}
	text, err := os.ReadFile(file)
	Must(t, err)
	is, wants := strings.SplitAfter(string(text), "\n"), strings.SplitAfter(want, "\n")
	for i := range max(len(is), len(wants)) {
		if i >= len(is) || i >= len(wants) || is[i] != wants[i] {
			t.Errorf("%s, line %d is old: ./dev lint --fix or -update writes it.\n is %.300q\nnot %.300q",
				file, i+1, is[min(i, len(is)):min(i+1, len(is))],
				wants[min(i, len(wants)):min(i+1, len(wants))])
			return
		}
	}
}

// Refused wants an error with this text.
func Refused(t testing.TB, err error, want string) {
	t.Helper()
	ErrorIf(t, err == nil || !strings.Contains(err.Error(), want), "got %v, want %s", err, want)
}

// Until waits for a condition.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// Run has something run until the test ends or stop is called; both wait for its return.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// Receive waits for a value.
func Receive[T any](t testing.TB, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(Limit):
		t.Fatal("no answer")
	}
	return v
}

// PutBack is a moment of time.Now on a wall clock that was set back meanwhile; its monotonic part stays.
func PutBack(t time.Time, seconds uint64) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t)) // package time: a flag, 33 bits of seconds, 30 of nanoseconds
	*wall -= seconds << 30
	return t
}
