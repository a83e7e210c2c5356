// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/metrics"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/view"
)

// snapshotAge bounds how often scrapes reach the data plane.
const snapshotAge = time.Second

// snapshots keeps the last figures for the metrics.
type snapshots struct {
	mu   sync.Mutex
	last *metrics.Snapshot
	at   time.Time
}

// Snapshot returns figures that are at most a second old. While the data plane is away it says so and gives none.
func (a *Agent) Snapshot(ctx context.Context) *metrics.Snapshot {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	if a.cache.last != nil && time.Since(a.cache.at) < snapshotAge {
		return a.cache.last
	}
	a.cache.last, a.cache.at = a.fetch(ctx), time.Now()
	return a.cache.last
}

func (a *Agent) fetch(ctx context.Context) *metrics.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s := &metrics.Snapshot{}
	for _, l := range a.listeners {
		s.Refused = append(s.Refused, n4.Count{Name: l.Name, Value: l.Refused()})
	}
	if a.mobile != nil && a.mobile.server != nil {
		s.PFCP = a.mobile.server.Stats()
	}
	if a.signedIn() != nil {
		s.SignIns = a.signInFigures(ctx)
	}
	for reason, n := range a.Status().RoutesIgnored {
		s.IgnoredRoutes = append(s.IgnoredRoutes, n4.Count{Name: reason, Value: uint64(n)})
	}
	s.Processes = append(s.Processes, metrics.ReadProcess("isthmus", os.Getpid()))
	if a.mobile != nil {
		s.SnapshotsFailed = []uint64{a.mobile.manager.Counts().SnapshotsFailed}
		if info, err := os.Stat(a.mobile.store); err == nil {
			s.StoreBytes = uint64(info.Size())
		}
	}
	c := a.client.Load()
	if err := a.show(ctx, nil, s); err != nil || c == nil {
		return s
	}
	alone := *s
	err := a.show(ctx, c, s)
	err = orRead(err, ctx, c, api.TableNode, &s.Nodes)
	err = orRead(err, ctx, c, api.TableHolder, &s.Holders)
	err = orRead(err, ctx, c, api.TableTraffic, &s.Traffic)
	err = orRead(err, ctx, c, api.TableScheduler, &s.Schedulers)
	if err != nil {
		a.log.Warn("no figures for the metrics", "error", err)
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
func (a *Agent) show(ctx context.Context, c *dp.Client, s *metrics.Snapshot) error {
	for _, t := range view.Tables {
		if len(t.Figures) == 0 || t.OfControl() != (c == nil) ||
			a.mobile == nil && slices.Contains(ofSessions, t.Name) {
			continue
		}
		rows, err := t.Get(ctx, c, a.control, "", 0)
		if err != nil {
			return err
		}
		s.Shown = append(s.Shown, metrics.Shown{Table: t, Rows: rows})
	}
	return nil
}

func read[T any, P api.Row[T]](ctx context.Context, c *dp.Client, table uint32, to *[]T) error {
	rows, err := dp.Table[T, P](ctx, c, table, "", 0)
	*to = rows
	return err
}

func orRead[T any, P api.Row[T]](err error, ctx context.Context, c *dp.Client, table uint32, to *[]T) error {
	if err != nil {
		return err
	}
	return read[T, P](ctx, c, table, to)
}
