// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	prompt       = "isthmus> "
	completeTime = 2 * time.Second
	mostOffered  = 200 // words that Tab shows
)

// shellOnTerminal reads lines with editing, former lines and Tab. The terminal is raw only while a line is read.
func (e *env) shellOnTerminal(ctx context.Context, in, out *os.File) error {
	h := openHistory(historyPath())
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keyReader{Reader: in}, out}, prompt)
	t.History = h
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		return e.complete(ctx, t, line, pos)
	}
	for {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return err
		}
		if width, height, ok := terminalSize(out); ok {
			t.SetSize(width, height)
		}
		line, err := t.ReadLine()
		term.Restore(int(in.Fd()), before)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintln(out)
			return nil
		case err != nil && !errors.Is(err, term.ErrPasteIndicator):
			return err
		}
		// Ctrl-C ends a command, here and in a child, and not the shell.
		one, stop := signal.NotifyContext(ctx, os.Interrupt)
		end := e.shellLine(one, line)
		stop()
		if end {
			return nil
		}
	}
}

// keyReader makes Ctrl-C an empty line; to the terminal it would be the end.
type keyReader struct {
	io.Reader
	rest []byte
}

func (r *keyReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		buffer := make([]byte, 256)
		n, err := r.Reader.Read(buffer)
		if err != nil {
			return 0, err
		}
		r.rest = bytes.ReplaceAll(buffer[:n], []byte{0x03}, []byte{0x15, '\r'}) // Ctrl-U: no line; Return
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// complete puts in what all words that may stand at the cursor begin with, or shows them.
func (e *env) complete(ctx context.Context, show io.Writer, line string, pos int) (string, int, bool) {
	words, err := splitWords(line[:pos])
	if err != nil {
		return "", 0, false
	}
	last := ""
	if len(words) > 0 && !strings.HasSuffix(line[:pos], " ") {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	offers, space := e.offers(ctx, append(words, last))
	if len(offers) == 0 {
		return "", 0, false
	}
	common := offers[0]
	for _, o := range offers {
		for !strings.HasPrefix(o, common) {
			common = common[:len(common)-1]
		}
	}
	if len(offers) == 1 && space {
		common += " "
	} else if len(common) <= len(last) {
		fmt.Fprintf(show, "%s\n", strings.Join(offers[:min(len(offers), mostOffered)], "  "))
		return "", 0, false
	}
	if !strings.HasSuffix(line[:pos], last) || !strings.HasPrefix(common, last) {
		return "", 0, false // written with quotes
	}
	before := line[:pos-len(last)] + common
	return before + line[pos:], len(before), true
}

// offers asks the commands what may stand as the last of the words, and whether a space follows it.
func (e *env) offers(ctx context.Context, words []string) (offers []string, space bool) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	quiet := *e
	quiet.Err = io.Discard
	var out bytes.Buffer
	root := quiet.inner(ctx, &out, append([]string{cobra.ShellCompNoDescRequestCmd}, words...)...)
	root.SilenceErrors, root.SilenceUsage = true, true
	if root.Execute() != nil {
		return nil, false
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	var directive cobra.ShellCompDirective
	if _, err := fmt.Sscanf(lines[len(lines)-1], ":%d", &directive); err != nil {
		return nil, false
	}
	for _, word := range lines[:len(lines)-1] {
		if strings.HasPrefix(word, words[len(words)-1]) {
			offers = append(offers, word)
		}
	}
	return offers, directive&cobra.ShellCompDirectiveNoSpace == 0
}
