// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"isthmus/controlplane/agent/v1"
	"isthmus/controlplane/command"
)

func drainCommand(e *env) *cobra.Command {
	var graceful uint32
	var keep bool
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "take the gateway out of service: announcements, subscribers, PFCP associations",
		Long: "Take the gateway out of service before a planned shutdown. In this order:\n\n" +
			"Announcements to routing daemons are withdrawn. Sign-ins are refused and subscribers who signed in\n" +
			"end, then RADIUS servers get up to a minute to take accounting. PFCP associations are refused, and\n" +
			"CP functions are asked to release theirs.\n\n" +
			"A role that is not configured has nothing to wait for. Packets are forwarded on; isthmus resume, or\n" +
			"a start, takes it back.",
		Example: "  isthmus drain\n  isthmus drain --graceful 60 --keep-announcements", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"graceful": {strconv.FormatUint(uint64(graceful), 10)},
				"keep": {strconv.FormatBool(keep)}}
			var done v1.Drained
			if err := e.asks(cmd, "/v1/drain", query, &done); err != nil {
				return err
			}
			_, err := fmt.Fprint(e.Out, drainWords(&done))
			return err
		}),
	}
	cmd.Flags().Uint32Var(&graceful, "graceful", 20, "seconds in which CP functions may move their sessions away")
	cmd.Flags().BoolVar(&keep, "keep-announcements", false, "routing daemons go on announcing")
	return cmd
}

func resumeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "resume", Short: "take the gateway back into service after isthmus drain",
		Long: "Take the gateway back into service: announcements, sign-ins and PFCP associations, as before\n" +
			"isthmus drain.",
		Example: "  isthmus resume", Args: cobra.NoArgs,
		RunE: command.Failed(func(cmd *cobra.Command, _ []string) error {
			var done v1.Result
			if err := e.asks(cmd, "/v1/resume", nil, &done); err != nil {
				return err
			}
			_, err := fmt.Fprintln(e.Out, "in service: announcements, sign-ins and associations as before the drain")
			return err
		}),
	}
}

// drainWords says what a drain did, a line for each part.
func drainWords(d *v1.Drained) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	switch {
	case d.Announced == 0:
		say("announcements: there are none")
	case d.Kept:
		say("announcements: %d stay", d.Announced)
	default:
		say("announcements: %d withdrawn", d.Announced)
	}
	if d.SignIn {
		say("sign-ins: refused; %s", ends(d.Ended))
	} else {
		say("sign-ins: access.ports is empty, nothing to wait for")
	}
	if d.Accounting > 0 {
		over := "over a reboot too"
		if strings.HasPrefix(d.File, "/run/") {
			over = "until a reboot: control.state names no folder that outlives one"
		}
		say("accounting: %d records wait for a RADIUS server; %s keeps them %s", d.Accounting, d.File, over)
	}
	if len(d.Associations) == 0 {
		say("associations: none, nothing to wait for")
	}
	for _, a := range d.Associations {
		switch a.State {
		case "refused":
			say("association %s: not released: %s", a.ID, a.Why)
		case "left":
			say("association %s: its CP function agreed, and has not released it yet", a.ID)
		default:
			say("association %s: %s", a.ID, a.State)
		}
	}
	if d.Sessions > 0 {
		say("sessions over PFCP: %d left; isthmus show n4", d.Sessions)
	}
	return b.String()
}

func ends(n int) string {
	if n == 1 {
		return "1 subscriber ends"
	}
	return fmt.Sprint(n, " subscribers end")
}

// drainState is the state of a drain in words; empty without one.
func drainState(s *v1.Status) string {
	if s.Drain.Since.IsZero() {
		return ""
	}
	announced := 0
	for _, k := range s.Kernel {
		announced += k.Announced
	}
	words := []string{"announcements withdrawn"}
	if s.Drain.Announced {
		words[0] = "announcements stay"
	} else if announced > 0 {
		words[0] = fmt.Sprintf("announcements being withdrawn (%d left)", announced)
	}
	if s.Drain.SignIns {
		words = append(words, "sign-ins refused")
	}
	if s.Drain.Associations {
		words = append(words, fmt.Sprintf("associations refused (%d left)", s.Associations))
	}
	return "since " + s.Drain.Since.Format(time.RFC3339) + ": " + strings.Join(words, ", ") +
		"; isthmus resume takes it back"
}
