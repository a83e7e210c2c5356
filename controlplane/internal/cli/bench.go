// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"isthmus/controlplane/internal/bench"
	"isthmus/controlplane/internal/demo"
)

func benchCommand(e *env) *cobra.Command {
	opt := bench.Options{}
	var jsonFile, cpus string
	var printConfig bool
	cmd := &cobra.Command{
		Use:   "bench PROFILE",
		Short: "measure what a packet costs; starts a data plane of its own",
		Long:  "Measure what a packet costs, on synth ports of a data plane of its own.\n\nProfiles:\n" + profileHelp(),
		Args:  cobra.ExactArgs(1),
	}
	for _, p := range bench.Profiles {
		cmd.ValidArgs = append(cmd.ValidArgs, p.Name)
	}
	f := cmd.Flags()
	f.Float64Var(&opt.Seconds, "seconds", 3, "time for each direction; from 3 on, 5 repetitions")
	f.IntVar(&opt.Workers, "workers", 1, "worker threads")
	f.IntVar(&opt.Subscribers, "subscribers", 1000, "subscribers, half QinQ and half QinQ + PPPoE")
	f.StringVar(&cpus, "cpus", "", "CPU of each worker, for example 2,3, or none (default: the last ones we may use)")
	f.BoolVar(&opt.NoHuge, "no-huge", false, "do without huge pages")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	f.StringVar(&opt.Scheduler, "scheduler", "", "scheduler engine: rte or hqos (default: the configuration's)")
	f.StringVar(&jsonFile, "json", "", "write the result to this file")
	f.BoolVar(&printConfig, "print-config", false, "print the configuration that would be measured, and stop")
	cmd.RunE = failed(func(cmd *cobra.Command, args []string) (err error) {
		opt.Profile, opt.Version, opt.Progress = args[0], Version, e.err
		opt.Command = strings.Join(os.Args, " ")
		if printConfig && cpus == "" {
			cpus = "none" // for whatever machine it will run on
		}
		if opt.CPUs, err = bench.ChooseCPUs(cpus, opt.Workers); err != nil {
			return err
		}
		if printConfig {
			text, err := bench.Configuration(opt)
			if err != nil {
				return err
			}
			_, err = e.out.Write(text)
			return err
		}
		r, err := bench.Run(cmd.Context(), opt)
		if err != nil {
			return err
		}
		if err := r.Print(e.out); err != nil {
			return err
		}
		if jsonFile != "" {
			if err := r.WriteJSON(jsonFile); err != nil {
				return err
			}
		}
		return r.Verdict()
	})
	return cmd
}

func profileHelp() string {
	var b strings.Builder
	for _, p := range bench.Profiles {
		fmt.Fprintf(&b, "  %-16s %s (frames as received, with 4 B FCS)\n", p.Name, p.Title)
	}
	return b.String()
}

func demoCommand(e *env) *cobra.Command {
	opt := demo.Options{}
	cmd := &cobra.Command{
		Use: "demo", Short: "show the whole gateway at work: traffic through both pipelines, every packet checked, the cost",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.Float64Var(&opt.Seconds, "seconds", 2, "time for each direction of each profile")
	f.IntVar(&opt.Subscribers, "subscribers", 1000, "subscribers")
	f.BoolVar(&opt.NoHuge, "no-huge", false, "do without huge pages")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	cmd.RunE = failed(func(cmd *cobra.Command, _ []string) error {
		opt.Version, opt.Out, opt.Progress = Version, e.out, e.err
		return demo.Run(cmd.Context(), opt)
	})
	return cmd
}
