// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"isthmus/controlplane/auth"
	"isthmus/controlplane/command"
	"isthmus/controlplane/events"
	"isthmus/controlplane/testkit"
)

// A control plane on another machine: found by a fingerprint or an authority, with a token.
func TestRemote(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			auth.Refuse(w, http.StatusUnauthorized, "a token is needed")
		case r.URL.Path == "/v1/config/reload" && r.Header.Get("Isthmus-Client") != "":
			io.WriteString(w, `{"objects":5}`)
		case r.URL.Path == "/v1/config":
			http.Redirect(w, r, "https://127.0.0.1:1/elsewhere", http.StatusFound)
		default:
			io.WriteString(w, `[{"name":"no-route","text":"No route.","packets":3}]`)
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	file := func(name, text string) string {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	der := server.Certificate().Raw
	token, wrong := file("token", "secret\n"), file("wrong", "other")
	ca := file("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	print := auth.Fingerprint(der)
	colons := strings.ToUpper(regexp.MustCompile("..").ReplaceAllString(print, "$0:"))
	to := func(more string) string { return "--server " + server.URL + " " + more }
	for _, test := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{to("--fingerprint " + print + " --token-file " + token + " show drop"), 0, "no-route", ""},
		{to("--fingerprint " + strings.TrimSuffix(colons, ":") + " --token-file " + token + " show drop"), 0,
			"no-route", ""},
		{to("--ca " + ca + " --token-file " + token + " show drop -j"), 0, `"packets": 3`, ""},
		{to("--ca " + ca + " --token-file " + token + " config apply"), 0, "applied: 5 objects, the", ""},
		{to("--ca " + ca + " --token-file " + token + " config show"), command.ExitFailed, "", "302"},
		{to("--ca " + ca + " --token-file " + wrong + " show drop"), command.ExitFailed, "",
			"--token-file FILE or ISTHMUS_TOKEN"},
		{to("--ca " + ca + " --token-file " + dir + "/none show drop"), command.ExitUsage, "", "no such file"},
		{to("--ca " + token + " show drop"), command.ExitUsage, "", "no certificate in PEM"},
		{to("--token-file " + token + " show drop"), command.ExitUnreachable, "",
			"or itself with --fingerprint"},
		{to("--fingerprint 00 --token-file " + token + " show drop"), command.ExitUnreachable, "",
			"its certificate has the fingerprint " + print},
		{"--server https://127.0.0.1:1 show drop", command.ExitUnreachable, "",
			"no control plane at https://127.0.0.1:1: dial tcp"},
		{"--server https://gateway:9443 run -c x", command.ExitUsage, "", "run takes no --server"},
		{"--server https://gateway:9443 doctor", command.ExitUsage, "", "run it there"},
		{"--server https://gateway:9443 doctor -c x", command.ExitUsage, "", "with -c FILE alone"},
		{"--server gateway:9443 show drop", command.ExitUsage, "", "https://HOST:PORT is needed"},
		{"--server http://192.0.2.1:9443 show drop", command.ExitUsage, "", "use https"},
	} {
		code, stdout, stderr := run(t, "", strings.Fields(test.args)...)
		testkit.ErrorIf(t, code != test.code || !strings.Contains(stdout, test.stdout) ||
			!strings.Contains(stderr, test.stderr),
			"%s: %d\n%s\n%s", test.args, code, stdout, stderr)
	}
	t.Setenv("ISTHMUS_SERVER", server.URL)
	t.Setenv("ISTHMUS_TOKEN", "secret")
	t.Setenv("ISTHMUS_FINGERPRINT", print)
	code, stdout, stderr := run(t, "", "doctor")
	testkit.ErrorIf(t, code != command.ExitUsage || !strings.Contains(stderr, "ISTHMUS_SERVER"), "doctor: %d %s%s",
		code, stdout, stderr)
	code, stdout, stderr = run(t, "show drop\n", "shell")
	testkit.ErrorIf(t, code != 0 || !strings.Contains(stdout, "no-route"), "in the shell: %d %s %s", code, stdout,
		stderr)
}

func TestConditions(t *testing.T) {
	socket := control(t, map[string]string{
		"GET /v1/show/session?after=4&limit=2&name=n4.%2A&seid=%3E10&ue_ip4=%2110.1.2.3": `[]`,
	})
	code, _, stderr := run(t, "", "--socket", socket, "show", "session", "--where", "ue_ip4!=10.1.2.3", "--where",
		"seid>10",
		"--where", "name=n4.*", "--limit", "2", "--after", "4")
	testkit.ErrorIf(t, code != 0, "%d %s", code, stderr)
	for _, bad := range []string{"name", "=x", "limit=3"} {
		code, _, _ := run(t, "", "--socket", socket, "show", "session", "--where", bad)
		testkit.Equal(t, code, command.ExitUsage, "%s", bad)
	}
	code, stdout, _ := run(t, "", "__complete", "show", "session", "--where", "")
	testkit.ErrorIf(t, code != 0 || !strings.Contains(stdout, "ue_ip4=\n"), "completion: %s", stdout)
}

func TestTokenMake(t *testing.T) {
	code, stdout, stderr := run(t, "", "token", "make", "noc", "--role", "operate")
	hash := sha256.Sum256([]byte(strings.TrimSpace(stdout)))
	testkit.ErrorIf(t, code != 0 ||
		!strings.Contains(stderr, "{name: noc, role: operate, sha256: \""+hex.EncodeToString(hash[:])+"\"}"),
		"%d %q %q", code, stdout, stderr)
	for command, want := range map[string]string{"token make": "operate: change things, trace, explain and capture",
		"trace": "of the role operate", "explain": "of the role operate", "capture": "of the role operate"} {
		_, stdout, _ := run(t, "", append(strings.Fields(command), "--help")...)
		testkit.ErrorIf(t, !strings.Contains(stdout, want), "%s --help: %s", command, stdout)
	}
	for _, bad := range [][]string{{"a b"}, {"noc", "--role", "root"}, {}} {
		code, stdout, _ := run(t, "", append([]string{"token", "make"}, bad...)...)
		testkit.ErrorIf(t, code != command.ExitUsage || stdout != "", "%v: %d", bad, code)
	}
	code, stdout, _ = run(t, "", "api", "describe")
	testkit.ErrorIf(t, code != 0 || !strings.Contains(stdout, `"openapi": "3.1.0"`), "%d", code)
}

// Events are printed so that no name of others breaks a line or a terminal.
func TestEventsCommand(t *testing.T) {
	page, _ := json.Marshal(events.Page{Lost: 3, Events: []events.Event{
		{ID: 7, Kind: "config.applied", Subject: "a b", Who: &events.Who{Via: "unix", UID: 1, PID: 2,
			Program: "x\x1b[2J"},
			Fields: map[string]any{"put": 3, "note": "\x1b[31m", "changes": []string{"add route a", "b"}}},
		{ID: 8, Kind: "session.count", Who: &events.Who{Via: "tcp", Token: "noc", Address: "192.0.2.1:5"}},
	}})
	socket := control(t, map[string]string{
		"GET /v1/events": string(page),
		"GET /v1/events?after=3&kind=port&kind=limit": `{"events":[]}`,
	})
	code, stdout, stderr := run(t, "", "--socket", socket, "events")
	want := `7 0001-01-01T00:00:00.000Z config.applied "a b" ` +
		`changes="add route a, b" note="\x1b[31m" put=3 by="uid:1 pid:2 x\x1b[2J"
8 0001-01-01T00:00:00.000Z session.count - by=noc@192.0.2.1:5
`
	testkit.ErrorIf(t, code != 0 || stdout != want || !strings.Contains(stderr, "3 events are not in memory"),
		"%d\n%s%s", code, stdout, stderr)
	code, _, stderr = run(t, "", "--socket", socket, "events", "--after", "3", "--kind", "port,limit")
	testkit.ErrorIf(t, code != 0, "%d %s", code, stderr)
	code, _, _ = run(t, "", "--socket", "/nonexistent", "events", "-f")
	testkit.Equal(t, code, command.ExitUnreachable, "without a control plane")
}

// -f goes on after the stream ended, from the last event.
func TestEventsFollow(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		n := len(asked)
		fmt.Fprintf(w,
			"event: lost\ndata: {\"lost\":0}\n\n: quiet\n\nid: b-%d\n"+
				"data: {\"id\":%d,\"boot\":\"b\",\"kind\":\"port.up\"}\n\n", n, n)
		fmt.Fprint(w, "event: end\ndata: {\"error\":\"slow\"}\n\n")
		if n == 2 {
			stop()
		}
	}))
	t.Cleanup(server.Close)
	var out strings.Builder
	r := &eventReader{env: &env{Env: command.Env{Server: server.URL, Out: &out, Err: io.Discard}}, asJSON: true,
		query: map[string][]string{}}
	testkit.Must(t, r.follow(ctx))
	testkit.Equal(t, strings.Join(asked[:2], ", "), ", after=b-1", "queries")
	testkit.ErrorIf(t, !strings.HasPrefix(out.String(), `{"id":1,"boot":"b"`), "%s", out.String())
}
