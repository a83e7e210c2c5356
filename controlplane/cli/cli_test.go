// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"net"

	"isthmus/controlplane/command"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/rules"
	"isthmus/controlplane/session"
	"isthmus/controlplane/testkit"
)

// run executes one command line.
func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// control is a control plane of which only the answers exist.
func control(t *testing.T, answers map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	testkit.Must(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _, _ := strings.Cut(r.URL.RequestURI(), "?name=%2F") // of a temporary folder
		body, ok := answers[r.Method+" "+asked]
		if !ok {
			w.WriteHeader(http.StatusUnprocessableEntity)
			body = `{"error":"asked for ` + r.Method + " " + r.URL.RequestURI() + `"}`
		}
		w.Write([]byte(body))
	}))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return path
}

var manyPorts = func() string {
	var rows []string
	for i := range 20 {
		rows = append(rows, fmt.Sprintf(`{"name":"n%d"}`, 1+100*i))
	}
	return "[" + strings.Join(rows, ",") + "]"
}()

var answersOfCommands = map[string]string{
	"GET /v1/show/drop":                      `[{"name":"no-route","text":"No route.","packets":3}]`,
	"GET /v1/show/session?key=h&limit=2":     `[]`,
	"GET /v1/show/session":                   `[{"name":"home-1"},{"name":"home-2"}]`,
	"GET /v1/show/session?limit=1":           `[{"name":"home-1","dnn":"ims"}]`,
	"GET /v1/show/session?limit=200":         `[{"name":"home-1"},{"name":"home-2"}]`,
	"GET /v1/show/graph":                     `{"nodes":[],"edges":[{"from":"a","to":"b"}]}`,
	"GET /v1/show/association":               `[{"id":"smf1","state":"up"}]`,
	"GET /v1/show/association?state=up":      `[{"id":"smf1","state":"up"}]`,
	"GET /v1/show/session?name=home-2":       `[{"name":"home-2"}]`,
	"GET /v1/show/association?limit=200":     `[{"id":"smf1"}]`,
	"GET /v1/show/rule?limit=200":            `[{"session":"n4.1"},{"session":"n4.1"},{"session":"n4.2"}]`,
	"GET /v1/show/pool?key=homes":            `[]`,
	"GET /v1/show/pool?limit=200":            `[]`,
	"GET /v1/show/port?key=n7":               `[]`,
	"GET /v1/show/port?limit=200":            manyPorts,
	"GET /v1/show/port?key=x":                `[]`,
	"GET /v1/show/subscriber?key=x":          `[]`,
	"GET /v1/show/pool?instance=x&key=homes": `[]`,
	"GET /v1/show/n4":                        `{"listen":["10.0.0.1:8805"],"peers":["10.0.0.2:8805"]}`,
	"GET /v1/show/instance":                  `[{"name":"internet","lookup":"destination","endpoints":["10.3.0.1"]}]`,
	"GET /v1/show/port":                      `[{"name":"n3","mtu":1520}]`,
	"GET /v1/config":                         "ports: []\ninterfaces: [{port: n3, addresses: [10.3.0.1/24]}]\n",
	"GET /v1/config?effective=true": "ports: [] # in effect\n" +
		"interfaces: [{port: n3, addresses: [10.3.0.1/24]}]\n",
	"POST /v1/config/reload?dry_run=true": `{"objects":5,"put":1,"deleted":2,"dry_run":true,"note":"n",
		"keys":["~ ports[a].mtu: 1 -> 2"],"changes":["change port a"],"more":2,"here":["port a: no device"]}`,
	"POST /v1/config/check":  `{"objects":2,"fixed":["port a"]}`,
	"POST /v1/config/reload": `{"objects":5,"put":1,"deleted":2}`,
	"GET /v1/status":         `{"data_plane":"ready","version":"0.1"}`,
}

// typed is a command line, and what its output must contain.
type typed struct {
	args   string
	code   int
	stdout string
	stderr string
}

// ofConfig are commands about files: of a device that is not here, an unset variable, a good one, a bad one.
func ofConfig(absent, unset, good, file string) []typed {
	return []typed{
		{"config show", 0, "ports: []\n", ""},
		{"config show --effective", 0, "ports: [] # in effect\n", ""},
		{"config schema", 0, "\"$id\": \"urn:isthmus:config:1\"", ""},
		{"config diff", 0, "~ ports[a].mtu: 1 -> 2\nnote: n\nnote: port a: no device\n", ""},
		{"config apply --dry-run", 0, "would be applied: 5 objects, 1 to send, 2 to delete\n" +
			"  change port a\n  ... and 2 more\nnote: n\nnote: port a: no device\n", ""},
		{"config diff /nonexistent", command.ExitFailed, "", "no such file"},
		{"config check " + absent, 0,
			"note: port a: no device 0000:ff:1f.7 here now (lspci -D; or change ports[].device)", ""},
		{"config check " + unset, command.ExitFailed, "",
			"engine.workers: ${ISTHMUS_TEST_UNSET}: the environment has no"},
		{"config apply", 0, "applied: 5 objects, 1 sent, 2 deleted", ""},
		{"config check " + good, 0, "note: refused while the data plane runs: port a", ""},
		{"config check " + file, command.ExitFailed, "", file +
			":2: ports[0].nane: unknown key; did you mean \"name\"?"},
		{"config check /nonexistent", command.ExitFailed, "", "no such file"},
	}
}

func TestCommands(t *testing.T) {
	socket := control(t, answersOfCommands)
	file := filepath.Join(t.TempDir(), "bad.yaml")
	os.WriteFile(file, []byte("ports:\n  - {nane: x}\n"), 0o600)
	good := filepath.Join(t.TempDir(), "good.yaml")
	os.WriteFile(good, []byte("ports: [{name: a, driver: synth, role: core}]\n"), 0o600)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	absent := write("absent.yaml", "ports: [{name: a, driver: pci, device: \"0000:ff:1f.7\", role: core}]\n")
	unset := write("unset.yaml", "engine:\n  workers: ${ISTHMUS_TEST_UNSET}\n")
	for _, test := range append(ofConfig(absent, unset, good, file), []typed{
		{"version", 0, "isthmus " + command.Version, ""},
		{"show drop", 0, "REASON    PACKETS  MEANING\nno-route        3  No route.\n", ""},
		{"show drop -j", 0, "[\n  {\n    \"name\": \"no-route\",", ""},
		{"show session h --limit 2", command.ExitFailed, "", `no session "h"; there are: home-1, home-2`},
		{"show graph --edges", 0, "a     b", ""},
		{"show graph --dot", 0, `"a" -> "b";`, ""},
		{"show n4 --for open5gs", 0, "- address: 10.0.0.1\n          dnn: [\"internet\"]\n", ""},
		{"show n4 --for open5gs", 0, "\n  mtu: 1476 # of UEs", ""},
		{"show n4 --for ella", command.ExitFailed, "", `"ella" is none of free5gc, open5gs`},
		{"show pool homes", command.ExitFailed, "", `no pool "homes"; there is none at all`},
		{"show port n7", command.ExitFailed, "",
			`no port "n7"; did you mean "n1"?; isthmus show port lists all`},
		{"show port x", command.ExitFailed, "", `no port "x"; isthmus show port lists all`},
		{"show subscriber x", command.ExitFailed, "", `no subscriber "x"; isthmus show subscriber lists all`},
		{"show pool homes -j", command.ExitFailed, "[]\n", `no pool "homes"`},
		{"show pool homes --where instance=x", 0, "POOL", ""},
		{"show associations", 0, "ASSOCIATION  SET  ADDRESS  STATE", ""},
		{"__complete show association ", 0, "smf1\n", ""},
		{"__complete show rules ", 0, "n4.1\nn4.2\n", ""},
		{"show session --where name=home-2 -j", 0, "[\n  {\n    \"name\": \"home-2\"\n  }\n]\n", ""},
		{"show session --where x", command.ExitUsage, "", "no condition"},
		{"show session --sort -name --limit 1", 0, "home-2", ""},
		{"show session --top 1 -j", 0, "home-1\"\n  }\n]\n", ""},
		{"show session --top -1", command.ExitUsage, "", "--top -1"},
		{"show drop --watch 100ms --count 2", 0, "NAME      PACKETS/S\nno-route          0\n\nNAME ", ""},
		{"show drop --watch 100ms --count 1 -j", 0, `"packets_per_second":0`, ""},
		{"show association --watch 100ms --count 1 --where state=up", 0, "smf1", ""},
		{"show drop --watch 1ms", command.ExitUsage, "", "at least 100ms"},
		{"show worker --watch 1s", command.ExitFailed, "", "asked for GET /v1/show/worker"},
		{"show total --top 1", command.ExitUsage, "", "unknown flag"},
		{"show worker", command.ExitFailed, "", "asked for GET /v1/show/worker"},
		{"show drop x", command.ExitUsage, "",
			"takes no name; --where FIELD=VALUE chooses rows, \"x\" was given\nusage: isthmus show drop"},
		{"show drop --nonsense", command.ExitUsage, "", "unknown flag"},
		{"nonsense", command.ExitUsage, "", "unknown command"},
		{"show nonsense", command.ExitUsage, "", `unknown command "nonsense" for "isthmus show"`},
		{"show seshion", command.ExitUsage, "", "did you mean session?"},
		{"config", 0, "Available Commands:", ""},
		{"config chekc", command.ExitUsage, "", "did you mean check?"},
		{"association release", command.ExitUsage, "", "usage: isthmus association release NODE_ID"},
		{"run", command.ExitUsage, "", `required flag(s) "config" not set`},
		{"status", 0, "data plane     ready", ""},
		{"replay -c " + file, command.ExitFailed, "", ":2:"},
		{"__complete show session ", 0, "home-1\nhome-2\n", ""},
		{"__complete show ", 0, "neighbour", ""},
		{"__complete show session --where", 0, "dnn=\n", ""},
	}...) {
		t.Run(test.args, func(t *testing.T) {
			args := append([]string{"--socket", socket}, strings.Fields(test.args)...)
			if strings.HasPrefix(test.args, "__complete") {
				args = append(strings.Fields(test.args)[:1],
					append([]string{"--socket", socket}, strings.Fields(test.args)[1:]...)...)
				args = append(args, "")
			}
			code, stdout, stderr := run(t, "", args...)
			if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
				t.Errorf("status %d (want %d)\n%s\n%s", code, test.code, stdout, stderr)
			}
		})
	}
}

// Routes that are not followed are an option's table, none of its own.
func TestIgnoredRoutes(t *testing.T) {
	socket := control(t, map[string]string{"GET /v1/show/ignored-route": `[{"prefix":"10.0.0.0/8","table":254,
		"device":"eth0","hops":2,"reason":"device","text":"why"}]`})
	code, stdout, stderr := run(t, "", "--socket", socket, "show", "route", "--ignored")
	testkit.Equal(t, code, 0, "%s", stderr)
	testkit.Equal(t, stdout, "PREFIX      VRF  NAMESPACE  TABLE  METRIC  VIA  DEVICE  HOPS  REASON  TEXT\n"+
		"10.0.0.0/8  -    -            254       0  -    eth0       2  device  why\n", "the table")
	code, _, stderr = run(t, "", "--socket", socket, "show", "ignored-route")
	good := code == command.ExitUsage && strings.Contains(stderr, "unknown command")
	testkit.ErrorIf(t, !good, "%d %s", code, stderr)
}

func TestNoControlPlane(t *testing.T) {
	code, _, stderr := run(t, "", "--socket", "/nonexistent/s", "show", "port")
	if code != command.ExitUnreachable || !strings.Contains(stderr, "/nonexistent/s") ||
		!strings.Contains(stderr, "isthmus run -c FILE") {
		t.Errorf("status %d: %s", code, stderr)
	}
}

func TestShell(t *testing.T) {
	socket := control(t, map[string]string{"GET /v1/show/drop": `[{"name":"no-route","text":"x","packets":3}]`})
	code, stdout, stderr := run(t, "show drop\n\n# comment\nnonsense\nrun\nexit\nversion\n", "--socket", socket,
		"shell")
	if code != 0 || !strings.Contains(stdout, "no-route") || strings.Contains(stdout, command.Version) ||
		!strings.Contains(stderr, "nonsense") || !strings.Contains(stderr, "run does not work") {
		t.Errorf("status %d\n%s\n%s", code, stdout, stderr)
	}
}

func TestStoreCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	p, err := session.Open(path, &rules.Settings{}, nil)
	testkit.Must(t, err)
	defer p.Close()
	testkit.Must(t, p.KeepAssociation(n4.StoredAssociation{ID: "smf1"}))
	if code, out, stderr := run(t, "", "store", "verify", path); code != 0 ||
		!strings.Contains(out, "good, 0 sessions, 1 associations") {
		t.Errorf("%d %q %q", code, out, stderr)
	}
	if code, out, stderr := run(t, "", "store", "dump", path); code != 0 ||
		!strings.Contains(out, `{"association":{"id":"smf1"`) {
		t.Errorf("%d %q %q", code, out, stderr)
	}
	testkit.Must(t, os.WriteFile(path, []byte("isthmus3 and nothing more"), 0o600))
	for _, verb := range []string{"verify", "dump"} {
		if code, _, stderr := run(t, "", "store", verb, path); code == 0 || !strings.Contains(stderr, "format") {
			t.Errorf("%s: %d %q", verb, code, stderr)
		}
	}
}
