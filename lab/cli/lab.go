// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/lab/network"
)

func labCommand(e *env) *cobra.Command {
	dir := network.DefaultDir
	cmd := &cobra.Command{
		Use: "lab", Short: "a whole network on this machine, to try it with ordinary programs",
		Long: "A whole mobile network on this machine: UE, eNodeB, SGW-U, PGW-U, PDN (4g) or UE, gNB, UPF, DN\n" +
			"(5g), each in a network namespace of its own. Emulated MME, SGW-C, PGW-C, AMF, SMF speak PFCP to\n" +
			"them. Needs root.",
		Example: "  isthmus lab 5g\n  isthmus lab exec ue ping 198.51.100.1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("lab what? 4g, 5g, isp, home, show, exec, handover, idle, wake or clean")
			}
			return fmt.Errorf("unknown command %q for \"isthmus lab\"", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", dir, "folder of the lab's files")
	cmd.AddCommand(
		labStart(e, "4g", "UE – eNodeB – SGW-U – PGW-U – PDN", &dir),
		labStart(e, "5g", "UE – gNB – UPF [– UPF] – DN", &dir),
		labISP(e, &dir), labHome(e, &dir),
		labShow(e, &dir), labExec(&dir), labClean(e, &dir),
		labMove(e, "handover", "move a UE to the other radio node, with end markers (a lab with --handover)", &dir),
		labMove(e, "idle", "let a UE become idle; the next packet to it pages it", &dir),
		labMove(e, "wake", "bring an idle UE back, as a service request does", &dir),
	)
	return cmd
}

// ofScript is of commands with --exec.
var ofScript = map[string]string{command.OtherStatus: "That of the command of --exec."}

func labStart(e *env, generation, short string, dir *string) *cobra.Command {
	opt := network.Options{Generation: generation, UEs: 1}
	var keep, idle bool
	var script string
	cmd := &cobra.Command{
		Use: generation, Short: short, Args: cobra.NoArgs,
		Long: short + ": makes it, runs until Ctrl-C and takes it away again.\n\n" +
			"With --exec, --handover or --idle it ends by itself after that, unless --keep is given too.",
		Example: fmt.Sprintf("  isthmus lab %s\n  isthmus lab %[1]s --ues 100 --exec 'ping -c 3 198.51.100.1'",
			generation),
	}
	f := cmd.Flags()
	f.IntVar(&opt.UEs, "ues", 1, "UEs with sessions; the first eight have their addresses in the UE namespace")
	f.BoolVar(&opt.IPv6, "ipv6-transport", false, "GTP-U over IPv6")
	f.BoolVar(&opt.Handover, "handover", false, "make a second radio node and show a handover under traffic")
	f.BoolVar(&idle, "idle", false, "show buffering and paging of an idle UE")
	cmd.Annotations = ofScript
	f.StringVar(&script, "exec", "", "run this shell command in the UE's namespace; its exit status is ours")
	f.BoolVar(&keep, "keep", false, "run until Ctrl-C also after --exec, --handover and --idle")
	f.StringVar(&opt.DPBinary, "dp-binary", "", "path of isthmus-dp (default: beside isthmus, then PATH)")
	f.BoolVar(&opt.N9, "n9", false, "two UPFs with N9 between them; the first has an uplink classifier and a network "+
		"beside it")
	if generation == "4g" {
		f.MarkHidden("n9") // known, so that it can be refused in words
	}
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		opt.Dir, opt.Out = *dir, e.Out
		stay := keep || script == "" && !opt.Handover && !idle
		return labLife(cmd.Context(), opt, stay, func(ctx context.Context, l *network.Lab) (int, error) {
			return labPerform(ctx, l, opt.Handover, idle, script)
		})
	})
	return cmd
}

// labLife makes a lab, performs, stays until Ctrl-C where that is wanted, and removes everything. What perform returns
// beside an error is the exit status.
func labLife(
	ctx context.Context, opt network.Options, stay bool, perform func(context.Context, *network.Lab) (int, error),
) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	bar := command.NewProgress(os.Stderr, "lab")
	opt.Progress, opt.Out = bar.Set, bar.Around(opt.Out)
	l, err := network.Start(ctx, opt)
	bar.Done()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted; everything is removed")
		}
		return err
	}
	defer l.Close()
	status, err := perform(ctx, l)
	if err == nil && stay {
		fmt.Fprint(opt.Out, l.Hints(), "\nCtrl-C ends the lab and removes everything.\n")
		err = l.Wait(ctx)
	}
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	if status != 0 {
		return &command.Exit{Code: status}
	}
	return nil
}

// labPerform does what flags ask for, one after the other.
func labPerform(ctx context.Context, l *network.Lab, handover, idle bool, script string) (int, error) {
	if handover {
		if err := (network.Demonstration{Lab: l}).Handover(ctx); err != nil {
			return 0, err
		}
	}
	if idle {
		if err := (network.Demonstration{Lab: l}).Idle(ctx); err != nil {
			return 0, err
		}
	}
	if script == "" {
		return 0, nil
	}
	return network.Exec(ctx, "ue", []string{"sh", "-c", script}, os.Stdin, os.Stdout, os.Stderr)
}

func labShow(e *env, dir *string) *cobra.Command {
	var asJSON bool
	limit := 10
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "functions, associations and sessions of the running lab",
		Example: "  isthmus lab show --limit 20",
		Args:    cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			b, err := network.Ask(cmd.Context(), *dir, http.MethodGet, "/v1/show?limit="+strconv.Itoa(limit))
			if err != nil {
				return err
			}
			var s network.Show
			if err := json.Unmarshal(b, &s); err != nil {
				return err
			}
			if !asJSON {
				return s.Print(e.Out)
			}
			out := json.NewEncoder(e.Out)
			out.SetIndent("", "  ")
			return out.Encode(&s)
		}),
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", limit, "most UEs shown")
	return cmd
}

func labExec(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "exec NODE COMMAND...",
		Short:   "run a program in a namespace of the lab: ue, home, pdn, dn, cp, a function's or router's name",
		Example: "  isthmus lab exec ue ping 198.51.100.1\n  isthmus lab exec dn tcpdump -ni eth0",

		Annotations: map[string]string{command.OtherStatus: "That of the program."},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("lab exec where, and what? For example: isthmus lab exec ue ping 198.51.100.1")
			}
			return nil
		},
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			if err := network.Running(*dir); err != nil {
				return err
			}
			if _, err := os.Stat("/run/netns/" + network.Prefix + args[0]); err != nil {
				return fmt.Errorf("the lab has no %q: isthmus lab show has its namespaces", args[0])
			}
			status, err := network.Exec(cmd.Context(), args[0], args[1:], os.Stdin, os.Stdout, os.Stderr)
			if err == nil && status != 0 {
				return &command.Exit{Code: status}
			}
			return err
		}),
	}
	cmd.Flags().SetInterspersed(false) // what follows NODE is the program's
	return cmd
}

func labMove(e *env, verb, short string, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " [UE]", Short: short, Example: "  isthmus lab " + verb + " 1", Args: cobra.MaximumNArgs(1),
		RunE: command.Failed(func(cmd *cobra.Command, args []string) error {
			ue := 1
			if len(args) > 0 {
				var err error
				if ue, err = strconv.Atoi(args[0]); err != nil {
					return fmt.Errorf("%q is no number of a UE", args[0])
				}
			}
			b, err := network.Ask(cmd.Context(), *dir, http.MethodPost, fmt.Sprintf("/v1/%s?ue=%d", verb, ue))
			if err == nil {
				e.Out.Write(b)
			}
			return err
		}),
	}
}

func labClean(e *env, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:     "clean",
		Short:   "end a running lab, or remove what one left that was killed",
		Example: "  isthmus lab clean",
		Args:    cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			text, err := network.Clean(cmd.Context(), *dir)
			if err == nil {
				fmt.Fprintln(e.Out, text)
			}
			return err
		}),
	}
}
