// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
	"isthmus/controlplane/testkit"
	"isthmus/controlplane/view"
)

// unpack makes the archive, which names what is missing, and returns all of its text.
func unpack(t *testing.T, args ...string) (text, stderr string) {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.tar.gz")
	code, _, stderr := run(t, "", append(args, "-o", archive)...)
	testkit.FatalIf(t, code != 0, "status %d: %s", code, stderr)
	info, err := os.Stat(archive)
	testkit.FatalIf(t, err != nil || info.Mode().Perm() != 0o600, "%v %v", info, err)
	out, err := exec.Command("tar", "-xOzf", archive).Output()
	testkit.Must(t, err)
	return string(out), stderr
}

func TestSupport(t *testing.T) {
	socket := control(t, map[string]string{
		"GET /v1/config": "control: {metrics: \"off\", api_token: hush1}\nports: [] # hush3\n" +
			"aaa: {users: [{name: hush4, password: hush5}]}\n",
		"GET /v1/status": `{"data_plane":"away","version":"0.1","pid":1,
			"last_error":"of \"hush4\""}`,
		"GET /v1/show/session?limit=1000": `[{"name":"home-1","user":"hush2"}]`,
		"GET /v1/show/subscriber?limit=1000": `[{"user":"hush2","circuit":"hush6","remote":"hush7",
			"attempts":[{"user":"hush8","why":"hush9 said no"}]}]`,
	})
	text, stderr := unpack(t, "--socket", socket, "support")
	for _, word := range []string{"home-1", `"data_plane": "away"`, "here     configuration.yaml",
		"in part  doctor.json",
		"missing  show/port.json: asked for", "missing  metrics:", "running control plane 0.1"} {
		testkit.ErrorIf(t, !strings.Contains(text, word), "%q is missing", word)
	}
	testkit.ErrorIf(t, strings.Contains(text, "hush"), "a secret is in the archive")
	testkit.ErrorIf(t, !strings.Contains(stderr, "look into it before you send it"), "%s", stderr)
}

func TestSupportWithNothingRunning(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := "control: {metrics: \"127.0.0.1:1\"}\nports: [{name: n6, driver: synth}]\n"
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	all, stderr := unpack(t, "--socket", "/nonexistent/s", "support", "-c", file)
	for _, word := range []string{"driver: synth", "missing  status.json: no control plane at /nonexistent/s"} {
		testkit.ErrorIf(t, !strings.Contains(all, word), "%q is missing in\n%s", word, all)
	}
	testkit.ErrorIf(t, strings.Count(stderr, "no control plane") > 1, "one reason, many lines:\n%s", stderr)
}

// Of a control plane on another machine the archive has what that says, and nothing of this machine.
func TestSupportFromAfar(t *testing.T) {
	asked := 0
	metrics := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(metrics.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/config":
			fmt.Fprintf(w, "control: {metrics: %q}\nports: []\n", metrics.Listener.Addr())
		case "/v1/status":
			fmt.Fprintf(w, `{"data_plane":"ready","pid":%d,"dp_pid":%[1]d}`, os.Getpid())
		default:
			io.WriteString(w, "[]")
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	testkit.Must(t, os.WriteFile(file, []byte("ports: [{name: mine, driver: synth}]\n"), 0o600))
	text, stderr := unpack(t, "--server", server.URL, "support", "--log", file)
	why := "only its own machine knows: run `isthmus support` there"
	for _, word := range []string{"here     status.json", "here     configuration.yaml", "here     show/port.json",
		"missing  doctor.json: " + why, "missing  metrics: " + why, "missing  log/isthmus-dp.journal: " + why,
		"missing  process/isthmus/status: " + why, "missing  process/isthmus-dp/limits: " + why,
		"missing  machine/cpuinfo: " + why, "driver: synth"} {
		testkit.ErrorIf(t, !strings.Contains(text, word), "%q is missing in\n%s", word, text)
	}
	testkit.Equal(t, asked, 0, "times that metrics of this machine were asked for")
	testkit.Equal(t, strings.Count(stderr, why), 1, "times that it is said why:\n%s", stderr)
	text, _ = unpack(t, "--server", "http://127.0.0.1:1", "support", "-c", file)
	testkit.ErrorIf(t, !strings.Contains(text, "missing  configuration.yaml: no control plane at http") ||
		strings.Contains(text, "driver: synth"), "this machine's file stands for another's:\n%s", text)
}

// A control plane that accepts connections and never answers: the command does not wait for each table.
func TestSupportOfOneThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	testkit.Must(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	e := &env{Env: command.Env{Socket: path}}
	tables := 0
	for _, part := range e.supportParts(ctx, "/nonexistent/gateway.yaml", nil) {
		if strings.HasPrefix(part.Name, "show/") {
			_, err := part.Get(ctx)
			testkit.Refused(t, err, "does not answer")
			tables++
		}
	}
	testkit.Equal(t, tables, len(view.Tables), "tables")
}

// texts are the keys of a type whose words stay in an archive.
func texts(t reflect.Type, keys map[string]bool) {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Array:
		texts(t.Elem(), keys)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			of := f.Type
			for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer || of.Kind() == reflect.Map {
				of = of.Elem()
			}
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Tag.Get("private") == "" && of.Kind() == reflect.String && key != "" {
				keys[key] = true
			}
			texts(of, keys)
		}
	}
}

// Who adds a field of words to what is shown decides whether they may name a user: here, or by the tag private.
func TestWordsOfAnArchive(t *testing.T) {
	const harmless = `action address applied_file association collector cp_seid_hex cpus data_plane delegated
		destination device devices discard dnn downlink_list dp_restart dp_socket dp_version driver drop_ins encap
		endpoints error features file from gate how id inside instance interface interfaces ipv4 ipv6 kind
		line listen local lookup mac message mode name names namespace network node_id object offload
		offload_why outside peer peer_ids peers pools port prefix profile protocol reason role rule
		scheduler_pipe scheduler_profile seid_hex session set source sources state steering target text to transport
		ue_ip4 ue_ip6 uplink_list use version via vrf why wrong_frame`
	keys := map[string]bool{}
	texts(reflect.TypeFor[v1.Status](), keys)
	for _, table := range view.Tables {
		texts(table.Answer, keys)
	}
	got := strings.Join(slices.Sorted(maps.Keys(keys)), " ")
	testkit.Equal(t, got, strings.Join(strings.Fields(harmless), " "), "fields without the tag private")
}
