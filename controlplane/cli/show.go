// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
	"isthmus/controlplane/config"
	"isthmus/controlplane/n4"
	"isthmus/controlplane/printable"
	"isthmus/controlplane/view"
	"isthmus/controlplane/watch"
)

func showCommand(e *env) *cobra.Command {
	show := command.Group(&cobra.Command{
		Use: "show", Short: "show the state of the data plane, and of the PFCP server",
		Example: "  isthmus show port\n  isthmus show drop -j"})
	for _, table := range view.Tables {
		if table.Name != view.IgnoredRouteTable { // an option of another one
			show.AddCommand(tableCommand(e, table))
		}
	}
	return show
}

// withoutName is of a table that takes no name.
func withoutName(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := "takes no name"
	if cmd.Flags().Lookup("where") != nil {
		text += "; --where FIELD=VALUE chooses rows"
	}
	return fmt.Errorf("%s %s, %q was given", cmd.CommandPath(), text, args[0])
}

// showWords are the options of a table.
type showWords struct {
	asJSON, edges, dot, perWorker bool
	wide                          bool
	ignored                       bool
	core                          string // whose SMF's file
	limit                         uint32
	choice                        choice
	watch                         time.Duration
	count                         int
}

func tableCommand(e *env, table *view.Table) *cobra.Command {
	var w showWords
	cmd := &cobra.Command{Use: table.Name, Aliases: []string{table.Name + "s"}, Short: table.Short}
	if table.Key {
		cmd.Use += " [NAME]"
		cmd.Args = cobra.MaximumNArgs(1)
	} else {
		cmd.Args = withoutName
	}
	cmd.Example = fmt.Sprintf("  isthmus show %s\n  isthmus show %[1]s -j", table.Name)
	if watch.HasRates(table.Name) {
		cmd.Example += fmt.Sprintf("\n  isthmus show %s --watch 1s", table.Name)
	}
	if example := map[string]string{
		"session": "--where dnn=internet --where ue_ip4=10.45.0.0/16 --sort downlink_bytes --top 10",
		"rule":    "--where session=n4.1 --where 'packets>0'",
		"port":    "--watch 1s --sort rx_bytes",
		"n4":      "--for open5gs",
	}[table.Name]; example != "" {
		cmd.Example += fmt.Sprintf("\n  isthmus show %s %s", table.Name, example)
	}
	cmd.ValidArgsFunction = e.completeNames(table)
	f := cmd.Flags()
	f.BoolVarP(&w.asJSON, "json", "j", false, "print JSON")
	f.BoolVar(&w.wide, "wide", false, "all columns; a terminal gets none in which no row has anything")
	f.Uint32Var(&w.limit, "limit", 0, "show at most so many rows (0: all)")
	f.DurationVar(&w.watch, "watch", 0, "show it again each `interval`, counters as rates per second")
	f.IntVar(&w.count, "count", 0, "with --watch: end after so many times (0: Ctrl-C)")
	if fields := table.Fields(); len(fields) > 0 {
		w.choice.flags(f)
		command.Values(cmd, "sort", "", fields...)
		command.Values(cmd, "where", "=", fields...)
	}
	if table.Name == "graph" {
		f.BoolVar(&w.edges, "edges", false, "show where each node's packets can go")
		f.BoolVar(&w.dot, "dot", false, "print the graph for graphviz")
		f.BoolVar(&w.perWorker, "workers", false, "one line for each node and worker")
	}
	if table.Name == "route" {
		f.BoolVar(&w.ignored, "ignored", false, "show those of the kernel that are not followed, and why")
	}
	if table.Name == "n4" {
		f.StringVar(&w.core, "for", "", "print the lines for the SMF's file of `CORE`: "+
			strings.Join(view.Cores(), ", "))
		command.Values(cmd, "for", "", view.Cores()...)
	}
	cmd.RunE = command.Failed(func(cmd *cobra.Command, args []string) error {
		if w.core != "" {
			return e.smfLines(cmd.Context(), w.core)
		}
		if w.ignored {
			return e.show(cmd.Context(), view.Lookup(view.IgnoredRouteTable), &w, args)
		}
		return e.show(cmd.Context(), table, &w, args)
	})
	return cmd
}

// smfLines prints the lines of an SMF's file that follow from what runs.
func (e *env) smfLines(ctx context.Context, core string) error {
	var server n4.Snapshot
	var instances []view.Instance
	var ports []view.Port
	var interfaces []struct {
		Port      string
		Addresses []string
	}
	err := cmp.Or(e.rows(ctx, "n4", nil, &server), e.rows(ctx, "instance", nil, &instances),
		e.rows(ctx, "port", nil, &ports), e.rows(ctx, "interfaces", nil, &interfaces))
	if err != nil {
		return err
	}
	mtus := map[netip.Addr]uint32{}
	for _, f := range interfaces {
		for i := range ports {
			if ports[i].Name != f.Port {
				continue
			}
			for _, text := range f.Addresses {
				if p, err := netip.ParsePrefix(text); err == nil {
					mtus[p.Addr()] = ports[i].MTU
				}
			}
		}
	}
	return view.WriteSMF(e.Out, core, &server, instances, mtus)
}

func (e *env) show(ctx context.Context, table *view.Table, w *showWords, args []string) error {
	query, err := w.choice.query()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		query.Set("key", args[0])
	}
	if w.limit > 0 && !w.choice.orders() {
		query.Set("limit", strconv.FormatUint(uint64(w.limit), 10))
	}
	if err := w.choice.read(w.limit); err != nil {
		return err
	}
	var more string
	fetch := func(ctx context.Context) ([]byte, error) {
		data, head, err := e.CallHead(ctx, "GET", "/v1/show/"+table.Name, query, nil)
		if err == nil {
			more = head.Get(v1.NextAfter)
		}
		return data, err
	}
	if w.watch != 0 {
		return e.watchTable(ctx, table, w, fetch)
	}
	bar := command.NewProgress(e.Err, "show "+table.Name)
	data, err := fetch(ctx)
	bar.Done()
	if err == nil && len(args) > 0 && len(w.choice.where) == 0 && w.choice.after == "" &&
		string(bytes.TrimSpace(data)) == "[]" {
		if w.asJSON {
			fmt.Fprintln(e.Out, "[]")
		}
		return e.unknown(ctx, table, args[0])
	}
	if err == nil && w.choice.orders() {
		data, err = w.choice.of(data)
	}
	if err != nil {
		return err
	}
	if more != "" {
		defer fmt.Fprintf(e.Err, "(there are more rows: --after %s)\n", more)
	}
	switch {
	case w.asJSON:
		return e.printJSON(data)
	case w.edges || w.dot || w.perWorker:
		return e.printGraph(data, w.dot, w.perWorker)
	}
	return table.Print(e.narrow(e.Out, w), data)
}

// narrow is where a table goes on its way to a terminal.
func (e *env) narrow(to io.Writer, w *showWords) io.Writer {
	if _, _, terminal := terminalSize(e.Out); !terminal || w.wide {
		return to
	}
	return view.Narrow{Writer: to}
}

func (e *env) printGraph(data []byte, dot, perWorker bool) error {
	var g view.Graph
	if err := json.Unmarshal(data, &g); err != nil {
		return err
	}
	switch {
	case dot:
		return g.WriteDot(e.Out)
	case perWorker:
		return g.WriteWorkers(e.Out)
	}
	return g.WriteEdges(e.Out)
}

func (e *env) printJSON(data []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(data), "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Out, b.String())
	return err
}

// fewNames are as many as an error has.
const fewNames = 8

// unknown is the error of a name that a table does not have. It has the known names where they are few, else the
// nearest one and the command that lists them.
func (e *env) unknown(ctx context.Context, table *view.Table, name string) error {
	names, err := e.names(ctx, table)
	list := "isthmus show " + table.Name + " lists all"
	switch {
	case err != nil:
		return fmt.Errorf("no %s %q; %s", table.Name, name, list)
	case len(names) == 0:
		return fmt.Errorf("no %s %q; there is none at all", table.Name, name)
	case len(names) <= fewNames:
		return fmt.Errorf("no %s %q; there are: %s", table.Name, name, strings.Join(names, ", "))
	}
	return fmt.Errorf("no %s %q%s; %s", table.Name, name, config.Suggest(name, names), list)
}

// names are the first ones that a table has now.
func (e *env) names(ctx context.Context, table *view.Table) (names []string, err error) {
	data, err := e.Call(ctx, "GET", "/v1/show/"+table.Name, url.Values{"limit": {"200"}}, nil)
	if err != nil {
		return nil, err
	}
	var rows []map[string]any
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, err
	}
	fields := []string{"name", "session", "user", "id", "port", "prefix", "address", "interface"}
	for _, row := range rows {
		for _, field := range fields {
			if s, ok := row[field].(string); ok && s != "" {
				if s = printable.Text(s); !slices.Contains(names, s) {
					names = append(names, s)
				}
				break
			}
		}
	}
	return names, nil
}

// completeNames offers the names that the running data plane has.
func (e *env) completeNames(table *view.Table) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if !table.Key || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, _ := e.names(cmd.Context(), table) // none: nothing to offer
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
