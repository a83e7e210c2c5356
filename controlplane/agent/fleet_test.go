// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/config"
	"isthmus/controlplane/cpuset"
	"isthmus/controlplane/dp/dptest"
	"isthmus/controlplane/testkit"
)

// asked is what the API answers.
func asked(t *testing.T, a *Agent, method, path, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	a.api.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// Drop-ins and the environment are read at the start, at SIGHUP and by apply; the text that is kept has them, too.
func TestDropInsAndEnvironment(t *testing.T) {
	t.Setenv("FLEET_PREFIX", "203.0.113.0")
	t.Setenv("FLEET_SECRET", "hush-hush")
	s, dir := dptest.Start(t), t.TempDir()
	opt := Options{File: filepath.Join(dir, "isthmus.yaml"), Socket: dir + "/isthmus.sock", DPSocket: s.Path,
		Restart: "external", State: dir + "/state"}
	folder := config.Folder(opt.File)
	testkit.Must(t, os.WriteFile(opt.File, []byte(small), 0o600))
	testkit.Must(t, os.Mkdir(folder, 0o755))
	drop := func(name, text string) {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	routed := func(prefix string) bool { return s.Held()[dptest.ID{Kind: api.KindRoute, Key: prefix}] != nil }
	drop("1.yaml", "routes: [{prefix: \"${FLEET_PREFIX}/24\", via: 192.0.2.2}]\n"+
		"radius: {servers: [{address: 192.0.2.9, secret: \"${FLEET_SECRET}\", use: accounting}]}\n")
	a, stop := restart(t, opt)
	testkit.ErrorIf(t, !routed("203.0.113.0/24"), "the drop-in's route is not there: %v", s.Held())
	st := a.owner.Status()
	testkit.ErrorIf(t, !slices.Equal(st.DropIns, []string{folder + "/1.yaml"}), "%v", st.DropIns)
	_, shown := asked(t, a, "GET", "/v1/config", "")
	_, effective := asked(t, a, "GET", "/v1/config?effective=true", "")
	testkit.ErrorIf(t, !strings.Contains(shown, `"${FLEET_PREFIX}/24"`) ||
		!strings.Contains(shown, `"${FLEET_SECRET}"`) ||
		!strings.Contains(shown, "--- # file: "+folder+"/1.yaml"), "shown:\n%s", shown)
	testkit.ErrorIf(t, !strings.Contains(effective, "203.0.113.0/24") || strings.Contains(effective, "FLEET_SECRET") ||
		strings.Contains(effective, "hush") || !strings.Contains(effective, config.Hidden), "effective:\n%s", effective)
	_, err := config.ParseShown("x", []byte(effective))
	testkit.Must(t, err)

	drop("2.yaml", "routes: [{prefix: 198.51.100.0/24, via: 192.0.2.3}]\nroutez: []\n")
	_, err = a.owner.Reload(t.Context())
	testkit.Refused(t, err, folder+"/2.yaml:2: routez: unknown key")
	drop("2.yaml", route)
	res, err := a.owner.Reload(t.Context())
	testkit.ErrorIf(t, err != nil || res.Put != 1 || !routed("198.51.100.0/24"), "%v %+v", err, res)

	// What apply brings is a text of several files, which is kept whole.
	text := shown + "--- # file: 9.yaml\nroutes: [{prefix: 192.0.0.0/24, via: 192.0.2.3}]\n"
	code, body := asked(t, a, "POST", "/v1/config/apply?name=new.yaml", text)
	testkit.ErrorIf(t, code != 200 || !routed("192.0.0.0/24") || routed("198.51.100.0/24"), "%d %s", code, body)
	code, body = asked(t, a, "POST", "/v1/config/check", text+"engine: {workers: \"${FLEET_SECRET}\"}\n")
	testkit.ErrorIf(t, code != 422 || !strings.Contains(body, "9.yaml:2: engine.workers") ||
		strings.Contains(body, "hush"), "%d %s", code, body)
	stop()
	a, stop = restart(t, opt)
	testkit.ErrorIf(t, a.owner.Status().Changes != 0 || a.owner.Status().AppliedFile == "", "%+v", a.owner.Status())
	stop()
	// A drop-in that is written later wins, as the file itself.
	later := time.Now().Add(time.Second)
	testkit.Must(t, os.Chtimes(folder+"/2.yaml", later, later))
	a, stop = restart(t, opt)
	defer stop()
	testkit.ErrorIf(t, a.owner.Status().AppliedFile != "" || !routed("198.51.100.0/24"), "%+v", a.owner.Status())
}

// A dry run says what would change, or why not, and changes nothing.
func TestDryRun(t *testing.T) {
	s, dir := dptest.Start(t), t.TempDir()
	a, stop := launchMobile(t, s, dir, upf+instances+signingIn)
	defer stop()
	before, running := s.Held(), string(a.owner.Plan().Text)
	commits, _ := s.Counts()
	const text = upf + instances + signingIn
	try := func(text string) (int, v1.Result, string) {
		code, body := asked(t, a, "POST", "/v1/config/apply?dry_run=true&name=new.yaml", text)
		var res v1.Result
		testkit.ErrorIf(t, code == 200 && json.Unmarshal([]byte(body), &res) != nil, "%s", body)
		return code, res, body
	}
	code, res, body := try(strings.Replace(text, "outer_vlan: 9", "outer_vlan: 8", 1) +
		"routes: [{prefix: 203.0.113.0/24, via: 10.6.0.2}]\ncontrol: {socket: /run/other}\n" +
		"engine: {rates: {echo: 7}}\n")
	testkit.FatalIf(t, code != 200, "%s", body)
	want := []string{"~ engine.rates.echo: 1000 -> 7", "~ control.socket: /run/isthmus/isthmus.sock -> /run/other",
		"~ interfaces[n9].outer_vlan: 9 -> 8", "+ routes: {prefix: 203.0.113.0/24, via: 10.6.0.2}"}
	testkit.ErrorIf(t, !slices.Equal(res.Keys, want) || !res.DryRun || res.Put != 3 ||
		!slices.Contains(res.Changes, "change interface n9") ||
		!slices.Contains(res.Changes, "add route 203.0.113.0/24") ||
		!strings.Contains(res.Note, "control.socket: in effect when the control plane is started again"), "%s", body)
	for _, r := range []struct{ text, want string }{
		{strings.Replace(text, "role: access}", "role: access, mtu: 9000}", 1),
			"port access: other settings need another name"},
		{text + "engine: {workers: 2}\n", "engine settings other than rates and times need a restart"},
		{text + "aaa: {methods: [local], users_file: " + dir + "/none}\n", "aaa.users_file: open"},
		{text + "nonsense: 1\n", "nonsense: unknown key"},
	} {
		code, _, body := try(r.text)
		testkit.ErrorIf(t, code != 422 || !strings.Contains(body, r.want), "%s: %d %s", r.want, code, body)
	}
	testkit.Must(t, os.WriteFile(dir+"/upf.yaml", []byte(text+route2), 0o600))
	code, body = asked(t, a, "POST", "/v1/config/reload?dry_run=true", "")
	testkit.ErrorIf(t, code != 200 || !strings.Contains(body, "add route 198.51.100.0/24"), "%d %s", code, body)
	code, body = asked(t, a, "POST", "/v1/config/reload?dry_run=yes", "")
	testkit.ErrorIf(t, code != 422 || !strings.Contains(body, "neither true nor false"), "%d %s", code, body)
	code, _, body = try(strings.Replace(text, "name: core, driver", "name: core2, driver", 1))
	testkit.ErrorIf(t, code == 200, "core is named by others: %s", body)
	_, res, body = try(strings.Replace(text, "  - {name: core, driver", "  - {name: spare, driver: pci, device: "+
		"\"0000:ff:1f.7\", role: core}\n  - {name: core, driver", 1))
	testkit.ErrorIf(t, len(res.Here) != 1 ||
		!strings.Contains(res.Here[0], "port spare: no device 0000:ff:1f.7 here now"), "%s", body)

	after, _ := s.Counts()
	testkit.ErrorIf(t, after != commits || !maps.EqualFunc(before, s.Held(), func(x, y []byte) bool {
		return string(x) == string(y)
	}), "%d commits of the data plane", after-commits)
	testkit.ErrorIf(t, string(a.owner.Plan().Text) != running, "another plan runs")
	left, _ := filepath.Glob(dir + "/applied.yaml*")
	testkit.ErrorIf(t, len(left) > 0, "left: %v", left)
	for _, kind := range []string{"config.applied", "config.refused"} {
		testkit.ErrorIf(t, len(told(t, a, kind)) > 0, "%s: %+v", kind, told(t, a, kind))
	}
}

const route2 = "routes:\n  - {prefix: 198.51.100.0/24, via: 10.6.0.2}\n"

// With engine.cpus auto the workers of a running data plane stay where they are; for a new one they are chosen again.
func TestWorkersStay(t *testing.T) {
	own, err := cpuset.Live().Choose(nil, 1, 1)
	testkit.Must(t, err)
	chosen := fmt.Sprint("workers on CPU ", own.Workers[0], " (auto: of ")
	s, dir := dptest.Start(t), t.TempDir()
	opt := outside(s, dir)
	opt.File = dir + "/isthmus.yaml"
	testkit.Must(t, os.WriteFile(opt.File, []byte("engine: {cpus: auto, workers: 1}\n"+small), 0o600))
	a, stop := restart(t, opt)
	testkit.ErrorIf(t, !strings.HasPrefix(a.owner.Status().CPUs, chosen), "%q, not %q", a.owner.Status().CPUs, chosen)
	stop()

	row := api.WorkerRow{Worker: 0, CPU: 999} // of a former cpuset
	s.SetTable(api.TableWorker, api.Body(&row))
	engine := dptest.ID{Kind: api.KindEngine, Key: "engine"}
	a, stop = restart(t, opt)
	defer stop()
	cpuOf := func() int32 {
		var e api.Engine
		_, err := api.ReadRow(s.Held()[engine], &e)
		testkit.Must(t, err)
		return e.CPU[0]
	}
	testkit.Equal(t, cpuOf(), 999, "the engine's CPU")
	testkit.Equal(t, a.owner.Status().CPUs, "workers on CPU 999 (auto: as the data plane runs)", "status")
	_, err = a.owner.Reload(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, cpuOf(), 999, "the engine's CPU after SIGHUP")
	_, effective := asked(t, a, "GET", "/v1/config?effective=true", "")
	testkit.ErrorIf(t, !strings.Contains(effective, "cpus: [999]"), "%s", effective)

	s.Kill()
	s.SetTable(api.TableWorker)
	s.SetHeld(nil)
	testkit.Until(t, "loss", func() bool { return a.owner.Status().DataPlane == v1.StateAway })
	testkit.Must(t, s.Listen())
	testkit.Until(t, "ready", ready(a))
	testkit.Equal(t, cpuOf(), int32(own.Workers[0]), "the engine's CPU in a new data plane")
}
