// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"isthmus/controlplane/events"
)

// What one message may take of the log: peers and subscribers cause lines, and must not fill the disk or bury others.
const (
	linesOfMessage = 100
	lineWindow     = 10 * time.Second
	maxMessages    = 1024 // counted apart; further ones share a bound
)

// limited passes on a bounded number of lines of one message. The next passed line has the number of those left out.
// Debug lines are not limited.
type limited struct {
	slog.Handler
	of *messages
}

// messages are the bounds by message.
type messages struct {
	now  func() time.Time
	lock sync.Mutex
	by   map[string]*events.Gate
}

func (m *messages) open(message string) (held uint64, ok bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.by == nil {
		m.by = map[string]*events.Gate{}
	}
	g := m.by[message]
	if g == nil && len(m.by) >= maxMessages {
		message = ""
		g = m.by[message]
	}
	if g == nil {
		g = &events.Gate{Most: linesOfMessage, Window: lineWindow}
		m.by[message] = g
	}
	return g.Open(m.now())
}

// Handle is of slog.Handler.
func (l limited) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		held, ok := l.of.open(r.Message)
		if !ok {
			return nil
		}
		if held > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Uint64("not_logged", held))
		}
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs is of slog.Handler.
func (l limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{l.Handler.WithAttrs(attrs), l.of}
}

// WithGroup is of slog.Handler.
func (l limited) WithGroup(name string) slog.Handler { return limited{l.Handler.WithGroup(name), l.of} }
