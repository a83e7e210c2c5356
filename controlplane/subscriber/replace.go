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

// A sign-in may exceed the limit of a user or a line: then the oldest session ends, or the new one is refused. All that
// can fail comes before that end. An address moves when the data plane has released it.

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

// seat gives an accepted subscriber its addresses, and the place of sessions above the limit.
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
	holders, err := addresses{s}.takeFree(t.request, out)
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
	addresses{s}.release()
	s.addresses = access.Addresses{}
}

// handover is of addresses that one session gives back and another waits for.
type handover struct {
	leaving map[held]*Subscriber     // ending ones, until their addresses are free
	waiting map[*Subscriber][]waiter // for addresses of theirs
}

// leaves notes what a session that ends has, until it gives that back.
func (h *handover) leaves(s *Subscriber) {
	for _, v := range s.addresses.Prefixes() {
		if v.IsValid() {
			h.leaving[held{s.plan.Instance, v}] = s
		}
	}
}

// freed is called when it has; those that wait for it continue.
func (h *handover) freed(s *Subscriber) {
	for _, v := range s.addresses.Prefixes() {
		if at := (held{s.plan.Instance, v}); h.leaving[at] == s {
			delete(h.leaving, at)
		}
	}
	list := h.waiting[s]
	delete(h.waiting, s)
	for _, w := range list {
		w.freed()
	}
}
