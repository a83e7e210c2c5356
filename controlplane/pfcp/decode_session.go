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
	need(value(ieFSEID, readFSEID, func(m *SessionEstablishmentRequest) *FSEID { return &m.CP })).writes(
		func(w *writer, m *SessionEstablishmentRequest) { w.fseid(ieFSEID, m.CP) }),
	need(eachBy(ieCreatePDR, createPDR, (*writer).createPDR, func(m *SessionEstablishmentRequest) *[]CreatePDR { return &m.PDR })),
	need(eachBy(ieCreateFAR, createFAR, (*writer).createFAR, func(m *SessionEstablishmentRequest) *[]CreateFAR { return &m.FAR })),
	eachBy(ieCreateURR, createURR, (*writer).urr, func(m *SessionEstablishmentRequest) *[]CreateURR { return &m.URR }),
	eachBy(ieCreateQER, createQER, (*writer).qer, func(m *SessionEstablishmentRequest) *[]CreateQER { return &m.QER }),
	eachBy(ieCreateBAR, createBAR, (*writer).bar, func(m *SessionEstablishmentRequest) *[]CreateBAR { return &m.BAR }),
	eachBy(ieCreateEndpoint, createEndpoint, (*writer).endpoint,
		func(m *SessionEstablishmentRequest) *[]CreateTrafficEndpoint { return &m.Endpoint }),
	optionalBy(iePDNType, readPDNType, (*writer).uint8, func(m *SessionEstablishmentRequest) **uint8 { return &m.PDNType }),
	listBy(ieFQCSID, readFQCSID, (*writer).fqcsid, func(m *SessionEstablishmentRequest) *[][]byte { return &m.FQCSID }),
	valueBy(ieInactivityTimer, readSeconds, (*writer).seconds, func(m *SessionEstablishmentRequest) *time.Duration { return &m.Inactivity }),
	valueBy(ieUserID, readUserID, (*writer).user, func(m *SessionEstablishmentRequest) *string { return &m.UserID }),
	valueBy(ieAPNDNN, name, (*writer).dnn, func(m *SessionEstablishmentRequest) *string { return &m.APN }),
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
	valueBy(ieSNSSAI, readSNSSAI, (*writer).snssai, func(m *SessionEstablishmentRequest) *string { return &m.SNSSAI }),
	valueBy(ieRecoveryTimeStamp, readTime, (*writer).time, func(m *SessionEstablishmentRequest) *time.Time { return &m.RecoveryOfPeer }),
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
	valueBy(ieFSEID, readFSEID, (*writer).fseid, func(m *SessionEstablishmentResponse) *FSEID { return &m.UP }),
	eachBy(ieCreatedPDR, createdPDR, (*writer).createdPDR, func(m *SessionEstablishmentResponse) *[]CreatedPDR { return &m.Created }),
	optionalBy(ieFailedRuleID, readFailed, (*writer).failed, func(m *SessionEstablishmentResponse) **FailedRule { return &m.Failed }),
	eachBy(ieCreatedEndpoint, createdEndpoint, (*writer).createdEndpoint,
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
	optionalBy(ieFSEID, readFSEID, (*writer).fseid, func(m *SessionModificationRequest) **FSEID { return &m.CP }),
	named(ieRemovePDR, iePDRID, readUint16, (*writer).uint16, func(m *SessionModificationRequest) *[]uint16 { return &m.RemovePDR }),
	named(ieRemoveFAR, ieFARID, readUint32, (*writer).uint32, func(m *SessionModificationRequest) *[]uint32 { return &m.RemoveFAR }),
	named(ieRemoveURR, ieURRID, readUint32, (*writer).uint32, func(m *SessionModificationRequest) *[]uint32 { return &m.RemoveURR }),
	named(ieRemoveQER, ieQERID, readUint32, (*writer).uint32, func(m *SessionModificationRequest) *[]uint32 { return &m.RemoveQER }),
	named(ieRemoveBAR, ieBARID, readUint8, (*writer).uint8, func(m *SessionModificationRequest) *[]uint8 { return &m.RemoveBAR }),
	named(ieRemoveEndpoint, ieEndpointID, readUint8, (*writer).uint8,
		func(m *SessionModificationRequest) *[]uint8 { return &m.RemoveEndpoint }),
	eachBy(ieCreatePDR, createPDR, (*writer).createPDR, func(m *SessionModificationRequest) *[]CreatePDR { return &m.CreatePDR }),
	eachBy(ieCreateFAR, createFAR, (*writer).createFAR, func(m *SessionModificationRequest) *[]CreateFAR { return &m.CreateFAR }),
	eachBy(ieCreateURR, createURR, (*writer).urr, func(m *SessionModificationRequest) *[]CreateURR { return &m.CreateURR }),
	eachBy(ieCreateQER, createQER, (*writer).qer, func(m *SessionModificationRequest) *[]CreateQER { return &m.CreateQER }),
	eachBy(ieCreateBAR, createBAR, (*writer).bar, func(m *SessionModificationRequest) *[]CreateBAR { return &m.CreateBAR }),
	eachBy(ieCreateEndpoint, createEndpoint, (*writer).endpoint,
		func(m *SessionModificationRequest) *[]CreateTrafficEndpoint { return &m.CreateEndpoint }),
	eachBy(ieUpdatePDR, updatePDR, (*writer).updatePDR, func(m *SessionModificationRequest) *[]UpdatePDR { return &m.UpdatePDR }),
	eachBy(ieUpdateFAR, updateFAR, (*writer).updateFAR, func(m *SessionModificationRequest) *[]UpdateFAR { return &m.UpdateFAR }),
	eachBy(ieUpdateURR, updateURR, (*writer).urr, func(m *SessionModificationRequest) *[]UpdateURR { return &m.UpdateURR }),
	eachBy(ieUpdateQER, updateQER, (*writer).qer, func(m *SessionModificationRequest) *[]UpdateQER { return &m.UpdateQER }),
	eachBy(ieUpdateBAR, createBAR, (*writer).bar, func(m *SessionModificationRequest) *[]UpdateBAR { return &m.UpdateBAR }),
	eachBy(ieUpdateEndpoint, createEndpoint, (*writer).endpoint,
		func(m *SessionModificationRequest) *[]CreateTrafficEndpoint { return &m.UpdateEndpoint }),
	{ie: ieSMReqFlags, read: func(v []byte, m *SessionModificationRequest) *Error {
		if v[0]&smDefined&^smKnown != 0 { // pause of charging, deletion of all TEIDs
			return unserved("PFCPSMReq-Flags %#x", v[0])
		}
		m.DropBuffered, m.QueryAll, m.EndMarkers = v[0]&smDropBuffered != 0, v[0]&smQueryAll != 0, v[0]&smEndMarker != 0
		return nil
	}, write: func(w *writer, m *SessionModificationRequest) {
		if f := when(m.DropBuffered, smDropBuffered) | when(m.QueryAll, smQueryAll) | when(m.EndMarkers, smEndMarker); f != 0 {
			w.uint8(ieSMReqFlags, f)
		}
	}},
	named(ieQueryURR, ieURRID, readUint32, (*writer).uint32, func(m *SessionModificationRequest) *[]uint32 { return &m.QueryURR }),
	listBy(ieFQCSID, readFQCSID, (*writer).fqcsid, func(m *SessionModificationRequest) *[][]byte { return &m.FQCSID }),
	optionalBy(ieInactivityTimer, readSeconds, (*writer).seconds,
		func(m *SessionModificationRequest) **time.Duration { return &m.Inactivity }),
	optionalBy(ieQueryReference, readUint32, (*writer).uint32, func(m *SessionModificationRequest) **uint32 { return &m.QueryReference }),
	optionalBy(ieNodeID, readNodeID, (*writer).nodeIE, func(m *SessionModificationRequest) **NodeID { return &m.Node }),
	valueBy(ieSNSSAI, readSNSSAI, (*writer).snssai, func(m *SessionModificationRequest) *string { return &m.SNSSAI }),
}, sessionUnserved).checked(func(m *SessionModificationRequest) *Error {
	if refusal := distinct(m.CreatePDR, m.CreateFAR, m.CreateQER, m.CreateURR, m.CreateBAR); refusal != nil {
		return refusal
	}
	return distinctUpdates(m)
})

var sessionModificationResponse = newGroup([]field[SessionModificationResponse]{
	causeRow(func(m *SessionModificationResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *SessionModificationResponse) *uint16 { return &m.Offending }),
	eachBy(ieCreatedPDR, createdPDR, (*writer).createdPDR, func(m *SessionModificationResponse) *[]CreatedPDR { return &m.Created }),
	eachBy(ieUsageModification, usageReport, (*writer).usage, func(m *SessionModificationResponse) *[]UsageReport { return &m.Usage }),
	optionalBy(ieFailedRuleID, readFailed, (*writer).failed, func(m *SessionModificationResponse) **FailedRule { return &m.Failed }),
	valueBy(ieAdditionalReports, readMore, (*writer).more, func(m *SessionModificationResponse) *bool { return &m.MoreUsage }),
	eachBy(ieCreatedEndpoint, createdEndpoint, (*writer).createdEndpoint,
		func(m *SessionModificationResponse) *[]CreatedEndpoint { return &m.Endpoints }),
}, nil)

// readMore is TS 29.244 §8.2.91: AURI, or a count of the reports to come.
func readMore(v []byte) (bool, *Error) { return number(v) != 0, nil }

var sessionDeletionRequest = newGroup([]field[SessionDeletionRequest]{}, nil)

var sessionDeletionResponse = newGroup([]field[SessionDeletionResponse]{
	causeRow(func(m *SessionDeletionResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *SessionDeletionResponse) *uint16 { return &m.Offending }),
	eachBy(ieUsageDeletion, usageReport, (*writer).usage, func(m *SessionDeletionResponse) *[]UsageReport { return &m.Usage }),
	valueBy(ieAdditionalReports, readMore, (*writer).more, func(m *SessionDeletionResponse) *bool { return &m.MoreUsage }),
}, nil)

// Report Type (TS 29.244 §8.2.21).
const (
	reportDownlink = 1 << 0 // DLDR
	reportUsage    = 1 << 1 // USAR
	reportErrors   = 1 << 2 // ERIR
	reportInactive = 1 << 3 // UPIR
	reportKnown    = reportDownlink | reportUsage | reportErrors | reportInactive
)

// reported is what a report says and what it has; both must agree.
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
	need(listBy(iePDRID, readUint16, (*writer).uint16, func(r *reported) *[]uint16 { return &r.DownlinkPDR })),
	{ie: ieDownlinkDataService, read: readService, write: func(w *writer, r *reported) {
		if r.DSCP != nil || r.DownlinkQFI != 0 {
			w.group(ieDownlinkDataService, func() { w.service(&r.SessionReportRequest) })
		}
	}},
}, nil)

var errorReport = newGroup([]field[reported]{
	need(listBy(ieFTEID, readFTEID, func(w *writer, _ uint16, f FTEID) { w.fteid(&f) }, func(r *reported) *[]FTEID { return &r.Errors })),
}, nil)

var sessionReportRequest = newGroup([]field[reported]{
	need(value(ieReportType, readUint8, func(r *reported) *uint8 { return &r.kind })).writes(func(w *writer, r *reported) {
		w.uint8(ieReportType, when(len(r.DownlinkPDR) > 0, reportDownlink)|when(len(r.Usage) > 0, reportUsage)|
			when(len(r.Errors) > 0, reportErrors)|when(r.Inactive, reportInactive))
	}),
	{ie: ieDownlinkDataReport, read: downlinkReport.decode, write: func(w *writer, r *reported) {
		if len(r.DownlinkPDR) > 0 {
			w.group(ieDownlinkDataReport, func() { downlinkReport.encode(w, r) })
		}
	}},
	eachBy(ieUsageReport, usageReport, (*writer).usage, func(r *reported) *[]UsageReport { return &r.Usage }),
	{ie: ieErrorIndicationReport, read: errorReport.decode, write: func(w *writer, r *reported) {
		if len(r.Errors) > 0 {
			w.group(ieErrorIndicationReport, func() { errorReport.encode(w, r) })
		}
	}},
	optionalBy(ieFSEID, readFSEID, (*writer).fseid, func(r *reported) **FSEID { return &r.OldCP }),
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
	inner(ieUpdateBARReport, createBAR, func(m *SessionReportResponse) **UpdateBAR { return &m.UpdateBAR }).writes(
		func(w *writer, m *SessionReportResponse) {
			if m.UpdateBAR != nil {
				w.bar(ieUpdateBARReport, m.UpdateBAR)
			}
		}),
	flagRow(ieSRRspFlags, func(m *SessionReportResponse) *bool { return &m.DropBuffered }), // DROBU
	optionalBy(ieFSEID, readFSEID, (*writer).fseid, func(m *SessionReportResponse) **FSEID { return &m.CP }),
	addressRow(ieAlternativeSMF, func(m *SessionReportResponse) *[]netip.Addr { return &m.Alternative }),
}, nil)
