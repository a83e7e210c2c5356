// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
	"isthmus/controlplane/config"
	"isthmus/controlplane/testkit"
)

// TestTshark: an independent decoder finds no fault in any sent frame.
func TestTshark(t *testing.T) {
	w := newWorld(t)
	w.c.Routes = []config.DHCPRoute{{Prefix: config.Prefix{Prefix: netip.MustParsePrefix("10.17.0.0/17")}}}
	w.configure()
	h := w.home(1)
	h.line.Port = "trusted"
	say := func(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) {
		h.put(h.four(kind, change...))
		w.run()
	}
	say(dhcpv4.MessageTypeDiscover, saying("eth 0/1"))
	mine := w.live[0].has.IPv4
	say(dhcpv4.MessageTypeRequest, wanted(mine), saying("eth 0/1"))
	say(dhcpv4.MessageTypeRequest, ciaddr(mine))
	say(dhcpv4.MessageTypeInform, ciaddr(mine))
	say(dhcpv4.MessageTypeRequest, ciaddr(ourselves))
	h.solicit()
	w.run()
	rapid := func(m dhcpv6.DHCPv6) { m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit}) }
	ask := func(kind dhcpv6.MessageType, change ...dhcpv6.Modifier) {
		h.put6(h.six(kind, change...))
		w.run()
	}
	ask(dhcpv6.MessageTypeSolicit, na(), pd())
	ask(dhcpv6.MessageTypeSolicit, na(), pd(), rapid)
	ask(dhcpv6.MessageTypeRequest, ours, na(), na(), pd(), pd())
	ask(dhcpv6.MessageTypeRenew, ours, na(held("2001:db8:9::1")), pd())
	ask(dhcpv6.MessageTypeConfirm, na(held("2001:db8:9::1")))
	ask(dhcpv6.MessageTypeInformationRequest)
	ask(dhcpv6.MessageTypeDecline, ours, na(held("2001:db8:1::1")))
	ask(dhcpv6.MessageTypeRelease, ours, na(), pd())
	w.live[0].client.Ended(access.AdminReset)
	testkit.ErrorIf(t, len(w.sent) < 14, "%d packets", len(w.sent))
	var sent [][]byte
	w.takeSent(&sent)
	judge(t, sent)
}

func (w *world) takeSent(to *[][]byte) {
	w.run()
	for _, f := range w.sent {
		*to = append(*to, f.Payload)
	}
	w.sent = nil
}

type toServer = func(server netip.AddrPort, packet []byte) error

// asUDP keeps what goes to servers, as the kernel would send it.
func asUDP(sent *[][]byte, from netip.Addr, port uint16, next toServer) toServer {
	return func(server netip.AddrPort, packet []byte) error {
		d := datagram{from: from, to: server.Addr(), source: port, dest: server.Port(), protocol: protocolUDP,
			body: packet}
		*sent = append(*sent, d.packet())
		return next(server, packet)
	}
}

// The same for a proxy, and for DHCPv6 relays with the access node's message: packets to servers and to clients.
func TestTsharkRelay(t *testing.T) {
	var sent [][]byte
	w, s, h := newRelay(t, true)
	w.s.Upstream = asUDP(&sent, ourselves, 67, w.s.Upstream)
	h.put(h.four(dhcpv4.MessageTypeDiscover))
	s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeOffer, "172.16.0.7")
	w.takeSent(&sent)
	clear(s.asked)
	h.put(h.four(dhcpv4.MessageTypeRequest, wanted(netip.MustParseAddr("172.16.0.7")),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(ourselves.AsSlice()))))
	s.answer(upstreamA, s.take(upstreamA), dhcpv4.MessageTypeAck, "172.16.0.7")
	w.takeSent(&sent)
	// To both servers, the offer, to one server, the acknowledgement.
	testkit.Equal(t, len(sent), 5, "packets of DHCPv4")

	w, s6, h := newRelay6(t)
	w.s.Upstream6 = asUDP(&sent, ourselves6, 547, w.s.Upstream6)
	h.exchange6(s6, dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeAdvertise, "[ADVERTISE"+lentBoth[6:],
		mods{na(), pd()}, lendBoth)
	h.line.Port = "ldra"
	h.asksThroughNode()
	w.s.FromUpstream6(sixA, answer6(s6.take(), dhcpv6.MessageTypeReply, lendBoth...))
	w.takeSent(&sent)
	testkit.ErrorIf(t, len(sent) < 10, "%d packets", len(sent))
	judge(t, sent)
}

// judge has tshark read IP packets, checksums too.
func judge(t *testing.T, sent [][]byte) {
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = append(le.AppendUint32(b, 2|4<<16), make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 1<<18), 101) // LINKTYPE_RAW
	for _, packet := range sent {
		n := uint32(len(packet))
		b = le.AppendUint32(le.AppendUint32(b, 1764000000), 0)
		b = append(le.AppendUint32(le.AppendUint32(b, n), n), packet...)
	}
	path := filepath.Join(t.TempDir(), "sent.pcap")
	testkit.Must(t, os.WriteFile(path, b, 0o600))
	command := exec.Command(program, "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-T", "fields", "-e", "frame.number", "-e", "_ws.col.Protocol", "-e", "_ws.malformed",
		"-e", "_ws.expert.message")
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	testkit.FatalIf(t, err != nil, "tshark: %v %s", err, complaints.Bytes())
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	testkit.Equal(t, len(lines), len(sent), "packets that tshark read")
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		testkit.ErrorIf(t, len(fields) != 4 || fields[2]+fields[3] != "" ||
			!strings.HasPrefix(fields[1], "DHCP") && fields[1] != "ICMPv6", "%q", line)
	}
}
