// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/config"
	ranges "isthmus/controlplane/session/pool"
)

const (
	used       = 1 << 63   // bit of holder
	declined   = time.Hour // for so long a declined address is not given out
	remembered = 1 << 18   // released prefixes of a large pool, with their owners
	hysteresis = 5         // percent that use falls below a level before it counts as below
)

// pool is one pool. Its addresses are numbered in its prefix, inside or outside of the ranges.
type pool struct {
	config.AddressPool
	dns    []netip.Addr
	ranges []*ranges.Pool
	// holder is a number's owner (with the bit used) or last owner; had is the inverse. Both have one entry for
	// each remembered number, so the pool's size and remembered bound them.
	holder   map[uint64]uint64
	had      map[uint64]uint64
	reserved map[uint64]bool
	byUser   map[string]uint64
	byLine   map[string]uint64
	byMAC    map[[6]byte]uint64
	declined []declination // oldest first

	size, used            uint64 // of the ranges, less what is excluded
	given, again, refused uint64
	level                 int
}

type declination struct {
	number uint64
	until  time.Time
}

func newPool(c *config.AddressPool) *pool {
	o := &pool{AddressPool: *c, dns: config.Addresses(c.DNS), holder: map[uint64]uint64{},
		had: map[uint64]uint64{}, reserved: map[uint64]bool{},
		byUser: map[string]uint64{}, byLine: map[string]uint64{}, byMAC: map[[6]byte]uint64{}}
	for _, r := range c.Ranges {
		o.ranges = append(o.ranges, ranges.NewRange(c.Prefix.Prefix, o.unit(r.First), o.unit(r.Last)))
	}
	if len(c.Ranges) == 0 {
		o.ranges = append(o.ranges, ranges.New(c.Prefix.Prefix, c.Length))
	}
	for _, r := range o.ranges {
		r.Remembered = remembered
		o.size += r.Size()
	}
	o.size -= min(o.size, o.excludedSize())
	for _, r := range c.Reservations {
		n, ok := o.number(o.unit(r.Address.Addr))
		if !ok {
			continue
		}
		o.reserved[n] = true
		switch {
		case r.User != "":
			o.byUser[r.User] = n
		case r.Circuit != "":
			o.byLine[r.Circuit] = n
		default:
			o.byMAC[r.MAC] = n
		}
	}
	return o
}

// unit is what is given out that an address is in.
func (o *pool) unit(a netip.Addr) netip.Prefix {
	return netip.PrefixFrom(a, int(o.Length)).Masked()
}

func (o *pool) number(v netip.Prefix) (uint64, bool) { return o.ranges[0].Number(v) }

// excludedSize is how many addresses of the ranges are excluded, with the gateway. Excluded ranges do not overlap
// (configuration).
func (o *pool) excludedSize() (n uint64) {
	all := o.Excluded
	if a := o.Gateway.Addr; a.IsValid() && !o.excludes(a) {
		all = append(all[:len(all):len(all)], config.AddressRange{First: a, Last: a})
	}
	for _, x := range all {
		first, _ := o.number(o.unit(x.First))
		last, _ := o.number(o.unit(x.Last))
		for _, r := range o.ranges {
			low, high := r.Bounds()
			if from, to := max(first, low), min(last+1, high); from < to {
				n += to - from
			}
		}
	}
	return n
}

func (o *pool) excludes(a netip.Addr) bool {
	return slices.ContainsFunc(o.Excluded, func(r config.AddressRange) bool {
		return r.Has(a) || r.Has(o.unit(a).Addr())
	})
}

// counts: a prefix is counted in size.
func (o *pool) counts(v netip.Prefix) bool { return o.of(v) != nil && !o.excludes(v.Addr()) }

// of is the range that a prefix is of, nil: none.
func (o *pool) of(v netip.Prefix) *ranges.Pool {
	for _, r := range o.ranges {
		if _, ok := r.Holds(v); ok {
			return r
		}
	}
	return nil
}

func (o *pool) take(p *Pools, w Who, hint netip.Addr) (n uint64, ok bool) {
	now, who := p.o.Now(), p.number(w)
	o.forgive(now)
	instance := string(o.Instance)
	outside := &p.instance(instance).outside
	free := func(n uint64) bool {
		v := o.ranges[0].At(n)
		return o.holder[n]&used == 0 && !p.o.Live(instance, v) &&
			(outside.Size() == 0 || !outside.OverlapsPrefix(v))
	}
	if n, ok = o.reservation(w); ok && free(n) {
		return n, o.hold(n, who)
	}
	// The client's hint goes first: homes share user names, and another gateway may have assigned it. (RFC 2131
	// §4.3.1 prefers our own memory.)
	if n, ok = o.hinted(hint, who, now); ok && free(n) {
		return n, o.hold(n, who)
	}
	if n, ok = o.had[who]; ok && free(n) && !o.reserved[n] {
		o.again++
		return n, o.hold(n, who)
	}
	var theirs []netip.Prefix // with an owner that did not ask here: they may be free later
	live := func(v netip.Prefix) bool {
		n, _ := o.number(v)
		if p.o.Live(instance, v) {
			theirs = append(theirs, v)
			return true
		}
		return !free(n) || o.reserved[n] || o.excludes(v.Addr()) || v.Addr() == o.Gateway.Addr
	}
	for _, r := range o.ranges {
		v, ok := r.Take(now, o.Hold, live)
		for _, one := range theirs {
			r.Release(one, now)
		}
		if theirs = theirs[:0]; ok {
			n, _ = o.number(v)
			return n, o.hold(n, who)
		}
	}
	return 0, false
}

// hinted is the number of a hint that may be given to an owner: a prefix released by another rests for Hold.
func (o *pool) hinted(hint netip.Addr, who uint64, now time.Time) (n uint64, ok bool) {
	v := o.unit(hint)
	r := o.of(v)
	if r == nil || o.excludes(v.Addr()) || v.Addr() == o.Gateway.Addr || r.Fresh(v) {
		return 0, false
	}
	n, _ = o.number(v)
	return n, !o.reserved[n] && (o.holder[n] == who || !r.Rests(v, now, o.Hold))
}

func (o *pool) reservation(w Who) (n uint64, ok bool) {
	if w.User != "" {
		if n, ok = o.byUser[w.User]; ok {
			return n, true
		}
	}
	if w.Circuit != "" {
		if n, ok = o.byLine[w.Circuit]; ok {
			return n, true
		}
	}
	n, ok = o.byMAC[w.MAC]
	return n, ok
}

// takeThis takes the unit that v is in, or is.
func (o *pool) takeThis(v netip.Prefix, who uint64) (Lease, error) {
	a := v.Addr()
	if v.Bits() < int(o.Length) {
		return Lease{}, fmt.Errorf("%s is more than the /%d that pool %q gives out", v, o.Length, o.Name)
	}
	if a == o.Gateway.Addr {
		return Lease{}, fmt.Errorf("%s is our own address in pool %q", a, o.Name)
	}
	if a.Is4() && o.Prefix.Bits() < 31 && (a == o.Prefix.Addr() || !o.Prefix.Contains(a.Next())) {
		return Lease{}, fmt.Errorf("%s is the network or broadcast address of pool %q", a, o.Name)
	}
	n, ok := o.number(o.unit(a))
	if !ok || o.holder[n]&used != 0 {
		return Lease{}, &InUse{v}
	}
	o.hold(n, who)
	l := o.lease(n)
	l.Prefix = v
	return l, nil
}

// hold assigns a number to an owner, and forgets its former one. Always true.
func (o *pool) hold(n, who uint64) bool {
	if before, ok := o.holder[n]; ok && before != who && o.had[before] == n {
		delete(o.had, before)
	}
	o.holder[n], o.had[who] = who|used, n
	o.given++
	if o.counts(o.ranges[0].At(n)) {
		o.used++
	}
	return true
}

func (o *pool) release(v netip.Prefix, now time.Time, declines bool) {
	v = o.unit(v.Addr())
	n, ok := o.number(v)
	if !ok || o.holder[n]&used == 0 {
		return
	}
	if declines {
		delete(o.had, o.holder[n]&^used)
		o.holder[n] = used
		o.declined = append(o.declined, declination{n, now.Add(declined)})
		// A subscriber that declines all must not empty the pool.
		if uint64(len(o.declined)) > max(1, min(1024, o.size/8)) {
			o.declined[0].until = now
		}
		o.forgive(now)
		return
	}
	o.holder[n] &^= used
	if at, ok := o.had[o.holder[n]]; !ok || at != n { // an owner's second one: one of each is remembered
		delete(o.holder, n)
	}
	if o.counts(v) {
		o.used--
	}
	if r := o.of(v); r != nil {
		r.Release(v, now)
	}
}

// forgive releases what was declined long ago.
func (o *pool) forgive(now time.Time) {
	for len(o.declined) > 0 && !now.Before(o.declined[0].until) {
		n := o.declined[0].number
		o.declined = o.declined[1:]
		o.release(o.ranges[0].At(n), now, false)
	}
}

func (o *pool) held() (n uint64) {
	for _, r := range o.ranges {
		n += uint64(r.Quarantined())
	}
	return n
}

func (o *pool) lease(n uint64) Lease {
	l := Lease{Pool: string(o.Name), Prefix: o.ranges[0].At(n), Gateway: o.Gateway.Addr, Mask: int(o.Length),
		DNS: o.dns}
	if o.Gateway.IsValid() {
		l.Mask = o.Prefix.Bits()
	}
	return l
}

var levels = [...]int{80, 95, 100}

// watch reports levels that a pool's use passed.
func (p *Pools) watch(o *pool) {
	if o.size == 0 {
		return
	}
	now, before := int(o.used*100/o.size), o.level
	for _, l := range levels {
		switch {
		case now >= l:
			o.level = max(o.level, l)
		case o.level >= l && now < l-hysteresis:
			o.level = below(l)
		}
	}
	if o.level != before {
		p.o.Event(Event{string(o.Name), string(o.Instance), o.level, o.level > before, o.used, o.size})
	}
}

// below is the level before l.
func below(l int) (before int) {
	for _, one := range levels {
		if one < l {
			before = one
		}
	}
	return before
}
