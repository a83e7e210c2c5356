// SPDX-License-Identifier: Apache-2.0

// Package traffic is the command line of isthmus-traffic, which reads a profile, runs it against a gateway, and reports
// the result as text, JSON and events.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/lab/tester"
	"isthmus/lab/tester/office"
)

// Main runs the program, and returns its exit status.
func Main() int {
	o := &options{}
	if err := o.command().Execute(); err != nil {
		if o.status == 0 {
			o.status = command.ExitUsage
		}
		fmt.Fprintln(os.Stderr, err)
	}
	return o.status
}

// Command is its command line, for the manual; it is not to be run.
func Command() *cobra.Command { return new(options).command() }

type options struct {
	tester.Overrides
	json, engine         string
	events, paced, check bool
	status               int // exit status
}

func (o *options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "isthmus-traffic [OPTIONS] PROFILE.yaml [-- EAL OPTIONS]",
		Short: "send packets through a gateway and prove what comes back",
		Long: "Exit status: 0 good; 1 something was wrong or lost, or an expectation failed;\n" +
			"2 not complete, or a bad profile; 130 interrupted (what was measured is kept).",
		SilenceUsage: true, SilenceErrors: true, Version: command.Version,
		Args: func(cmd *cobra.Command, args []string) error {
			if own := cmd.ArgsLenAtDash(); own == 0 || own < 0 && len(args) == 0 {
				return errors.New("no profile is given; isthmus-traffic --help lists the options")
			} else if own > 1 || own < 0 && len(args) > 1 {
				return errors.New("more than one profile is given")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.run(args[0], args[1:])
			if err != nil {
				o.status = office.Incomplete
			}
			return err
		},
	}
	cmd.SetVersionTemplate(fmt.Sprintf("isthmus-traffic %s\n", command.Version))
	f := cmd.Flags()
	f.BoolVar(&o.check, "check", false, "only read and check the profile")
	f.StringVar(&o.Mode, "mode", "", "fixed, search or steps, instead of the profile's")
	f.StringVar(&o.Rate, "rate", "", "100kpps, 1.5Mpps, 10Gbit, max; means --mode fixed unless that is given")
	f.StringVar(&o.Seconds, "seconds", "", "of a fixed trial or a step")
	f.StringVar(&o.json, "json", "",
		"`file` of the result; -: standard output, and the text goes to standard error")
	f.BoolVar(&o.events, "events", false,
		"a line of JSON on standard output as each trial begins and ends; the text goes to standard error")
	f.BoolVar(&o.paced, "paced", false, "with --events: each trial waits for a line on standard input")
	f.StringVar(&o.Capture, "capture", "", "`file` for a sample of what arrives, as pcap")
	f.BoolVar(&o.NoHuge, "no-huge", false, "without huge pages")
	f.StringVar(&o.engine, "engine", "", "`program` that opens the ports (isthmus-traffic-engine beside this one)")
	return cmd
}

func (o *options) run(file string, eal []string) error {
	if o.paced && !o.events {
		return errors.New("--paced needs --events")
	}
	if o.events && o.json == "-" {
		return errors.New("--events and --json - both need standard output")
	}
	p, err := tester.Load(file)
	if err != nil {
		return err
	}
	if err := p.Override(o.Overrides); err != nil {
		return err
	}
	// The second signal ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if o.check {
		if err := office.Check(ctx, o.engine, p); err != nil {
			return err
		}
		fmt.Printf("%s: good, %d ports, %d streams\n", file, len(p.Ports), len(p.Streams))
		return nil
	}
	r, err := office.Profile(ctx, p, office.Options{Engine: o.engine, EAL: eal, Log: os.Stderr, Command: os.Args,
		Ready: o.ready, Progress: o.progress})
	if err != nil {
		return err
	}
	return o.tell(p, r)
}

func (o *options) ready() {
	if o.events {
		fmt.Println(`{"event":"ready"}`)
	}
}

func (o *options) progress(t *tester.Trial, ended bool) {
	switch {
	case o.events:
		office.Event(os.Stdout, t, ended) // a reader that is gone is noticed by the shell
		if o.paced && !ended {
			waitForLine(os.Stdin)
		}
	case ended:
		var marks strings.Builder
		for _, m := range []struct {
			is   bool
			word string
		}{{t.Wrong > 0, ", wrong contents"}, {t.Interrupted, ", interrupted"},
			{!t.Used && !t.Interrupted, ", disturbed: once more"}} {
			if m.is {
				marks.WriteString(m.word)
			}
		}
		fmt.Fprintf(os.Stderr, "%-8s %9.4f Mpps offered for %.3g s: lost %d of %d%s\n", t.Purpose,
			t.OfferedPPS/1e6, t.Seconds, t.Lost, t.Sent, &marks)
	}
}

// waitForLine returns at a line, or the end.
func waitForLine(in io.Reader) {
	c := make([]byte, 1)
	for {
		if n, err := in.Read(c); err != nil || n == 1 && c[0] == '\n' {
			return
		}
	}
}

// Writes the result in every requested form.
func (o *options) tell(p *tester.Checked, r *tester.Result) error {
	o.status = r.Status
	if r.Interrupted {
		o.status = command.ExitInterrupted
	}
	words := os.Stdout
	if o.events || o.json == "-" {
		words = os.Stderr
	}
	office.Print(words, p, r)
	var err error
	if o.json != "" {
		if err = office.WriteJSON(o.json, r); err != nil {
			o.status = office.Incomplete
			err = fmt.Errorf("%s: the result cannot be written: %w", o.json, err)
		}
	}
	if o.events {
		fmt.Printf("{\"event\":\"done\",\"complete\":%t,\"status\":%d}\n", r.Complete, o.status)
	}
	return err
}
