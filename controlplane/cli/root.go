// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of isthmus: object and verb, the same words in one-shot and interactive use.
package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
)

// env is what the commands of isthmus share.
type env struct {
	command.Env
	interactive bool // inside the shell
}

// Main runs the command line and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &env{Env: command.Env{Out: stdout, Err: stderr}}
	return command.Main(newRoot(e), args, stdin, stdout, stderr)
}

// Root is the tree of commands, for the manual; they are not to be run.
func Root() *cobra.Command { return newRoot(&env{Env: command.Env{Out: io.Discard, Err: io.Discard}}) }

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "isthmus",
		Short: "control plane and command line of the Isthmus gateway",
		Long: "Control plane and command line of the Isthmus gateway.\n\n" +
			"`isthmus run` is the control plane. The other commands talk to it, but for replay, store,\n" +
			"restore and config check. isthmus-lab, the laboratory's program, has bench, demo, lab,\n" +
			"control-load and stream.",
		Example: "  isthmus run -c gateway.yaml\n  isthmus status --wait 5s\n  isthmus show drop",
	}
	e.AddSocket(root)
	root.AddCommand(
		runCommand(e), showCommand(e), configCommand(e), associationCommand(e), statusCommand(e),
		topCommand(e), traceCommand(e), explainCommand(e), captureCommand(e), eventsCommand(e), replayCommand(e),
		storeCommand(e), tokenCommand(e), apiCommand(e), doctorCommand(e), supportCommand(e), versionCommand(e),
		shellCommand(e), clearCommand(e), drainCommand(e), resumeCommand(e), backupCommand(e), restoreCommand(e),
	)
	root.AddCommand(labCommands(e)...)
	return root
}

func versionCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Example: "  isthmus version", Args: cobra.NoArgs,
		RunE: command.Failed(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.Out, "isthmus", command.Version)
			return err
		}),
	}
}
