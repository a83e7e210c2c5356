// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
)

const (
	historyLines = 1000
	historyLine  = 4096 // bytes
)

// history is the former lines, in a file. It is term.History.
type history struct {
	path  string // empty: nowhere
	lines []string
}

// historyPath follows the XDG base directories; empty when there is no home.
func historyPath() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "isthmus", "history")
}

// openHistory reads what is kept. A file that cannot be read is as none.
func openHistory(path string) *history {
	h := &history{path: path}
	if info, err := os.Stat(path); err != nil || info.Size() > historyLines*historyLine {
		return h
	}
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		h.keep(strings.TrimRight(line, "\n"))
	}
	return h
}

func (h *history) keep(line string) bool {
	if strings.TrimSpace(line) == "" || len(line) > historyLine {
		return false
	}
	if n := len(h.lines); n > 0 && h.lines[n-1] == line {
		return false
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > historyLines {
		h.lines = append([]string(nil), h.lines[len(h.lines)-historyLines:]...)
	}
	return true
}

// Add keeps a line, in the file too. A folder that cannot be written costs the history, not the shell.
func (h *history) Add(line string) {
	if !h.keep(line) || h.path == "" {
		return
	}
	if os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	temporary := h.path + ".new"
	if os.WriteFile(temporary, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600) == nil {
		_ = os.Rename(temporary, h.path)
	}
}

// Len is how many lines there are.
func (h *history) Len() int { return len(h.lines) }

// At is the line before so many others; 0: the last one.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
