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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"isthmus/api"
	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/dp"
)

// dataPlane is a data plane of the benchmark's own, on a private socket.
type dataPlane struct {
	*dp.Client
	cmd    *exec.Cmd
	dir    string
	log    bytes.Buffer
	exited chan struct{}
}

// startTime is how long a data plane may take until it answers; long, for machines that have much else to do.
const startTime = time.Minute

// start runs isthmus-dp and waits until it answers. memoryMB is what it may have without huge pages; 0: its preset.
func start(ctx context.Context, binary string, plan *plan.Plan, memoryMB int) (*dataPlane, error) {
	program, err := spawn.FindDP(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "isthmus-bench-")
	if err != nil {
		return nil, err
	}
	d := &dataPlane{dir: dir, exited: make(chan struct{})}
	socket := filepath.Join(dir, "dp.sock")
	args := spawn.Arguments(socket, plan.HugePages)
	if memoryMB > 0 {
		args = append(args, "--memory", strconv.Itoa(memoryMB))
	}
	d.cmd = exec.Command(program, args...)
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	// A process group of its own: Ctrl-C is ours, and we end it in good order.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	d.cmd.WaitDelay = time.Second // another holder of its output does not hold us
	if err := d.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go func() {
		d.cmd.Wait()
		close(d.exited)
	}()
	for end := time.Now().Add(startTime); ; {
		if d.Client, err = dp.Dial(ctx, socket); err == nil {
			return d, nil
		}
		select {
		case <-d.exited:
			d.Stop()
			return nil, fmt.Errorf("the data plane ended at once (%s):\n%s", d.cmd.ProcessState, d.tail())
		case <-ctx.Done():
			d.Stop()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			d.Stop()
			return nil, fmt.Errorf("the data plane does not answer: %w\n%s", err, d.tail())
		}
	}
}

// tail returns the last lines of the data plane's log. Only after it ended.
func (d *dataPlane) tail() string {
	return lastLines(d.log.String())
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// explain adds the data plane's last words to an error when it has died.
func (d *dataPlane) explain(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-d.exited:
		return fmt.Errorf("%w\nthe data plane ended (%s):\n%s", err, d.cmd.ProcessState, d.tail())
	case <-time.After(200 * time.Millisecond):
		return err
	}
}

// Stop ends the process and removes its directory.
func (d *dataPlane) Stop() {
	if d.Client != nil {
		d.Client.Close()
	}
	end(d.cmd, d.exited)
	os.RemoveAll(d.dir)
}

// end asks a process to end, and makes it after three seconds. exited closes when it has.
func end(cmd *exec.Cmd, exited <-chan struct{}) {
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(3 * time.Second):
		cmd.Process.Kill()
		<-exited
	}
}

// replace deletes streams that are not in the new list and sends those that are, as one transaction.
func (d *dataPlane) replace(ctx context.Context, old, list []*stream) error {
	var changes []dp.Change
	for _, s := range old {
		if !slices.ContainsFunc(list, func(n *stream) bool { return n.name == s.name }) {
			changes = append(changes, dp.Change{Kind: api.KindSynth, Key: s.name})
		}
	}
	for _, s := range list {
		changes = append(changes, s.change())
	}
	return d.Apply(ctx, changes)
}

// run starts or stops streams.
func (d *dataPlane) run(ctx context.Context, list []*stream, on bool) error {
	var errs []error
	for _, s := range list {
		if !s.filler {
			errs = append(errs, d.Stream(ctx, s.name, on))
		}
	}
	return errors.Join(errs...)
}
