// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"slices"
	"time"

	"isthmus/controlplane/config"
)

// absence is how long after our start a data plane that does not answer counts as one that forwards.
const absence = 5 * time.Second

// announcing is an instance whose sessions are told to routing daemons.
type announcing struct {
	mode       string   // pool, host
	namespaces []string // of its interfaces' clones
}

func announcingOf(c *config.Config) map[string]announcing {
	all := map[string]announcing{}
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		in := instanceOf(c, f.Name)
		if f.Clone.Device == "" || in == nil || in.Announce == "none" {
			continue
		}
		a := all[string(in.Name)]
		a.mode = in.Announce
		if !slices.Contains(a.namespaces, f.Clone.File()) {
			a.namespaces = append(a.namespaces, f.Clone.File())
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
	modes := map[string]string{}
	for name, of := range plan.Announcing {
		modes[name] = of.mode
	}
	a.mobile.manager.Announce(modes)
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
