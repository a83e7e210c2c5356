// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
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
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/events"
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

// running has an agent run until the test ends, or stop is called.
func running(t *testing.T, a *Agent) (stop func()) {
	return testkit.Run(t, func(ctx context.Context) error { a.Run(ctx, nil); return nil })
}

// outside has a data plane that the agent does not start.
func outside(s *dptest.Server, dir string) Options {
	return Options{Socket: dir + "/isthmus.sock", DPSocket: s.Path, Restart: "external", Metrics: "off"}
}

// made is an agent that does not run yet, and keeps nothing for a restart.
func made(t *testing.T, opt Options, start *plan.Plan) *Agent {
	t.Helper()
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	a, err := newAgent(opt, start, plan.Files{})
	testkit.Must(t, err)
	return a
}

// launch runs an agent on a fake data plane until the test ends.
func launch(t *testing.T, s *dptest.Server, plan *plan.Plan) *Agent {
	t.Helper()
	a := made(t, outside(s, t.TempDir()), plan)
	running(t, a)
	return a
}

func ready(a *Agent) func() bool {
	return func() bool { return a.owner.Status().DataPlane == v1.StateReady }
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
	testkit.Run(t, func(ctx context.Context) error { a.Run(ctx, hangup); return nil })
	testkit.Until(t, "ready", ready(a))
	before := s.Held()

	write(small + "nonsense: 1\n")
	_, err = a.owner.Reload(t.Context())
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
	until(t, a, "config.applied")
	who := told(t, a, "config.applied")[0].Who
	testkit.Equal(t, *who, events.Who{Via: "signal", Program: "SIGHUP"}, "who asked")
}

// A panic of the owner's goroutine ends the process with its trace: Run does not wait for other goroutines.
func TestPanicEndsRun(t *testing.T) {
	s := dptest.New(t.TempDir() + "/dp.sock") // a connection is being made
	a := made(t, outside(s, t.TempDir()), &plan.Plan{})
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		a.Run(t.Context(), nil)
	}()
	go a.owner.Do(t.Context(), func(context.Context) (v1.Result, error) { panic("a fault") })
	testkit.Equal(t, testkit.Receive(t, ended), any("a fault"), "the end of Run")
}

func TestHTTP(t *testing.T) {
	s := dptest.Start(t)
	row := api.TotalRow{In: 3, Out: 2, Dropped: 1}
	s.SetTable(api.TableTotal, api.Body(&row))
	plan, err := plan.Make("small.yaml", []byte(small))
	testkit.Must(t, err)
	a := launch(t, s, plan)
	h := a.api.Handler()
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
	testkit.Until(t, "loss noticed", func() bool { return a.owner.Status().DataPlane == v1.StateAway })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/show/port", nil))
	testkit.ErrorIf(t, w.Code != 503, "show without a data plane: %d", w.Code)
}

func TestScrapesDoNotReachTheDataPlaneTooOften(t *testing.T) {
	s := dptest.Start(t)
	s.SetTable(api.TableTotal, api.Body(&api.TotalRow{}))
	a := launch(t, s, &plan.Plan{})
	testkit.Until(t, "ready", ready(a))
	first := a.scraper.Snapshot(t.Context())
	testkit.ErrorIf(t, !first.Up || a.scraper.Snapshot(t.Context()) != first,
		"a second scrape within a second was not served from the cache")
}

// The data plane outlives the control plane, is adopted by the next one and restarted when it ends.
func TestSpawnedProcessIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "dp")
	script := "#!/bin/sh\necho $$ >> " + dir + "/pids\nexec tail -f /dev/null\n"
	testkit.Must(t, os.WriteFile(program, []byte(script), 0o700))
	plan := &plan.Plan{Control: config.Control{Restart: config.Restart{Delay: 1e6, MaxDelay: 20e6}}}
	a := made(t, Options{DPSocket: dir + "/none.sock", DPBinary: program, Restart: "always"}, plan)
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
	testkit.Refused(t, err, fmt.Sprintf("another control plane is running there, process %d: stop it", os.Getpid()))
	testkit.Refused(t, err, "control.socket or --socket")
	info, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.Equal(t, info.Mode().Perm(), 0o660, "mode")
	l.Close()
	// A killed agent's remains.
	stale, err := listen(path)
	testkit.Must(t, err)
	stale.Close()
}
