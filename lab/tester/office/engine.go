// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"isthmus/controlplane/agent/spawn"
	"isthmus/lab/tester"
	"isthmus/traffic/job"
)

// How long an engine may take before it counts as stuck.
const (
	endTime       = 10 * time.Second // to close its ports
	interruptTime = 8 * time.Second  // to say what it has after an interrupt
	patience      = time.Minute      // for an answer, beyond what was asked
)

// ErrStuck is why a run is not complete whose engine went silent.
var ErrStuck = errors.New("the engine says nothing any more and was ended")

// mostAnswer bounds what an answer may hold.
const mostAnswer = job.SizeofTrial + job.Streams*job.SizeofStreamCount

// Engine is the process that opens the ports of a profile, sends and receives.
type Engine struct {
	Hello job.Hello
	ready job.Ready

	profile  *tester.Checked
	cmd      *exec.Cmd
	socket   net.Conn
	ctx      context.Context // of Start
	unhook   func() bool
	patience time.Duration
}

// Find returns the path of the engine: as given, beside this program, or in PATH.
func Find(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	return spawn.FindProgram("isthmus-traffic-engine")
}

// Start starts an engine with a profile. Without program it is found beside this program, or in PATH. Faults of the
// profile are a *tester.Faults. With check it only reports them. When ctx ends, a trial or the wait for links ends
// early.
func Start(ctx context.Context, program string, p *tester.Checked, check bool, eal []string, log io.Writer) (
	*Engine, error) {
	program, err := Find(program)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	e := &Engine{profile: p, socket: ours, cmd: exec.Command(program, eal...), ctx: ctx, patience: patience}
	e.cmd.Stdout, e.cmd.Stderr = log, log // a driver prints what it likes
	e.cmd.ExtraFiles = []*os.File{theirs} // job.Descriptor
	// A process group of its own, so that Ctrl-C reaches us alone and we end it in good order.
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	e.cmd.WaitDelay = time.Second
	err = e.cmd.Start()
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	e.unhook = context.AfterFunc(ctx, func() {
		e.cmd.Process.Signal(syscall.SIGINT)
		e.socket.SetReadDeadline(time.Now().Add(interruptTime))
	})
	if err := e.greet(p.Job(check)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// pair is a connection, and its other end as a file.
func pair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "engine"), os.NewFile(uintptr(fds[1]), "office")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
	}
	return conn, theirs, err
}

// greet sends the job and reads the engine's answer.
func (e *Engine) greet(work []byte) error {
	if err := e.put(&job.Head{Bytes: uint32(len(work))}); err != nil {
		return err
	}
	if _, err := e.socket.Write(work); err != nil {
		return e.gone(err)
	}
	body, err := e.answer(job.AnswerHello, 0)
	if err != nil {
		return err
	}
	rest, err := take(body, &e.Hello)
	if err != nil || e.Hello.Faults == 0 {
		return err
	}
	faults := make([]job.Fault, min(e.Hello.Faults, job.Faults))
	if _, err = take(rest, faults); err != nil {
		return err
	}
	return e.profile.Refused(faults)
}

// WaitLinks returns once all links are up.
func (e *Engine) WaitLinks() error {
	body, err := e.answer(job.AnswerReady, e.profile.Run.LinkWait)
	if err == nil {
		_, err = take(body, &e.ready)
	}
	return err
}

// Trial runs one: rate is in packets a second of all streams with a share, infinity as fast as it goes.
func (e *Engine) Trial(rate, seconds float64) (*tester.Trial, error) {
	if err := e.put(&job.Request{Kind: job.AskTrial, Rate: rate, Seconds: seconds}); err != nil {
		return nil, err
	}
	body, err := e.answer(job.AnswerTrial, 2*seconds)
	if err != nil {
		return nil, err
	}
	var t job.Trial
	counts := make([]job.StreamCount, len(e.profile.Streams))
	if body, err = take(body, &t); err == nil {
		_, err = take(body, counts)
	}
	if err != nil {
		return nil, err
	}
	out := e.result(&t, counts)
	out.RatePPS, out.AskedSeconds = rate, seconds
	return out, nil
}

// End waits for what the last trial has not waited for. It returns how many packets came, and the clock.
func (e *Engine) End() (stray uint64, clockGHz float64, err error) {
	if err = e.put(&job.Request{Kind: job.AskEnd}); err != nil {
		return 0, 0, err
	}
	var end job.End
	body, err := e.answer(job.AnswerEnd, 0)
	if err == nil {
		_, err = take(body, &end)
	}
	return end.Stray, end.ClockGhz, err
}

// Close ends the engine: it closes its ports when its connection is closed.
func (e *Engine) Close() error {
	e.unhook()
	e.socket.Close()
	late := time.AfterFunc(endTime, func() { e.cmd.Process.Kill() })
	defer late.Stop()
	err := e.cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() || errors.Is(err, exec.ErrWaitDelay) {
		return nil // it has said why
	}
	return err
}

func (e *Engine) put(message any) error {
	return e.gone(binary.Write(e.socket, binary.NativeEndian, message))
}

// answer reads the body of the answer that is due, within the engine's patience behind so many seconds. A sentence in
// its place is the error.
func (e *Engine) answer(kind uint32, seconds float64) ([]byte, error) {
	within := e.patience + time.Duration(seconds*float64(time.Second))
	e.socket.SetReadDeadline(time.Now().Add(within))
	if e.ctx.Err() != nil {
		e.socket.SetReadDeadline(time.Now().Add(interruptTime))
	}
	var head job.Head
	if err := binary.Read(e.socket, binary.NativeEndian, &head); err != nil {
		return nil, e.gone(err)
	}
	if head.Bytes > mostAnswer {
		return nil, fmt.Errorf("the engine answers with %d bytes", head.Bytes)
	}
	body := make([]byte, head.Bytes)
	if _, err := io.ReadFull(e.socket, body); err != nil {
		return nil, e.gone(err)
	}
	switch head.Kind {
	case kind:
		return body, nil
	case job.AnswerFailed:
		return nil, errors.New(string(body))
	}
	return nil, fmt.Errorf("the engine gives answer %d in place of %d", head.Kind, kind)
}

func (e *Engine) gone(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.cmd.Process.Kill()
		return ErrStuck
	}
	return fmt.Errorf("the engine has ended: %w", err)
}

// take decodes the beginning of a body and returns the rest.
func take(body []byte, to any) ([]byte, error) {
	n, err := binary.Decode(body, binary.NativeEndian, to)
	if err != nil {
		return nil, fmt.Errorf("the engine's answer is too short: %w", err)
	}
	return body[n:], nil
}

func text(field []byte) string {
	before, _, _ := bytes.Cut(field, []byte{0})
	return strings.ToValidUTF8(string(before), "?")
}
