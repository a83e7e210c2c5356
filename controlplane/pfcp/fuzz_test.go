// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"isthmus/controlplane/testkit"
)

func seeds(f *testing.F) {
	for i, m := range samples() {
		f.Add(mustEncode(f, Header{SEID: uint64(i), Sequence: uint32(i)}, m))
	}
	for _, row := range hostile {
		if len(row.message) < 2048 {
			f.Add(row.message)
		}
	}
}

// checkDecode holds for every datagram: no panic, a header beside every refusal, a refusal that can be sent.
func checkDecode(t *testing.T, b []byte) {
	before := Recovered.Load()
	h, m, err := Decode(b)
	testkit.FatalIf(t, Recovered.Load() != before, "%x: %v", b, err)
	testkit.FatalIf(t, (m == nil) == (err == nil), "%x: message %+v and error %v", b, m, err)
	seid := CPSEID(b) // of what is refused, too
	if m, read := m.(*SessionEstablishmentRequest); read {
		testkit.Equal(t, seid, m.CP.SEID, "%x: CP SEID", b)
	}
	var refusal *Error
	if !errors.As(err, &refusal) {
		return
	}
	if other, err := DecodeHeader(b); err != nil || other != h {
		t.Fatalf("%x: header %+v, DecodeHeader %+v %v", b, h, other, err)
	}
	testkit.FatalIf(t, refusal.Cause < CauseRejected || len(refusal.Text) > 4*maxText, "%x: %v", b, refusal)
	if answer := Respond(h.Type, refusal, node4); answer != nil {
		mustEncode(t, h, answer)
	}
}

// sized is the datagram with a header length that fits, for mutations to get past it.
func sized(b []byte) []byte {
	if len(b) < uncountedBytes || len(b) > 0xffff {
		return b
	}
	b = append([]byte(nil), b...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)-uncountedBytes))
	return b
}

func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		checkDecode(t, b)
		checkDecode(t, sized(b))
	})
}

// base is the mandatory part of a message or grouped IE, so that the IE in front of it is read.
var (
	rawCause    = ie(ieCause, []byte{1})
	baseMessage = map[MessageType][][]byte{
		HeartbeatRequestType: {rawTime}, HeartbeatResponseType: {rawTime}, PFDManagementResponseType: {rawCause},
		AssociationSetupRequestType: {rawNode, rawTime}, AssociationSetupResponseType: {rawNode, rawCause, rawTime},
		AssociationUpdateRequestType: {rawNode}, AssociationUpdateResponseType: {rawNode, rawCause},
		AssociationReleaseRequestType: {rawNode}, AssociationReleaseResponseType: {rawNode, rawCause},
		NodeReportRequestType:         {rawNode, ie(ieNodeReportType, []byte{1}), ie(iePathFailureReport, rawPeer)},
		NodeReportResponseType:        {rawNode, rawCause},
		SessionSetDeletionRequestType: {rawNode, ie(ieFQCSID, csid)}, SessionSetDeletionResponseType: {rawNode,
			rawCause},
		SessionEstablishmentRequestType:  {rawNode, rawFSEID, rawPDR, rawFAR},
		SessionEstablishmentResponseType: {rawNode, rawCause, rawFSEID},
		SessionModificationResponseType:  {rawCause}, SessionDeletionResponseType: {rawCause},
		SessionReportRequestType: {ie(ieReportType, []byte{8})}, SessionReportResponseType: {rawCause},
	}
	rawPeer     = ie(ieRemotePeer, []byte{2, 10, 0, 0, 1})
	rawBARID    = ie(ieBARID, []byte{1})
	rawEndpoint = ie(ieEndpointID, []byte{1})
	rawUsage    = [][]byte{rawURRID, ie(ieURSEQN, make([]byte, 4)), ie(ieUsageReportTrigger, make([]byte, 3))}
	rawFTEID    = ie(ieFTEID, []byte{1, 0, 0, 0, 1, 10, 0, 0, 1})
	baseGroup   = map[uint16][][]byte{
		ieCreatePDR: {rawPDRID, rawPrecedence, rawPDI, rawFARID}, iePDI: {rawSource}, ieUpdatePDR: {rawPDRID},
		ieCreateFAR: {rawFARID, ie(ieApplyAction, []byte{1})}, ieUpdateFAR: {rawFARID},
		ieForwardingParameters:  {rawCore},
		ieDuplicatingParameters: {rawCore}, ieUpdateDuplicating: {rawCore}, ieCreateURR: {rawURRID, rawMethod,
			rawTriggers},
		ieUpdateURR: {rawURRID}, ieCreateQER: {rawQERID, rawGate}, ieUpdateQER: {rawQERID}, ieCreateBAR: {rawBARID},
		ieUpdateBAR: {rawBARID}, ieUpdateBARReport: {rawBARID}, ieCreateEndpoint: {rawEndpoint},
		ieUpdateEndpoint: {rawEndpoint},
		ieRemovePDR:      {rawPDRID}, ieRemoveFAR: {rawFARID}, ieRemoveURR: {rawURRID}, ieRemoveQER: {rawQERID},
		ieRemoveBAR:      {rawBARID},
		ieRemoveEndpoint: {rawEndpoint}, ieQueryURR: {rawURRID}, ieCreatedPDR: {rawPDRID},
		ieCreatedEndpoint:   {rawEndpoint},
		ieUsageModification: rawUsage, ieUsageDeletion: rawUsage, ieUsageReport: rawUsage,
		ieDownlinkDataReport:    {rawPDRID},
		ieErrorIndicationReport: {rawFTEID}, iePFDContext: {ie(iePFDContents, []byte{1, 0, 0, 1, 'a'})},
		ieApplicationPFDs: {ie(ieApplicationID, []byte("a"))}, iePoolInformation: {ie(iePoolIdentity, []byte{0, 1,
			'a'})},
		iePathFailureReport: {rawPeer},
	}
)

// places are where IEs stand: in each message, and in each grouped IE that a message takes.
func places() (list []func(ie []byte) []byte) {
	// in is a message with the IE in groups, the innermost first.
	in := func(typ MessageType, groups ...uint16) {
		list = append(list, func(b []byte) []byte {
			for _, group := range groups {
				b = ie(group, append([][]byte{b}, baseGroup[group]...)...)
			}
			all := [][]byte{b}
			for _, part := range baseMessage[typ] {
				if len(groups) == 0 || binary.BigEndian.Uint16(part) != groups[len(groups)-1] {
					all = append(all, part)
				}
			}
			return raw(typ, all...)
		})
	}
	for typ := range messages {
		decode := messages[typ].decode
		if decode != nil {
			in(MessageType(typ))
		}
	}
	establish, modify := SessionEstablishmentRequestType, SessionModificationRequestType
	for _, group := range []uint16{ieCreatePDR, ieCreateFAR, ieCreateURR, ieCreateQER, ieCreateBAR, ieCreateEndpoint} {
		in(establish, group)
	}
	for _, group := range []uint16{ieUpdatePDR, ieUpdateFAR, ieUpdateURR, ieUpdateQER, ieUpdateBAR,
		ieUpdateEndpoint, ieRemovePDR,
		ieRemoveFAR, ieRemoveURR, ieRemoveQER, ieRemoveBAR, ieRemoveEndpoint, ieQueryURR} {
		in(modify, group)
	}
	in(establish, iePDI, ieCreatePDR)
	in(establish, ieForwardingParameters, ieCreateFAR)
	in(establish, ieDuplicatingParameters, ieCreateFAR)
	in(modify, iePDI, ieUpdatePDR)
	in(modify, ieUpdateForwarding, ieUpdateFAR)
	in(modify, ieUpdateDuplicating, ieUpdateFAR)
	in(SessionEstablishmentResponseType, ieCreatedPDR)
	in(SessionEstablishmentResponseType, ieCreatedEndpoint)
	in(SessionModificationResponseType, ieUsageModification)
	in(SessionDeletionResponseType, ieUsageDeletion)
	in(SessionReportRequestType, ieUsageReport)
	in(SessionReportRequestType, ieDownlinkDataReport)
	in(SessionReportRequestType, ieErrorIndicationReport)
	in(SessionReportResponseType, ieUpdateBARReport)
	in(PFDManagementRequestType, iePFDContext, ieApplicationPFDs)
	in(AssociationSetupRequestType, ieSessionRetention)
	in(AssociationSetupRequestType, iePoolInformation)
	in(NodeReportRequestType, iePathFailureReport)
	return list
}

// Each place holds a message that is taken without the IE.
func TestPlaces(t *testing.T) {
	for i, place := range places() {
		if b := place(ie(0x7fff)); !taken(b) {
			_, _, err := Decode(b)
			t.Errorf("place %d: %x: %v", i, b, err)
		}
	}
}

func taken(b []byte) bool {
	_, _, err := Decode(b)
	return err == nil
}

// FuzzIE puts one IE in every place where IEs stand.
func FuzzIE(f *testing.F) {
	var collect func(b []byte)
	collect = func(b []byte) {
		for len(b) > 0 {
			ie, value, rest, refusal := split(b)
			if refusal != nil {
				return
			}
			f.Add(ie, value)
			if ie < ieLimit && grouped[ie] {
				collect(value)
			}
			b = rest
		}
	}
	for _, m := range samples() {
		_, body, err := splitHeader(mustEncode(f, Header{}, m))
		testkit.Must(f, err)
		collect(body)
	}
	at := places()
	f.Fuzz(func(t *testing.T, typ uint16, value []byte) {
		if len(value) > 4096 {
			return
		}
		for _, place := range at {
			b := place(ie(typ, value))
			checkDecode(t, b)
			checkRoundTrip(t, b)
		}
	})
}

// Every IE that we look at, with every length from 0 to 40, in every place.
func TestEveryIEOfEveryLength(t *testing.T) {
	at := places()
	for typ := range ieLimit {
		if lengths[typ].max == 0 && !grouped[typ] {
			continue
		}
		for n := range 41 {
			value := make([]byte, n)
			for i := range value {
				value[i] = byte(-(n & 1)) // all zeros, or all ones
			}
			for _, place := range at {
				b := place(ie(typ, value))
				checkDecode(t, b)
				checkRoundTrip(t, b)
			}
		}
	}
}

// checkRoundTrip: Encode reproduces what Decode accepts, except unreadable optional IEs.
func checkRoundTrip(t *testing.T, b []byte) {
	h, m, err := Decode(b)
	if err != nil {
		return
	}
	again, err := Encode(h, m)
	if errors.Is(err, ErrTooLong) { // several PFDs in one IE take more octets apart
		return
	}
	testkit.FatalIf(t, err != nil, "%x: %+v: %v", b, m, err)
	n := int(binary.BigEndian.Uint16(again[2:]))
	testkit.FatalIf(t, n != len(again)-uncountedBytes, "length %d of %d octets", n, len(again))
	_, back, err := Decode(again)
	if unread := reflect.ValueOf(m).Elem().FieldByName("Unread"); unread.IsValid() {
		unread.SetZero()
	}
	testkit.FatalIf(t, err != nil || !reflect.DeepEqual(m, back), "%x\n%x: %v\n%+v\n%+v", b, again, err, m, back)
}

func FuzzRoundTrip(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) { checkRoundTrip(t, sized(b)) })
}
