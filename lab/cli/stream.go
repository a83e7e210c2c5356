// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
	"isthmus/lab/bench"
)

func streamCommand(e *env) *cobra.Command {
	stream := command.Group(&cobra.Command{
		Use: "stream", Short: "test traffic on synth ports: load, start, stop, clear (see also show stream)",
		Example: "  isthmus stream load agf-symmetric --rate 10000\n  isthmus stream start"})
	opt := bench.Options{}
	var every int
	var rate uint64
	load := &cobra.Command{
		Use: "load PROFILE", Short: "load a benchmark's streams; the running configuration must be that of bench " +
			"--print-config",
		Example: "  isthmus stream load agf-symmetric --rate 10000",
		Args:    cobra.ExactArgs(1),
	}
	load.Flags().IntVar(&opt.Workers, "workers", 1, "worker threads of the running configuration")
	load.Flags().IntVar(&opt.Subscribers, "subscribers", 1000, "subscribers of the running configuration")
	load.Flags().IntVar(&every, "check-every", 1, "compare one packet in so many")
	load.Flags().Uint64Var(&rate, "rate", 0, "packets per second of each stream (0: as fast as possible)")
	load.RunE = command.Failed(func(cmd *cobra.Command, args []string) error {
		opt.Profile = args[0]
		changes, err := bench.Streams(opt, every, rate)
		if err != nil {
			return err
		}
		var list []v1.Stream
		for _, ch := range changes {
			list = append(list, v1.Stream{Name: ch.Key, Body: ch.Body})
		}
		return e.sendStreams(cmd, list)
	})
	clear := &cobra.Command{
		Use: "clear", Short: "remove all streams", Example: "  isthmus stream clear", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			data, err := e.Call(cmd.Context(), "GET", "/v1/show/stream", nil, nil)
			if err != nil {
				return err
			}
			var list []v1.Stream
			if err := json.Unmarshal(data, &list); err != nil {
				return err
			}
			return e.sendStreams(cmd, list)
		}),
	}
	stream.AddCommand(load, clear, startStop(e, "start"), startStop(e, "stop"))
	return stream
}

func (e *env) sendStreams(cmd *cobra.Command, list []v1.Stream) error {
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if _, err = e.Ask(cmd.Context(), "stream", "POST", "/v1/stream", nil, body); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%d streams\n", len(list))
	return err
}

func startStop(e *env, verb string) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " [NAME]",
		Short:   verb + " a stream, or all",
		Example: "  isthmus stream " + verb,
		Args:    cobra.MaximumNArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if len(args) > 0 {
				query.Set("name", args[0])
			}
			_, err := e.Call(cmd.Context(), "POST", "/v1/stream/"+verb, query, nil)
			return err
		}),
	}
}
