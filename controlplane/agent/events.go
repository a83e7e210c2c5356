// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"

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

// newEvents makes the log of events; what somebody changed is in a file, too, where control.state names a folder.
func newEvents(opt *Options, plan *plan.Plan, log *slog.Logger) *events.Log {
	folder := cmp.Or(opt.State, plan.Control.State)
	if folder == "" {
		return events.New(nil)
	}
	return events.New(events.NewAudit(filepath.Join(folder, "audit.log"), log))
}

// bySignal is a context in which a signal asks.
func bySignal(ctx context.Context, name string) context.Context {
	return auth.With(ctx, auth.Identity{Role: auth.Operate, Who: &events.Who{Via: "signal", Program: name}})
}

// by publishes what the client of a request did. err nil: it was done.
func (a *Agent) by(ctx context.Context, kind, subject string, err error, args ...any) {
	if err != nil {
		args = append(args, "error", err)
	}
	a.events.By(auth.From(ctx).Who, kind, subject, args...)
}

// toldApply publishes that a configuration was applied, or not.
func (a *Agent) toldApply(ctx context.Context, was, is *plan.Plan, res v1.Result, err error) {
	if err != nil {
		a.by(ctx, "config.refused", is.File, err)
		return
	}
	changes, more := difference(was.Objects, is.Objects)
	args := []any{"objects", res.Objects, "put", res.Put, "deleted", res.Deleted, "changes", changes, "more", more}
	if res.Note != "" {
		args = append(args, "note", res.Note)
	}
	a.by(ctx, "config.applied", is.File, nil, args...)
}

type objectID struct {
	kind uint32
	key  api.Key
}

// difference names what differs between two states, and says how many it does not name.
func difference(was, is intent.State) (changes []string, more int) {
	held := make([]api.Digest, len(was))
	before := make(map[objectID]bool, len(was))
	for i := range was {
		o := &was[i]
		held[i] = api.Digest{Kind: o.Kind, Key: o.Key, Digest: o.Digest}
		before[objectID{o.Kind, o.Key}] = true
	}
	puts, deletes := intent.Diff(held, is)
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
