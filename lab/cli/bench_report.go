// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/lab/bench"
	"isthmus/lab/l3fwd"
	"isthmus/lab/peer"
	"isthmus/lab/report"
	"isthmus/lab/suite"
)

// reportWords are the options of a report.
type reportWords struct {
	dir, from string
	sections  []string
}

// withReport adds `--report DIR`, which measures everything in place of one profile, to the command bench.
func withReport(e *env, cmd *cobra.Command, opt *bench.Options, words *benchWords) {
	var w reportWords
	f := cmd.Flags()
	f.StringVar(&w.dir, "report", "", "no PROFILE: measure everything, and write a page with the figures into this "+
		"folder")
	f.StringVar(&w.from, "from", "", "with --report: measure nothing, make the page from this data.json")
	f.StringSliceVar(&w.sections, "sections", nil, "with --report: measure these alone, for example cost,flows")
	oneProfile, args := cmd.RunE, cmd.Args
	cmd.Args = func(cmd *cobra.Command, list []string) error {
		switch {
		case w.dir == "" && (w.from != "" || w.sections != nil):
			return errors.New("--from and --sections need --report DIR")
		case w.from != "" && w.sections != nil:
			return errors.New("--from measures nothing: leave --sections away")
		case w.dir == "":
			return args(cmd, list)
		case len(list) > 0:
			return fmt.Errorf("--report measures every profile: leave %q away", list[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, list []string) error {
		if w.dir == "" {
			return oneProfile(cmd, list)
		}
		return command.Failed(func(cmd *cobra.Command, _ []string) error {
			if w.from != "" {
				return reportAgain(e.Out, w)
			}
			return reportRun(cmd.Context(), e, &w, *opt, words)
		})(cmd, list)
	}
}

// reportAgain makes the page from figures that were measured before.
func reportAgain(out io.Writer, w reportWords) error {
	r, err := report.Read(w.from)
	if err != nil {
		return err
	}
	if err := r.Write(w.dir); err != nil {
		return err
	}
	return printReport(out, r, w.dir)
}

// printReport writes the tables and where the page is.
func printReport(out io.Writer, r *report.Report, dir string) error {
	if err := r.Text(out); err != nil {
		return err
	}
	page := filepath.Join(dir, report.PageFile)
	if full, err := filepath.Abs(page); err == nil {
		page = full
	}
	_, err := fmt.Fprintf(out, "\n%s\n", page)
	return err
}

// reportRun measures everything.
func reportRun(ctx context.Context, e *env, w *reportWords, opt bench.Options, words *benchWords) error {
	if opt.Instances != 1 || opt.Size != 0 || words.rate != "" || words.json != "" || words.seconds != 0 ||
		words.printConfig {
		return &command.Exit{Code: command.ExitUsage,
			Err: errors.New("--report chooses --instances, --size, --rate, --seconds and --json itself: leave them " +
				"away")}
	}
	if opt.Link == bench.LinkSynth {
		return &command.Exit{Code: command.ExitUsage,
			Err: errors.New("--report needs a link for the tester; what needs synth ports is measured on them anyway")}
	}
	if err := words.read(&opt); err != nil {
		return &command.Exit{Code: command.ExitUsage, Err: err}
	}
	opt.Version, opt.Progress, opt.Command = command.Version, e.Err, strings.Join(os.Args, " ")
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := suite.Run(ctx, suite.Options{
		Base: opt, Sections: w.sections, Quick: opt.Quick, Dir: w.dir, Progress: e.Err,
		Tools: suite.Tools{
			Link: bench.Measure, Synth: bench.Run, Place: place,
			Peers: func(ctx context.Context, opt bench.Options, rounds int) ([]peer.Row, error) {
				return comparePeers(ctx, opt, rounds, func(format string, args ...any) {
					fmt.Fprintf(e.Err, format+"\n", args...)
				})
			},
			Routers: func(ctx context.Context, opt bench.Options) (*l3fwd.Result, error) {
				return l3fwd.Run(ctx, l3fwdOptions(e, opt, &benchWords{peers: true, rounds: 1}))
			},
		},
	})
	if r != nil {
		if err := printReport(e.Out, r, w.dir); err != nil {
			return err
		}
	}
	if r != nil && r.Interrupted {
		return &command.Exit{Code: command.ExitInterrupted, Err: err}
	}
	return err
}

// place gives the gateways and the tester their usual CPUs.
func place(opt *bench.Options) (fits bool, err error) {
	threads := opt.Workers * opt.Instances
	opt.CPUs, opt.TesterCPUs, opt.ControlCPUs, err = bench.Placement("", "", "", threads, opt.Instances)
	return len(opt.CPUs) == threads && len(opt.TesterCPUs) == opt.Instances, err
}
