// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"isthmus/controlplane/command"
	"isthmus/controlplane/view"
	"isthmus/controlplane/watch"
)

const leastInterval = 100 * time.Millisecond

// choice is which rows are shown, and in which order. The server looks for those; the order is ours.
type choice struct {
	where []string
	after string
	sort  string
	top   int
	most  int // rows
}

func (c *choice) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&c.where, "where", nil,
		"only rows so: dnn=internet, ue_ip4=10.1.0.0/16, 'packets>1000', name=home-*, user!= "+
			"(a JSON `field`; may be repeated)")
	f.StringVar(&c.after, "after", "", "pass over so many rows, or go on where a part of them ended")
	f.StringVar(&c.sort, "sort", "",
		"order by this JSON `field`, the largest first, with --watch by its rate; -FIELD: turned round")
	f.IntVar(&c.top, "top", 0, "only the first so many rows (0: all)")
}

// query is what the server is asked for.
func (c *choice) query() (url.Values, error) {
	query := url.Values{}
	if c.after != "" {
		query.Set("after", c.after)
	}
	for _, condition := range c.where {
		at := strings.IndexAny(condition, "=!<>")
		if at <= 0 || condition[at:] == "!" || (condition[at] == '!' && condition[at+1] != '=') {
			return nil, command.Usage("--where %q is no condition such as dnn=internet, packets>9, "+
				"ue_ip4=10.1.0.0/16", condition)
		}
		field, value := condition[:at], condition[at:]
		switch {
		case field == "key" || field == "limit" || field == "after":
			return nil, command.Usage("--where: %s is no field, but an option of its own", field)
		case value[0] == '!':
			value = "!" + value[2:]
		case value[0] == '=':
			value = value[1:]
		}
		query.Add(field, value)
	}
	return query, nil
}

// read checks the words; limit is that of --limit.
func (c *choice) read(limit uint32) error {
	if c.top < 0 {
		return command.Usage("--top %d: a number of rows", c.top)
	}
	c.most = math.MaxInt
	for _, n := range []int{c.top, int(limit)} {
		if n > 0 {
			c.most = min(c.most, n)
		}
	}
	return nil
}

// orders: rows are sorted or cut, not only shown.
func (c *choice) orders() bool { return c.sort != "" || c.top > 0 }

// of returns the JSON of the rows in order.
func (c *choice) of(data []byte) ([]byte, error) {
	rows, err := watch.Rows(data)
	if err == nil && c.sort != "" {
		err = watch.Sort(rows, c.sort)
	}
	if err != nil {
		return nil, err
	}
	return watch.JSON(rows[:min(len(rows), c.most)]), nil
}

// rates are those of the chosen rows, in their order.
func (c *choice) rates(table string, before, after []watch.Row, elapsed time.Duration) ([]watch.Rate, error) {
	rates := watch.Rates(table, before, after, elapsed)
	if c.sort != "" {
		if err := watch.SortRates(table, rates, c.sort); err != nil {
			return nil, err
		}
	}
	return rates[:min(len(rates), c.most)], nil
}

// watcher shows a table again and again: rates where it has counters, else as it is.
type watcher struct {
	e      *env
	table  *view.Table
	words  *showWords
	before []watch.Row
	since  time.Time // of before; zero: there is none yet
}

// watchTable shows a table until the context ends. A control plane that goes away on the way is waited for.
func (e *env) watchTable(
	ctx context.Context, table *view.Table, w *showWords, fetch func(context.Context) ([]byte, error),
) error {
	if w.watch < leastInterval {
		return command.Usage("--watch %s: at least %s", w.watch, leastInterval)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(w.watch)
	defer tick.Stop()
	s := &watcher{e: e, table: table, words: w}
	for shown := 0; w.count == 0 || shown < w.count; {
		data, err := fetch(ctx)
		if err != nil && shown == 0 && ctx.Err() == nil {
			return err
		}
		if err != nil {
			fmt.Fprintln(e.Err, "isthmus:", err)
		} else {
			printed, err := s.step(data)
			if err != nil {
				return err
			}
			if printed {
				shown++
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// step takes in what was fetched now; false: there is no moment before, and so no rates.
func (s *watcher) step(data []byte) (printed bool, err error) {
	if !watch.HasRates(s.table.Name) {
		return true, s.e.watchPlain(s.table, s.words, data)
	}
	now := time.Now()
	rows, err := watch.Rows(data)
	if err != nil {
		return false, err
	}
	before, since := s.before, s.since
	s.before, s.since = rows, now
	if since.IsZero() {
		return false, nil
	}
	return true, s.e.watchRates(s.table, s.words, before, rows, now.Sub(since))
}

func (e *env) watchPlain(table *view.Table, w *showWords, data []byte) error {
	if w.choice.orders() {
		var err error
		if data, err = w.choice.of(data); err != nil {
			return err
		}
	}
	if w.asJSON {
		_, err := fmt.Fprintf(e.Out, "%s\n", data)
		return err
	}
	var text strings.Builder
	if err := table.Print(e.narrow(&text, w), data); err != nil {
		return err
	}
	return e.page(text.String())
}

func (e *env) watchRates(table *view.Table, w *showWords, before, after []watch.Row, elapsed time.Duration) error {
	rates, err := w.choice.rates(table.Name, before, after, elapsed)
	if err != nil {
		return err
	}
	if w.asJSON {
		return json.NewEncoder(e.Out).Encode(watch.Report(table.Name, rates, elapsed))
	}
	titles, right, cells := watch.Table(table.Name, rates)
	var text strings.Builder
	if err := view.WriteTable(e.narrow(&text, w), titles, right, cells); err != nil {
		return err
	}
	return e.page(text.String())
}

// page shows a text in place of the former one on a terminal, where what is too high or too wide is cut; else below it.
func (e *env) page(text string) error {
	width, height, ok := terminalSize(e.Out)
	if !ok {
		_, err := fmt.Fprintln(e.Out, text)
		return err
	}
	var b strings.Builder
	b.WriteString("\x1b[H\x1b[2J" + time.Now().Format(time.TimeOnly) + "\n")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i+3 > height && i+1 < len(lines) {
			fmt.Fprintf(&b, "(%d more; --top, --where)", len(lines)-i)
			break
		}
		runes := []rune(line)
		b.WriteString(string(runes[:min(len(runes), width)]) + "\n")
	}
	_, err := io.WriteString(e.Out, b.String())
	return err
}

// terminalSize is that of the terminal that w is; false: it is none.
func terminalSize(w any) (width, height int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return width, height, err == nil && width > 0 && height > 0
}

// coloured: output to w may have colours, on a terminal without NO_COLOR (https://no-color.org).
func coloured(w io.Writer) bool {
	_, _, ok := terminalSize(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
