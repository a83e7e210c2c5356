// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/rules"
)

// difference is what a data plane lacks or has too much of, in transactions to be sent in turn.
type difference struct {
	Before [][]dp.Change // before the configuration: unwanted sessions go
	After  [][]dp.Change // after it: what sessions need, the sessions, then unused objects go
	Put    int
	Gone   int
}

// compare finds the difference to what is held, by digest. Sessions held as they are stay untouched, so packets,
// counters and URRs go on (TS 23.527 §4.2: a restart of the control plane alone does not restart the UP function).
func (p *stepper) compare(held []api.Digest) difference {
	var d difference
	shared, has := make(map[string]api.Digest), make(map[uint64]uint64, len(held))
	for _, h := range held {
		if key := api.CString(h.Key[:]); !rules.Dynamic(h.Kind, key) {
			continue
		} else if seid, ok := rules.SEIDOf(key); ok && h.Kind == api.KindSession {
			has[seid] = h.Digest
		} else {
			shared[string(rune('0'+h.Kind))+key] = h
		}
	}
	var need, sessions []dp.Change
	for id, x := range p.objects { // without users: kept where it is held, forgotten where it is not
		h, ok := shared[id]
		delete(shared, id)
		switch {
		case x.users == 0 && !ok:
			delete(p.objects, id)
		case x.users > 0 && (!ok || h.Digest != api.BodyDigest(x.Body)):
			need = append(need, dp.Change{Kind: x.Kind, Key: x.Key, Body: x.Body})
		}
	}
	for seid, at := range p.x.session {
		h, ok := has[seid]
		delete(has, seid)
		if ok && p.plans.same(seid, h) {
			continue
		}
		s, err := rules.Decode(p.x.open(at).data)
		if err != nil {
			continue
		}
		if c := p.occupied(s); !ok || api.BodyDigest(c.Body) != h {
			sessions = append(sessions, dp.Change{Kind: api.KindSession, Key: rules.Key(seid), Body: c.Body})
		}
	}
	// an unused object may still belong to a session that is changed later
	var gone, unused []dp.Change
	for seid := range has {
		gone = append(gone, dp.Change{Kind: api.KindSession, Key: rules.Key(seid)})
	}
	for _, h := range shared {
		ch := dp.Change{Kind: h.Kind, Key: api.CString(h.Key[:])}
		if h.Kind == api.KindSession { // no name of ours
			gone = append(gone, ch)
		} else {
			unused = append(unused, ch)
		}
	}
	slices.SortFunc(need, func(a, b dp.Change) int { return cmp.Compare(a.Kind, b.Kind) })
	d.Put, d.Gone = len(need)+len(sessions), len(gone)+len(unused)
	d.Before, d.After = chunks(gone), slices.Concat(chunks(need), chunks(sessions), chunks(unused))
	return d
}

// chunks keeps each transaction short: a new data plane gets a million sessions.
func chunks(list []dp.Change) [][]dp.Change {
	return slices.Collect(slices.Chunk(list, reload))
}

// send carries out one part of a difference. A session that is refused, now that the data plane or the configuration is
// another, is given up; the rest is not. The caller holds changing, and not mu.
func (p *stepper) send(ctx context.Context, c Committer, parts [][]dp.Change) (lost int, err error) {
	for _, part := range parts {
		if _, err := c.Commit(ctx, part); err == nil {
			continue
		} else if !refusedBy(err) {
			return lost, err
		}
		for i := range part {
			_, err := c.Commit(ctx, part[i:i+1])
			if err == nil {
				continue
			}
			if !refusedBy(err) {
				return lost, err
			}
			p.log.Error("an object of an N4 session is refused", "object", part[i].Key, "error", err)
			if part[i].Kind == api.KindSession && part[i].Body != nil {
				p.mu.Lock()
				p.giveUp(part[i].Key)
				p.mu.Unlock()
				lost++
			}
		}
	}
	return lost, nil
}

// giveUp forgets a session that the data plane does not hold.
func (p *stepper) giveUp(key string) {
	seid, _ := rules.SEIDOf(key)
	if p.x.session[seid] == 0 {
		return
	}
	t := newTxn()
	if p.drop(t, seid) == nil {
		p.file.keep(t)
		t.finish()
	}
}
