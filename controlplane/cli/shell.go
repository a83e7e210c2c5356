// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func shellCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "interactive: one command a line, without the word isthmus", Args: cobra.NoArgs,
		RunE: failed(func(cmd *cobra.Command, _ []string) error {
			prompt := ""
			if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				prompt = "isthmus> "
			}
			in := bufio.NewScanner(cmd.InOrStdin())
			for fmt.Fprint(e.out, prompt); in.Scan(); fmt.Fprint(e.out, prompt) {
				words := strings.Fields(in.Text())
				if len(words) == 0 || strings.HasPrefix(words[0], "#") {
					continue
				}
				switch words[0] {
				case "exit", "quit":
					return nil
				case "shell", "run":
					fmt.Fprintf(e.err, "isthmus: %s does not work inside the shell\n", words[0])
					continue
				}
				root := newRoot(&env{out: e.out, err: e.err})
				root.SetArgs(append([]string{"--socket", e.socket}, words...))
				root.SetOut(e.out)
				root.SetErr(e.err)
				root.SetContext(cmd.Context())
				execute(root, e.err)
			}
			return in.Err()
		}),
	}
}
