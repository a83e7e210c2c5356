// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/dp"
)

// reopen is how long to wait before the channel is opened again.
const reopen = 100 * time.Millisecond

// Channel is Frames by the data plane's channel, opened again when it is lost.
type Channel struct {
	path string
	log  *slog.Logger
	now  atomic.Pointer[dp.Channel]
	lost atomic.Uint64 // frames that were to go down while it was closed, or full
	last *dp.Channel   // Next's
}

// NewChannel opens none yet.
func NewChannel(path string, log *slog.Logger) *Channel { return &Channel{path: path, log: log} }

// Next is Frames'.
func (c *Channel) Next(ctx context.Context) ([]access.Frame, error) {
	for ctx.Err() == nil {
		if c.last == nil {
			c.open(ctx)
			continue
		}
		frames, err := c.last.Next(ctx)
		if err == nil {
			return frames, nil
		}
		c.log.Debug("the channel of subscribers' frames is lost", "error", err)
		c.now.Store(nil)
		c.last.Close()
		c.last = nil
	}
	if c.last != nil {
		c.now.Store(nil)
		c.last.Close()
		c.last = nil
	}
	return nil, ctx.Err()
}

func (c *Channel) open(ctx context.Context) {
	made, err := dp.OpenChannel(ctx, c.path)
	if err != nil {
		select {
		case <-time.After(reopen):
		case <-ctx.Done():
		}
		return
	}
	c.last = made
	c.now.Store(made)
}

// Send is Frames'.
func (c *Channel) Send(f *access.Frame) {
	now := c.now.Load()
	if now == nil || now.Send([]access.Frame{*f}) != nil {
		c.lost.Add(1)
	}
}

// Lost is Frames'.
func (c *Channel) Lost() uint64 { return c.lost.Load() }

// Port is Frames'.
func (c *Channel) Port(name string) (none access.PortAddresses) {
	if now := c.now.Load(); now != nil {
		return now.Port(name)
	}
	return none
}
