// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/spawn"
	"isthmus/controlplane/command"
)

const labProgram = "isthmus-lab"

// labCommands are commands of the laboratory's program, which isthmus hands over to: an operator's machine needs no
// traffic generator and no emulated SMF.
func labCommands(e *env) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range [][2]string{
		{"bench", "measure the gateway; starts a data plane, and a tester, of its own"},
		{"demo", "show the whole gateway at work: traffic through both pipelines, every packet checked, the cost"},
		{"lab", "a whole mobile network on this machine, to try it with ordinary programs"},
		{"control-load", "establish, modify and delete sessions over PFCP at a given rate; check every answer"},
		{"stream", "test traffic on synth ports: load, start, stop, clear (see also show stream)"},
	} {
		name := c[0]
		stub := &cobra.Command{
			Use: name, Short: c[1], DisableFlagParsing: true,
			RunE: command.Failed(func(_ *cobra.Command, args []string) error {
				return handOver(e, append([]string{name}, args...))
			}),
			ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
				return completeInLab(append([]string{cobra.ShellCompRequestCmd, name}, append(args, word)...))
			},
		}
		stub.SetHelpFunc(func(*cobra.Command, []string) { // of `isthmus help bench`
			if err := handOver(e, []string{name, "--help"}); err != nil {
				fmt.Fprintln(e.Err, "isthmus:", err)
			}
		})
		list = append(list, stub)
	}
	return list
}

// handOver makes this process the laboratory's program; inside the shell, which lives on, it starts a child. Flags are
// not parsed here: --socket, wherever it stands, is among args.
func handOver(e *env, args []string) error {
	path, err := spawn.FindProgram(labProgram)
	if err != nil {
		return err
	}
	if !e.interactive {
		return fmt.Errorf("%s: %w", path, syscall.Exec(path, append([]string{"isthmus"}, args...), os.Environ()))
	}
	cmd := exec.Command(path, args...)
	cmd.Args[0] = "isthmus"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, e.Out, e.Err
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &command.Exit{Code: exit.ExitCode()} // it has said why
	}
	return err
}

// completeInLab asks the laboratory's program what may follow. Its answer is cobra's: a word a line, then ":directive".
func completeInLab(args []string) ([]string, cobra.ShellCompDirective) {
	path, err := spawn.FindProgram(labProgram)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out, err := exec.Command(path, args...).Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	var directive cobra.ShellCompDirective
	if _, err := fmt.Sscanf(lines[len(lines)-1], ":%d", &directive); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:len(lines)-1], directive
}
