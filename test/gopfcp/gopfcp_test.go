// SPDX-License-Identifier: Apache-2.0

// Package gopfcp holds the codec of PFCP against go-pfcp. It is a module of its own, so that the product's go.mod names
// only what the product uses.
package gopfcp

import (
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	. "isthmus/controlplane/pfcp" // wanted messages are long
	"isthmus/controlplane/testkit"

	gopfcp "github.com/wmnsk/go-pfcp/ie"
	"github.com/wmnsk/go-pfcp/message"
)

var (
	sampleTime = time.Unix(1764000000, 0).UTC()
	v4a        = netip.MustParseAddr("10.0.0.1")
	v4b        = netip.MustParseAddr("192.0.2.77")
	v6a        = netip.MustParseAddr("2001:db8::1")
	nodeName   = NodeID{FQDN: "smf1.isthmus.example"}
)

// samples are our messages on the wire.
func samples(t testing.TB) (datagrams [][]byte) {
	text, err := os.ReadFile("../../controlplane/pfcp/testdata/samples.txt")
	testkit.Must(t, err)
	for line := range strings.Lines(string(text)) {
		b, err := hex.DecodeString(strings.TrimSpace(line))
		testkit.Must(t, err)
		datagrams = append(datagrams, b)
	}
	testkit.FatalIf(t, len(datagrams) == 0, "no samples")
	return datagrams
}

// go-pfcp reads our messages, and encodes the same meaning again.
func TestGoPFCPReadsEverySample(t *testing.T) {
	for i, sent := range samples(t) {
		h, m, err := Decode(sent)
		testkit.Must(t, err)
		parsed, err := message.Parse(sent)
		if err != nil {
			t.Errorf("%d %T: go-pfcp: %v", i, m, err)
			continue
		}
		b := make([]byte, parsed.MarshalLen())
		if err := parsed.MarshalTo(b); err != nil {
			t.Errorf("%d %T: go-pfcp: %v", i, m, err)
			continue
		}
		got, back, err := Decode(b)
		testkit.ErrorIf(t, err != nil || got != h || !reflect.DeepEqual(m, back),
			"%d %T: %v\nheader %+v, want %+v\nsent %+v\ngot  %+v", i, m, err, got, h, m, back)
	}
}

// goPFCPNames are the bits of a flags IE that go-pfcp has a name for.
func goPFCPNames(typ uint16, octets int) map[int]string {
	names, methods := map[int]string{}, reflect.TypeFor[*gopfcp.IE]()
	for bit := range 8 * octets {
		value := make([]byte, octets)
		value[bit/8] = 1 << (bit % 8)
		v := reflect.ValueOf(gopfcp.New(typ, value))
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

// Where our table of flags has a spare bit, go-pfcp has no name. It names no bits of Outer Header Creation.
func TestFlagsHaveNames(t *testing.T) {
	text, err := os.ReadFile("../../controlplane/rules/testdata/flags.txt")
	testkit.Must(t, err)
	read := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		typ, err := strconv.ParseUint(words[1], 10, 16)
		testkit.Must(t, err)
		if names := words[2:]; typ != uint64(gopfcp.OuterHeaderCreation) {
			for bit, name := range goPFCPNames(uint16(typ), len(names)/8) {
				read++
				testkit.ErrorIf(t, names[bit] == "-", "%s: go-pfcp calls bit %d %s", words[0], bit, name)
			}
		}
	}
	testkit.FatalIf(t, read == 0, "go-pfcp has no names")
}

// Messages of go-pfcp's constructors are decoded with the same meaning.
func TestMessagesMadeByGoPFCP(t *testing.T) {
	ip4, ip6 := net.IPv4(10, 0, 0, 1), net.ParseIP("2001:db8::1")
	smf := gopfcp.NewNodeID("", "", "smf1.isthmus.example")
	stamp := gopfcp.NewRecoveryTimeStamp(sampleTime)
	accepted := gopfcp.NewCause(gopfcp.CauseRequestAccepted)
	for _, row := range []struct {
		made message.Message
		want Message
	}{
		{message.NewHeartbeatRequest(1, stamp, gopfcp.NewSourceIPAddress(nil, ip6, 0)),
			&HeartbeatRequest{Recovery: sampleTime, Source: v6a}},
		{message.NewAssociationSetupRequest(1, smf, stamp, gopfcp.NewCPFunctionFeatures(9)),
			&AssociationSetupRequest{Node: nodeName, Recovery: sampleTime, Features: CPLoad | CPSset}},
		// without the spare octet
		{message.NewAssociationSetupRequest(1, smf, stamp, gopfcp.NewSMFSetID("set1.smfset.example")),
			&AssociationSetupRequest{Node: nodeName, Recovery: sampleTime, SetID: "set1.smfset.example"}},
		{message.NewAssociationSetupResponse(1, smf, accepted, stamp, gopfcp.NewUPFunctionFeatures(0x10, 0x20)),
			&AssociationSetupResponse{Node: nodeName, Cause: CauseAccepted, Recovery: sampleTime, FromUP: true,
				Features: UPFtup | UPFrrt}},
		{message.NewAssociationReleaseRequest(1, smf), &AssociationReleaseRequest{Node: nodeName}},
		{message.NewPFDManagementRequest(1, gopfcp.NewApplicationIDsPFDs(gopfcp.NewApplicationID("video"),
			gopfcp.NewPFDContext(
				gopfcp.NewPFDContents("permit out ip from any to assigned", "", "", "", "", nil, nil, nil)))),
			&PFDManagementRequest{Applications: []ApplicationPFDs{{Application: "video",
				PFDs: []PFD{{Flow: "permit out ip from any to assigned"}}}}}},
		{message.NewSessionSetDeletionRequest(1, smf, gopfcp.NewFQCSID("10.0.0.9", 0x1234)),
			&SessionSetDeletionRequest{Node: nodeName, FQCSID: [][]byte{{1, 10, 0, 0, 9, 0x12, 0x34}}}},
		{madeEstablishment(smf, ip4), wantedEstablishment()},
		{madeModification(), wantedModification()},
		{message.NewSessionDeletionRequest(0, 0, 1, 1, 0), &SessionDeletionRequest{}},
		{message.NewSessionReportRequest(0, 0, 1, 1, 0, gopfcp.NewReportType(0, 0, 1, 0),
			gopfcp.NewUsageReport(gopfcp.UsageReportWithinSessionReportRequest, gopfcp.NewURRID(3), gopfcp.NewURSEQN(4),
				gopfcp.NewUsageReportTrigger(2, 0, 0), gopfcp.NewVolumeMeasurement(7, 30, 10, 20, 0, 0, 0),
				gopfcp.NewDurationMeasurement(time.Minute))),
			&SessionReportRequest{Usage: []UsageReport{{URR: 3, Sequence: 4, Trigger: 2, Volume: &[3]uint64{30, 10, 20},
				Duration: new(time.Minute)}}}},
		{message.NewSessionReportResponse(0, 0, 1, 1, 0, accepted), &SessionReportResponse{Cause: CauseAccepted}},
	} {
		b := make([]byte, row.made.MarshalLen())
		if err := row.made.MarshalTo(b); err != nil {
			t.Errorf("%T: %v", row.made, err)
			continue
		}
		if _, got, err := Decode(b); err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%T: %v\ngot  %+v\nwant %+v", row.made, err, got, row.want)
		}
	}
}

func madeEstablishment(node *gopfcp.IE, ip4 net.IP) message.Message {
	return message.NewSessionEstablishmentRequest(0, 0, 0, 1, 0, node, gopfcp.NewFSEID(5, ip4, nil),
		gopfcp.NewCreatePDR(gopfcp.NewPDRID(1), gopfcp.NewPrecedence(255), gopfcp.NewPDI(
			gopfcp.NewSourceInterface(gopfcp.SrcInterfaceAccess), gopfcp.NewFTEID(5, 0, nil, nil, 0),
			gopfcp.NewNetworkInstanceFQDN("access.n3"), gopfcp.NewUEIPAddress(2, "192.0.2.77", "", 0, 0),
			gopfcp.NewSDFFilter("permit out ip from any to assigned", "", "", "", 7), gopfcp.NewQFI(9)),
			gopfcp.NewOuterHeaderRemoval(0, 0), gopfcp.NewFARID(1), gopfcp.NewURRID(1), gopfcp.NewQERID(1)),
		gopfcp.NewCreateFAR(gopfcp.NewFARID(1), gopfcp.NewApplyAction(2), gopfcp.NewForwardingParameters(
			gopfcp.NewDestinationInterface(gopfcp.DstInterfaceCore), gopfcp.NewNetworkInstance("internet"),
			gopfcp.NewTransportLevelMarking(0xb8fc))),
		gopfcp.NewCreateQER(gopfcp.NewQERID(1), gopfcp.NewGateStatus(0, 1), gopfcp.NewMBR(1000, 2000)),
		gopfcp.NewCreateURR(gopfcp.NewURRID(1), gopfcp.NewMeasurementMethod(0, 1, 0), gopfcp.NewReportingTriggers(2,
			0, 0),
			gopfcp.NewVolumeThreshold(1, 1<<30, 0, 0)),
		gopfcp.NewPDNType(gopfcp.PDNTypeIPv4), gopfcp.NewUserPlaneInactivityTimer(time.Hour),
		gopfcp.NewAPNDNN("internet"))
}

func wantedEstablishment() Message {
	return &SessionEstablishmentRequest{Node: nodeName, CP: FSEID{SEID: 5, IPv4: v4a}, PDR: []CreatePDR{{ID: 1,
		Precedence: 255,
		PDI: PDI{Source: Access, LocalFTEID: &FTEID{Choose: true, WantIPv4: true}, NetworkInstance: "access.n3",
			UEIP: []UEIP{{IPv4: v4b}}, SDF: []SDFFilter{{Flow: "permit out ip from any to assigned", HasID: true,
				ID: 7}},
			QFI: []uint8{9}},
		OuterHeaderRemoval: new(uint8(0)), FAR: new(uint32(1)), URR: []uint32{1}, QER: []uint32{1}}},
		FAR: []CreateFAR{{ID: 1, Action: ActionForward, Forwarding: &Forwarding{Destination: new(Core),
			NetworkInstance: new("internet"), TransportMarking: new(uint8(46))}}},
		QER: []CreateQER{{ID: 1, GateUplink: new(uint8(0)), GateDownlink: new(uint8(1)), MBRUplink: new(uint64(1000)),
			MBRDownlink: new(uint64(2000))}},
		URR: []CreateURR{{ID: 1, Method: new(uint8(2)), Triggers: new(uint32(2)),
			VolumeThreshold: &Volumes{Total: new(uint64(1 << 30))}}},
		PDNType: new(uint8(1)), Inactivity: time.Hour, APN: "internet"}
}

func madeModification() message.Message {
	return message.NewSessionModificationRequest(0, 0, 1, 1, 0, gopfcp.NewRemovePDR(gopfcp.NewPDRID(3)),
		gopfcp.NewUpdateFAR(gopfcp.NewFARID(2), gopfcp.NewApplyAction(2), gopfcp.NewUpdateForwardingParameters(
			gopfcp.NewDestinationInterface(gopfcp.DstInterfaceAccess),
			gopfcp.NewOuterHeaderCreation(0x0100, 0x1234, "192.0.2.77", "", 0, 0, 0), gopfcp.NewPFCPSMReqFlags(2))),
		gopfcp.NewQueryURR(gopfcp.NewURRID(1)))
}

func wantedModification() Message {
	return &SessionModificationRequest{RemovePDR: []uint16{3}, UpdateFAR: []UpdateFAR{{ID: 2,
		Action: new(ActionForward),
		Forwarding: &Forwarding{Destination: new(Access), OuterHeader: &OuterHeader{Description: OuterGTPUIPv4,
			TEID: 0x1234,
			IPv4: v4b}, SendEndMarker: true}}}, QueryURR: []uint32{1}}
}

// go-pfcp's cost for the structure of a message, before any value is read: beside BenchmarkDecodeEstablishment.
func BenchmarkGoPFCPParseEstablishment(b *testing.B) {
	var packet []byte
	for _, sent := range samples(b) {
		if h, _, _ := Decode(sent); packet == nil && h.Type == SessionEstablishmentRequestType {
			packet = sent
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := message.Parse(packet); err != nil {
			b.Fatal(err)
		}
	}
}
