// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"isthmus/controlplane/pfcp"
)

// owner has the associations of peers, and no lock but that of its jobs.
type owner struct {
	*transactions
	*peers
	jobs
	sessions Sessions
	sockets  []*socket
	requests *requests
	nodes    chan *packet // node messages of peers
	table    table
	paths    paths
	dialler  dialler
	drained  bool // associations are refused, and none is asked for
}

// own is the goroutine that owns associations: their table, timers and fate. Timers, answers to our requests and
// callers come as jobs, node messages of peers as packets.
func (o *owner) own(ctx context.Context) {
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	defer o.disown()
	o.dialler.start()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.jobs.ready:
			for _, job := range o.jobs.take(false) {
				job()
			}
		case p := <-o.nodes:
			o.nodeMessage(p)
			p.free()
		case <-sweep.C:
			o.answers.sweep()
		}
	}
}

// disown stops the timers when the server ends. Nothing is forgotten in the store.
func (o *owner) disown() {
	o.jobs.take(true)
	for _, a := range o.table.associations {
		stopTimer(a.beat)
		stopTimer(a.headless)
		a.window.fail(ErrStopped)
	}
	o.dialler.stop()
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// jobs are requests of timers, answers and callers to the owner. The list is bounded by the number of associations,
// configured peers and callers, each with a few pending jobs at most.
type jobs struct {
	lock    sync.Mutex
	list    []func()
	stopped bool
	ready   chan struct{} // one token: the list is not empty
}

func (j *jobs) post(job func()) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if j.stopped {
		return
	}
	j.list = append(j.list, job)
	select {
	case j.ready <- struct{}{}:
	default:
	}
}

// take empties the list; after the last time nothing comes into it.
func (j *jobs) take(last bool) []func() {
	j.lock.Lock()
	defer j.lock.Unlock()
	list := j.list
	j.list, j.stopped = nil, j.stopped || last
	return list
}

// later posts a job after a while.
func (j *jobs) later(d time.Duration, job func()) *time.Timer {
	return time.AfterFunc(d, func() { j.post(job) })
}

// restore takes over what the store knew: the peers do not notice that we were away.
func (o *owner) restore() {
	for _, st := range o.sessions.Associations() {
		peer := o.cfg.peerOf(st)
		if peer == nil && !o.cfg.AllowUnknown {
			o.log.Warn("PFCP association ends: its peer is not in the configuration any more", "association", st.ID,
				"address", st.Addr)
			if err := o.sessions.ForgetAssociation(st.ID); err != nil {
				o.record(eventStoreFailed, slog.LevelError, st.ID, "error", err)
			}
			continue
		}
		i := o.cfg.listenerOf(st.Addr.Addr())
		if i < 0 {
			o.log.Warn("PFCP association cannot be taken up again: no listen address of its family", "association",
				st.ID,
				"address", st.Addr)
			continue
		}
		k := o.sockets[i]
		for _, other := range o.sockets {
			if other.local == st.Local {
				k = other
			}
		}
		set, claimable := o.cfg.givesSet(peer, nodeName(st.Set))
		if claimable {
			set = nodeName(st.Set) // it was admitted to it
		}
		a := &association{
			Association: Association{ID: st.ID, Set: set, Addr: st.Addr, Features: st.Features},
			node:        pfcp.ParseNodeID(st.ID),
			k:           k, others: st.Others, configured: peer, since: st.Since,
			associationCounts: newCounts(o.requests),
		}
		a.recovery.Store(st.Recovery.Unix())
		if !st.FailedAt.IsZero() {
			a.failedAt.Store(st.FailedAt.Unix())
			o.paths.headless(a)
		}
		o.table.associations[a.ID] = a
		if set != st.Set { // the configuration changed
			o.keep(a)
		}
		o.paths.schedule(a, 0)
	}
	o.publish()
}

// publish makes the table what readers and workers see.
func (o *owner) publish() { o.index.Store(o.table.index()) }

// install makes a new or changed association the current one of its node id. It is already stored.
func (o *owner) install(a *association) {
	o.table.associations[a.ID] = a
	o.publish()
}

// keep stores an association's change. A failed write loses the record, not the association.
func (o *owner) keep(a *association) {
	if err := o.sessions.KeepAssociation(a.stored()); err != nil {
		o.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
	}
}

// current: a job's association is still the same. An update makes a new value with the same counts; a new association
// has new ones.
func (o *owner) current(id string, counts *associationCounts) *association {
	if a := o.table.associations[id]; a != nil && a.associationCounts == counts {
		return a
	}
	return nil
}

// remove ends an association. Its sessions go to a living member of its SMF set when `inherit` allows. Otherwise the
// session layer deletes them at a bounded pace (row A12). The store forgets the association first: the next start
// deletes sessions without an association.
func (o *owner) remove(a *association, e event, inherit bool, args ...any) {
	stopTimer(a.beat)
	stopTimer(a.headless)
	delete(o.table.associations, a.ID)
	o.publish()
	var successor *association
	if members := o.index.Load().members(a); len(members) > 0 {
		successor = members[0]
	}
	if successor != nil && inherit {
		args = append(args, "successor", successor.ID, "sessions", o.sessions.Adopt(a.ID, successor.ID))
		o.event(eventAdopted)
	}
	if err := o.sessions.ForgetAssociation(a.ID); err != nil {
		o.record(eventStoreFailed, slog.LevelError, a.ID, "error", err)
	}
	if successor == nil || !inherit {
		o.release(a.ID)
	}
	a.window.fail(ErrNoAssociation)
	o.record(e, slog.LevelWarn, a.ID, args...)
	o.dialler.lost(a.configured)
}

func (o *owner) release(id string) {
	o.sessions.Release(id, nil, func(deleted int) {
		o.log.Info("PFCP sessions deleted", "association", id, "sessions", deleted)
	})
}
