// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/plan"
	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
	"isthmus/controlplane/config"
)

func configCommand(e *env) *cobra.Command {
	group := command.Group(&cobra.Command{Use: "config", Short: "check, compare, apply and show the configuration",
		Long: "A configuration is FILE and its drop-ins: the files FILE.d/*.yaml, in the order of their names.",
		Example: "  isthmus config check gateway.yaml\n  isthmus config diff gateway.yaml\n" +
			"  isthmus config apply gateway.yaml"})
	group.AddCommand(&cobra.Command{
		Use: "check FILE", Short: "say whether a file would be accepted; needs nothing running",
		Long: "Say whether a file would be accepted. Where a control plane runs, also what its data plane cannot\n" +
			"change without a restart.",
		Example: "  isthmus config check gateway.yaml", Args: cobra.ExactArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error { return e.check(cmd.Context(), args[0]) }),
	}, applyCommand(e), diffCommand(e), showConfigCommand(e), &cobra.Command{
		Use: "schema", Short: "print the JSON Schema of the file (draft 2020-12), for editors and checks",
		Example: "  isthmus config schema >config.schema.json", Args: cobra.NoArgs,
		RunE: command.Failed(func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err == nil {
				_, err = e.Out.Write(schema)
			}
			return err
		}),
	})
	return group
}

// check says whether a file would be accepted here.
func (e *env) check(ctx context.Context, file string) error {
	plan, err := plan.Load(file)
	if err == nil {
		err = plan.Check()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%s: good, %d objects\n", file, len(plan.Objects))
	if plan.Placed != "" {
		fmt.Fprintf(e.Out, "note: %s\n", plan.Placed)
	}
	for _, n := range plan.Narrow {
		fmt.Fprintf(e.Out, "note: %s:%d: port %s: packets of 1,500 bytes in tunnels leave in two fragments: "+
			"mtu %d needed, %d given\n", n.File, n.Line, n.Port, n.Needs, n.MTU)
	}
	for _, what := range plan.Lacks() {
		fmt.Fprintln(e.Out, "note:", what)
	}
	var checked v1.Checked
	data, err := e.Call(ctx, "POST", "/v1/config/check", url.Values{"name": {file}}, plan.Text)
	if err == nil && json.Unmarshal(data, &checked) == nil { // else none runs, or an older one
		for _, what := range checked.Fixed {
			fmt.Fprintln(e.Out, "note: refused while the data plane runs:", what)
		}
	}
	return nil
}

func showConfigCommand(e *env) *cobra.Command {
	var effective bool
	cmd := &cobra.Command{
		Use: "show", Short: "print the running configuration, without secrets",
		Long: "Print the running configuration as its files say it, without secrets and comments.\n\n" +
			"--effective prints what that makes here: one document, with drop-ins, the environment's values\n" +
			"and the CPUs that auto chose.",
		Example: "  isthmus config show >running.yaml\n  isthmus config show --effective", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if effective {
				query.Set("effective", "true")
			}
			data, err := e.Call(cmd.Context(), "GET", "/v1/config", query, nil)
			if err != nil {
				return err
			}
			_, err = e.Out.Write(data)
			return err
		}),
	}
	cmd.Flags().BoolVar(&effective, "effective", false, "as it is in effect on that machine")
	return cmd
}

// inEffect is the running configuration with all that its control plane makes of it, without secrets.
func (e *env) inEffect(ctx context.Context) ([]byte, error) {
	return e.Call(ctx, "GET", "/v1/config", url.Values{"effective": {"true"}}, nil)
}

// change asks for the configuration of a file, or without one for the control plane's own, to be applied.
func (e *env) change(ctx context.Context, what string, args []string, dry bool) (res v1.Result, err error) {
	path, query, body := "/v1/config/reload", url.Values{}, []byte(nil)
	if len(args) > 0 {
		if body, err = config.Read(args[0]); err != nil {
			return res, err
		}
		path = "/v1/config/apply"
		query.Set("name", args[0])
	}
	if dry {
		query.Set("dry_run", "true")
	}
	data, err := e.Ask(ctx, what, "POST", path, query, body)
	if err == nil {
		err = json.Unmarshal(data, &res)
	}
	if err == nil && dry && !res.DryRun {
		err = errors.New("the control plane is of an older release, has no dry run, and applied it")
	}
	return res, err
}

func applyCommand(e *env) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply [FILE]",
		Short: "make a file the running configuration; without FILE, read the control plane's own file again",
		Long: "Make a file the running configuration. Only what differs is sent to the data plane, as one\n" +
			"transaction. A refused file changes nothing.\n\n" +
			"--dry-run goes through all that may fail on this machine before the data plane's commit: files,\n" +
			"addresses, certificates, room for the stored configuration, settings that need a restart. Only\n" +
			"the commit itself shows whether the data plane has room and can open a new port's device.",
		Example: "  isthmus config apply gateway.yaml --dry-run\n  isthmus config apply gateway.yaml\n" +
			"  isthmus config apply",
		Args: cobra.MaximumNArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			res, err := e.change(cmd.Context(), "config apply", args, dry)
			if err != nil {
				return err
			}
			done, sent, deleted := "applied", "sent", "deleted"
			if dry {
				done, sent, deleted = "would be applied", "to send", "to delete"
			}
			change := fmt.Sprintf("%d %s, %d %s", res.Put, sent, res.Deleted, deleted)
			if res.Put+res.Deleted == 0 {
				change = "the data plane has them"
			}
			fmt.Fprintf(e.Out, "%s: %d objects, %s\n", done, res.Objects, change)
			for _, one := range res.Changes {
				fmt.Fprintln(e.Out, " ", one)
			}
			if res.More > 0 {
				fmt.Fprintf(e.Out, "  ... and %d more\n", res.More)
			}
			e.notes(&res)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing; say what would change, or why it would be refused")
	return cmd
}

func (e *env) notes(res *v1.Result) {
	for _, what := range append([]string{res.Note}, res.Here...) {
		if what != "" {
			fmt.Fprintln(e.Out, "note:", what)
		}
	}
}

func diffCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "diff [FILE]",
		Short: "say which keys an apply would change; without FILE, of the control plane's own file",
		Long: "Say which keys of the running configuration an apply would change, by a dry run of it:\n" +
			"  ~ KEY: OLD -> NEW\n  + KEY: NEW\n  - KEY: OLD\nEntries of lists are compared by name.",
		Example: "  isthmus config diff gateway.yaml\n  isthmus config diff",
		Args:    cobra.MaximumNArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			res, err := e.change(cmd.Context(), "config diff", args, true)
			if err != nil {
				return err
			}
			for _, line := range res.Keys {
				fmt.Fprintln(e.Out, line)
			}
			if len(res.Keys) == 0 {
				fmt.Fprintln(e.Out, "no difference")
			}
			e.notes(&res)
			return nil
		}),
	}
}
