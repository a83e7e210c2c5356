// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/url"

	"github.com/spf13/cobra"

	"isthmus/controlplane/command"
	"isthmus/controlplane/trace"
)

const explainLong = `Sends a hypothetical packet through the live tables and prints its trace. It is not sent, takes no
tokens of meters, is not counted by URRs, is not queued, buffered, copied or translated, and ends where
that would be. It may begin a flow of a session with several PDRs, counts as a hit of its
access list's rule, and as a packet that ends under the reason "explained".
The last line says what would become of it, "not known" where a stage cannot be asked.
CAPTURE is a pcap or pcapng file: its first frame is the packet.`

func explainCommand(e *env) *cobra.Command {
	var want trace.Hypothesis
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [CAPTURE] [--ue ADDRESS|--session|--subscriber NAME --to ADDRESS:PORT]",
		Short: "what would become of a packet now, and why; nothing is sent",
		Example: "  isthmus explain --ue 10.45.0.7 --to 198.51.100.7:443\n" +
			"  isthmus explain --session home-17 --to 198.51.100.7:443",
		Args: cobra.MaximumNArgs(1),
		Long: explainLong + ofOperate,
	}
	f := cmd.Flags()
	f.StringVar(&want.UE, "ue", "", "address of the UE or subscriber (default: the session's)")
	f.StringVar(&want.Session, "session", "",
		"session or subscriber, as show session names it (default: by the address)")
	f.StringVar(&want.Subscriber, "subscriber", "",
		"the session of this subscriber: name, MAC, circuit id or line, as show subscriber finds it")
	f.StringVar(&want.To, "to", "", "the other end, ADDRESS[:PORT]")
	f.StringVar(&want.Protocol, "protocol", "udp", "udp, tcp or icmp")
	f.Uint16Var(&want.UEPort, "ue-port", 40000, "port of the UE")
	f.Uint16Var(&want.Length, "length", 100, "bytes of the IP packet")
	f.Uint8Var(&want.DSCP, "dscp", 0, "DSCP")
	f.BoolVar(&want.Downlink, "downlink", false, "a packet to the UE, in place of one from it")
	f.StringVar(&want.Port, "port", "",
		"port by which it comes (default: the session's, or by the route to the other end)")
	f.StringVar(&want.Interface, "interface", "",
		"interface of the configuration by which it comes, with its VLANs and VRF, in place of a port")
	f.StringVar(&want.TEID, "teid", "", "TEID, in place of the session's")
	f.BoolVarP(&asJSON, "json", "j", false, "print JSON")
	command.Values(cmd, "protocol", "", "udp", "tcp", "icmp")
	cmd.RunE = command.Failed(func(cmd *cobra.Command, args []string) error {
		var frame []byte
		var err error
		if len(args) > 0 {
			if want.UE+want.Session+want.Subscriber+want.Interface+want.TEID != "" {
				return command.Usage("give a capture, or --ue, --session, --subscriber, " +
					"--interface, --teid")
			}
			frame, err = trace.FirstFrame(args[0], &want.Port)
		} else {
			bar := command.NewProgress(e.Err, cmd.CommandPath())
			frame, err = want.Frame(func(table string, query url.Values, rows any) error {
				return e.rows(cmd.Context(), table, query, rows)
			})
			bar.Done()
		}
		if err != nil {
			return err
		}
		q := &trace.Query{Hypothetical: frame, Port: want.Port, Seconds: 20}
		return e.followPackets(cmd, q, asJSON, false)
	})
	return cmd
}
