// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"net/netip"
	"time"
)

// Tables of the session messages (TS 29.244 §7.5), in the standard's order.

func readPDNType(v []byte) (uint8, *Error) { // TS 29.244 §8.2.79
	switch n := v[0] & 7; n {
	case 1, 2, 3:
		return n, nil
	case 4, 5: // non-IP, Ethernet
		return n, unserved("PDN type %d", n)
	default:
		return n, incorrect("PDN type %d", n) // row P12
	}
}

// sessionUnserved are IEs that ask for multi-access, Ethernet bridges, traces, reports on QoS and packet rates.
var sessionUnserved = []uint16{ieCreateMAR, ieRemoveMAR, ieUpdateMAR, ieCreateSRR, ieRemoveSRR, ieUpdateSRR,
	ieCreateBridge,
	ieTSCManagement, ieATSSSControl, ieTraceInformation, ieRDSConfiguration, ieEthernetContext, ieQueryPacketRate,
	ieAccessAvailability, ieAccessInformation}

var sessionEstablishmentRequest = newGroup([]field[SessionEstablishmentRequest]{
	nodeRow(func(m *SessionEstablishmentRequest) *NodeID { return &m.Node }),
	need(always(ieFSEID, readFSEID, (*writer).fseid, func(m *SessionEstablishmentRequest) *FSEID { return &m.CP })),
	need(each(ieCreatePDR, createPDR, func(m *SessionEstablishmentRequest) *[]CreatePDR { return &m.PDR })),
	need(each(ieCreateFAR, createFAR, func(m *SessionEstablishmentRequest) *[]CreateFAR { return &m.FAR })),
	each(ieCreateURR, createURR, func(m *SessionEstablishmentRequest) *[]CreateURR { return &m.URR }),
	each(ieCreateQER, createQER, func(m *SessionEstablishmentRequest) *[]CreateQER { return &m.QER }),
	each(ieCreateBAR, createBAR, func(m *SessionEstablishmentRequest) *[]CreateBAR { return &m.BAR }),
	each(ieCreateEndpoint, createEndpoint,
		func(m *SessionEstablishmentRequest) *[]CreateTrafficEndpoint { return &m.Endpoint }),
	optional(iePDNType, readPDNType, (*writer).uint8,
		func(m *SessionEstablishmentRequest) **uint8 { return &m.PDNType }),
	list(ieFQCSID, readFQCSID, (*writer).fqcsid, func(m *SessionEstablishmentRequest) *[][]byte { return &m.FQCSID }),
	value(ieInactivityTimer, readSeconds, (*writer).seconds,
		func(m *SessionEstablishmentRequest) *time.Duration { return &m.Inactivity }),
	value(ieUserID, readUserID, (*writer).user, func(m *SessionEstablishmentRequest) *string { return &m.UserID }),
	value(ieAPNDNN, nameOrNone, (*writer).dnn, func(m *SessionEstablishmentRequest) *string { return &m.APN }),
	{ie: ieSEReqFlags, read: func(v []byte, m *SessionEstablishmentRequest) *Error {
		m.Restoration = v[0]&1 != 0
		if v[0]&2 != 0 { // SUMPC
			return unserved("pause of charging")
		}
		return nil
	}, write: func(w *writer, m *SessionEstablishmentRequest) {
		if m.Restoration {
			w.uint8(ieSEReqFlags, 1)
		}
	}},
	value(ieSNSSAI, readSNSSAI, (*writer).snssai, func(m *SessionEstablishmentRequest) *string { return &m.SNSSAI }),
	value(ieRecoveryTimeStamp, readTime, (*writer).time,
		func(m *SessionEstablishmentRequest) *time.Time { return &m.RecoveryOfPeer }),
}, sessionUnserved).checked(func(m *SessionEstablishmentRequest) *Error {
	return distinct(m.PDR, m.FAR, m.QER, m.URR, m.BAR)
})

// readFailed is TS 29.244 §8.2.80. The id has the length of the rule's.
func readFailed(v []byte) (FailedRule, *Error) {
	f := FailedRule{Type: RuleType(v[0] & 31), ID: uint32(number(v[1:]))}
	want := 4
	switch f.Type {
	case RulePDR, RuleMAR:
		want = 2
	case RuleBAR, RuleSRR:
		want = 1
	}
	if len(v)-1 != want {
		return f, badLength(ieFailedRuleID, len(v))
	}
	return f, nil
}

var sessionEstablishmentResponse = newGroup([]field[SessionEstablishmentResponse]{
	nodeRow(func(m *SessionEstablishmentResponse) *NodeID { return &m.Node }),
	causeRow(func(m *SessionEstablishmentResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *SessionEstablishmentResponse) *uint16 { return &m.Offending }),
	value(ieFSEID, readFSEID, (*writer).fseid, func(m *SessionEstablishmentResponse) *FSEID { return &m.UP }),
	each(ieCreatedPDR, createdPDR, func(m *SessionEstablishmentResponse) *[]CreatedPDR { return &m.Created }),
	optional(ieFailedRuleID, readFailed, (*writer).failed,
		func(m *SessionEstablishmentResponse) **FailedRule { return &m.Failed }),
	each(ieCreatedEndpoint, createdEndpoint,
		func(m *SessionEstablishmentResponse) *[]CreatedEndpoint { return &m.Endpoints }),
}, nil).checked(func(m *SessionEstablishmentResponse) *Error {
	if m.Cause == CauseAccepted && m.UP == (FSEID{}) {
		return absent(ieFSEID, "accepted without UP F-SEID")
	}
	return nil
})

// PFCPSMReq-Flags (TS 29.244 §8.2.31).
const (
	smDropBuffered = 1 << 0 // DROBU
	smEndMarker    = 1 << 1 // SNDEM
	smQueryAll     = 1 << 2 // QAURR
	smKnown        = smDropBuffered | smEndMarker | smQueryAll
	smDefined      = 1<<7 - 1
)

var sessionModificationRequest = newGroup([]field[SessionModificationRequest]{
	optional(ieFSEID, readFSEID, (*writer).fseid, func(m *SessionModificationRequest) **FSEID { return &m.CP }),
	named(ieRemovePDR, iePDRID, readUint16, (*writer).uint16,
		func(m *SessionModificationRequest) *[]uint16 { return &m.RemovePDR }),
	named(ieRemoveFAR, ieFARID, readUint32, (*writer).uint32,
		func(m *SessionModificationRequest) *[]uint32 { return &m.RemoveFAR }),
	named(ieRemoveURR, ieURRID, readUint32, (*writer).uint32,
		func(m *SessionModificationRequest) *[]uint32 { return &m.RemoveURR }),
	named(ieRemoveQER, ieQERID, readUint32, (*writer).uint32,
		func(m *SessionModificationRequest) *[]uint32 { return &m.RemoveQER }),
	named(ieRemoveBAR, ieBARID, readUint8, (*writer).uint8,
		func(m *SessionModificationRequest) *[]uint8 { return &m.RemoveBAR }),
	named(ieRemoveEndpoint, ieEndpointID, readUint8, (*writer).uint8,
		func(m *SessionModificationRequest) *[]uint8 { return &m.RemoveEndpoint }),
	each(ieCreatePDR, createPDR, func(m *SessionModificationRequest) *[]CreatePDR { return &m.CreatePDR }),
	each(ieCreateFAR, createFAR, func(m *SessionModificationRequest) *[]CreateFAR { return &m.CreateFAR }),
	each(ieCreateURR, createURR, func(m *SessionModificationRequest) *[]CreateURR { return &m.CreateURR }),
	each(ieCreateQER, createQER, func(m *SessionModificationRequest) *[]CreateQER { return &m.CreateQER }),
	each(ieCreateBAR, createBAR, func(m *SessionModificationRequest) *[]CreateBAR { return &m.CreateBAR }),
	each(ieCreateEndpoint, createEndpoint,
		func(m *SessionModificationRequest) *[]CreateTrafficEndpoint { return &m.CreateEndpoint }),
	each(ieUpdatePDR, updatePDR, func(m *SessionModificationRequest) *[]UpdatePDR { return &m.UpdatePDR }),
	each(ieUpdateFAR, updateFAR, func(m *SessionModificationRequest) *[]UpdateFAR { return &m.UpdateFAR }),
	each(ieUpdateURR, updateURR, func(m *SessionModificationRequest) *[]UpdateURR { return &m.UpdateURR }),
	each(ieUpdateQER, updateQER, func(m *SessionModificationRequest) *[]UpdateQER { return &m.UpdateQER }),
	each(ieUpdateBAR, createBAR, func(m *SessionModificationRequest) *[]UpdateBAR { return &m.UpdateBAR }),
	each(ieUpdateEndpoint, createEndpoint,
		func(m *SessionModificationRequest) *[]CreateTrafficEndpoint { return &m.UpdateEndpoint }),
	{ie: ieSMReqFlags, read: func(v []byte, m *SessionModificationRequest) *Error {
		if v[0]&smDefined&^smKnown != 0 { // pause of charging, deletion of all TEIDs
			return unserved("PFCPSMReq-Flags %#x", v[0])
		}
		m.DropBuffered, m.QueryAll, m.EndMarkers = v[0]&smDropBuffered != 0, v[0]&smQueryAll != 0, v[0]&smEndMarker != 0
		return nil
	}, write: func(w *writer, m *SessionModificationRequest) {
		if f := when(m.DropBuffered, smDropBuffered) | when(m.QueryAll, smQueryAll) |
			when(m.EndMarkers, smEndMarker); f != 0 {
			w.uint8(ieSMReqFlags, f)
		}
	}},
	named(ieQueryURR, ieURRID, readUint32, (*writer).uint32,
		func(m *SessionModificationRequest) *[]uint32 { return &m.QueryURR }),
	list(ieFQCSID, readFQCSID, (*writer).fqcsid, func(m *SessionModificationRequest) *[][]byte { return &m.FQCSID }),
	optional(ieInactivityTimer, readSeconds, (*writer).seconds,
		func(m *SessionModificationRequest) **time.Duration { return &m.Inactivity }),
	optional(ieQueryReference, readUint32, (*writer).uint32,
		func(m *SessionModificationRequest) **uint32 { return &m.QueryReference }),
	optional(ieNodeID, readNodeID, (*writer).node, func(m *SessionModificationRequest) **NodeID { return &m.Node }),
	value(ieSNSSAI, readSNSSAI, (*writer).snssai, func(m *SessionModificationRequest) *string { return &m.SNSSAI }),
}, sessionUnserved).checked(func(m *SessionModificationRequest) *Error {
	if refusal := distinct(m.CreatePDR, m.CreateFAR, m.CreateQER, m.CreateURR, m.CreateBAR); refusal != nil {
		return refusal
	}
	return distinctUpdates(m)
})

var sessionModificationResponse = newGroup([]field[SessionModificationResponse]{
	causeRow(func(m *SessionModificationResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *SessionModificationResponse) *uint16 { return &m.Offending }),
	each(ieCreatedPDR, createdPDR, func(m *SessionModificationResponse) *[]CreatedPDR { return &m.Created }),
	each(ieUsageModification, usageReport, func(m *SessionModificationResponse) *[]UsageReport { return &m.Usage }),
	optional(ieFailedRuleID, readFailed, (*writer).failed,
		func(m *SessionModificationResponse) **FailedRule { return &m.Failed }),
	value(ieAdditionalReports, readMore, (*writer).more,
		func(m *SessionModificationResponse) *bool { return &m.MoreUsage }),
	each(ieCreatedEndpoint, createdEndpoint,
		func(m *SessionModificationResponse) *[]CreatedEndpoint { return &m.Endpoints }),
}, nil)

// readMore is TS 29.244 §8.2.91: AURI, or a count of the reports to come.
func readMore(v []byte) (bool, *Error) { return number(v) != 0, nil }

var sessionDeletionRequest = newGroup([]field[SessionDeletionRequest]{}, nil)

var sessionDeletionResponse = newGroup([]field[SessionDeletionResponse]{
	causeRow(func(m *SessionDeletionResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *SessionDeletionResponse) *uint16 { return &m.Offending }),
	each(ieUsageDeletion, usageReport, func(m *SessionDeletionResponse) *[]UsageReport { return &m.Usage }),
	value(ieAdditionalReports, readMore, (*writer).more,
		func(m *SessionDeletionResponse) *bool { return &m.MoreUsage }),
}, nil)

// Report Type (TS 29.244 §8.2.21).
const (
	reportDownlink = 1 << 0 // DLDR
	reportUsage    = 1 << 1 // USAR
	reportErrors   = 1 << 2 // ERIR
	reportInactive = 1 << 3 // UPIR
	reportKnown    = reportDownlink | reportUsage | reportErrors | reportInactive
)

// reported is what a report announces and what it has; both must agree.
type reported struct {
	SessionReportRequest
	kind uint8
}

// readService is TS 29.244 §8.2.27: PPII and QFII, and an octet each.
func readService(v []byte, r *reported) *Error {
	c := cursor{b: v[1:]}
	if v[0]&1 != 0 {
		dscp := c.byte() & 63
		r.DSCP = &dscp
	}
	if v[0]&2 != 0 {
		r.DownlinkQFI = c.byte() & 63
	}
	return c.end(ieDownlinkDataService, len(v))
}

var downlinkReport = newGroup([]field[reported]{
	need(list(iePDRID, readUint16, (*writer).uint16, func(r *reported) *[]uint16 { return &r.DownlinkPDR })),
	{ie: ieDownlinkDataService, read: readService, write: func(w *writer, r *reported) {
		if r.DSCP != nil || r.DownlinkQFI != 0 {
			w.group(ieDownlinkDataService, func() { w.service(&r.SessionReportRequest) })
		}
	}},
}, nil)

var errorReport = newGroup([]field[reported]{
	need(list(ieFTEID, readFTEID, (*writer).fteid, func(r *reported) *[]FTEID { return &r.Errors })),
}, nil)

var sessionReportRequest = newGroup([]field[reported]{
	need(value(ieReportType, readUint8, (*writer).uint8,
		func(r *reported) *uint8 { return &r.kind })).writes(func(w *writer, r *reported) {
		w.uint8(ieReportType, when(len(r.DownlinkPDR) > 0, reportDownlink)|when(len(r.Usage) > 0, reportUsage)|
			when(len(r.Errors) > 0, reportErrors)|when(r.Inactive, reportInactive))
	}),
	{ie: ieDownlinkDataReport, read: downlinkReport.decode, write: func(w *writer, r *reported) {
		if len(r.DownlinkPDR) > 0 {
			w.group(ieDownlinkDataReport, func() { downlinkReport.encode(w, r) })
		}
	}},
	each(ieUsageReport, usageReport, func(r *reported) *[]UsageReport { return &r.Usage }),
	{ie: ieErrorIndicationReport, read: errorReport.decode, write: func(w *writer, r *reported) {
		if len(r.Errors) > 0 {
			w.group(ieErrorIndicationReport, func() { errorReport.encode(w, r) })
		}
	}},
	optional(ieFSEID, readFSEID, (*writer).fseid, func(r *reported) **FSEID { return &r.OldCP }),
}, nil).checked(func(r *reported) *Error {
	r.Inactive = r.kind&reportInactive != 0
	for _, part := range []struct {
		flag    uint8
		missing bool
		ie      uint16
	}{
		{reportDownlink, len(r.DownlinkPDR) == 0, ieDownlinkDataReport},
		{reportUsage, len(r.Usage) == 0, ieUsageReport},
		{reportErrors, len(r.Errors) == 0, ieErrorIndicationReport},
	} {
		if r.kind&part.flag != 0 && part.missing {
			return absent(part.ie, "report without what its type says")
		}
	}
	if r.kind&reportKnown == 0 {
		return &Error{Cause: CauseMandatoryIEIncorrect, Offending: ieReportType, Text: "report of no type that we know"}
	}
	return nil
})

var sessionReportResponse = newGroup([]field[SessionReportResponse]{
	causeRow(func(m *SessionReportResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *SessionReportResponse) *uint16 { return &m.Offending }),
	inner(ieUpdateBARReport, createBAR, func(m *SessionReportResponse) **UpdateBAR { return &m.UpdateBAR }),
	flagRow(ieSRRspFlags, func(m *SessionReportResponse) *bool { return &m.DropBuffered }), // DROBU
	optional(ieFSEID, readFSEID, (*writer).fseid, func(m *SessionReportResponse) **FSEID { return &m.CP }),
	addressRow(ieAlternativeSMF, func(m *SessionReportResponse) *[]netip.Addr { return &m.Alternative }),
}, nil)
