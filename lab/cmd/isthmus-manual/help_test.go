// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
				line = strings.TrimPrefix(strings.TrimSpace(line), "-"+f.Shorthand+", ")
				word := strings.Fields(line)
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

// A manual page has each value of each flag; what completion offers for a flag is declared as its values.
func TestPagesHaveEachValue(t *testing.T) {
	seen := 0
	for _, cmd := range ours() {
		page := strings.ReplaceAll(string(commandPage(edition{}, cmd)), `\-`, "-")
		path := cmd.CommandPath()
		testkit.ErrorIf(t, !strings.Contains(page, ".Sh EXIT STATUS\n"), "%s has no exit status", path)
		command.OwnFlags(cmd).VisitAll(func(f *pflag.Flag) {
			values := command.ValuesOf(f)
			_, completes := cmd.GetFlagCompletionFunc(f.Name)
			testkit.ErrorIf(t, completes && len(values) == 0, "%s --%s completes what is not declared",
				path, f.Name)
			for _, v := range values {
				seen++
				testkit.ErrorIf(t, !strings.Contains(page, v), "%s --%s: no value %s", path, f.Name, v)
			}
		})
	}
	testkit.ErrorIf(t, seen < 300, "%d values were looked for", seen)
}

// The page of the program has each variable of the environment that its sources read.
func TestPageHasEachVariable(t *testing.T) {
	page := string(commandPage(edition{}, tree()))
	reads := regexp.MustCompile(`os\.(?:Getenv|LookupEnv)\("([A-Z_]+)"\)`)
	found := map[string]bool{}
	top := testkit.Top(t)
	look := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(filepath.Dir(path), "test") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range reads.FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
		return err
	}
	for _, folder := range []string{"controlplane", "lab/cli"} {
		testkit.Must(t, filepath.WalkDir(filepath.Join(top, folder), look))
	}
	testkit.ErrorIf(t, len(found) < 8, "only %v", found)
	for name := range found {
		testkit.ErrorIf(t, !strings.Contains(page, ".It Ev "+name+"\n"), "%s is not on the page", name)
	}
}
