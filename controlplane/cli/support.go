// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
	"isthmus/controlplane/config"
	"isthmus/controlplane/doctor"
	"isthmus/controlplane/support"
	"isthmus/controlplane/view"
)

const (
	supportRows = "1000"          // of a table
	supportTime = 2 * time.Minute // for everything
)

func supportCommand(e *env) *cobra.Command {
	var file, out string
	var logs []string
	cmd := &cobra.Command{
		Use:   "support",
		Short: "make one archive for a bug report: configuration, tables, logs, metrics, machine",
		Args:  cobra.NoArgs,
		Long: "Make one archive for a bug report: configuration, status, all tables of show\n" +
			"(1,000 rows each), metrics, logs, versions, the machine, what doctor finds.\n" +
			"What cannot be had is named, and the rest is written all the same: with --server,\n" +
			"what only the gateway's machine knows (logs, metrics, machine, doctor).\n\n" +
			"Secrets, comments and words that may hold a name are removed. Names of users (IMSI,\n" +
			"MSISDN, NAI) and circuit ids are replaced by hashes, the same within an archive.\n" +
			"Addresses and names of sessions, ports and peers stay. Look into it before you send it.",
		Example: "  isthmus support\n  isthmus support -o report.tar.gz --log /var/log/isthmus.log",
	}
	cmd.Flags().StringVarP(&out, "output", "o", "",
		"file to write, - for standard output (default: isthmus-support-TIME.tar.gz)")
	cmd.Flags().StringVarP(&file, "config", "c", "/etc/isthmus/isthmus.yaml",
		"configuration file, when no control plane answers")
	cmd.Flags().StringArrayVar(&logs, "log", nil, "a log file to take in (may be repeated)")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), supportTime)
		defer cancel()
		now := time.Now()
		folder := "isthmus-support-" + now.UTC().Format("20060102T150405Z")
		if out == "" {
			out = folder + ".tar.gz"
		}
		w := io.Writer(e.Out)
		if out != "-" {
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			defer f.Close()
			w = f
		}
		bar := command.NewProgress(e.Err, "support")
		outcomes, err := support.Write(ctx, w, folder, now, counted(bar, e.supportParts(ctx, file, logs)))
		bar.Done()
		if err != nil {
			return err
		}
		e.tellOutcomes(out, outcomes)
		return nil
	})
	return cmd
}

// counted moves the bar with each part.
func counted(bar *command.Progress, parts []support.Part) []support.Part {
	for i, p := range parts {
		parts[i].Get = func(ctx context.Context) ([]byte, error) {
			bar.Set(p.Name, float64(i)/float64(len(parts)))
			return p.Get(ctx)
		}
	}
	return parts
}

// tellOutcomes says on standard error what is missing, a line for each reason.
func (e *env) tellOutcomes(out string, outcomes []support.Outcome) {
	here, missing, reasons := 0, map[string][]string{}, []string{}
	for _, o := range outcomes {
		if o.Bytes > 0 {
			here++
		}
		if o.Err == nil {
			continue
		}
		why := strings.ReplaceAll(o.Err.Error(), "\n", "; ")
		if missing[why] == nil {
			reasons = append(reasons, why)
		}
		missing[why] = append(missing[why], o.Name)
	}
	for _, why := range reasons {
		names := missing[why]
		if len(names) > 4 {
			names = append(names[:3:3], fmt.Sprintf("%d more", len(names)-3))
		}
		fmt.Fprintf(e.Err, "missing: %s: %s\n", strings.Join(names, ", "), why)
	}
	fmt.Fprintf(e.Err, "%s: %d of %d parts (MANIFEST lists them). Secrets are removed, addresses are not: "+
		"look into it before you send it\n", out, here, len(outcomes))
}

// errElsewhere stands for what this machine says of itself, where the control plane is on another.
var errElsewhere = errors.New("only its own machine knows: run `isthmus support` there, without --server")

// supportParts is what the archive is made of.
func (e *env) supportParts(ctx context.Context, file string, logs []string) []support.Part {
	var status v1.Status
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	data, err := e.Call(short, "GET", "/v1/status", nil, nil)
	if err == nil {
		err = json.Unmarshal(data, &status)
	}
	names := support.NewNames()
	text, c, from := e.configuration(ctx, file)
	var why error
	if c == nil {
		why = cmp.Or(from, errors.New("there is no configuration"))
	}
	parts := []support.Part{
		// First, for the names in it are known to what follows.
		{Name: "configuration.yaml", Get: func(context.Context) ([]byte, error) {
			if text == nil {
				return nil, from
			}
			out, err := config.Redacted(text, names.Hide)
			if err != nil {
				err = fmt.Errorf("left out, for it cannot be read, nor secrets be found in it: %w", err)
			}
			return out, err
		}},
		{Name: "status.json", Get: func(context.Context) ([]byte, error) {
			if err != nil {
				return nil, err
			}
			return names.JSON(data, reflect.TypeFor[v1.Status]())
		}},
		{Name: "version", Get: func(context.Context) ([]byte, error) { return e.versions(&status), nil }},
	}
	machine := []support.Part{
		{Name: "doctor.json", Get: func(ctx context.Context) ([]byte, error) { return e.findings(ctx, c, why) }},
		names.Journal("isthmus"), names.Journal("isthmus-dp"),
	}
	machine = append(machine, support.Process("isthmus", status.PID)...)
	machine = append(machine, support.Process("isthmus-dp", int(status.DPPID))...)
	machine = append(append(machine, names.Machine()...), support.Part{Name: "metrics",
		Get: func(ctx context.Context) ([]byte, error) { return metricsOf(ctx, c, why) }})
	for i := range machine {
		if e.Server != "" {
			machine[i].Get = func(context.Context) ([]byte, error) { return nil, errElsewhere }
		}
	}
	for _, path := range logs {
		parts = append(parts, names.Tail("log/"+strings.TrimLeft(filepath.Clean(path), "./"), path))
	}
	parts = append(parts, machine...)
	// Last what a hanging control plane may delay; one without a status is not asked again.
	hangs := err != nil && short.Err() != nil
	for _, table := range view.Tables {
		parts = append(parts, support.Part{Name: "show/" + table.Name + ".json",
			Get: e.tablePart(names, table, hangs)})
	}
	return parts
}

func (e *env) tablePart(names *support.Names, table *view.Table, hangs bool) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		if hangs {
			return nil, errors.New("the control plane does not answer")
		}
		data, err := e.Call(ctx, "GET", "/v1/show/"+table.Name, url.Values{"limit": {supportRows}}, nil)
		if err != nil {
			return nil, err
		}
		return names.JSON(data, table.Answer)
	}
}

// configuration is the running one, or the file's when no control plane of this machine answers: what it says and what
// it is. nil: neither, and why.
func (e *env) configuration(ctx context.Context, file string) ([]byte, *config.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	text, err := e.Call(ctx, "GET", "/v1/config", nil, nil)
	if err == nil {
		c, bad := e.configured(ctx, "", "/")
		return text, c, bad
	}
	if e.Server != "" {
		return nil, nil, err
	}
	text, fault := config.Read(file)
	if fault != nil {
		return nil, nil, errors.Join(err, fault)
	}
	c, bad := e.configured(ctx, file, "/")
	return text, c, bad
}

func (e *env) versions(s *v1.Status) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "isthmus %s\n", command.Version)
	fmt.Fprintf(&b, "running control plane %s\nrunning data plane %s\n", s.Version, s.DPVersion)
	if info, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprint(&b, info)
	}
	return b.Bytes()
}

func (e *env) findings(ctx context.Context, c *config.Config, fault error) ([]byte, error) {
	m := liveMachine(ctx)
	if c == nil {
		fault = fmt.Errorf("without ports and CPUs: %w", fault)
	} else {
		configure(m, c)
	}
	data, err := json.MarshalIndent(doctor.Look(m), "", "  ")
	return data, errors.Join(fault, err)
}

// metricsOf asks the metrics endpoint that the configuration names.
func metricsOf(ctx context.Context, c *config.Config, fault error) ([]byte, error) {
	if c == nil {
		return nil, fmt.Errorf("without a configuration it is not known where they are: %w", fault)
	}
	if _, _, err := net.SplitHostPort(c.Control.Metrics); err != nil {
		return nil, fmt.Errorf("no metrics endpoint is configured (control.metrics: %s)", c.Control.Metrics)
	}
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+c.Control.Metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, errors.New(res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, 16<<20))
}
