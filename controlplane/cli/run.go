// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent"
	"isthmus/controlplane/command"
)

func runCommand(e *env) *cobra.Command {
	var opt agent.Options
	var asJSON, debug, spawn, external bool
	cmd := &cobra.Command{
		Use: "run -c FILE", Short: "run the control plane", Args: cobra.NoArgs,
		Long: "Run the control plane: it keeps the data plane in step with FILE, over restarts of either.\n\n" +
			"What `isthmus config apply` brings outlives a restart; SIGHUP reads FILE again and forgets it.\n\n" +
			"SIGTERM stops the control plane alone: a data plane that it started forwards on, until the\n" +
			"next control plane takes it over; the log names its process. SIGINT (Ctrl-C) stops both, and\n" +
			"so does SIGTERM with --stop-both.",
	}
	cmd.Example = "  isthmus run -c gateway.yaml\n  isthmus run -c gateway.yaml --metrics 127.0.0.1:9465 --log-json"
	f := cmd.Flags()
	f.StringVarP(&opt.File, "config", "c", "", "configuration file (YAML)")
	f.StringVar(&opt.DPSocket, "dp-socket", "", "socket of the data plane (overrides the file)")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	f.StringVar(&opt.State, "state", "", "folder of what outlives the control plane (overrides the file)")
	f.StringVar(&opt.Metrics, "metrics", "", "address of the Prometheus endpoint, or off (overrides the file)")
	f.BoolVar(&opt.MetricsPublic, "metrics-public", false, "allow a metrics address that other machines can reach")
	f.BoolVar(&spawn, "spawn", false, "start the data plane, and start it again when it ends (overrides the file)")
	f.BoolVar(&external, "no-spawn", false, "never start the data plane (overrides the file)")
	f.BoolVar(&opt.StopBoth, "stop-both", false, "SIGTERM stops a supervised data plane too, as SIGINT does")
	f.BoolVar(&asJSON, "log-json", false, "log as JSON")
	f.BoolVar(&debug, "debug", false, "log more")
	cmd.MarkFlagRequired("config")
	cmd.MarkFlagsMutuallyExclusive("spawn", "no-spawn")
	cmd.MarkFlagsMutuallyExclusive("stop-both", "no-spawn")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("server") {
			return command.Usage("run takes no --server: it runs on this machine")
		}
		opt.Log = newLog(e.Err, asJSON, debug)
		opt.Version = command.Version
		if cmd.Flags().Changed("socket") || e.Socket != command.DefaultSocket {
			opt.Socket = e.Socket
		}
		switch {
		case spawn:
			opt.Restart = "always"
		case external:
			opt.Restart = "external"
		}
		a, err := agent.New(opt)
		if err != nil {
			return err
		}
		return a.Serve(cmd.Context())
	})
	return cmd
}

func newLog(w io.Writer, asJSON, debug bool) *slog.Logger {
	opt := &slog.HandlerOptions{Level: slog.LevelInfo}
	if debug {
		opt.Level = slog.LevelDebug
	}
	if asJSON {
		return slog.New(limited{slog.NewJSONHandler(w, opt), &messages{now: time.Now}})
	}
	return slog.New(limited{slog.NewTextHandler(w, opt), &messages{now: time.Now}})
}
