// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// A store is valid while the machine that wrote it runs. After a boot the data plane's sessions are gone, and a power
// cut may have damaged the file: only the head is read. A later Recovery Time Stamp makes CP functions release their
// sessions (TS 23.527 §4.2). Keeping some would only conflict with new ones.

const bootFile = "/proc/sys/kernel/random/boot_id"

// Boot is another after each boot of the machine, empty when it cannot be known.
func Boot() string {
	b, err := os.ReadFile(bootFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// guarded turns what a torn file does to its reader (a fault beyond the end of the mapping) into an error.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unreadable: %v", r)
		}
	}()
	return fn()
}

var errInUse = errors.New("another process uses it")

// damaged: the contents are wrong, as opposed to a file that cannot be opened now.
func damaged(err error) bool {
	var path *fs.PathError
	return err != nil && !errors.As(err, &path) && !errors.Is(err, errInUse)
}

const badSuffix = ".bad"

// Moved is a file that cannot be read: where it was, where it is, and why.
type Moved struct {
	File, To string
	Why      error // nil: none was moved
}

// `Tell` publishes the event of a moved file.
func (m Moved) Tell(publish func(kind, subject string, args ...any)) {
	if m.Why != nil {
		publish("state.moved-aside", m.File, "to", m.To, "error", m.Why)
	}
}

// MoveAside keeps a damaged file, or one of another version, for analysis.
func MoveAside(path string, why error, log *slog.Logger) (Moved, error) {
	m := Moved{path, path + badSuffix, why}
	if err := os.Rename(m.File, m.To); err != nil {
		return Moved{}, fmt.Errorf("%w; it cannot be moved aside: %w", why, err)
	}
	log.Error("a file that was kept for a restart cannot be read and is moved aside",
		"file", m.File, "to", m.To, "error", why)
	return m, nil
}

func flock(f *os.File) error {
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return errInUse
	}
	return nil
}

// lock opens a store for us alone. A control plane that is about to end has it a moment longer, or puts a compacted
// file in its place.
func lock(path string) (f *os.File, err error) {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, err
		}
		if err = flock(f); err == nil {
			ours, failed := f.Stat()
			there, gone := os.Stat(path)
			if failed == nil && gone == nil && os.SameFile(ours, there) {
				return f, nil
			}
			err = errInUse
		}
		f.Close()
		if time.Now().After(end) {
			return nil, err
		}
	}
}
