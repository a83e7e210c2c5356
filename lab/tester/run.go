// SPDX-License-Identifier: Apache-2.0

package tester

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"isthmus/controlplane/agent/spawn"
)

// Kinds of Event.
const (
	EventReady = "ready" // links are up
	EventBegin = "begin" // a trial is about to begin
	EventEnd   = "end"   // it is over; its figures are in Trial
	EventDone  = "done"  // the run is over
)

// Event is one line of `isthmus-traffic --events`. Of a trial that begins, Purpose, RatePPS and AskedSeconds are known.
type Event struct {
	Event    string `json:"event"`
	Complete bool   `json:"complete"` // done
	Status   int    `json:"status"`   // done
	Trial
}

// Options of Run.
type Options struct {
	Binary string // isthmus-traffic; empty: found by Find
	Dir    string // keeps profile.yaml and result.json; empty: a folder that is removed at the end
	CPUs   []int  // in place of the profile's; nil: the profile's
	NoHuge bool   // overrules the profile
	// called in order, by one goroutine; may be nil. No trial begins before EventBegin was handled.
	Event     func(Event)
	Log       io.Writer // text that the tester prints; may be nil
	Arguments []string  // more options for isthmus-traffic
	EAL       []string  // DPDK options
	// Patience is how much longer than planned a trial may take, and a start until links are up, before the tester
	// counts as stuck and is ended. 0: a minute.
	Patience time.Duration
}

// ErrStuck is returned when the tester went silent.
var ErrStuck = errors.New("isthmus-traffic says nothing any more and was ended")

// interruptTime is how long a tester may take to write down what it has after an interrupt.
const interruptTime = 8 * time.Second

// Find returns the path of isthmus-traffic: as given, beside this program, or in PATH.
func Find(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	path, err := spawn.FindProgram("isthmus-traffic")
	if err != nil {
		return "", fmt.Errorf("%w; name it with --traffic-binary", err)
	}
	return path, nil
}

// Run runs a profile. When ctx ends, the tester is interrupted and its result comes back with Interrupted set and no
// error. A run incomplete for another reason gives an error, beside a result if there is one. Wrong or lost packets are
// no error: Result.Status is 1 then.
func Run(ctx context.Context, p *Profile, opt Options) (*Result, error) {
	program, err := Find(opt.Binary)
	if err != nil {
		return nil, err
	}
	wanted := *p
	if opt.CPUs != nil {
		wanted.CPUs = opt.CPUs
	}
	if opt.NoHuge {
		wanted.HugePages = false
	}
	dir := opt.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "isthmus-traffic-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	} else if err = os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	profile, result := filepath.Join(dir, "profile.yaml"), filepath.Join(dir, "result.json")
	if err := os.Remove(result); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err // an old one must not be taken for this run's
	}
	if err := wanted.Write(profile); err != nil {
		return nil, err
	}
	args := append([]string{"--events", "--paced", "--json", result}, opt.Arguments...)
	args = append(args, profile)
	if len(opt.EAL) > 0 {
		args = append(append(args, "--"), opt.EAL...)
	}
	pr := &process{opt: opt, cmd: exec.Command(program, args...)}
	err = pr.run(ctx)
	return pr.result(ctx, result, &wanted, err)
}

// Check reads and checks a profile with the tester's own eyes, without running it.
func Check(ctx context.Context, binary, file string) error {
	program, err := Find(binary)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, program, "--check", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// process is one run of isthmus-traffic.
type process struct {
	opt   Options
	cmd   *exec.Cmd
	stdin io.WriteCloser // a line lets a trial begin
	words tail           // written by the goroutine of exec that copies standard error; read after Wait
}

// run starts the tester, hands its events on and waits for its end. The error is about the process, not its
// measurement.
func (p *process) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.words.also = p.opt.Log
	p.cmd.Stderr = &p.words
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	// A process group of its own, so that Ctrl-C reaches us alone and we end it in good order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.cmd.WaitDelay = time.Second // another holder of its output does not hold us
	if err := p.cmd.Start(); err != nil {
		return err
	}
	events := make(chan Event)
	go readEvents(out, events)
	stuck := p.follow(ctx, events)
	err = p.cmd.Wait()
	if stuck {
		return ErrStuck
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() || errors.Is(err, exec.ErrWaitDelay) {
		return nil // the status is part of the result
	}
	return err
}

// follow passes events on until the tester closes its output. It interrupts the tester when ctx ends, and kills it when
// it does not end.
func (p *process) follow(ctx context.Context, events <-chan Event) (stuck bool) {
	patience := p.opt.Patience
	if patience <= 0 {
		patience = time.Minute
	}
	silence := time.NewTimer(patience)
	defer silence.Stop()
	done := ctx.Done()
	for {
		select {
		case e, open := <-events:
			if !open {
				return stuck
			}
			if done != nil { // else time runs for an interrupted one
				silence.Reset(patience + time.Duration(e.AskedSeconds*2*float64(time.Second)))
			}
			if p.opt.Event != nil {
				p.opt.Event(e)
			}
			if e.Event == EventBegin {
				io.WriteString(p.stdin, "\n") // a tester that is gone is noticed elsewhere
			}
		case <-done:
			done = nil
			p.cmd.Process.Signal(syscall.SIGINT)
			silence.Reset(interruptTime)
		case <-silence.C:
			stuck = true
			p.cmd.Process.Kill()
		}
	}
}

// readEvents decodes lines until the end. Lines that are no event are passed over: the driver may print, too.
func readEvents(r io.Reader, to chan<- Event) {
	defer close(to)
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e Event
		if json.Unmarshal(in.Bytes(), &e) == nil && e.Event != "" {
			to <- e
		}
	}
	io.Copy(io.Discard, r) // after a line too long, drain the writer
}

// result reads the tester's file and decides what is an error.
func (p *process) result(ctx context.Context, file string, wanted *Profile, failed error) (*Result, error) {
	r, err := ReadResult(file)
	if err != nil {
		switch {
		case failed != nil:
			err = failed
		case errors.Is(err, os.ErrNotExist) && p.cmd.ProcessState != nil:
			err = fmt.Errorf("it ended (%s) without a result", p.cmd.ProcessState)
		}
		return nil, p.explain(err)
	}
	r.Wanted, r.Words = wanted, p.words.String()
	r.Status = p.cmd.ProcessState.ExitCode()
	if failed != nil {
		return r, p.explain(failed)
	}
	if r.Complete || r.Interrupted && ctx.Err() != nil {
		return r, nil
	}
	if r.Error != "" {
		return r, fmt.Errorf("isthmus-traffic: %s", r.Error)
	}
	return r, p.explain(fmt.Errorf("it ended (%s) before its run was complete", p.cmd.ProcessState))
}

// explain adds the tester's last words to an error.
func (p *process) explain(err error) error {
	if words := p.words.String(); words != "" {
		return fmt.Errorf("isthmus-traffic: %w\n%s", err, words)
	}
	return fmt.Errorf("isthmus-traffic: %w", err)
}

// tail keeps the last lines that are written to it.
type tail struct {
	also io.Writer
	mu   sync.Mutex
	text []byte
}

const tailBytes, tailLines = 4096, 12

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.text = append(t.text, b...)
	if len(t.text) > tailBytes {
		t.text = append(t.text[:0], t.text[len(t.text)-tailBytes:]...)
	}
	t.mu.Unlock()
	if t.also != nil {
		t.also.Write(b)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
