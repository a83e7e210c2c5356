// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"isthmus/controlplane/access"
	"isthmus/controlplane/lease"
	"isthmus/controlplane/rules"
)

// addresses are a subscriber's, of pools or from other servers.
type addresses struct{ *Subscriber }

func (s addresses) who() lease.Who {
	return lease.Who{User: s.user, Circuit: string(s.at.agent.CircuitID), MAC: s.at.line.MAC}
}

// want takes addresses of these families and gives others back.
func (s addresses) want(f access.Families, r *access.Request) error {
	a, p, g, hint := &s.addresses, s.plan, cmp.Or(r.Given, &access.Addresses{}), &r.Hint
	if g.IPv4.IsValid() && f.V4 && !a.IPv4.IsValid() {
		if _, err := s.loop.opt.Pools.TakeThis(p.Instance, netip.PrefixFrom(g.IPv4, 32), s.who()); err != nil {
			return err
		}
		a.IPv4, a.Mask, a.Gateway, a.DNS = g.IPv4, g.Mask, g.Gateway, g.DNS
	}
	var four netip.Prefix
	if p.IPv4.IsValid() {
		four = netip.PrefixFrom(p.IPv4, 32)
	}
	l, had, err := s.take(f.V4, hostOf(a.IPv4), four, p.Pool4, hint.IPv4)
	switch {
	case err != nil:
		return err
	case !f.V4:
		a.IPv4, a.Mask, a.Gateway = netip.Addr{}, 0, netip.Addr{}
	case !had && l.Prefix.IsValid():
		a.IPv4, a.Mask, a.Gateway = l.Prefix.Addr(), cmp.Or(p.Mask, l.Mask), l.Gateway
		if len(p.DNS) == 0 {
			addMissing(&a.DNS, l.DNS)
		}
	}
	if len(p.DNS) > 0 {
		a.DNS = p.DNS
	}
	for _, one := range []struct {
		wanted bool
		at     *netip.Prefix
		this   netip.Prefix
		pool   string
		given  netip.Prefix
		hint   netip.Prefix
	}{{f.V6, &a.IPv6, p.IPv6, p.Pool6, g.IPv6, hint.IPv6},
		{f.Delegated, &a.Delegated, p.Delegated, p.PoolPD, g.Delegated, hint.Delegated}} {
		if one.given.IsValid() {
			one.this = one.given
		}
		l, had, err := s.take(one.wanted, *one.at, one.this, one.pool, one.hint.Addr())
		if err != nil {
			return err
		}
		if !had {
			*one.at = l.Prefix
			if one.given.IsValid() {
				l.DNS = g.DNS
			}
			if len(p.DNS) == 0 {
				addMissing(&a.DNS, l.DNS)
			}
		}
	}
	if p.InterfaceID != 0 {
		a.InterfaceID = p.InterfaceID
	}
	return nil
}

// take is one family's part of want. had: nothing changes.
func (s addresses) take(wanted bool, has, this netip.Prefix, pool string, hint netip.Addr) (l lease.Lease, had bool,
	err error) {
	pools := s.loop.opt.Pools
	switch {
	case wanted == has.IsValid():
		return l, true, nil
	case !wanted:
		pools.Release(s.plan.Instance, has)
		return l, false, nil
	case this.IsValid():
		l, err = pools.TakeThis(s.plan.Instance, this, s.who())
		return l, false, err
	case pool != "":
		if in, known := pools.Instance(pool); known && in != s.plan.Instance {
			return l, false, fmt.Errorf("pool %q is of network instance %q, not of %q", pool, in,
				s.plan.Instance)
		}
		l, err = pools.Take(pool, s.who(), hint)
		return l, false, err
	}
	return l, false, nil
}

// addMissing: families come and go, and their pools have the same servers.
func addMissing(list *[]netip.Addr, more []netip.Addr) {
	for _, one := range more {
		if !slices.Contains(*list, one) {
			*list = append(*list, one)
		}
	}
}

func hostOf(a netip.Addr) netip.Prefix {
	if !a.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// release gives all addresses back.
func (s addresses) release() {
	pools := s.loop.opt.Pools
	for i, v := range s.addresses.Prefixes() {
		switch {
		case !v.IsValid():
		case i == 0 && s.declined:
			pools.Decline(s.plan.Instance, v)
		default:
			pools.Release(s.plan.Instance, v)
		}
	}
	s.loop.freed(s.Subscriber)
}

// wish is what a session wants of one family.
type wish struct {
	family access.Families // it alone
	wanted bool
	this   netip.Prefix // this prefix, or what the pool reserves for it; invalid: any of the pool
	pool   string       // empty: no other one than this
}

func (s addresses) wishes(f access.Families, given *access.Addresses) [3]wish {
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

// takeFree takes the available addresses. The others are those of holders, which are in out or end already.
func (s addresses) takeFree(r *access.Request, out []*Subscriber) (holders []*Subscriber, err error) {
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
func (s addresses) holder(i int, w *wish, out []*Subscriber, full bool) *Subscriber {
	for _, o := range out {
		v := o.addresses.Prefixes()[i]
		if v.IsValid() && o.plan.Instance == s.plan.Instance && (v == w.this || full && w.pool != "" &&
			(addresses{o}).wishes(access.Families{}, nil)[i].pool == w.pool) {
			return o
		}
	}
	return s.loop.leaving[held{s.plan.Instance, w.this}]
}

// holdAgain takes the addresses that a session of the store has.
func (s addresses) holdAgain(instance string, is *rules.Session) error {
	if is == nil {
		return fmt.Errorf("there is no session of it")
	}
	if instance != s.plan.Instance {
		return fmt.Errorf("its profile is of network instance %q now, not %q", s.plan.Instance, instance)
	}
	for _, v := range []netip.Prefix{hostOf(s.addresses.IPv4), s.addresses.IPv6, s.addresses.Delegated} {
		if !v.IsValid() {
			continue
		}
		if _, err := s.loop.opt.Pools.TakeThis(instance, v, s.who()); err != nil {
			return err
		}
	}
	return nil
}
