// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func TestProgress(t *testing.T) {
	keys, terminal := testkit.Pty(t)
	screen := testkit.Screen(keys)
	p := NewProgress(terminal, "reading")
	p.Follow(func() float64 { return 0.5 })
	testkit.Until(t, "the bar", func() bool { return strings.Contains(screen(), "[################....") })
	fmt.Fprintln(p.Around(terminal), "a line")
	testkit.Until(t, "the line", func() bool { return strings.Contains(screen(), "\r\x1b[Ka line") })
	testkit.Until(t, "the bar again", func() bool { return strings.HasSuffix(screen(), " 50 %") })
	p.Done()
	p.Done()
	testkit.Until(t, "nothing", func() bool { return strings.HasSuffix(screen(), "\r\x1b[K") })
}

func TestNoProgressWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, "x")
	p.Set("y", 1)
	p.Follow(func() float64 { return 1 })
	testkit.Equal[io.Writer](t, p.Around(&out), &out, "nothing around")
	p.Done()
	testkit.Equal(t, out.Len(), 0, "bytes")
}

func TestBar(t *testing.T) {
	testkit.Equal(t, Bar("x", 2, 0), "x                            [################################] 100 %",
		"too much")
	testkit.Equal(t, strings.TrimSpace(Bar("x", -1, 3*time.Second)[1:]), "3s", "unknown")
}

func TestReadShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	testkit.Must(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	before, err := BytesRead(os.Getpid())
	testkit.Must(t, err)
	_, err = os.ReadFile(path)
	testkit.Must(t, err)
	share := ReadShare(os.Getpid(), before, 2<<20)
	testkit.ErrorIf(t, share < 0.5 || share > 0.7, "%g", share)
	testkit.Equal(t, ReadShare(0, 0, 1), -1.0, "no process")
}
