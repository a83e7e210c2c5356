// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"isthmus/api"
	"isthmus/controlplane/pfcp"
	"isthmus/controlplane/testkit"
)

// How a test distinguishes a request's bit or field from an ignored one: by the result.

// giveNothing makes every choice the same, so that results of a request are equal.
type giveNothing struct{}

func (giveNothing) TEID(netip.Addr, netip.Addr) uint32 { return 0x7007 }
func (giveNothing) UE4(*Instance) (netip.Addr, bool)   { return addr("10.45.0.3"), true }
func (giveNothing) UE6(*Instance, uint8) (netip.Prefix, bool) {
	return netip.MustParsePrefix("2001:db8:1:3::/64"), true
}

// everySettings: an instance with two endpoints, and an application.
func everySettings() *Settings {
	set := testSettings()
	set.Instances[0].Endpoints = append(set.Instances[0].Endpoints, addr("10.1.0.2"))
	set.Instances[2].Sources = []pfcp.Interface{pfcp.SGiLAN, pfcp.Access}
	return set
}

// outcomeOf is the data plane's objects of a session, and the refusal.
func outcomeOf(req *pfcp.SessionEstablishmentRequest, change *pfcp.SessionModificationRequest) (string, *pfcp.Error) {
	set := everySettings()
	s, _, err := Establish(set, giveNothing{}, req)
	if err == nil && change != nil {
		_, err = Modify(set, giveNothing{}, s, change)
	}
	if err != nil {
		return "", err
	}
	c, err := Compile(Context{Set: set, PFDs: PFDs{"other": {{Protocol: 6, Flags: api.SDFProtocol}}}}, s)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x %v %q %q %q %d", c.Body, c.Objects, s.UserID, s.APN, s.SNSSAI, s.Inactivity), nil
}

// outcome is that of a datagram: with rules what the data plane gets of them, else the message that was read.
func outcome(t *testing.T, datagram []byte) (string, *pfcp.Error) {
	t.Helper()
	_, m, err := pfcp.Decode(datagram)
	var refusal *pfcp.Error
	if errors.As(err, &refusal) {
		return "", refusal
	} else if err != nil {
		t.Fatal(err)
	}
	read, err := json.Marshal(m)
	testkit.Must(t, err)
	switch m := m.(type) {
	case *pfcp.SessionEstablishmentRequest:
		restore := m.Restoration // gives F-TEIDs back that we gave: not in what the data plane gets
		made, refusal := outcomeOf(m, nil)
		return fmt.Sprint(made, restore), refusal
	case *pfcp.SessionModificationRequest:
		return outcomeOf(request(1, "10.45.0.5"), m)
	}
	return string(read), nil
}

// ie is an information element as it is sent, whatever is in it.
type ie struct {
	typ   uint16
	value []byte
}

func element(typ uint16, value []byte) ie { return ie{typ, value} }

func group(typ uint16, of ...ie) ie { return ie{typ, octets(of)} }

// The grouped IEs (TS 29.244 §8.1.2).
const (
	createPDR, pdi, createFAR, forwarding, duplicating, createURR, createQER = 1, 2, 3, 4, 5, 6, 7

	updateFAR, updateForwarding = 10, 11
)

func octets(of []ie) (b []byte) {
	for _, i := range of {
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, i.typ), uint16(len(i.value)))
		b = append(b, i.value...)
	}
	return b
}

// raw is a datagram of IEs.
func raw(typ pfcp.MessageType, ies ...ie) []byte {
	b := []byte{0x21, byte(typ), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}
	if typ < pfcp.SessionEstablishmentRequestType {
		b = []byte{0x20, byte(typ), 0, 0, 0, 0, 1, 0}
	}
	b = append(b, octets(ies)...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)-4))
	return b
}

var (
	octets32 = func(typ uint16, n uint32) ie { return element(typ, binary.BigEndian.AppendUint32(nil, n)) }
	rawPDI   = group(pdi, element(20, []byte{0}), element(21, []byte{1, 0, 0, 0, 9, 10, 1, 0, 1}))
	rawUpFAR = group(createFAR, octets32(108, 1), element(44, []byte{2}),
		group(forwarding, element(42, []byte{1})))
	rawBefore = []ie{element(60, []byte{0, 10, 0, 0, 2}),
		element(57, []byte{2, 0, 0, 0, 0, 0, 0, 0, 1, 10, 0, 0, 2})}
)

// session is an establishment with these IEs beside what it must have.
func session(more ...ie) []byte {
	pdr := group(createPDR, element(56, []byte{0, 1}), octets32(29, 1), rawPDI, octets32(108, 1))
	return raw(pfcp.SessionEstablishmentRequestType, append(append(slices.Clone(rawBefore), pdr, rawUpFAR), more...)...)
}

// withPDI has a second PDR with these in its PDI.
func withPDI(more ...ie) []byte {
	pdi := group(pdi, append([]ie{element(20, []byte{1}), element(22, []byte("internet"))},
		more...)...)
	return session(group(createPDR, element(56, []byte{0, 2}), octets32(29, 1), pdi, octets32(108, 1)))
}

// withURR has a URR that measures volume and lies in wait of nothing.
func withURR(more ...ie) []byte {
	with := []ie{octets32(81, 1)}
	for _, of := range []ie{element(62, []byte{2}), element(37, []byte{2, 0, 0})} {
		if !slices.ContainsFunc(more, func(i ie) bool { return i.typ == of.typ }) {
			with = append(with, of)
		}
	}
	return session(group(createURR, append(with, more...)...))
}

func withFAR(more ...ie) []byte {
	return session(group(createFAR, append([]ie{octets32(108, 2)}, more...)...))
}

func modification(ies ...ie) []byte { return raw(pfcp.SessionModificationRequestType, ies...) }

// octet is a value of flags alone, n octets; base is what is set beside the flag.
func octet(n int, base byte) func(bit int) []byte {
	return func(bit int) []byte {
		v := make([]byte, n)
		v[0] = base
		if bit >= 0 {
			v[bit/8] |= 1 << (bit % 8)
		}
		return v
	}
}

// parts is an octet of flags, of which each brings the octets that go with it.
func parts(base byte, of map[int][]byte, before ...byte) func(bit int) []byte {
	return func(bit int) []byte {
		f := base
		if bit >= 0 {
			f |= 1 << bit
		}
		v := append([]byte{f}, before...)
		for b := range 8 {
			if f&(1<<b) != 0 {
				v = append(v, of[b]...)
			}
		}
		return v
	}
}

func eight(last byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, last} }

// The flags in what CP functions send. served must make a difference. All others must be refused with the cause for it;
// `told` ones may pass alone, since they request nothing.
var flagged = []struct {
	ie     string
	served string
	told   map[string]string
	in     func(...ie) []byte
	value  func(bit int) []byte
}{
	{ie: "ReportingTriggers", in: withURR, value: octet(3, 0),
		served: "PERIO VOLTH TIMTH QUHTI START STOPT DROTH LIUSA VOLQU TIMQU EVETH EVEQU QUVTI"},
	{ie: "MeasurementMethod", in: withURR, value: octet(1, 2),
		served: "DURAT EVENT"},
	{ie: "MeasurementInformation", in: withURR, value: octet(1, 0), served: "MBQE INAM ISTM MNOP"},
	{ie: "VolumeThreshold", in: withURR, value: parts(1, map[int][]byte{0: eight(1), 1: eight(2), 2: eight(3)}),
		served: "ULVOL DLVOL"},
	{ie: "VolumeQuota", in: withURR, value: parts(2, map[int][]byte{0: eight(1), 1: eight(2), 2: eight(3)}),
		served: "TOVOL DLVOL"},
	{ie: "SubsequentVolumeThreshold", in: withURR, value: parts(1,
		map[int][]byte{0: eight(1), 1: eight(2), 2: eight(3)}),
		served: "ULVOL DLVOL"},
	{ie: "DroppedDLTrafficThreshold", in: withURR, value: parts(1, map[int][]byte{0: eight(1), 1: eight(2)}),
		served: "DLBY"},
	{ie: "ApplyAction", in: func(i ...ie) []byte {
		return withFAR(append(i, group(duplicating, element(42, []byte{4})))...)
	}, value: octet(2, 4),
		served: "NOCP DUPL"},
	{ie: "GateStatus", in: func(i ...ie) []byte {
		return session(group(createQER, append(i, octets32(109, 1))...))
	}, value: octet(1, 0), served: "DL UL"},
	{ie: "RQI", in: func(i ...ie) []byte {
		return session(group(createQER, append(i, octets32(109, 1), element(25, []byte{0}))...))
	}, value: octet(1, 0), served: "RQI"},
	{ie: "DLFlowLevelMarking", in: func(i ...ie) []byte {
		return session(group(createQER, append(i, octets32(109, 1), element(25, []byte{0}))...))
	}, value: parts(0, map[int][]byte{0: {46 << 2, 0xfc}, 1: {0, 0}}), served: "TTC"},
	{ie: "FTEID", in: func(i ...ie) []byte {
		return session(group(createPDR, element(56, []byte{0, 2}), octets32(29, 1),
			group(pdi, append(i, element(20, []byte{0}))...), octets32(108, 1)))
	},
		value: func(bit int) []byte {
			v6 := addr("2001:db8:f::1").AsSlice()
			switch bit {
			case 1:
				return append([]byte{3, 0, 0, 0, 8, 10, 1, 0, 1}, v6...)
			case 2:
				return []byte{5}
			case 3:
				return []byte{13, 4}
			}
			return append(octet(1, 1)(bit), 0, 0, 0, 8, 10, 1, 0, 1)
		}, served: "V6 CH CHID"},
	{ie: "UEIPAddress", in: withPDI, value: func(bit int) []byte {
		v4, v6 := []byte{10, 45, 0, 5}, addr("2001:db8:1:5::").AsSlice()
		switch bit {
		case 0:
			return slices.Concat([]byte{7}, v4, v6)
		case 3:
			return slices.Concat([]byte{15}, v4, v6, []byte{8})
		case 4:
			return append([]byte{0x15}, v6...)
		case 5:
			return append([]byte{0x26}, v4...)
		case 6:
			return slices.Concat([]byte{0x47}, v4, v6, []byte{60})
		}
		return append(octet(1, 2)(bit), v4...)
	}, served: "V6 IPv6D CHV4 CHV6 IP6PL",
		told: map[string]string{"S/D": "the side of the PDR says which it is"}},
	{ie: "SDFFilter", in: func(i ...ie) []byte {
		return withPDI(append(i, element(93, []byte{6, 10, 45, 0, 5}))...)
	}, value: parts(2, map[int][]byte{0: append([]byte{0, 33}, "permit out 6 from any to assigned"...), 1: {0xb8, 0xfc},
		2: {0, 0, 0, 1},
		3: {0, 0, 1}, 4: {0, 0, 0, 1}}, 0), served: "FD SPI FL",
		told: map[string]string{"BID": "a name for the filter, by which other rules may refer to it"}},
	{ie: "OuterHeaderCreation", in: func(i ...ie) []byte {
		return withFAR(element(44, []byte{2}), group(forwarding, append(i,
			element(42, []byte{0}))...))
	}, value: func(bit int) []byte {
		v4, v6, teid := []byte{10, 1, 0, 9}, addr("2001:db8:f::9").AsSlice(), []byte{0, 0, 0, 1}
		switch bit {
		case 0:
			return slices.Concat([]byte{1, 0}, teid, []byte{10, 1, 0, 8})
		case 1:
			return slices.Concat([]byte{2, 0}, teid, v6)
		case 2:
			return slices.Concat([]byte{4, 0}, v4, []byte{0, 9})
		case 3:
			return slices.Concat([]byte{8, 0}, v6, []byte{0, 9})
		case 4:
			return append([]byte{0x10, 0}, v4...)
		case 5:
			return append([]byte{0x20, 0}, v6...)
		case 6, 7:
			return slices.Concat([]byte{1<<bit | 1, 0}, teid, v4, []byte{0, 0, 1})
		case 8, 9, 10:
			return []byte{0, 1 << (bit - 8)}
		}
		return slices.Concat([]byte{1, byte(uint16(1)<<max(bit, 0)>>8) & 0xf8}, teid, v4)
	}, served: "GTPU4 GTPU6 UDP4 UDP6"},
	{ie: "TransportLevelMarking", in: func(i ...ie) []byte {
		return withFAR(element(44, []byte{2}), group(forwarding, append(i,
			element(42, []byte{1}))...))
	}, value: func(bit int) []byte { return append(octet(1, 0)(bit), 0xff) },
		served: "DSCP0 DSCP1 DSCP2 DSCP3 DSCP4 DSCP5",
		told: map[string]string{"ECN0": "of the packet, not of the tunnel (RFC 6040)",
			"ECN1": "of the packet, not of the tunnel (RFC 6040)"}},
	{ie: "PFCPSMReqFlags", in: modification, value: octet(1, 0), served: "DROBU QAURR",
		told: map[string]string{"SNDEM": "of a FAR (table 7.5.4.3-2); without one that moves there is no tunnel to " +
			"end"}},
	{ie: "PFCPSMReqFlags", in: func(i ...ie) []byte {
		return modification(group(updateFAR, octets32(108, 2), group(updateForwarding, i...)))
	}, value: octet(1, 0), served: "DROBU SNDEM"},
	{ie: "PFCPSMReqFlags", in: func(i ...ie) []byte {
		return modification(append(i, group(updateFAR, octets32(108, 2),
			group(updateForwarding, element(84, []byte{1, 0, 0, 0, 0, 7, 10, 1, 0, 8}))))...)
	}, value: octet(1, 0), served: "DROBU SNDEM QAURR"},
	{ie: "PFCPSEReqFlags", in: session, value: octet(1, 0), served: "RESTI"},
	{ie: "PFCPSRRspFlags", in: func(i ...ie) []byte {
		return raw(pfcp.SessionReportResponseType, append(i, element(19, []byte{1}))...)
	}, value: octet(1, 0), served: "DROBU"},
	{ie: "CPFunctionFeatures", in: func(i ...ie) []byte {
		return raw(pfcp.AssociationSetupRequestType, append(i, rawBefore[0], octets32(96, 0xe9000000))...)
	}, value: octet(2, 0),
		served: "LOAD OVRL EPFAR SSET BUNDL MPAS ARDR UIAUR PSUCC RPGUR"}, // kept, and shown: what the peer can do
}

// flagNames are the types of IEs and the names of their flags, bit by bit, in testdata/flags.txt (TS 29.244 Release
// 17). Bit n is bit n+1 of octet 5 and on, "-" is spare. test/gopfcp holds them against another implementation.
func flagNames(t *testing.T) (types map[string]uint16, names map[string][]string) {
	text, err := os.ReadFile("testdata/flags.txt")
	testkit.Must(t, err)
	types, names = map[string]uint16{}, map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		typ, err := strconv.ParseUint(words[1], 10, 16)
		testkit.Must(t, err)
		types[words[0]], names[words[0]] = uint16(typ), words[2:]
	}
	return types, names
}

// A flag that we take has an effect. Each one else is refused.
func TestEveryFlagIsServedOrRefused(t *testing.T) {
	types, names := flagNames(t)
	for _, row := range flagged {
		typ, served := types[row.ie], strings.Fields(row.served)
		base, refusal := outcome(t, row.in(element(typ, row.value(-1))))
		testkit.ErrorIf(t, typ == 0 || refusal != nil && row.ie != "ReportingTriggers",
			"%s: the base is refused: %v", row.ie, refusal)
		for bit, name := range names[row.ie] {
			what := fmt.Sprintf("%s, %s", row.ie, name)
			got, refusal := outcome(t, row.in(element(typ, row.value(bit))))
			switch {
			case name == "-" || string(row.value(bit)) == string(row.value(-1)):
			case slices.Contains(served, name):
				testkit.ErrorIf(t, refusal != nil || got == base, "%s: no effect, %v", what, refusal)
			case row.told[name] != "":
				testkit.ErrorIf(t, refusal != nil || got != base,
					"%s: not as it is told here: %v", what, refusal)
			case refusal == nil:
				t.Errorf("%s is accepted and ignored", what)
			case refusal.Offending != typ || refusal.Cause != pfcp.CauseServiceNotSupported &&
				refusal.Cause != pfcp.CauseMandatoryIEIncorrect:
				t.Errorf("%s: %v", what, refusal)
			}
		}
	}
}
