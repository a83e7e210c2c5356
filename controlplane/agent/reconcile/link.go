// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/dp"
)

// Waiting times between attempts to connect.
const (
	dialFirst = 50 * time.Millisecond
	dialMost  = time.Second
)

// link connects to the data plane, and has it started when it does not listen.
type link struct {
	path    string
	spawner *spawn.Spawner // nil: something else starts the data plane
	log     *slog.Logger
	group   sync.WaitGroup
}

func newLink(path string, s *spawn.Spawner, log *slog.Logger) *link {
	return &link{path: path, spawner: s, log: log}
}

// dial tries until it has a connection, which it gives to up, or ctx ends.
func (l *link) dial(ctx context.Context, up chan<- *dp.Client) {
	l.group.Add(1)
	go func() {
		defer l.group.Done()
		c := l.try(ctx)
		if c == nil {
			return
		}
		select {
		case up <- c:
		case <-ctx.Done():
			c.Close()
		}
	}()
}

func (l *link) wait() { l.group.Wait() }

func (l *link) try(ctx context.Context) *dp.Client {
	pause := dialFirst
	logged := ""
	for {
		c, err := dp.Dial(ctx, l.path)
		if err == nil {
			if l.spawner != nil {
				l.spawner.Adopt(int(c.Hello().PID))
			}
			return c
		}
		if ctx.Err() != nil {
			return nil
		}
		absent := errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
		most := dialMost
		if absent && l.spawner != nil {
			l.spawner.Ensure()
			most = 2 * dialFirst // it is coming up: do not sleep past it
		}
		if text := err.Error(); text != logged {
			logged = text
			l.log.Info("waiting for the data plane", "socket", l.path, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, most)
	}
}
