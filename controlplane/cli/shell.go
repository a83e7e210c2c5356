// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
)

func shellCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "interactive: one command a line, without the word isthmus", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			prompt := ""
			if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				prompt = "isthmus> "
			}
			in := bufio.NewScanner(cmd.InOrStdin())
			for fmt.Fprint(e.Out, prompt); in.Scan(); fmt.Fprint(e.Out, prompt) {
				words := strings.Fields(in.Text())
				if len(words) == 0 || strings.HasPrefix(words[0], "#") {
					continue
				}
				switch words[0] {
				case "exit", "quit":
					return nil
				case "shell", "run":
					fmt.Fprintf(e.Err, "isthmus: %s does not work inside the shell\n", words[0])
					continue
				}
				root := newRoot(&env{Env: command.Env{Out: e.Out, Err: e.Err}, interactive: true})
				root.SetArgs(append(e.Where(), words...))
				root.SetOut(e.Out)
				root.SetErr(e.Err)
				root.SetContext(cmd.Context())
				command.Execute(root, e.Err)
			}
			return in.Err()
		}),
	}
}
