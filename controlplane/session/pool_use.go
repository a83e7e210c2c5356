// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"slices"
)

// PoolUse is how much of the UE addresses of a network instance and family is given out.
type PoolUse struct {
	Instance, Family string // ipv4, ipv6
	Used, Size       uint64
}

// PoolUse returns the use of all pools, by instance and family.
func (p *glances) PoolUse() (list []PoolUse) {
	last := p.pools.Load()
	if !p.glance(last != nil, func() { list = p.poolUse() }) {
		return *last
	}
	p.pools.Store(&list)
	return list
}

func (p *glances) poolUse() (list []PoolUse) {
	for name, pools := range p.x.pools {
		sums := [2]PoolUse{{Instance: name, Family: "ipv4"}, {Instance: name, Family: "ipv6"}}
		for _, one := range pools {
			sum := &sums[0]
			if one.Prefix.Addr().Is6() {
				sum = &sums[1]
			}
			used, size := one.Use()
			sum.Used, sum.Size = sum.Used+used, sum.Size+size
		}
		for _, sum := range sums {
			if sum.Size > 0 {
				list = append(list, sum)
			}
		}
	}
	slices.SortFunc(list, func(a, b PoolUse) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Family, b.Family))
	})
	return list
}
