// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
)

func configCommand(e *env) *cobra.Command {
	config := command.Group(&cobra.Command{Use: "config", Short: "check, apply and show the configuration",
		Example: "  isthmus config check gateway.yaml\n  isthmus config apply gateway.yaml"})
	config.AddCommand(&cobra.Command{
		Use: "check FILE", Short: "say whether a file would be accepted; needs nothing running",
		Long: "Say whether a file would be accepted. Where a control plane runs, also what its data plane cannot\n" +
			"change without a restart.",
		Example: "  isthmus config check gateway.yaml", Args: cobra.ExactArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			plan, err := plan.Load(args[0])
			if err == nil {
				err = plan.Check()
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(e.Out, "%s: good, %d objects\n", args[0], len(plan.Objects))
			for _, n := range plan.Narrow {
				fmt.Fprintf(e.Out, "note: %s:%d: port %s: packets of 1,500 bytes in tunnels leave in two fragments: "+
					"mtu %d needed, %d given\n", args[0], n.Line, n.Port, n.Needs, n.MTU)
			}
			var checked v1.Checked
			data, err := e.Call(cmd.Context(), "POST", "/v1/config/check", url.Values{"name": args}, plan.Text)
			if err == nil && json.Unmarshal(data, &checked) == nil { // else none runs, or an older one
				for _, what := range checked.Fixed {
					fmt.Fprintln(e.Out, "note: refused while the data plane runs:", what)
				}
			}
			return nil
		}),
	}, applyCommand(e), &cobra.Command{
		Use:     "show",
		Short:   "print the running configuration",
		Example: "  isthmus config show >running.yaml",
		Args:    cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			data, err := e.Call(cmd.Context(), "GET", "/v1/config", nil, nil)
			if err != nil {
				return err
			}
			_, err = e.Out.Write(data)
			return err
		}),
	})
	return config
}

func applyCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "apply [FILE]",
		Short: "make a file the running configuration; without FILE, read the control plane's own file again",
		Long: "Make a file the running configuration. Only what differs is sent to the data plane, as one\n" +
			"transaction. A refused file changes nothing.",
		Example: "  isthmus config apply gateway.yaml\n  isthmus config apply",
		Args:    cobra.MaximumNArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			path, query := "/v1/config/reload", url.Values{}
			var body []byte
			if len(args) > 0 {
				var err error
				if body, err = os.ReadFile(args[0]); err != nil {
					return err
				}
				path = "/v1/config/apply"
				query.Set("name", args[0])
			}
			data, err := e.Ask(cmd.Context(), "config apply", "POST", path, query, body)
			if err != nil {
				return err
			}
			var res v1.Result
			if err := json.Unmarshal(data, &res); err != nil {
				return err
			}
			change := fmt.Sprintf("%d sent, %d deleted", res.Put, res.Deleted)
			if res.Put+res.Deleted == 0 {
				change = "the data plane has them"
			}
			fmt.Fprintf(e.Out, "applied: %d objects, %s\n", res.Objects, change)
			if res.Note != "" {
				fmt.Fprintln(e.Out, "note:", res.Note)
			}
			return nil
		}),
	}
}

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
	fmt.Fprintf(e.Out, "control plane  %s, pid %d, file %s, %d objects, since %s\n",
		s.Version, s.PID, s.File, s.Objects, s.Started.Format(time.RFC3339))
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
