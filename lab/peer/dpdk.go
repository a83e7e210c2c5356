// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"isthmus/lab/tester"
)

// dpdk is a DPDK program with two memif ports, of which port 0 is the access side.
type dpdk struct {
	program func(s *Setup) (string, error) // its path
	oneCPU  bool                           // its main thread forwards; else a second thread does, on lcore 1
	// arguments after the EAL's; may write files into s.Dir.
	arguments  func(s *Setup) ([]string, error)
	ready, bad string // what it prints when its ports wait for the tester, and when something is wrong
	memoryMB   int    // without huge pages
}

// socketBytes is the longest path that an address of a Unix socket holds.
const socketBytes = 107

func (d *dpdk) start(ctx context.Context, s Setup) (*Running, error) {
	program, err := d.program(&s)
	if err != nil {
		return nil, err
	}
	arguments, err := d.arguments(&s)
	if err != nil {
		return nil, err
	}
	sockets := map[string]string{access: filepath.Join(s.Dir, "access.sock"), core: filepath.Join(s.Dir, "core.sock")}
	for _, socket := range sockets {
		if len(socket) > socketBytes {
			return nil, fmt.Errorf("%s is too long for a socket's path", socket)
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	// Lines as they are printed, although into a pipe: they tell when it is ready.
	command := append([]string{"stdbuf", "-oL", program}, d.eal(&s, sockets)...)
	command = append(append(command, "--"), arguments...)
	p, err := spawn(command, []string{"RUNTIME_DIRECTORY=" + s.Dir})
	if err != nil {
		return nil, err
	}
	r := &Running{
		Command: command[2:], Exited: p.exited, Words: p.words,
		Ports: map[string]tester.Port{},
		Stop: func() {
			p.stop()
			for _, socket := range sockets {
				os.Remove(socket)
			}
		},
	}
	for name, socket := range sockets {
		r.Ports[name] = tester.Port{Driver: "net_memif", Device: socket, Args: "id=0"}
	}
	if err := p.await(ctx, d.ready, d.bad); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// eal are the options of DPDK itself: one CPU that forwards, no device but two memif servers, and nothing left on disk.
func (d *dpdk) eal(s *Setup, sockets map[string]string) []string {
	lcores := fmt.Sprintf("0@%d,1@%d", s.MainCPU, s.CPU)
	if d.oneCPU {
		lcores = fmt.Sprintf("0@%d", s.CPU)
	}
	args := []string{
		"--no-telemetry", "--no-pci", "--file-prefix", "isthmus-peer-" + strconv.Itoa(os.Getpid()), "-n", "1",
		"--lcores", lcores, "--main-lcore", "0",
	}
	if s.NoHuge {
		args = append(args, "--no-huge", "--no-shconf", "-m", strconv.Itoa(d.memoryMB))
	} else {
		args = append(args, "--in-memory", "--single-file-segments")
	}
	vdev := func(n int, socket, mac string) string {
		return fmt.Sprintf("--vdev=net_memif%d,role=server,id=0,rsize=%d,socket-abstract=no,socket=%s,mac=%s", n,
			bits.Len(uint(max(s.Descriptors, 1)))-1, socket, mac)
	}
	return append(args, vdev(0, sockets[access], s.AccessMAC), vdev(1, sockets[core], s.CoreMAC))
}

// testpmd is DPDK's own tool for moving packets, in one of its forwarding modes.
func testpmd(mode, does string, change Change) *Peer {
	d := &dpdk{
		program: func(*Setup) (string, error) { return exec.LookPath("dpdk-testpmd") },
		arguments: func(s *Setup) ([]string, error) {
			descriptors := strconv.Itoa(s.Descriptors)
			return []string{
				"--forward-mode=" + mode, "--nb-cores=1", "--total-num-mbufs=32768", "--burst=64", "--rxd=" + descriptors,
				"--txd=" + descriptors, "--no-lsc-interrupt", "--disable-link-check", "--no-flush-rx",
			}, nil
		},
		ready: "packet forwarding - ports=2", memoryMB: 256,
	}
	return &Peer{
		Name: "testpmd-" + mode, Does: does, Link: LinkMemif, Packets: Same, Change: change, Floor: true,
		Version: func(ctx context.Context, _ *Setup) (string, error) {
			if _, err := exec.LookPath("dpdk-testpmd"); err != nil {
				return "", fmt.Errorf("no dpdk-testpmd in PATH (package dpdk-dev)")
			}
			return output(ctx, "dpkg-query", "-W", "-f", "${Version}", "dpdk-dev")
		},
		Start: d.start,
	}
}
