// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of isthmus-lab, the laboratory's program. `isthmus bench`, `demo`, `lab`,
// `control-load` and `stream` hand over to it, with "isthmus" as its name.
package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
)

type env struct{ command.Env }

// Main runs the command line, args[0] the program's name, and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &env{command.Env{Out: stdout, Err: stderr}}
	root := &cobra.Command{
		Use:   filepath.Base(args[0]),
		Short: "Laboratory of Isthmus: benchmarks, emulated networks, session load",
	}
	e.AddSocket(root)
	root.AddCommand(benchCommand(e), demoCommand(e), labCommand(e), loadCommand(e), streamCommand(e), &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		RunE: command.Failed(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.Out, "isthmus-lab", command.Version)
			return err
		}),
	})
	return command.Main(root, args[1:], stdin, stdout, stderr)
}
