// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
)

// placeWorkers has a plan with engine.cpus auto follow the data plane that has connected. If it has workers, they stay
// where they are, whatever our cpuset is by now. Else their CPUs are chosen again.
func (r *Reconciler) placeWorkers(ctx context.Context, c *dp.Client) {
	if r.plan.Placed == "" {
		return
	}
	rows, err := dp.Table[api.WorkerRow](ctx, c, api.TableWorker, "", 0)
	if err != nil {
		r.log.Error("the data plane does not say on which CPUs its workers are", "error", err)
		return
	}
	site := config.Here()
	for _, w := range rows {
		site.Kept = append(site.Kept, int(w.CPU))
	}
	if slices.Equal(site.Kept, r.plan.CPUs) || len(rows) == 0 && r.state.Connects == 1 {
		return
	}
	next, err := plan.MakeWith(r.plan.File, r.plan.Text, site, r.plan.Placement)
	if err == nil && !slices.Equal(next.CPUs, r.plan.CPUs) {
		next.Applied = r.plan.Applied
		err = r.exchange(ctx, next)
	}
	if err != nil {
		r.log.Error("the workers' CPUs are not chosen again", "error", err)
	}
}

// exchange has a plan that says the same take the place of the running one.
func (r *Reconciler) exchange(ctx context.Context, next *plan.Plan) error {
	ready, err := r.prepare(next)
	if err != nil {
		ready.discard()
		return err
	}
	r.log.Info("engine.cpus: auto", "cpus", next.Placed)
	r.plan = next
	if note := r.accepted(ctx, next, ready); note != "" {
		return fmt.Errorf("%s", note)
	}
	return nil
}
