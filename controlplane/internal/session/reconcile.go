// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"isthmus/api"
	"isthmus/controlplane/internal/dp"
)

// Dynamic tells whether an object is of N4 sessions, which is to say ours to make and delete.
func Dynamic(kind uint32, key string) bool {
	return (kind == api.KindSession || kind == api.KindPath || kind == api.KindPolicer) && strings.HasPrefix(key, Prefix)
}

// Lock keeps the sessions from changing while the agent brings configuration and data plane together; Unlock lets them go
// on. What follows in this file is called in between.
func (p *Plane) Lock() { p.mu.Lock() }

// Unlock ends Lock.
func (p *Plane) Unlock() { p.mu.Unlock() }

// Attach gives the connection to a data plane that is in step, nil when it is lost.
func (p *Plane) Attach(c Committer) { p.client = c }

// Difference is what a data plane lacks or has too much of, in transactions to be sent in turn.
type Difference struct {
	Before [][]dp.Change // before the configuration: sessions that nobody wants go
	After  [][]dp.Change // after it: what the sessions need, the sessions, then objects that nobody wants go
	Put    int
	Gone   int
}

// Compare finds the difference to what is held, by digest: sessions that are held as they are see nothing of it, so that
// packets, counters and URRs go on (TS 23.527 §4.2: a restart of the control plane alone is none of the UP function).
func (p *Plane) Compare(held []api.Digest) Difference {
	var d Difference
	has := make(map[string]api.Digest)
	for i := range held {
		if key := api.CString(held[i].Key[:]); Dynamic(held[i].Kind, key) {
			has[string(rune('0'+held[i].Kind))+key] = held[i]
		}
	}
	var need, sessions []dp.Change
	differs := func(id string, body []byte) bool {
		h, ok := has[id]
		delete(has, id)
		return !ok || h.Length != uint32(len(body)) || h.Digest != api.DigestOf(body)
	}
	for id, x := range p.objects {
		if x.users > 0 && differs(id, x.body) {
			need = append(need, dp.Change{Kind: x.kind, Key: x.key, Body: x.body})
		}
	}
	for id, x := range p.objects { // without users: kept where it is held, forgotten where it is not
		if x.users > 0 {
			continue
		}
		if _, ok := has[id]; ok {
			delete(has, id)
		} else {
			delete(p.objects, id)
		}
	}
	for seid, e := range p.x.session {
		s, err := decode(e.data)
		if err != nil {
			continue
		}
		if c, key := p.occupied(s), Key(seid); differs(string(rune('0'+api.KindSession))+key, c.body) {
			sessions = append(sessions, dp.Change{Kind: api.KindSession, Key: key, Body: c.body})
		}
	}
	var gone, unused []dp.Change // an object that nobody wants may still be that of a session which is yet to be changed
	for _, h := range has {
		ch := dp.Change{Kind: h.Kind, Key: api.CString(h.Key[:])}
		if h.Kind == api.KindSession {
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

// chunks keeps each transaction short: a data plane that starts anew gets a million sessions.
func chunks(list []dp.Change) [][]dp.Change {
	return slices.Collect(slices.Chunk(list, reload))
}

// Send carries out one part of a difference. A session that is refused, now that the data plane or the configuration is
// another, is given up; the rest is not.
func (p *Plane) Send(ctx context.Context, c Committer, parts [][]dp.Change) (lost int, err error) {
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
				p.giveUp(part[i].Key)
				lost++
			}
		}
	}
	return lost, nil
}

// giveUp forgets a session that the data plane does not hold.
func (p *Plane) giveUp(key string) {
	var seid uint64
	for _, c := range key[len(Prefix):] {
		seid = seid<<4 | uint64(strings.IndexRune("0123456789abcdef", c))
	}
	if p.x.session[seid] == nil {
		return
	}
	t := newTxn()
	if p.drop(t, seid) == nil {
		p.keep(t)
		t.finish()
	}
}

// Settings are the ones in use.
func (p *Plane) Settings() *Settings { return p.set }
