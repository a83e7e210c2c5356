// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"isthmus/controlplane/access"
)

// One who comes may be one more than a user or a line may have: the oldest ends then, or the new one is refused. What
// can fail comes before that end. An address goes from one to the other when the data plane has let go of it.

// held is an address of a session that ends.
type held struct {
	instance string
	prefix   netip.Prefix
}

// room are the sessions of a user and a line that have to end for another one; the error: it may not come.
func (l *Loop) room(t *attempt, said, plan *access.Plan) (out []*Subscriber, err error) {
	line, name := lineKey(&t.request.Line), cmp.Or(said.User, t.user)
	out, err = l.oldest(nil, "the line", ofLine, l.by.line[line], int(max(l.set.Limits.PerLine, 1)))
	if err == nil && plan.Max > 0 {
		out, err = l.oldest(out, fmt.Sprintf("user %q", name), ofUser, l.by.user[name], int(plan.Max))
	}
	return out, err
}

// oldest adds to out those of a ring that are too many beside another one.
func (l *Loop) oldest(out []*Subscriber, whose string, of int, first *Subscriber, most int) ([]*Subscriber, error) {
	goes := func(s *Subscriber) bool { return slices.Contains(out, s) }
	list := slices.DeleteFunc(ringOf(first, of, math.MaxInt), goes)
	if len(list) < most {
		return out, nil
	}
	if !l.set.Replace {
		return nil, fmt.Errorf("%s has %d sessions already", whose, most)
	}
	return append(out, list[:len(list)-most+1]...), nil
}

// wish is what a session wants of one family.
type wish struct {
	family access.Families // it alone
	wanted bool
	this   netip.Prefix // the very one, or the one that the pool keeps for it; invalid: any of the pool
	pool   string       // empty: no other one than this
}

func (s *Subscriber) wishes(f access.Families, given *access.Addresses) [3]wish {
	p := s.plan
	list := [3]wish{
		{access.Families{V4: true}, f.V4, hostOf(p.IPv4), p.Pool4},
		{access.Families{V6: true}, f.V6, p.IPv6, p.Pool6},
		{access.Families{Delegated: true}, f.Delegated, p.Delegated, p.PoolPD},
	}
	for i := range list {
		w := &list[i]
		if given != nil && given.Prefixes()[i].IsValid() {
			w.this = given.Prefixes()[i]
		}
		if w.this.IsValid() {
			w.pool = ""
		} else {
			w.this = s.loop.opt.Pools.Reserved(w.pool, s.who())
		}
	}
	return list
}

// takeFree takes the addresses that can be had. The others are those of holders, who are of out or end already.
func (s *Subscriber) takeFree(r *access.Request, out []*Subscriber) (holders []*Subscriber, err error) {
	var now access.Families
	for i, w := range s.wishes(r.Wants, r.Given) {
		if !w.wanted {
			continue
		}
		has := s.addresses.Prefixes()[i].IsValid()
		if holder := s.holder(i, &w, out, false); holder != nil && !has {
			holders = append(holders, holder)
			continue
		}
		more := access.Families{V4: now.V4 || w.family.V4, V6: now.V6 || w.family.V6,
			Delegated: now.Delegated || w.family.Delegated}
		if err := s.want(more, r); err != nil {
			holder := s.holder(i, &w, out, true)
			if holder == nil {
				return nil, err
			}
			holders = append(holders, holder)
			continue
		}
		now = more
	}
	return holders, nil
}

// holder has the very address, or with full one of the pool.
func (s *Subscriber) holder(i int, w *wish, out []*Subscriber, full bool) *Subscriber {
	for _, o := range out {
		v := o.addresses.Prefixes()[i]
		if v.IsValid() && o.plan.Instance == s.plan.Instance && (v == w.this || full && w.pool != "" &&
			o.wishes(access.Families{}, nil)[i].pool == w.pool) {
			return o
		}
	}
	return s.loop.leaving[held{s.plan.Instance, w.this}]
}

// seat gives one who was let in its addresses, and the place of those who are too many.
func (t *attempt) seat(s *Subscriber, v *access.Verdict, known []access.Left) {
	l := t.loop
	if l.draining {
		t.refuse("draining", goingDown)
	}
	if t.over {
		t.giveUp(s)
		return
	}
	no := func(reason string, err error) {
		t.giveUp(s)
		t.refuse(reason, &access.Verdict{Why: err.Error(), Proven: true, Message: v.Message})
	}
	out, err := l.room(t, &v.Plan, s.plan)
	if err != nil {
		no("limit", err)
		return
	}
	holders, err := s.takeFree(t.request, out)
	if err != nil {
		no("address", err)
		return
	}
	if len(holders) > 0 {
		t.await(s, holders, func() { t.seat(s, v, known) })
	}
	for _, o := range out {
		l.stats.replaced++
		o.end(access.NASRequest)
	}
	if len(holders) == 0 {
		t.enter(s, v, known)
	}
}

// await calls then when others have given addresses back. It takes no longer than one's turn may.
func (t *attempt) await(s *Subscriber, holders []*Subscriber, then func()) {
	l := t.loop
	if t.late == nil {
		t.late = l.timers.add(l.opt.Now().Add(patience), func() {
			t.giveUp(s)
			t.refuse("address", &access.Verdict{Silent: true,
				Why: "the session that has its address does not end"})
		})
	}
	t.holders = holders
	count := len(holders)
	for _, h := range holders {
		l.waiting[h] = append(l.waiting[h], waiter{t, func() {
			if count--; count == 0 {
				t.holders = nil
				then()
			}
		}})
	}
}

// waiter is an attempt that wants a session's address.
type waiter struct {
	attempt *attempt
	freed   func()
}

func (t *attempt) giveUp(s *Subscriber) {
	l := t.loop
	t.late.Stop()
	for _, h := range t.holders {
		l.waiting[h] = slices.DeleteFunc(l.waiting[h], func(w waiter) bool { return w.attempt == t })
		if len(l.waiting[h]) == 0 {
			delete(l.waiting, h)
		}
	}
	t.holders = nil
	s.release()
	s.addresses = access.Addresses{}
}

// leaves notes what a session that ends has, until it gives that back.
func (l *Loop) leaves(s *Subscriber) {
	for _, v := range s.addresses.Prefixes() {
		if v.IsValid() {
			l.leaving[held{s.plan.Instance, v}] = s
		}
	}
}

// freed is called when it has; who waits for that goes on.
func (l *Loop) freed(s *Subscriber) {
	for _, v := range s.addresses.Prefixes() {
		if at := (held{s.plan.Instance, v}); l.leaving[at] == s {
			delete(l.leaving, at)
		}
	}
	list := l.waiting[s]
	delete(l.waiting, s)
	for _, w := range list {
		w.freed()
	}
}
