// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/measure"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/session/pool"
)

const (
	maxBatch   = 256         // requests in one transaction
	pace       = 64          // deletions without a waiting request, in one transaction beside requests (row A12)
	idleObject = time.Minute // a path or policer without sessions goes after this
	reload     = 4096        // sessions in one transaction when all are sent again
	commitTime = 30 * time.Second
)

// Committer is the data plane's connection (dp.Client). The bodies of changes are its own only until it returns.
type Committer interface {
	Commit(ctx context.Context, changes []dp.Change) ([]api.Usage, error)
}

// committer makes one transaction of waiting requests, carried out by the data plane, then by the store. mu of the
// table guards it, but for admission.
type committer struct {
	*table
	admission
	file     *storing
	measures *measure.Set

	deferredJobs []*deferredJob
	postponed    *job // waits for the next transaction, because its session is in this one
	spare        *txn
	seen         map[uint64]bool // of gather
	answers      []func()
}

// queue is the committer as other owners see it. mu is held when begin and later are called.
type queue interface {
	enqueue(j *job)
	// whileOpen does something, unless requests are no longer taken.
	whileOpen(fn func())
	// rouse schedules a batch of all that waits.
	rouse()
	// begin has a deferred job done; false: too many of its kind are under way.
	begin(r *deferredJob) bool
	// later has fn called when mu is free again.
	later(fn func())
}

func newCommitter(sessions *table, file *storing) *committer {
	return &committer{table: sessions, file: file, admission: newAdmission(), seen: map[uint64]bool{}}
}

// busy: something waits outside the queue.
func (p *committer) busy() bool { return p.postponed != nil || len(p.deferredJobs) > 0 }

func (p *committer) later(fn func()) { p.answers = append(p.answers, fn) }

// transact carries out what waits; first, which may be nil, is of it.
func (p *committer) transact(first *job) {
	if batch := p.gather(first); len(batch) > 0 {
		p.measures.Batch(len(batch), len(p.jobs))
		p.work(batch)
	}
}

func (p *committer) answer(j *job, err *pfcp.Error, rows []api.Usage) {
	if err != nil {
		p.count.Refused[uint8(err.Cause)]++
	}
	p.later(j.finish(err, rows))
}

// gather takes what waits, up to maxBatch, but each session once: the order of a session's requests is kept.
func (p *committer) gather(first *job) []*job {
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
func (p *committer) work(batch []*job) {
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
		p.audience.used(t, p.boot, rows)
		p.file.keep(t)
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

func (p *committer) commit(t *txn) ([]api.Usage, error) {
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

func (p *committer) sweep() {
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

// stop is called when no requests come any more. refuse, called without mu, answers waiting ones.
func (p *committer) stop() (refuse func()) {
	for _, r := range p.deferredJobs {
		r.end()
	}
	waiting := p.postponed
	if p.postponed = nil; waiting == nil {
		waiting = p.poll()
	}
	return func() {
		for ; waiting != nil; waiting = p.poll() {
			waiting.finish(errStopped, nil)()
		}
	}
}
