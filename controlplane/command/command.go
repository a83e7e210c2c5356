// SPDX-License-Identifier: Apache-2.0

// Package command is shared by the command lines of isthmus and isthmus-lab: exit status, errors, and calls of the
// control plane.
package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Version of both programs; the linker sets it.
var Version = "0.1.0"

// Exit codes, documented in docs/cli.md.
const (
	ExitFailed      = 1   // the command was understood and failed
	ExitUsage       = 2   // the command line was wrong
	ExitUnreachable = 3   // no control plane answers
	ExitInterrupted = 130 // a benchmark was interrupted and printed what it had
)

// Exit carries an exit status through cobra. Err nil: the command has printed everything itself.
type Exit struct {
	Code int
	Err  error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Exit) Unwrap() error { return e.Err }

// DefaultSocket is the control plane's socket, unless its file, $ISTHMUS_SOCKET or --socket name another.
const DefaultSocket = "/run/isthmus/isthmus.sock"

// Env is what commands share: where the control plane is and where output goes.
type Env struct {
	Socket   string
	Out, Err io.Writer

	// Server, instead of Socket, is the https://HOST:PORT of a control plane. TokenFile is the file of its token,
	// CA the file of its authority's certificate, Fingerprint the SHA-256 of its own certificate.
	Server, TokenFile, CA, Fingerprint string
}

// AddSocket gives a root command the flags for the control plane's address.
func (e *Env) AddSocket(root *cobra.Command) {
	root.SetUsageTemplate(usage(root))
	f := root.PersistentFlags()
	f.StringVar(&e.Socket, "socket", cmp.Or(os.Getenv("ISTHMUS_SOCKET"), DefaultSocket),
		"socket of the control plane ($ISTHMUS_SOCKET)")
	f.StringVar(&e.Server, "server", os.Getenv("ISTHMUS_SERVER"),
		"https://HOST:PORT of a control plane, instead of a socket ($ISTHMUS_SERVER)")
	f.StringVar(&e.TokenFile, "token-file", "", "file of the token for --server (else $ISTHMUS_TOKEN)")
	f.StringVar(&e.CA, "ca", os.Getenv("ISTHMUS_CA"),
		"file of certificates that --server is verified by ($ISTHMUS_CA)")
	f.StringVar(&e.Fingerprint, "fingerprint", os.Getenv("ISTHMUS_FINGERPRINT"),
		"SHA-256 of the certificate of --server, instead of --ca ($ISTHMUS_FINGERPRINT)")
}

// Where are the flags that give another command line the same control plane.
func (e *Env) Where() []string {
	flags := []string{"--socket", e.Socket}
	for _, f := range [][2]string{{"--server", e.Server}, {"--token-file", e.TokenFile}, {"--ca", e.CA},
		{"--fingerprint", e.Fingerprint}} {
		if f[1] != "" {
			flags = append(flags, f[0], f[1])
		}
	}
	return flags
}

// Main runs a command line and returns its exit status.
func Main(root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.Version = Version
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return Execute(root, stderr)
}

// Execute runs a command, prints its error and chooses the exit code. Errors that cobra found before a command ran are
// usage errors. Those come with what the command takes.
func Execute(root *cobra.Command, stderr io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	var exit *Exit
	if !errors.As(err, &exit) {
		exit = &Exit{Code: ExitUsage, Err: err}
	}
	if exit.Err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", root.Name(), exit.Err)
	}
	switch {
	case exit.Code != ExitUsage || exit.Err == nil:
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(stderr, "see %s --help\n", cmd.CommandPath())
	default:
		fmt.Fprintf(stderr, "usage: %s; see %s --help\n", cmd.UseLine(), cmd.CommandPath())
	}
	return exit.Code
}

// Usage is the error of a wrong command line.
func Usage(format string, args ...any) error {
	return &Exit{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Group makes a command of subcommands: alone it prints its help, a word that is none of them is an error.
func Group(cmd *cobra.Command) *cobra.Command {
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

// Failed marks the errors of a command that ran.
func Failed(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var exit *Exit
		if err == nil || errors.As(err, &exit) {
			return err
		}
		return &Exit{Code: ExitFailed, Err: err}
	}
}
