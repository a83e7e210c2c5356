// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/dynamic"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/agent/serve"
	"isthmus/controlplane/alert"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/metrics"
)

// Periods of reading the data plane for events, paths and counts of sessions; the tables are short.
const (
	watchPeriod = 2 * time.Second
	slowPeriod  = 5 // looks
	maxPaths    = 1024
)

// watcher looks for events in what the data plane and the sessions count.
type watcher struct {
	state    *reconcile.Published
	sessions *dynamic.Sessions
	measures *measure.Set
	events   *events.Log
	log      *slog.Logger
	period   time.Duration
}

// run looks for events until ctx ends, beside everything else.
func (w *watcher) run(ctx context.Context) {
	find := alert.New()
	ticker := time.NewTicker(w.period)
	defer ticker.Stop()
	looks := 0 // at a data plane
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if n%slowPeriod == 0 {
			w.sessions.Flush()
		}
		c := w.state.Client()
		if c == nil {
			continue
		}
		f, err := w.figures(ctx, c, looks%slowPeriod == 0)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Debug("no figures to find events in", "error", err)
			}
			continue
		}
		looks++
		find.Look(time.Now(), f, w.events.Publish)
	}
}

// figures reads what events are found in. slow: the tables too that may be longer.
func (w *watcher) figures(ctx context.Context, c *dp.Client, slow bool) (*alert.Figures, error) {
	f := &alert.Figures{Boot: c.Hello().BootID}
	var totals []api.TotalRow
	var holders []api.HolderRow
	var nats []api.NATRow
	err := serve.Into(nil, ctx, c, api.TablePort, &f.Ports)
	err = serve.Into(err, ctx, c, api.TableDrop, &f.Drops)
	err = serve.Into(err, ctx, c, api.TableTotal, &totals)
	err = serve.Into(err, ctx, c, api.TableHolder, &holders)
	err = serve.Into(err, ctx, c, api.TableNAT, &nats)
	// With PFCP, the data plane's events report paths.
	if err == nil && slow && w.sessions == nil {
		f.Paths, err = dp.Table[api.PathRow](ctx, c, api.TablePath, "", maxPaths)
	}
	if err != nil {
		return nil, err
	}
	var queues []api.SchedulerRow
	if err := serve.Into(nil, ctx, c, api.TableScheduler, &queues); err != nil {
		return nil, err
	}
	for _, q := range metrics.ByClass(queues) {
		w.measures.Depth(q.Port, q.Class, uint64(q.Queued))
	}
	f.Limits = w.limits(totals, holders, nats)
	return f, nil
}

func (w *watcher) limits(totals []api.TotalRow, holders []api.HolderRow, nats []api.NATRow) (list []alert.Limit) {
	of := &w.state.Plan().Limits
	for i := range totals {
		t := &totals[i]
		list = append(list, alert.Limit{Name: "sessions", Used: t.Sessions, Of: uint64(of.Sessions)},
			alert.Limit{Name: "buffers", Used: t.Buffers - min(t.Buffers, t.BuffersFree), Of: t.Buffers})
	}
	for i := range holders {
		h := &holders[i]
		list = append(list, alert.Limit{Name: "held/" + api.CString(h.Name[:]), Used: h.Held, Of: h.Limit})
	}
	for i := range nats {
		n := &nats[i]
		list = append(list, alert.Limit{Name: "nat-blocks/" + api.CString(n.Name[:]), Used: uint64(n.Used),
			Of: uint64(n.Blocks)})
	}
	return append(list, w.sessions.Limits()...)
}
