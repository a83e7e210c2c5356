// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/reconcile"
	"isthmus/controlplane/agent/v1"
)

const (
	// hungAfter is longer than any transaction: the owner's loop turns or answers within.
	hungAfter = 3 * time.Minute
	// stillAfter is longer than a worker sleeps (50 ms) or waits for a CPU on a busy machine.
	stillAfter = 5 * time.Second
	probeLimit = 2 * time.Second // for the data plane's answer
)

// Probes answer whether the process must be restarted (Live), and whether the gateway forwards (Ready). Answers are one
// line a condition; a condition that does not hold makes status 503. Probes need no credentials: lines name conditions,
// ports and workers, and no subscriber or peer. Methods may be called from any goroutine.
type Probes struct {
	State *reconcile.Published

	mu    sync.Mutex
	last  []condition
	at    time.Time
	boot  uint64
	walks map[uint32]walked
}

// condition has a text of why it does not hold.
type condition struct{ name, why string }

// walked is a worker's count of graph walks, and when it was first read.
type walked struct {
	walks uint64
	since time.Time
}

// Live answers GET /livez: the loop that keeps the data plane in step turns. A data plane that is away is no reason to
// restart the control plane.
func (p *Probes) Live(w http.ResponseWriter, _ *http.Request) { tell(w, []condition{p.control()}) }

// Ready answers GET /readyz: packets are forwarded by the running configuration. Links of a single port may be down.
func (p *Probes) Ready(w http.ResponseWriter, r *http.Request) { tell(w, p.conditions(r.Context())) }

func tell(w http.ResponseWriter, list []condition) {
	var text strings.Builder
	status, end := http.StatusOK, "passed"
	for _, c := range list {
		if c.why == "" {
			fmt.Fprintf(&text, "[+]%s ok\n", c.name)
			continue
		}
		status, end = http.StatusServiceUnavailable, "failed"
		fmt.Fprintf(&text, "[-]%s failed: %s\n", c.name, c.why)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintf(w, "%scheck %s\n", text.String(), end)
}

// control is whether the owner's loop turns.
func (p *Probes) control() condition {
	c := condition{name: "control"}
	if idle := p.State.Turned(); idle > hungAfter {
		c.why = fmt.Sprintf("its loop has not turned for %s", idle.Round(time.Second))
	}
	return c
}

// conditions are at most a second old: probes of several clients reach the data plane once.
func (p *Probes) conditions(ctx context.Context) []condition {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || time.Since(p.at) >= snapshotAge {
		p.last, p.at = p.look(ctx), time.Now()
	}
	return p.last
}

func (p *Probes) look(ctx context.Context) []condition {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	now := p.State.Status()
	config := condition{name: "configuration"}
	if now.DataPlane == v1.StateRefused {
		config.why = now.LastError
	}
	list := []condition{p.control(), {name: "data plane", why: now.Away()}, config}
	if !now.Drain.Since.IsZero() {
		list = append(list, condition{"service", "it is drained: isthmus resume takes that back"})
	}
	c := p.State.Client()
	if c == nil {
		return list
	}
	var ports []api.PortRow
	var workers []api.WorkerRow
	err := Into(nil, ctx, c, api.TablePort, &ports)
	if err = Into(err, ctx, c, api.TableWorker, &workers); err != nil {
		list[1].why = "it does not answer: " + err.Error()
		return list
	}
	return append(list, p.workers(c.Hello().BootID, workers), links(ports))
}

// workers is whether each worker thread walks its graph. A new data plane begins at zero.
func (p *Probes) workers(boot uint64, rows []api.WorkerRow) condition {
	c, now := condition{name: "workers"}, time.Now()
	if p.walks == nil || boot != p.boot {
		p.boot, p.walks = boot, make(map[uint32]walked, len(rows))
	}
	for i := range rows {
		r := &rows[i]
		was, known := p.walks[r.Worker]
		if !known || was.walks != r.Walks {
			p.walks[r.Worker] = walked{r.Walks, now}
			continue
		}
		if still := now.Sub(was.since); still >= stillAfter {
			c.why = fmt.Sprintf("worker %d, CPU %d, has not walked for %s", r.Worker, r.CPU, still.Round(time.Second))
		}
	}
	return c
}

// links is whether all ports are there and one has a link.
func links(rows []api.PortRow) condition {
	c, up := condition{name: "ports"}, false
	for i := range rows {
		r := &rows[i]
		if r.Gone != 0 {
			c.why = fmt.Sprintf("the device of port %s is gone", api.CString(r.Name[:]))
		}
		up = up || r.Up != 0 && r.Gone == 0
	}
	if c.why == "" && !up && len(rows) > 0 {
		c.why = "no port has a link"
	}
	return c
}
