// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

const (
	enter = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leave = "\x1b[?25h\x1b[?1049l"
)

// Run shows the model on the terminal until a key, the context or a signal ends it.
func Run(ctx context.Context, in, out *os.File, get Get, m *Model, colour bool) error {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(in.Fd()), before)
	fmt.Fprint(out, enter)
	defer fmt.Fprint(out, leave)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	size := make(chan os.Signal, 1)
	signal.Notify(size, syscall.SIGWINCH)
	defer signal.Stop(size)
	keys := make(chan string, 16)
	go readKeys(in, keys)
	samples := make(chan *Sample, 1)
	asked, timer := false, time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-size:
		case <-timer.C:
			if !asked && !m.paused {
				asked = true
				tables := m.Tables()
				go func() { samples <- Take(ctx, get, tables) }()
			}
			timer.Reset(m.period)
		case s := <-samples:
			asked = false
			m.Update(s)
		case key, open := <-keys:
			if !open {
				return nil // the terminal is gone
			}
			quit, again := m.Key(key)
			if quit {
				return nil
			}
			if again {
				timer.Reset(0)
			}
		}
		if err := draw(out, m, colour); err != nil {
			return err
		}
	}
}

// draw writes the screen over the former one, so that nothing flickers.
func draw(out *os.File, m *Model, colour bool) error {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	text := "\x1b[H" + strings.Join(m.Screen(width, height, colour), "\x1b[K\r\n") + "\x1b[K\x1b[J"
	_, err = io.WriteString(out, text)
	return err
}

// sequences that terminals send for keys without a letter.
var sequences = map[string]string{
	"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1bOA": "up", "\x1bOB": "down",
	"\x1bOC": "right", "\x1bOD": "left", "\x1b[Z": "backtab", "\x1b[5~": "pgup", "\x1b[6~": "pgdown",
	"\x1b[H":  "home",
	"\x1b[1~": "home", "\x1b": "esc", "\t": "tab", "\x03": "ctrl-c",
}

// readKeys sends the keys' names until in ends. What one read brings is one key, or letters that were typed fast.
func readKeys(in io.Reader, keys chan<- string) {
	defer close(keys)
	buffer := make([]byte, 64)
	for {
		n, err := in.Read(buffer)
		if err != nil {
			return
		}
		text := string(buffer[:n])
		if name, ok := sequences[text]; ok {
			keys <- name
			continue
		}
		if strings.HasPrefix(text, "\x1b") {
			continue // unknown
		}
		for _, r := range text {
			if name, ok := sequences[string(r)]; ok {
				keys <- name
			} else {
				keys <- string(r)
			}
		}
	}
}
