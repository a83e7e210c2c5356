// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/replay"
	"isthmus/controlplane/trace"
)

func replayCommand(e *env) *cobra.Command {
	var opt replay.Options
	var capture string
	cmd := &cobra.Command{
		Use:   "replay -c FILE --in PORT=FILE.pcap --out PORT=FILE.pcap | --capture FILE.pcapng",
		Short: "run packet captures through the gateway; no root, no huge pages, same result every time",
		Example: "  isthmus replay -c gateway.yaml --in access=subscribers.pcap " +
			"--out core=upf.pcap --counters counters.json",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{command.OtherStatus: "That of isthmus-dp replay."},
	}
	f := cmd.Flags()
	f.StringVarP(&opt.File, "config", "c", "", "configuration file (YAML)")
	f.StringArrayVar(&opt.In, "in", nil, "PORT=FILE: packets that the port receives (may be repeated)")
	f.StringArrayVar(&opt.Out, "out", nil, "PORT=FILE: where packets that the port sends are written (may be repeated)")
	f.StringVar(&opt.Counters, "counters", "", "write totals, drops by reason and port counters to this file (JSON)")
	f.BoolVar(&opt.Skip, "skip", false,
		"succeed although packets of the captures were left out: cut ones, over-long ones")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	f.StringVar(&capture, "capture", "",
		"a file of isthmus capture, whose configuration and received packets take the place of -c, --in")
	cmd.MarkFlagsOneRequired("config", "capture")
	cmd.MarkFlagsMutuallyExclusive("in", "capture")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if capture != "" {
			dir, err := os.MkdirTemp("", "isthmus-capture-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			if err := fromCapture(&opt, capture, dir); err != nil {
				return err
			}
		}
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

// fromCapture takes configuration and packets out of a capture. A configuration that is given comes first.
func fromCapture(opt *replay.Options, capture, dir string) error {
	config, in, err := trace.Split(capture, dir)
	if err != nil {
		return err
	}
	opt.File = cmp.Or(opt.File, config)
	for port, file := range in {
		opt.In = append(opt.In, port+"="+file)
	}
	return nil
}
