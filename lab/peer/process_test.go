// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestProcessIsAwaitedAndEnded(t *testing.T) {
	p, err := spawn([]string{"sh", "-c", "trap '' INT; echo working; while read -r line; do :; done; exec cat " +
		"/dev/zero >/dev/null"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.await(context.Background(), "working", "failed"); err != nil {
		t.Error(err)
	}
	p.stop() // it does not listen, and is killed
	p.stop()
	if err := syscall.Kill(p.cmd.Process.Pid, 0); err == nil {
		t.Error("it still runs")
	}
}

func TestProcessThatDoesNotStart(t *testing.T) {
	for script, want := range map[string]string{
		"echo no memory; exit 3":                      "no memory",
		`echo 'Command "link" failed.'; read -r line`: "does not start",
	} {
		p, err := spawn([]string{"sh", "-c", script}, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = p.await(context.Background(), "working", " failed.")
		p.stop()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestLogKeepsBothEnds(t *testing.T) {
	var l logTail
	l.Write([]byte("begin "))
	for range 100 {
		l.Write(make([]byte, 1000))
	}
	l.Write([]byte(" end"))
	if all := l.all(); !strings.HasPrefix(all, "begin ") || !strings.HasSuffix(all, " end") || len(all) > 2*logPart {
		t.Errorf("%d bytes", len(all))
	}
}

func TestExamplesThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	setup := testSetup()
	setup.ProgramsFolder = dir
	ctx := context.Background()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	version := func(want string) {
		t.Helper()
		for _, p := range examples() {
			if p.Name != "qos_sched" {
				continue
			}
			if _, err := p.Version(ctx, &setup); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	version("run scripts/peers.sh")
	write("qos_sched.failed", "main.c:1: no such file", 0o644)
	version("no such file")
	write("qos_sched", "", 0o755)
	version("run scripts/peers.sh")
	write("VERSION", "dpdk 1.0-none\n", 0o644)
	version("built from 1.0-none")
}

// The programs' configurations name both ports and the tester's addresses.
func TestConfigurations(t *testing.T) {
	setup := testSetup()
	script := pipelineScript(&setup)
	for _, want := range []string{
		"link LINK0 dev net_memif0 rxq 1 1024 MEMPOOL0 txq 1 1024 promiscuous on\n", Network(0) +
			" 24 action fwd port 0 encap ether " + setup.Ends[0].FarMAC,
		Network(1) + " 24 action fwd port 1 encap ether " + setup.Ends[1].FarMAC,
	} {
		if !strings.Contains(script, want) {
			t.Errorf("the pipeline's script lacks %q:\n%s", want, script)
		}
	}
	if !strings.HasSuffix(script, "thread 1 pipeline PIPELINE0 enable\n") {
		t.Error("the pipeline must be enabled last: that line says that it is ready")
	}
	if n := strings.Count(qosProfile(), " rate = "+portRate); n != 2*14 {
		t.Errorf("%d of 28 rates are the port's", n)
	}
	d := ipPipeline()
	links := []dpdkLink{memifLink(&setup, 0, "/tmp/a"), memifLink(&setup, 1, "/tmp/c")}
	eal := strings.Join(d.eal(&setup, links), " ")
	for _, want := range []string{"--in-memory", "rsize=10,", "socket=/tmp/c,mac=" + setup.Ends[1].MAC,
		"--lcores 0@0,1@1"} {
		if !strings.Contains(eal, want) {
			t.Errorf("EAL options lack %q: %s", want, eal)
		}
	}
	setup.NoHuge = true
	if eal = strings.Join(d.eal(&setup, links), " "); strings.Contains(eal, "--in-memory") ||
		!strings.Contains(eal, "--no-huge") {
		t.Errorf("without huge pages: %s", eal)
	}
}
