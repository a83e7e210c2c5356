// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/session"
)

// readingOf returns how much of a store was read. It is read twice, first to find the records that count.
func readingOf(path string) func() float64 {
	info, err := os.Stat(path)
	before, unknown := command.BytesRead(os.Getpid())
	return func() float64 {
		if err != nil || unknown != nil {
			return -1
		}
		return command.ReadShare(os.Getpid(), before, 2*uint64(info.Size()))
	}
}

// barAround keeps a writer that is none as it is.
func barAround(bar *command.Progress, out io.Writer) io.Writer {
	if out == nil {
		return nil
	}
	return bar.Around(out)
}

func storeCommand(e *env) *cobra.Command {
	store := command.Group(&cobra.Command{
		Use: "store", Short: "look into the store of sessions, or that of accounting; it may be in use",
		Example: "  isthmus store verify /var/lib/isthmus/sessions.db"})
	read := func(out io.Writer, path string) (session.Contents, error) {
		bar := command.NewProgress(e.Err, "reading "+filepath.Base(path))
		defer bar.Done()
		out = barAround(bar, out)
		bar.Follow(readingOf(path))
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
			_, err = fmt.Fprintf(e.Out, "%s: good, %d sessions, %d associations, %d applications, usage of %d "+
				"sessions "+
				"waits, of %d is read, %d records of accounting wait; recovery time stamp %s, "+
				"boot %s\n",
				args[0], c.Sessions, c.Associations, c.Applications, c.Usages, c.Readings, c.Accounts,
				c.Recovery.UTC().Format(time.RFC3339), c.Boot)
			return err
		}),
	})
	return store
}
