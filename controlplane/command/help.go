// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OwnFlags are those of a command and of its groups, without those that all commands have.
func OwnFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	own.SortFlags = true
	add := func(f *pflag.Flag) {
		if !cmd.HasParent() || cmd.Root().PersistentFlags().Lookup(f.Name) != f {
			own.AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return own
}

func init() { cobra.AddTemplateFunc("ownFlags", OwnFlags) }

// usage is cobra's template, in which the flags of all commands are one line.
func usage(root *cobra.Command) string {
	return strings.NewReplacer(
		"{{if .HasAvailableLocalFlags}}\n\nFlags:", "{{if (ownFlags .).HasAvailableFlags}}\n\nFlags:",
		"{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}",
		"{{(ownFlags .).FlagUsages | trimTrailingWhitespaces}}",
		"Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}",
		"{{.Root.Name}} --help has the flags of all commands: --socket, --server and what goes with it.",
	).Replace(root.UsageTemplate())
}
