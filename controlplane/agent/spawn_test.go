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
