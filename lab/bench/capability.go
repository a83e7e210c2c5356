// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"isthmus/lab/tester"
)

// What the tester itself can do: the same packets over the same links to a program that does next to nothing, on the
// gateway's own CPU. It is the links' floor at the same time.

// limitRatio is how much faster than the gateway the tester must be shown to be.
const limitRatio = 1.3

const floorName = "dpdk-testpmd io"

// testpmd is a running dpdk-testpmd that forwards everything between two memif links.
type testpmd struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	log    bytes.Buffer
	exited chan struct{}
	dut    DUT
}

// startTestpmd runs it on one CPU, -1: not pinned.
func startTestpmd(ctx context.Context, mode string, access, core *wire, cpu int, opt *Options) (*testpmd, error) {
	program, err := exec.LookPath("dpdk-testpmd")
	if err != nil {
		return nil, fmt.Errorf("there is no dpdk-testpmd (package dpdk-dev)")
	}
	t := &testpmd{exited: make(chan struct{})}
	worker := strconv.Itoa(cpu)
	all := "(" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(allowedCPUs())), ","), "[]") + ")"
	if cpu < 0 {
		worker = all
	}
	buffer := 2048
	args := []string{
		"--lcores", "0@" + all + ",1@" + worker, "--no-pci", "--no-telemetry", "--log-level=error", "--iova-mode=va",
		"--vdev", "net_memif0,role=server,id=0,socket-abstract=no,socket=" + access.socket,
		"--vdev", "net_memif1,role=server,id=0,socket-abstract=no,socket=" + core.socket,
	}
	if opt.NoHuge {
		args = append(args, "--no-huge", "--no-shconf", "-m", "512")
	} else {
		args = append(args, "--in-memory", "--single-file-segments")
	}
	if opt.Profile == "jumbo" {
		buffer = jumboMTU + 284
	}
	args = append(args, "--", "--forward-mode="+mode, "--auto-start", "--nb-cores=1", "--rxd=1024", "--txd=1024",
		"--total-num-mbufs=16384", "--mbuf-size="+strconv.Itoa(buffer+128), "--disable-link-check", "--no-lsc-interrupt")
	t.cmd = exec.Command(program, args...)
	t.cmd.Stdout, t.cmd.Stderr = &t.log, &t.log
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if t.stdin, err = t.cmd.StdinPipe(); err != nil { // it runs until this closes
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		t.cmd.Wait()
		close(t.exited)
	}()
	t.dut = DUT{
		Name: "dpdk-testpmd", Exited: t.exited, Words: func() string { return lastLines(t.log.String()) },
		Links: map[string]Link{"access": {Socket: access.socket}, "core": {Socket: core.socket}},
	}
	return t, t.wait(ctx, access.socket, core.socket)
}

// wait returns when both sockets are there.
func (t *testpmd) wait(ctx context.Context, sockets ...string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		ready := true
		for _, socket := range sockets {
			if _, err := os.Stat(socket); err != nil {
				ready = false
			}
		}
		if ready {
			return nil
		}
		select {
		case <-t.exited:
			return fmt.Errorf("dpdk-testpmd ended at once (%s):\n%s", t.cmd.ProcessState, lastLines(t.log.String()))
		case <-ctx.Done():
			t.stop()
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.stop()
	return fmt.Errorf("dpdk-testpmd opens no sockets:\n%s", lastLines(t.log.String()))
}

func (t *testpmd) stop() {
	t.stdin.Close()
	end(t.cmd, t.exited)
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// capability measures, for each point, what comes back from a device that only relays: the tester's own limit, or the
// link's floor, whichever is lower.
func (m *outside) capability(ctx context.Context, s *scene, r *LinkResult) error {
	if m.opt.Link != LinkMemif {
		for i := range r.Points {
			r.Points[i].Tester = &TesterBlock{Limited: true, Error: "shown on memif links only"}
		}
		return nil
	}
	access, err := makeWire(ctx, m.opt.Link, m.dir, "fa")
	if err != nil {
		return err
	}
	core, err := makeWire(ctx, m.opt.Link, m.dir, "fc")
	if err != nil {
		return err
	}
	cpu := -1
	if len(m.opt.CPUs) > 0 {
		cpu = m.opt.CPUs[0]
	}
	t, err := startTestpmd(ctx, "io", access, core, cpu, &m.opt)
	if err != nil {
		for i := range r.Points {
			r.Points[i].Tester = &TesterBlock{Limited: true, Device: floorName, Error: err.Error()}
		}
		return nil
	}
	defer t.stop()
	for i := range r.Points {
		block := &TesterBlock{Device: floorName, Limited: true}
		r.Points[i].Tester = block
		run, err := m.relayed(ctx, t, s, &s.points[i], access, core)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			block.Error, _, _ = strings.Cut(err.Error(), "\n")
			continue // the measurement stands, marked
		}
		block.Version = run.Machine.DPDK // both load the same libraries
		best := headline(run)
		if best < 0 {
			block.Error = "no rate was found"
			continue
		}
		block.judge(run.Trials[best].OfferedPPS/1e6, &r.Points[i], r.TSCHz)
	}
	return nil
}

// judge compares the tester's rate with the gateway's.
func (b *TesterBlock) judge(mpps float64, p *Point, tscHz uint64) {
	b.Mpps = round6(mpps)
	if mpps > 0 {
		p.Floor = round1(float64(tscHz) / (mpps * 1e6))
	}
	if p.Mpps > 0 {
		b.Ratio = round3(mpps / p.Mpps)
	}
	b.Limited = b.Ratio < limitRatio
}

// relayed measures one point's packets through testpmd, from which they come as they went.
func (m *outside) relayed(ctx context.Context, t *testpmd, s *scene, pt *point, access, core *wire) (*tester.Result, error) {
	streams := append([]tester.Stream(nil), pt.streams...)
	for i := range streams {
		streams[i].Receive = streams[i].Send
	}
	p := s.profile(m.opt.Profile+"-floor", &m.opt, s.ports(access, core), streams)
	p.Run = m.plan(searchRough)
	what := pt.name + ", " + floorName
	opt := m.testerOptions(what)
	opt.Event = func(e tester.Event) { m.lines.event(what, e) }
	r, err := MeasureLink(ctx, t.dut, p, opt)
	m.lines.clear()
	return r, err
}
