// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// steady is how long a data plane must have run for its end not to count as another failure to start.
const steady = 10 * time.Second

// spawner starts the data plane as a process that outlives us: in its own session, with our standard error and no pipe
// that would break. After our own restart it adopts the data plane that still runs.
type spawner struct {
	program string
	args    []string
	once    bool // start it once only
	delay   time.Duration
	most    time.Duration
	log     *slog.Logger

	mu      sync.Mutex
	child   *os.Process // ours and alive
	adopted int         // pid of one that we did not start, 0 none
	gone    time.Time   // since when the adopted one does not answer
	started time.Time
	starts  int
	next    time.Time // not to be started before
	pause   time.Duration
}

// supervisor returns the spawner that the policy asks for, nil for "external".
func (a *Agent) supervisor() *spawner {
	if !a.spawns() {
		return nil
	}
	r := a.plan.Control.Restart
	return &spawner{
		program: cmp.Or(a.opt.DPBinary, r.Program),
		args:    DPArguments(a.opt.DPSocket, a.plan),
		once:    a.opt.Restart == "never",
		delay:   time.Duration(r.DelayMS) * time.Millisecond,
		most:    time.Duration(r.MaxDelay) * time.Millisecond,
		log:     a.log,
	}
}

// spawns tells that the data plane is ours to start and stop.
func (a *Agent) spawns() bool { return a.opt.Restart == "always" || a.opt.Restart == "never" }

// FindDP returns the path of isthmus-dp: as given, beside this program, or in PATH.
func FindDP(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	path, err := FindProgram("isthmus-dp")
	if err != nil {
		return "", fmt.Errorf("%w; name it with --dp-binary", err)
	}
	return path, nil
}

// FindProgram returns the path of a program of ours: beside this one, or in PATH.
func FindProgram(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this program nor in PATH", name)
	}
	return path, nil
}

// adopt notes that a data plane answers.
func (s *spawner) adopt(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = time.Time{}
	if s.child == nil || s.child.Pid != pid {
		s.adopted = pid
	}
}

// running returns the process that we started, else the one that was connected last; 0 for none.
func (s *spawner) running(connected int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		return s.child.Pid
	}
	return connected
}

// ensure starts the data plane unless one of ours is alive or it is too early. Called when nobody listens.
func (s *spawner) ensure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.child != nil || now.Before(s.next) || (s.once && s.starts > 0) {
		return
	}
	if s.adopted != 0 && syscall.Kill(s.adopted, 0) == nil {
		// Alive but not listening: on its way down. Give it time, then take its place.
		if s.gone.IsZero() {
			s.gone = now
		}
		if now.Sub(s.gone) < 2*time.Second {
			return
		}
	}
	s.adopted = 0
	if err := s.start(now); err != nil {
		s.log.Error("cannot start the data plane", "error", err)
	}
}

func (s *spawner) start(now time.Time) error {
	s.pause = max(s.delay, min(2*s.pause, s.most))
	s.next = now.Add(s.pause)
	program, err := FindDP(s.program)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, s.args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr // files, not pipes: they stay valid when we die
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.child, s.started = cmd.Process, now
	s.starts++
	s.log.Info("data plane started", "pid", cmd.Process.Pid, "program", program)
	go func() {
		err := cmd.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.child = nil
		if time.Since(s.started) > steady {
			s.pause, s.next = 0, time.Time{}
		}
		s.log.Warn("data plane ended", "pid", cmd.Process.Pid, "status", fmt.Sprint(cmd.ProcessState), "error", err)
	}()
	return nil
}
