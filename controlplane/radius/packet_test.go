// SPDX-License-Identifier: Apache-2.0

package radius

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus/controlplane/testkit"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	testkit.Must(t, err)
	return b
}

// RFC 2865 §7.1.
func TestExampleOfRFC2865(t *testing.T) {
	request := unhex(t,
		"01000038 0f403f9473978057bd83d5cb98f4227a 01066e656d6f 02120dbe708d93d413ce3196e43f782a0aee "+
			"0406c0a80110 050600000003")
	answer := unhex(t, "02000026 86fe220e7624ba2a1005f6bf9b55e0b2 060600000001 0f0600000000 0e06c0a80103")
	p, err := Parse(request)
	testkit.Must(t, err)
	testkit.Equal(t, string(p.Get(UserName)), "nemo", "name")
	hidden := Hide([]byte("arctangent"), []byte("xyzzy5461"), &p.Authenticator)
	testkit.ErrorIf(t, !bytes.Equal(hidden, p.Get(UserPassword)), "hidden %x, not %x", hidden, p.Get(UserPassword))
	testkit.Must(t, Verify(answer, []byte("xyzzy5461"), &p.Authenticator, Optional))
	testkit.Equal(t, Verify(answer, []byte("xyzzy5461"), &p.Authenticator, Anywhere), ErrUnsigned, "unsigned")
}

// Impossible lengths (row B13).
func TestMalformed(t *testing.T) {
	header := func(n int, rest string) []byte {
		b := append([]byte{2, 1, byte(n >> 8), byte(n)}, make([]byte, 16)...)
		return append(b, unhex(t, rest)...)
	}
	for _, row := range []struct {
		name string
		b    []byte
	}{
		{"nothing", nil},
		{"less than a header", make([]byte, 19)},
		{"length less than a header", header(19, "")},
		{"length beyond the datagram", header(21, "")},
		{"length beyond the largest", append(header(4097, ""), make([]byte, 4096)...)},
		{"one octet", header(21, "01")},
		{"length 0", header(22, "0100")},
		{"length 1", header(22, "0101")},
		{"value beyond the packet", header(23, "010441")},
		{"vendor cut", header(25, "1a05000000")},
		{"vendor without attribute", header(26, "1a0600000009")},
		{"vendor's length 0", header(28, "1a08000000090100")},
		{"vendor's length 1", header(28, "1a08000000090101")},
		{"vendor's value beyond", header(29, "1a09000000090104ff")},
		{"vendor's second cut", header(30, "1a0a00000009010341ff")},
		{"IPv6 address of 32 octets", header(54, "a822"+strings.Repeat("00", 32))},
		{"IPv6 prefix of 1 octet", header(23, "610300")},
		{"IPv6 prefix shorter than it says", header(25, "6105004020")},
		{"IPv6 prefix of 129 bits", header(41, "61150081"+strings.Repeat("00", 17))},
		{"number of 3 octets", header(25, "1b05000001")},
		{"address of 5 octets", header(27, "08070a00000101")},
		{"interface of 4 octets", header(26, "6006ffffffff")},
	} {
		p, err := Parse(row.b)
		if err == nil {
			err = p.Check()
		}
		testkit.ErrorIf(t, !errors.Is(err, ErrMalformed), "%s: %v", row.name, err)
	}
	p, err := Parse(append(header(29, "1a0900 000063 ffff 00"), 1, 2, 3)) // of an unknown vendor; padding behind it
	testkit.Must(t, err)
	testkit.Equal(t, p.Attributes[0].Type, VendorSpecific, "type")
	testkit.Equal(t, len(p.Attributes[0].Value), 7, "length")
}

// sample is a request with attributes of every kind.
func sample(code Code) *Packet {
	p := &Packet{Code: code, ID: 9, Authenticator: [16]byte{1, 2, 3}}
	p.Text(UserName, "anna@example")
	p.Text(NASIdentifier, "bng-1")
	p.Address(NASIPAddress, netip.MustParseAddr("192.0.2.1"))
	p.Text(NASPortId, "a1:100.7")
	p.Text(AcctSessionId, "s1")
	p.Prefix(FramedIPv6Prefix, netip.MustParsePrefix("2001:db8:1::/64"))
	p.Prefix(DelegatedIPv6Prefix, netip.MustParsePrefix("2001:db8:aa00::/56"))
	p.Address(FramedIPv6Address, netip.MustParseAddr("2001:db8::7"))
	p.Add(FramedInterfaceId, []byte{0, 0, 0, 0, 0, 0, 1, 2})
	p.Text(ADSLAgentCircuitId, "olt1 0/1")
	p.Integer(ActualDataRateUpstream, 40_000_000)
	p.Text(CiscoAVPair, "subscriber:profile=gold")
	p.Integer(WISPrBandwidthMaxUp, 1_000_000)
	p.Integer(EventTimestamp, 1_764_000_000)
	switch code {
	case AccessRequest:
		p.Attributes = append(p.Attributes, Attribute{UserPassword,
			[]byte("a password of more than sixteen octets")})
		p.Add(MSCHAPChallenge, make([]byte, 16))
		p.Add(MSCHAP2Response, make([]byte, 50))
	case AccountingRequest:
		p.Integer(AcctStatusType, 2)
		p.Integer(AcctInputOctets, 7)
		p.Integer(AcctInputGigawords, 1)
		p.Integer(ERXIPv6AcctInputOctets, 3)
		p.Integer(AcctTerminateCause, 1)
		p.Integer(AcctDelayTime, 0)
	}
	return p
}

func encoded(t testing.TB, p *Packet) []byte {
	t.Helper()
	b, err := p.Encode(nil, []byte(secret), nil)
	testkit.Must(t, err)
	return b
}

func TestThereAndBack(t *testing.T) {
	for _, code := range []Code{AccountingRequest, CoARequest, DisconnectRequest} {
		p := sample(code)
		b := encoded(t, p)
		testkit.Must(t, VerifyRequest(b, []byte(secret), map[bool]Policy{true: Optional,
			false: First}[code == AccountingRequest]))
		got, err := Parse(b)
		testkit.Must(t, err)
		testkit.Must(t, got.Check())
		if code != AccountingRequest {
			got.Attributes = got.Attributes[1:]
		}
		testkit.ErrorIf(t, !reflect.DeepEqual(got, p), "%s: %+v, not %+v", code, got, p)
	}
}

func TestNames(t *testing.T) {
	for want, typ := range map[string]Type{"User-Name": UserName, "Cisco-AVPair": CiscoAVPair,
		"Attr-26.9.240": 9<<32 | 240,
		"Attr-200":      200, "Delegated-IPv6-Prefix": 123, "Message-Authenticator": 80,
		"MS-CHAP2-Response": 311<<32 | 25} {
		testkit.Equal(t, typ.String(), want, "name")
	}
	testkit.Equal(t, CoANAK.String()+Code(99).String(), "CoA-NAKcode 99", "codes")
}

// The dictionary and its constants are what their generator makes of the installed files.
func TestDictionaryGenerated(t *testing.T) {
	constants, err := os.ReadFile("dictionary_gen.go")
	testkit.Must(t, err)
	for _, c := range []struct{ option, want string }{{"", dictionaryText}, {"--go", string(constants)}} {
		out, err := exec.Command("/usr/bin/python3", strings.Fields("dictionary.py "+c.option)...).Output()
		if err != nil {
			t.Skip("freeradius-common is not installed: ./dev setup")
		}
		testkit.Equal(t, string(out), c.want, "dictionary.py %s, as go generate runs it,", c.option)
	}
	testkit.ErrorIf(t, len(dictionary()) < 300, "%d attributes of FreeRADIUS' dictionaries", len(dictionary()))
	for typ, e := range dictionary() {
		testkit.ErrorIf(t, e.kind > Date || e.name == "", "%d: %+v", uint64(typ), e)
	}
}

// The causes of RFC 5176 have FreeRADIUS' numbers.
func TestCauses(t *testing.T) {
	values := testkit.RADIUSValues(t)
	for name, cause := range map[string]Cause{"Unsupported-Attribute": UnsupportedAttribute,
		"Missing-Attribute": MissingAttribute, "NAS-Identification-Mismatch": NASMismatch,
		"Invalid-Request": InvalidRequest, "Unsupported-Service": UnsupportedService,
		"Invalid-Attribute-Value": InvalidValue, "Administratively-Prohibited": Prohibited,
		"Session-Context-Not-Found": SessionNotFound, "Session-Context-Not-Removable": NotRemovable,
		"Resources-Unavailable":                  ResourcesUnavailable,
		"Multiple-Session-Selection-Unsupported": SeveralSessions} {
		testkit.Equal(t, values["Error-Cause "+name], uint32(cause), "%s", name)
	}
}

// pyrad reads our packets, and we its answers.
func TestPyrad(t *testing.T) {
	const python = "/usr/bin/python3" // Debian's, which has pyrad
	if exec.Command(python, "-c", "import pyrad").Run() != nil {
		t.Skip("python3-pyrad is not installed: ./dev setup")
	}
	var lines []string
	request := sample(AccessRequest)
	for _, p := range []*Packet{request, sample(AccountingRequest), sample(CoARequest)} {
		lines = append(lines, hex.EncodeToString(encoded(t, p)))
	}
	command := exec.Command(python, "testdata/pyrad_peer.py")
	command.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	testkit.FatalIf(t, err != nil, "pyrad: %v %s", err, complaints.Bytes())
	got := string(out)
	for want, count := range map[string]int{"password a password of more than sixteen octets\n": 1,
		"signed True\n":    2,
		"authentic True\n": 2, "NAS-Port-Id ['a1:100.7']\n": 3, "Framed-IPv6-Prefix ['2001:db8:1::/64']\n": 3,
		"ADSL-Agent-Circuit-Id ['olt1 0/1']\n": 3, "Actual-Data-Rate-Upstream [40000000]\n": 3, "end\n": 3} {
		testkit.Equal(t, strings.Count(got, want), count, "%q", want)
	}
	_, reply, _ := strings.Cut(got, "reply ")
	reply, _, _ = strings.Cut(reply, "\n")
	b := unhex(t, reply)
	testkit.Must(t, Verify(b, []byte(secret), &request.Authenticator, Optional))
	p, err := Parse(b)
	testkit.Must(t, err)
	testkit.Equal(t, string(p.Get(ReplyMessage)), "made by pyrad", "message")
	testkit.ErrorIf(t, t.Failed(), "%s", got)
}

// tshark reads what we send without a remark.
func TestTshark(t *testing.T) {
	for port, codes := range map[uint16][]Code{1812: {AccessRequest, StatusServer}, 1813: {AccountingRequest},
		3799: {CoARequest, DisconnectRequest}} {
		var messages [][]byte
		for _, c := range codes {
			messages = append(messages, encoded(t, sample(c)))
		}
		answer := &Packet{Code: codes[0] + 1, ID: 9}
		answer.Integer(SessionTimeout, 60)
		b, err := answer.Encode(nil, []byte(secret), new([16]byte))
		testkit.Must(t, err)
		messages = append(messages, b)
		for i, layers := range testkit.Dissect(t, port, messages, "-o", "radius.shared_secret:"+secret) {
			testkit.ErrorIf(t, layers["radius"] == nil, "port %d: no RADIUS", port)
			for _, r := range testkit.Remarks("", layers) {
				t.Errorf("port %d, %d: %s", port, i, r)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range []Code{AccessRequest, AccountingRequest, CoARequest} {
		f.Add(encoded(f, sample(c)))
	}
	f.Add([]byte{2, 1, 0, 28, 27: 0, 20: 26, 21: 8, 25: 9, 26: 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		p, err := Parse(b)
		_ = VerifyRequest(b, nil, Optional)
		if err != nil {
			return
		}
		trimmed, _ := Trim(b)
		_ = VerifyRequest(trimmed, []byte(secret), First)
		_ = p.Check()
		for i := range p.Attributes {
			a := &p.Attributes[i]
			_, _ = a.Uint32()
			_, _ = a.Address()
			_, _ = a.Prefix()
		}
		testkit.ErrorIf(t, !bytes.Equal(b, before), "the packet was changed")
		if p.Get(UserPassword) != nil || p.Get(MessageAuthenticator) != nil {
			return
		}
		again, err := AppendAttributes(nil, p.Attributes)
		testkit.Must(t, err)
		list, err := ParseAttributes(again)
		testkit.Must(t, err)
		testkit.ErrorIf(t, len(list) != len(p.Attributes) || len(list) > 0 && !reflect.DeepEqual(list,
			p.Attributes),
			"%v, not %v", list, p.Attributes)
	})
}

func BenchmarkEncode(b *testing.B) {
	p := sample(AccessRequest)
	p.Since = time.Time{}
	buffer := make([]byte, 0, maxPacket)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = p.Encode(buffer, []byte(secret), nil)
	}
}
