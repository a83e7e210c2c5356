// SPDX-License-Identifier: Apache-2.0

package subscriber

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"isthmus/api"
	"isthmus/controlplane/config"
	"isthmus/controlplane/rules"
)

// The walled garden of captive subscribers: name servers, the host of the redirect's URL, and the plan's portal. Names
// are resolved at the subscriber's own name server, since another one may have other addresses.

const (
	gardenPeriod = time.Minute
	gardenKept   = time.Hour // that an address of a name passes when an answer does not have it any more
	gardenNames  = 256       // most names that are resolved, since plans and the configuration choose them
	gardenMost   = 32        // addresses of a name; newer ones replace older ones
	lookupTime   = 10 * time.Second
)

// Resolver looks a name up at a server; not valid: the system's.
type Resolver func(ctx context.Context, server netip.Addr, name string) ([]netip.Addr, error)

func resolve(ctx context.Context, server netip.Addr, name string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true}
	if server.IsValid() {
		r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, netip.AddrPortFrom(server, 53).String())
		}
	}
	return r.LookupNetIP(ctx, "ip", name)
}

type gardenKey struct {
	name   string
	server netip.Addr
}

// gardenName is a name that captive subscribers may reach.
type gardenName struct {
	key   gardenKey
	seen  map[netip.Addr]time.Time // when an answer had it last
	users map[*Subscriber]bool
	order []netip.Addr // of seen, as filters have them
}

// admit has packets pass by the garden's rule, as far as the session has room for filters beside the access lists'.
func (s object) admit(o *rules.Session) {
	room, list := api.MaxSDF, s.gardenFilters()
	for _, others := range o.LineFilters {
		room -= len(others)
	}
	if len(list) > room {
		s.loop.opt.Notify("subscriber.left-out", "portal", "subscriber", s.about(), "why",
			fmt.Sprintf("%d addresses, and room for %d beside the access lists", len(list), room))
		list = list[:room]
	}
	if o.LineFilters == nil {
		o.LineFilters = map[uint16][]api.SDF{}
	}
	o.LineFilters[gardenRule] = list
}

// gardenFilters are those of the rule by which a captive subscriber's packets pass.
func (s object) gardenFilters() []api.SDF {
	list := []api.SDF{dns(6), dns(17)}
	reach := slices.Clone(s.plan.Portal)
	if u, err := url.Parse(s.plan.Redirect); err == nil && u.Hostname() != "" {
		reach = append(reach, u.Hostname())
	}
	for _, text := range reach {
		var to config.Reachable
		if to.UnmarshalText([]byte(text)) != nil { // checked by its sender
			continue
		}
		if to.Name == "" {
			list = append(list, towards(to.Prefix))
			continue
		}
		for _, a := range s.loop.gardens.of(s.Subscriber, to.Name) {
			list = append(list, towards(netip.PrefixFrom(a, a.BitLen())))
		}
	}
	return list
}

func towards(p netip.Prefix) api.SDF {
	f := everything(0)
	f.Remote = api.FromPrefix(p)
	return f
}

// gardens are the names that captive subscribers may reach.
type gardens struct {
	loop *Loop
	by   map[gardenKey]*gardenName
}

// of returns the addresses of a name that are known, and sees to it that they stay so while s is captive.
func (g *gardens) of(s *Subscriber, name string) []netip.Addr {
	key := gardenKey{name: name}
	if len(s.addresses.DNS) > 0 {
		key.server = s.addresses.DNS[0]
	}
	n := g.by[key]
	if n == nil {
		if len(g.by) >= gardenNames {
			g.loop.opt.Notify("subscriber.left-out", "portal", "subscriber", s.about(), "why",
				"more names than are looked up: "+name)
			return nil
		}
		n = &gardenName{key: key, seen: map[netip.Addr]time.Time{}, users: map[*Subscriber]bool{}}
		g.by[key] = n
		g.ask(n)
	}
	n.users[s] = true
	return n.order
}

// ask resolves a name while a captive subscriber may reach it.
func (g *gardens) ask(n *gardenName) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
		defer cancel()
		list, err := g.loop.opt.Resolve(ctx, n.key.server, n.key.name)
		g.loop.Post(func() { g.answered(n, list, err) })
	}()
}

func (g *gardens) answered(n *gardenName, list []netip.Addr, err error) {
	l := g.loop
	for s := range n.users {
		if s.ending || s.plan.Redirect == "" {
			delete(n.users, s)
		}
	}
	if len(n.users) == 0 {
		delete(g.by, n.key)
		return
	}
	if err != nil {
		l.opt.Notify("subscriber.left-out", "portal", "why", err.Error())
	}
	changed, out := n.take(list, l.opt.Now())
	if out > 0 {
		l.opt.Notify("subscriber.left-out", "portal", "why",
			fmt.Sprintf("%s: %d addresses beside the %d newest", n.key.name, out, gardenMost))
	}
	if changed {
		for s := range n.users {
			s.do(func() {
				if s.put && !s.ending {
					s.commit(func(error) {})
				}
			})
		}
	}
	l.After(gardenPeriod, func() { g.ask(n) })
}

// take adds an answer; changed: the addresses differ. No answer removes one early, except the longest unseen ones above
// the bound: out of them.
func (n *gardenName) take(list []netip.Addr, now time.Time) (changed bool, out int) {
	for _, a := range list {
		n.seen[a.Unmap()] = now
	}
	maps.DeleteFunc(n.seen, func(_ netip.Addr, last time.Time) bool { return now.Sub(last) >= gardenKept })
	order := slices.SortedFunc(maps.Keys(n.seen), func(a, b netip.Addr) int {
		return cmp.Or(n.seen[b].Compare(n.seen[a]), a.Compare(b)) // the newest first
	})
	if out = max(len(order)-gardenMost, 0); out > 0 {
		for _, a := range order[gardenMost:] {
			delete(n.seen, a)
		}
		order = order[:gardenMost]
	}
	slices.SortFunc(order, netip.Addr.Compare)
	changed = !slices.Equal(order, n.order)
	n.order = order
	return changed, out
}
