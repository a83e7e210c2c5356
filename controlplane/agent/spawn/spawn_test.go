// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/testkit"
)

// output is what data planes said.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// spawner starts a script in place of a data plane.
func spawner(t *testing.T, script string) (*Spawner, *output) {
	t.Helper()
	program, o := t.TempDir()+"/dp", &output{}
	testkit.Must(t, os.WriteFile(program, []byte("#!/bin/sh\nulimit -c 0\n"+script), 0o700))
	return &Spawner{Program: program, Delay: time.Nanosecond, Most: time.Nanosecond, Output: o,
		Log: slog.New(slog.DiscardHandler)}, o
}

// ends has the data plane started until it ended so often.
func ends(t *testing.T, s *Spawner, times uint64) v1.Ended {
	t.Helper()
	testkit.Until(t, "ends", func() bool {
		if s.LastEnd().Times < times {
			s.Ensure()
		}
		return s.LastEnd().Times >= times
	})
	return s.LastEnd()
}

// A data plane that ends again and again says how, how often, since when, and its last words.
func TestEndsAgainAndAgain(t *testing.T) {
	s, said := spawner(t, `printf 'EAL: \033[31mno memory\033[0m\nPANIC in rte_eal_init()\n' >&2; kill -ABRT $$`)
	var heard []v1.Ended
	s.Ended = func(e v1.Ended) { heard = append(heard, e) }
	e := ends(t, s, 5)
	testkit.Equal(t, e.How, "ended by signal 6 (SIGABRT)", "how")
	testkit.Equal(t, strings.Join(e.Words, "\n"), "EAL: ?[31mno memory?[0m\nPANIC in rte_eal_init()", "words")
	testkit.ErrorIf(t, e.PID == 0 || e.Total != 5 || len(heard) != 5 || !e.Since.Equal(heard[0].Last) ||
		e.Last.Before(e.Since), "%+v of %d", e, len(heard))
	testkit.Equal(t, strings.Count(said.String(), "\033[31mno memory"), 5, "lines as they were said")
	status := v1.Status{DataPlane: v1.StateAway, DPRestart: s.Policy(), DPEnded: e}
	status.Explain()
	want := fmt.Sprintf("it ended by signal 6 (SIGABRT), 5 times in a row since %s; last words: "+
		"EAL: ?[31mno memory?[0m | PANIC in rte_eal_init()", e.Since.Format(time.RFC3339))
	testkit.Equal(t, status.Why, want, "in words")
}

func TestEndsWithAStatus(t *testing.T) {
	s, _ := spawner(t, "exit 7")
	s.Once = true
	e := ends(t, s, 1)
	testkit.Equal(t, e.How, "ended with exit status 7", "how")
	testkit.Equal(t, len(e.Words), 0, "words")
	status := v1.Status{DataPlane: v1.StateAway, DPRestart: s.Policy(), DPEnded: e}
	testkit.ErrorIf(t, !strings.HasSuffix(status.Away(), "by control.restart.policy it is not started again"), "%s",
		status.Away())
}

func TestDoesNotStart(t *testing.T) {
	s, _ := spawner(t, "")
	s.Program += ".missing"
	e := ends(t, s, 3)
	testkit.ErrorIf(t, e.PID != 0 || e.Times != 3 || !strings.HasPrefix(e.How, "does not start: ") ||
		!strings.Contains(e.How, s.Program), "%+v", e)
}

// What is kept has bounds, whatever is said: lines without an end, bytes that are no text, empty lines.
func TestLastWordsAreBounded(t *testing.T) {
	long := strings.Repeat("0", lineBytes)
	for script, want := range map[string]string{ // no more than a pipe takes at once
		`printf %030000d 1 >&2`:                        long,
		`seq 5000 >&2`:                                 "4996|4997|4998|4999|5000",
		`printf 'a\n\n\n  \nb\377\n' >&2`:              "a|b?",
		`printf '%09000d\nx\n%09000d\n' 1 1 >&2; exit`: long + "|x|" + long,
	} {
		s, _ := spawner(t, script)
		testkit.Equal(t, strings.Join(ends(t, s, 1).Words, "|"), want, "%s", script)
	}
}

// A run of more than ten seconds ends a row.
func TestARowOfEnds(t *testing.T) {
	s, _ := spawner(t, "")
	now := time.Unix(1_000_000, 0)
	for i, ran := range []time.Duration{time.Hour, 0, steady, steady + 1, time.Second} {
		s.note(now.Add(time.Duration(i)*time.Hour), ran, 1, "ended", nil)
		want := []v1.Ended{{Times: 1}, {Times: 2}, {Times: 3}, {Times: 1, Since: now.Add(3 * time.Hour)},
			{Times: 2, Since: now.Add(3 * time.Hour)}}[i]
		testkit.ErrorIf(t, s.ended.Times != want.Times || s.ended.Total != uint64(i+1) ||
			!want.Since.IsZero() && !s.ended.Since.Equal(want.Since), "%d: %+v", i, s.ended)
	}
}

// A data plane speaks on after its control plane went. The next one hears what it said meanwhile, and its last words.
func TestWordsOutliveTheControlPlane(t *testing.T) {
	s, said := spawner(t, `mkfifo "$0.go" "$0.end"
echo one >&2
read x <"$0.go"
seq 100000 >&2 || echo broken >&2
echo two >"$0.said"
read x <"$0.end"
echo three >&2`)
	say := func(name string) { testkit.Must(t, os.WriteFile(s.Program+name, []byte("x\n"), 0o600)) }
	s.Ensure()
	testkit.Until(t, "first word", func() bool { return said.String() == "one\n" })
	pid := s.Running(0)
	s.deaf()
	is := func(name string) bool { _, err := os.Stat(s.Program + name); return err == nil }
	say(".go")
	testkit.Until(t, "it speaks on", func() bool { return is(".said") })

	next, later := spawner(t, "exec tail -f /dev/null")
	next.Adopt(pid)
	testkit.Until(t, "what was said meanwhile", func() bool { return strings.Contains(later.String(), "\n99\n") })
	say(".end")
	testkit.Until(t, "its end", func() bool { return syscall.Kill(pid, 0) != nil })
	e := ends(t, next, 1)
	t.Cleanup(func() { kill(next.Running(0)) })
	testkit.ErrorIf(t, e.PID != pid || !strings.HasPrefix(e.How, "ended; ") ||
		!strings.HasSuffix(e.Words[len(e.Words)-1], "three"), "%+v", e)
}

// deaf is a control plane that reads no more.
func (s *Spawner) deaf() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words.from.Close()
}

func kill(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }
