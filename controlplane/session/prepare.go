// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"reflect"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/rules"
)

// Visiting every session (another configuration, a comparison) takes seconds for a million. So it is done early, some
// sessions at a time between requests; changes by requests are corrected as they happen. Under the lock only the rest
// is left.

// planner makes out what another configuration makes of the sessions, and has it ready before its time. mu of the table
// guards it.
type planner struct {
	*table
	commits  queue
	file     *storing
	deferred *deferredReports

	prepared *replan           // nil: nothing
	digests  map[uint64]uint64 // of sessions' bodies; nil: everything looks different now
}

const someSessions = 128 // looked at without a request in between: about a millisecond

// prepare makes reconfigure short.
func (p *planner) prepare(set *rules.Settings) {
	p.mu.Lock()
	if reflect.DeepEqual(p.set, set) || p.set.SameFor(set) {
		p.prepared = nil // of a configuration that was refused
		p.mu.Unlock()
		return
	}
	r := newReplan(set)
	p.prepared = r
	p.mu.Unlock()
	p.bySome(func(seid uint64, e entry) bool {
		if p.prepared != r {
			return false // something came in between that it cannot cope with: reconfigure does it all
		}
		r.take(p.table, seid, e)
		return true
	})
}

// prepareCompare makes compare short.
func (p *planner) prepareCompare() {
	p.mu.Lock()
	digests := map[uint64]uint64{}
	p.digests = digests
	p.mu.Unlock()
	var scratch rules.Arena
	p.bySome(func(seid uint64, e entry) bool {
		if p.digests == nil { // everything looks different now
			return false
		}
		if s, err := rules.Decode(e.data); err == nil {
			scratch.Reset()
			if c, bad := p.compile.Compile(p.context(rules.Context{Arena: &scratch, Lenient: true}), s); bad == nil {
				digests[seid] = api.BodyDigest(c.Body)
			}
		}
		return true
	})
}

// bySome calls fn with the present sessions, the oldest first, under mu but not under a single lock; false ends it.
func (p *table) bySome(fn func(seid uint64, e entry) bool) {
	p.mu.Lock()
	list := p.after(0)
	p.mu.Unlock()
	slices.SortFunc(list, byNumber)
	for some := range slices.Chunk(list, someSessions) {
		if !p.theseSome(some, fn) {
			return
		}
	}
}

func (p *table) theseSome(some []numbered, fn func(seid uint64, e entry) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range some {
		if e, there := p.x.at(s.seid); there && e.number == s.number && !fn(s.seid, e) {
			return false
		}
	}
	return true
}

// numbered is a session with its place in the order in which they came.
type numbered struct{ number, seid uint64 }

func byNumber(a, b numbered) int { return cmp.Compare(a.number, b.number) }

// after are the sessions that came after a number, in no order.
func (p *table) after(number uint64) []numbered {
	list := make([]numbered, 0, len(p.x.session))
	for seid, at := range p.x.session {
		if e := p.x.open(at); e.number > number {
			list = append(list, numbered{e.number, seid})
		}
	}
	return list
}

// same: a session is known to have a body of this digest.
func (p *planner) same(seid, digest uint64) bool {
	known, there := p.digests[seid]
	return there && known == digest
}

// allDiffer forgets the digests: every session must be compared.
func (p *planner) allDiffer() { p.digests = nil }

// looksDifferent puts right what is prepared when a session ends or becomes another; is is nil in the first case.
func (p *planner) looksDifferent(number uint64, was, is *rules.Session) {
	delete(p.digests, was.SEID)
	r := p.prepared
	if r == nil || number > r.upTo {
		return
	}
	// A session that ends may make room for one in lost, and a changed one may want a younger one's addresses. Both
	// are seldom, so preparation starts again.
	if len(r.lost) > 0 || !r.forget(p.table, was) || is != nil && !r.enter(p.table, is) {
		p.prepared = nil
	}
}

// inOrder are all sessions, the oldest first.
func (p *table) inOrder() []uint64 {
	list := p.after(0)
	slices.SortFunc(list, byNumber)
	seids := make([]uint64, len(list))
	for i := range list {
		seids[i] = list[i].seid
	}
	return seids
}
