// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/lab/bench"
	"isthmus/lab/demo"
	"isthmus/lab/l3fwd"
	"isthmus/lab/peer"
)

// benchWords are the options of a benchmark as they stand on the command line.
type benchWords struct {
	json, cpus, testerCPUs, controlCPUs, switchCPUs, goal, rate string
	metrics                                                     string
	printConfig, peers, compare, linkGiven                      bool
	rounds, ports                                               int
	seconds                                                     float64
}

func benchCommand(e *env) *cobra.Command {
	opt, words := bench.Options{}, benchWords{}
	cmd := &cobra.Command{
		Use:   "bench PROFILE",
		Short: "measure the gateway; starts a data plane, and a tester, of its own",
		Long: "Measure the gateway: from outside, with isthmus-traffic over memif or another link, or (--link synth) " +
			"what a packet\n" +
			"costs inside it, with packets made and taken in the graph.\n\nProfiles:\n" + profileHelp(),
		Example: "  isthmus bench agf-symmetric --quick\n  isthmus bench upf --sessions 1000 --seconds 1\n" +
			"  isthmus bench --report report",
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{command.InterruptedWhen: "Interrupted; it printed what it had."},
	}
	for _, list := range bench.AllProfiles() {
		for _, p := range list {
			cmd.ValidArgs = append(cmd.ValidArgs, p.Name)
		}
	}
	benchFlags(cmd, &opt, &words)
	cmd.RunE = command.Failed(func(cmd *cobra.Command, args []string) error {
		opt.Profile, opt.Version, opt.Progress = args[0], command.Version, e.Err
		opt.Command = strings.Join(os.Args, " ")
		if bench.OnlySynth(opt.Profile) && !cmd.Flags().Changed("link") {
			opt.Link = bench.LinkSynth
		}
		sessions, goal := bench.Presets(opt.Profile)
		if sessions > 0 && !cmd.Flags().Changed("sessions") {
			opt.Sessions = sessions
		}
		if goal != "" && !cmd.Flags().Changed("goal") {
			words.goal = goal
		}
		words.linkGiven = cmd.Flags().Changed("link")
		if err := words.read(&opt); err != nil {
			return err
		}
		if words.printConfig {
			text, err := bench.Configuration(opt)
			if err != nil {
				return err
			}
			_, err = e.Out.Write(text)
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if words.compare {
			return benchCompare(ctx, e, opt, &words)
		}
		if opt.Profile == l3fwd.Profile {
			return benchL3fwd(ctx, e, opt, &words)
		}
		if opt.Link == bench.LinkSynth {
			return benchInside(ctx, e, opt, words.json)
		}
		return benchOutside(ctx, e, opt, &words)
	})
	withReport(e, cmd, &opt, &words)
	return cmd
}

func benchFlags(cmd *cobra.Command, opt *bench.Options, words *benchWords) {
	f := cmd.Flags()
	f.StringVar(&opt.Link, "link", bench.LinkMemif, "between tester and gateway: "+strings.Join(bench.LinkNames,
		", "))
	command.Values(cmd, "link", "", bench.LinkNames...)
	f.Float64Var(&words.seconds, "seconds", 0,
		"length of a trial (default 1); --link synth: time for each direction (default 3)")
	f.IntVar(&opt.Workers, "workers", 1, "worker threads of a gateway")
	f.BoolVar(&opt.AnyWorker, "any-worker", false,
		"--link synth: packets come to any worker; what is another's is handed over")
	f.IntVar(&opt.Subscribers, "subscribers", 1000, "subscribers of a gateway, half QinQ and half QinQ + PPPoE")
	f.IntVar(&opt.Routes, "routes", 16, "routes of router and router6, 2 to 2097152")
	f.IntVar(&opt.Sessions, "sessions", 65536, "sessions of a mobile function, or UEs of vepc, 1 to 1048576")
	f.BoolVar(&opt.Combined, "combined", false, "vepc: all functions in one process")
	f.StringVar(&opt.Switch, "switch", bench.SwitchNone,
		"vepc: between the functions: "+strings.Join(bench.SwitchNames(), ", "))
	command.Values(cmd, "switch", "", bench.SwitchNames()...)
	f.StringVar(&words.switchCPUs, "switch-cpus", "",
		"CPU of each polling thread of the switch (default: one thread, not pinned)")
	f.StringVar(&words.cpus, "cpus", "",
		"CPU of each worker, for example 2,3, or none (default: the last ones we may use)")
	f.StringVar(&words.testerCPUs, "tester-cpus", "",
		"CPU of each thread of the tester, or none (default: the first ones)")
	f.StringVar(&words.controlCPUs, "control-cpus", "",
		"CPUs of all other threads, or none (default: all but the workers')")
	f.IntVar(&opt.Instances, "instances", 1, "gateways side by side, each with its own CPUs, ports and subscribers")
	f.IntVar(&opt.Size, "size", 0, "rfc2544 and jumbo: this frame size alone")
	f.StringVar(&words.goal, "goal", "0.001%", "highest loss that counts as good, measured beside 0")
	f.StringVar(&words.rate, "rate", "", "no search: this many packets per second (20k, 1.5M)")
	f.BoolVar(&opt.Quick, "quick", false, "a rough search, no single directions")
	f.BoolVar(&opt.NoHuge, "no-huge", false, "do without huge pages; memif then copies at both ends")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	f.StringVar(&opt.TesterBin, "traffic-binary", "",
		"path of isthmus-traffic-engine (default: beside isthmus, then PATH)")
	f.StringVar(&opt.Keep, "keep", "",
		"keep the gateway's configuration and the tester's profiles and results in this folder")
	f.BoolVar(&words.peers, "peers", false, "measure other programs in the gateway's place too, in turn with it")
	f.BoolVar(&words.compare, "compare", false, "memif and share, of vepc also the switch, in turn, and one table")
	f.IntVar(&words.rounds, "rounds", 0, "of --peers (default 5), --compare and l3fwd (default 1)")
	f.IntVar(&words.ports, "ports", 0, "l3fwd: 2, 4 or 6 (default: each)")
	f.StringVar(&words.json, "json", "", "write the result to this file")
	f.StringVar(&words.metrics, "metrics", "",
		"write the latency of the probes to this file, for Prometheus: node_exporter's textfile collector")
	f.BoolVar(&words.printConfig, "print-config", false, "print the gateway's configuration, and stop")
}

// read turns the words into options.
func (w *benchWords) read(opt *bench.Options) (err error) {
	if !slices.Contains(bench.LinkNames, opt.Link) {
		return fmt.Errorf("no link %q; there are %s", opt.Link, strings.Join(bench.LinkNames, ", "))
	}
	if opt.Instances < 1 || opt.Workers < 1 {
		return fmt.Errorf("%d instances with %d workers: one of each is the least", opt.Instances, opt.Workers)
	}
	if opt.AnyWorker && opt.Link != bench.LinkSynth {
		return errors.New("--any-worker is for --link synth: other links bring packets as their queues do")
	}
	if opt.Goal, err = parseLoss(w.goal); err != nil {
		return err
	}
	if opt.Rate, err = parseRate(w.rate); err != nil {
		return err
	}
	if w.ports != 0 && opt.Profile != l3fwd.Profile {
		return errors.New("--ports is for l3fwd")
	}
	if w.metrics != "" && (w.compare || opt.Profile == l3fwd.Profile || opt.Link == bench.LinkSynth) {
		return errors.New("--metrics is of the tester's probes: not with --compare, --link synth and l3fwd")
	}
	if w.compare && (w.peers || w.linkGiven || opt.Switch != bench.SwitchNone) {
		return errors.New("--compare is instead of --link, --switch and --peers")
	}
	if w.rounds == 0 {
		if w.rounds = 5; w.compare || opt.Profile == l3fwd.Profile {
			w.rounds = 1
		}
	}
	synth := opt.Link == bench.LinkSynth
	opt.Seconds = w.seconds
	switch {
	case w.seconds < 0:
		return fmt.Errorf("%g seconds are too few", w.seconds)
	case w.seconds == 0 && synth:
		opt.Seconds = 3
	case w.seconds == 0:
		opt.Seconds = 1
	}
	if opt.SwitchCPUs, err = bench.ParseCPUs(w.switchCPUs); err != nil {
		return err
	}
	if w.printConfig && w.cpus == "" {
		w.cpus = "none" // for any machine
	}
	if synth {
		opt.CPUs, err = bench.ChooseCPUs(w.cpus, opt.Workers)
		return err
	}
	opt.CPUs, opt.TesterCPUs, opt.ControlCPUs, err = bench.Placement(w.cpus, w.testerCPUs, w.controlCPUs,
		bench.WorkersOf(*opt),
		opt.Instances)
	return err
}

// parseLoss reads "0.001%" or "0.00001".
func parseLoss(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || v < 0 || v >= 1 {
		return 0, fmt.Errorf("%q is no loss such as 0.001%%", s)
	}
	return v, nil
}

// parseRate reads packets per second: "20000", "20k", "1.5M"; empty is 0.
func parseRate(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	number, factor := strings.TrimSuffix(s, "pps"), 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = rest, f
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v <= 0 || v*factor > 1e9 {
		return 0, fmt.Errorf("%q is no rate such as 20k or 1.5M packets per second", s)
	}
	return v * factor, nil
}

// benchInside measures the cost of packets that are made inside the gateway.
func benchInside(ctx context.Context, e *env, opt bench.Options, jsonFile string) error {
	r, err := bench.Run(ctx, opt)
	if err != nil {
		return err
	}
	if err := r.Print(e.Out); err != nil {
		return err
	}
	return conclude(r, false, jsonFile, nil)
}

// benchOutside measures with the tester. What was measured is printed and written also when it ended early.
func benchOutside(ctx context.Context, e *env, opt bench.Options, words *benchWords) error {
	r, err := bench.Measure(ctx, opt)
	if r == nil || len(r.Points) == 0 {
		return err
	}
	if err == nil && words.peers && ctx.Err() == nil {
		err = addPeers(ctx, e, opt, words.rounds, r)
		r.Interrupted = r.Interrupted || ctx.Err() != nil
	}
	if err := r.Print(e.Out); err != nil {
		return err
	}
	if rows, ok := r.Peers.([]peer.Row); ok {
		fmt.Fprintln(e.Out)
		if err := peer.Print(e.Out, rows); err != nil {
			return err
		}
	}
	if words.metrics != "" {
		if err := r.WriteMetrics(words.metrics); err != nil {
			return err
		}
	}
	return conclude(r, r.Interrupted, words.json, err)
}

// conclude writes a result to the named file, and returns how the benchmark ended: err, else its verdict.
func conclude(r interface {
	WriteJSON(file string) error
	Verdict() error
}, interrupted bool, file string, err error) error {
	if file != "" {
		if err := r.WriteJSON(file); err != nil {
			return err
		}
	}
	if err == nil {
		err = r.Verdict()
	}
	if interrupted && err != nil {
		return &command.Exit{Code: command.ExitInterrupted, Err: err}
	}
	return err
}

// benchCompare measures a profile over several links. A link that cannot run here is no failure.
func benchCompare(ctx context.Context, e *env, opt bench.Options, words *benchWords) error {
	c, err := bench.Compare(ctx, opt, words.rounds)
	if err != nil {
		return err
	}
	if err := c.Print(e.Out); err != nil {
		return err
	}
	if words.json != "" {
		if err := c.WriteJSON(words.json); err != nil {
			return err
		}
	}
	err = c.Verdict()
	if c.Interrupted && err != nil {
		return &command.Exit{Code: command.ExitInterrupted, Err: err}
	}
	return err
}

func profileHelp() string {
	var b strings.Builder
	for _, list := range bench.AllProfiles() {
		for _, p := range list {
			fmt.Fprintf(&b, "  %-16s %s (frames as received, with 4 B FCS)\n", p.Name, p.Title)
		}
	}
	fmt.Fprintf(&b, "  %-16s %s\n", l3fwd.Profile, "a router of 2, 4 and 6 ports, 64 B to 1518 B, over each link; "+
		"--peers: Linux, DPDK's l3fwd and l3fwd-graph beside it")
	return b.String()
}

func demoCommand(e *env) *cobra.Command {
	opt := demo.Options{}
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "show the whole gateway at work: traffic through both pipelines, every packet checked, the cost",
		Example: "  isthmus demo --seconds 1",
		Args:    cobra.NoArgs,
	}
	f := cmd.Flags()
	f.Float64Var(&opt.Seconds, "seconds", 2, "time for each direction of each profile")
	f.IntVar(&opt.Subscribers, "subscribers", 1000, "subscribers")
	f.BoolVar(&opt.NoHuge, "no-huge", false, "do without huge pages")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		opt.Version, opt.Out, opt.Progress = command.Version, e.Out, e.Err
		return demo.Run(cmd.Context(), opt)
	})
	return cmd
}
