// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Figures for metrics and show. An unresponsive data plane holds a transaction, and with it mu, for commitTime, just
// when the figures matter: they are those of the last request.

// glances are the figures, and those published last.
type glances struct {
	*table
	file    *storing
	reports *reporting
	reader  *reader

	busy     atomic.Bool // a request waits for mu beyond patience
	counters atomic.Pointer[Counters]
	pools    atomic.Pointer[[]PoolUse]
	sessions sync.Map // association to their number
}

const patience = 250 * time.Millisecond

// glance calls look under mu; false: not now, which is possible where something is known. look may run later then.
func (p *glances) glance(known bool, look func()) bool {
	if known && p.busy.Load() {
		return false
	}
	done := make(chan struct{})
	go func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		look()
		close(done)
		p.busy.Store(false)
	}()
	if !known {
		<-done
		return true
	}
	select {
	case <-done:
		return true
	case <-time.After(patience):
	}
	p.busy.Store(true)
	select {
	case <-done: // between the two
		p.busy.Store(false)
		return true
	default:
		return false
	}
}

// Count is n4.Groups'.
func (p *glances) Count(association string) int {
	last, known := p.sessions.Load(association)
	n := 0
	count := func() {
		if association == "" {
			n = len(p.x.session)
			return
		}
		for _, o := range p.x.ownersOf(association) {
			n += o.sessions
		}
	}
	if !p.glance(known, count) {
		return last.(int)
	}
	if n == 0 && association != "" { // it may be gone
		p.sessions.Delete(association)
	} else {
		p.sessions.Store(association, n)
	}
	return n
}

// Counts returns a copy of the counters.
func (p *glances) Counts() Counters {
	last := p.counters.Load()
	var c Counters
	if !p.glance(last != nil, func() {
		c = p.count
		c.ReportCounters = p.reports.counts()
		c.StoreErrors, c.SnapshotsFailed = p.file.errors, p.reader.failed
		c.Refused = maps.Clone(c.Refused)
	}) {
		return *last
	}
	p.counters.Store(&c)
	return c
}
