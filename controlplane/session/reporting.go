// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"isthmus/api"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// reporting passes the data plane's reports to CP functions, and keeps undelivered ones, under its own lock. It may be
// called with mu held; it calls others, through interfaces, without a lock.
type reporting struct {
	sessions sessions
	readings measurements
	answers  consequences
	deferred *deferredReports
	node     pfcp.NodeID // ours
	log      *slog.Logger
	to       atomic.Pointer[n4.Reporter]
	lines    atomic.Pointer[Lines]
	acks     *acknowledger         // listen's alone
	record   func(*api.Event) bool // takes events without a CP function; may be nil

	lock    sync.Mutex                      // as deferredReports.lock
	pending map[uint64]*pendingNotification // by SEID
	count   ReportCounters
}

// ReportCounters are for show and metrics.
type ReportCounters struct {
	Reports, ReportsLost uint64
	ReportsDeferred      uint64 // usage that is kept until its CP function can be reached
}

// sessions is reporting's view of them (finder). Calls come from any goroutine, without a lock.
type sessions interface {
	subjects(seids []uint64) []subject
	about(e *api.Event) (s subject, pdr uint16)
	ofLine(e *api.Event) bool
	there(seid uint64) bool
	instanceOf(local netip.Addr) string
}

// measurements notes the contents of reports (reader). Calls come as those of sessions do.
type measurements interface {
	received(events []api.Event) []api.Event
	counted(e *api.Event)
}

// consequences carries out requests in answers to reports (requests). Calls come as those of sessions do.
type consequences interface {
	forget(seid uint64)
	carryOut(seid uint64, by *n4.Association, req *pfcp.SessionModificationRequest)
}

// subject is a session that a report is about.
type subject struct {
	seid    uint64
	session *rules.Session // a copy; nil: none, or unreadable
	to      n4.Recipient
}

func newReporting(s sessions, rouse func(), node pfcp.NodeID, log *slog.Logger) *reporting {
	return &reporting{sessions: s, node: node, log: log, deferred: newDeferredReports(s, rouse),
		pending: map[uint64]*pendingNotification{}}
}

func (r *reporting) reporter() n4.Reporter {
	if to := r.to.Load(); to != nil {
		return *to
	}
	return nil
}

func (r *reporting) counts() ReportCounters {
	r.deferred.lock.Lock()
	c := r.deferred.count
	r.deferred.lock.Unlock()
	r.lock.Lock()
	defer r.lock.Unlock()
	c.add(r.count)
	return c
}

func (c *ReportCounters) add(more ReportCounters) {
	c.Reports += more.Reports
	c.ReportsLost += more.ReportsLost
	c.ReportsDeferred += more.ReportsDeferred
}

// counted adds to the counters.
func (r *reporting) counted(c ReportCounters) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.count.add(c)
}

// retry sends what could not be sent before.
func (r *reporting) retry() {
	if to := r.reporter(); to != nil {
		r.sendDeferred(to)
		r.sendPending(to)
	}
}

// eachOf finds sessions, some at a time.
func (r *reporting) eachOf(seids []uint64) iter.Seq[subject] {
	return func(yield func(subject) bool) {
		for some := range slices.Chunk(seids, someSessions) {
			for _, s := range r.sessions.subjects(some) {
				if !yield(s) {
					return
				}
			}
		}
	}
}
