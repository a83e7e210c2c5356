// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/lab/network"
)

func labISP(e *env, dir *string) *cobra.Command {
	opt := network.Options{Generation: "isp", UEs: 1, Homes: 8}
	var keep, takeover, restarts bool
	var script string
	cmd := &cobra.Command{
		Use: "isp", Short: "two gateways with wireline and mobile subscribers, two FRR routers, DN",
		Example: "  isthmus lab isp --takeover\n  isthmus lab isp --routes 1000000",
		Args:    cobra.NoArgs,
		Long: "Two gateways, each with wireline and mobile subscribers and FRR in the namespace of its clones,\n" +
			"two FRR routers, a data network. Makes it, runs until Ctrl-C and takes it away again. The first\n" +
			"gateway is preferred.",
	}
	f := cmd.Flags()
	f.IntVar(&opt.UEs, "ues", opt.UEs, "UEs with sessions")
	f.IntVar(&opt.Homes, "homes", opt.Homes, "wireline subscribers, configured in both gateways")
	f.StringVar(&opt.IGP, "igp", "", "OSPF (ospf) or IS-IS (isis) between gateways and routers, instead of BGP")
	f.StringVar(&opt.Announce, "announce", "pool", "what the gateways announce of mobile sessions: pool or host")
	command.Values(cmd, "igp", "", "ospf", "isis")
	command.Values(cmd, "announce", "", "pool", "host")
	cmd.Annotations = ofScript
	f.StringVar(&script, "exec", "",
		"run this shell command in the data network's namespace; its exit status is ours")
	f.BoolVar(&takeover, "takeover", false,
		"kill the first gateway under traffic and bring it back; prints how long there was none")
	f.BoolVar(&restarts, "restarts", false,
		"kill the first gateway's processes and daemons one by one, under traffic")
	f.BoolVar(&opt.Graceful, "graceful", false,
		"gateways without static defaults: bgpd's restart is graceful alone; --restarts then waits two minutes before")
	f.IntVar(&opt.Routes, "routes", 0,
		"feed so many routes by BGP, and withdraw them; prints how long they take into the data plane")
	f.IntVar(&opt.Flood, "flood", 0,
		"for so many seconds subscribers flood the first gateway's control plane; prints what BGP and BFD lost")
	f.BoolVar(&keep, "keep", false,
		"run until Ctrl-C also after --routes, --flood, --takeover, --restarts and --exec")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		opt.Dir, opt.Out = *dir, e.Out
		stay := keep || script == "" && !takeover && !restarts && opt.Routes == 0 && opt.Flood == 0
		perform := func(ctx context.Context, l *network.Lab) (status int, err error) {
			d := network.Demonstration{Lab: l}
			if opt.Routes != 0 {
				err = d.Routes(ctx)
			}
			if err == nil && opt.Flood != 0 {
				err = d.Flood(ctx)
			}
			if err == nil && restarts {
				err = d.Restarts(ctx)
			}
			if err == nil && takeover {
				err = d.Takeover(ctx)
			}
			if err == nil && script != "" {
				shell := []string{"sh", "-c", script}
				status, err = network.Exec(ctx, "dn", shell, os.Stdin, os.Stdout, os.Stderr)
			}
			return status, err
		}
		return labLife(cmd.Context(), opt, stay, perform)
	})
	return cmd
}
