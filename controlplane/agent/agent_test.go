// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/testkit"
)

const small = `
ports:
  - {name: access, driver: synth, role: access}
  - {name: core, driver: synth, role: core}
interfaces:
  - {name: core0, port: core, addresses: [192.0.2.1/24]}
`

const route = "routes:\n  - {prefix: 198.51.100.0/24, via: 192.0.2.2}\n"

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

// running has an agent run until the test ends, or stop is called.
func running(t *testing.T, a *Agent) (stop func()) {
	return testkit.Run(t, func(ctx context.Context) error { return a.Run(ctx, nil) })
}

// outside has a data plane that somebody else starts.
func outside(s *dptest.Server, dir string) Options {
	return Options{Socket: dir + "/isthmus.sock", DPSocket: s.Path, Restart: "external", Metrics: "off"}
}

// launch runs an agent on a fake data plane until the test ends.
func launch(t *testing.T, s *dptest.Server, plan *plan.Plan) *Agent {
	t.Helper()
	a := newAgent(outside(s, t.TempDir()), plan)
	running(t, a)
	return a
}

func holds(s *dptest.Server, want intent.State) bool {
	held := s.Held()
	for i := range want {
		id := dptest.ID{Kind: want[i].Kind, Key: want[i].Name()}
		if string(held[id]) != string(want[i].Body) {
			return false
		}
		delete(held, id)
	}
	return len(held) == 0
}

func ready(a *Agent) func() bool { return func() bool { return a.Status().DataPlane == v1.StateReady } }

// Whatever is held and whatever is wanted: one reconciliation makes them equal, and a second one sends nothing.
func TestReconcileReachesAnyIntent(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	random := func() map[string]int {
		m := map[string]int{}
		for range r.IntN(40) {
			m[strings.Repeat("k", 1+r.IntN(9))+fmt.Sprint(r.IntN(12))] = r.IntN(3)
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
		a := newAgent(Options{}, &plan.Plan{Objects: want})
		a.client.Store(c)
		if _, err := a.push(t.Context(), a.plan, true); err != nil {
			t.Fatal(err)
		}
		if !holds(s, want) {
			t.Fatalf("held %v after reconciling from %v", maps.Keys(s.Held()), held)
		}
		before, _ := s.Counts()
		res, err := a.push(t.Context(), a.plan, true)
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
	a := launch(t, s, &plan.Plan{Objects: state(t, map[string]int{"a": 1})})
	testkit.Until(t, "ready", ready(a))
	testkit.ErrorIf(t, s.Held()[id] == nil, "a test stream was deleted")
}

func TestDataPlaneRestartsWithNothing(t *testing.T) {
	s := dptest.Start(t)
	want := state(t, map[string]int{"a": 1, "bb": 2, "ccc": 3})
	a := launch(t, s, &plan.Plan{Objects: want})
	testkit.Until(t, "ready", ready(a))
	for range 3 {
		s.Kill()
		testkit.Until(t, "loss noticed", func() bool { return a.Status().DataPlane == v1.StateAway })
		s.SetHeld(nil)
		testkit.Must(t, s.Listen())
		testkit.Until(t, "ready again", ready(a))
		if !holds(s, want) {
			t.Fatalf("held %v", s.Held())
		}
	}
}

func TestRunsWhileTheDataPlaneIsAway(t *testing.T) {
	s := dptest.New(t.TempDir() + "/dp.sock")
	a := launch(t, s, &plan.Plan{Objects: state(t, map[string]int{"a": 1})})
	want := state(t, map[string]int{"b": 1})
	res, err := a.Apply(t.Context(), &plan.Plan{Objects: want})
	testkit.FatalIf(t, err != nil || res.Note == "", "%+v, %v", res, err)
	testkit.Must(t, s.Listen())
	t.Cleanup(s.Kill)
	testkit.Until(t, "ready", ready(a))
	if !holds(s, want) {
		t.Errorf("held %v", s.Held())
	}
}

func TestRefusalKeepsTheOldIntent(t *testing.T) {
	s := dptest.Start(t)
	old := state(t, map[string]int{"a": 1, "bb": 1})
	a := launch(t, s, &plan.Plan{Objects: old})
	testkit.Until(t, "ready", ready(a))
	s.Refuse("too much", func(_ dptest.ID, body []byte) bool { return string(body) == "a2" })
	_, err := a.Apply(t.Context(), &plan.Plan{Objects: state(t, map[string]int{"a": 2, "ccc": 1})})
	testkit.Refused(t, err, `"a": too much`)
	if !holds(s, old) {
		t.Errorf("held %v", s.Held())
	}
	s.Kill()
	s.SetHeld(nil)
	s.Refuse("", nil)
	s.Listen()
	testkit.Until(t, "old intent is back", func() bool { return holds(s, old) })
}

// A file that was accepted while the data plane was away and is refused on its return gives way to the one before.
func TestLateRefusalGoesBack(t *testing.T) {
	s := dptest.Start(t)
	old := state(t, map[string]int{"a": 1})
	a := launch(t, s, &plan.Plan{Objects: old})
	testkit.Until(t, "ready", ready(a))
	s.Kill()
	testkit.Until(t, "loss noticed", func() bool { return a.Status().DataPlane == v1.StateAway })
	_, err := a.Apply(t.Context(), &plan.Plan{Objects: state(t, map[string]int{"a": 2})})
	testkit.Must(t, err)
	s.SetHeld(nil)
	s.Refuse("no", func(_ dptest.ID, body []byte) bool { return string(body) == "a2" })
	s.Listen()
	testkit.Until(t, "the old intent is held", func() bool { return holds(s, old) && a.Status().LastError != "" })
	testkit.Equal(t, a.Status().DataPlane, v1.StateReady, "state")
}

func TestFilesAndSignals(t *testing.T) {
	s := dptest.Start(t)
	file := filepath.Join(t.TempDir(), "isthmus.yaml")
	write := func(text string) {
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write(small)
	a, err := New(Options{File: file, DPSocket: s.Path, Restart: "external", State: t.TempDir()})
	testkit.Must(t, err)
	hangup := make(chan os.Signal, 1)
	testkit.Run(t, func(ctx context.Context) error { return a.Run(ctx, hangup) })
	testkit.Until(t, "ready", ready(a))
	before := s.Held()

	write(small + "nonsense: 1\n")
	_, err = a.Reload(t.Context())
	testkit.Refused(t, err, file+":7")
	testkit.ErrorIf(t, !maps.EqualFunc(before, s.Held(), func(x, y []byte) bool { return string(x) == string(y) }),
		"a refused file changed the data plane")
	write(small + route)
	_, sent := s.Counts()
	hangup <- syscall.SIGHUP
	id := dptest.ID{Kind: api.KindRoute, Key: "198.51.100.0/24"}
	testkit.Until(t, "route after SIGHUP", func() bool { return s.Held()[id] != nil })
	_, now := s.Counts()
	testkit.ErrorIf(t, now != sent+1, "%d changes sent for one new route", now-sent)
}

func TestHTTP(t *testing.T) {
	s := dptest.Start(t)
	row := api.TotalRow{In: 3, Out: 2, Dropped: 1}
	s.SetTable(api.TableTotal, api.Body(&row))
	plan, err := plan.Make("small.yaml", []byte(small))
	testkit.Must(t, err)
	a := launch(t, s, plan)
	h := a.Handler()
	testkit.Until(t, "ready", ready(a))
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/show/total", "", 200, `"in":3`},
		{"GET", "/v1/show/port", "", 200, "[]"},
		{"GET", "/v1/show/nothing", "", 422, "nothing called"},
		{"GET", "/v1/status", "", 200, `"data_plane":"ready"`},
		{"GET", "/v1/config", "", 200, "driver: synth"},
		{"POST", "/v1/config/apply?name=x.yaml", small + route, 200, `"put":1`},
		{"POST", "/v1/config/apply?name=x.yaml", "ports: 7", 422, "x.yaml:1"},
		{"POST", "/v1/config/check?name=x.yaml", "ports: 7", 422, "x.yaml:1"},
		{"POST", "/v1/stream", `[{"name":"t","body":"AQ=="}]`, 200, `"put":1`},
		{"POST", "/v1/stream/start?name=t", "", 200, ""},
		{"POST", "/v1/stream/jump", "", 404, "no such request"},
		{"GET", "/v1/config", "", 200, "198.51.100.0/24"},
		{"POST", "/v1/config/apply?name=x.yaml", small + "aaa: {password: hush}\n", 200, ""},
		{"GET", "/v1/config", "", 200, "aaa: {password: (hidden)}"},
		{"POST", "/v1/config/apply?name=x.yaml", small + "aaa: {password: (hidden)}\n", 422,
			"in place of a secret"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
		body, _ := io.ReadAll(w.Body)
		testkit.ErrorIf(t, w.Code != test.status || !strings.Contains(string(body), test.want),
			"%s %s: %d %s", test.method, test.path, w.Code, body)
	}
	testkit.ErrorIf(t, !s.Running("t"), "stream not started")
	s.Kill()
	testkit.Until(t, "loss noticed", func() bool { return a.Status().DataPlane == v1.StateAway })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/show/port", nil))
	testkit.ErrorIf(t, w.Code != 503, "show without a data plane: %d", w.Code)
}

func TestScrapesDoNotReachTheDataPlaneTooOften(t *testing.T) {
	s := dptest.Start(t)
	a := launch(t, s, &plan.Plan{})
	testkit.Until(t, "ready", ready(a))
	first := a.Snapshot(t.Context())
	testkit.ErrorIf(t, !first.Up || a.Snapshot(t.Context()) != first,
		"a second scrape within a second was not served from the cache")
}

// The data plane outlives the control plane's death, is adopted by the next one and started again when it ends.
func TestSpawnedProcessIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "dp")
	script := "#!/bin/sh\necho $$ >> " + dir + "/pids\nexec tail -f /dev/null\n"
	testkit.Must(t, os.WriteFile(program, []byte(script), 0o700))
	plan := &plan.Plan{Control: config.Control{Restart: config.Restart{DelayMS: 1, MaxDelay: 20}}}
	a := newAgent(Options{DPSocket: dir + "/none.sock", DPBinary: program, Restart: "always"}, plan)
	running(t, a)
	var pids []int
	read := func(n int) func() bool {
		return func() bool {
			data, _ := os.ReadFile(dir + "/pids")
			pids = nil
			for _, word := range strings.Fields(string(data)) {
				var pid int
				fmt.Sscan(word, &pid)
				pids = append(pids, pid)
			}
			return len(pids) == n
		}
	}
	testkit.Until(t, "started", read(1))
	syscall.Kill(pids[0], syscall.SIGKILL)
	testkit.Until(t, "started again", read(2))
	pid := pids[1]
	defer syscall.Kill(pid, syscall.SIGKILL)
	sid, err := getsid(pid)
	testkit.ErrorIf(t, err != nil || sid != pid, "not in a session of its own: %d, %v", sid, err)
}

func getsid(pid int) (int, error) {
	sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}

func TestSocketOfALivingAgentIsNotTaken(t *testing.T) {
	path := t.TempDir() + "/sub/isthmus.sock"
	l, err := listen(path)
	testkit.Must(t, err)
	_, err = listen(path)
	testkit.Refused(t, err, "another control plane")
	info, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.Equal(t, info.Mode().Perm(), 0o660, "mode")
	l.Close()
	// What a killed agent leaves behind.
	stale, err := listen(path)
	testkit.Must(t, err)
	stale.Close()
}
