// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile has the process id of the lab that holds its lock; the kernel lets the lock go when that process ends.
const lockFile = "lock"

// takeLock makes the folder ours. A folder that is not a lab's is refused: its contents would be removed.
func takeLock(dir string) (*os.File, error) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 && !slices.ContainsFunc(entries,
		func(e os.DirEntry) bool { return e.Name() == lockFile }) {
		return nil, fmt.Errorf("%s is not empty and not a lab's; choose another --dir", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("a lab is running already (process %d, %s); `isthmus lab clean` ends it", holder(dir),
			dir)
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(dir string) int {
	b, _ := os.ReadFile(filepath.Join(dir, lockFile))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// Clean ends a running lab, and removes the remains of a killed one. It returns what it removed.
func Clean(ctx context.Context, dir string) (string, error) {
	if os.Geteuid() != 0 {
		return "", errors.New("needs root: sudo isthmus lab clean")
	}
	if _, err := os.Stat(filepath.Join(dir, lockFile)); err == nil {
		if err := endHolder(ctx, dir); err != nil {
			return "", err
		}
	}
	list := namespaces()
	if files, _ := os.ReadDir(dir); len(list) == 0 && (len(files) == 0 || len(files) == 1 &&
		files[0].Name() == lockFile) {
		return "nothing to remove", nil // a lab that ended well leaves its lock file
	}
	lock, err := takeLock(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := sweep(dir); err != nil {
		return "", err
	}
	return fmt.Sprintf("removed %d namespaces and the files in %s", len(list), dir), nil
}

// endHolder asks the lab that holds the folder's lock to end, and kills it when it does not.
func endHolder(ctx context.Context, dir string) error {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	defer f.Close()
	for tries := 0; ; tries++ {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			return nil // it is not in use, or not any more
		}
		pid := holder(dir)
		if pid <= 1 {
			return fmt.Errorf("%s is locked by a process that does not say who it is", dir)
		}
		switch tries {
		case 0:
			syscall.Kill(pid, syscall.SIGTERM)
		case 150:
			syscall.Kill(pid, syscall.SIGKILL)
		case 200:
			return fmt.Errorf("process %d does not end", pid)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// sweep removes everything that a lab makes but the lock file, which is ours: processes in its namespaces, the
// namespaces with their interfaces, files.
func sweep(dir string) error {
	var errs []error
	for _, ns := range namespaces() {
		if err := killInside(ns); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := command(context.Background(), "ip", "netns", "del", ns); err != nil {
			errs = append(errs, err)
		}
	}
	files, _ := filepath.Glob(filepath.Dir(resolvFile("*")))
	for _, file := range files {
		os.RemoveAll(file)
	}
	os.Remove("/etc/netns") // if no other files are there
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockFile {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// killInside ends all processes that are in a network namespace.
func killInside(ns string) error {
	var want unix.Stat_t
	if err := unix.Stat(filepath.Join(netnsDir, ns), &want); err != nil {
		return nil // gone
	}
	for range 50 {
		alive := 0
		for _, pid := range processes() {
			var have unix.Stat_t
			if unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &have) != nil || have.Ino != want.Ino ||
				have.Dev != want.Dev {
				continue
			}
			if pid == os.Getpid() {
				return fmt.Errorf("this shell is inside of %s; leave it first", ns)
			}
			if dead(pid) {
				continue
			}
			syscall.Kill(pid, syscall.SIGKILL)
			alive++
		}
		if alive == 0 {
			return nil
		}
		pause(context.Background(), 20*time.Millisecond)
	}
	return fmt.Errorf("processes in %s do not end", ns)
}

func processes() []int {
	entries, _ := os.ReadDir("/proc")
	var list []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// dead: only the exit status of a process is left.
func dead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(b, ')')
	return i > 0 && len(b) > i+2 && b[i+2] == 'Z'
}
