// SPDX-License-Identifier: Apache-2.0

// Package spawn finds the project's programs, and starts the data plane.
package spawn

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

// steady is how long a data plane must have run for its end not to count as a failed start.
const steady = 10 * time.Second

// Spawner starts the data plane as a process that outlives us: in its own session, with our standard error, without
// pipes. After our restart it adopts the running data plane. Any goroutine may call it.
type Spawner struct {
	Program   string // empty: as FindDP says
	Arguments []string
	Once      bool          // start it once only
	Delay     time.Duration // the first pause between two starts
	Most      time.Duration // the longest one
	Log       *slog.Logger

	mu      sync.Mutex
	child   *os.Process // ours and alive
	adopted int         // pid of a process that we did not start; 0: none
	gone    time.Time   // since when the adopted one does not answer
	started time.Time
	starts  int
	next    time.Time // not to be started before
	pause   time.Duration
}

// Arguments are those with which a data plane is started; hugePages is the configuration's word.
func Arguments(socket, hugePages string) []string {
	huge := map[string]string{"on": "yes", "off": "no"}[hugePages]
	return []string{"--socket", socket, "--huge", cmp.Or(huge, "auto")}
}

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

// Adopt notes that a data plane answers.
func (s *Spawner) Adopt(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = time.Time{}
	if s.child == nil || s.child.Pid != pid {
		s.adopted = pid
	}
}

// Running returns the process that we started, else the last connected one; 0: none.
func (s *Spawner) Running(connected int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != nil {
		return s.child.Pid
	}
	return connected
}

// Ensure starts the data plane unless one of ours is alive or it is too early. Called when none listens.
func (s *Spawner) Ensure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.child != nil || now.Before(s.next) || (s.Once && s.starts > 0) {
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
		s.Log.Error("cannot start the data plane", "error", err)
	}
}

func (s *Spawner) start(now time.Time) error {
	s.pause = max(s.Delay, min(2*s.pause, s.Most))
	s.next = now.Add(s.pause)
	program, err := FindDP(s.Program)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, s.Arguments...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr // files, not pipes: they stay valid when we die
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.child, s.started = cmd.Process, now
	s.starts++
	s.Log.Info("data plane started", "pid", cmd.Process.Pid, "program", program)
	go func() {
		err := cmd.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.child = nil
		if time.Since(s.started) > steady {
			s.pause, s.next = 0, time.Time{}
		}
		s.Log.Warn("data plane ended", "pid", cmd.Process.Pid, "status", cmd.ProcessState.String(), "error", err)
	}()
	return nil
}
