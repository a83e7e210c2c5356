// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/events"
	"isthmus/controlplane/intent"
)

// maxNamed is how many changed objects an event names.
const maxNamed = 64

// bySignal is a context in which a signal asks.
func bySignal(ctx context.Context, name string) context.Context {
	return auth.With(ctx, auth.Identity{Role: auth.Operate, Who: &events.Who{Via: "signal", Program: name}})
}

// toldApply publishes that a configuration was applied, or not.
func (r *Reconciler) toldApply(ctx context.Context, was, is *plan.Plan, res v1.Result, err error) {
	if err != nil {
		auth.Did(ctx, r.events, "config.refused", is.File, err)
		return
	}
	changes, more := difference(was.Objects, is.Objects)
	args := []any{"objects", res.Objects, "put", res.Put, "deleted", res.Deleted, "changes", changes, "more", more}
	if res.Note != "" {
		args = append(args, "note", res.Note)
	}
	auth.Did(ctx, r.events, "config.applied", is.File, nil, args...)
}

type objectID struct {
	kind uint32
	key  api.Key
}

// digests are those of a state that a data plane holds.
func digests(of intent.State) []api.Digest {
	list := make([]api.Digest, len(of))
	for i := range of {
		list[i] = api.Digest{Kind: of[i].Kind, Key: of[i].Key, Digest: of[i].Digest}
	}
	return list
}

// difference names the differences between two states, and how many it omits.
func difference(was, is intent.State) (changes []string, more int) {
	before := make(map[objectID]bool, len(was))
	for i := range was {
		before[objectID{was[i].Kind, was[i].Key}] = true
	}
	puts, deletes := intent.Diff(digests(was), is)
	changes = []string{}
	name := func(verb string, o *intent.Object) {
		if len(changes) == maxNamed {
			more++
			return
		}
		changes = append(changes, verb+" "+dp.KindName(o.Kind)+" "+o.Name())
	}
	for i := range deletes {
		name("delete", &deletes[i])
	}
	for i := range puts {
		verb := "add"
		if before[objectID{puts[i].Kind, puts[i].Key}] {
			verb = "change"
		}
		name(verb, &puts[i])
	}
	return changes, more
}
