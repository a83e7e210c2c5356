// SPDX-License-Identifier: Apache-2.0

// Package lease assigns IPv4 addresses, IPv6 prefixes and delegated prefixes at sign-in: from pools, or those that
// authentication or an upstream DHCP server names.
//
// One goroutine, subscriber's loop, calls everything here; there is no lock.
package lease

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/gaissmai/bart"
)

// Who asks. An equal User gets the same address again, if it is free; without a User an equal Circuit; without both an
// equal MAC.
type Who struct {
	User, Circuit string
	MAC           [6]byte
}

// Lease is what a request got.
type Lease struct {
	Pool    string // empty: of no pool
	Prefix  netip.Prefix
	Gateway netip.Addr
	Mask    int // of the subnet
	DNS     []netip.Addr
}

// InUse refuses what another owner has.
type InUse struct{ Prefix netip.Prefix }

func (e *InUse) Error() string { return name(e.Prefix) + " is in use" }

func name(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// Event: a pool's use reached a level, in percent: 80, 95, 100. Or it fell well below one, to the level before or 0.
type Event struct {
	Pool, Instance string
	Level          int
	Rising         bool
	Used, Size     uint64
}

// Options of Pools.
type Options struct {
	Now   func() time.Time
	Event func(Event)
	// Live returns whether a prefix has an owner that does not ask here: static subscribers, UEs. May be nil.
	Live func(instance string, v netip.Prefix) bool
}

// Pools are all pools, and the addresses in use that are of no pool.
type Pools struct {
	o         Options
	seed      maphash.Seed
	pools     map[string]*pool
	order     []*pool
	instances map[string]*instance
}

// instance is a network instance: its addresses are unique.
type instance struct {
	pools   bart.Table[*pool]
	outside bart.Lite // in use, of no pool
}

// New has no pools yet.
func New(o Options) *Pools {
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	if o.Live == nil {
		o.Live = func(string, netip.Prefix) bool { return false }
	}
	return &Pools{o: o, seed: maphash.MakeSeed(), pools: map[string]*pool{}, instances: map[string]*instance{}}
}

func (p *Pools) instance(name string) *instance {
	in := p.instances[name]
	if in == nil {
		in = &instance{}
		p.instances[name] = in
	}
	return in
}

// number of an owner, below used.
func (p *Pools) number(w Who) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	switch {
	case w.User != "":
		h.WriteByte(1)
		h.WriteString(w.User)
	case w.Circuit != "":
		h.WriteByte(2)
		h.WriteString(w.Circuit)
	default:
		h.WriteByte(3)
		h.Write(w.MAC[:])
	}
	return h.Sum64() &^ used
}

// Take allocates from a pool, in this order: the reserved address, the hint, the owner's last one, the longest free.
// The hint is an address, or is within a prefix, that the client claims to have had; invalid: none.
func (p *Pools) Take(name string, w Who, hint netip.Addr) (Lease, error) {
	one := p.pools[name]
	if one == nil {
		return Lease{}, fmt.Errorf("there is no pool %q", name)
	}
	n, ok := one.take(p, w, hint)
	if !ok {
		one.refused++
		return Lease{}, fmt.Errorf("pool %q has nothing free: %d of %d in use, %d held back", name,
			one.used, one.size, one.held())
	}
	p.watch(one)
	return one.lease(n), nil
}

// TakeThis gives a prefix, of a pool or not, unless it overlaps another owner's.
func (p *Pools) TakeThis(instance string, v netip.Prefix, w Who) (Lease, error) {
	a := v.Addr()
	if v != v.Masked() || a.Is4In6() || a.IsMulticast() || a.IsLoopback() || a.IsLinkLocalUnicast() ||
		v.Bits() == 0 || a.IsUnspecified() || a.Is4() && a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return Lease{}, fmt.Errorf("%s is nobody's address", v)
	}
	in := p.instance(instance)
	if p.o.Live(instance, v) {
		return Lease{}, &InUse{v}
	}
	if one, ok := in.pools.Lookup(a); ok {
		l, err := one.takeThis(v, p.number(w))
		p.watch(one)
		return l, err
	}
	if in.pools.OverlapsPrefix(v) {
		return Lease{}, fmt.Errorf("%s holds a pool", v)
	}
	if in.outside.OverlapsPrefix(v) {
		return Lease{}, &InUse{v}
	}
	in.outside.Insert(v)
	return Lease{Prefix: v, Mask: v.Bits()}, nil
}

// Release takes back what Take or TakeThis gave.
func (p *Pools) Release(instance string, v netip.Prefix) {
	in := p.instance(instance)
	if in.outside.Get(v) { // also where a pool has come about it since
		in.outside.Delete(v)
		return
	}
	if one, ok := in.pools.Lookup(v.Addr()); ok {
		one.release(v, p.o.Now(), false)
		p.watch(one)
	}
}

// Reserved is the pool's reservation for an owner; invalid: none.
func (p *Pools) Reserved(name string, w Who) (v netip.Prefix) {
	if one := p.pools[name]; one != nil {
		if n, ok := one.reservation(w); ok {
			v = one.ranges[0].At(n)
		}
	}
	return v
}

// Instance is a pool's network instance.
func (p *Pools) Instance(pool string) (name string, known bool) {
	if one := p.pools[pool]; one != nil {
		return string(one.Instance), true
	}
	return "", false
}

// Decline takes back an address that an unknown host uses: it is not given out for an hour.
func (p *Pools) Decline(instance string, v netip.Prefix) {
	if one, ok := p.instance(instance).pools.Lookup(v.Addr()); ok {
		one.release(v, p.o.Now(), true)
		p.watch(one)
		return
	}
	p.Release(instance, v)
}

// Row of `show pool`.
type Row struct {
	Name, Instance, Network string
	Length                  int
	Size, Used              uint64
	Reserved, Held          uint64 // Held: given back, not free yet
	Declined                uint64
	Given, Again, Refused   uint64 // Again: of Given, to the former owner
}

// Rows returns all pools, in the configuration's order.
func (p *Pools) Rows() []Row {
	rows := make([]Row, 0, len(p.order))
	for _, one := range p.order {
		one.forgive(p.o.Now())
		rows = append(rows, Row{string(one.Name), string(one.Instance), one.Prefix.String(), int(one.Length),
			one.size, one.used, uint64(len(one.reserved)), one.held(), uint64(len(one.declined)),
			one.given, one.again, one.refused})
	}
	return rows
}
