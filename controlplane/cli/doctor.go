// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/config"
	"isthmus/controlplane/doctor"
)

func doctorCommand(e *env) *cobra.Command {
	var file, root string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [-c FILE]",
		Short: "say what on this machine costs packets or speed, and what changes it",
		Long: "Say what on this machine costs packets or speed, and what changes it; nothing is changed.\n" +
			"Ports and CPUs are those of FILE, else of the running configuration, else none.\n" +
			"Exit status 1 when something costs or is a fault.",
		Annotations: map[string]string{command.FailsWhen: "Something costs packets or speed, or is a fault."},
		Example:     "  isthmus doctor -c /etc/isthmus/isthmus.yaml\n  isthmus doctor -j",
		Args:        cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("server") || e.Server != "" && file == "" {
				return command.Usage("doctor looks at the machine that it runs on, not at that of " +
					"--server or ISTHMUS_SERVER: run it there, or here with -c FILE alone")
			}
			findings, err := e.look(cmd.Context(), file, root)
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(e.Out)
				encoder.SetIndent("", "  ")
				err = encoder.Encode(findings)
			} else {
				err = printFindings(e.Out, findings)
			}
			worst := doctor.Worst(findings)
			if err == nil && (worst == doctor.Costs || worst == doctor.Fault) {
				err = &command.Exit{Code: command.ExitFailed}
			}
			return err
		}),
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration file (YAML)")
	cmd.Flags().StringVar(&root, "root", "/", "look at a recorded machine: the folder that holds its sys and proc")
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "JSON")
	return cmd
}

// look may last: it asks programs of the machine.
func (e *env) look(ctx context.Context, file, root string) ([]doctor.Finding, error) {
	bar := command.NewProgress(e.Err, "doctor")
	defer bar.Done()
	m, err := e.machine(ctx, file, root)
	if err != nil {
		return nil, err
	}
	return doctor.Look(m), nil
}

// machine is the one at root, with the ports and CPUs of the file or of the running configuration.
func (e *env) machine(ctx context.Context, file, root string) (*doctor.Machine, error) {
	m := &doctor.Machine{Root: root}
	if root == "/" {
		m = liveMachine(ctx)
	}
	c, err := e.configured(ctx, file, root)
	var exit *command.Exit
	if file == "" && errors.As(err, &exit) && exit.Code == command.ExitUnreachable {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	configure(m, c)
	return m, nil
}

// configured is a file's configuration on the machine at root, or without a file the running one.
func (e *env) configured(ctx context.Context, file, root string) (*config.Config, error) {
	if file == "" {
		data, err := e.inEffect(ctx)
		if err != nil {
			return nil, err
		}
		return config.ParseShown("the running configuration", data)
	}
	data, err := config.Read(file)
	if err != nil {
		return nil, err
	}
	site := config.Here()
	site.CPUs.Root = root
	if root != "/" {
		site.CPUs.Allowed = site.CPUs.Online
	}
	return config.ParseOn(site, file, data, nil)
}

// liveMachine is this one.
func liveMachine(ctx context.Context) *doctor.Machine {
	return &doctor.Machine{Root: "/", Run: func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
		return string(out), err
	}}
}

// configure says which ports and CPUs the gateway has.
func configure(m *doctor.Machine, c *config.Config) {
	m.Workers, m.CPUs, m.HugePages, m.Ports = int(c.Engine.Workers), c.Engine.CPUs, c.Engine.HugePages, c.Ports
	m.Narrow, m.Placed = c.Narrow, c.Engine.Placed()
}

func printFindings(out io.Writer, findings []doctor.Finding) error {
	var text strings.Builder
	for _, f := range findings {
		subject := f.Check
		if f.Subject != "" {
			subject += ", " + f.Subject
		}
		fmt.Fprintf(&text, "%-6s %s: %s\n", f.State, subject, f.Found)
		if f.Cost != "" {
			fmt.Fprintf(&text, "       costs:  %s\n", f.Cost)
		}
		if f.Command != "" {
			fmt.Fprintf(&text, "       change: %s\n", f.Command)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
