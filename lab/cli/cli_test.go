// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/command"
)

// run executes one command line, as isthmus hands it over.
func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(append([]string{"isthmus"}, args...), strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// control is a control plane that answers every request with an empty body and keeps the requests.
func control(t *testing.T) (socket string, asked *string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked = new(string)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.Method + " " + r.URL.RequestURI()
		w.Write([]byte("{}"))
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return path, asked
}

func TestStream(t *testing.T) {
	socket, asked := control(t)
	if code, _, err := run(t, "", "--socket", socket, "stream", "start", "up"); code != 0 ||
		*asked != "POST /v1/stream/start?name=up" {
		t.Errorf("%d, %q, %s", code, *asked, err)
	}
}

func TestBench(t *testing.T) {
	for _, test := range []struct {
		args   string
		code   int
		stdout string // must be contained
		stderr string
	}{
		{"bench nonsense", command.ExitFailed, "", "there are agf-symmetric, agf-asymmetric, rfc2544, jumbo"},
		{"bench nonsense --link synth", command.ExitFailed, "",
			"there are agf-symmetric, agf-asymmetric, sgwu, pgwu, upf"},
		{"bench jumbo --link synth", command.ExitFailed, "", "jumbo is measured from outside"},
		{"bench sgwu --link memif", command.ExitFailed, "", "sgwu is measured with synth ports only"},
		{"bench upf --sessions 2000000", command.ExitFailed, "", "2000000 sessions: 1 to 1048576 are possible"},
		{"bench upf --print-config", 0, "lookup: destination, pools: [10.64.0.0/10]", ""},
		{"bench agf-symmetric --link string", command.ExitFailed, "", "no link \"string\"; there are memif"},
		{"bench agf-symmetric --goal 101%", command.ExitFailed, "", "is no loss"},
		{"bench agf-symmetric --rate fast", command.ExitFailed, "", "is no rate"},
		{"bench agf-symmetric --instances 0", command.ExitFailed, "", "one of each is the least"},
		{"bench rfc2544 --size 20", command.ExitFailed, "", "20 B: an Ethernet frame has 64 to 1518"},
		{"bench rfc2544 --print-config", 0, "prefix: 10.2.255.0/24, via: 198.51.100.2", ""},
		{"bench jumbo --print-config", 0, "mtu: 9100", ""},
		{"bench agf-symmetric --print-config --subscribers 10", 0, "firewall:", ""},
		{"bench agf-symmetric --cpus x", command.ExitFailed, "", "no list of CPUs"},
	} {
		code, stdout, stderr := run(t, "", strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: status %d (want %d)\n%s\n%s", test.args, code, test.code, stdout, stderr)
		}
	}
}
