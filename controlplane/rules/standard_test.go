// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	gopfcp "github.com/wmnsk/go-pfcp/ie"

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

// raw is a datagram of IEs.
func raw(typ pfcp.MessageType, ies ...*gopfcp.IE) []byte {
	b := []byte{0x21, byte(typ), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}
	if typ < pfcp.SessionEstablishmentRequestType {
		b = []byte{0x20, byte(typ), 0, 0, 0, 0, 1, 0}
	}
	for _, i := range ies {
		part, err := i.Marshal()
		if err != nil {
			panic(err)
		}
		b = append(b, part...)
	}
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)-4))
	return b
}

var (
	octets32 = func(typ uint16, n uint32) *gopfcp.IE { return gopfcp.New(typ, binary.BigEndian.AppendUint32(nil, n)) }
	rawPDI   = gopfcp.NewPDI(gopfcp.New(20, []byte{0}), gopfcp.New(21, []byte{1, 0, 0, 0, 9, 10, 1, 0, 1}))
	rawUpFAR = gopfcp.NewCreateFAR(octets32(108, 1), gopfcp.New(44, []byte{2}),
		gopfcp.NewForwardingParameters(gopfcp.New(42, []byte{1})))
	rawBefore = []*gopfcp.IE{gopfcp.New(60, []byte{0, 10, 0, 0, 2}),
		gopfcp.New(57, []byte{2, 0, 0, 0, 0, 0, 0, 0, 1, 10, 0, 0, 2})}
)

// session is an establishment with these IEs beside what it must have.
func session(more ...*gopfcp.IE) []byte {
	pdr := gopfcp.NewCreatePDR(gopfcp.New(56, []byte{0, 1}), octets32(29, 1), rawPDI, octets32(108, 1))
	return raw(pfcp.SessionEstablishmentRequestType, append(append(slices.Clone(rawBefore), pdr, rawUpFAR), more...)...)
}

// withPDI has a second PDR with these in its PDI.
func withPDI(more ...*gopfcp.IE) []byte {
	pdi := gopfcp.NewPDI(append([]*gopfcp.IE{gopfcp.New(20, []byte{1}), gopfcp.New(22, []byte("internet"))},
		more...)...)
	return session(gopfcp.NewCreatePDR(gopfcp.New(56, []byte{0, 2}), octets32(29, 1), pdi, octets32(108, 1)))
}

// withURR has a URR that measures volume and lies in wait of nothing.
func withURR(more ...*gopfcp.IE) []byte {
	with := []*gopfcp.IE{octets32(81, 1)}
	for _, of := range []*gopfcp.IE{gopfcp.New(62, []byte{2}), gopfcp.New(37, []byte{2, 0, 0})} {
		if !slices.ContainsFunc(more, func(i *gopfcp.IE) bool { return i.Type == of.Type }) {
			with = append(with, of)
		}
	}
	return session(gopfcp.NewCreateURR(append(with, more...)...))
}

func withFAR(more ...*gopfcp.IE) []byte {
	return session(gopfcp.NewCreateFAR(append([]*gopfcp.IE{octets32(108, 2)}, more...)...))
}

func modification(ies ...*gopfcp.IE) []byte { return raw(pfcp.SessionModificationRequestType, ies...) }

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

// The flags of TS 29.244 Release 17 in what CP functions send. Bit n of names is bit n+1 of octet 5 and on, "-" is
// spare. served must make a difference. All others must be refused with the cause for it; `told` ones may pass alone,
// since they request nothing.
var flagged = []struct {
	ie     uint16
	names  string
	served string
	told   map[string]string
	in     func(...*gopfcp.IE) []byte
	value  func(bit int) []byte
}{
	{ie: gopfcp.ReportingTriggers, in: withURR, value: octet(3, 0),
		names: "PERIO VOLTH TIMTH QUHTI START STOPT DROTH LIUSA VOLQU TIMQU ENVCL MACAR EVETH EVEQU IPMJL QUVTI " +
			"REEMR UPINT - - - - - -",
		served: "PERIO VOLTH TIMTH QUHTI START STOPT DROTH LIUSA VOLQU TIMQU EVETH EVEQU QUVTI"},
	{ie: gopfcp.MeasurementMethod, in: withURR, value: octet(1, 2), names: "DURAT VOLUM EVENT - - - - -",
		served: "DURAT EVENT"},
	{ie: gopfcp.MeasurementInformation, in: withURR, value: octet(1, 0),
		names: "MBQE INAM RADI ISTM MNOP SSPOC ASPOC CIAM", served: "MBQE INAM ISTM MNOP"},
	{ie: gopfcp.VolumeThreshold, in: withURR, value: parts(1, map[int][]byte{0: eight(1), 1: eight(2), 2: eight(3)}),
		names: "TOVOL ULVOL DLVOL - - - - -", served: "ULVOL DLVOL"},
	{ie: gopfcp.VolumeQuota, in: withURR, value: parts(2, map[int][]byte{0: eight(1), 1: eight(2), 2: eight(3)}),
		names: "TOVOL ULVOL DLVOL - - - - -", served: "TOVOL DLVOL"},
	{ie: gopfcp.SubsequentVolumeThreshold, in: withURR, value: parts(1,
		map[int][]byte{0: eight(1), 1: eight(2), 2: eight(3)}),
		names: "TOVOL ULVOL DLVOL - - - - -", served: "ULVOL DLVOL"},
	{ie: gopfcp.DroppedDLTrafficThreshold, in: withURR, value: parts(1, map[int][]byte{0: eight(1), 1: eight(2)}),
		names: "DLPA DLBY - - - - - -", served: "DLBY"},
	{ie: gopfcp.ApplyAction, in: func(i ...*gopfcp.IE) []byte {
		return withFAR(append(i, gopfcp.NewDuplicatingParameters(gopfcp.New(42, []byte{4})))...)
	}, value: octet(2, 4), names: "DROP FORW BUFF NOCP DUPL IPMA IPMD DFRT EDRT BDPN DDPN FSSM MBSU - - -",
		served: "NOCP DUPL"},
	{ie: gopfcp.GateStatus, in: func(i ...*gopfcp.IE) []byte {
		return session(gopfcp.NewCreateQER(append(i, octets32(109, 1))...))
	}, value: octet(1, 0), names: "DL DL2 UL UL2 - - - -", served: "DL UL"},
	{ie: gopfcp.RQI, in: func(i ...*gopfcp.IE) []byte {
		return session(gopfcp.NewCreateQER(append(i, octets32(109, 1), gopfcp.New(25, []byte{0}))...))
	}, value: octet(1, 0), names: "RQI - - - - - - -", served: "RQI"},
	{ie: gopfcp.DLFlowLevelMarking, in: func(i ...*gopfcp.IE) []byte {
		return session(gopfcp.NewCreateQER(append(i, octets32(109, 1), gopfcp.New(25, []byte{0}))...))
	}, value: parts(0, map[int][]byte{0: {46 << 2, 0xfc}, 1: {0, 0}}), names: "TTC SCI - - - - - -", served: "TTC"},
	{ie: gopfcp.FTEID, in: func(i ...*gopfcp.IE) []byte {
		return session(gopfcp.NewCreatePDR(gopfcp.New(56, []byte{0, 2}), octets32(29, 1),
			gopfcp.NewPDI(append(i, gopfcp.New(20, []byte{0}))...), octets32(108, 1)))
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
		}, names: "V4 V6 CH CHID - - - -", served: "V6 CH CHID"},
	{ie: gopfcp.UEIPAddress, in: withPDI, value: func(bit int) []byte {
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
	}, names: "V6 V4 S/D IPv6D CHV4 CHV6 IP6PL -", served: "V6 IPv6D CHV4 CHV6 IP6PL",
		told: map[string]string{"S/D": "the side of the PDR says which it is"}},
	{ie: gopfcp.SDFFilter, in: func(i ...*gopfcp.IE) []byte {
		return withPDI(append(i, gopfcp.New(93, []byte{6, 10, 45, 0, 5}))...)
	}, value: parts(2, map[int][]byte{0: append([]byte{0, 33}, "permit out 6 from any to assigned"...), 1: {0xb8, 0xfc},
		2: {0, 0, 0, 1},
		3: {0, 0, 1}, 4: {0, 0, 0, 1}}, 0), names: "FD TTC SPI FL BID - - -", served: "FD SPI FL",
		told: map[string]string{"BID": "a name for the filter, by which other rules may refer to it"}},
	{ie: gopfcp.OuterHeaderCreation, in: func(i ...*gopfcp.IE) []byte {
		return withFAR(gopfcp.New(44, []byte{2}), gopfcp.NewForwardingParameters(append(i,
			gopfcp.New(42, []byte{0}))...))
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
	}, names: "GTPU4 GTPU6 UDP4 UDP6 IP4 IP6 CTAG STAG N19 N6 LLSSM - - - - -", served: "GTPU4 GTPU6 UDP4 UDP6"},
	{ie: gopfcp.TransportLevelMarking, in: func(i ...*gopfcp.IE) []byte {
		return withFAR(gopfcp.New(44, []byte{2}), gopfcp.NewForwardingParameters(append(i,
			gopfcp.New(42, []byte{1}))...))
	}, value: func(bit int) []byte { return append(octet(1, 0)(bit), 0xff) },
		names: "ECN0 ECN1 DSCP0 DSCP1 DSCP2 DSCP3 DSCP4 DSCP5", served: "DSCP0 DSCP1 DSCP2 DSCP3 DSCP4 DSCP5",
		told: map[string]string{"ECN0": "of the packet, not of the tunnel (RFC 6040)",
			"ECN1": "of the packet, not of the tunnel (RFC 6040)"}},
	{ie: gopfcp.PFCPSMReqFlags, in: modification, value: octet(1, 0),
		names: "DROBU SNDEM QAURR SUMPC RUMUC DETEID - -", served: "DROBU QAURR",
		told: map[string]string{"SNDEM": "of a FAR (table 7.5.4.3-2); without one that moves there is no tunnel to " +
			"end"}},
	{ie: gopfcp.PFCPSMReqFlags, in: func(i ...*gopfcp.IE) []byte {
		return modification(gopfcp.NewUpdateFAR(octets32(108, 2), gopfcp.NewUpdateForwardingParameters(i...)))
	}, value: octet(1, 0), names: "DROBU SNDEM QAURR SUMPC RUMUC DETEID - -", served: "DROBU SNDEM"},
	{ie: gopfcp.PFCPSMReqFlags, in: func(i ...*gopfcp.IE) []byte {
		return modification(append(i, gopfcp.NewUpdateFAR(octets32(108, 2),
			gopfcp.NewUpdateForwardingParameters(gopfcp.New(84, []byte{1, 0, 0, 0, 0, 7, 10, 1, 0, 8}))))...)
	}, value: octet(1, 0), names: "DROBU SNDEM QAURR SUMPC RUMUC DETEID - -", served: "DROBU SNDEM QAURR"},
	{ie: gopfcp.PFCPSEReqFlags, in: session, value: octet(1, 0), names: "RESTI SUMPC - - - - - -", served: "RESTI"},
	{ie: gopfcp.PFCPSRRspFlags, in: func(i ...*gopfcp.IE) []byte {
		return raw(pfcp.SessionReportResponseType, append(i, gopfcp.New(19, []byte{1}))...)
	}, value: octet(1, 0), names: "DROBU - - - - - - -", served: "DROBU"},
	{ie: gopfcp.CPFunctionFeatures, in: func(i ...*gopfcp.IE) []byte {
		return raw(pfcp.AssociationSetupRequestType, append(i, rawBefore[0], octets32(96, 0xe9000000))...)
	}, value: octet(2, 0), names: "LOAD OVRL EPFAR SSET BUNDL MPAS ARDR UIAUR PSUCC RPGUR - - - - - -",
		served: "LOAD OVRL EPFAR SSET BUNDL MPAS ARDR UIAUR PSUCC RPGUR"}, // kept, and shown: what the peer can do
}

// goPFCPNames are the bits of a flags IE that go-pfcp has a name for.
func goPFCPNames(typ uint16, octets int) map[int]string {
	names, methods := map[int]string{}, reflect.TypeFor[*gopfcp.IE]()
	for bit := range 8 * octets {
		v := reflect.ValueOf(gopfcp.New(typ, octet(octets, 0)(bit)))
		for m := range methods.NumMethod() {
			if of := methods.Method(m); strings.HasPrefix(of.Name, "Has") && of.Type.NumIn() == 1 {
				func() {
					defer func() { _ = recover() }() // some look behind the flags
					if v.Method(m).Call(nil)[0].Bool() {
						names[bit] = of.Name[3:]
					}
				}()
			}
		}
	}
	return names
}

// A flag that we take has an effect. Each one else is refused.
func TestEveryFlagIsServedOrRefused(t *testing.T) {
	for _, row := range flagged {
		names, served := strings.Fields(row.names), strings.Fields(row.served)
		base, refusal := outcome(t, row.in(gopfcp.New(row.ie, row.value(-1))))
		testkit.ErrorIf(t, refusal != nil && row.ie != gopfcp.ReportingTriggers,
			"IE %d: the base is refused: %v", row.ie, refusal)
		if row.ie != gopfcp.OuterHeaderCreation {
			for bit, name := range goPFCPNames(row.ie, len(names)/8) {
				testkit.ErrorIf(t, names[bit] == "-",
					"IE %d: go-pfcp calls bit %d %s", row.ie, bit, name)
			}
		}
		for bit, name := range names {
			what := fmt.Sprintf("IE %d, %s", row.ie, name)
			got, refusal := outcome(t, row.in(gopfcp.New(row.ie, row.value(bit))))
			switch {
			case name == "-" || string(row.value(bit)) == string(row.value(-1)):
			case slices.Contains(served, name):
				testkit.ErrorIf(t, refusal != nil || got == base, "%s: no effect, %v", what, refusal)
			case row.told[name] != "":
				testkit.ErrorIf(t, refusal != nil || got != base,
					"%s: not as it is told here: %v", what, refusal)
			case refusal == nil:
				t.Errorf("%s is accepted and ignored", what)
			case refusal.Offending != row.ie || refusal.Cause != pfcp.CauseServiceNotSupported &&
				refusal.Cause != pfcp.CauseMandatoryIEIncorrect:
				t.Errorf("%s: %v", what, refusal)
			}
		}
	}
}
