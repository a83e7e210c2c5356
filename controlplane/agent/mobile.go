// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/natlog"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session"
	"isthmus/controlplane/view"
)

// What the configuration does not say of mobile sessions.
const (
	echoPeriod   = time.Minute // GTP-U Echo Requests (TS 29.281 §7.2.1: not more often)
	uePause      = time.Minute // a released UE address is not given out again before
	noSuchTimeIs = -1          // n4.Config: switched off, where 0 would be the default
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
		cfg := serverConfig(plan)
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
func (a *Agent) logBlocks(plan *Plan) (note string) {
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
func (a *Agent) storePath(plan *Plan) string {
	switch folder := cmp.Or(a.opt.State, plan.Control.State); {
	case plan.PFCP.Store != "":
		return plan.PFCP.Store
	case folder != "":
		return filepath.Join(folder, "sessions.db")
	}
	return a.opt.Socket + ".sessions.db"
}

var sources = map[string]pfcp.Interface{"access": pfcp.Access, "core": pfcp.Core, "sgi-lan": pfcp.SGiLAN, "cp": pfcp.CPSide}

// sessionSettings is the configuration as the session layer needs it.
func sessionSettings(c *config.Config) *rules.Settings {
	l := &c.PFCP.Limits
	set := &rules.Settings{
		Node: pfcp.ParseNodeID(c.PFCP.Node()), Workers: int(c.Engine.Workers), FTEID: c.PFCP.FTEID,
		KeepAction: c.PFCP.EmptyAction == "unchanged", MonitoringPair: c.PFCP.Monitoring == "pair",
		Takeover: c.PFCP.Takeover, Echo: echoPeriod, Quarantine: uePause,
		Burst: rules.Burst{Window: time.Duration(c.PFCP.MBRBurst.Window) * time.Millisecond, Least: uint64(c.PFCP.MBRBurst.Least)},
		Limits: rules.Limits{Sessions: int(l.Sessions), SessionsPerAssociation: int(l.SessionsPerAssociation), PDRs: int(l.PDRs),
			FARs: int(l.FARs), QERs: int(l.QERs), URRs: int(l.URRs), Filters: int(l.Filters),
			Applications: int(l.Applications), PFDs: int(l.PFDs)},
	}
	set.Relay = len(c.PFCP.Roles) == 1 && c.PFCP.Is("sgwu")
	if set.Limits.Sessions == 0 {
		set.Limits.Sessions = max(int(c.Engine.Limits.Sessions)-len(c.Subscribers), 1)
	}
	for _, in := range c.Instances {
		made := rules.Instance{Name: string(in.Name), Names: in.Names, Lookup: intent.Lookups[in.Lookup],
			UDPPort: in.UDPPort, DSCP: in.DSCP,
			QFIDSCP: intent.QFIDSCP(in.QFIDSCP), Shaping: shapingOf(c, &in.Shaping)}
		for _, e := range in.Endpoints {
			made.Endpoints = append(made.Endpoints, e.Addr)
		}
		for _, p := range in.Pools {
			made.Pools = append(made.Pools, p.Prefix)
		}
		for _, s := range in.Sources {
			made.Sources = append(made.Sources, sources[s])
		}
		set.Instances = append(set.Instances, made)
	}
	set.Lines = lineShaping(c)
	return set
}

// lineShaping are the schedulers of ports where subscribers sign in, beside those of the file.
func lineShaping(c *config.Config) map[string]*rules.Shaping {
	by := map[string]*rules.Shaping{}
	for i := range c.Access.Ports {
		port := c.Access.Ports[i].Port
		if h := shapingOf(c, &config.Shaping{Port: port}); h != nil {
			by[string(port)] = h
		}
	}
	for i := range c.Subscribers {
		s := &c.Subscribers[i]
		if h := by[string(s.From.Port)]; h != nil {
			h.Taken = append(h.Taken, rules.PipeAt(int(s.Subport), s.Pipe))
		}
	}
	return by
}

func shapingOf(c *config.Config, h *config.Shaping) *rules.Shaping {
	at := slices.IndexFunc(c.Schedulers, func(s config.Scheduler) bool { return s.Port == h.Port })
	if h.Port == "" || at < 0 {
		return nil
	}
	s := &c.Schedulers[at]
	made := &rules.Shaping{Port: string(h.Port), Profile: string(cmp.Or(h.Profile, s.Profiles[0].Name))}
	for i := range s.Profiles {
		made.Profiles = append(made.Profiles, string(s.Profiles[i].Name))
	}
	for _, g := range s.Groups {
		made.Subports = append(made.Subports, rules.ShapingSubport{Worker: uint16(g.Worker), Pipes: g.Pipes})
	}
	return made
}

func orOff[T int | time.Duration](v T) T {
	if v == 0 {
		return noSuchTimeIs
	}
	return v
}

func serverConfig(plan *Plan) n4.Config {
	p := plan.PFCP
	gateway := p.Is("upf") || p.Is("sgwu") || p.Is("pgwu") || len(p.Roles) == 0
	pools := []pfcp.UEPool{}
	for _, in := range plan.Settings.Instances {
		for _, u := range in.Pools {
			pools = append(pools, pfcp.UEPool{NetworkInstance: in.Name, Pool: u.String()})
		}
	}
	cfg := n4.Config{
		Node: plan.Settings.Node, AllowUnknown: p.AllowUnknown, UEPools: pools,
		Features: n4.Features(n4.Capabilities{
			UserPlane: gateway, PDN: p.Is("upf") || p.Is("pgwu") || len(p.Roles) == 0, ChooseFTEID: p.FTEID != rules.FTEIDCp,
			Pools: len(pools) > 0, Applications: p.Limits.Applications > 0,
		}),
		HeartbeatInterval: orOff(time.Duration(p.Heartbeat.Interval) * time.Second),
		Timeout:           time.Duration(p.Heartbeat.Timeout) * time.Second, Retries: orOff(int(p.Heartbeat.Retries)),
		Headless:    orOff(time.Duration(p.Headless) * time.Second),
		RequestRate: int(p.Rates.Requests), UnknownRate: int(p.Rates.Heartbeats),
		Associations: int(p.Limits.Associations),
	}
	for _, l := range p.Listen {
		cfg.Listen = append(cfg.Listen, l.AddrPort)
	}
	for _, q := range p.Peers {
		cfg.Peers = append(cfg.Peers, n4.Peer{Addr: q.Address.AddrPort, Node: q.NodeID, Set: q.Set, Connect: q.Connect})
	}
	return cfg
}

// restartsPFCP tells whether the PFCP server would have to be another one. Limits, F-TEID allocation, takeover and
// instances are taken over while it runs.
func restartsPFCP(was, is *Plan) bool {
	on := func(p *Plan) bool { return p.PFCP != nil && p.PFCP.Enabled() }
	if !on(was) || !on(is) {
		return on(was) != on(is)
	}
	return was.PFCP.Store != is.PFCP.Store || !reflect.DeepEqual(serverConfig(was), serverConfig(is))
}

// ---- reconciling
// -----------------------------------------------------------------------------------------------------

// pushMobile is push where there are mobile sessions.
func (a *Agent) pushMobile(ctx context.Context, c *dp.Client, plan *Plan, want intent.State, all bool) (v1.Result, error) {
	res := v1.Result{Objects: len(want)}
	out, err := a.mobile.manager.Synchronise(ctx, c, plan.Settings, all, func(held []api.Digest) []dp.Change {
		changes := Diff(held, want)
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
func (a *Agent) adoptSettings(plan *Plan) {
	if a.mobile != nil {
		a.mobile.manager.Configure(plan.Settings)
	}
}

// noDynamic refuses names that sessions over PFCP use.
func noDynamic(objects intent.State) error {
	for i := range objects {
		if name := objects[i].Name(); rules.Dynamic(objects[i].Kind, name) {
			return errors.New(name + ": names that begin with " + rules.Prefix + " are kept for sessions over PFCP")
		}
	}
	return nil
}
