// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"slices"

	"isthmus/controlplane/rules"
)

// groups finds sessions by a common association, FQ-CSID or application. An operation on a group (deletion, new PFDs)
// looks at its members alone, some at a time with requests in between.
type groups map[groupKey]members

// members are SEIDs, each with the moment of joining: a walk begun before passes it over.
type members map[uint64]uint64

// groupKey: all of an association (number, ""), those of an FQ-CSID (number, FQ-CSID), or those of an application (0,
// its id).
type groupKey struct {
	owner uint32
	name  string
}

// groupsOf are the groups of a session.
func groupsOf(s *rules.Session, o *owner) []groupKey {
	keys := make([]groupKey, 1, 1+len(s.FQCSID))
	keys[0] = groupKey{owner: o.number}
	add := func(k groupKey) {
		if k.name != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, id := range s.FQCSID {
		add(groupKey{o.number, string(id)})
	}
	for i := range s.PDR {
		add(groupKey{0, s.PDR[i].PDI.Application})
	}
	return keys
}

// regroup moves a session between groups; in those of both lists it stays. undo makes it as if it had never left.
func (x *index) regroup(seid uint64, was, is []groupKey) (undo func()) {
	x.came++
	return x.regroupAt(x.came, seid, was, is)
}

// regroupAt is regroup of what came at another moment.
func (x *index) regroupAt(came, seid uint64, was, is []groupKey) (undo func()) {
	left := make(map[groupKey]uint64)
	for _, k := range was {
		if came, there := x.groups[k][seid]; there && !slices.Contains(is, k) {
			left[k] = came
			x.groups.take(k, seid)
		}
	}
	joined := slices.DeleteFunc(is, func(k groupKey) bool { return slices.Contains(was, k) })
	for _, k := range joined {
		x.groups.put(k, seid, came)
	}
	return func() {
		for _, k := range joined {
			x.groups.take(k, seid)
		}
		for k, came := range left {
			x.groups.put(k, seid, came)
		}
	}
}

func (g groups) put(k groupKey, seid, came uint64) {
	if g[k] == nil {
		g[k] = members{}
	}
	g[k][seid] = came
}

func (g groups) take(k groupKey, seid uint64) {
	if delete(g[k], seid); len(g[k]) == 0 {
		delete(g, k)
	}
}

// expel removes an unreadable session from all groups.
func (g groups) expel(seid uint64) {
	for k := range g {
		g.take(k, seid)
	}
}

// among iterates over the sessions of the groups that joined until upTo, which may still move. A session may come
// twice. 0 is one passed over, so that the caller counts its work. Members may change meanwhile (a map's range allows
// that), under mu.
func (x *index) among(upTo *uint64, keys ...groupKey) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, k := range keys {
			for seid, came := range x.groups[k] {
				if came > *upTo {
					seid = 0
				}
				if !yield(seid) {
					return
				}
			}
		}
	}
}
