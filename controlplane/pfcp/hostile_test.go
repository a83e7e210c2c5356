// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"isthmus/controlplane/testkit"
)

// ie is an IE of the given parts.
func ie(typ uint16, parts ...[]byte) []byte {
	var v []byte
	for _, p := range parts {
		v = append(v, p...)
	}
	b := binary.BigEndian.AppendUint16(nil, typ)
	b = binary.BigEndian.AppendUint16(b, uint16(len(v)))
	return append(b, v...)
}

// raw is a message of the given IEs.
func raw(typ MessageType, ies ...[]byte) []byte {
	w := writer{}
	w.header(Header{SEID: 1, Sequence: 2}, typ)
	for _, part := range ies {
		w.b = append(w.b, part...)
	}
	binary.BigEndian.PutUint16(w.b[2:], uint16(len(w.b)-uncountedBytes))
	return w.b
}

var (
	rawNode       = ie(ieNodeID, []byte{0, 10, 0, 0, 1})
	rawTime       = ie(ieRecoveryTimeStamp, []byte{0xe9, 0, 0, 0})
	rawFSEID      = ie(ieFSEID, []byte{2, 0, 0, 0, 0, 0, 0, 0, 1, 10, 0, 0, 1})
	rawPDRID      = ie(iePDRID, []byte{0, 7})
	rawPrecedence = ie(iePrecedence, []byte{0, 0, 0, 1})
	rawSource     = ie(ieSourceInterface, []byte{0})
	rawPDI        = ie(iePDI, rawSource)
	rawFARID      = ie(ieFARID, []byte{0, 0, 0, 9})
	rawForward    = ie(ieApplyAction, []byte{2})
	rawCore       = ie(ieDestinationInterface, []byte{1})
	rawPDR        = ie(ieCreatePDR, rawPDRID, rawPrecedence, rawPDI, rawFARID)
	rawFAR        = ie(ieCreateFAR, rawFARID, rawForward, ie(ieForwardingParameters, rawCore))
	rawGate       = ie(ieGateStatus, []byte{0})
	rawQERID      = ie(ieQERID, []byte{0, 0, 0, 5})
	rawURRID      = ie(ieURRID, []byte{0, 0, 255, 255})
	rawMethod     = ie(ieMeasurementMethod, []byte{2})
	rawTriggers   = ie(ieReportingTriggers, []byte{2, 0, 0})
)

// session is an establishment that is good but for what is added to it.
func session(more ...[]byte) []byte {
	return raw(SessionEstablishmentRequestType, append([][]byte{rawNode, rawFSEID, rawPDR, rawFAR}, more...)...)
}

func pdrWith(pdiParts ...[]byte) []byte {
	return raw(SessionEstablishmentRequestType, rawNode, rawFSEID, rawFAR,
		ie(ieCreatePDR, rawPDRID, rawPrecedence, ie(iePDI, append([][]byte{rawSource}, pdiParts...)...), rawFARID))
}

func farWith(parts ...[]byte) []byte {
	return raw(SessionEstablishmentRequestType, rawNode, rawFSEID, rawPDR, ie(ieCreateFAR,
		append([][]byte{rawFARID}, parts...)...))
}

func forwardWith(parts ...[]byte) []byte {
	return farWith(rawForward, ie(ieForwardingParameters, append([][]byte{rawCore}, parts...)...))
}

func modify(ies ...[]byte) []byte { return raw(SessionModificationRequestType, ies...) }

func setup(ies ...[]byte) []byte { return raw(AssociationSetupRequestType, ies...) }

func sdf(flow string) []byte {
	return ie(ieSDFFilter, []byte{1, 0}, binary.BigEndian.AppendUint16(nil, uint16(len(flow))), []byte(flow))
}

func outer(v ...byte) []byte { return ie(ieOuterHeaderCreation, v) }

func repeated(n int, b []byte) []byte { return []byte(strings.Repeat(string(b), n)) }

func nested(depth int) []byte {
	b := rawPDRID
	for range depth {
		b = ie(ieCreatePDR, b)
	}
	return b
}

const (
	missing     = CauseMandatoryIEMissing
	conditional = CauseConditionalIEMissing
	length      = CauseInvalidLength
	wrong       = CauseMandatoryIEIncorrect
	failure     = CauseRuleFailure
	notServed   = CauseServiceNotSupported
)

// Each row is refused with the cause and the offending IE stated; cause 0: it is taken.
var hostile = []struct {
	name      string
	message   []byte
	cause     Cause
	offending uint16
}{
	{"P1 association without node id", setup(rawTime), missing, ieNodeID},
	{"P2 association without recovery time stamp", setup(rawNode), missing, ieRecoveryTimeStamp},
	{"P3 heartbeat request without recovery time stamp", raw(HeartbeatRequestType), missing, ieRecoveryTimeStamp},
	{"P3 heartbeat response without recovery time stamp", raw(HeartbeatResponseType), missing, ieRecoveryTimeStamp},
	{"P4 recovery time stamp of 0 octets", raw(HeartbeatRequestType, ie(ieRecoveryTimeStamp)), length,
		ieRecoveryTimeStamp},
	{"P4 of 3", raw(HeartbeatRequestType, ie(ieRecoveryTimeStamp, make([]byte, 3))), length, ieRecoveryTimeStamp},
	{"P4 of 5", raw(HeartbeatRequestType, ie(ieRecoveryTimeStamp, make([]byte, 5))), length, ieRecoveryTimeStamp},
	{"P5 vendor's IE", raw(HeartbeatRequestType, ie(0x8001, []byte{0, 1, 2, 3}), rawTime, ie(0xffff, []byte{0,
		1})), 0, 0},
	{"P5 vendor's IE without enterprise id", raw(HeartbeatRequestType, rawTime, ie(0x8001), ie(0xffff,
		[]byte{1})), 0, 0},
	{"P5 unknown IE in a grouped one", pdrWith(ie(0x7ffe, []byte{1}), ie(0x8000)), 0, 0},
	{"P5 unexpected IE", session(rawGate, ie(ieCause)), 0, 0},
	{"P7 contained IE exceeds its container", setup(rawNode, rawTime,
		ie(ieSessionRetention, []byte{0, byte(ieCPEntityAddress), 0, 50, 2})), length, ieCPEntityAddress},
	{"P7 IE exceeds the message", setup(rawNode, rawTime, []byte{0, 89, 0, 9, 1}), length, ieCPFeatures},
	{"P8 grouped IE of length 0xffff", session([]byte{0, 1, 255, 255, 0, 56, 0, 2, 0, 1}), length, ieCreatePDR},
	{"P8 octets left over", session([]byte{0, 1, 0}), length, 0},
	{"P8 nested 50 deep", session(nested(50)), length, ieCreatePDR},
	{"P8 grouped IE of length 0", session(ie(ieCreatePDR)), missing, iePDRID},
	{"P10 session without node id", raw(SessionEstablishmentRequestType, rawFSEID, rawPDR, rawFAR), missing, ieNodeID},
	{"P10 session without F-SEID", raw(SessionEstablishmentRequestType, rawNode, rawPDR, rawFAR), missing, ieFSEID},
	{"P11 session without rules", raw(SessionEstablishmentRequestType, rawNode, rawFSEID), missing, ieCreatePDR},
	{"P11 session without FAR", raw(SessionEstablishmentRequestType, rawNode, rawFSEID, rawPDR), missing, ieCreateFAR},
	{"P12 PDN type 0", session(ie(iePDNType, []byte{0})), wrong, iePDNType},
	{"P12 PDN type 7", session(ie(iePDNType, []byte{7})), wrong, iePDNType},
	{"P12 Ethernet", session(ie(iePDNType, []byte{5})), notServed, iePDNType},
	{"P13 PDR without FAR", session(ie(ieCreatePDR, rawPDRID, rawPrecedence, rawPDI)), conditional, ieFARID},
	{"P14 PDI without source interface", session(ie(ieCreatePDR, rawPDRID, rawPrecedence, ie(iePDI), rawFARID)),
		missing,
		ieSourceInterface},
	{"P14 source interface 15", pdrWithSource(15), wrong, ieSourceInterface},
	{"P15 F-TEID too long", pdrWith(ie(ieFTEID, []byte{1, 0, 0, 0, 1, 10, 0, 0, 1, 0})), length, ieFTEID},
	{"P15 F-TEID of 200 octets", pdrWith(ie(ieFTEID, make([]byte, 200))), length, ieFTEID},
	{"P15 F-TEID of 0 octets", pdrWith(ie(ieFTEID)), length, ieFTEID},
	{"P15 F-TEID without its address", pdrWith(ie(ieFTEID, []byte{3, 0, 0, 0, 1, 10, 0, 0, 1})), length, ieFTEID},
	{"P15 F-TEID without CHOOSE id", pdrWith(ie(ieFTEID, []byte{13})), length, ieFTEID},
	{"P16 F-TEID of no family", pdrWith(ie(ieFTEID, []byte{4})), wrong, ieFTEID},
	{"P17 F-TEID with TEID 0", pdrWith(ie(ieFTEID, []byte{1, 0, 0, 0, 0, 10, 0, 0, 1})), wrong, ieFTEID},
	{"P17 F-TEID at 0.0.0.0", pdrWith(ie(ieFTEID, []byte{1, 0, 0, 0, 1, 0, 0, 0, 0})), wrong, ieFTEID},
	{"P19 outer header of 0 octets", forwardWith(outer()), length, ieOuterHeaderCreation},
	{"P19 outer header without address", forwardWith(outer(1, 0, 0, 0, 0, 1)), length, ieOuterHeaderCreation},
	{"P19 outer header, address cut", forwardWith(outer(1, 0, 0, 0, 0, 1, 10, 0)), length, ieOuterHeaderCreation},
	{"P19 outer header without TEID", forwardWith(outer(1, 0, 0, 0)), length, ieOuterHeaderCreation},
	{"P19 outer header too long", forwardWith(outer(1, 0, 0, 0, 0, 1, 10, 0, 0, 1, 1)), length, ieOuterHeaderCreation},
	{"P19 outer header of nothing", forwardWith(outer(0, 0)), wrong, ieOuterHeaderCreation},
	{"P19 GTP-U and UDP at once", forwardWith(outer(5, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 9)), wrong,
		ieOuterHeaderCreation},
	{"P19 TEID 0", forwardWith(outer(1, 0, 0, 0, 0, 0, 10, 0, 0, 1)), wrong, ieOuterHeaderCreation},
	{"P19 VLAN tag", forwardWith(outer(0x40, 0, 0, 0, 1)), notServed, ieOuterHeaderCreation},
	{"P21 destination interface 0x99", farWith(rawForward, ie(ieForwardingParameters, ie(ieDestinationInterface,
		[]byte{0x99}))),
		wrong, ieDestinationInterface},
	{"P21 LI function", farWith(rawForward, ie(ieForwardingParameters, ie(ieDestinationInterface, []byte{4}))),
		notServed,
		ieDestinationInterface},
	{"P21 outer header removal 200", session(ie(ieCreatePDR, rawPDRID, rawPrecedence, rawPDI, rawFARID,
		ie(ieOuterHeaderRemoval, []byte{200}))), wrong, ieOuterHeaderRemoval},
	{"P21 VLAN tag removal", session(ie(ieCreatePDR, rawPDRID, rawPrecedence, rawPDI, rawFARID,
		ie(ieOuterHeaderRemoval, []byte{7}))), notServed, ieOuterHeaderRemoval},
	{"P22 flow length 0xffff", pdrWith(ie(ieSDFFilter, []byte{1, 0, 255, 255, 'p'})), failure, ieSDFFilter},
	{"P22 64 kB of text", pdrWith(sdf(strings.Repeat("a", 60000))), failure, ieSDFFilter},
	{"P22 not UTF-8", pdrWith(sdf("permit out ip from any to \xff\xfe")), failure, ieSDFFilter},
	{"P22 empty", pdrWith(sdf("")), failure, ieSDFFilter},
	{"P22 of nothing", pdrWith(ie(ieSDFFilter, []byte{0, 0})), failure, ieSDFFilter},
	{"P23 MBR of 9 octets", session(ie(ieCreateQER, rawQERID, rawGate, ie(ieMBR, make([]byte, 9)))), length, ieMBR},
	{"P23 GBR of 11 octets", session(ie(ieCreateQER, rawQERID, rawGate, ie(ieGBR, make([]byte, 11)))), length, ieGBR},
	{"P23 gate status 2", session(ie(ieCreateQER, rawQERID, ie(ieGateStatus, []byte{2}))), wrong, ieGateStatus},
	{"P23 dropped traffic threshold, cut", urrWith(ie(ieDroppedThreshold, []byte{3, 0, 0, 0, 0, 0, 0, 0, 1})), length,
		ieDroppedThreshold},
	{"P23 dropped traffic threshold of nothing", urrWith(ie(ieDroppedThreshold, []byte{0})), wrong, ieDroppedThreshold},
	{"P23 volume threshold, cut", urrWith(ie(ieVolumeThreshold, []byte{7, 0, 0, 0})), length, ieVolumeThreshold},
	{"P24 URR 65535 with ISTM", urrWith(ie(ieMeasurementInformation, []byte{8})), 0, 0},
	{"P24 volume threshold 0", urrWith(ie(ieVolumeThreshold, append([]byte{1}, make([]byte, 8)...))), wrong,
		ieVolumeThreshold},
	{"P24 time threshold 0", urrWith(ie(ieTimeThreshold, make([]byte, 4))), wrong, ieTimeThreshold},
	{"P24 period 0", urrWith(ie(ieMeasurementPeriod, make([]byte, 4))), wrong, ieMeasurementPeriod},
	{"P26 more IEs than a message holds", session(repeated(5000, ie(0x7000))), CauseNoResources, 0x7000},
	{"P27 PDR twice", session(rawPDR), failure, ieCreatePDR},
	{"P27 FAR twice", session(rawFAR), failure, ieCreateFAR},
	{"P27 QER twice", session(repeated(2, ie(ieCreateQER, rawQERID, rawGate))), failure, ieCreateQER},
	{"P27 URR 500 times", session(repeated(500, rawURR())), failure, ieCreateURR},
	{"P28 update of a FAR twice", modify(repeated(2, ie(ieUpdateFAR, rawFARID))), failure, ieUpdateFAR},
	{"P28 query without URR id", modify(ie(ieQueryURR)), missing, ieURRID},
	{"P28 removal without PDR id", modify(ie(ieRemovePDR)), missing, iePDRID},
	{"P29 creation without precedence", modify(ie(ieCreatePDR, rawPDRID, rawPDI, rawFARID)), missing, iePrecedence},
	{"P29 creation without PDI", modify(ie(ieCreatePDR, rawPDRID, rawPrecedence, rawFARID)), missing, iePDI},
	{"P30 one change valid, one not", modify(ie(ieUpdateFAR, rawFARID, rawForward), ie(ieUpdatePDR, rawPDRID,
		ie(ieOuterHeaderRemoval))), length, ieOuterHeaderRemoval},
	{"P32 report response without cause", raw(SessionReportResponseType), missing, ieCause},
	{"P33 apply action 0", farWith(ie(ieApplyAction, []byte{0})), wrong, ieApplyAction},
	{"P33 apply action 0, and a header that leads nowhere", modify(ie(ieUpdateFAR, rawFARID,
		ie(ieApplyAction, []byte{0}), ie(ieUpdateForwarding, ie(ieOuterHeaderCreation,
			[]byte{1, 0, 0, 0, 0, 0, 10, 0, 0, 1})))), wrong, ieOuterHeaderCreation},
	{"P33 forward and drop", farWith(ie(ieApplyAction, []byte{3})), wrong, ieApplyAction},
	{"P33 notify without buffer", farWith(ie(ieApplyAction, []byte{9})), wrong, ieApplyAction},
	{"P33 duplicate alone", farWith(ie(ieApplyAction, []byte{16})), wrong, ieApplyAction},
	{"P33 IP multicast", farWith(ie(ieApplyAction, []byte{32})), notServed, ieApplyAction},
	{"P33 forward to nowhere", farWith(rawForward), conditional, ieForwardingParameters},
	{"P33 duplicate to nowhere", farWith(ie(ieApplyAction, []byte{18}), ie(ieForwardingParameters, rawCore)),
		conditional,
		ieDuplicatingParameters},
	{"header enrichment", forwardWith(ie(ieHeaderEnrichment, []byte{0, 1, 'a', 1, 'b'})), notServed,
		ieHeaderEnrichment},
	{"forwarding policy", forwardWith(ie(ieForwardingPolicy, []byte{1, 'a'})), CauseInvalidForwarding,
		ieForwardingPolicy},
	{"Ethernet filter", pdrWith(ie(ieEthernetPacketFilter)), notServed, ieEthernetPacketFilter},
	{"multi-access rule", session(ie(ieCreateMAR, []byte{1})), notServed, ieCreateMAR},
	{"redirection to SIP", forwardWith(ie(ieRedirectInformation, []byte{3, 0, 3, 's', 'i', 'p'})), notServed,
		ieRedirectInformation},
	{"redirection to no address", forwardWith(ie(ieRedirectInformation, []byte{0, 0, 1, 'x'})), wrong,
		ieRedirectInformation},
	{"pause of charging", session(ie(ieSEReqFlags, []byte{2})), notServed, ieSEReqFlags},
	{"QFI 64", pdrWith(ie(ieQFI, []byte{64})), wrong, ieQFI},
	{"UE address at 0.0.0.0", pdrWith(ie(ieUEIP, []byte{2, 0, 0, 0, 0})), wrong, ieUEIP},
	{"UE address of nothing", pdrWith(ie(ieUEIP, []byte{4})), wrong, ieUEIP},
	{"UE prefix of length 200", pdrWith(ie(ieUEIP, append([]byte{0x41}, append(v6a.AsSlice(), 200)...))), wrong,
		ieUEIP},
	{"UE address given and asked for", pdrWith(ie(ieUEIP, []byte{0x12, 10, 0, 0, 1})), wrong, ieUEIP},
	{"network instance with a control character", pdrWith(ie(ieNetworkInstance, []byte("a\nb"))), wrong,
		ieNetworkInstance},
	{"framed route", pdrWith(ie(ieFramedRoute, []byte("10.0.0.0/99"))), wrong, ieFramedRoute},
	{"framed routing", pdrWith(ie(ieFramedRouting, []byte{0, 0, 0, 1})), notServed, ieFramedRouting},
	{"node id of type 9", setup(ie(ieNodeID, []byte{9, 1}), rawTime), wrong, ieNodeID},
	{"node id of an unfinished label", setup(ie(ieNodeID, []byte{2, 9, 'a'}), rawTime), wrong, ieNodeID},
	{"set deletion of no set", raw(SessionSetDeletionRequestType, rawNode), conditional, ieFQCSID},
	{"FQ-CSID with too many CSIDs", raw(SessionSetDeletionRequestType, rawNode, ie(ieFQCSID, []byte{0x0f, 1, 2, 3,
		4, 5, 6})),
		length, ieFQCSID},
	{"PFD of nothing", raw(PFDManagementRequestType, ie(ieApplicationPFDs, ie(ieApplicationID, []byte("a")),
		ie(iePFDContext, ie(iePFDContents, []byte{0, 0})))), wrong, iePFDContents},
	{"PFD with a protocol of names", raw(PFDManagementRequestType, ie(ieApplicationPFDs, ie(ieApplicationID,
		[]byte("a")),
		ie(iePFDContext, ie(iePFDContents, []byte{0x14, 0, 0, 1, 'a', 0, 1, 'b'})))), notServed, iePFDContents},
	{"report of a type without its content", raw(SessionReportRequestType, ie(ieReportType, []byte{2})),
		conditional, ieUsageReport},
	{"report of no type", raw(SessionReportRequestType, ie(ieReportType, []byte{0})), wrong, ieReportType},
	{"the first of repeated IEs counts", pdrWith(rawSource, ie(ieSourceInterface, []byte{15})), 0, 0},
}

func pdrWithSource(i byte) []byte {
	return session(ie(ieCreatePDR, rawPDRID, rawPrecedence, ie(iePDI, ie(ieSourceInterface, []byte{i})), rawFARID))
}

func rawURR(more ...[]byte) []byte {
	return ie(ieCreateURR, append([][]byte{rawURRID, rawMethod, rawTriggers}, more...)...)
}

func urrWith(more ...[]byte) []byte { return session(rawURR(more...)) }

func TestHostileRows(t *testing.T) {
	for _, row := range hostile {
		h, m, err := Decode(row.message)
		var refusal *Error
		errors.As(err, &refusal)
		switch {
		case row.cause == 0 && err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.cause == 0:
		case refusal == nil:
			t.Errorf("%s: taken: %+v %v", row.name, m, err)
		case refusal.Cause != row.cause || refusal.Offending != row.offending:
			t.Errorf("%s: %v, want cause %d, IE %d", row.name, refusal, row.cause, row.offending)
		case m != nil || h.Sequence != 2:
			t.Errorf("%s: message %+v, header %+v", row.name, m, h)
		case refusal.Cause == failure && (refusal.Rule == nil || refusal.Rule.ID == 0):
			t.Errorf("%s: names no rule: %+v", row.name, refusal.Rule)
		}
	}
	testkit.Equal(t, Recovered.Load(), 0, "panics")
}

// Row P22: the refusal names the PDR, wherever its id stands.
func TestRefusalNamesTheRule(t *testing.T) {
	bad := ie(iePDI, rawSource, sdf(""))
	for name, pdr := range map[string][]byte{
		"id before": ie(ieCreatePDR, rawPDRID, rawPrecedence, bad, rawFARID),
		"id after":  ie(ieCreatePDR, rawPrecedence, bad, rawFARID, rawPDRID),
	} {
		_, _, err := Decode(session(pdr))
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Rule == nil || *refusal.Rule != (FailedRule{RulePDR, 7}) {
			t.Errorf("%s: %+v", name, err)
		}
		answer, ok := Respond(SessionEstablishmentRequestType, refusal, node4).(*SessionEstablishmentResponse)
		if !ok || answer.Failed == nil || answer.Failed.ID != 7 || answer.Cause != CauseRuleFailure {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

// Rows P6 and P9.
func TestHeaders(t *testing.T) {
	good := mustEncode(t, Header{SEID: 5, Sequence: maxSequence}, &SessionDeletionRequest{})
	change := func(at int, to ...byte) []byte {
		b := append([]byte(nil), good...)
		copy(b[at:], to)
		return b
	}
	for _, row := range []struct {
		name string
		b    []byte
		want error
	}{
		{"good", good, nil},
		{"sequence number 0", change(12, 0, 0, 0), nil},
		{"empty", nil, ErrShort},
		{"7 octets", good[:7], ErrShort},
		{"15 octets with SEID", good[:15], ErrShort},
		{"length one less", change(2, 0, 11), ErrLength},
		{"length one more", change(2, 0, 13), ErrLength},
		{"length 0", change(2, 0, 0), ErrLength},
		{"length 65535", change(2, 255, 255), ErrLength},
		{"octet after the message", append(change(0), 0), ErrLength},
		{"version 2", change(0, 0x41), ErrVersion},
		{"version 0", change(0, 0x01), ErrVersion},
		{"unknown type", change(1, 49), ErrUnknownMessage},
		{"type 255", change(1, 255), ErrUnknownMessage},
		{"session set modification", change(1, 16), ErrUnknownMessage},
		{"session message without SEID", []byte{0x20, 54, 0, 4, 0, 0, 1, 0}, ErrNoSEID},
	} {
		h, _, err := Decode(row.b)
		testkit.ErrorIf(t, !errors.Is(err, row.want), "%s: %v", row.name, err)
		testkit.ErrorIf(t, row.want == ErrVersion && h.Sequence != maxSequence,
			"%s: sequence number %d is not there for the answer", row.name, h.Sequence)
		if _, err := DecodeHeader(row.b); row.want != ErrUnknownMessage && row.want != ErrNoSEID && !errors.Is(err,
			row.want) {
			t.Errorf("%s: DecodeHeader: %v", row.name, err)
		}
	}
}

// No prefix of a message, and no message with one octet changed, causes a panic.
func TestEveryCutAndEveryOctet(t *testing.T) {
	for _, m := range samples() {
		b := mustEncode(t, Header{SEID: 5}, m)
		for n := range b {
			cut := append([]byte(nil), b[:n]...)
			if n >= 4 {
				binary.BigEndian.PutUint16(cut[2:], uint16(n-4))
			}
			_, _, _ = Decode(cut)
		}
		for at := 4; at < len(b); at++ {
			for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				changed := append([]byte(nil), b...)
				changed[at] = v
				_, _, _ = Decode(changed)
			}
		}
	}
	testkit.Equal(t, Recovered.Load(), 0, "panics")
}
