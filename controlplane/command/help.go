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

// Annotations of commands, for the manual: what the status 1 says, and others that they end with.
const (
	FailsWhen       = "status 1"
	InterruptedWhen = "status 130"
	OtherStatus     = "other status"
)

// valuesOf is the annotation of a flag that holds all its values.
const valuesOf = "isthmus_values"

// Values declares all that a flag may be, each perhaps with what follows it: for completion and for the manual.
func Values(cmd *cobra.Command, flag, behind string, values ...string) {
	offers, directive := values, cobra.ShellCompDirectiveNoFileComp
	if behind != "" {
		offers, directive = nil, directive|cobra.ShellCompDirectiveNoSpace
		for _, v := range values {
			offers = append(offers, v+behind)
		}
	}
	// Neither fails: the flag is there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(offers, directive))
	_ = cmd.Flags().SetAnnotation(flag, valuesOf, values)
}

// ValuesOf are all that a flag may be; nil: it takes what is no list.
func ValuesOf(f *pflag.Flag) []string { return f.Annotations[valuesOf] }

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
