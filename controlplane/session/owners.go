// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"slices"

	"isthmus/controlplane/n4"
	"isthmus/controlplane/rules"
)

// owner is an association as the sessions see it. It lives as long as sessions name it.
type owner struct {
	id       string
	number   uint32 // what records call it
	set      string
	sessions int
	gone     bool // the association ended, or is not known yet; the owner goes with its last session
	// successor inherits the remaining sessions: the association has failed, its id may be a new one's.
	successor *owner
	inherited uint64 // moment at which that was decided, as of index.came
	before    int    // owners whose successor this is
}

// current is the present owner of an owner's sessions.
func (o *owner) current() *owner {
	for o.successor != nil {
		o = o.successor
	}
	return o
}

// recipient is the destination of a session's reports.
func (e entry) recipient(s *rules.Session) n4.Recipient {
	if e.owner.successor != nil {
		return n4.Recipient{Association: e.owner.current().id, CP: s.CP, Moved: true}
	}
	return n4.Recipient{Association: s.Owner, CP: s.CP, Moved: s.Moved}
}

// owners are the associations that sessions name.
type owners struct {
	known map[string]*owner // by id
	owned map[uint32]*owner // by number
	last  uint32            // number that was given
}

func newOwners() owners { return owners{known: map[string]*owner{}, owned: map[uint32]*owner{}} }

// owner returns an association. A request may be carried out after its association ended: then an owner is created for
// as long as it has sessions.
func (x *owners) owner(id string) *owner {
	o := x.known[id]
	if o == nil {
		x.last++
		o = &owner{id: id, number: x.last, gone: true}
		x.known[id], x.owned[o.number] = o, o
	}
	return o
}

// associate is owner for a present association.
func (x *owners) associate(id, set string) {
	o := x.owner(id)
	o.set, o.gone = set, false
}

// part forgets an association that is gone and has no sessions.
func (x *owners) part(o *owner) {
	if !o.gone || o.sessions > 0 || o.before > 0 || x.owned[o.number] != o {
		return
	}
	delete(x.owned, o.number)
	if x.known[o.id] == o {
		delete(x.known, o.id)
	}
	if o.successor != nil {
		o.successor.before--
		x.part(o.successor)
	}
}

// ownersOf are an association, last, and those before it whose sessions it inherits: a session moved meanwhile is met
// later.
func (x *owners) ownersOf(association string) (list []*owner) {
	is := x.known[association]
	if is == nil {
		return nil
	}
	for _, o := range x.owned {
		if o != is && o.current() == is {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b *owner) int { return cmp.Compare(a.inherited, b.inherited) })
	return append(list, is)
}

// bequeathed: sessions of a failed association are still being moved to another.
func (x *owners) bequeathed(id string) bool {
	for _, o := range x.owned {
		if o.id == id && o.successor != nil {
			return true
		}
	}
	return false
}

// bequeath has another association inherit what an owner has. From now on its id is free for an association to come.
func (x *owners) bequeath(o, successor *owner, moment uint64) {
	o.successor, o.inherited, o.gone = successor, moment, true
	successor.before++
	delete(x.known, o.id)
}

// all are the groups of an association's sessions.
func (x *owners) all(association string) (keys []groupKey) {
	for _, o := range x.ownersOf(association) {
		keys = append(keys, groupKey{owner: o.number})
	}
	return keys
}
