// SPDX-License-Identifier: Apache-2.0

package session

import (
	"isthmus/controlplane/dp"
	"isthmus/controlplane/rules"
)

// holding counts the users of paths and policers. An unused one stays for a minute, so that short sessions do not
// create and delete their path each time.
type holding struct {
	rules.Object
	users int
	idle  int64 // since when it has no users, nanoseconds
	// unsent: the data plane does not have it yet; it goes with the first session that needs it
	unsent bool
}

type holdings map[string]*holding // by kind and key

// Object finds one for the compiler.
func (h holdings) Object(name rules.ObjectName) (rules.Object, bool) {
	if x := h[string(name[:])]; x != nil {
		return x.Object, true
	}
	return rules.Object{}, false
}

// use enters the objects of a session and leaves those of its former self.
func (h holdings) use(t *txn, now int64, objects, former []rules.Object) {
	for _, o := range objects {
		x := h[o.Name]
		if x == nil {
			x = &holding{Object: o}
			h[o.Name] = x
			t.changes = append(t.changes, dp.Change{Kind: o.Kind, Key: o.Key, Body: o.Body})
			t.onUndo(func() { delete(h, x.Name) })
		} else if x.unsent {
			x.unsent = false
			t.changes = append(t.changes, dp.Change{Kind: o.Kind, Key: o.Key, Body: o.Body})
			t.onUndo(func() { x.unsent = true })
		}
		x.users++
		t.uses = append(t.uses, use{x, 1, x.idle})
	}
	for i := range former {
		if x := h[former[i].Name]; x != nil {
			x.users--
			t.uses = append(t.uses, use{x, -1, x.idle})
			x.idle = now
		}
	}
}

// use is what a transaction changed of a holding.
type use struct {
	of    *holding
	users int
	idle  int64 // before
}

func (u *use) undo() {
	u.of.users -= u.users
	u.of.idle = u.idle
}

// sweep deletes what has had no users since a moment.
func (h holdings) sweep(t *txn, since int64) {
	for id, x := range h {
		if x.users == 0 && x.idle < since {
			if !x.unsent {
				t.changes = append(t.changes, dp.Change{Kind: x.Kind, Key: x.Key})
			}
			delete(h, id)
			t.onUndo(func() { h[id] = x })
		}
	}
}

// recount puts the numbers of users right after another configuration, which sessions have other objects under.
func (h holdings) recount(objects map[string]rules.Object, users map[string]int, now int64) {
	for id, x := range h {
		if x.users > 0 && users[id] == 0 {
			x.idle = now
		}
		x.users = users[id]
	}
	for id, o := range objects {
		if h[id] == nil {
			h[id] = &holding{Object: o, users: users[id], unsent: true}
		}
	}
}
