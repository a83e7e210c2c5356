// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/agent/dynamic"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/auth"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/events"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/testkit"
)

// state makes objects of which `version` decides the bodies.
func state(t testing.TB, keys map[string]int) intent.State {
	t.Helper()
	var s intent.State
	for kind := uint32(api.KindPort); kind < api.KindSynth; kind++ {
		for key, version := range keys {
			if int(kind) == 2+len(key)%9 {
				testkit.Must(t, s.Add(kind, key, []byte(fmt.Sprint(key, version))))
			}
		}
	}
	return s
}

// made is a reconciler without sessions, which does not run yet.
func made(socket string, start *plan.Plan) *Reconciler {
	none, told := (*dynamic.Sessions)(nil), events.New(nil)
	return New(Options{DPSocket: socket, Sessions: none, Announcer: none, Events: told, Guard: auth.NewGuard(told),
		Log: slog.New(slog.DiscardHandler)}, start)
}

// launch runs one on a fake data plane until the test ends.
func launch(t *testing.T, s *dptest.Server, start *plan.Plan) *Reconciler {
	t.Helper()
	r := made(s.Path, start)
	testkit.Run(t, func(ctx context.Context) error { r.Run(ctx, nil); return nil })
	return r
}

func ready(r *Reconciler) func() bool {
	return func() bool { return r.Status().DataPlane == v1.StateReady }
}

// From any held to any wanted state: one reconciliation makes them equal, and a second one sends nothing.
func TestReconcileReachesAnyIntent(t *testing.T) {
	n := rand.New(rand.NewPCG(7, 7))
	random := func() map[string]int {
		m := map[string]int{}
		for range n.IntN(40) {
			m[strings.Repeat("k", 1+n.IntN(9))+fmt.Sprint(n.IntN(12))] = n.IntN(3)
		}
		return m
	}
	s := dptest.Start(t)
	for range 100 {
		held := map[dptest.ID][]byte{}
		for _, o := range state(t, random()) {
			held[dptest.ID{Kind: o.Kind, Key: o.Name()}] = o.Body
		}
		s.SetHeld(held)
		want := state(t, random())
		c, err := dp.Dial(t.Context(), s.Path)
		testkit.Must(t, err)
		r := made("", &plan.Plan{Objects: want})
		r.client.Store(c)
		if _, err := r.push(t.Context(), r.plan, true); err != nil {
			t.Fatal(err)
		}
		if !s.Holds(plan.Changes(want)) {
			t.Fatalf("held %v after reconciling from %v", maps.Keys(s.Held()), held)
		}
		before, _ := s.Counts()
		res, err := r.push(t.Context(), r.plan, true)
		after, _ := s.Counts()
		testkit.FatalIf(t, err != nil || res.Put+res.Deleted != 0 || before != after,
			"second reconciliation sent %+v, %v", res, err)
		c.Close()
	}
}

func TestStreamsAreNoIntent(t *testing.T) {
	s := dptest.Start(t)
	id := dptest.ID{Kind: api.KindSynth, Key: "test"}
	s.SetHeld(map[dptest.ID][]byte{id: {1}})
	r := launch(t, s, &plan.Plan{Objects: state(t, map[string]int{"a": 1})})
	testkit.Until(t, "ready", ready(r))
	testkit.ErrorIf(t, s.Held()[id] == nil, "a test stream was deleted")
}

func TestDataPlaneRestartsWithNothing(t *testing.T) {
	s := dptest.Start(t)
	want := state(t, map[string]int{"a": 1, "bb": 2, "ccc": 3})
	r := launch(t, s, &plan.Plan{Objects: want})
	testkit.Until(t, "ready", ready(r))
	for range 3 {
		s.Kill()
		testkit.Until(t, "loss noticed", func() bool { return r.Status().DataPlane == v1.StateAway })
		s.SetHeld(nil)
		testkit.Must(t, s.Listen())
		testkit.Until(t, "ready again", ready(r))
		if !s.Holds(plan.Changes(want)) {
			t.Fatalf("held %v", s.Held())
		}
	}
}

func TestRunsWhileTheDataPlaneIsAway(t *testing.T) {
	s := dptest.New(t.TempDir() + "/dp.sock")
	r := launch(t, s, &plan.Plan{Objects: state(t, map[string]int{"a": 1})})
	want := state(t, map[string]int{"b": 1})
	res, err := r.Apply(t.Context(), &plan.Plan{Objects: want})
	testkit.FatalIf(t, err != nil || res.Note == "", "%+v, %v", res, err)
	testkit.Must(t, s.Listen())
	t.Cleanup(s.Kill)
	testkit.Until(t, "ready", ready(r))
	if !s.Holds(plan.Changes(want)) {
		t.Errorf("held %v", s.Held())
	}
}

func TestRefusalKeepsTheOldIntent(t *testing.T) {
	s := dptest.Start(t)
	old := state(t, map[string]int{"a": 1, "bb": 1})
	r := launch(t, s, &plan.Plan{Objects: old})
	testkit.Until(t, "ready", ready(r))
	s.Refuse("too much", func(_ dptest.ID, body []byte) bool { return string(body) == "a2" })
	_, err := r.Apply(t.Context(), &plan.Plan{Objects: state(t, map[string]int{"a": 2, "ccc": 1})})
	testkit.Refused(t, err, `"a": too much`)
	if !s.Holds(plan.Changes(old)) {
		t.Errorf("held %v", s.Held())
	}
	s.Kill()
	s.SetHeld(nil)
	s.Refuse("", nil)
	s.Listen()
	testkit.Until(t, "old intent is back", func() bool { return s.Holds(plan.Changes(old)) })
}

// A file accepted without a data plane, and refused on its return, gives way to the one before.
func TestLateRefusalGoesBack(t *testing.T) {
	s := dptest.Start(t)
	old := state(t, map[string]int{"a": 1})
	r := launch(t, s, &plan.Plan{Objects: old})
	testkit.Until(t, "ready", ready(r))
	s.Kill()
	testkit.Until(t, "loss noticed", func() bool { return r.Status().DataPlane == v1.StateAway })
	_, err := r.Apply(t.Context(), &plan.Plan{Objects: state(t, map[string]int{"a": 2})})
	testkit.Must(t, err)
	s.SetHeld(nil)
	s.Refuse("no", func(_ dptest.ID, body []byte) bool { return string(body) == "a2" })
	s.Listen()
	testkit.Until(t, "the old intent is held", func() bool {
		return s.Holds(plan.Changes(old)) && r.Status().LastError != ""
	})
	testkit.Equal(t, r.Status().DataPlane, v1.StateReady, "state")
	testkit.Equal(t, r.Status().Changes, 2, "changes that were sent, each time the old object")
}
