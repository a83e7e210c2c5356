// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that runs beside us and ends, at the latest, with us.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // open until the end: some end when it closes
	log    logTail
	exited chan struct{}
	once   sync.Once
}

// startTime is how long a program may take until its ports wait for the tester.
const startTime = 30 * time.Second

// spawn starts a program. `environment` is added to ours.
func spawn(command, environment []string) (*process, error) {
	p := &process{exited: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// A process group of its own: Ctrl-C reaches us alone, and we end it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// await waits until the program has printed one of the texts. It fails when it ends, takes too long, or prints
// `bad` before.
func (p *process) await(ctx context.Context, good, bad string) error {
	limit := time.NewTimer(startTime)
	defer limit.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		said := p.log.all()
		if bad != "" && strings.Contains(said, bad) {
			return fmt.Errorf("it does not start:\n%s", p.words())
		}
		if strings.Contains(said, good) {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("it ended at once (%s):\n%s", p.cmd.ProcessState, p.words())
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("it is not ready after %s:\n%s", startTime, p.words())
		case <-look.C:
		}
	}
}

// words are the last lines that it printed.
func (p *process) words() string {
	lines := strings.Split(strings.TrimSpace(p.log.all()), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// stop asks the program to end, and kills it a second later. DPDK programs leave nothing behind (--in-memory), and some
// do not end by themselves without their link.
func (p *process) stop() {
	p.once.Do(func() {
		p.cmd.Process.Signal(syscall.SIGINT)
		p.stdin.Close()
		select {
		case <-p.exited:
		case <-time.After(time.Second):
			syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.exited
		}
	})
}

// logTail keeps the first and the last of what is written to it.
type logTail struct {
	mu         sync.Mutex
	head, last []byte
}

const logPart = 16 << 10

func (l *logTail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	if room := logPart - len(l.head); room > 0 {
		part := b[:min(room, n)]
		l.head, b = append(l.head, part...), b[len(part):]
	}
	l.last = append(l.last, b...)
	if len(l.last) > logPart {
		l.last = append(l.last[:0], l.last[len(l.last)-logPart:]...)
	}
	return n, nil
}

func (l *logTail) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.head) + string(l.last)
}

// output runs a short command and returns what it printed, trimmed.
func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
