// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/metrics"
	"isthmus/controlplane/n4"
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
	sessions := a.sessions.Figures(ctx, s)
	for reason, n := range a.owner.Status().RoutesIgnored {
		s.IgnoredRoutes = append(s.IgnoredRoutes, n4.Count{Name: reason, Value: uint64(n)})
	}
	s.Processes = append(s.Processes, metrics.ReadProcess("isthmus", os.Getpid()))
	c := a.owner.Client()
	if c == nil {
		return s
	}
	alone := *s
	err := read(ctx, c, api.TablePort, &s.Ports)
	err = orRead(err, ctx, c, api.TableNode, &s.Nodes)
	err = orRead(err, ctx, c, api.TableDrop, &s.Drops)
	err = orRead(err, ctx, c, api.TablePunt, &s.Punts)
	err = orRead(err, ctx, c, api.TableWorker, &s.Workers)
	err = orRead(err, ctx, c, api.TableTotal, &s.Totals)
	err = orRead(err, ctx, c, api.TableHolder, &s.Holders)
	err = orRead(err, ctx, c, api.TableMSS, &s.MSS)
	err = orRead(err, ctx, c, api.TableMirror, &s.Mirrors)
	err = orRead(err, ctx, c, api.TableCounter, &s.Counters)
	err = orRead(err, ctx, c, api.TableTraffic, &s.Traffic)
	err = orRead(err, ctx, c, api.TableScheduler, &s.Schedulers)
	if sessions {
		err = orRead(err, ctx, c, api.TableInstance, &s.Instances)
		err = orRead(err, ctx, c, api.TableNAT, &s.NATs)
		err = orRead(err, ctx, c, api.TableNPTv6, &s.NPTv6s)
		err = orRead(err, ctx, c, api.TableEvent, &s.Events)
	}
	if err != nil {
		a.opt.Log.Warn("no figures for the metrics", "error", err)
		return &alone
	}
	s.Up = true
	hello := c.Hello()
	s.Processes = append(s.Processes, metrics.ReadProcess("isthmus-dp", int(hello.PID)))
	s.Build = api.CString(hello.Build[:])
	return s
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
