// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/session"
)

// absence is how long after our start a data plane that does not answer counts as one that forwards.
const absence = 5 * time.Second

// announceSessions has the sessions of a plan's instances announced: those that are there at once, so that none of
// them is withdrawn when we start.
func (a *Agent) announceSessions(plan *plan.Plan) {
	if a.mobile == nil {
		return
	}
	by := map[string]session.Announcing{}
	for name, of := range plan.Announcing {
		by[name] = of.Sessions
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
		for _, space := range a.plan.Announcing[name].Namespaces {
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
