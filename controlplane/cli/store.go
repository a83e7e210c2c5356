// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/session"
)

func storeCommand(e *env) *cobra.Command {
	store := command.Group(&cobra.Command{
		Use: "store", Short: "look into the store of sessions over PFCP; it may be in use",
		Example: "  isthmus store verify /var/lib/isthmus/sessions.db"})
	read := func(out io.Writer, path string) (session.Contents, error) {
		c, err := session.Inspect(path, out)
		return c, errors.Join(append(c.Faults, err)...)
	}
	store.AddCommand(&cobra.Command{
		Use: "dump FILE", Short: "print each record as a line of JSON",
		Example: "  isthmus store dump /var/lib/isthmus/sessions.db | jq .", Args: cobra.ExactArgs(1),
		RunE: command.Failed(func(_ *cobra.Command, args []string) error {
			_, err := read(e.Out, args[0])
			return err
		}),
	}, &cobra.Command{
		Use: "verify FILE", Short: "say whether all of it can be read, and how much there is",
		Example: "  isthmus store verify /var/lib/isthmus/sessions.db", Args: cobra.ExactArgs(1),
		RunE: command.Failed(func(_ *cobra.Command, args []string) error {
			c, err := read(nil, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.Out, "%s: good, %d sessions, %d associations, %d applications, usage of %d sessions waits; recovery time stamp %s, boot %s\n",
				args[0], c.Sessions, c.Associations, c.Applications, c.Usages, c.Recovery.UTC().Format(time.RFC3339), c.Boot)
			return err
		}),
	})
	return store
}
