// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/httpd"
	"isthmus/controlplane/metrics"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/view"
)

// snapshotAge bounds how often scrapes reach the data plane.
const snapshotAge = time.Second

// Scraper has the figures of the metrics.
type Scraper struct {
	State     *reconcile.Published
	Sessions  Sessions
	Tables    view.Control
	Listeners func() []*httpd.Listener
	Log       *slog.Logger

	mu   sync.Mutex
	last *metrics.Snapshot
	at   time.Time
}

// Snapshot returns figures that are at most a second old. While the data plane is away it says so and gives none.
func (f *Scraper) Snapshot(ctx context.Context) *metrics.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && time.Since(f.at) < snapshotAge {
		return f.last
	}
	f.last, f.at = f.fetch(ctx), time.Now()
	return f.last
}

func (f *Scraper) fetch(ctx context.Context) *metrics.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	now := f.State.Status()
	s := &metrics.Snapshot{Connects: now.Connects, Ends: now.DPEnded.Total}
	for _, l := range f.Listeners() {
		s.Refused = append(s.Refused, n4.Count{Name: l.Name, Value: l.Refused()})
	}
	sessions := f.Sessions.Figures(ctx, s)
	for reason, n := range now.RoutesIgnored {
		s.IgnoredRoutes = append(s.IgnoredRoutes, n4.Count{Name: reason, Value: uint64(n)})
	}
	s.Processes = append(s.Processes, metrics.ReadProcess("isthmus", os.Getpid()))
	c := f.State.Client()
	if err := f.show(ctx, nil, sessions, s); err != nil || c == nil {
		return s
	}
	alone := *s
	err := f.show(ctx, c, sessions, s)
	err = Into(err, ctx, c, api.TableNode, &s.Nodes)
	err = Into(err, ctx, c, api.TableHolder, &s.Holders)
	err = Into(err, ctx, c, api.TableTraffic, &s.Traffic)
	err = Into(err, ctx, c, api.TableScheduler, &s.Schedulers)
	if err != nil {
		f.Log.Warn("no figures for the metrics", "error", err)
		return &alone
	}
	s.Up = true
	hello := c.Hello()
	s.Processes = append(s.Processes, metrics.ReadProcess("isthmus-dp", int(hello.PID)))
	s.Build = api.CString(hello.Build[:])
	return s
}

// ofSessions are tables that have figures only where there is PFCP, or subscribers sign in.
var ofSessions = []string{"instance", "nat", "nptv6", "event"}

// show adds the tables that have figures: those of the data plane, without one those of the control plane.
func (f *Scraper) show(ctx context.Context, c *dp.Client, sessions bool, s *metrics.Snapshot) error {
	for _, t := range view.Tables {
		if len(t.Figures) == 0 || t.OfControl() != (c == nil) || !sessions && slices.Contains(ofSessions, t.Name) {
			continue
		}
		rows, err := t.Get(ctx, c, f.Tables, "", 0)
		if err != nil {
			return err
		}
		s.Shown = append(s.Shown, metrics.Shown{Table: t, Rows: rows})
	}
	return nil
}

// Into reads a whole table into *to, unless err says that something before it failed; it returns what failed first.
func Into[T any, P api.Row[T]](err error, ctx context.Context, c *dp.Client, table uint32, to *[]T) error {
	if err == nil {
		*to, err = dp.Table[T, P](ctx, c, table, "", 0)
	}
	return err
}
