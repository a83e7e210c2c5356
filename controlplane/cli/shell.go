// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
)

func shellCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "interactive: one command a line, without the word isthmus",
		Long: "Interactive: one command a line, without the word isthmus; exit or Ctrl-D leaves.\n\n" +
			"On a terminal with Tab, and the former lines by the arrow keys, kept in\n" +
			"$XDG_STATE_HOME/isthmus/history (~/.local/state): the last 1,000, mode 0600.",
		Example: "  isthmus shell\n  echo show drop | isthmus shell", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			if in, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(in) && isTerminal(e.Out) {
				return e.shellOnTerminal(cmd.Context(), in, e.Out.(*os.File))
			}
			in := bufio.NewScanner(cmd.InOrStdin())
			for in.Scan() {
				if e.shellLine(cmd.Context(), in.Text()) {
					return nil
				}
			}
			return in.Err()
		}),
	}
}

func isTerminal(w any) bool {
	_, _, ok := terminalSize(w)
	return ok
}

// shellLine carries one line out; true: it says that the shell shall end.
func (e *env) shellLine(ctx context.Context, line string) (end bool) {
	words, err := splitWords(line)
	if err != nil {
		fmt.Fprintln(e.Err, "isthmus:", err)
		return false
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return false
	}
	switch words[0] {
	case "exit", "quit":
		return true
	case "shell", "run":
		fmt.Fprintf(e.Err, "isthmus: %s does not work inside the shell\n", words[0])
		return false
	case "top": // it reads keys, and would go on reading
		if isTerminal(e.Out) {
			e.runSelf(words)
			return false
		}
	}
	command.Execute(e.inner(ctx, e.Out, words...), e.Err)
	return false
}

// inner is a tree of commands for one line.
func (e *env) inner(ctx context.Context, out io.Writer, words ...string) *cobra.Command {
	root := newRoot(&env{Env: command.Env{Out: out, Err: e.Err}, interactive: true})
	if len(words) > 0 && words[0] == cobra.ShellCompNoDescRequestCmd {
		words = slices.Concat(words[:1], e.Where(), words[1:])
	} else {
		words = append(e.Where(), words...)
	}
	root.SetArgs(words)
	root.SetOut(out)
	root.SetErr(e.Err)
	root.SetContext(ctx)
	return root
}

// runSelf runs this program as a child, with the terminal.
func (e *env) runSelf(words []string) {
	path, err := os.Executable()
	if err != nil {
		fmt.Fprintln(e.Err, "isthmus:", err)
		return
	}
	cmd := exec.Command(path, append(e.Where(), words...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, e.Out, e.Err
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) { // a child that failed has said why
		fmt.Fprintln(e.Err, "isthmus:", err)
	}
}

// splitWords parts a line at spaces; quotes keep them, a backslash the character after it.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, escaped, quote := false, false, rune(0)
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inWord, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inWord, quote = true, r
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("the line ends within quotes: close them, or put \\ before the quote")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
