// SPDX-License-Identifier: Apache-2.0

// Isthmus-manual writes what a package installs beside the programs, in the layout of /usr/share. These are manual
// pages of all programs, of isthmus' commands and of the configuration file, and completion for bash, zsh and fish.
// usage: isthmus-manual FOLDER VERSION DATE, DATE as 2026-01-31.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	control "isthmus/controlplane/cli"
	"isthmus/controlplane/config"
	lab "isthmus/lab/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "isthmus-manual:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want FOLDER VERSION DATE, got %d words", len(args))
	}
	date, err := time.Parse(time.DateOnly, args[2])
	if err != nil {
		return err
	}
	files, err := share(edition{args[1], date})
	if err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(args[0], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// share is the contents of each file below the folder.
func share(e edition) (map[string][]byte, error) {
	schema, err := config.Schema()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"man/man5/isthmus.yaml.5": schemaPage(e, schema)}
	root := tree()
	for _, cmd := range all(root) {
		files["man/man1/"+pageName(cmd)+".1"] = commandPage(e, cmd)
	}
	for _, g := range programs() {
		files["man/man1/"+g.name+".1"] = programPage(e, g)
	}
	for _, program := range []*cobra.Command{control.Root(), lab.Root()} {
		if err := completions(files, program); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// tree is the commands of isthmus, with isthmus-lab's in place of those that hand over to it.
func tree() *cobra.Command {
	root, laboratory := control.Root(), lab.Root()
	root.InitDefaultCompletionCmd()
	for _, cmd := range laboratory.Commands() {
		i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == cmd.Name() })
		if i < 0 || !root.Commands()[i].DisableFlagParsing {
			continue // version is each program's own
		}
		root.RemoveCommand(root.Commands()[i])
		root.AddCommand(cmd)
	}
	return root
}

// all is a command with those below it that people see.
func all(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, all(c)...)
		}
	}
	return list
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func completions(files map[string][]byte, program *cobra.Command) error {
	name := program.Name()
	var bash, zsh, fish bytes.Buffer
	if err := program.GenBashCompletionV2(&bash, true); err != nil {
		return err
	}
	if err := program.GenZshCompletion(&zsh); err != nil {
		return err
	}
	if err := program.GenFishCompletion(&fish, true); err != nil {
		return err
	}
	files["bash-completion/completions/"+name] = bash.Bytes()
	files["zsh/site-functions/_"+name] = zsh.Bytes()
	files["fish/vendor_completions.d/"+name+".fish"] = fish.Bytes()
	return nil
}
