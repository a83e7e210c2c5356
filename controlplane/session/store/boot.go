// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// Foreign is the error of a whole store that another version has written.
func Foreign(err error) bool { return errors.Is(err, errVersion) }

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
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return nil
	}
	who := ""
	if pid := holder(f); pid > 0 {
		who = fmt.Sprintf(", process %d", pid)
	}
	return fmt.Errorf("%w%s: stop that process, or give this one a folder of its own (control.state or --state)",
		errInUse, who)
}

// holder is the process that has the lock on a file, as /proc/locks names it; 0: it cannot be seen from here.
func holder(f *os.File) int {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	of := info.Sys().(*syscall.Stat_t)
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(of.Dev), unix.Minor(of.Dev), of.Ino)
	locks, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(locks)) { // 1: FLOCK  ADVISORY  WRITE 4242 08:01:131 0 EOF
		if words := strings.Fields(line); len(words) > 5 && words[1] == "FLOCK" && words[5] == file {
			pid, _ := strconv.Atoi(words[4])
			return pid
		}
	}
	return 0
}

// lockTime is how long a control plane that is about to end may have what another waits for.
const lockTime = 2 * time.Second

// LockFolder keeps a folder of state for us alone until the file is closed, and makes the folder if it is missing.
// Nothing is written into it.
func LockFolder(path string) (f *os.File, err error) {
	if err = os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	if f, err = os.Open(path); err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockTime); ; time.Sleep(20 * time.Millisecond) {
		if err = flock(f); err == nil {
			return f, nil
		}
		if time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}

// lock opens a store for us alone. A control plane that is about to end has it a moment longer, or puts a compacted
// file in its place.
func lock(path string) (f *os.File, err error) {
	for end := time.Now().Add(lockTime); ; time.Sleep(20 * time.Millisecond) {
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
