// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// Commands of the laboratory reach its program with their words and the socket; its status and its
// completions come back.
func TestHandOver(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	code, _, stderr := run(t, "bench upf --seconds 1\n", "shell")
	if code != 0 || !strings.Contains(stderr, "isthmus-lab is neither beside this program nor in PATH") {
		t.Errorf("without the program: %d, %q", code, stderr)
	}
	script := "#!/bin/sh\nif [ \"$1\" = __complete ]; then printf 'upf\\nupf-8m-flows\\n:4\\n'; exit; fi\n" +
		"echo \"$*\"; echo no profile >&2; exit 2\n"
	testkit.Must(t, os.WriteFile(filepath.Join(dir, labProgram), []byte(script), 0o755))
	code, stdout, stderr := run(t, "bench upf --seconds 1\n", "--socket", "/x/s", "shell")
	if code != 0 || !strings.Contains(stdout, "bench --socket /x/s upf --seconds 1\n") || stderr != "no profile\n" {
		t.Errorf("%d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, _ = run(t, "", "__complete", "bench", "u"); code != 0 ||
		!strings.HasPrefix(stdout, "upf\nupf-8m-flows\n:4") {
		t.Errorf("completion: %d, %q", code, stdout)
	}
}
