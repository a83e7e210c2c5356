// SPDX-License-Identifier: Apache-2.0

// Package session has the sessions of all CP functions: it commits requests to the data plane and the store, finds
// sessions for events, and reports. Rules of a session are in package rules.
package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"isthmus/api"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/memory"
	"isthmus/controlplane/session/store"
)

const tick = time.Second // sweeping

// Manager is the session layer as a whole. One goroutine, Run, commits all waiting requests as one transaction. The
// table's mu guards what has no lock of its own; others (show, reports) take it in turn.
type Manager struct {
	*table
	*requests
	*associations
	*applications
	*lines
	*reader
	*stepper
	*glances
	commits *committer
	file    *storing
	reports *reporting
	plans   *planner

	pacer *memory.Pacer // Run's alone
}

// Counters are for show and metrics.
type Counters struct {
	Established, Modified, Deleted uint64
	Refused                        map[uint8]uint64 // by cause
	Transactions, Alone            uint64           // Alone: requests tried again by themselves
	Unknown                        uint64           // requests for sessions that are not the asker's (row A13)
	StoreErrors                    uint64
	ReportCounters
	SnapshotsFailed uint64 // of what sessions have used
	FiltersKept     uint64 // sessions whose new PFDs the data plane refused
}

// Open restores the store's contents. An empty path keeps nothing.
func Open(path string, set *rules.Settings, log *slog.Logger) (*Manager, error) {
	return open(path, store.Boot(), set, log)
}

func open(path, boot string, set *rules.Settings, log *slog.Logger) (*Manager, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	st, err := store.Open(path, boot, log)
	if err != nil {
		return nil, err
	}
	p := newManager(set, st, log)
	if err = p.load(); errors.Is(err, rules.ErrVersion) {
		p = newManager(set, st, log)
		err = st.Begin(err, log)
	}
	if err != nil {
		st.Close()
		return nil, err
	}
	return p, nil
}

// Moved describes a store that Open moved aside.
func (p *Manager) Moved() store.Moved { return p.file.store.Moved() }

func newManager(set *rules.Settings, st *store.Store, log *slog.Logger) *Manager {
	p := &Manager{table: newTable(set, log), file: &storing{log: log, store: st}}
	p.commits = newCommitter(p.table, p.file)
	p.audience = p
	p.reports = newReporting(finder{p.table}, p.commits.rouse, set.Node, log)
	p.lines = &lines{table: p.table, commits: p.commits, reports: p.reports}
	p.plans = &planner{table: p.table, commits: p.commits, file: p.file, deferred: p.reports.deferred}
	p.reader = &reader{table: p.table, commits: p.commits, file: p.file, deferred: p.reports.deferred,
		plans: p.plans, lines: p.lines, snaps: newSnapshots()}
	p.requests = &requests{table: p.table, commits: p.commits, reports: p.reports, reader: p.reader, node: set.Node,
		observer: unobserved{}}
	p.associations = &associations{table: p.table, commits: p.commits, file: p.file, lines: p.lines,
		known: map[string]n4.StoredAssociation{}}
	p.applications = &applications{table: p.table, commits: p.commits, file: p.file, plans: p.plans,
		apps: map[string][]pfcp.PFD{}}
	p.glances = &glances{table: p.table, file: p.file, reports: p.reports, reader: p.reader}
	p.stepper = &stepper{p.table, p.file, p.plans, p.lines, p.reader, p.glances}
	p.reports.readings, p.reports.answers = p.reader, p.requests
	p.plans.use(set)
	return p
}

// ended is audience's.
func (p *Manager) ended(t *txn, e entry, s *rules.Session) {
	p.reader.ended(s.SEID)
	p.plans.looksDifferent(e.number, s, nil)
	if e.owner.id == LineOwner {
		p.lines.ended(t, s.SEID)
	} else {
		p.observer.Deleted(s.SEID, e.owner.id)
	}
	p.reports.deferred.ended(s.SEID)
}

// changed is audience's.
func (p *Manager) changed(e entry, old, s *rules.Session) {
	p.reader.granted(old, s)
	p.plans.looksDifferent(e.number, old, s)
}

// SetReporter sets the destination of reports.
func (p *Manager) SetReporter(r n4.Reporter) { p.reports.to.Store(&r) }

// SetMeasures sets where durations are counted: before Run.
func (p *Manager) SetMeasures(m *measure.Set) { p.commits.measures, p.file.measures = m, m }

// Observer gets events of sessions. Calls come with the manager's lock held: they must not wait.
type Observer interface {
	Established(seid uint64, association string)
	Modified()
	Deleted(seid uint64, association string)
}

// unobserved ignores all.
type unobserved struct{}

func (unobserved) Established(uint64, string) {}
func (unobserved) Modified()                  {}
func (unobserved) Deleted(uint64, string)     {}

// SetObserver sets the observer of sessions: before Run.
func (p *Manager) SetObserver(o Observer) { p.observer = o }

// SetRecorder sets the receiver of NAT44 events: before Follow.
func (p *Manager) SetRecorder(record func(*api.Event) bool) { p.reports.record = record }

// Follow reports the data plane's events, until ctx ends.
func (p *Manager) Follow(ctx context.Context, path string) { p.reports.follow(ctx, path) }

// Run works until ctx ends; then the store is closed.
func (p *Manager) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer p.Close()
	p.pacer = memory.New()
	p.pacer.Tick(0)
	for {
		first, more := p.next(ctx, ticker.C)
		if !more {
			return nil
		}
		p.runBatch(first)
	}
}

// runBatch carries out one batch, then gives the answers.
func (p *Manager) runBatch(first *job) {
	p.changing.Lock()
	p.mu.Lock()
	p.commits.transact(first)
	p.applications.try()
	p.reader.storeUsage()
	p.file.compact(&p.x.records, &p.reader.snaps.records)
	answers := p.commits.answers
	p.commits.answers = nil
	p.mu.Unlock()
	p.changing.Unlock()
	for _, fn := range answers {
		fn()
	}
}

// next waits for something to do; false: there is no more.
func (p *Manager) next(ctx context.Context, tick <-chan time.Time) (*job, bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	p.mu.Lock()
	busy := p.commits.busy() || len(p.trials) > 0 || p.file.untidy
	p.mu.Unlock()
	j, ticked := p.commits.take(ctx, tick, busy)
	if ticked {
		p.housekeeping()
	}
	return j, j != nil || ctx.Err() == nil
}

// housekeeping: what waits is reported, unused objects go.
func (p *Manager) housekeeping() {
	p.reports.retry()
	p.commits.sweep()
	c := p.Counts()
	p.pacer.Tick(c.Established + c.Modified + c.Deleted)
}

// Close answers waiting requests, which will not be carried out. Run ends with it; without Run, the caller calls it.
func (p *Manager) Close() {
	p.commits.close()
	p.mu.Lock()
	rest := p.commits.stop()
	refuse := p.applications.stop()
	p.file.store.Close()
	p.mu.Unlock()
	refuse()
	rest()
}
