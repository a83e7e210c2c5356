// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent"
	"isthmus/controlplane/command"
	"isthmus/controlplane/view"
)

func showCommand(e *env) *cobra.Command {
	show := command.Group(&cobra.Command{Use: "show", Short: "show the state of the data plane, and of the PFCP server"})
	for _, table := range view.Tables {
		show.AddCommand(tableCommand(e, table))
	}
	return show
}

func tableCommand(e *env, table *view.Table) *cobra.Command {
	var asJSON, edges, dot, perWorker bool
	var limit, after uint32
	var where []string
	cmd := &cobra.Command{Use: table.Name, Aliases: []string{table.Name + "s"}, Short: table.Short, Args: cobra.NoArgs}
	if table.Key {
		cmd.Use += " [NAME]"
		cmd.Args = cobra.MaximumNArgs(1)
	}
	cmd.ValidArgsFunction = e.completeNames(table)
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print JSON")
	cmd.Flags().Uint32Var(&limit, "limit", 0, "show at most so many rows (0: all)")
	if len(table.Fields()) > 0 {
		cmd.Flags().Uint32Var(&after, "after", 0, "pass over so many rows")
		cmd.Flags().StringArrayVar(&where, "where", nil, whereHelp)
		cmd.RegisterFlagCompletionFunc("where", func(*cobra.Command, []string, string) ([]string,
			cobra.ShellCompDirective) {
			return table.Fields(), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		})
	}
	if table.Name == "graph" {
		cmd.Flags().BoolVar(&edges, "edges", false, "show where each node's packets can go")
		cmd.Flags().BoolVar(&dot, "dot", false, "print the graph for graphviz")
		cmd.Flags().BoolVar(&perWorker, "workers", false, "one line for each node and worker")
	}
	cmd.RunE = command.Failed(func(cmd *cobra.Command, args []string) error {
		query := url.Values{}
		if len(args) > 0 {
			query.Set("key", args[0])
		}
		if limit > 0 {
			query.Set("limit", strconv.FormatUint(uint64(limit), 10))
		}
		if after > 0 {
			query.Set("after", strconv.FormatUint(uint64(after), 10))
		}
		for _, condition := range where {
			if err := addCondition(query, condition); err != nil {
				return err
			}
		}
		data, head, err := e.CallHead(cmd.Context(), "GET", "/v1/show/"+table.Name, query, nil)
		if err != nil {
			return err
		}
		if next := head.Get(agent.NextAfter); next != "" {
			defer fmt.Fprintf(e.Err, "(there are more rows: --after %s)\n", next)
		}
		switch {
		case asJSON:
			return e.printJSON(data)
		case edges || dot || perWorker:
			return e.printGraph(data, dot, perWorker)
		}
		return table.Print(e.Out, data)
	})
	return cmd
}

const whereHelp = "only rows with FIELD=VALUE, FIELD!=VALUE, FIELD<NUMBER, FIELD>NUMBER; " +
	"* stands before or after a VALUE; all of several hold"

// addCondition turns FIELD=VALUE and its like into a parameter of the query.
func addCondition(query url.Values, condition string) error {
	at := strings.IndexAny(condition, "=!<>")
	if at <= 0 {
		return &command.Exit{Code: command.ExitUsage, Err: fmt.Errorf("--where %q: FIELD=VALUE is needed",
			condition)}
	}
	field, value := condition[:at], condition[at:]
	switch {
	case field == "key" || field == "limit" || field == "after":
		return &command.Exit{Code: command.ExitUsage, Err: fmt.Errorf("--where: %s is no field", field)}
	case strings.HasPrefix(value, "!="):
		value = "!" + value[2:]
	case value[0] == '=':
		value = value[1:]
	}
	query.Add(field, value)
	return nil
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

// completeNames offers the names that the running data plane has.
func (e *env) completeNames(table *view.Table) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if !table.Key || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		data, err := e.Call(cmd.Context(), "GET", "/v1/show/"+table.Name, url.Values{"limit": {"200"}}, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var rows []map[string]any
		if json.Unmarshal(data, &rows) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, row := range rows {
			for _, field := range []string{"name", "session", "id", "port", "prefix", "interface"} {
				if s, ok := row[field].(string); ok && !slices.Contains(names, s) {
					names = append(names, s)
					break
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
