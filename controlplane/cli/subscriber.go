// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent"
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
			return e.ends(cmd, "/v1/subscriber/clear", url.Values{"subscriber": args, "cause": {cause}})
		}),
	}
	one.Flags().StringVar(&cause, "cause", "admin-reset", "what accounting is told (RFC 2866)")
	one.RegisterFlagCompletionFunc("cause", cobra.FixedCompletions(subscriber.Causes(),
		cobra.ShellCompDirectiveNoFileComp))
	group.AddCommand(one)
	return group
}

func drainCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "drain", Short: "let nobody sign in any more and end all who did, before the gateway goes out of service",
		Example: "  isthmus drain", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			return e.ends(cmd, "/v1/subscriber/drain", nil)
		}),
	}
}

func (e *env) ends(cmd *cobra.Command, path string, query url.Values) error {
	data, err := e.Ask(cmd.Context(), cmd.CommandPath(), "POST", path, query, nil)
	if err != nil {
		return err
	}
	var done agent.Cleared
	if err := json.Unmarshal(data, &done); err != nil {
		return err
	}
	what := "subscribers end"
	if done.Ended == 1 {
		what = "subscriber ends"
	}
	_, err = fmt.Fprintln(e.Out, done.Ended, what)
	return err
}
