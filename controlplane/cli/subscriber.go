// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
	"isthmus/controlplane/subscriber"
)

func clearCommand(e *env) *cobra.Command {
	group := command.Group(&cobra.Command{Use: "clear", Short: "end what has signed in",
		Example: "  isthmus clear subscriber anna"})
	var cause string
	one := &cobra.Command{
		Use:     "subscriber NAME",
		Short:   "end the sessions of a subscriber, by name, MAC, address, circuit id, line or session id",
		Example: "  isthmus clear subscriber anna\n  isthmus clear subscriber access:100.7 --cause lost-service",
		Args:    cobra.ExactArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			var done v1.Cleared
			query := url.Values{"subscriber": args, "cause": {cause}}
			err := e.asks(cmd, "/v1/subscriber/clear", query, &done)
			if err != nil {
				return err
			}
			return e.ended(done.Ended)
		}),
	}
	one.Flags().StringVar(&cause, "cause", "admin-reset", "Acct-Terminate-Cause (RFC 2866)")
	command.Values(one, "cause", "", subscriber.Causes()...)
	group.AddCommand(one)
	return group
}

func drainCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "drain",
		Short: "end all subscribers who signed in, and take no new ones",
		Long: "End all subscribers who signed in and take no new ones, before a planned shutdown. Waits up\n" +
			"to a minute for RADIUS servers to take accounting, and says how many records still wait.",
		Example: "  isthmus drain", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			var done v1.Drained
			if err := e.asks(cmd, "/v1/subscriber/drain", nil, &done); err != nil {
				return err
			}
			if err := e.ended(done.Ended); err != nil || done.Accounting == 0 {
				return err
			}
			over := "over a reboot too"
			if strings.HasPrefix(done.File, "/run/") {
				over = "until a reboot: control.state names no folder that outlives one"
			}
			_, err := fmt.Fprintf(e.Out,
				"%d records of accounting wait for a RADIUS server; %s keeps them %s\n", done.Accounting, done.File,
				over)
			return err
		}),
	}
}

// asks has the control plane do something, and reads its answer.
func (e *env) asks(cmd *cobra.Command, path string, query url.Values, answer any) error {
	data, err := e.Ask(cmd.Context(), cmd.CommandPath(), "POST", path, query, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, answer)
}

func (e *env) ended(n int) error {
	what := "subscribers end"
	if n == 1 {
		what = "subscriber ends"
	}
	_, err := fmt.Fprintln(e.Out, n, what)
	return err
}
