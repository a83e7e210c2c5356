// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"isthmus/controlplane/printable"
)

// Bounds of what is kept of a data plane's words.
const (
	lastLines = 5
	lineBytes = 200
)

// lastWordsWait is how long words may come behind the end of their process: of a child of it that lives on.
const lastWordsWait = 5 * time.Second

// ownEnd is the descriptor by which a data plane holds the reading end of its own words. So the pipe never breaks: what
// is said while there is no control plane waits in it, and the next control plane reads it there.
const ownEnd = 3

// words are what a data plane says on its standard error. They are handed on, and the last lines are kept.
type words struct {
	from *os.File
	all  chan struct{} // closed when there will be no more

	mu    sync.Mutex
	lines []string
}

// hear reads from the reading end of a pipe.
func hear(from *os.File, to io.Writer) *words {
	w := &words{from: from, all: make(chan struct{})}
	go w.read(to)
	return w
}

// listenTo reads what a process says that a former control plane started; nil: its words go elsewhere.
func listenTo(pid int, to io.Writer) (*words, error) {
	of := func(fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, fd) }
	out, err := os.Readlink(of(2))
	if err != nil {
		return nil, err
	}
	if own, _ := os.Readlink(of(ownEnd)); own != out || !strings.HasPrefix(out, "pipe:") {
		return nil, nil
	}
	// Without waiting for a writer, and so that Close() ends a read.
	f, err := os.OpenFile(of(ownEnd), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return hear(f, to), nil
}

func (w *words) read(to io.Writer) {
	defer close(w.all)
	defer w.from.Close()
	in := bufio.NewReader(w.from)
	for goesOn := false; ; {
		line, err := in.ReadSlice('\n')
		to.Write(line)
		if !goesOn {
			w.keep(string(line))
		}
		goesOn = errors.Is(err, bufio.ErrBufferFull) // a line that is too long is cut
		if err != nil && !goesOn {
			return
		}
	}
}

func (w *words) keep(line string) {
	line = strings.TrimSpace(line)
	line = printable.Text(strings.ToValidUTF8(line[:min(len(line), lineBytes)], "?"))
	if line == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	w.lines = w.lines[max(0, len(w.lines)-lastLines):]
}

// last are the last lines of a process that has ended; empty where they were not read.
func (w *words) last() []string {
	if w == nil {
		return []string{}
	}
	select {
	case <-w.all:
	case <-time.After(lastWordsWait):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.lines...)
}
