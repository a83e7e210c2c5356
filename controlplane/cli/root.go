// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of isthmus: noun and verb, the same words in one-shot and interactive use.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Version of the program; the linker may set it.
var Version = "0.1.0"

// Exit codes, documented in docs/cli.md.
const (
	ExitFailed      = 1 // the command was understood and failed
	ExitUsage       = 2 // the command line was wrong
	ExitUnreachable = 3 // no control plane answers
)

// exitError carries a status through cobra.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// env is what commands share: where the control plane is and where output goes.
type env struct {
	socket string
	out    io.Writer
	err    io.Writer
}

// Main runs the command line and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &env{out: stdout, err: stderr}
	root := newRoot(e)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return execute(root, stderr)
}

// execute runs a command line, prints its error and chooses the exit code. Errors that cobra found before a command ran are
// usage errors; they come with what the command takes.
func execute(root *cobra.Command, stderr io.Writer) int {
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		fmt.Fprintf(stderr, "isthmus: %v\n", err)
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(stderr, "see %s --help\n", cmd.CommandPath())
		} else {
			fmt.Fprintf(stderr, "usage: %s; see %s --help\n", cmd.UseLine(), cmd.CommandPath())
		}
		return ExitUsage
	}
	if exit.err != nil {
		fmt.Fprintf(stderr, "isthmus: %v\n", exit.err)
	}
	return exit.code
}

// group makes a command of subcommands: alone it prints its help, a word that is none of them is an error.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			text += "; did you mean " + strings.Join(like, " or ") + "?"
		}
		return errors.New(text)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// failed marks the errors of a command that ran.
func failed(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var exit *exitError
		if err == nil || errors.As(err, &exit) {
			return err
		}
		return &exitError{ExitFailed, err}
	}
}

func defaultSocket() string {
	if s := os.Getenv("ISTHMUS_SOCKET"); s != "" {
		return s
	}
	return "/run/isthmus/isthmus.sock"
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "isthmus",
		Short: "Control plane and command line of the Isthmus gateway",
		Long: "Control plane and command line of the Isthmus gateway.\n\n" +
			"`isthmus run` is the control plane; the other commands talk to it, but for replay, bench, demo and lab,\n" +
			"which start data planes of their own, config check, and control-load, which speaks PFCP to any user plane.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       Version,
	}
	root.PersistentFlags().StringVar(&e.socket, "socket", defaultSocket(), "socket of the control plane ($ISTHMUS_SOCKET)")
	root.AddCommand(
		runCommand(e), showCommand(e), configCommand(e), streamCommand(e), associationCommand(e), statusCommand(e), replayCommand(e),
		benchCommand(e), demoCommand(e), labCommand(e), loadCommand(e), versionCommand(e), shellCommand(e),
	)
	return root
}

func versionCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		RunE: failed(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.out, "isthmus", Version)
			return err
		}),
	}
}
