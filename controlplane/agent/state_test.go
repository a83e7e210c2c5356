// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/testkit"
)

// ranged is a configuration with a scheduler and ranges of subscribers, name and size each.
func ranged(ranges ...any) string {
	text := strings.Replace(small, "interfaces:", "schedulers:\n  - {port: access, rate: 1Gbit, subports: {count: 4}, profiles: [{name: p, rate: 1Mbit}]}\n"+
		"firewall: {downlink: {per_subscriber: true}}\npaths:\n  - {name: upf, local: 192.0.2.1, peer: 192.0.2.2}\ninterfaces:", 1) + "subscribers:\n"
	for i := 0; i < len(ranges); i += 2 {
		name, count := ranges[i].(string), ranges[i+1].(int)
		n := int(name[0]) // of the range, wherever it stands
		text += fmt.Sprintf("  - {name: %s, count: %d, port: access, mac: 02:00:00:%02x:00:00, s_tag: %d, c_tag: 1, path: upf, "+
			"teid_uplink: %d, teid_downlink: %d, ipv4: 10.%d.0.0}\n", name, count, n, n*20, n<<20, n<<20, n)
	}
	return text
}

// Of a configuration with fewer or more subscribers goes out what came or left, and the list of their addresses.
func TestOnlyWhatLeftIsSent(t *testing.T) {
	all, err := MakePlan("all", []byte(ranged("a", 1, "early", 100, "home", 1000)))
	testkit.Must(t, err)
	for _, r := range []struct {
		ranges       []any
		put, deleted int
	}{
		{[]any{"early", 100, "home", 1000}, 1, 1},
		{[]any{"a", 1, "home", 1000}, 1, 100},
		{[]any{"home", 1000}, 1, 101},
		{[]any{"a", 1, "early", 100, "home", 999}, 1, 1},
		{[]any{"new", 3, "a", 1, "early", 100, "home", 1000}, 1 + 3, 0},
		{[]any{"home", 1000, "early", 100, "a", 1}, 1, 0}, // another order of the addresses
	} {
		plan, err := makePlan("fewer", []byte(ranged(r.ranges...)), nil, all.Placement)
		testkit.Must(t, err)
		puts, deletes := intent.Diff(digests(all.Objects), plan.Objects)
		if len(puts) != r.put || len(deletes) != r.deleted {
			t.Errorf("%v: %d sent, %d deleted; expected %d and %d", r.ranges, len(puts), len(deletes), r.put, r.deleted)
		}
	}
}

// restart is a control plane of its own on the same files; it ends when the returned function is called, or the test
// ends.
func restart(t *testing.T, opt Options) (*Agent, func()) {
	t.Helper()
	a, err := New(opt)
	testkit.Must(t, err)
	stop := running(t, a)
	testkit.Until(t, "ready", ready(a))
	return a, stop
}

func TestAppliedOutlivesTheControlPlane(t *testing.T) {
	s := dptest.Start(t)
	dir := t.TempDir()
	opt := Options{File: filepath.Join(dir, "isthmus.yaml"), Socket: dir + "/isthmus.sock", DPSocket: s.Path,
		Restart: "external"}
	kept := opt.Socket + ".applied.yaml"
	testkit.Must(t, os.WriteFile(opt.File, []byte(ranged("a", 1, "early", 100, "home", 1000)), 0o600))
	apply := func(a *Agent, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/config/apply?name=other.yaml", strings.NewReader(text)))
		testkit.FatalIf(t, w.Code != 200, "%v", w.Body)
	}
	a, stop := restart(t, opt)
	apply(a, ranged("home", 1000))
	testkit.ErrorIf(t, a.Status().AppliedFile != kept || a.Status().Objects == 0, "%+v", a.Status())
	before := len(s.Held())
	stop()

	// Its successor starts with it and sends nothing, since those who stayed keep their pipes.
	a, stop = restart(t, opt)
	if st := a.Status(); st.AppliedFile != kept || st.Changes != 0 || len(s.Held()) != before {
		t.Errorf("%+v, held %d of %d", st, len(s.Held()), before)
	}
	// The file again: back to it, for good, and still nobody moves.
	res, err := a.Reload(t.Context())
	testkit.ErrorIf(t, err != nil || res.Put != 101+1 || a.Status().AppliedFile != "",
		"%+v, %v, %+v", res, err, a.Status())
	stop()
	a, stop = restart(t, opt)
	if st := a.Status(); st.AppliedFile != "" || st.Changes != 0 {
		t.Errorf("%+v", st)
	}
	// A file that is written later wins.
	apply(a, ranged("home", 10))
	stop()
	later := time.Now().Add(time.Second)
	testkit.Must(t, os.Chtimes(opt.File, later, later))
	a, stop = restart(t, opt)
	if _, err := os.Stat(kept); err == nil || a.Status().AppliedFile != "" {
		t.Errorf("%v, %+v", err, a.Status())
	}
	// One that is damaged does not stop us.
	stop()
	testkit.Must(t, os.WriteFile(kept, []byte("ports: 7\n"), 0o600))
	os.Chtimes(kept, later.Add(time.Second), later.Add(time.Second))
	os.WriteFile(opt.Socket+".placement.json", []byte("{"), 0o600)
	a, stop = restart(t, opt)
	defer stop()
	testkit.ErrorIf(t, a.Status().AppliedFile != "", "%+v", a.Status())
}

// What was applied while the data plane was away, and is refused after a restart of ours, gives way to the file.
func TestAppliedIsRefusedAfterRestart(t *testing.T) {
	s := dptest.New(t.TempDir() + "/dp.sock")
	dir := t.TempDir()
	opt := Options{File: filepath.Join(dir, "isthmus.yaml"), Socket: dir + "/isthmus.sock", DPSocket: s.Path,
		Restart: "external"}
	testkit.Must(t, os.WriteFile(opt.File, []byte(small), 0o600))
	testkit.Must(t, os.WriteFile(opt.Socket+".applied.yaml", []byte(small+route), 0o600))
	s.Refuse("no", func(id dptest.ID, _ []byte) bool { return id.Kind == api.KindRoute })
	testkit.Must(t, s.Listen())
	t.Cleanup(s.Kill)
	a, stop := restart(t, opt)
	defer stop()
	own, _ := MakePlan("own", []byte(small))
	if st := a.Status(); !holds(s, own.Objects) || st.AppliedFile != "" || !strings.Contains(st.LastError, "no") {
		t.Errorf("%+v", st)
	}
}

func TestRestartsAreNamed(t *testing.T) {
	base, err := MakePlan("x", []byte(small))
	testkit.Must(t, err)
	a := newAgent(Options{}, base)
	for text, want := range map[string]string{
		"":                              "",
		"engine: {rates: {echo: 7}}\n":  "",
		"engine: {huge_pages: 'off'}\n": "engine.huge_pages: in effect when the control plane and then the data plane are started again",
		"control: {restart: {delay_ms: 7, max_delay_ms: 8}}\n":      "control.restart.delay_ms, control.restart.max_delay_ms: in effect when the control plane is started again",
		"control: {restart: {policy: never, program: /x}}\n":        "control.restart.policy, control.restart.program: in effect",
		"control: {state: /x, metrics: '', resync_period: 7}\n":     "control.state, control.metrics, control.resync_period: in effect",
		"control: {usage_period: 0}\n":                              "control.usage_period: in effect",
		"control: {socket: /x}\nengine: {huge_pages: 'on'}\n":       "control.socket: in effect when the control plane is started again; engine.huge_pages: in effect",
		"control: {dp_socket: /x, restart: {policy: external}}\n":   "control.dp_socket, control.restart.policy: in effect",
		"control: {restart: {policy: always}, resync_period: 30}\n": "",
		"control: {api: {listen: [127.0.0.1], anonymous: read}}\n":  "control.api: in effect",
		"control: {api: {anonymous: read, hosts: [gw.lab]}}\n":      "",
	} {
		plan, err := MakePlan("x", []byte(text+small))
		testkit.Must(t, err)
		got := a.needsRestart(plan)
		testkit.ErrorIf(t, !strings.HasPrefix(got, want) || want == "" && got != "", "%s: %q", text, got)
	}
}

func digests(s intent.State) []api.Digest {
	var out []api.Digest
	for i := range s {
		out = append(out, api.Digest{Kind: s[i].Kind, Key: s[i].Key, Digest: s[i].Digest})
	}
	return out
}

// Each damaged file of a process before us is moved aside and told of: the control plane starts without it.
func TestDamagedStateIsTold(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	files, sessions := stateIn(dir, ""), dir+"/sessions.db"
	damaged := []string{files.placement, files.given, sessions, store.AccountsPath(sessions)}
	for _, path := range damaged {
		testkit.Must(t, os.WriteFile(path, []byte(`{"a": `), 0o600))
	}
	a, stop := launchMobile(t, s, dir, upf+instances+signingIn)
	defer stop()
	list := told(t, a, "state.moved-aside")
	testkit.FatalIf(t, len(list) != len(damaged), "%+v", list)
	for i, path := range damaged {
		_, err := os.Stat(path + ".bad")
		testkit.ErrorIf(t, err != nil || list[i].Subject != path, "%s: %v, %+v", path, err, list[i])
	}
}
