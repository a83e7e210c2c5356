// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/store"
)

// pipes are the schedulers' pipes that sessions have, by port.
type pipes map[string]*portPipes

type portPipes struct {
	owner map[rules.Pipe]uint64 // SEID
	used  map[int]uint32        // by subport
	next  map[int]uint32        // where the search for a free one continues
}

const ofFile = ^uint64(0) // in the place of a SEID: a subscriber of the configuration

// newPipes are those that the configuration's subscribers have.
func newPipes(set *rules.Settings) pipes {
	p := pipes{}
	for port, h := range set.Lines {
		for _, pipe := range h.Taken {
			p.add(ofFile, &rules.Compiled{Port: port, Pipe: pipe})
		}
	}
	return p
}

func (p pipes) of(port string) *portPipes {
	if p[port] == nil {
		p[port] = &portPipes{map[rules.Pipe]uint64{}, map[int]uint32{}, map[int]uint32{}}
	}
	return p[port]
}

func (p pipes) add(seid uint64, c *rules.Compiled) {
	if c.Pipe == 0 {
		return
	}
	switch at := p.of(c.Port); at.owner[c.Pipe] {
	case ofFile: // a session of the store had it; settle finds another
	case 0:
		at.used[c.Pipe.Subport()]++
		fallthrough
	default:
		at.owner[c.Pipe] = seid
	}
}

func (p pipes) remove(seid uint64, c *rules.Compiled) {
	if c.Pipe == 0 || p.of(c.Port).owner[c.Pipe] != seid {
		return
	}
	delete(p.of(c.Port).owner, c.Pipe)
	p.of(c.Port).used[c.Pipe.Subport()]--
}

// settle gives a shaped session a pipe of its worker unless it has one; an unshaped one loses its pipe. A line shares
// no meters, so it moves to its pipe's worker. Only the session changes.
func (p pipes) settle(set *rules.Settings, s *rules.Session) *pfcp.Error {
	h := set.Shaping(s)
	if h == nil {
		s.Pipe = 0
		return nil
	}
	at := p.of(h.Port)
	if port, had := set.ShapedPipe(s); port != "" && (at.owner[had] == 0 || at.owner[had] == s.SEID) {
		return nil
	}
	s.Pipe = 0
	best := -1
	for i, sub := range h.Subports {
		ours := s.Line != nil || sub.Worker == s.Worker
		if ours && at.used[i] < sub.Pipes && (best < 0 || at.used[i] < at.used[best]) {
			best = i
		}
	}
	if best < 0 {
		return rules.Refuse(pfcp.CauseNoResources, 0, "all pipes of port "+h.Port+" are taken")
	}
	for n := at.next[best]; ; n++ {
		n %= h.Subports[best].Pipes
		if try := rules.PipeAt(best, n); at.owner[try] == 0 {
			s.Pipe, s.Worker, at.next[best] = try, h.Subports[best].Worker, n+1
			return nil
		}
	}
}

// shape gives pipes to sessions of the store that the configuration wants shaped and that have none of its pipes.
func (p *table) shape() []store.Record {
	if len(p.set.Lines) == 0 &&
		!slices.ContainsFunc(p.set.Instances, func(i rules.Instance) bool { return i.Shaping != nil }) {
		return nil
	}
	var changed []store.Record
	unshaped := 0
	for _, seid := range p.inOrder() {
		e, s, err := p.decoded(seid)
		if err != nil {
			continue
		}
		if h := p.set.Shaping(s); s.Line != nil && h != nil && !h.Knows(s.Line) {
			continue // it ends: forScheduler
		}
		had := s.Pipe
		if p.x.pipes.settle(p.set, s) != nil && s.Line == nil {
			unshaped++
		}
		if s.Pipe == had {
			continue
		}
		made := p.x.enter(s, e.number, e.owner)
		p.x.records.Drop(e.at)
		port, pipe := p.set.ShapedPipe(s)
		p.x.pipes.add(seid, &rules.Compiled{Port: port, Pipe: pipe})
		changed = append(changed, sessionRecord(made.number, made.data))
	}
	if unshaped > 0 {
		p.log.Warn(tooFewPipes, "sessions", unshaped)
	}
	return changed
}

// forScheduler returns changes to lines that a data plane holds from before a restart with another file, before it gets
// a scheduler. Lines without a pipe or with a removed profile end; others change with the scheduler.
func (p *stepper) forScheduler(held []api.Digest) (ends, piped []dp.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range held {
		key := api.CString(held[i].Key[:])
		seid, ours := rules.SEIDOf(key)
		_, s, err := p.decoded(seid)
		if !ours || held[i].Kind != api.KindSession || err != nil || s.Line == nil {
			continue
		}
		h := p.set.Shaping(s)
		if h == nil {
			continue
		}
		switch c := p.occupied(s); {
		case c.Pipe == 0, !h.Knows(s.Line):
			ends = append(ends, dp.Change{Kind: api.KindSession, Key: key})
		case api.BodyDigest(c.Body) != held[i].Digest:
			piped = append(piped, dp.Change{Kind: api.KindSession, Key: key, Body: c.Body})
		}
	}
	return ends, piped
}

// endLines is behind the transaction in which they went.
func (p *stepper) endLines(ends []dp.Change, usage []api.Usage) {
	t := newTxn()
	t.usage = usage
	for i := range ends {
		seid, _ := rules.SEIDOf(ends[i].Key)
		if err := p.drop(t, seid); err != nil {
			p.log.Error("a session cannot be read", "session", ends[i].Key, "error", err)
		}
	}
	p.file.keep(t)
	t.finish()
	if len(ends) > 0 {
		p.log.Warn("subscribers ended: the scheduler of their port has no pipe for them, or not their profile",
			"sessions", len(ends))
	}
}

const tooFewPipes = "sessions are not shaped: all pipes of their worker are taken"
