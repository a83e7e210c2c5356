// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"testing"

	"isthmus/controlplane/testkit"
)

// rows are of a UPF, a subscriber, and VRFs red and blue with the same addresses on VLANs of one port.
// Sessions, rules and routes are asked for by a key, or with a limit.
func rows(table string, query url.Values, to any) error {
	key := query.Get("key")
	if slices.Contains([]string{"session", "rule", "route"}, table) && key == "" && query.Get("limit") == "" {
		return fmt.Errorf("all rows of %s are asked for", table)
	}
	switch v := to.(type) {
	case *[]sessionRow:
		*v = []sessionRow{
			{Name: "n4.1", UEIP4: "10.45.0.2", UEIP6: "2001:db8:45::/64", TEIDLocal: 0x100, Port: "n3"},
			{Name: "home", UEIP4: "100.64.0.7", Port: "access", STag: 100, CTag: 7, PPPoESession: 9,
				MAC: "02:00:00:00:00:07", Encap: "qinq-pppoe"},
			{Name: "plain", UEIP4: "100.64.0.8", UEIP6: "2001:db8:64::/64", Port: "access", Encap: "qinq",
				MAC: "02:00:00:00:00:08"},
			{Name: "n4.red", UEIP4: "10.46.0.5", TEIDLocal: 0x200},
			{Name: "n4.blue", UEIP4: "10.46.0.5", TEIDLocal: 0x300}}
		ue, _ := netip.ParseAddr(key)
		*v = slices.DeleteFunc(*v, func(s sessionRow) bool { return s.Name != key && !s.has(ue) })
	case *[]subscriberRow:
		*v = map[string][]subscriberRow{"anna": {{"plain", "up"}}, "carl": {{"", "refused"}},
			"office": {{"plain", "up"}, {"home", "up"}}}[key]
	case *[]ruleRow:
		nine := uint8(9)
		*v = []ruleRow{{Session: "n4.1", TEIDLocal: 0x101, Local: "10.30.0.1", Peer: "10.30.0.2", QFI: &nine},
			{Session: "n4.red", TEIDLocal: 0x201, Local: "10.31.0.1", Peer: "10.31.0.2"},
			{Session: "n4.blue", TEIDLocal: 0x301, Local: "10.32.0.1", Peer: "10.32.0.2"}}
		*v = slices.DeleteFunc(*v, func(r ruleRow) bool { return key != "" && r.Session != key })
	case *[]portRow:
		*v = []portRow{{"n3", "core", "02:00:00:00:00:03"}, {"n6", "core", "02:00:00:00:00:06"},
			{"pdn", "core", "02:00:00:00:00:07"}, {"spare", "core", "02:00:00:00:00:08"},
			{"access", "access", "02:00:00:00:00:0a"}}
	case *[]interfaceRow:
		*v = []interfaceRow{{Name: "n3", Port: "n3", Addresses: []string{"10.30.0.1/24"}},
			{Name: "n3-30", Port: "n3", OuterVLAN: 30, Addresses: []string{"10.31.0.1/24"}},
			{Name: "n3-30-5", Port: "n3", OuterVLAN: 30, InnerVLAN: 5, Addresses: []string{"10.32.0.1/24"}},
			{Name: "n6", Port: "n6", Addresses: []string{"10.60.0.1/24"}},
			{Name: "n6-red", Port: "pdn", VRF: "red", OuterVLAN: 10, Addresses: []string{"10.61.0.1/24"}},
			{Name: "n6-blue", Port: "pdn", VRF: "blue", OuterVLAN: 11, Addresses: []string{"10.61.0.1/24"}}}
	case *[]instanceRow:
		*v = []instanceRow{{[]string{"n6"}, []string{"10.45.0.0/16", "2001:db8:45::/48"}},
			{[]string{"n6-red"}, []string{"10.46.0.0/16", "10.47.0.0/16"}},
			{[]string{"n6-blue"}, []string{"10.46.0.0/16"}}}
	case *[]routeRow:
		*v = []routeRow{{"10.30.0.0/24", "n3", ""}, {"0.0.0.0/0", "n6", ""},
			{"0.0.0.0/0", "n6-red", "red"}, {"0.0.0.0/0", "n6-blue", "blue"}}
	}
	return nil
}

// ask fills in what the command's flags have by themselves.
func ask(h *Hypothesis) ([]byte, error) {
	h.UEPort, h.Length = 40000, 100
	if h.Protocol == "" {
		h.Protocol = "udp"
	}
	if h.To == "" {
		h.To = "8.8.8.8:53"
	}
	return h.Frame(rows)
}

func TestHypothesis(t *testing.T) {
	const someoneElse = "\x02\x00\x00\x00\x00\x01"
	for _, test := range []struct {
		h         Hypothesis
		port, hex string // a piece of the frame
	}{
		{Hypothesis{UE: "10.45.0.2"}, "n3", "\x34\xff\x00\x6c\x00\x00\x01\x01"},
		{Hypothesis{UE: "10.45.0.2"}, "n3", "\x00\x00\x01\x01\x00\x00\x00\x85\x01\x10\x09\x00\x45"}, // its QFI
		{Hypothesis{UE: "10.45.0.2"}, "n3", someoneElse + "\x08\x00\x45"},
		{Hypothesis{UE: "10.45.0.2", TEID: "0x999"}, "n3", "\x00\x00\x09\x99"},
		{Hypothesis{UE: "10.45.0.2", Downlink: true}, "n6",
			"\x08\x08\x08\x08\x0a\x2d\x00\x02\x00\x35\x9c\x40"},
		{Hypothesis{UE: "100.64.0.7", Protocol: "icmp"}, "access",
			"\x00\x64\x81\x00\x00\x07\x88\x64\x11\x00\x00\x09\x00\x66\x00\x21"},
		// Behind no tags, without PPPoE.
		{Hypothesis{UE: "100.64.0.8"}, "access", "\x0a\x02\x00\x00\x00\x00\x08\x08\x00\x45"},
		{Hypothesis{Session: "plain", To: "[2001:db8::9]:53"}, "access",
			"\x0a\x02\x00\x00\x00\x00\x08\x86\xdd\x60"},
		{Hypothesis{Subscriber: "anna"}, "access", "\x64\x40\x00\x08\x08\x08\x08\x08"},
		// The address of the session that is named, of the IP version of the other end.
		{Hypothesis{Session: "n4.1"}, "n3", "\x0a\x2d\x00\x02\x08\x08\x08\x08"},
		{Hypothesis{Session: "n4.1", To: "[2001:db8::9]:53"}, "n3",
			"\x20\x01\x0d\xb8\x00\x45" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x20\x01\x0d\xb8"},
		{Hypothesis{Session: "home"}, "access", "\x64\x40\x00\x07\x08\x08\x08\x08"},
		// Of several sessions with an address the named one, with its tunnel's VLANs.
		{Hypothesis{UE: "10.46.0.5", Session: "n4.red"}, "n3", someoneElse + "\x81\x00\x00\x1e\x08\x00\x45"},
		{Hypothesis{UE: "10.46.0.5", Session: "n4.red"}, "n3", "\x30\xff\x00\x64\x00\x00\x02\x01\x45"},
		{Hypothesis{Session: "n4.blue"}, "n3", someoneElse + "\x88\xa8\x00\x1e\x81\x00\x00\x05\x08\x00\x45"},
		// The VRF whose pools have the UE, that of the only route, that of the interface that is named.
		{Hypothesis{UE: "10.47.0.9", Downlink: true}, "pdn", someoneElse + "\x81\x00\x00\x0a\x08\x00\x45"},
		{Hypothesis{Session: "n4.blue", Downlink: true, Interface: "n6-blue"}, "pdn",
			someoneElse + "\x81\x00\x00\x0b\x08\x00\x45"},
		{Hypothesis{UE: "10.46.0.5", Downlink: true, Interface: "n6-red", Port: "pdn"}, "pdn",
			someoneElse + "\x81\x00\x00\x0a\x08\x00\x45"},
		// By another port: with the VLANs of its only interface, or none.
		{Hypothesis{UE: "10.45.0.2", Port: "n6"}, "n6", someoneElse + "\x08\x00\x45"},
		{Hypothesis{UE: "10.45.0.2", Port: "spare"}, "spare", someoneElse + "\x08\x00\x45"},
		{Hypothesis{Session: "n4.red", Port: "n3"}, "n3", someoneElse + "\x81\x00\x00\x1e\x08\x00\x45"},
	} {
		h := test.h
		frame, err := ask(&h)
		testkit.Must(t, err)
		testkit.Equal(t, h.Port, test.port, "port of %+v", test.h)
		testkit.ErrorIf(t, !bytes.Contains(frame, []byte(test.hex)), "%+v: %x", test.h, frame)
	}
}

func TestHypothesisIsRefused(t *testing.T) {
	for _, test := range []struct {
		want string
		h    Hypothesis
	}{
		{"is no address", Hypothesis{UE: "x"}},
		{"is not ADDRESS", Hypothesis{UE: "10.45.0.2", To: "8.8.8.8:x"}},
		{"of different IP", Hypothesis{UE: "10.45.0.2", To: "2001:db8::1"}},
		{"no session has", Hypothesis{UE: "10.1.1.1"}},
		{"give --ue, --session, --subscriber", Hypothesis{}},
		{"give --session or --subscriber", Hypothesis{Session: "home", Subscriber: "anna"}},
		{`no subscriber "bob"`, Hypothesis{Subscriber: "bob"}},
		{`"carl" is refused and has no session`, Hypothesis{Subscriber: "carl"}},
		{"names 2 sessions; choose one by --session, such as plain or home", Hypothesis{Subscriber: "office"}},
		{"no session n4.9", Hypothesis{Session: "n4.9"}},
		{"no address of the IP version", Hypothesis{Session: "n4.red", To: "2001:db8::1"}},
		{"sessions n4.red, n4.blue have the address 10.46.0.5", Hypothesis{UE: "10.46.0.5"}},
		{"by the interfaces n6-blue, n6-red: ", Hypothesis{UE: "10.46.0.5", Downlink: true}},
		{"by the interfaces n6-blue, n6-red: ", Hypothesis{Session: "n4.red", Downlink: true}},
		{`port "pdn" has the interfaces n6-red, n6-blue`, Hypothesis{UE: "10.45.0.2", Port: "pdn"}},
		{`no interface "x"`, Hypothesis{UE: "10.45.0.2", Interface: "x"}},
		{`is on port "pdn", not on "n6"`, Hypothesis{UE: "10.45.0.2", Interface: "n6-red", Port: "n6"}},
		{`no port "x"`, Hypothesis{UE: "10.45.0.2", Port: "x"}},
		{"no route leads", Hypothesis{Session: "n4.1", To: "2001:db8::1", Downlink: true}},
		{"say nothing of it", Hypothesis{UE: "100.64.0.7", Interface: "n6"}},
		{"says nothing of it", Hypothesis{UE: "10.45.0.2", Downlink: true, TEID: "5"}},
	} {
		_, err := ask(&test.h)
		testkit.Refused(t, err, test.want)
	}
}
