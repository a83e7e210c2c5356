// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/lab/network"
)

func labHome(e *env, dir *string) *cobra.Command {
	opt := network.Options{Generation: "home", Homes: 1}
	var keep, dhcp bool
	var script string
	cmd := &cobra.Command{
		Use: "home", Short: "homes that sign in by PPPoE or DHCP, access switch, access gateway, RADIUS, the internet",
		Example: "  isthmus lab home --pppoe\n  isthmus lab home --dhcp --subscribers 4 --exec 'curl http://www.lab/'",
		Args:    cobra.NoArgs,
		Long: "Homes that sign in (--pppoe, or --dhcp with router advertisements and a delegated prefix), a\n" +
			"switch that puts each into VLANs of its own, the access gateway, FreeRADIUS, servers. Makes it,\n" +
			"runs until Ctrl-C and takes it away again.",
	}
	f := cmd.Flags()
	f.BoolVar(&opt.PPPoE, "pppoe", false, "homes dial in by PPPoE, with CHAP")
	f.BoolVar(&dhcp, "dhcp", false, "homes ask by DHCPv4 and DHCPv6 (as without --pppoe)")
	f.BoolVar(&opt.IPv6Only, "ipv6-only", false, "homes get no IPv4 address")
	f.IntVar(&opt.Homes, "subscribers", opt.Homes, "homes, each in a namespace: home, home2, ...")
	cmd.Annotations = ofScript
	f.StringVar(&script, "exec", "", "run this shell command in the first home's namespace; its exit status is ours")
	f.BoolVar(&keep, "keep", false, "run until Ctrl-C also after --exec")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if dhcp && opt.PPPoE {
			return errors.New("--pppoe and --dhcp: homes of a lab sign in by one of them")
		}
		opt.Dir, opt.Out = *dir, e.Out
		return labLife(cmd.Context(), opt, keep || script == "",
			func(ctx context.Context, l *network.Lab) (int, error) {
				if script == "" {
					return 0, nil
				}
				return network.Exec(ctx, "home", []string{"sh", "-c", script}, os.Stdin, os.Stdout, os.Stderr)
			})
	})
	return cmd
}
