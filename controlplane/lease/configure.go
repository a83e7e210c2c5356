// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"net/netip"
	"reflect"
)

// Configure has the pools be these. What is in use stays so: in the new pool that has it, or as an address of no pool.
// A pool that is the same as before remembers who had what. An error refuses all.
func (p *Pools) Configure(pools []Pool) error {
	if err := Check(pools); err != nil {
		return err
	}
	before, instances := p.pools, p.instances
	p.pools, p.instances, p.order = map[string]*pool{}, map[string]*instance{}, nil
	for _, c := range pools {
		one := before[c.Name]
		if one != nil && reflect.DeepEqual(one.Pool, c) {
			delete(before, c.Name)
		} else {
			one = newPool(c)
		}
		p.pools[c.Name] = one
		p.order = append(p.order, one)
		p.instance(c.Instance).pools.Insert(c.Network, one)
	}
	for _, old := range before {
		for n, who := range old.holder {
			if who&used != 0 && who != used {
				p.keep(old.Instance, old.ranges[0].At(n), who&^used)
			}
		}
	}
	for name, in := range instances {
		for v := range in.outside.All() {
			p.keep(name, v, 0)
		}
	}
	for _, one := range p.order {
		p.watch(one)
	}
	return nil
}

// Check tells whether Configure would take the pools.
func Check(pools []Pool) error {
	seen := map[string]bool{}
	for i := range pools {
		if seen[pools[i].Name] {
			return fmt.Errorf("two pools are called %q", pools[i].Name)
		}
		seen[pools[i].Name] = true
		if err := pools[i].check(pools[:i]); err != nil {
			return err
		}
	}
	return nil
}

// keep has a prefix that is in use stay so.
func (p *Pools) keep(instance string, v netip.Prefix, who uint64) {
	in := p.instance(instance)
	if one, ok := in.pools.Lookup(v.Addr()); ok {
		if n, ok := one.number(one.unit(v.Addr())); ok && v.Bits() >= one.Length && one.holder[n]&used == 0 {
			one.hold(n, who)
			return
		}
	}
	in.outside.Insert(v)
}

func (c *Pool) check(others []Pool) error {
	switch {
	case !c.Network.IsValid() || c.Network != c.Network.Masked():
		return fmt.Errorf("pool %q: %s is no network", c.Name, c.Network)
	case c.Network.Addr().Is4() && c.Length != 32,
		c.Network.Addr().Is6() && (c.Length < c.Network.Bits() || c.Length > 64):
		return fmt.Errorf("pool %q: no prefixes of /%d can be given out of %s", c.Name, c.Length, c.Network)
	}
	for i := range others {
		if o := &others[i]; o.Instance == c.Instance && o.Network.Overlaps(c.Network) {
			return fmt.Errorf("pool %q: %s overlaps %s of pool %q", c.Name, c.Network, o.Network, o.Name)
		}
	}
	for _, r := range append(c.Ranges[:len(c.Ranges):len(c.Ranges)], c.Excluded...) {
		if !c.Network.Contains(r.First) || !c.Network.Contains(r.Last) || r.Last.Less(r.First) {
			return fmt.Errorf("pool %q: %s-%s is no range of %s", c.Name, r.First, r.Last, c.Network)
		}
	}
	for _, r := range c.Reservations {
		if !c.Network.Contains(r.Address) {
			return fmt.Errorf("pool %q: reserved %s is not in %s", c.Name, r.Address, c.Network)
		}
	}
	return nil
}
