// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/natlog"
	"isthmus/controlplane/session"
	"isthmus/controlplane/view"
)

// mobile is the sessions that are no configuration's, and the PFCP server before them.
type mobile struct {
	manager *session.Manager
	server  *n4.Server // nil: there is none, subscribers sign in alone
	access  *signIns   // nil: nobody signs in
	blocks  *natlog.Log
	store   string // path of the sessions' file
	tally   *events.Sessions
	group   sync.WaitGroup

	comparing atomic.Bool // resyncSessions is under way
}

// openMobile opens the store and the sockets, when the configuration has PFCP, or subscribers who sign in. Run serves
// them.
func (a *Agent) openMobile() error {
	plan := a.plan
	pfcp := plan.PFCP != nil && plan.PFCP.Enabled()
	if !pfcp && plan.SignIn == nil {
		return nil
	}
	manager, err := session.Open(a.storePath(plan), plan.Settings, a.log)
	if err != nil {
		return err
	}
	manager.SetMeasures(a.measures)
	a.mobile = &mobile{manager: manager, store: a.storePath(plan), blocks: natlog.New(a.log, a.events.Publish)}
	if pfcp {
		cfg := plan.Server()
		cfg.Measures = a.measures
		if a.mobile.server, err = n4.New(cfg, manager, a.log); err == nil {
			manager.SetReporter(a.mobile.server)
		}
	}
	if err == nil {
		err = a.openAccess()
	}
	if err != nil {
		if s := a.mobile.access; s != nil {
			s.accounts.Close()
		}
		manager.Close()
		return err
	}
	manager.ReleaseOrphans()
	a.mobile.observe(a.events)
	manager.SetRecorder(func(e *api.Event) bool {
		a.heard(e)
		return a.watermark(e) || a.mobile.blocks.Event(e)
	})
	a.logBlocks(plan)
	return nil
}

// watermark logs that a counter reached its watermark; false: the event is another.
func (a *Agent) watermark(e *api.Event) bool {
	if e.Type != api.EventTypeWatermark {
		return false
	}
	a.log.Info("watermark reached", "counter", api.CString(e.Counter[:]), "session", api.CString(e.Session[:]),
		"seid", e.SEID, "packets", e.Usage.Packets[0], "bytes", e.Usage.Bytes[0])
	return true
}

// logBlocks sends records of NAT44 where the plan says; note: what cannot be reached now.
func (a *Agent) logBlocks(plan *plan.Plan) (note string) {
	var syslog, ipfix []netip.AddrPort
	if a.mobile == nil {
		return ""
	}
	for _, c := range plan.NATLog.Syslog {
		syslog = append(syslog, c.Or(514))
	}
	for _, c := range plan.NATLog.IPFIX {
		ipfix = append(ipfix, c.Or(4739))
	}
	if err := a.mobile.blocks.Configure(syslog, ipfix); err != nil {
		note = "nat_log: " + strings.ReplaceAll(err.Error(), "\n", ", ") +
			"; it is tried again: isthmus show collector"
	}
	return note
}

// collectors are those of nat_log.
func (a *Agent) collectors() (list []view.Collector) {
	if a.mobile == nil {
		return nil
	}
	for _, s := range a.mobile.blocks.States() {
		list = append(list, view.Collector(s))
	}
	return list
}

// spawn runs fn until stop waits for it.
func (m *mobile) spawn(fn func()) {
	m.group.Add(1)
	go func() { defer m.group.Done(); fn() }()
}

// run serves until ctx ends. snapshots: how often usage is read; 0: never.
func (m *mobile) run(ctx context.Context, socket string, snapshots time.Duration) {
	m.spawn(func() { m.manager.Run(ctx) })
	m.spawn(func() { m.manager.Follow(ctx, socket) })
	if snapshots > 0 {
		m.spawn(func() { m.manager.Snapshots(ctx, socket, snapshots) })
	}
	m.spawn(func() { m.blocks.Run(ctx) })
	if m.server != nil {
		m.spawn(func() { m.server.Run(ctx) })
	}
	if m.access != nil {
		m.access.run(ctx, m)
	}
}

// storePath is pfcp.store, or its default: beside what else outlives us.
func (a *Agent) storePath(plan *plan.Plan) string {
	switch folder := cmp.Or(a.opt.State, plan.Control.State); {
	case plan.PFCP.Store != "":
		return plan.PFCP.Store
	case folder != "":
		return filepath.Join(folder, "sessions.db")
	}
	return a.opt.Socket + ".sessions.db"
}

// ---- reconciling
// -----------------------------------------------------------------------------------------------------

// pushMobile is push where there are mobile sessions.
func (a *Agent) pushMobile(ctx context.Context, c *dp.Client, p *plan.Plan, want intent.State, all bool) (v1.Result, error) {
	res := v1.Result{Objects: len(want)}
	out, err := a.mobile.manager.Synchronise(ctx, c, p.Settings, all, func(held []api.Digest) []dp.Change {
		changes := plan.Diff(held, want)
		count(&res, changes)
		return changes
	})
	if err != nil {
		return v1.Result{}, err
	}
	if out.Ended > 0 {
		res.Note = fmt.Sprintf("%d mobile sessions ended: no network instance is left for them", out.Ended)
	}
	res.Put, res.Deleted = res.Put+out.Put, res.Deleted+out.Deleted
	return res, nil
}

func count(res *v1.Result, changes []dp.Change) {
	for i := range changes {
		if changes[i].Body == nil {
			res.Deleted++
		} else {
			res.Put++
		}
	}
}

func (a *Agent) detachMobile() {
	if a.mobile != nil {
		a.mobile.manager.Attach(nil)
	}
}

// resyncSessions compares the sessions over PFCP with what the data plane holds, beside everything else. With a million
// of them that takes longer than a period: there is one comparison at a time.
func (a *Agent) resyncSessions(ctx context.Context) {
	c := a.client.Load()
	if a.mobile == nil || c == nil || !a.mobile.comparing.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer a.mobile.comparing.Store(false)
		out, err := a.mobile.manager.Resynchronise(ctx, c)
		if err != nil {
			a.log.Warn("the comparison of sessions ended early", "error", err)
		}
		if out.Put+out.Deleted > 0 {
			a.log.Info("sessions differed", "sent", out.Put, "deleted", out.Deleted, "refused", out.Refused)
		}
	}()
}

// adoptSettings takes a plan's instances and limits over while the data plane is away.
func (a *Agent) adoptSettings(plan *plan.Plan) {
	if a.mobile != nil {
		a.mobile.manager.Configure(plan.Settings)
	}
}
