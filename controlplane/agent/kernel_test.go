// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/kernel"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/view"
)

const withClone = `
ports:
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: core0, port: core, addresses: [192.0.2.1/24], clone: {device: core0, namespace: /nowhere}}
routes:
  - {prefix: 198.51.100.0/24, via: 192.0.2.2}
`

// kernelHas gives an agent that runs a state of the kernel's, as netlink would.
func kernelHas(t *testing.T, a *Agent, prefixes ...string) {
	t.Helper()
	st := kernel.State{Routes: map[kernel.Destination]kernel.Route{},
		Devices: map[string]kernel.Device{"core0": {Up: true, MTU: 1500}}}
	via := netip.MustParseAddr("192.0.2.3")
	for _, p := range prefixes {
		d := kernel.Destination{Prefix: netip.MustParsePrefix(p)}
		st.Routes[d] = kernel.RouteBy(kernel.Hop{Via: via, Interface: "core0"})
	}
	_, err := a.owner.Do(t.Context(), func(ctx context.Context) (v1.Result, error) {
		a.owner.FollowKernel(ctx, kernel.Changes{All: &st})
		return v1.Result{}, nil
	})
	testkit.Must(t, err)
}

func routesOf(s *dptest.Server) (n int) {
	for id := range s.Held() {
		if id.Kind == api.KindRoute {
			n++
		}
	}
	return n
}

func TestKernelRoutes(t *testing.T) {
	s := dptest.Start(t)
	first, err := plan.Make("x.yaml", []byte(withClone))
	testkit.Must(t, err)
	a := made(t, outside(s, t.TempDir()), first)
	if c := first.Clones; len(c) != 1 || c[0].Namespace != "/nowhere" || c[0].MTU != 1500 || len(c[0].Routes) != 1 {
		t.Errorf("clones %+v", c)
	}
	// No goroutine follows the kernel, which would report a missing namespace.
	first.Clones = nil
	running(t, a)
	testkit.Until(t, "ready", ready(a))
	kernelHas(t, a, "203.0.113.0/24", "100.64.0.0/10")
	testkit.Equal(t, routesOf(s), 3, "routes")

	// A reconciliation leaves them; it brings them back.
	held := s.Held()
	for id := range held {
		if id.Kind == api.KindRoute {
			delete(held, id)
		}
	}
	s.SetHeld(held)
	_, err = a.owner.Apply(t.Context(), first)
	testkit.Must(t, err)
	testkit.Equal(t, routesOf(s), 3, "routes after a reconciliation")

	// A refused object is left out alone.
	s.Refuse("no room", func(id dptest.ID, _ []byte) bool { return id.Key == "203.0.113.0/25" })
	kernelHas(t, a, "203.0.113.0/25", "100.64.0.0/10")
	testkit.Equal(t, routesOf(s), 2, "routes without the refused one")
	st := a.owner.Status()
	testkit.ErrorIf(t, st.KernelRefused != 1 || st.KernelWhy != "no room" || st.DataPlane != v1.StateReady,
		"%+v", st)

	// Another configuration keeps the kernel's routes, and is not refused for their sake.
	next, err := plan.Make("y.yaml", []byte(withClone+"  - {prefix: 203.0.113.0/25, via: 192.0.2.9}\n"))
	testkit.Must(t, err)
	next.Clones = nil
	_, err = a.owner.Apply(t.Context(), next)
	testkit.Refused(t, err, "no room")
	testkit.Equal(t, routesOf(s), 2, "routes after a refused configuration")
	s.Refuse("", nil)
	_, err = a.owner.Apply(t.Context(), next)
	testkit.Must(t, err)
	testkit.Equal(t, routesOf(s), 3, "routes of the new configuration")
	kernelHas(t, a)
	testkit.Equal(t, routesOf(s), 2, "routes of the configuration alone")

	// The kernel's state contradicts the configuration without naming an object of its own: the configuration has
	// precedence.
	s.Refuse("a contradiction", func(id dptest.ID, body []byte) bool { return id.Key == "192.0.2.77/32" })
	for range 70 { // more than are left out one by one
		kernelHas(t, a, "192.0.2.77/32", "100.64.0.0/10")
	}
	testkit.Equal(t, a.owner.Status().DataPlane, v1.StateReady, "the data plane is")
}

// Kernel routes that are not followed are in a table, a figure and an event.
func TestIgnoredRoutes(t *testing.T) {
	s := dptest.Start(t)
	plan, err := plan.Make("x.yaml", []byte(withClone))
	testkit.Must(t, err)
	a := made(t, outside(s, t.TempDir()), plan)
	plan.Clones = nil
	running(t, a)
	testkit.Until(t, "ready", ready(a))
	s.Refuse("no room", func(id dptest.ID, _ []byte) bool { return id.Key == "203.0.113.0/25" })
	kernelHas(t, a, "198.51.100.0/24", "203.0.113.0/25", "100.64.0.0/10") // one is of the file
	want := []view.IgnoredRoute{
		{Prefix: "198.51.100.0/24", Via: "192.0.2.3", Device: "core0", Reason: "configured",
			Text: "the configuration has a route there"},
		{Prefix: "203.0.113.0/25", Via: "192.0.2.3", Device: "core0", Reason: "refused", Text: "no room"},
	}
	if list := a.api.Tables.IgnoredRoutes(); !slices.Equal(list, want) {
		t.Errorf("ignored: %+v", list)
	}
	figures := a.owner.Status().RoutesIgnored
	testkit.ErrorIf(t, figures["configured"] != 1 || figures["refused"] != 1 || len(figures) != 2, "%v", figures)
	testkit.Equal(t, len(a.scraper.Snapshot(t.Context()).IgnoredRoutes), 2, "figures of the metric")
	kernelHas(t, a, "198.51.100.0/24", "203.0.113.0/25") // no more than before
	heard := told(t, a, "route.ignored")
	testkit.Equal(t, len(heard), 2, "events")
	kernelHas(t, a)
	testkit.Equal(t, len(a.owner.Status().RoutesIgnored)+len(a.api.Tables.IgnoredRoutes()), 0, "ignored")
}
