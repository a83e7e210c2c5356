// SPDX-License-Identifier: Apache-2.0

// Package spawn finds the project's programs, starts the data plane, and knows how it ended.
package spawn

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/controlplane/agent/v1"
)

// steady is how long a data plane must have run for its end not to count as a failed start.
const steady = 10 * time.Second

// Spawner starts the data plane as a process that outlives us: in its own session, with a pipe to us that does not
// break. After our own restart it adopts the data plane that still runs. Methods may be called from any goroutine; of
// nil, the state of a data plane that something else starts.
type Spawner struct {
	Program   string // empty: as FindDP says
	Arguments []string
	Once      bool             // start it once only
	Delay     time.Duration    // the first pause between two starts
	Most      time.Duration    // the longest one
	Output    io.Writer        // takes what it says; nil: our standard error
	Ended     func(e v1.Ended) // hears of each end, beside everything else; nil: nothing does
	Log       *slog.Logger

	mu      sync.Mutex
	child   *os.Process // ours and alive
	adopted int         // pid of a process that we did not start; 0: none
	words   *words      // of what runs; nil: it says them elsewhere
	gone    time.Time   // since when the adopted one does not answer
	started time.Time
	starts  int
	next    time.Time // not to be started before
	pause   time.Duration
	ended   v1.Ended
}

// Policy is who starts the data plane, as control.restart.policy has it.
func (s *Spawner) Policy() string {
	switch {
	case s == nil:
		return "external"
	case s.Once:
		return "never"
	}
	return "always"
}

// LastEnd is how the data plane ended last, and how often in a row.
func (s *Spawner) LastEnd() v1.Ended {
	if s == nil {
		return v1.Ended{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// note records an end, or a start that failed, after so long a run. The caller holds the lock.
func (s *Spawner) note(now time.Time, ran time.Duration, pid int, how string, words []string) {
	e := &s.ended
	if e.Times == 0 || ran > steady {
		e.Times, e.Since = 0, now
	}
	e.How, e.PID, e.Last, e.Words = how, pid, now, words
	e.Times++
	e.Total++
	s.Log.Warn("data plane ended", "how", how, "pid", pid, "times", e.Times, "words", strings.Join(words, " | "))
	if s.Ended != nil {
		s.Ended(*e)
	}
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
		return "", fmt.Errorf("%w, or name it with --dp-binary", err)
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
		return "", fmt.Errorf("%s is neither beside this program nor in PATH: install it there", name)
	}
	return path, nil
}

// Adopt notes that a data plane answers.
func (s *Spawner) Adopt(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = time.Time{}
	if s.child != nil && s.child.Pid == pid || s.adopted == pid {
		return
	}
	var err error
	if s.words, err = listenTo(pid, s.output()); err != nil {
		s.Log.Info("what the data plane says is not heard", "pid", pid, "error", err)
	}
	s.adopted, s.started = pid, time.Now()
}

func (s *Spawner) output() io.Writer {
	if s.Output == nil {
		return os.Stderr
	}
	return s.Output
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
	} else if s.adopted != 0 {
		s.note(now, now.Sub(s.started), s.adopted,
			"ended; its status is not known, as a former control plane had started it", s.words.last())
	}
	s.adopted, s.words = 0, nil
	if err := s.start(now); err != nil {
		s.note(now, 0, 0, "does not start: "+err.Error(), []string{})
	}
}

func (s *Spawner) start(now time.Time) error {
	s.pause = max(s.Delay, min(2*s.pause, s.Most))
	s.next = now.Add(s.pause)
	program, err := FindDP(s.Program)
	if err != nil {
		return err
	}
	words, cmd, err := s.run(program)
	if err != nil {
		return err
	}
	s.child, s.words, s.started = cmd.Process, words, now
	s.starts++
	s.Log.Info("data plane started", "pid", cmd.Process.Pid, "program", program)
	go func() {
		cmd.Wait() // its state says it
		last := words.last()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.child = nil
		ran := time.Since(s.started)
		if ran > steady {
			s.pause, s.next = 0, time.Time{}
		}
		s.note(time.Now(), ran, cmd.Process.Pid, how(cmd.ProcessState), last)
	}()
	return nil
}

// run starts the program with a pipe of which it has both ends, and hears it.
func (s *Spawner) run(program string) (*words, *exec.Cmd, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	defer w.Close()
	ours, err := unix.FcntlInt(r.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, s.Arguments...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = w, w, []*os.File{r} // descriptor ownEnd
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		syscall.Close(ours)
		return nil, nil, err
	}
	// Behind Start(), which undoes it. The pipe to a control plane that hangs, or is not there, fills: then words
	// are lost, and no packet waits for them.
	syscall.SetNonblock(int(w.Fd()), true)
	syscall.SetNonblock(ours, true)
	return hear(os.NewFile(uintptr(ours), "words"), s.output()), cmd, nil
}

// how a process ended.
func how(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return "ended with " + state.String() // exit status 1
	}
	return fmt.Sprintf("ended by signal %d (%s)%s", status.Signal(), unix.SignalName(status.Signal()),
		meaning[status.Signal()])
}

// meaning of signals that the process can say nothing about itself.
var meaning = map[syscall.Signal]string{
	syscall.SIGILL:  ", so its program may be for another processor: build it with ISTHMUS_PORTABLE=1",
	syscall.SIGKILL: ", perhaps by the kernel for lack of memory (dmesg, memory limit of the cgroup)",
	syscall.SIGBUS:  ", perhaps for lack of huge pages or of room in /dev/shm",
}
