// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"isthmus/controlplane/command"
)

// progress moves a bar while time passes.
type progress struct {
	bar          *command.Progress
	title        string
	total, spent time.Duration
}

// sleep waits, and moves the bar.
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
		p.bar.Set(p.title, p.spent.Seconds()/max(p.total.Seconds(), 1))
	}
	return nil
}
