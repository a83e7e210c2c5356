// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"net/url"

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

// asks has the control plane do something, and reads its answer.
func (e *env) asks(cmd *cobra.Command, path string, query url.Values, answer any) error {
	data, err := e.Ask(cmd.Context(), cmd.CommandPath(), "POST", path, query, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, answer)
}

func (e *env) ended(n int) error {
	_, err := fmt.Fprintln(e.Out, ends(n))
	return err
}
