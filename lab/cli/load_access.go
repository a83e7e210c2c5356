// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"isthmus/controlplane/access"
	"isthmus/controlplane/command"
	"isthmus/lab/load"
)

// accessLoad are the flags of control-load --access.
type accessLoad struct {
	on               bool
	opt              load.AccessOptions
	families, method string
	ping             string
	dns              []string
}

// flags adds those of --access to a command that has --peer, and takes one of the two.
func (a *accessLoad) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.on, "access", false, "subscribers sign in on an access port, in place of PFCP sessions")
	f.StringVar(&a.opt.Interface, "interface", "", "--access: network interface towards the access port")
	f.BoolVar(&a.opt.DHCP, "dhcp", false, "--access: by DHCP, not PPPoE")
	f.StringVar(&a.families, "families", "4", "--access: what each must get: 4, 6 or 46\n"+
		"(6: a /64 by PPPoE, an address and a prefix by DHCP)")
	f.IntVar(&a.opt.Subscribers, "subscribers", 1000, "--access: how many")
	f.Float64Var(&a.opt.Flaps, "flaps", 0, "--access: so many a second vanish and sign in again during --hold")
	f.BoolVar(&a.opt.PowerCut, "power-cut", false,
		"--access: after --hold all vanish at once, and sign in again at --rate")
	f.StringVar(&a.ping, "ping", "", "--access: IPv4 address that each asks, three times at most")
	f.StringSliceVar(&a.dns, "dns", nil, "--access: name servers that each must get, of both families")
	f.Uint16Var(&a.opt.STag, "s-tag", 100, "--access: of the first 4,000, C-tags from 1; 0: frames without tags")
	f.StringVar(&a.opt.User, "user", "user%d", "--access: name by PPPoE; %d: the number")
	f.StringVar(&a.opt.Password, "password", "user%d", "--access: password; %d: the number")
	f.StringVar(&a.method, "auth", "chap", "--access: pap, chap or mschapv2")
	command.Values(cmd, "families", "", "4", "6", "46")
	command.Values(cmd, "auth", "", "pap", "chap", "mschapv2")
	f.DurationVar(&a.opt.Patience, "patience", load.DefaultPatience, "--access: how long the last may take")
	cmd.MarkFlagsOneRequired("peer", "access")
	cmd.MarkFlagsMutuallyExclusive("peer", "access")
}

func (a *accessLoad) run(cmd *cobra.Command, e *env, asJSON bool) error {
	methods := map[string]access.Method{"pap": access.PAP, "chap": access.CHAP, "mschapv2": access.MSCHAPv2}
	method, known := methods[a.method]
	switch {
	case !known:
		return fmt.Errorf("--auth: %q is none of pap, chap, mschapv2", a.method)
	case a.families != "4" && a.families != "6" && a.families != "46":
		return fmt.Errorf("--families: %q is none of 4, 6, 46", a.families)
	case a.opt.Interface == "":
		return errors.New("--access needs --interface")
	}
	a.opt.Methods = []access.Method{method}
	a.opt.IPv4, a.opt.IPv6 = a.families[0] == '4', a.families[len(a.families)-1] == '6'
	if a.ping != "" {
		var err error
		if a.opt.Ping, err = netip.ParseAddr(a.ping); err != nil || !a.opt.Ping.Is4() {
			return fmt.Errorf("--ping: %q is no IPv4 address", a.ping)
		}
	}
	for _, text := range a.dns {
		server, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("--dns: %q is no address", text)
		}
		a.opt.DNS = append(a.opt.DNS, server)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bar := command.NewProgress(e.Err, "sign-ins")
	a.opt.Progress = bar.Set
	r, err := load.RunAccess(ctx, a.opt)
	bar.Done()
	if r != nil {
		if e := printAccessLoad(e.Out, r, asJSON); e != nil {
			return e
		}
		if ctx.Err() == nil {
			err = errors.Join(err, r.Verdict())
		}
	}
	if errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

func printAccessLoad(w io.Writer, r *load.AccessResult, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	fmt.Fprintf(w, "%s by %s: %.0f sign-ins/s offered, %.0f/s until all were on line; %d of %d on line\n\n",
		r.Interface, r.Protocol, r.Offered, r.Achieved, r.Online, r.Subscribers)
	if err := printLatency(w, "WHAT", "COUNT", r.Latency, "sign_in", "ping", "keep_alive"); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nframes sent %d, received %d; flaps %d, ended by the gateway %d\n", r.Sent, r.Received, r.Flaps,
		r.Ended)
	if r.PowerCut > 0 {
		fmt.Fprintf(w, "all on line again %.1f s after the power cut\n", r.PowerCut)
	}
	printWrong(w, r.Wrong)
	return nil
}
