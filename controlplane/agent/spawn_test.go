// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// A data plane that never listens, and writes down which signals it got.
const deaf = `#!/bin/sh
trap 'echo TERM >>%[1]s/got' TERM
trap 'echo USR1 >>%[1]s/got' USR1
tail -f /dev/null &
echo $$ >%[1]s/pid
while kill -0 $! 2>/dev/null; do wait $!; done
`

// SIGTERM leaves the data plane, with --stop-both it ends it; SIGINT ends it, connected or not.
func TestWhoIsStoppedWithUs(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		both   bool
		want   string
	}{{syscall.SIGTERM, false, "USR1\n"}, {syscall.SIGTERM, true, "TERM\n"}, {syscall.SIGINT, false, "TERM\n"}} {
		dir := t.TempDir()
		program := dir + "/dp"
		testkit.Must(t, os.WriteFile(program, fmt.Appendf(nil, deaf, dir), 0o700))
		plan := &plan.Plan{Control: config.Control{Restart: config.Restart{Delay: 1e6, MaxDelay: 20e6}}}
		a := made(t, Options{Socket: dir + "/isthmus.sock", DPSocket: dir + "/none.sock", DPBinary: program,
			Metrics: "off", Restart: "always", StopBoth: c.both}, plan)
		done := make(chan error, 1)
		go func() { done <- a.Serve(t.Context()) }()
		var pid int
		testkit.Until(t, "started", func() bool {
			data, _ := os.ReadFile(dir + "/pid")
			n, _ := fmt.Sscanln(string(data), &pid)
			return n == 1
		})
		t.Cleanup(func() { syscall.Kill(-pid, syscall.SIGKILL) })
		testkit.Must(t, syscall.Kill(os.Getpid(), c.signal))
		testkit.Must(t, testkit.Receive(t, done))
		if !strings.HasPrefix(c.want, "TERM") {
			syscall.Kill(pid, syscall.SIGUSR1) // by then it has got what was sent before
		}
		var got string
		testkit.Until(t, "a signal", func() bool {
			data, _ := os.ReadFile(dir + "/got")
			got = string(data)
			return got != ""
		})
		testkit.Equal(t, got, c.want, "signals to the data plane after %v, both %v", c.signal, c.both)
	}
}

// An option without effect is refused.
func TestStopBothNeedsADataPlaneOfOurs(t *testing.T) {
	file := t.TempDir() + "/file.yaml"
	testkit.Must(t, os.WriteFile(file, []byte("control: {restart: {policy: external}}\n"), 0o600))
	_, err := New(Options{File: file, StopBoth: true, State: t.TempDir()})
	testkit.Refused(t, err, "--stop-both")
}

// How a data plane ended is in the status, in an event and in the metrics.
func TestEndedDataPlane(t *testing.T) {
	dir := t.TempDir()
	program := dir + "/dp"
	testkit.Must(t, os.WriteFile(program, []byte("#!/bin/sh\necho no memory >&2\nexit 3\n"), 0o700))
	plan := &plan.Plan{Control: config.Control{Restart: config.Restart{Delay: 1, MaxDelay: 1}}}
	a := made(t, Options{Socket: dir + "/isthmus.sock", DPSocket: dir + "/none.sock", DPBinary: program,
		Metrics: "off", Restart: "always"}, plan)
	running(t, a)
	testkit.Until(t, "three ends", func() bool { return a.owner.Status().DPEnded.Times >= 3 })
	s := a.owner.Status()
	testkit.ErrorIf(t, s.DPRestart != "always" || !strings.Contains(s.Why, "ended with exit status 3, ") ||
		!strings.HasSuffix(s.Why, "; last words: no memory"), "%+v", s)
	list := told(t, a, "dataplane.ended")
	testkit.ErrorIf(t, len(list) < 3 || list[2].Subject != "ended with exit status 3" ||
		fmt.Sprint(list[2].Fields["words"]) != "[no memory]" || fmt.Sprint(list[2].Fields["times"]) != "3",
		"%+v", list)
	figures := a.scraper.Snapshot(t.Context())
	testkit.ErrorIf(t, figures.Ends < 3 || figures.Connects != 0, "%+v", figures)
}

// What something else starts is not ours to know about; the status says where to look.
func TestStatusOfAnotherSDataPlane(t *testing.T) {
	dir := t.TempDir()
	a := made(t, Options{Socket: dir + "/isthmus.sock", DPSocket: dir + "/none.sock", Metrics: "off",
		Restart: "external"}, &plan.Plan{})
	s := a.owner.Status()
	testkit.ErrorIf(t, s.DPRestart != "external" || !strings.Contains(s.Why, "journalctl -u isthmus-dp"),
		"%+v", s)
}
