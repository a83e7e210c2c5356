// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"isthmus/controlplane/command"
	"isthmus/controlplane/testkit"
)

func TestColoured(t *testing.T) {
	t.Setenv("TERM", "xterm")
	_, terminal := testkit.Pty(t)
	t.Setenv("NO_COLOR", "")
	testkit.ErrorIf(t, !coloured(terminal), "none on a terminal")
	testkit.ErrorIf(t, coloured(&strings.Builder{}), "colours in a pipe")
	t.Setenv("NO_COLOR", "1")
	testkit.ErrorIf(t, coloured(terminal), "colours with NO_COLOR")
}

func TestTopOnce(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	socket := control(t, map[string]string{
		"GET /v1/status":    `{"data_plane":"ready","version":"v1","file":"g.yaml"}`,
		"GET /v1/show/port": `[{"name":"n6","rx_packets":1}]`,
	})
	code, out, stderr := run(t, "", "--socket", socket, "top", "--once", "--interval", "250ms")
	testkit.ErrorIf(t, code != 0 || !strings.Contains(out, "data plane ready") || !strings.Contains(out, "n6") ||
		strings.Contains(out, "\x1b"), "%d\n%s\n%s", code, out, stderr)
	code, _, stderr = run(t, "", "--socket", socket, "top")
	testkit.ErrorIf(t, code != command.ExitFailed || !strings.Contains(stderr, "needs a terminal"), "%d %s", code,
		stderr)
	code, _, stderr = run(t, "", "--socket", socket, "top", "--interval", "1ms")
	testkit.ErrorIf(t, code != command.ExitUsage || !strings.Contains(stderr, "250ms"), "%d %s", code, stderr)
	code, _, _ = run(t, "", "--socket", "/nonexistent/s", "top", "--once")
	testkit.Equal(t, code, command.ExitUnreachable, "no control plane")
}
