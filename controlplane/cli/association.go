// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
)

func associationCommand(e *env) *cobra.Command {
	association := command.Group(&cobra.Command{
		Use: "association", Short: "PFCP associations (see also show association)",
		Example: "  isthmus association release smf1.example --graceful 60"})
	var graceful uint32
	release := &cobra.Command{
		Use: "release NODE_ID", Short: "ask a CP function to release its association, before a user plane goes out " +
			"of service",
		Example: "  isthmus association release smf1.example --graceful 60",
		Args:    cobra.ExactArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			query := url.Values{"id": args, "graceful": {strconv.FormatUint(uint64(graceful), 10)}}
			_, err := e.Ask(cmd.Context(), "association release", "POST", "/v1/association/release", query, nil)
			return err
		}),
	}
	release.Flags().Uint32Var(&graceful, "graceful", 0, "seconds in which the CP function may move its sessions away")
	association.AddCommand(release)
	return association
}
