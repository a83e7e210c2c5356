// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Ignored is a kernel route that is not followed, or only with some of its next hops.
type Ignored struct {
	Namespace, VRF string
	Prefix         netip.Prefix
	Table, Metric  uint32
	Reason         Reason
	Text           string     // the data plane's reason
	Via            netip.Addr // of the first next hop that is left out
	Device         string     // of the same
	Hops           int        // number of next hops; 0: the whole route is not followed
}

const mainTable = unix.RT_TABLE_MAIN

// Left is how many routes are not followed, by reason.
func (k *Kernel) Left() map[Reason]int {
	left := map[Reason]int{}
	for _, name := range k.order {
		s := k.spaces[name]
		s.mu.Lock()
		for why, n := range s.table.left {
			if n > 0 && Reason(why) != Followed {
				left[Reason(why)] += n
			}
		}
		s.mu.Unlock()
	}
	return left
}

// Ignored lists them, up to a bound.
func (k *Kernel) Ignored(most int) (list []Ignored) {
	for _, name := range k.order {
		list = k.spaces[name].ignored(list, most)
	}
	SortIgnored(list)
	return list
}

// SortIgnored puts them in the order of tables.
func SortIgnored(list []Ignored) {
	slices.SortFunc(list, func(a, b Ignored) int {
		return cmp.Or(cmp.Compare(a.VRF, b.VRF), comparePrefixes(a.Prefix, b.Prefix),
			cmp.Compare(a.Table, b.Table), cmp.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Namespace, b.Namespace))
	})
}

func (s *space) ignored(list []Ignored, most int) []Ignored {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table
	for key, why := range t.foreign {
		if len(list) == most {
			return list
		}
		list = append(list, Ignored{Namespace: s.name, VRF: s.vrf(), Prefix: key.prefix.Netip(),
			Table: key.table, Metric: key.metric, Reason: why})
	}
	var room [4]candidate
	for p, e := range t.routes {
		for _, c := range t.candidates(p, &e, room[:]) {
			l := c.fate().left
			switch {
			case l.reason == Followed:
			case len(list) == most:
				return list
			default:
				list = append(list, Ignored{Namespace: s.name, VRF: s.vrf(), Prefix: p.Netip(),
					Table: mainTable, Metric: c.metric, Reason: l.reason, Via: l.via,
					Device: t.names[int(l.device)], Hops: l.hops})
			}
		}
	}
	return list
}
