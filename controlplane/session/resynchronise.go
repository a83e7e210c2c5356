// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/rules"
)

// The periodic comparison visits the sessions by key, page by page, while requests are carried out. It may lag behind
// them: a difference is checked again before it is mended, and a needless mend changes nothing.

const (
	pageSize = 1024 // digests in one LIST: the data plane's control thread answers within a millisecond
	// A comparison decodes and compiles each session, and takes one part in resyncShare of one processor's time.
	resyncShare = 10
)

// ordered is a session with the order of its key (api.KeyOrder).
type ordered struct{ order, seid uint64 }

// Resynchronise compares the data plane's sessions with ours, and sends the difference. It ends early when the data
// plane is away.
func (p *stepper) Resynchronise(ctx context.Context, link Link) (Outcome, error) {
	var out Outcome
	if err := p.mendObjects(ctx, link, &out); err != nil {
		return out, err
	}
	mine := p.byKey()
	for first, more := uint64(0), true; more; {
		var held []api.Digest
		var err error
		held, more, err = link.List(ctx, api.List{Kind: api.KindSession, Limit: pageSize, First: first,
			Last: math.MaxUint64})
		if err != nil {
			return out, err
		}
		last := uint64(math.MaxUint64)
		if more && len(held) > 0 {
			last = api.KeyOrder(api.CString(held[len(held)-1].Key[:]))
		}
		// It would never end.
		if more && (last < first || last == math.MaxUint64) {
			return out, fmt.Errorf("LIST from %#x has more and comes no further: %d", first, len(held))
		}
		end, _ := slices.BinarySearchFunc(mine, last,
			func(s ordered, last uint64) int { return cmp.Or(cmp.Compare(s.order, last), -1) })
		wrong, err := p.wrong(ctx, mine[:end], held)
		if err == nil {
			err = p.mend(ctx, link, wrong, &out)
		}
		if err != nil {
			return out, err
		}
		mine, first = mine[end:], last+1
	}
	return out, nil
}

// byKey are the present sessions.
func (p *stepper) byKey() []ordered {
	p.mu.Lock()
	list := make([]ordered, 0, len(p.x.session))
	for seid := range p.x.session {
		list = append(list, ordered{seid: seid})
	}
	p.mu.Unlock()
	for i := range list {
		list[i].order = api.KeyOrder(rules.Key(list[i].seid))
	}
	slices.SortFunc(list, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.seid, b.seid))
	})
	return list
}

// wrong returns the sessions of a range that are held differently, held without being wanted, or missing.
func (p *stepper) wrong(ctx context.Context, mine []ordered, held []api.Digest) ([]uint64, error) {
	var wrong []uint64
	has := make(map[uint64]uint64, len(held))
	for i := range held {
		if seid, ok := rules.SEIDOf(api.CString(held[i].Key[:])); ok {
			has[seid] = held[i].Digest
		}
	}
	for some := range slices.Chunk(mine, someSessions) {
		start := time.Now()
		wrong = append(wrong, p.wrongOf(some, has)...)
		if err := rest(ctx, resyncShare*time.Since(start)); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for seid := range has { // those that came since the order was made belong there
		if p.x.session[seid] == 0 {
			wrong = append(wrong, seid)
		}
	}
	return wrong, nil
}

// wrongOf compares some sessions, and takes them out of has.
func (p *stepper) wrongOf(some []ordered, has map[uint64]uint64) (wrong []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range some {
		h, ok := has[o.seid]
		e, there := p.x.at(o.seid)
		if !there {
			continue
		}
		delete(has, o.seid)
		if s, err := rules.Decode(e.data); err == nil && (!ok || api.BodyDigest(p.occupied(s).Body) != h) {
			wrong = append(wrong, o.seid)
		}
	}
	return wrong
}

// rest waits, so that a comparison leaves the processor to requests.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mend sends sessions as they are now. No session changes meanwhile.
func (p *stepper) mend(ctx context.Context, link Link, seids []uint64, out *Outcome) error {
	if len(seids) == 0 {
		return nil
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	var changes []dp.Change
	p.mu.Lock()
	for _, seid := range seids {
		c := dp.Change{Kind: api.KindSession, Key: rules.Key(seid)}
		if e, there := p.x.at(seid); there {
			s, err := rules.Decode(e.data)
			if err != nil {
				continue
			}
			c.Body = p.occupied(s).Body
			out.Put++
		} else {
			out.Deleted++
		}
		changes = append(changes, c)
	}
	p.mu.Unlock()
	refused, err := p.send(ctx, link, chunks(changes))
	out.Refused += refused
	return err
}

// mendObjects sends paths and policers of sessions that are not held as they should be. Unused ones go at the next
// connection.
func (p *stepper) mendObjects(ctx context.Context, link Link, out *Outcome) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	held, err := dp.Held(ctx, link, func(kind uint32) bool { return kind == api.KindPath || kind == api.KindPolicer })
	if err != nil {
		return err
	}
	has := make(map[string]uint64, len(held))
	for i := range held {
		has[string(rune('0'+held[i].Kind))+api.CString(held[i].Key[:])] = held[i].Digest
	}
	var need []dp.Change
	p.mu.Lock()
	for id, x := range p.objects {
		if h, ok := has[id]; x.users > 0 && (!ok || h != api.BodyDigest(x.Body)) {
			need = append(need, dp.Change{Kind: x.Kind, Key: x.Key, Body: x.Body})
		}
	}
	p.mu.Unlock()
	slices.SortFunc(need, func(a, b dp.Change) int { return cmp.Compare(a.Kind, b.Kind) })
	out.Put += len(need)
	_, err = p.send(ctx, link, chunks(need))
	return err
}
