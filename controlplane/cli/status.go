// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
	"isthmus/controlplane/config"
)

func statusCommand(e *env) *cobra.Command {
	var asJSON bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "status", Short: "state of the control plane and of its data plane; fails unless both are ready",
		Annotations: map[string]string{command.FailsWhen: "The data plane is not ready."},
		Example:     "  isthmus status --wait 10s\n  isthmus status -j | jq .data_plane",
		Args:        cobra.NoArgs,
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print JSON")
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long for both to be ready")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		data, s, err := e.waitReady(cmd.Context(), wait)
		if err != nil {
			return err
		}
		if asJSON {
			err = e.printJSON(data)
		} else {
			err = e.printStatus(&s)
		}
		if err == nil && s.DataPlane != v1.StateReady {
			err = fmt.Errorf("the data plane is %s; %s", s.DataPlane, nextFor[s.DataPlane])
		}
		return err
	})
	return cmd
}

// nextFor is what to do about a data plane's state.
var nextFor = map[string]string{
	v1.StateAway:    "isthmus doctor says what this machine lacks",
	v1.StateRefused: "correct what the last error names, then isthmus config apply FILE",
}

// waitReady reads the status until both are ready, or the time is over.
func (e *env) waitReady(ctx context.Context, wait time.Duration) (data []byte, s v1.Status, err error) {
	bar := command.NewProgress(e.Err, "status")
	bar.During(wait)
	defer bar.Done()
	for end := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		data, err = e.Call(ctx, "GET", "/v1/status", nil, nil)
		s = v1.Status{}
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err == nil && s.DataPlane == v1.StateReady || time.Now().After(end) {
			return data, s, err
		}
	}
}

func (e *env) printStatus(s *v1.Status) error {
	file := s.File
	if n := len(s.DropIns); n > 0 {
		file += fmt.Sprintf(" and %d of %s", n, config.Folder(s.File))
	}
	fmt.Fprintf(e.Out, "control plane  %s, pid %d, file %s, %d objects, since %s\n",
		s.Version, s.PID, file, s.Objects, s.Started.Format(time.RFC3339))
	if s.CPUs != "" {
		fmt.Fprintf(e.Out, "engine.cpus    %s\n", s.CPUs)
	}
	if s.AppliedFile != "" {
		fmt.Fprintf(e.Out, "configuration  by `config apply`, kept in %s (SIGHUP returns to the file)\n", s.AppliedFile)
	}
	if s.DataPlane == v1.StateAway {
		fmt.Fprintf(e.Out, "data plane     away (%s): %s\n", s.DPSocket, s.Away())
	} else {
		huge := "without huge pages"
		if s.DPHuge {
			huge = "with huge pages"
		}
		fmt.Fprintf(e.Out, "data plane     %s, %s, pid %d, %s (%s)\n", s.DataPlane, s.DPVersion, s.DPPID, huge,
			s.DPSocket)
		if ended := s.DPEnded.String(); ended != "" {
			fmt.Fprintf(e.Out, "before         %s\n", ended)
		}
	}
	if drained := drainState(s); drained != "" {
		fmt.Fprintf(e.Out, "drained        %s\n", drained)
	}
	for i, line := range s.DPEnded.Words {
		fmt.Fprintf(e.Out, "%-15s%s\n", map[bool]string{true: "last words"}[i == 0], line)
	}
	for _, k := range s.Kernel {
		fmt.Fprintf(e.Out, "kernel         namespace %s: %d devices, %d addresses, %d routes, %d neighbours, ",
			cmp.Or(k.Namespace, "own"), len(k.Devices), k.Addresses, k.Routes, k.Neighbours)
		fmt.Fprintf(e.Out, "%d announced; read %d times, %d for lost messages%s\n", k.Announced, k.Read, k.Lost,
			orNothing("; ", k.Error))
	}
	if s.KernelRefused > 0 {
		fmt.Fprintf(e.Out, "left out       %d objects of the kernel's, as %s\n", s.KernelRefused, s.KernelWhy)
	}
	if len(s.RoutesIgnored) > 0 {
		var words []string
		for _, reason := range slices.Sorted(maps.Keys(s.RoutesIgnored)) {
			words = append(words, fmt.Sprint(reason, " ", s.RoutesIgnored[reason]))
		}
		fmt.Fprintf(e.Out, "not followed   routes of the kernel's: %s (show route --ignored)\n",
			strings.Join(words, ", "))
	}
	if s.LastError != "" {
		fmt.Fprintf(e.Out, "last error     %s\n", s.LastError)
	}
	return nil
}

// orNothing puts a word before a text, where there is one.
func orNothing(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
