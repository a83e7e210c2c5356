// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/command"
	"isthmus/lab/report"
)

func TestReportFromData(t *testing.T) {
	data := filepath.Join("..", "report", "testdata", "fixture.json")
	dir := filepath.Join(t.TempDir(), "report")
	code, out, err := run(t, "", "bench", "--report", dir, "--from", data)
	if code != 0 || !strings.Contains(out, "MADE UP") || !strings.HasSuffix(out,
		filepath.Join(dir, report.PageFile)+"\n") {
		t.Fatalf("%d %q ... %s", code, out[max(0, len(out)-200):], err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if code, _, err = run(t, "", "bench", "--report", again, "--from", filepath.Join(dir, report.DataFile)); code != 0 {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(filepath.Join(dir, report.PageFile))
	second, _ := os.ReadFile(filepath.Join(again, report.PageFile))
	if len(first) < 10000 || string(first) != string(second) {
		t.Errorf("pages of %d and %d bytes differ", len(first), len(second))
	}
}

func TestReportUsage(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		code int
		word string
	}{
		{[]string{"bench"}, command.ExitUsage, "arg"},
		{[]string{"bench", "agf-symmetric", "--report", dir}, command.ExitUsage, "every profile"},
		{[]string{"bench", "--from", "x"}, command.ExitUsage, "--report"},
		{[]string{"bench", "--report", dir, "--seconds", "3"}, command.ExitUsage, "leave them away"},
		{[]string{"bench", "--report", dir, "--link", "synth"}, command.ExitUsage, "tester"},
		{[]string{"bench", "--report", dir, "--from", "/dev/null"}, command.ExitFailed, "no report"},
		{[]string{"bench", "--report", dir, "--from", filepath.Join(dir, "absent")}, command.ExitFailed,
			"no such file"},
	} {
		code, _, err := run(t, "", test.args...)
		if code != test.code || !strings.Contains(err, test.word) {
			t.Errorf("%v: %d, %q", test.args, code, err)
		}
	}
}
