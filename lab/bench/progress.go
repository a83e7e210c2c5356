// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"isthmus/controlplane/command"
)

// progress draws a bar while time passes, on terminals only.
type progress struct {
	w     io.Writer
	on    bool
	title string
	total time.Duration
	spent time.Duration
}

func newProgress(w io.Writer, title string, total time.Duration) *progress {
	p := &progress{w: w, title: title, total: total}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.on = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// sleep waits and draws.
func (p *progress) sleep(ctx context.Context, d time.Duration) error {
	const step = 100 * time.Millisecond
	for d > 0 {
		part := min(d, step)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(part):
		}
		d -= part
		p.spent += part
		p.draw()
	}
	return nil
}

func (p *progress) draw() {
	if !p.on || p.total <= 0 {
		return
	}
	fmt.Fprint(p.w, "\r", command.Bar(p.title, p.spent.Seconds()/p.total.Seconds(), p.spent))
}

// done clears the line.
func (p *progress) done() {
	if p.on {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", 72))
	}
}
