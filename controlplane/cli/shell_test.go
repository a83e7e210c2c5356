// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus/controlplane/command"
	"isthmus/controlplane/testkit"
)

func TestSplitWords(t *testing.T) {
	for line, want := range map[string]string{
		"": "[]", "  show \t drop ": `["show" "drop"]`, `a 'b c' "d \" e" f\ g`: `["a" "b c" "d \" e" "f g"]`,
		`--where 'packets>0'`: `["--where" "packets>0"]`, `""`: `[""]`, `'a\b'`: `["a\\b"]`,
	} {
		words, err := splitWords(line)
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprintf("%q", words), want, "%s", line)
	}
	for _, line := range []string{"'a", `"a`, `a\`} {
		_, err := splitWords(line)
		testkit.Refused(t, err, "within quotes")
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "isthmus", "history")
	h := openHistory(path)
	for i := range historyLines + 5 {
		h.Add(fmt.Sprint("show ", i))
		h.Add(fmt.Sprint("show ", i)) // no second time
	}
	h.Add(" ")
	h.Add(strings.Repeat("x", historyLine+1))
	h = openHistory(path)
	testkit.Equal(t, h.Len(), historyLines, "lines")
	testkit.Equal(t, h.At(0), "show 1004", "the last")
	testkit.Equal(t, h.At(historyLines-1), "show 5", "the first")
	info, err := os.Stat(path)
	testkit.Must(t, err)
	testkit.Equal(t, info.Mode().Perm(), 0o600, "mode")
	openHistory("/dev/null/x").Add("nowhere to keep it")
}

func TestComplete(t *testing.T) {
	socket := control(t,
		map[string]string{"GET /v1/show/session?limit=200": `[{"name":"home-1"},{"name":"home-2"}]`})
	e := &env{Env: command.Env{Out: io.Discard, Err: io.Discard, Socket: socket}}
	for line, want := range map[string]string{
		"sho": "show ", "show sess": "show session ", "show session ": "show session home-",
		"show session --wa": "show session --watch",
		"nonsense ":         "", "show session h": "show session home-",
	} {
		var shown bytes.Buffer
		got, pos, ok := e.complete(context.Background(), &shown, line, len(line))
		testkit.ErrorIf(t, ok != (want != "") || strings.TrimSpace(got) != strings.TrimSpace(want) ||
			pos != len(got),
			"%q becomes %q, not %q", line, got, want)
	}
	var shown bytes.Buffer
	_, _, ok := e.complete(context.Background(), &shown, "show session home-", len("show session home-"))
	testkit.ErrorIf(t, ok || shown.String() != "home-1  home-2\n", "%q", shown.String())
	got, pos, _ := e.complete(context.Background(), &shown, "sho port", 3)
	testkit.Equal(t, got, "show  port", "within a line")
	testkit.Equal(t, pos, 5, "the cursor")
}

// On a terminal: Tab, a former line of an earlier shell by the arrow, Ctrl-C gives an empty line, exit.
func TestShellOnATerminal(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	openHistory(historyPath()).Add("show drop")
	socket := control(t, map[string]string{"GET /v1/show/drop": `[{"name":"no-route","text":"x","packets":3}]`})
	keys, terminal := testkit.Pty(t)
	screen := testkit.Screen(keys)
	e := &env{Env: command.Env{Out: terminal, Err: terminal, Socket: socket}}
	done := make(chan error, 1)
	go func() { done <- e.shellOnTerminal(context.Background(), terminal, terminal) }()
	for _, step := range []struct{ keys, see string }{
		{"vers\t\r", "isthmus " + command.Version}, {"half\x03", "half"}, {"\x1b[A\x1b[A\r", "no-route"},
		{"run\r", "does not work inside the shell"},
	} {
		testkit.Until(t, "a prompt", func() bool {
			return strings.HasSuffix(screen(),
				prompt)
		}) // raw from then on
		_, err := keys.WriteString(step.keys)
		testkit.Must(t, err)
		testkit.Until(t, step.see, func() bool { return strings.Contains(screen(), step.see) })
	}
	testkit.Until(t, "the last prompt", func() bool { return strings.HasSuffix(screen(), prompt) })
	_, err := keys.WriteString("exit\r")
	testkit.Must(t, err)
	testkit.Must(t, testkit.Receive(t, done))
}
