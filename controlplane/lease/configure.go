// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"net/netip"
	"reflect"

	"isthmus/controlplane/config"
)

// Configure replaces the pools. Used addresses stay in use: in the new pool that contains them, or outside of pools. An
// unchanged pool remembers former owners. The configuration was checked.
func (p *Pools) Configure(pools []config.AddressPool) {
	before, instances := p.pools, p.instances
	p.pools, p.instances, p.order = map[string]*pool{}, map[string]*instance{}, nil
	for i := range pools {
		c := &pools[i]
		name := string(c.Name)
		one := before[name]
		if one != nil && reflect.DeepEqual(&one.AddressPool, c) {
			delete(before, name)
		} else {
			one = newPool(c)
		}
		p.pools[name] = one
		p.order = append(p.order, one)
		p.instance(string(c.Instance)).pools.Insert(c.Prefix.Prefix, one)
	}
	for _, old := range before {
		for n, who := range old.holder {
			if who&used != 0 && who != used {
				p.keep(string(old.Instance), old.ranges[0].At(n), who&^used)
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
}

// keep has a prefix that is in use stay so.
func (p *Pools) keep(instance string, v netip.Prefix, who uint64) {
	in := p.instance(instance)
	if one, ok := in.pools.Lookup(v.Addr()); ok {
		n, ok := one.number(one.unit(v.Addr()))
		if ok && v.Bits() >= int(one.Length) && one.holder[n]&used == 0 {
			one.hold(n, who)
			return
		}
	}
	in.outside.Insert(v)
}
