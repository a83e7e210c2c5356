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
	"isthmus/controlplane/testkit"
)

// TestTshark: an independent decoder finds nothing wrong in anything that we send.
func TestTshark(t *testing.T) {
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	w := newWorld(t)
	w.c.Routes = []Route{{Prefix: netip.MustParsePrefix("10.17.0.0/17")}}
	w.configure()
	h := w.home(1)
	h.line.Port = "trusted"
	say := func(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) {
		h.put(h.four(kind, change...))
		w.run()
	}
	say(dhcpv4.MessageTypeDiscover, circuit("eth 0/1"))
	mine := w.live[0].has.IPv4
	say(dhcpv4.MessageTypeRequest, wanted(mine), circuit("eth 0/1"))
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

	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = append(le.AppendUint32(b, 2|4<<16), make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 1<<18), 101) // LINKTYPE_RAW
	for _, f := range w.sent {
		n := uint32(len(f.Payload))
		b = le.AppendUint32(le.AppendUint32(b, 1764000000), 0)
		b = append(le.AppendUint32(le.AppendUint32(b, n), n), f.Payload...)
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
	testkit.Equal(t, len(lines), len(w.sent), "packets that tshark read")
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		testkit.ErrorIf(t, len(fields) != 4 || fields[2]+fields[3] != "" ||
			!strings.HasPrefix(fields[1], "DHCP") && fields[1] != "ICMPv6", "%q", line)
	}
}
