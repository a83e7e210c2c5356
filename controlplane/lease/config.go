// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"net/netip"
	"time"

	"isthmus/controlplane/config"
)

// FromConfig is what the configuration, which was checked, says of pools.
func FromConfig(pools []config.AddressPool) []Pool {
	all := make([]Pool, 0, len(pools))
	for i := range pools {
		c := &pools[i]
		p := Pool{Name: string(c.Name), Instance: string(c.Instance),
			Network: c.Prefix.Prefix, Gateway: c.Gateway.Addr,
			Length: int(c.Length), Hold: time.Duration(c.Hold) * time.Second, Ranges: spans(c.Ranges),
			Excluded: spans(c.Excluded), DNS: addresses(c.DNS)}
		for _, r := range c.Reservations {
			p.Reservations = append(p.Reservations, Reservation{r.User, r.Circuit, r.MAC, r.Address.Addr})
		}
		all = append(all, p)
	}
	return all
}

func spans(list []config.AddressRange) (all []Range) {
	for _, r := range list {
		all = append(all, Range{r.First, r.Last})
	}
	return all
}

func addresses(list []config.Address) (all []netip.Addr) {
	for _, a := range list {
		all = append(all, a.Addr)
	}
	return all
}
