// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"isthmus/controlplane/rules"
)

// maxNews bounds the changes kept one by one for announcing; beyond it all are announced again.
const maxNews = 65536

// Announcing is what of an instance's sessions is announced one by one: framed routes, and addresses that none of its
// aggregates covers. Addresses behind NAT44 never are: they are not reachable from outside.
type Announcing struct {
	Aggregates, Inside []netip.Prefix
}

func (a *Announcing) holds(p netip.Prefix) bool {
	in := func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }
	return slices.ContainsFunc(a.Aggregates, in) || slices.ContainsFunc(a.Inside, in)
}

// reachable notes which prefixes of sessions come and go, for routing daemons. mu of the table guards it.
type reachable struct {
	by      map[string]Announcing // instance
	all     bool
	changed map[rules.UEAddress]struct{}
	signal  chan struct{}
}

func newReachable() *reachable {
	return &reachable{changed: map[rules.UEAddress]struct{}{}, signal: make(chan struct{}, 1)}
}

// announced: a session's prefix is announced by itself.
func (r *reachable) announced(u rules.UEAddress) bool {
	a, there := r.by[u.Instance]
	return there && !a.holds(u.Prefix)
}

// note records which prefixes a session occupies or frees. An index being built notifies no receiver.
func (r *reachable) note(list []rules.UEAddress) {
	if r == nil || len(r.by) == 0 {
		return
	}
	for _, u := range list {
		if r.announced(u) && !r.all {
			r.changed[u] = struct{}{}
			r.tell()
		}
	}
	if len(r.changed) > maxNews {
		r.everything()
	}
}

func (r *reachable) everything() {
	r.all = true
	clear(r.changed)
	r.tell()
}

func (r *reachable) tell() {
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// Announce sets which instances' sessions are announced, and announces all again.
func (p *Manager) Announce(by map[string]Announcing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.x.reachable.by = by
	p.x.reachable.everything()
}

// ReachableChanged can be read when Reachable has news.
func (p *Manager) ReachableChanged() <-chan struct{} { return p.x.reachable.signal }

// Reachable returns, by instance, which prefixes of sessions came (true) and went since the last call; all: the
// complete list.
func (p *Manager) Reachable() (all bool, news map[string]map[netip.Prefix]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.x.reachable
	news = map[string]map[netip.Prefix]bool{}
	for name := range r.by {
		news[name] = map[netip.Prefix]bool{}
	}
	if all = r.all; all {
		p.x.eachUE(func(u rules.UEAddress) {
			if r.announced(u) {
				news[u.Instance][u.Prefix] = true
			}
		})
	}
	for u := range r.changed {
		news[u.Instance][u.Prefix] = p.x.has(u)
	}
	r.all = false
	clear(r.changed)
	return all, news
}

// has: a session has exactly this UE address or, where they are announced, this framed route.
func (x *index) has(u rules.UEAddress) bool {
	for _, framed := range []bool{false, true} {
		u.Framed = framed
		if !x.reachable.announced(u) {
			continue
		}
		if key, four := x.hostKey(u); four {
			if _, used := x.host[key]; used {
				return true
			}
		} else if _, used := x.prefix.of(u).Get(u.Prefix); used {
			return true
		}
	}
	return false
}

// eachUE calls fn for all UE addresses and framed routes.
func (x *index) eachUE(fn func(rules.UEAddress)) {
	names := make([]string, len(x.names))
	for name, n := range x.names {
		names[n] = name
	}
	for key := range x.host {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(key))
		fn(rules.UEAddress{Instance: names[key>>32], Prefix: netip.PrefixFrom(netip.AddrFrom4(a), 32)})
	}
	for kind, t := range x.prefix {
		for prefix := range t.All() {
			fn(rules.UEAddress{Instance: kind.instance, Prefix: prefix, Framed: kind.framed})
		}
	}
}
