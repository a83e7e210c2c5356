// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
)

// deferredJob is a set of sessions to delete or to compile again, at a bounded pace.
type deferredJob struct {
	// key identifies the set. A second job of the same key joins the first.
	key   string
	of    []groupKey             // groups of the sessions, unless seids has them
	seids iter.Seq[uint64]       // 0: a session that was passed over
	upTo  uint64                 // what came into the group later is not meant
	but   func(seid uint64) bool // these are not meant; nil: all are
	again bool                   // upTo has moved since the walk began
	stage func(t *txn, seid uint64) *pfcp.Error
	limit int // of deferred jobs with a limit; 0: no limit
	over  bool
	left  int // taken from seids, and not done with
	count int
	done  func(count int)
	// refused is called for each that was refused
	refused func(seid uint64, err *pfcp.Error)

	next func() (uint64, bool)
	stop func()
	held uint64 // in this transaction already: for the next one
}

// begin queues a job, or joins it to an equal one; false: too many.
func (p *committer) begin(r *deferredJob) bool {
	r.upTo = p.x.came
	limited := 0
	for _, q := range p.deferredJobs {
		switch {
		case r.key != "" && q.key == r.key:
			q.upTo, q.again = r.upTo, q.next != nil
			p.rouse()
			return true
		case q.limit > 0:
			limited++
		}
	}
	if r.limit > 0 && limited >= r.limit {
		return false
	}
	if r.seids == nil {
		r.seids = p.x.among(&r.upTo, r.of...)
	}
	p.deferredJobs = append(p.deferredJobs, r)
	p.rouse()
	return true
}

// take returns the next session, 0 for one to pass over; false at the end.
func (r *deferredJob) take() (seid uint64, more bool) {
	if seid, r.held = r.held, 0; seid != 0 {
		return seid, true
	}
	if r.next == nil {
		r.next, r.stop = iter.Pull(r.seids)
	}
	seid, more = r.next()
	if !more && r.again {
		r.end()
		r.again = false
		return 0, true
	}
	return seid, more
}

func (r *deferredJob) end() {
	if r.stop != nil {
		r.stop()
	}
	r.next, r.stop = nil, nil
}

// someDeferred makes jobs of the next few sessions, alternating between deferred jobs. Beside requests they take a part
// of each transaction; alone, at most a whole one (row A12).
func (p *committer) someDeferred(seen map[uint64]bool) []*job {
	var jobs []*job
	for looked := 0; len(jobs) < pace && looked < someSessions && len(p.deferredJobs) > 0; looked++ {
		r := p.deferredJobs[0]
		seid, more := r.take()
		switch {
		case !more:
			r.end()
			r.over = true
			p.deferredJobs = p.deferredJobs[1:]
			p.concluded(r)
		case seid == 0 || p.x.session[seid] == 0 || r.but != nil && r.but(seid):
		case seen[seid]:
			r.held = seid
			looked = someSessions
		default:
			seen[seid] = true
			jobs = append(jobs, p.jobOf(r, seid))
		}
	}
	if len(p.deferredJobs) > 1 {
		p.deferredJobs = append(p.deferredJobs[1:], p.deferredJobs[0])
	}
	return jobs
}

// concluded calls back those that wait for a finished release.
func (p *committer) concluded(r *deferredJob) {
	if r.over && r.left == 0 && r.done != nil {
		p.later(func() { r.done(r.count) })
	}
}

func (p *committer) jobOf(r *deferredJob, seid uint64) *job {
	r.left++
	return &job{
		seid: seid,
		stage: func(t *txn) *pfcp.Error {
			if p.x.session[seid] == 0 {
				return rules.Refuse(pfcp.CauseContextNotFound, 0, "gone already")
			}
			return r.stage(t, seid)
		},
		finish: func(err *pfcp.Error, _ []api.Usage) func() {
			if err == nil {
				r.count++
			} else if r.refused != nil {
				r.refused(seid, err)
			}
			r.left--
			p.concluded(r)
			return func() {}
		},
	}
}
