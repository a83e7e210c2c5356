// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"isthmus/controlplane/events"
)

// How many failures a source has in a minute before it must wait, and how many sources are counted apart; all others
// share a place.
const (
	failuresAllowed = 10
	failuresWindow  = time.Minute
	maxSources      = 1024
)

// failures counts requests that were turned away.
type failures struct {
	all atomic.Uint64

	lock    sync.Mutex
	by      map[netip.Prefix]*tally
	others  tally
	swept   time.Time
	telling events.Gate
}

type tally struct {
	since time.Time
	count int
}

func newFailures() *failures {
	return &failures{by: map[netip.Prefix]*tally{}, telling: events.Gate{Most: 5, Window: 10 * time.Second}}
}

// source is the owner of an address: a host of IPv4, a network of IPv6.
func source(remote string) netip.Prefix {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 32)
	}
	addr := a.Addr().Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p
}

// add counts a failure. more: unreported ones since the last report; often: the source exceeded its limit.
func (f *failures) add(from netip.Prefix, now time.Time) (more uint64, tell, often bool) {
	f.all.Add(1)
	f.lock.Lock()
	defer f.lock.Unlock()
	if now.Sub(f.swept) >= failuresWindow {
		f.swept = now
		for p, t := range f.by {
			if now.Sub(t.since) >= failuresWindow {
				delete(f.by, p)
			}
		}
	}
	t := f.by[from]
	switch {
	case t != nil:
	case len(f.by) < maxSources:
		t = &tally{}
		f.by[from] = t
	default:
		t = &f.others
	}
	if now.Sub(t.since) >= failuresWindow {
		*t = tally{since: now}
	}
	t.count++
	more, tell = f.telling.Open(now)
	return more, tell, t.count > failuresAllowed
}
