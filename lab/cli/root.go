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
	root := newRoot(&env{command.Env{Out: stdout, Err: stderr}}, filepath.Base(args[0]))
	return command.Main(root, args[1:], stdin, stdout, stderr)
}

// Root is the tree of commands, for the manual; they are not to be run.
func Root() *cobra.Command {
	return newRoot(&env{command.Env{Out: io.Discard, Err: io.Discard}}, "isthmus-lab")
}

func newRoot(e *env, name string) *cobra.Command {
	root := &cobra.Command{
		Use:   name,
		Short: "laboratory of Isthmus: benchmarks, emulated networks, session load",
		Long: "Laboratory of Isthmus: benchmarks, emulated networks, session load.\n\n" +
			"The program isthmus hands bench, demo, lab, control-load and stream over to this one.",
		Example: "  isthmus-lab demo\n  isthmus-lab lab 5g",
	}
	e.AddSocket(root)
	root.AddCommand(benchCommand(e), demoCommand(e), labCommand(e), loadCommand(e), streamCommand(e), &cobra.Command{
		Use: "version", Short: "print the version", Example: "  isthmus-lab version", Args: cobra.NoArgs,
		RunE: command.Failed(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.Out, "isthmus-lab", command.Version)
			return err
		}),
	})
	return root
}
