// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"time"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

const maxWaiting = 32 << 10 // requests that wait; more are answered with cause 74

// job is one request, or one of our own changes.
type job struct {
	seid  uint64 // 0: a new session
	stage func(t *txn) *pfcp.Error
	// finish makes the answer, under mu; what it returns is called without.
	finish func(err *pfcp.Error, rows []api.Usage) func()
}

// errPostponed is a job's that must wait for the transaction after this one.
var errPostponed = &pfcp.Error{Cause: pfcp.CauseCongestion, Text: "in the next transaction"}

var errStopped = rules.Refuse(pfcp.CauseSystemFailure, 0, "shutting down")

// admission queues requests from any goroutine for the committer.
type admission struct {
	jobs   chan *job
	wake   chan struct{} // there is something else to do
	lock   sync.RWMutex  // nothing comes in once closed is set
	closed bool
}

func newAdmission() admission {
	return admission{jobs: make(chan *job, maxWaiting), wake: make(chan struct{}, 1)}
}

// enqueue hands a request over; one too many is answered at once (TS 29.244 §8.2.1: PFCP entity in congestion).
func (a *admission) enqueue(j *job) {
	err := errStopped
	a.whileOpen(func() {
		select {
		case a.jobs <- j:
			err = nil
		default:
			err = rules.Refuse(pfcp.CauseCongestion, 0, "too many requests wait")
		}
	})
	if err != nil {
		j.finish(err, nil)()
	}
}

// whileOpen does something, unless requests are no longer taken.
func (a *admission) whileOpen(fn func()) {
	a.lock.RLock()
	defer a.lock.RUnlock()
	if !a.closed {
		fn()
	}
}

func (a *admission) close() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.closed = true
}

// rouse has take return.
func (a *admission) rouse() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// poll returns a waiting request, nil without one.
func (a *admission) poll() *job {
	select {
	case j := <-a.jobs:
		return j
	default:
		return nil
	}
}

// take waits for a request, a tick, or what rouses; with busy it does not wait.
func (a *admission) take(ctx context.Context, tick <-chan time.Time, busy bool) (j *job, ticked bool) {
	if busy {
		a.rouse()
	}
	select {
	case <-ctx.Done():
	case j = <-a.jobs:
	case <-a.wake:
	case <-tick:
		ticked = true
	}
	return j, ticked
}
