// SPDX-License-Identifier: Apache-2.0

// Package replay runs packet captures through the same graph as the live gateway. It compiles the configuration, writes
// the state as a file of API messages and runs `isthmus-dp replay`.
package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/dp"
)

// Options of one run. In and Out hold PORT=FILE.
type Options struct {
	File     string
	In, Out  []string
	Counters string
	Skip     bool // success although packets were left out
	DPBinary string
	Started  func(pid int, bytes uint64) // the data plane reads so many bytes of captures; may be nil
}

// WriteState compiles a configuration and writes it as one transaction.
func WriteState(w io.Writer, plan *plan.Plan) error {
	b := bufio.NewWriter(w)
	if err := dp.WriteState(b, plan.Changes()); err != nil {
		return err
	}
	return b.Flush()
}

// Run returns the exit status of the data plane, or why it could not run.
func Run(ctx context.Context, opt Options, stdout, stderr io.Writer) (int, error) {
	plan, err := plan.Load(opt.File)
	if err != nil {
		return 0, err
	}
	if len(opt.In) == 0 {
		return 0, errors.New("nothing to replay: give --in PORT=FILE at least once")
	}
	for _, pair := range append(append([]string{}, opt.In...), opt.Out...) {
		if port, file, ok := strings.Cut(pair, "="); !ok || port == "" || file == "" {
			return 0, fmt.Errorf("%q is not PORT=FILE", pair)
		}
	}
	program, err := spawn.FindDP(opt.DPBinary)
	if err != nil {
		return 0, err
	}
	state, err := os.CreateTemp("", "isthmus-state-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(state.Name())
	err = WriteState(state, plan)
	if again := state.Close(); err == nil {
		err = again
	}
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, program, arguments(opt, state.Name())...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err = cmd.Start(); err == nil {
		if opt.Started != nil {
			opt.Started(cmd.Process.Pid, captured(opt.In))
		}
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// captured is the size of all captures that ports receive.
func captured(pairs []string) (bytes uint64) {
	for _, pair := range pairs {
		_, file, _ := strings.Cut(pair, "=")
		if info, err := os.Stat(file); err == nil {
			bytes += uint64(info.Size())
		}
	}
	return bytes
}

func arguments(opt Options, state string) []string {
	args := []string{"replay", "--state", state}
	for _, pair := range opt.In {
		args = append(args, "--in", pair)
	}
	for _, pair := range opt.Out {
		args = append(args, "--out", pair)
	}
	if opt.Counters != "" {
		args = append(args, "--counters", opt.Counters)
	}
	if opt.Skip {
		args = append(args, "--skip")
	}
	return args
}
