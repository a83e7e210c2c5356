// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"isthmus/lab/tester"
)

// SwitchOVS is Open vSwitch with its DPDK datapath (Debian: openvswitch-switch-dpdk), as between virtual machines. Each
// port of a function, and of the tester, is a vhost-user port of it, and it relays every hop.
const SwitchOVS = "ovs"

const (
	ovsDaemon = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
	ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"
	ovsBridge = "br"
	ovsMemory = 512 // MB
)

// ovs is a switch of our own: database, sockets and files are in its folder, nothing of the system's switch is touched.
type ovs struct {
	dir      string
	pmds     int // polling threads
	database *program
	daemon   *program
	ports    int // made so far
}

// program is a child of the switch.
type program struct {
	cmd    *exec.Cmd
	log    bytes.Buffer
	exited chan struct{}
}

// missingOVS returns which of its parts are not installed.
func missingOVS() error {
	for _, file := range []string{ovsDaemon, ovsSchema} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w (package openvswitch-switch-dpdk)", err)
		}
	}
	return nil
}

func startOVS(ctx context.Context, m *outside) (fabric, error) {
	if m.opt.NoHuge {
		return nil, errors.New("vhost-user shares memory between programs and needs huge pages")
	}
	if err := missingOVS(); err != nil {
		return nil, err
	}
	f := &ovs{dir: filepath.Join(m.dir, "ovs"), pmds: 1}
	if err := f.start(ctx, m.opt.SwitchCPUs, shared(append(append([]int(nil), m.opt.SwitchCPUs...),
		m.opt.CPUs...))); err != nil {
		f.remove()
		return nil, err
	}
	return f, nil
}

func (f *ovs) path(name string) string { return filepath.Join(f.dir, name) }

// start runs database and switch. cpus are those of its polling threads; when they are shared, the threads sleep
// without work.
func (f *ovs) start(ctx context.Context, cpus []int, sharing bool) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if _, err := f.tool(ctx, "ovsdb-tool", "create", f.path("conf.db"), ovsSchema); err != nil {
		return err
	}
	var err error
	if f.database, err = f.run("ovsdb-server", f.path("conf.db"), "--remote=punix:"+f.path("db.sock"),
		"--unixctl="+f.path("db.ctl"), "--pidfile="+f.path("db.pid")); err != nil {
		return err
	}
	if err := f.wait(ctx, f.database, "db.sock"); err != nil {
		return err
	}
	settings := []string{"other_config:dpdk-init=true", fmt.Sprintf("other_config:dpdk-socket-mem=%d", ovsMemory),
		`other_config:dpdk-extra="--in-memory --no-pci --no-telemetry"`}
	if len(cpus) > 0 {
		mask := uint64(0)
		for _, cpu := range cpus {
			mask |= 1 << (cpu & 63)
		}
		settings = append(settings, fmt.Sprintf("other_config:pmd-cpu-mask=%#x", mask))
		f.pmds = len(cpus)
	}
	if sharing || len(cpus) == 0 {
		settings = append(settings, "other_config:pmd-maxsleep=50") // µs
	}
	if err := f.vsctl(ctx, "--no-wait", "init"); err != nil {
		return err
	}
	if err := f.vsctl(ctx, append([]string{"--no-wait", "set", "Open_vSwitch", "."}, settings...)...); err != nil {
		return err
	}
	if f.daemon, err = f.run(ovsDaemon, "unix:"+f.path("db.sock"), "--unixctl="+f.path("vs.ctl"),
		"--pidfile="+f.path("vs.pid")); err != nil {
		return err
	}
	return f.vsctl(ctx, "--timeout=30", "add-br", ovsBridge, "--", "set", "bridge", ovsBridge, "datapath_type=netdev",
		"fail-mode=secure")
}

// environment makes the tools look into our folder.
func (f *ovs) environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+f.dir, "OVS_DBDIR="+f.dir, "OVS_LOGDIR="+f.dir, "OVS_SYSCONFDIR="+f.dir)
}

// tool runs one of the switch's command line programs.
func (f *ovs) tool(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = f.environment()
	out, err := cmd.CombinedOutput()
	if err == nil {
		return string(out), nil
	}
	words := ""
	if f.daemon != nil {
		select {
		case <-f.daemon.exited:
			words = "\n" + lastLines(f.daemon.log.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return "", fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, lastLines(string(out)), words)
}

func (f *ovs) vsctl(ctx context.Context, args ...string) error {
	_, err := f.tool(ctx, "ovs-vsctl", append([]string{"--db=unix:" + f.path("db.sock")}, args...)...)
	return err
}

func (f *ovs) run(name string, args ...string) (*program, error) {
	p := &program{exited: make(chan struct{})}
	p.cmd = exec.Command(name, args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = f.environment(), &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// wait returns when a socket exists.
func (f *ovs) wait(ctx context.Context, p *program, socket string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if _, err := os.Stat(f.path(socket)); err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended at once (%s):\n%s", p.cmd.Path, p.cmd.ProcessState, lastLines(p.log.String()))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s makes no %s:\n%s", p.cmd.Path, socket, "it still runs")
}

// link makes two ports that the switch connects.
func (f *ovs) link(ctx context.Context, name string) (left, right string, err error) {
	ends := [2]string{name + "l", name + "r"}
	for i, port := range ends {
		f.ports++
		err := f.vsctl(ctx, "--timeout=30", "add-port", ovsBridge, port, "--", "set", "Interface", port,
			"type=dpdkvhostuser",
			fmt.Sprintf("ofport_request=%d", f.ports))
		if err != nil {
			return "", "", err
		}
		if err := f.wait(ctx, f.daemon, ends[i]); err != nil {
			return "", "", err
		}
	}
	for _, way := range [][2]int{{f.ports - 1, f.ports}, {f.ports, f.ports - 1}} {
		flow := fmt.Sprintf("in_port=%d,actions=output:%d", way[0], way[1])
		if _, err := f.tool(ctx, "ovs-ofctl", "add-flow", "unix:"+f.path(ovsBridge+".mgmt"), flow); err != nil {
			return "", "", err
		}
	}
	return f.path(ends[0]), f.path(ends[1]), nil
}

// gatewayEnd is the line of a gateway's port at a socket of the switch.
func gatewayEnd(socket string) *wire {
	return &wire{gateway: fmt.Sprintf("driver: net_virtio_user, device: '%s', args: 'queue_size=1024'", socket),
		remove: func() {}}
}

func (f *ovs) edge(ctx context.Context, name string) (*wire, error) {
	near, far, err := f.link(ctx, name)
	if err != nil {
		return nil, err
	}
	w := gatewayEnd(near)
	w.far = tester.Port{Driver: "net_virtio_user", Device: far, Args: "queue_size=1024", Descriptors: 1024}
	return w, nil
}

func (f *ovs) joint(ctx context.Context, name string) (near, far *wire, err error) {
	left, right, err := f.link(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return gatewayEnd(left), gatewayEnd(right), nil
}

func (f *ovs) ready(context.Context) error { return nil }

func (f *ovs) relays() []relay { return []relay{f} }
func (f *ovs) name() string    { return "ovs-vswitchd" }
func (f *ovs) pids() []int     { return []int{f.daemon.cmd.Process.Pid} }
func (f *ovs) cores() int      { return f.pmds }

var ovsDropped = regexp.MustCompile(`\b(?:drop|ovs_[a-z_]+_drops)=(\d+)`)

// drops are those of all ports, both ways. vhost-user ports have them among the counters that only OpenFlow 1.4 shows.
func (f *ovs) drops(ctx context.Context) (uint64, error) {
	text, err := f.tool(ctx, "ovs-ofctl", "-O", "OpenFlow14", "dump-ports", "unix:"+f.path(ovsBridge+".mgmt"))
	return dropsIn(text), err
}

func dropsIn(text string) (sum uint64) {
	for _, m := range ovsDropped.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseUint(m[1], 10, 64)
		sum += n
	}
	return sum
}

func (f *ovs) remove() {
	for _, p := range []*program{f.daemon, f.database} {
		if p != nil {
			end(p.cmd, p.exited)
		}
	}
	os.RemoveAll(f.dir)
}
