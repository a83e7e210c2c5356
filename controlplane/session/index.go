// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/rand"
	"encoding/binary"
	mrand "math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/rules"
	"isthmus/controlplane/session/pool"
	"isthmus/controlplane/session/slab"
)

const quarantine = time.Minute // a released UE address is not given out again before

// entry is a session in memory: its encoding, decoded on demand. Good as long as mu is held and the session is what it
// is.
type entry struct {
	at     slab.Handle
	data   []byte
	number uint64 // key in the store
	owner  *owner
}

// peerKey is a peer's F-TEID. Peers are as many as CP functions name, so they are not numbered.
type peerKey struct {
	addr [16]byte
	teid uint32
}

func peerOf(t rules.Tunnel) (v4 uint64, v6 peerKey, four bool) {
	if t.Addr.Is4() {
		a := t.Addr.As4()
		return uint64(binary.BigEndian.Uint32(a[:]))<<32 | uint64(t.TEID), v6, true
	}
	return 0, peerKey{t.Addr.As16(), t.TEID}, false
}

// toPeer returns the last session that sends to a peer's F-TEID.
func (x *index) toPeer(t rules.Tunnel) (seid uint64, known bool) {
	v4, v6, four := peerOf(t)
	if four {
		seid, known = x.peer[v4]
	} else {
		seid, known = x.peer6[v6]
	}
	return seid, known
}

// addresses numbers addresses of ours, so that an F-TEID is one integer.
type addresses struct {
	number map[netip.Addr]uint64
}

func (a *addresses) key(t rules.Tunnel, make bool) (uint64, bool) {
	n, ok := a.number[t.Addr]
	if !ok {
		if !make {
			return 0, false
		}
		n = uint64(len(a.number))
		a.number[t.Addr] = n
	}
	return n<<32 | uint64(t.TEID), true
}

// index finds sessions by what packets and events name. mu of the table guards it.
type index struct {
	session map[uint64]slab.Handle
	records slab.Slab
	local   map[uint64]uint64 // F-TEID of ours -> SEID
	// F-TEID of a peer, IPv4 address << 32 | TEID -> SEID of the last session that sends to it
	peer   map[uint64]uint64
	peer6  map[peerKey]uint64 // the same with IPv6 addresses
	host   map[uint64]uint64  // UE IPv4 addresses: instance << 32 | address -> SEID
	prefix prefixes           // UE IPv6 prefixes and framed routes -> SEID
	names  map[string]uint16  // instances
	locals addresses
	slots  slots // of F-TEIDs of ours
	owners
	groups  groups
	came    uint64 // rises with each that comes into a group
	random  *mrand.ChaCha8
	pools   map[string][]*pool.Pool // by instance
	pipes   pipes
	scratch []byte   // of encoding
	taken   []taking // by the request that is being worked on
	set     *rules.Settings
	now     func() time.Time
	// notified of added and removed addresses; nil while the index is being built
	reachable *reachable
}

type taking struct {
	pool   *pool.Pool
	prefix netip.Prefix
}

func newIndex(set *rules.Settings) *index {
	var seed [32]byte
	rand.Read(seed[:]) // never fails (crypto/rand)
	x := &index{session: map[uint64]slab.Handle{}, local: map[uint64]uint64{}, peer: map[uint64]uint64{},
		peer6: map[peerKey]uint64{},
		host:  map[uint64]uint64{}, prefix: prefixes{}, names: map[string]uint16{}, owners: newOwners(),
		groups: groups{}, random: mrand.NewChaCha8(seed),
		locals: addresses{map[netip.Addr]uint64{}}, slots: newSlots(int(set.Limits.Sessions)), pipes: newPipes(set),
		now: time.Now}
	x.configure(set)
	return x
}

// at is a session's entry, false without one.
func (x *index) at(seid uint64) (entry, bool) {
	h := x.session[seid]
	if h == 0 {
		return entry{}, false
	}
	return x.open(h), true
}

func (x *index) open(h slab.Handle) entry {
	number, owner, data := x.records.Open(h)
	return entry{h, data, number, x.owned[owner]}
}

// enter sets a session to s; the caller frees its former record.
func (x *index) enter(s *rules.Session, number uint64, o *owner) entry {
	x.scratch = rules.AppendSession(x.scratch[:0], s)
	h := x.records.Add(number, o.number, x.scratch)
	x.session[s.SEID] = h
	return x.open(h)
}

// configure rebuilds the instances' pools; looking at the sessions finds what is in use.
func (x *index) configure(set *rules.Settings) {
	old := x.pools
	x.set, x.pools = set, map[string][]*pool.Pool{}
	for _, in := range set.Instances {
		for _, p := range in.Pools {
			length := uint8(32)
			if p.Addr().Is6() {
				length = 64
			}
			made := pool.New(p, length)
			for _, o := range old[in.Name] { // the quarantine goes on
				if o.Prefix == made.Prefix {
					made = o
				}
			}
			x.pools[in.Name] = append(x.pools[in.Name], made)
		}
	}
}

// seid returns a SEID that is unpredictable and unused (row A13).
func (x *index) seid() uint64 {
	for {
		if v := x.random.Uint64(); v != 0 && x.session[v] == 0 {
			return v
		}
	}
}

// TEID: 64 attempts fail only when the address has billions of tunnels.
func (x *index) TEID(v4, v6 netip.Addr) uint32 {
	for range 64 {
		v := uint32(x.random.Uint64())<<x.slots.bits | x.slots.free()
		_, four := x.tunnel(rules.Tunnel{Addr: v4, TEID: v})
		_, six := x.tunnel(rules.Tunnel{Addr: v6, TEID: v})
		if v != 0 && !four && !six {
			return v
		}
	}
	return 0
}

// tunnel returns the session that has an F-TEID of ours.
func (x *index) tunnel(t rules.Tunnel) (seid uint64, used bool) {
	if key, known := x.locals.key(t, false); known {
		seid, used = x.local[key]
	}
	return seid, used
}

// UE4 and ue6 take from the pools of an instance.
func (x *index) UE4(i *rules.Instance) (netip.Addr, bool) {
	p, ok := x.give(i, true, 32)
	return p.Addr(), ok
}

func (x *index) UE6(i *rules.Instance, bits uint8) (netip.Prefix, bool) {
	// TS 29.244 §8.2.62 (CHV6, IP6PL): /64 unless the CP function requests another length. Below /48 the search
	// within the prefix would be long.
	if bits < 48 || bits > 128 {
		return netip.Prefix{}, false
	}
	if !slices.ContainsFunc(x.pools[i.Name], func(p *pool.Pool) bool {
		return p.Prefix.Addr().Is6() &&
			p.Bits == bits
	}) {
		for _, p := range i.Pools {
			if p.Addr().Is6() && int(bits) >= p.Bits() {
				x.pools[i.Name] = append(x.pools[i.Name], pool.New(p, bits))
			}
		}
	}
	return x.give(i, false, bits)
}

func (x *index) give(i *rules.Instance, v4 bool, length uint8) (netip.Prefix, bool) {
	live := func(v netip.Prefix) bool {
		_, used := x.ueOwner(rules.UEAddress{Instance: i.Name, Prefix: v})
		return used || x.reserved(v)
	}
	for _, p := range x.pools[i.Name] {
		if p.Bits != length || p.Prefix.Addr().Is4() != v4 {
			continue
		}
		if v, ok := p.Take(x.now(), quarantine, live); ok {
			x.taken = append(x.taken, taking{p, v})
			return v, true
		}
	}
	return netip.Prefix{}, false
}

// reserved: the current request has allocated the address.
func (x *index) reserved(v netip.Prefix) bool {
	return slices.ContainsFunc(x.taken, func(t taking) bool { return t.prefix.Overlaps(v) })
}

// settle ends a request's allocations. undo frees them if the request fails later.
func (x *index) settle() (undo func()) {
	taken := x.taken
	x.taken = nil
	return func() {
		for i := len(taken) - 1; i >= 0; i-- {
			taken[i].pool.Untake(taken[i].prefix)
		}
	}
}

func (x *index) instance(name string) uint64 {
	n, ok := x.names[name]
	if !ok {
		n = uint16(len(x.names))
		x.names[name] = n
	}
	return uint64(n)
}

// conflict is another session's property that a session wants: an F-TEID (never available), or a UE address (row A5).
type conflict struct {
	pdr    uint16 // that wants it
	tunnel bool
	ue     rules.UEAddress
	other  uint64 // the session with the UE address; 0: no such conflict
}

func (x *index) conflict(seid uint64, c *rules.Compiled) conflict {
	for i, t := range c.Local {
		if other, used := x.tunnel(t); used && other != seid {
			return conflict{pdr: c.LocalOf[i], tunnel: true}
		}
	}
	for i, u := range c.UEs {
		if other, used := x.ueOwner(u); used && other != seid {
			return conflict{pdr: c.UEOf[i], ue: u, other: other}
		}
	}
	return conflict{}
}

// add and remove enter and take out what a session occupies.
func (x *index) add(seid uint64, c *rules.Compiled) {
	x.pipes.add(seid, c)
	for _, t := range c.Local {
		key, _ := x.locals.key(t, true)
		x.local[key] = seid
		x.slots.mark(t.TEID, true)
	}
	for _, t := range c.Peers {
		if v4, v6, four := peerOf(t); four {
			x.peer[v4] = seid
		} else {
			x.peer6[v6] = seid
		}
	}
	for _, u := range c.UEs {
		if v4, four := x.hostKey(u); four {
			x.host[v4] = seid
		} else {
			x.prefix.of(u).Insert(u.Prefix, seid)
		}
	}
	x.reachable.note(c.UEs)
}

func (x *index) remove(seid uint64, c *rules.Compiled) {
	x.pipes.remove(seid, c)
	drop := func(m map[uint64]uint64, key uint64) {
		if m[key] == seid {
			delete(m, key)
		}
	}
	for _, t := range c.Local {
		if key, ok := x.locals.key(t, false); ok {
			drop(x.local, key)
			x.slots.mark(t.TEID, false)
		}
	}
	for _, t := range c.Peers {
		if v4, v6, four := peerOf(t); four {
			drop(x.peer, v4)
		} else if x.peer6[v6] == seid {
			delete(x.peer6, v6)
		}
	}
	for _, u := range c.UEs {
		if v4, four := x.hostKey(u); four {
			drop(x.host, v4)
		} else if holder, _ := x.prefix.of(u).Get(u.Prefix); holder == seid {
			x.prefix.of(u).Delete(u.Prefix)
		}
	}
	x.reachable.note(c.UEs)
}

// released quarantines UE addresses that no session has any more.
func (x *index) released(c *rules.Compiled) {
	for _, u := range c.UEs {
		if u.Framed {
			continue
		}
		if _, used := x.ueOwner(u); used {
			continue
		}
		for _, p := range x.pools[u.Instance] {
			p.Release(u.Prefix, x.now())
		}
	}
}
