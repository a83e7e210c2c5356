// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/config"
	"isthmus/controlplane/session"
)

// absence is how long after our start a data plane that does not answer counts as one that forwards.
const absence = 5 * time.Second

// announcing is an instance of whose sessions routing daemons are told.
type announcing struct {
	sessions   session.Announcing
	aggregates []netip.Prefix // that the clones announce
	namespaces []string       // of its interfaces' clones
}

// announcingOf lists the instances that announce. NAT44's addresses are announced in place of what is behind it.
func announcingOf(c *config.Config) map[string]announcing {
	all := map[string]announcing{}
	for i := range c.Instances {
		in := &c.Instances[i]
		if in.Announce == "none" {
			continue
		}
		var a announcing
		for _, p := range in.NAT.Inside {
			a.sessions.Inside = append(a.sessions.Inside, p.Prefix)
		}
		for _, p := range in.NAT.Addresses {
			a.aggregates = append(a.aggregates, p.Prefix)
		}
		if in.Announce == "pool" {
			for _, p := range c.PoolsOf(in) {
				// Of a pool of which NAT44 hides a part, the rest is announced session by session.
				if !slices.ContainsFunc(a.sessions.Inside, p.Overlaps) {
					a.aggregates = append(a.aggregates, p)
				}
			}
			a.sessions.Aggregates = a.aggregates
		}
		for j := range c.Interfaces {
			f := &c.Interfaces[j]
			if f.Clone.Device != "" && slices.Contains(in.Interfaces, f.Name) &&
				!slices.Contains(a.namespaces, f.Clone.File()) {
				a.namespaces = append(a.namespaces, f.Clone.File())
			}
		}
		all[string(in.Name)] = a
	}
	return all
}

// announceSessions has the sessions of a plan's instances announced: those that are there at once, so that none of
// them is withdrawn when we start.
func (a *Agent) announceSessions(plan *Plan) {
	if a.mobile == nil {
		return
	}
	by := map[string]session.Announcing{}
	for name, of := range plan.Announcing {
		by[name] = of.sessions
	}
	a.mobile.manager.Announce(by)
	a.followSessions()
}

// reachableChanged can be read when sessions came or went that are announced.
func (a *Agent) reachableChanged() <-chan struct{} {
	if a.mobile == nil {
		return nil
	}
	return a.mobile.manager.ReachableChanged()
}

// followSessions gives the kernel what came and went.
func (a *Agent) followSessions() {
	all, news := a.mobile.manager.Reachable()
	spaces := map[string]map[netip.Prefix]bool{}
	for name, prefixes := range news {
		for _, space := range a.plan.Announcing[name].namespaces {
			if spaces[space] == nil {
				spaces[space] = map[netip.Prefix]bool{}
			}
			for p, there := range prefixes {
				spaces[space][p] = there
			}
		}
	}
	a.kernel.Sessions(all, spaces)
}
