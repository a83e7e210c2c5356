// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/agent/v1"
)

// process is a program that runs in a namespace of the lab and ends, at the latest, with us. When it ends by itself
// it is started again, as the units in deploy/systemd do.
type process struct {
	name    string
	argv    []string
	log     string
	quit    chan struct{} // closed by stop
	done    chan struct{} // no program runs any more, or will
	restart bool
	state   *os.ProcessState // of the last end
	pid     atomic.Int64
	held    atomic.Bool // not to be started again for now
}

// programs are what the lab keeps running.
type programs struct {
	*journal
	starter starter
	procs   []*process
	ended   chan *process // the first process that ended for good, and not by us
	running atomic.Bool   // all functions have been ready: an ended one is restarted
}

const (
	restartDelay = 100 * time.Millisecond
	earlyEnd     = 10 * time.Second // after such an early end another start may not help
	earlyEnds    = 5                // as many in a row end the lab
)

// spawn starts a program in a namespace, with its output in a log file.
func (s *programs) spawn(node, name, log string, restart bool, argv ...string) error {
	p := &process{
		name: name, log: log, restart: restart, quit: make(chan struct{}), done: make(chan struct{}),
		argv: append([]string{"nsenter", "--net=" + filepath.Join(netnsDir, Prefix+node), "--"}, argv...),
	}
	cmd, err := s.start(p)
	if err != nil {
		return err
	}
	s.procs = append(s.procs, p)
	go s.supervise(p, cmd)
	return nil
}

// start runs the program once.
func (s *programs) start(p *process) (*exec.Cmd, error) {
	file, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr = file, file
	// A group of its own: Ctrl-C reaches us alone, and we end it. When we are killed, the kernel ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.starter.do(cmd.Start); err != nil {
		return nil, err
	}
	p.pid.Store(int64(cmd.Process.Pid))
	return cmd, nil
}

// supervise keeps a program running until stop. A program that ends repeatedly is reported to Wait.
func (s *programs) supervise(p *process, cmd *exec.Cmd) {
	defer close(p.done)
	for early := 0; ; {
		began, exited := time.Now(), make(chan struct{})
		go func() {
			cmd.Wait()
			close(exited)
		}()
		select {
		case <-p.quit:
			terminate(cmd, exited)
			return
		case <-exited:
		}
		p.state = cmd.ProcessState
		if early++; time.Since(began) >= earlyEnd {
			early = 1
		}
		if !p.restart || !s.running.Load() || early == earlyEnds {
			s.tell(p)
			return
		}
		if !p.held.Load() {
			s.problem("%s ended (%s) and is started again", p.name, p.state)
		}
		for wait := true; wait; wait = p.held.Load() {
			select {
			case <-p.quit:
				return
			case <-time.After(restartDelay):
			}
		}
		var err error
		if cmd, err = s.start(p); err != nil {
			s.problem("%s: %v", p.name, err)
			s.tell(p)
			return
		}
	}
}

// Reports that a process is gone for good; the first one ends the lab.
func (s *programs) tell(p *process) {
	select {
	case s.ended <- p:
	default:
	}
}

// named are the processes with a name, or of a node ("* of gw1").
func (s *programs) named(name string) []*process {
	var list []*process
	node, all := strings.CutPrefix(name, "* ")
	for _, p := range s.procs {
		if p.name == name || all && strings.HasSuffix(p.name, " "+node) {
			list = append(list, p)
		}
	}
	return list
}

// refusals are functions' last refused PFCP requests: an answer has a cause, the log has the reason.
func (s *programs) refusals() string {
	text := ""
	for _, p := range s.procs {
		b, _ := os.ReadFile(p.log)
		last := ""
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, "PFCP request refused") {
				last = "\n" + p.name + ": " + strings.TrimSpace(line)
			}
		}
		text += last
	}
	return text
}

// starter is the thread that starts processes. The kernel sends Pdeathsig when the thread ends that started the
// process, not when the program does; threads of inside() end all the time, this one does not.
type starter chan func()

func newStarter() starter {
	s := make(starter)
	go func() {
		runtime.LockOSThread() // and never unlocked
		for f := range s {
			f()
		}
	}()
	return s
}

func (s starter) do(f func() error) error {
	done := make(chan error, 1)
	s <- func() { done <- f() }
	return <-done
}

// terminate asks a program to end, and kills it when it does not within two seconds.
func terminate(cmd *exec.Cmd, exited <-chan struct{}) {
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(2 * time.Second):
		cmd.Process.Kill()
		<-exited
	}
}

// stop ends the process for good.
func (p *process) stop() {
	close(p.quit)
	<-p.done
}

// words are the last lines of the log.
func (p *process) words() string {
	b, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// startFunctions writes the configurations and starts all functions side by side.
func (l *Lab) startFunctions(ctx context.Context) error {
	for _, f := range l.top.functions {
		text, err := l.config(f)
		if err != nil {
			return err
		}
		dir := l.folder(f)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		file := filepath.Join(dir, "isthmus.yaml")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
		plan, err := plan.Make(file, text)
		if err != nil {
			return err
		}
		args := spawn.Arguments(filepath.Join(dir, "dp.sock"), plan.HugePages)
		log := filepath.Join(dir, "isthmus-dp.log")
		err = l.spawn(f.name, "isthmus-dp of "+f.name, log, true, append([]string{l.dp}, args...)...)
		if err != nil {
			return err
		}
		log = filepath.Join(dir, "isthmus.log")
		err = l.spawn(f.name, "isthmus of "+f.name, log, true, l.program, "run", "-c", file, "--no-spawn", "--metrics",
			"off",
			"--socket", filepath.Join(dir, "isthmus.sock"), "--dp-socket", filepath.Join(dir, "dp.sock"))
		if err != nil {
			return err
		}
	}
	for _, f := range l.top.functions {
		if err := l.ready(ctx, f); err != nil {
			return err
		}
	}
	l.running.Store(true)
	return nil
}

// startTime is how long a function may take until its data plane holds its configuration.
const startTime = 30 * time.Second

func (l *Lab) ready(ctx context.Context, f *function) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var status v1.Status
	for {
		b, err := get(ctx, filepath.Join(l.folder(f), "isthmus.sock"), http.MethodGet, "/v1/status")
		if err == nil && json.Unmarshal(b, &status) == nil && status.DataPlane == v1.StateReady {
			return nil
		}
		if status.DataPlane == v1.StateRefused {
			return fmt.Errorf("%s: %s", f.name, status.LastError)
		}
		select {
		case p := <-l.ended:
			return fmt.Errorf("%s ended at once (%s):\n%s", p.name, p.state, p.words())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %s %s", f.name, startTime, status.DataPlane, status.LastError)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// get asks an HTTP server at a Unix socket.
func get(ctx context.Context, socket, method, path string) ([]byte, error) {
	return call(ctx, socket, method, path, nil)
}

// call is get with something to send.
func call(ctx context.Context, socket, method, path string, body []byte) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://isthmus"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := readAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(b)))
	}
	return b, err
}
