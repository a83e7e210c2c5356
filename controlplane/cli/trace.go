// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"isthmus/controlplane/command"
	"isthmus/controlplane/trace"
)

// selection is what trace and capture choose packets by.
type selection struct {
	subscriber, session, teid, flow string
	query                           trace.Query
	duration                        time.Duration
}

func (s *selection) flags(f *pflag.FlagSet, duration time.Duration) {
	f.StringVar(&s.subscriber, "subscriber", "",
		"packets of this subscriber: name, MAC, address, circuit id or line, as show subscriber finds it")
	f.StringVar(&s.session, "session", "", "packets of this session, as show session names it")
	f.StringVar(&s.query.UE, "ue", "", "packets from or to this address or prefix, inside a tunnel too")
	f.StringVar(&s.teid, "teid", "", "G-PDUs with this TEID (0x...)")
	f.StringVar(&s.query.Port, "port", "", "packets that came in by this port")
	f.StringVar(&s.flow, "flow", "", "packets of this flow, both ways: PROTOCOL,ADDRESS:PORT,ADDRESS:PORT; "+
		"the UE's end first costs least")
	f.StringVar(&s.query.Filter, "filter", "",
		"packets that this expression of pcap-filter(7) takes: frame, IP packet, or the one in the tunnel")
	f.Uint32Var(&s.query.Sample, "sample", 0, "one packet of so many (0: all)")
	f.Uint32Var(&s.query.Rate, "rate", 0,
		"packets per second and worker at most; more are counted as missed (0: 10000)")
	f.DurationVar(&s.duration, "for", duration, "how long, at most an hour")
}

// finish makes the query of the flags.
func (s *selection) finish() error {
	q := &s.query
	q.Session, q.Subscriber = s.session, s.subscriber
	if s.session != "" && s.subscriber != "" {
		return command.Usage("give --session or --subscriber, not both")
	}
	if s.teid != "" {
		teid, err := strconv.ParseUint(s.teid, 0, 32)
		if err != nil || teid == 0 {
			return command.Usage("--teid %q is no TEID: a number from 1 to 0xffffffff", s.teid)
		}
		q.TEID = uint32(teid)
	}
	if s.duration < time.Second || s.duration > time.Hour {
		return command.Usage("--for %v: give 1s to 1h", s.duration)
	}
	q.Seconds = uint32(s.duration / time.Second)
	if s.flow == "" {
		return nil
	}
	text, one, err := flowFilter(s.flow)
	if err == nil && q.Filter != "" {
		text = "(" + q.Filter + ") and " + text
	}
	if q.Filter = text; q.UE == "" && q.TEID == 0 && q.Session == "" && q.Subscriber == "" {
		q.UE = one // the data plane looks at packets of this address alone
	}
	return err
}

// flowFilter is a 5-tuple as an expression, and one of its addresses: the first.
func flowFilter(flow string) (expression, one string, err error) {
	part := strings.Split(flow, ",")
	if len(part) != 3 {
		return "", "", command.Usage("--flow %q is not PROTOCOL,ADDRESS:PORT,ADDRESS:PORT", flow)
	}
	a, aPort, errA := net.SplitHostPort(part[1])
	b, bPort, errB := net.SplitHostPort(part[2])
	if errA != nil || errB != nil || net.ParseIP(a) == nil || net.ParseIP(b) == nil {
		return "", "", command.Usage("--flow %q: its ends are ADDRESS:PORT", flow)
	}
	proto := part[0]
	if proto != "tcp" && proto != "udp" && proto != "sctp" {
		return "", "", command.Usage("--flow %q: tcp, udp or sctp", flow)
	}
	way := func(x, xp, y, yp string) string {
		return fmt.Sprintf("(src host %s and src port %s and dst host %s and dst port %s)", x, xp, y, yp)
	}
	return fmt.Sprintf("%s and (%s or %s)", proto, way(a, aPort, b, bPort), way(b, bPort, a, aPort)), a, nil
}

const traceLong = `Follows chosen packets through the live data plane and prints for each the stages that it passed,
what each decided and why, its ticks, and how the packet ended. Ends by itself after
--for, --count or --until-drop. What was too much is counted.`

// ofOperate says which token trace, explain and capture take: they are one request, POST /v1/trace.
const ofOperate = "\nOf another machine's control plane (--server) it is asked with a token of the role operate."

func traceCommand(e *env) *cobra.Command {
	var s selection
	var asJSON, workers bool
	cmd := &cobra.Command{
		Use: "trace", Args: cobra.NoArgs,
		Example: "  isthmus trace --ue 10.45.0.7 --count 1\n  isthmus trace --drop any --for 10s",
		Short:   "the way of chosen packets: each stage, what it decided and why, ticks, how it ended",
		Long:    traceLong + ofOperate,
	}
	f := cmd.Flags()
	s.flags(f, 30*time.Second)
	f.StringVar(&s.query.Drop, "drop", "",
		"packets that are dropped for this reason (show drop); any: for whichever")
	f.Uint32Var(&s.query.Count, "count", 0, "end after so many packets (0: no limit)")
	f.BoolVar(&s.query.UntilDrop, "until-drop", false, "end with the first packet that is dropped, or "+
		"answered with an ICMP error")
	f.BoolVarP(&asJSON, "json", "j", false, "print JSON, a line for each packet")
	f.BoolVar(&workers, "workers", false, "say at each stage which worker it was")
	f.BoolVar(&s.query.Edges, "edges", false,
		"follow no packets, but count those from node to node for show graph --edges")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, _ []string) error {
		if err := s.finish(); err != nil {
			return err
		}
		return e.followPackets(cmd, &s.query, asJSON, workers)
	})
	return cmd
}

// followPackets prints packets until the trace ends or the user interrupts it, and then how it stood.
func (e *env) followPackets(cmd *cobra.Command, q *trace.Query, asJSON, workers bool) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var last trace.State
	bar, w := e.followed(cmd, q)
	lines := json.NewEncoder(w)
	shown := 0
	err := command.Stream(ctx, &e.Env, "/v1/trace", q, func(u trace.Update) error {
		last = u.State
		for i := range u.Packets {
			shown++
			var err error
			if asJSON {
				err = lines.Encode(&u.Packets[i])
			} else {
				err = u.Packets[i].WriteText(w, workers)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	bar.Done()
	if err == nil && last.Ended == "" && ctx.Err() == nil {
		err = errGone
	}
	if err != nil {
		return err
	}
	return sayEnd(e, last, shown, asJSON || q.Edges)
}

// followed is the bar of a trace, and standard output with the bar out of the way. None where lines go to a program,
// which may print them on the same terminal.
func (e *env) followed(cmd *cobra.Command, q *trace.Query) (*command.Progress, io.Writer) {
	if _, _, ok := terminalSize(e.Out); !ok {
		return nil, e.Out
	}
	bar := command.NewProgress(e.Err, cmd.CommandPath())
	bar.During(time.Duration(q.Seconds) * time.Second)
	return bar, bar.Around(e.Out)
}

// errGone ends a command whose control plane ended before its trace did.
var errGone = errors.New("the control plane went away, and the trace with it; " +
	"isthmus status --wait 10s waits for it")

func sayEnd(e *env, s trace.State, shown int, asJSON bool) error {
	switch s.Ended {
	case "", "time", "count", "stopped":
	default:
		return errors.New(s.Ended)
	}
	if !asJSON && shown == 0 && s.Packets == 0 {
		fmt.Fprintln(e.Out, "no packet was chosen")
	}
	if s.Missed != 0 || s.Lost != 0 {
		fmt.Fprintf(e.Err, "missed: %d packets above --rate, %d lines of packets that found no room\n",
			s.Missed, s.Lost)
	}
	return nil
}
