// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"isthmus/controlplane/command"
	"isthmus/controlplane/testkit"
)

// What a control plane answers comes with what to do.
func TestErrorsNameTheNextStep(t *testing.T) {
	status, body := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{http.StatusUnauthorized, `{"error":"a token is needed"}`, "(--token-file FILE or ISTHMUS_TOKEN)"},
		{http.StatusForbidden, `{"error":"the role read may not do that; operate may"}`,
			"isthmus token make NAME --role operate"},
		{http.StatusTooManyRequests, `{"error":"too many refused requests"}`, "ask again in a minute"},
		{http.StatusNotFound, "<html>",
			server.URL + " answers 404 Not Found: is it a control plane of Isthmus?"},
		{http.StatusServiceUnavailable, `{"error":"the data plane is away; isthmus status says why"}`,
			"isthmus status says why"},
	} {
		status, body = test.status, test.body
		code, _, stderr := run(t, "", "--server", server.URL, "show", "drop")
		testkit.ErrorIf(t, code != command.ExitFailed || !strings.Contains(stderr, test.want), "%d: %d %s",
			status, code, stderr)
	}
	server.Close()
	code, _, stderr := run(t, "", "--server", server.URL, "show", "drop")
	testkit.ErrorIf(t, code != command.ExitUnreachable ||
		!strings.Contains(stderr, "control.api names the address"), "nothing there: %d %s", code, stderr)
}

// A status that is not good says why, and what to do.
func TestStatusSaysWhy(t *testing.T) {
	for status, want := range map[string][]string{
		`{"data_plane":"away","dp_socket":"/s","dp_restart":"always","dp_ended":{"how":"ended by signal 6",` +
			`"times":5,"since":"2026-01-31T12:00:00Z","words":["EAL: no memory","PANIC"]}}`: {
			"data plane     away (/s): it ended by signal 6, 5 times in a row since 2026-01-31T12:00:00Z\n",
			"last words     EAL: no memory\n               PANIC\n",
			"isthmus doctor says what this machine lacks"},
		`{"data_plane":"away","dp_restart":"external"}`: {"journalctl -u isthmus-dp"},
		`{"data_plane":"away","dp_restart":"always"}`:   {"isthmus status --wait 10s waits for it"},
		`{"data_plane":"refused","last_error":"port a: no such device"}`: {
			"last error     port a: no such device",
			"the data plane is refused; correct what the last error names, then isthmus config apply FILE"},
	} {
		socket := control(t, map[string]string{"GET /v1/status": status})
		code, stdout, stderr := run(t, "", "--socket", socket, "status")
		testkit.Equal(t, code, command.ExitFailed, "%s", status)
		for _, word := range want {
			testkit.ErrorIf(t, !strings.Contains(stdout+stderr, word), "%s: not %q but %s%s", status, word,
				stdout, stderr)
		}
	}
}

// What an option takes stands in the error, and the usage behind it.
func TestWrongOptions(t *testing.T) {
	for line, want := range map[string]string{
		"trace --for 2h":                    "--for 2h0m0s: give 1s to 1h\nusage: isthmus trace",
		"trace --flow tcp":                  "is not PROTOCOL,ADDRESS:PORT,ADDRESS:PORT\nusage: ",
		"trace --teid 0":                    "a number from 1 to 0xffffffff\nusage: ",
		"top --interval 1h":                 "250ms to 1m\nusage: isthmus top",
		"capture -w x --files 2 --size 0":   "--files needs a --size",
		"explain x.pcap --ue 10.0.0.1":      "give a capture, or --ue",
		"events --live":                     "--live goes with -f",
		"show session --where limit=3":      "limit is no field, but an option of its own\nusage: ",
		"--server https://gateway run -c x": "run takes no --server: it runs on this machine\nusage: ",
	} {
		code, stdout, stderr := run(t, "", strings.Fields(line)...)
		testkit.ErrorIf(t, code != command.ExitUsage || stdout != "" || !strings.Contains(stderr, want),
			"%s: %d %s%s", line, code, stdout, stderr)
	}
}
