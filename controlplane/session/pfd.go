// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"isthmus/controlplane/config"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

const maxTrials = 16 // PFD requests that wait

// applications are the PFDs in use, and the requests that are to change them. mu of the table guards it.
type applications struct {
	*table
	commits queue
	file    *storing
	plans   *planner

	apps   map[string][]pfcp.PFD
	trials []*trial // the first one is under way
}

// trial is a pending PFD request. All or nothing: it is refused if the filters are too many for any session. So
// sessions of the applications are checked first, some at a time between requests, with sessions that those change
// meanwhile.
type trial struct {
	req   *pfcp.PFDManagementRequest
	fresh rules.PFDs
	reply func(*pfcp.Error)
	begun bool
	next  rules.PFDs      // the result
	more  map[string]bool // applications that get more filters: fewer are never too many
	upTo  uint64
	seid  func() (uint64, bool)
	end   func()
	err   *pfcp.Error
}

// SetPFDs implements n4.Groups. Sessions of the applications are compiled again at a bounded pace. A session that the
// data plane refuses keeps its filters.
func (p *applications) SetPFDs(r *pfcp.PFDManagementRequest, reply func(*pfcp.Error)) {
	t := &trial{req: r, fresh: rules.PFDs{}, reply: reply, end: func() {}}
	for _, a := range r.Applications {
		filters, err := rules.ExpandPFDs(a.PFDs)
		if err != nil {
			reply(err)
			return
		}
		t.fresh[a.Application] = filters
	}
	refused := errStopped
	p.commits.whileOpen(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.trials) >= maxTrials {
			refused = rules.Refuse(pfcp.CauseCongestion, 0, "too many PFD requests wait")
			return
		}
		refused = nil
		p.trials = append(p.trials, t)
		p.commits.rouse()
	})
	if refused != nil {
		reply(refused)
	}
}

// try continues with the first trial. Run's, under mu.
func (p *applications) try() {
	if len(p.trials) == 0 {
		return
	}
	t := p.trials[0]
	if !t.begun {
		t.begin(p)
	}
	over := t.err != nil
	for looked := 0; looked < someSessions && !over; looked++ {
		seid, more := t.seid()
		if over = !more; seid != 0 {
			if _, s, broken := p.decoded(seid); broken == nil {
				t.look(p.table, s)
			}
		}
		over = over || t.err != nil
	}
	if !over {
		return
	}
	t.end()
	p.trials = p.trials[1:]
	if t.err == nil {
		p.takePFDs(t)
	}
	p.commits.later(func() { t.reply(t.err) })
}

func (t *trial) begin(p *applications) {
	t.begun = true
	t.next, t.more, t.upTo = maps.Clone(p.pfds), map[string]bool{}, p.x.came
	var keys []groupKey
	for _, a := range t.req.Applications {
		if len(a.PFDs) == 0 { // it matches nothing then
			continue
		}
		if was, known := p.pfds[a.Application]; known && len(t.fresh[a.Application]) > len(was) {
			t.more[a.Application] = true
			keys = append(keys, groupKey{0, a.Application})
		}
		t.next[a.Application] = t.fresh[a.Application]
	}
	t.seid, t.end = iter.Pull(p.x.among(&t.upTo, keys...))
	t.err = p.roomForPFDs(&p.set.Limits, t.req)
}

// watch looks at a session that a request makes, or changes, while the others are looked at.
func (t *trial) watch(p *table, s *rules.Session) {
	uses := func(r pfcp.CreatePDR) bool { return t.more[r.PDI.Application] }
	if t.begun && t.err == nil && slices.ContainsFunc(s.PDR, uses) {
		t.look(p, s)
	}
}

func (t *trial) look(p *table, s *rules.Session) {
	if p.set.FiltersOf(p.pfds, s) != nil {
		return // it lacks PFDs already: its later state is unknown
	}
	if err := p.set.FiltersOf(t.next, s); err != nil {
		t.err = rules.Refuse(pfcp.CauseNoResources, 61, fmt.Sprintf("session %s: %s", rules.Key(s.SEID), err.Text))
	}
}

// takePFDs makes the PFDs of a request the ones in use.
func (p *applications) takePFDs(t *trial) {
	r := t.req
	p.plans.allDiffer()
	var changed []string
	if len(r.Applications) == 0 { // TS 29.244 §6.2.5.2: without contents, all are removed
		for name := range p.pfds {
			p.forgetApplication(name)
			changed = append(changed, name)
		}
	}
	for _, a := range r.Applications {
		changed = append(changed, a.Application)
		if len(a.PFDs) == 0 {
			p.forgetApplication(a.Application)
			continue
		}
		p.apps[a.Application], p.pfds[a.Application] = a.PFDs, t.fresh[a.Application]
		if err := p.storeApplication(a.Application, a.PFDs); err != nil {
			p.log.Error("PFDs are not kept for a restart", "error", err)
		}
	}
	for _, name := range changed {
		if of := (groupKey{0, name}); p.x.groups[of] != nil {
			p.commits.begin(&deferredJob{key: "application " + name, of: []groupKey{of}, stage: p.recompile,
				refused: p.keepsFilters})
		}
	}
}

// keepsFilters records a session whose new PFDs the data plane refused.
func (p *applications) keepsFilters(seid uint64, err *pfcp.Error) {
	if p.x.session[seid] == 0 {
		return
	}
	if p.count.FiltersKept++; p.count.FiltersKept == 1 || p.count.FiltersKept%1000 == 0 {
		p.log.Error("a session keeps its filters: the data plane refuses those of the new PFDs", "session",
			rules.Key(seid), "error", err,
			"times", p.count.FiltersKept)
	}
}

func (p *applications) roomForPFDs(limits *config.SessionLimits, r *pfcp.PFDManagementRequest) *pfcp.Error {
	more := 0
	for _, given := range r.Applications {
		if n := len(given.PFDs); limits.PFDs > 0 && n > int(limits.PFDs) {
			return rules.Refuse(pfcp.CauseNoResources, 61,
				fmt.Sprintf("%d PFDs of one application, at most %d", n, limits.PFDs))
		}
		if _, known := p.apps[given.Application]; !known && len(given.PFDs) > 0 {
			more++
		}
	}
	if limits.Applications > 0 && len(p.apps)+more > int(limits.Applications) {
		return rules.Refuse(pfcp.CauseNoResources, 58, fmt.Sprintf("more than %d applications", limits.Applications))
	}
	return nil
}

func (p *applications) forgetApplication(name string) {
	delete(p.apps, name)
	delete(p.pfds, name)
	if err := p.file.store.Write([]store.Record{store.Named(store.Application, name, nil)}); err != nil {
		p.log.Error("PFDs are not removed from the store", "error", err)
	}
}

func (p *applications) storeApplication(name string, list []pfcp.PFD) error {
	data, err := json.Marshal(list)
	if err == nil {
		r := store.Named(store.Application, name, store.NamedData(name, data))
		err = p.file.store.Write([]store.Record{r})
	}
	return err
}

// load is one of the store's.
func (p *applications) load(a *pfcp.ApplicationPFDs) {
	if filters, bad := rules.ExpandPFDs(a.PFDs); bad == nil {
		p.apps[a.Application], p.pfds[a.Application] = a.PFDs, filters
	}
}

func decodeApplication(data []byte) (a pfcp.ApplicationPFDs, err error) {
	name, list, ok := store.SplitData(data)
	if !ok {
		return a, rules.ErrEncoding
	}
	a.Application = name
	err = json.Unmarshal(list, &a.PFDs)
	return a, err
}

// made is audience's.
func (p *applications) made(s *rules.Session) {
	if len(p.trials) > 0 {
		p.trials[0].watch(p.table, s)
	}
}

// stop is called when no requests come any more. refuse, called without mu, answers waiting ones.
func (p *applications) stop() (refuse func()) {
	trials := p.trials
	p.trials = nil
	return func() {
		for _, t := range trials {
			t.end()
			t.reply(errStopped)
		}
	}
}
