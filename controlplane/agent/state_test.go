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
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/config"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/intent"
	"isthmus/controlplane/session/store"
	"isthmus/controlplane/testkit"
)

// ranged is a configuration with a scheduler and ranges of subscribers, name and size each.
func ranged(ranges ...any) string {
	text := strings.Replace(small, "interfaces:",
		"schedulers:\n  - {port: access, rate: 1Gbit, subports: {count: 4}, profiles: [{name: p, rate: 1Mbit}]}\n"+
			"firewall: {downlink: {per_subscriber: true}}\npaths:\n  - {name: upf, local: 192.0.2.1, peer: "+
			"192.0.2.2}\ninterfaces:", 1) + "subscribers:\n"
	for i := 0; i < len(ranges); i += 2 {
		name, count := ranges[i].(string), ranges[i+1].(int)
		n := int(name[0]) // of the range, wherever it stands
		text += fmt.Sprintf("  - {name: %s, count: %d, port: access, mac: 02:00:00:%02x:00:00, s_tag: %d, c_tag: 1, "+
			"path: upf, "+
			"teid_uplink: %d, teid_downlink: %d, ipv4: 10.%d.0.0}\n", name, count, n, n*20, n<<20, n<<20, n)
	}
	return text
}

// After subscribers come or go, only those and the list of addresses are sent.
func TestOnlyWhatLeftIsSent(t *testing.T) {
	all, err := plan.Make("all", []byte(ranged("a", 1, "early", 100, "home", 1000)))
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
		plan, err := plan.MakeWith("fewer", []byte(ranged(r.ranges...)), config.Site{}, all.Placement)
		testkit.Must(t, err)
		puts, deletes := intent.Diff(digests(all.Objects), plan.Objects)
		if len(puts) != r.put || len(deletes) != r.deleted {
			t.Errorf("%v: %d sent, %d deleted; expected %d and %d", r.ranges, len(puts), len(deletes), r.put, r.deleted)
		}
	}
}

// restart is a separate control plane on the same files; the returned function, or the end of the test, ends it.
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
		a.api.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/config/apply?name=other.yaml",
			strings.NewReader(text)))
		testkit.FatalIf(t, w.Code != 200, "%v", w.Body)
	}
	a, stop := restart(t, opt)
	apply(a, ranged("home", 1000))
	st := a.owner.Status()
	testkit.ErrorIf(t, st.AppliedFile != kept || st.Objects == 0, "%+v", st)
	before := len(s.Held())
	stop()

	// Its successor starts with it and sends nothing, since subscribers keep their pipes.
	a, stop = restart(t, opt)
	if st := a.owner.Status(); st.AppliedFile != kept || st.Changes != 0 || len(s.Held()) != before {
		t.Errorf("%+v, held %d of %d", st, len(s.Held()), before)
	}
	// Back to the file for good, and still no subscriber moves.
	res, err := a.owner.Reload(t.Context())
	testkit.ErrorIf(t, err != nil || res.Put != 101+1 || a.owner.Status().AppliedFile != "",
		"%+v, %v, %+v", res, err, a.owner.Status())
	stop()
	a, stop = restart(t, opt)
	if st := a.owner.Status(); st.AppliedFile != "" || st.Changes != 0 {
		t.Errorf("%+v", st)
	}
	// A file that is written later wins.
	apply(a, ranged("home", 10))
	stop()
	later := time.Now().Add(time.Second)
	testkit.Must(t, os.Chtimes(opt.File, later, later))
	a, stop = restart(t, opt)
	if _, err := os.Stat(kept); err == nil || a.owner.Status().AppliedFile != "" {
		t.Errorf("%v, %+v", err, a.owner.Status())
	}
	// A damaged file does not stop us.
	stop()
	testkit.Must(t, os.WriteFile(kept, []byte("ports: 7\n"), 0o600))
	os.Chtimes(kept, later.Add(time.Second), later.Add(time.Second))
	os.WriteFile(opt.Socket+".placement.json", []byte("{"), 0o600)
	a, stop = restart(t, opt)
	defer stop()
	testkit.ErrorIf(t, a.owner.Status().AppliedFile != "", "%+v", a.owner.Status())
}

// A configuration applied without a data plane, and refused after our restart, gives way to the file.
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
	own, _ := plan.Make("own", []byte(small))
	if st := a.owner.Status(); !s.Holds(own.Changes()) || st.AppliedFile != "" ||
		!strings.Contains(st.LastError, "no") {
		t.Errorf("%+v", st)
	}
}

func digests(s intent.State) []api.Digest {
	var out []api.Digest
	for i := range s {
		out = append(out, api.Digest{Kind: s[i].Kind, Key: s[i].Key, Digest: s[i].Digest})
	}
	return out
}

// What a gateway keeps is in its backup, but for what is this kernel's or was unreadable.
func TestAllStateIsInABackup(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	const api = "control: {api: {listen: [127.0.0.1], anonymous: read}}\n"
	a, stop := launchMobile(t, s, dir, upf+instances+signingIn+api)
	defer stop()
	servers, err := a.listenAll() // it makes the certificate
	testkit.Must(t, err)
	for _, l := range servers {
		l.Close()
	}
	p, err := plan.Make("applied", []byte(upf+instances+signingIn))
	testkit.Must(t, err)
	p.Applied = true
	_, err = a.owner.Apply(t.Context(), p)
	testkit.Must(t, err)
	kept, err := a.opt.kept()
	testkit.Must(t, err)
	known := map[string]bool{dir + "/kernel.json": true, dir + "/isthmus.sock": true}
	for _, f := range kept.Files {
		known[f.Path] = true
	}
	list, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range list {
		testkit.ErrorIf(t, !known[filepath.Join(dir, e.Name())], "%s is in no backup", e.Name())
	}
	testkit.ErrorIf(t, len(list) < 6, "%v", list)
}

// Each damaged file of a former process is moved aside and reported: the control plane starts without it.
func TestDamagedStateIsTold(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	sessions := dir + "/sessions.db"
	damaged := []string{sessions, store.AccountsPath(sessions), dir + "/placement.json", dir + "/kernel.json"}
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
