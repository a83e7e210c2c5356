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
	"sync/atomic"

	"isthmus/lab/tester"
)

// dpdk is a DPDK program; port N is the N-th of the set-up.
type dpdk struct {
	program func(s *Setup) (string, error) // its path
	oneCPU  bool                           // its main thread forwards; else a second thread does, on lcore 1
	// arguments after the EAL's; may write files into s.Dir.
	arguments  func(s *Setup) ([]string, error)
	ready, bad string // its output when its ports wait for the tester, and after a fault
	memoryMB   int    // without huge pages
}

// socketBytes is the longest path that an address of a Unix socket holds.
const socketBytes = 107

// dpdkLink is one link of such a program.
type dpdkLink struct {
	vdev   string // its own end, as the EAL takes it
	far    tester.Port
	remove func()
}

// start starts it over a link.
func (d *dpdk) start(link string) func(ctx context.Context, s Setup) (*Running, error) {
	return func(ctx context.Context, s Setup) (*Running, error) {
		program, err := d.program(&s)
		if err != nil {
			return nil, err
		}
		arguments, err := d.arguments(&s)
		if err != nil {
			return nil, err
		}
		r := &Running{Ports: map[string]tester.Port{}}
		var links []dpdkLink
		stop := func() {}
		r.Stop = func() {
			stop()
			for _, l := range links {
				l.remove()
			}
		}
		for i, e := range s.Ends {
			l, err := makeLink(ctx, &s, link, i)
			if err != nil {
				r.Stop()
				return nil, err
			}
			links, r.Ports[e.Name] = append(links, *l), l.far
		}
		// Line buffered, although into a pipe: the lines show when it is ready.
		command := append([]string{"stdbuf", "-oL", program}, d.eal(&s, links)...)
		command = append(append(command, "--"), arguments...)
		p, err := spawn(command, []string{"RUNTIME_DIRECTORY=" + s.Dir})
		if err != nil {
			r.Stop()
			return nil, err
		}
		r.Command, r.Exited, r.Words, stop = command[2:], p.exited, p.words, p.stop
		if err := p.await(ctx, d.ready, d.bad); err != nil {
			r.Stop()
			return nil, err
		}
		return r, nil
	}
}

// makeLink makes the link of a port.
func makeLink(ctx context.Context, s *Setup, link string, port int) (*dpdkLink, error) {
	if link == LinkMemif {
		socket := filepath.Join(s.Dir, s.Ends[port].Name+".sock")
		if len(socket) > socketBytes {
			return nil, fmt.Errorf("%s is too long for a socket's path", socket)
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		l := memifLink(s, port, socket)
		return &l, nil
	}
	v, driver := vethPair(s, link, port)
	if err := v.Make(ctx); err != nil {
		return nil, err
	}
	vdev := fmt.Sprintf("%s%d,iface=%s", driver, port, v.Near)
	if link == LinkAFXDP {
		vdev += "," + tester.XDPNear
	}
	return &dpdkLink{vdev, tester.Port{Driver: driver, Device: v.Far}, v.Remove}, nil
}

func memifLink(s *Setup, port int, socket string) dpdkLink {
	vdev := fmt.Sprintf("net_memif%d,role=server,id=0,rsize=%d,socket-abstract=no,socket=%s,mac=%s", port,
		bits.Len(uint(max(s.Descriptors, 1)))-1, socket, s.Ends[port].MAC)
	far := tester.Port{Driver: "net_memif", Device: socket, Args: "id=0"}
	return dpdkLink{vdev, far, func() { os.Remove(socket) }}
}

// pairs numbers the veth pairs of this process: the name of an interface that goes away may be taken for a moment.
var pairs atomic.Int32

// vethPair is the pair of a port, not made yet, and the driver of its ends.
func vethPair(s *Setup, link string, port int) (v *tester.Veth, driver string) {
	name := fmt.Sprintf("isp%d-%d", os.Getpid()%100000, pairs.Add(1))
	v = &tester.Veth{Near: name + "n", Far: name + "f", MAC: s.Ends[port].MAC, MTU: tester.VethMTU}
	if link == LinkAFXDP {
		v.MTU = tester.XDPMTU
		return v, "net_af_xdp"
	}
	return v, "net_af_packet"
}

// eal are the options of DPDK itself: one CPU that forwards, no device but the ends of links, and nothing left on disk.
func (d *dpdk) eal(s *Setup, links []dpdkLink) []string {
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
	for _, l := range links {
		args = append(args, "--vdev="+l.vdev)
	}
	return args
}

// testpmd is DPDK's own tool for moving packets, in one of its forwarding modes.
func testpmd(mode, does string, change Change) *Peer {
	d := &dpdk{
		program: func(*Setup) (string, error) { return exec.LookPath("dpdk-testpmd") },
		arguments: func(s *Setup) ([]string, error) {
			descriptors := strconv.Itoa(s.Descriptors)
			return []string{
				"--forward-mode=" + mode, "--nb-cores=1", "--total-num-mbufs=32768", "--burst=64", "--rxd=" +
					descriptors,
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
		Start: d.start(LinkMemif),
	}
}
