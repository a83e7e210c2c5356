// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/replay"
)

func replayCommand(e *env) *cobra.Command {
	var opt replay.Options
	cmd := &cobra.Command{
		Use:   "replay -c FILE --in PORT=FILE.pcap --out PORT=FILE.pcap",
		Short: "run packet captures through the gateway; no root, no huge pages, same result every time",
		Example: "  isthmus replay -c gateway.yaml --in access=subscribers.pcap " +
			"--out core=upf.pcap --counters counters.json",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVarP(&opt.File, "config", "c", "", "configuration file (YAML)")
	f.StringArrayVar(&opt.In, "in", nil, "PORT=FILE: packets that the port receives (may be repeated)")
	f.StringArrayVar(&opt.Out, "out", nil, "PORT=FILE: where packets that the port sends are written (may be repeated)")
	f.StringVar(&opt.Counters, "counters", "", "write totals, drops by reason and port counters to this file (JSON)")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	cmd.MarkFlagRequired("config")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		bar := command.NewProgress(e.Err, "replay")
		opt.Started = func(pid int, bytes uint64) {
			bar.Follow(func() float64 { return command.ReadShare(pid, 0, bytes) })
		}
		code, err := replay.Run(cmd.Context(), opt, bar.Around(e.Out), bar.Around(e.Err))
		bar.Done()
		if err != nil {
			return err
		}
		if code != 0 {
			return &command.Exit{Code: code}
		}
		return nil
	})
	return cmd
}
