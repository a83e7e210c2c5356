// SPDX-License-Identifier: Apache-2.0

// Package session has the sessions of all CP functions: it queues requests and commits them to the data plane and the
// store, finds sessions for packets' events, and reports. What a session's rules are and become is in package rules.
package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/pool"
	"isthmus/controlplane/session/store"
)

const (
	maxBatch   = 256         // requests in one transaction
	pace       = 64          // deletions without anybody waiting, beside the requests of one transaction (row A12)
	idleObject = time.Minute // a path or policer without sessions goes after this
	tick       = time.Second // sweeping
	reload     = 4096        // sessions in one transaction when all are sent anew
	commitTime = 30 * time.Second
)

// Committer is the data plane's connection (dp.Client). The bodies of changes are its own only until it returns.
type Committer interface {
	Commit(ctx context.Context, changes []dp.Change) ([]api.Usage, error)
}

// Manager is the session layer as a whole. One goroutine, Run, takes requests as they come and carries out all that
// wait as one transaction. mu guards everything below it; others (show, reports that need a session) take mu in turn.
// Admission and reporting have locks of their own.
type Manager struct {
	log  *slog.Logger
	node pfcp.NodeID // ours
	admission
	reports *reporting

	// changing is held by who changes sessions: a batch of requests, or reconciliation with the data plane. Taken
	// before mu, which reconciliation does not hold while it waits for the data plane.
	changing sync.Mutex
	mu       sync.Mutex
	set      *rules.Settings
	x        *index // finds
	committing
	storing
	applications
	preparation
	snaps   snapshots
	lines   lineFront
	objects holdings
	shares  shares
	count   Counters
	glances glances
	memory  *memory // Run's alone

	measures *measure.Set
	observer Observer
}

// committing is the transaction that is being made, and what waits for the next one.
type committing struct {
	client       Committer // nil: away
	deferredJobs []*deferredJob
	postponed    *job           // waits for the next transaction, because its session is in this one
	compile      rules.Compiler // its memory is used again and again
	bodies       rules.Arena    // of the transaction
	spare        *txn
	seen         map[uint64]bool // of gather
	answers      []func()
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

// Open brings back what the store has. An empty path keeps nothing.
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

// Moved tells of a store that Open moved aside.
func (p *Manager) Moved() store.Moved { return p.store.Moved() }

func newManager(set *rules.Settings, st *store.Store, log *slog.Logger) *Manager {
	p := &Manager{log: log, set: set, observer: unobserved{}, node: set.Node, admission: newAdmission(),
		x:            newIndex(set),
		committing:   committing{seen: map[uint64]bool{}},
		storing:      storing{store: st, associations: map[string]n4.StoredAssociation{}},
		applications: applications{pfds: rules.PFDs{}, apps: map[string][]pfcp.PFD{}},
		snaps:        newSnapshots(),
		objects:      holdings{},
		shares:       shares{by: map[shareKey]*share{}, used: map[uint32]bool{}, next: 1},
		count:        Counters{Refused: map[uint8]uint64{}}}
	p.x.reachable = newReachable()
	p.reports = newReporting(p, set.Node, log)
	p.use(set)
	return p
}

// use takes over settings that say nothing else of sessions than the former ones.
func (p *Manager) use(set *rules.Settings) {
	p.set = set
	p.reports.pairs.Store(set.MonitoringPair)
}

// SetReporter tells where reports go.
func (p *Manager) SetReporter(r n4.Reporter) { p.reports.to.Store(&r) }

// SetMeasures tells where it counts how long things take: before Run.
func (p *Manager) SetMeasures(m *measure.Set) { p.measures = m }

// Observer hears of sessions. Calls come with the manager's lock held: they must not wait.
type Observer interface {
	Established(seid uint64, association string)
	Modified()
	Deleted(seid uint64, association string)
}

// unobserved hears nothing.
type unobserved struct{}

func (unobserved) Established(uint64, string) {}
func (unobserved) Modified()                  {}
func (unobserved) Deleted(uint64, string)     {}

// SetObserver tells who hears of sessions: before Run.
func (p *Manager) SetObserver(o Observer) { p.observer = o }

// SetRecorder tells who takes events of NAT44: before Follow.
func (p *Manager) SetRecorder(record func(*api.Event) bool) { p.reports.record = record }

// Follow reports what a data plane tells, until ctx ends.
func (p *Manager) Follow(ctx context.Context, path string) { p.reports.follow(ctx, path) }

// Run works until ctx ends; then the store is closed.
func (p *Manager) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer p.Close()
	p.memory = newMemory()
	p.memory.tick(0)
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
	if batch := p.gather(first); len(batch) > 0 {
		p.measures.Batch(len(batch), len(p.jobs))
		p.work(batch)
	}
	p.try()
	p.storeUsage()
	p.compact()
	answers := p.answers
	p.answers = nil
	p.mu.Unlock()
	p.changing.Unlock()
	for _, fn := range answers {
		fn()
	}
}

func (p *Manager) answer(j *job, err *pfcp.Error, rows []api.Usage) {
	if err != nil {
		p.count.Refused[uint8(err.Cause)]++
	}
	p.answers = append(p.answers, j.finish(err, rows))
}

// next waits for something to do; false: there is no more.
func (p *Manager) next(ctx context.Context, tick <-chan time.Time) (*job, bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	p.mu.Lock()
	busy := p.postponed != nil || len(p.deferredJobs) > 0 || len(p.trials) > 0 || p.untidy
	p.mu.Unlock()
	j, ticked := p.take(ctx, tick, busy)
	if ticked {
		p.housekeeping()
	}
	return j, j != nil || ctx.Err() == nil
}

// gather takes what waits, up to maxBatch, but each session once: the order of a session's requests is kept.
func (p *Manager) gather(first *job) []*job {
	var batch []*job
	seen := p.seen
	clear(seen)
	add := func(j *job) bool {
		if j.seid != 0 && seen[j.seid] {
			p.postponed = j
			return false
		}
		seen[j.seid] = true
		batch = append(batch, j)
		return true
	}
	if j := p.postponed; j != nil {
		p.postponed = nil
		add(j)
	}
	if first != nil && !add(first) {
		return batch
	}
	for len(batch) < maxBatch && p.postponed == nil {
		j := p.poll()
		if j == nil {
			break
		}
		add(j)
	}
	if p.postponed == nil {
		batch = append(batch, p.someDeferred(seen)...)
	}
	return batch
}

// work carries out a batch as one transaction. When the data plane refuses it, its members are tried one by one, so
// that only the guilty one is refused.
func (p *Manager) work(batch []*job) {
	p.bodies.Reset()
	t := p.spare
	if p.spare = nil; t == nil {
		t = newTxn()
	}
	var later []*job
	staged := batch[:0:0]
	for _, j := range batch {
		m := t.mark()
		switch err := j.stage(t); err {
		case nil:
			staged = append(staged, j)
		case errPostponed:
			t.back(m)
			later = append(later, j)
		default:
			t.back(m)
			p.answer(j, err, nil)
		}
	}
	rows, err := p.commit(t)
	switch {
	case err == nil:
		p.answered(t, rows)
		p.keep(t)
		t.usage = rows
		t.finish()
		for _, j := range staged {
			p.answer(j, nil, rows)
		}
	case len(staged) > 1 && refusedBy(err):
		t.back(mark{})
		p.count.Alone += uint64(len(staged))
		for _, j := range staged {
			p.work([]*job{j})
		}
	default:
		t.back(mark{})
		for _, j := range staged {
			p.answer(j, refusal(err), nil)
		}
	}
	t.clear()
	p.spare = t
	for _, j := range later {
		p.work([]*job{j})
	}
}

func refusedBy(err error) bool {
	_, ok := err.(*dp.RefusedError)
	return ok
}

func (p *Manager) commit(t *txn) ([]api.Usage, error) {
	if len(t.changes) == 0 || p.client == nil {
		return nil, nil
	}
	p.count.Transactions++
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	begin := time.Now()
	usage, err := p.client.Commit(ctx, t.changes)
	p.measures.Commit(time.Since(begin))
	return usage, err
}

// keep writes a transaction to the store. The data plane has it already: when the store fails, sessions live on, and
// are lost with the process.
func (p *Manager) keep(t *txn) {
	begin := time.Now()
	err := p.store.Write(t.records)
	p.measures.Write(time.Since(begin))
	p.notKept(err, "sessions are")
}

// notKept counts what the store did not take.
func (p *Manager) notKept(err error, what string) {
	if err == nil {
		return
	}
	if p.count.StoreErrors++; p.count.StoreErrors == 1 || p.count.StoreErrors%1000 == 0 {
		p.log.Error(what+" not kept for a restart of the control plane", "error", err,
			"times", p.count.StoreErrors)
	}
}

// housekeeping: what waits is reported, unused objects go.
func (p *Manager) housekeeping() {
	p.reports.retry()
	p.sweep()
	c := p.Counts()
	p.memory.tick(c.Established + c.Modified + c.Deleted)
}

func (p *Manager) sweep() {
	p.changing.Lock()
	defer p.changing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := newTxn()
	p.objects.sweep(t, pool.Stamp(p.x.now().Add(-idleObject)))
	if _, err := p.commit(t); err != nil {
		t.back(mark{})
		p.log.Warn("unused paths and policers stay", "error", err)
	}
}

// Session returns a copy of a session, nil when there is none.
func (p *Manager) Session(seid uint64) *rules.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, _ := p.x.at(seid)
	s, _ := rules.Decode(e.data)
	return s
}

// Close answers what waits, which nobody will carry out. Run ends with it; who never runs calls it.
func (p *Manager) Close() {
	p.close()
	p.mu.Lock()
	waiting := p.postponed
	if p.postponed = nil; waiting == nil {
		waiting = p.poll()
	}
	trials := p.trials
	p.trials = nil
	for _, r := range p.deferredJobs {
		r.end()
	}
	p.store.Close()
	p.mu.Unlock()
	for _, t := range trials {
		t.end()
		t.reply(errStopped)
	}
	for ; waiting != nil; waiting = p.poll() {
		waiting.finish(errStopped, nil)()
	}
}
