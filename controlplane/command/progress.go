// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	progressAfter = 2 * time.Second // what is done sooner needs no bar
	progressEach  = 200 * time.Millisecond
)

// Progress is a bar in the last line of a terminal. Where w is no terminal it draws nothing. Any goroutine may call it,
// also on nil.
type Progress struct {
	w     io.Writer
	stop  chan struct{}
	once  sync.Once
	ended sync.WaitGroup

	mu    sync.Mutex
	title string
	share float64 // below 0: unknown
	look  func() float64
	drawn bool
}

// NewProgress begins; Done must follow.
func NewProgress(w io.Writer, title string) *Progress {
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	p := &Progress{w: w, title: title, share: -1, stop: make(chan struct{})}
	p.ended.Add(1)
	go p.run(time.Now())
	return p
}

func (p *Progress) run(start time.Time) {
	defer p.ended.Done()
	tick := time.NewTicker(progressEach)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		if spent := time.Since(start); spent >= progressAfter {
			p.draw(spent)
		}
	}
}

func (p *Progress) draw(spent time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.look != nil {
		p.share = p.look()
	}
	p.drawn = true
	fmt.Fprintf(p.w, "\r\x1b[K%s", Bar(p.title, p.share, spent))
}

// Bar is a progress line; a share below 0 is unknown.
func Bar(title string, share float64, spent time.Duration) string {
	const width = 32
	if share < 0 {
		return fmt.Sprintf("%-28s %s", title, spent.Round(time.Second))
	}
	n := min(int(width*share), width)
	return fmt.Sprintf("%-28s [%s%s] %3d %%", title, strings.Repeat("#", n), strings.Repeat(".", width-n),
		min(int(100*share), 100))
}

// Set sets the title, and the share of all work.
func (p *Progress) Set(title string, share float64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.title, p.share = title, share
}

// Follow asks look how much is done whenever it draws.
func (p *Progress) Follow(look func() float64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look = look
}

// During follows the time, of which all is d.
func (p *Progress) During(d time.Duration) {
	start := time.Now()
	p.Follow(func() float64 { return time.Since(start).Seconds() / max(d.Seconds(), 1) })
}

// clear takes the line away. The caller holds the lock.
func (p *Progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.drawn = false
}

// Around is w with the bar out of the way of each line.
func (p *Progress) Around(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return around{p, w}
}

type around struct {
	p *Progress
	w io.Writer
}

func (a around) Write(b []byte) (int, error) {
	a.p.mu.Lock()
	defer a.p.mu.Unlock()
	a.p.clear()
	return a.w.Write(b)
}

// Done takes the bar away. It may be called again.
func (p *Progress) Done() {
	if p == nil {
		return
	}
	p.once.Do(func() { close(p.stop) })
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// ReadShare is how much of some bytes a process has read, as /proc counts it from its start or since a former call's
// count; -1: unknown.
func ReadShare(pid int, since, bytes uint64) float64 {
	n, err := BytesRead(pid)
	if err != nil || bytes == 0 || n < since {
		return -1
	}
	return float64(n-since) / float64(bytes)
}

// BytesRead is how many bytes a process has read.
func BytesRead(pid int) (n uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	return n, err
}
