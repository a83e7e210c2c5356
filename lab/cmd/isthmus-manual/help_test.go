// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"isthmus/controlplane/command"
	"isthmus/controlplane/testkit"
)

// The help of a command has its own flags, those of its group, and in one line where the flags of all commands are.
func TestHelpHasOwnFlags(t *testing.T) {
	root := tree()
	everywhere := root.PersistentFlags()
	testkit.ErrorIf(t, !everywhere.HasFlags(), "no flags of all commands")
	for _, cmd := range all(root) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		testkit.Must(t, cmd.Help())
		path, lines := cmd.CommandPath(), strings.Split(out.String(), "\n")
		shows := func(f *pflag.Flag) bool {
			return slices.ContainsFunc(lines, func(line string) bool {
				word := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "-"+f.Shorthand+", "))
				return len(word) > 0 && word[0] == "--"+f.Name
			})
		}
		everywhere.VisitAll(func(f *pflag.Flag) {
			testkit.Equal(t, shows(f), cmd == root, "%s --help shows --%s", path, f.Name)
		})
		for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), command.OwnFlags(cmd)} {
			set.VisitAll(func(f *pflag.Flag) {
				testkit.ErrorIf(t, !f.Hidden && !shows(f), "%s --help does not show --%s", path, f.Name)
			})
		}
		names := slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, "isthmus --help") && strings.Contains(line, "--socket")
		})
		testkit.Equal(t, names, cmd != root, "%s --help says where the flags of all commands are", path)
	}
}

// A flag of a group is one of each of its commands.
func TestHelpHasFlagsOfTheGroup(t *testing.T) {
	cmd, _, err := tree().Find([]string{"lab", "exec"})
	testkit.Must(t, err)
	testkit.ErrorIf(t, command.OwnFlags(cmd).Lookup("dir") == nil, "lab exec has no --dir")
}
