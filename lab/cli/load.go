// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/view"
	"isthmus/lab/figure"
	"isthmus/lab/load"
)

func loadCommand(e *env) *cobra.Command {
	var opt load.Options
	var peer, local, node, ue, far string
	var signIn accessLoad
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "control-load --peer ADDRESS | --access --interface DEVICE",
		Short: "sessions over PFCP, or subscribers who sign in, at a given rate; check every answer",
		Long: "Establish, modify and delete PFCP sessions of 2 PDRs, 2 FARs, 1 QER and 1 URR at a user plane, at\n" +
			"a given rate.\n\n" +
			"Every answer is checked: type, cause, SEIDs, F-TEIDs (each unique among live sessions), final\n" +
			"usage reports. The exit status is 0 only when every request was answered and every answer was\n" +
			"right. In the end all sessions are deleted.\n\n" +
			"With --access subscribers sign in by PPPoE or DHCP, each from a MAC address and a VLAN of its own,\n" +
			"and leave in the end. The exit status is 0 when all came on line, each with addresses of its own,\n" +
			"stayed, and were answered.",
		Example: "  isthmus control-load --peer 127.0.0.8 --rate 2000 --sessions 10000\n" +
			"  isthmus control-load --access --interface veth0 --subscribers 65536 --rate 2000 --hold 30s --power-cut",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&peer, "peer", "", "the user plane: ADDRESS or ADDRESS:PORT (port 8805)")
	f.StringVar(&local, "local", "", "our own ADDRESS or ADDRESS:PORT (port: 8805; taken: any, with a warning)")
	f.StringVar(&node, "node-id", "", "our Node ID, a name or an address (default: our address)")
	f.Float64Var(&opt.Rate, "rate", 1000, "establishments per second")
	f.IntVar(&opt.Sessions, "sessions", 10000, "sessions held at a time; for one more the oldest is deleted")
	f.Float64Var(&opt.Seconds, "seconds", 0, "how long (0: until --sessions are established)")
	f.DurationVar(&opt.Hold, "hold", 0, "leave the sessions alone so long before they are deleted in the end")
	f.Float64Var(&opt.ModifyRatio, "modify-ratio", 1, "modifications for each establishment")
	f.IntVar(&opt.Window, "window", 16384, "most unanswered requests")
	f.DurationVar(&opt.T1, "t1", time.Second, "time until an unanswered request is repeated")
	f.IntVar(&opt.N1, "n1", 3, "repetitions of a request")
	f.StringVar(&opt.Access, "access-instance", "access", "network instance of the access side")
	f.StringVar(&opt.Core, "core", "core", "network instance of the core side")
	f.StringVar(&ue, "first-ue", "10.45.0.2", "IPv4 address of the first UE; the others follow")
	f.StringVar(&far, "access-peer", "192.0.2.1", "IPv4 address that downlink packets are tunnelled to")
	f.BoolVarP(&asJSON, "json", "j", false, "print JSON")
	signIn.flags(cmd)
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if signIn.on {
			signIn.opt.Rate, signIn.opt.Hold = opt.Rate, opt.Hold
			return signIn.run(cmd, e, asJSON)
		}
		var err error
		if opt.Peer, err = addrPort(peer, pfcp.Port); err != nil {
			return fmt.Errorf("--peer: %w", err)
		}
		if local != "" {
			if opt.Local, err = addrPort(local, 0); err != nil {
				return fmt.Errorf("--local: %w", err)
			}
		}
		if opt.FirstUE, err = netip.ParseAddr(ue); err != nil {
			return fmt.Errorf("--first-ue: %w", err)
		}
		if opt.AccessPeer, err = netip.ParseAddr(far); err != nil {
			return fmt.Errorf("--access-peer: %w", err)
		}
		if opt.Node.Addr, err = netip.ParseAddr(node); err != nil {
			opt.Node = pfcp.NodeID{FQDN: node}
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		bar := command.NewProgress(e.Err, "association")
		opt.Progress = bar.Set
		opt.Warn = func(text string) { fmt.Fprintln(bar.Around(e.Err), "warning:", text) }
		r, err := load.Run(ctx, opt)
		bar.Done()
		if r != nil {
			err = errors.Join(err, printLoad(e.Out, r, asJSON), r.Verdict())
		}
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted")
		}
		return err
	})
	return cmd
}

// addrPort reads an address with or without a port.
func addrPort(s string, port uint16) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a, port), nil
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return a, fmt.Errorf("%q is neither an IP address nor ADDRESS:PORT", s)
	}
	return a, nil
}

func printLoad(w io.Writer, r *load.Result, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	fmt.Fprintf(w, "%s: %.0f establishments/s offered, %.0f/s answered, for %.1f s; at most %d sessions at a time\n\n",
		r.Peer, r.Offered,
		r.Achieved, r.Seconds, r.Most)
	if err := printLatency(w, "REQUEST", "ANSWERED", r.Latency, "establishment", "modification",
		"deletion"); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nresent %d, unanswered %d, held back %d, stray answers %d, reports %d\n", r.Resent, r.Unanswered,
		r.HeldBack, r.Stray, r.Reports)
	printWrong(w, r.Wrong)
	return nil
}

func printJSON(w io.Writer, r any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

// printLatency is a table of these kinds, in this order.
func printLatency(w io.Writer, what, count string, of map[string]load.Latency, kinds ...string) error {
	var cells [][]string
	for _, kind := range kinds {
		l := of[kind]
		cells = append(cells, []string{kind, strconv.FormatUint(l.Count, 10), micro(l.P50), micro(l.P90), micro(l.P99),
			micro(l.Max)})
	}
	return view.WriteTable(w, []string{what, count, "P50 US", "P90 US", "P99 US", "MAX US"},
		[]bool{false, true, true, true, true, true}, cells)
}

func printWrong(w io.Writer, wrong map[string]uint64) {
	for _, what := range slices.Sorted(maps.Keys(wrong)) {
		fmt.Fprintf(w, "wrong: %s (%d)\n", what, wrong[what])
	}
}

// micro prints nothing without a timing.
func micro(us figure.Number) string {
	if us == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(us), 'f', 0, 64)
}
