// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"errors"
	"testing"
)

// Messages of foreign CP functions, and invalid ones near them.
func TestWhatOthersSend(t *testing.T) {
	nowhere := ie(ieForwardingParameters, rawCore, outer(1, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	noTunnel := outer(1, 0, 0, 0, 0, 0, 10, 0, 0, 1)
	action := func(a byte) []byte { return ie(ieApplyAction, []byte{a}) }
	update := func(parts ...[]byte) []byte { return modify(ie(ieUpdateFAR, append([][]byte{rawFARID}, parts...)...)) }
	pdr := func(pdiParts ...[]byte) []byte {
		return raw(SessionEstablishmentRequestType, rawNode, rawFSEID, rawFAR,
			ie(ieCreatePDR, rawPDRID, ie(iePDI, append([][]byte{rawSource}, pdiParts...)...), rawFARID))
	}
	choose := ie(ieFTEID, []byte{7})
	copied := ie(ieDuplicatingParameters, rawCore, noTunnel)
	for _, row := range []struct {
		name      string
		message   []byte
		cause     Cause
		offending uint16
	}{
		{"drop, TEID 0 at 0.0.0.0", farWith(action(1), nowhere), 0, 0},
		{"buffer, TEID 0 at 0.0.0.0", farWith(action(12), nowhere), 0, 0},
		{"forward to TEID 0 at 0.0.0.0", farWith(rawForward, nowhere), wrong, ieOuterHeaderCreation},
		{"forward to 0.0.0.0", forwardWith(outer(1, 0, 0, 0, 0, 1, 0, 0, 0, 0)), wrong, ieOuterHeaderCreation},
		{"update: buffer, TEID 0", update(action(12), ie(ieUpdateForwarding, noTunnel)), 0, 0},
		{"update: forward to TEID 0", update(rawForward, ie(ieUpdateForwarding, noTunnel)), wrong,
			ieOuterHeaderCreation},
		{"update: TEID 0, perhaps forwarded", update(ie(ieUpdateForwarding, noTunnel)), wrong, ieOuterHeaderCreation},
		{"drop and copy to TEID 0", farWith(action(17), nowhere, copied), wrong, ieOuterHeaderCreation},
		{"Sxa: F-TEID without precedence", pdr(choose), 0, 0},
		{"N4: F-TEID and UE address without precedence", pdr(choose, ie(ieUEIP, []byte{2, 10, 0, 0, 1})), missing,
			iePrecedence},
		{"N4: F-TEID and flow without precedence", pdr(choose, sdf("permit out ip from any to any")), missing,
			iePrecedence},
		{"N4: UE address without precedence", pdr(ie(ieUEIP, []byte{2, 10, 0, 0, 1})), missing, iePrecedence},
		{"Sxa: neither precedence nor FAR", raw(SessionEstablishmentRequestType, rawNode, rawFSEID, rawFAR,
			ie(ieCreatePDR, rawPDRID, ie(iePDI, rawSource, choose))), conditional, ieFARID},
		{"Sxa: neither precedence nor id", raw(SessionEstablishmentRequestType, rawNode, rawFSEID, rawFAR,
			ie(ieCreatePDR, ie(iePDI, rawSource, choose), rawFARID)), missing, iePDRID},
	} {
		_, m, err := Decode(row.message)
		var refusal *Error
		errors.As(err, &refusal)
		switch {
		case row.cause == 0 && err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.cause == 0:
		case refusal == nil || refusal.Cause != row.cause || refusal.Offending != row.offending:
			t.Errorf("%s: %v, want cause %d, IE %d", row.name, err, row.cause, row.offending)
		}
		if r, ok := m.(*SessionEstablishmentRequest); ok && row.cause == 0 && r.FAR[0].Forwarding.OuterHeader != nil {
			t.Errorf("%s: the outer header stays", row.name)
		}
	}
}

// A Network Instance or DNN of no characters names none: in an update, the FAR's stays.
func TestEmptyNames(t *testing.T) {
	for _, empty := range [][]byte{{}, {0}} {
		instance := ie(ieNetworkInstance, empty)
		_, m, err := Decode(modify(ie(ieUpdateFAR, rawFARID, ie(ieUpdateForwarding, rawCore, instance))))
		if err != nil || m.(*SessionModificationRequest).UpdateFAR[0].Forwarding.NetworkInstance != nil {
			t.Errorf("Update FAR, %x: %v", empty, err)
		}
		_, m, err = Decode(session(ie(ieCreateFAR, ie(ieFARID, []byte{0, 0, 0, 8}), rawForward,
			ie(ieForwardingParameters, rawCore, instance))))
		if err != nil || m.(*SessionEstablishmentRequest).FAR[1].Forwarding.NetworkInstance != nil {
			t.Errorf("Create FAR, %x: %v", empty, err)
		}
		_, m, err = Decode(pdrWith(instance))
		if err != nil || m.(*SessionEstablishmentRequest).PDR[0].PDI.NetworkInstance != "" {
			t.Errorf("PDI, %x: %v", empty, err)
		}
		if _, _, err = Decode(session(ie(ieCreateEndpoint, ie(ieEndpointID, []byte{1}), instance))); err != nil {
			t.Errorf("traffic endpoint, %x: %v", empty, err)
		}
		if _, _, err = Decode(session(ie(ieAPNDNN, empty))); err != nil {
			t.Errorf("DNN, %x: %v", empty, err)
		}
	}
}
