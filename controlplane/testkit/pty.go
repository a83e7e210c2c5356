// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Pty opens a pseudo terminal of 80 columns and 24 lines: writes to keys are typed, and programs' output on terminal is
// read from keys. Both are closed when the test ends.
func Pty(t testing.TB) (keys, terminal *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	Must(t, err)
	t.Cleanup(func() { keys.Close() })
	fd := int(keys.Fd())
	Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	Must(t, err)
	Must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	Must(t, err)
	t.Cleanup(func() { terminal.Close() })
	return keys, terminal
}

// Screen collects what a program writes to a pseudo terminal, until that is closed; it returns all of it so far.
func Screen(keys *os.File) (text func() string) {
	got := make(chan []byte, 1)
	got <- nil
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := keys.Read(buffer)
			if err != nil {
				return
			}
			got <- append(<-got, buffer[:n]...)
		}
	}()
	return func() string {
		all := <-got
		got <- all
		return string(all)
	}
}
