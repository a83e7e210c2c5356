// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/top"
)

func topCommand(e *env) *cobra.Command {
	period := time.Second
	once := false
	cmd := &cobra.Command{
		Use: "top", Short: "a full screen of rates, drops that rise, sessions, workers, peers, homes",
		Args: cobra.NoArgs,
		Long: "A full screen of rates, drops that rise, sessions, workers, peers, nodes of the graph, homes who\n" +
			"sign in, RADIUS servers and pools.\n\n" +
			"Keys: 1 to 9 or Tab the view, s the order, r turned round, p pause, + and - how often, h help, q\n" +
			"quit. Without colours where NO_COLOR is set. --once prints one overview and needs no terminal.",
		Example: "  isthmus top\n  isthmus top --once --interval 5s",
	}
	cmd.Flags().DurationVar(&period, "interval", period, "time between two looks, 250ms to 1m")
	cmd.Flags().BoolVar(&once, "once", false, "print one screen, of the rates over one interval, and end")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if period < 250*time.Millisecond || period > time.Minute {
			return command.Usage("--interval %s: 250ms to 1m", period)
		}
		get := func(ctx context.Context, path string, query url.Values) ([]byte, error) {
			return e.Call(ctx, "GET", path, query, nil)
		}
		m := top.NewModel(period)
		width, _, terminal := terminalSize(e.Out)
		if once {
			return e.topOnce(cmd.Context(), get, m, period, width)
		}
		in, isFile := cmd.InOrStdin().(*os.File)
		if _, _, ok := terminalSize(in); !ok || !isFile || !terminal {
			return errors.New("top needs a terminal; --once prints one screen")
		}
		return top.Run(cmd.Context(), in, e.Out.(*os.File), get, m, coloured(e.Out))
	})
	return cmd
}

// topOnce prints the overview of two looks.
func (e *env) topOnce(ctx context.Context, get top.Get, m *top.Model, period time.Duration, width int) error {
	if width == 0 {
		width = 120
		if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 40 && n <= 1000 {
			width = n
		}
	}
	first := top.Take(ctx, get, m.Tables())
	if first.Err != nil {
		return first.Err
	}
	m.Update(first)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(period):
	}
	m.Update(top.Take(ctx, get, m.Tables()))
	for _, line := range m.Screen(width, 0, coloured(e.Out)) {
		if _, err := fmt.Fprintln(e.Out, line); err != nil {
			return err
		}
	}
	return nil
}
