// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrTooLong is why Encode refuses what does not fit a length field.
var ErrTooLong = errors.New("more than a length of 16 bits counts")

// Encode writes a message. The type and the presence of the SEID follow from m; of h, the SEID, the sequence number and the
// priority count. The error says what of m cannot be said on the wire.
func Encode(h Header, m Message) ([]byte, error) {
	return Append(make([]byte, 0, 512), h, m)
}

// Append is Encode into a buffer of the caller's, who gets it back extended.
func Append(b []byte, h Header, m Message) ([]byte, error) {
	if h.Sequence > maxSequence || h.Priority > 15 {
		return b, fmt.Errorf("sequence number %d, priority %d: out of range", h.Sequence, h.Priority)
	}
	start := len(b)
	w := writer{b: b}
	w.header(h, m.MessageType())
	if t := m.MessageType(); t < messageTypes && messages[t].encode != nil && !t.ofSession() {
		messages[t].encode(&w, m)
	} else if !w.sessionMessage(m) {
		return b, fmt.Errorf("no message of type %d", t)
	}
	n := len(w.b) - start - uncountedBytes
	if n > 0xffff {
		w.fail("message of %d octets: %w", n, ErrTooLong)
	}
	if w.err != nil {
		return b, w.err
	}
	binary.BigEndian.PutUint16(w.b[start+2:], uint16(n))
	return w.b, nil
}

func (w *writer) pfd(p *PFD) {
	at := w.open(iePFDContents)
	w.b = append(w.b, when(p.Flow != "", pfdFlow)|when(p.URL != "", pfdURL)|when(p.Domain != "", pfdDomain)|
		when(p.Custom != "", pfdCustom), 0)
	for _, text := range []string{p.Flow, p.URL, p.Domain, p.Custom} {
		if text != "" {
			w.text(text)
		}
	}
	w.close(at)
}

func (w *writer) peer(p *RemotePeer) {
	at := w.open(ieRemotePeer)
	w.b = append(w.b, when(p.Addr.Is6(), 1)|when(p.Addr.Is4(), 2)|when(p.Interface != nil,
		4)|when(p.NetworkInstance != "", 8))
	w.address(p.Addr)
	if p.Interface != nil {
		w.put16(1)
		w.b = append(w.b, *p.Interface)
	}
	if p.NetworkInstance != "" {
		w.put16(0)
		begin := len(w.b)
		w.plain(p.NetworkInstance)
		binary.BigEndian.PutUint16(w.b[begin-2:], uint16(len(w.b)-begin))
	}
	w.close(at)
}

func (w *writer) fqcsids(list [][]byte) {
	for _, v := range list {
		w.octets(ieFQCSID, v...)
	}
}

func (w *writer) sessionMessage(m Message) bool {
	switch m := m.(type) {
	case *SessionEstablishmentRequest:
		w.establishment(m)
	case *SessionEstablishmentResponse:
		w.node(m.Node)
		w.uint8(ieCause, uint8(m.Cause))
		w.offending(m.Offending)
		if m.UP != (FSEID{}) {
			w.fseid(m.UP)
		}
		w.created(m.Created, nil)
		w.failed(m.Failed)
		w.created(nil, m.Endpoints)
	case *SessionModificationRequest:
		w.modification(m)
	case *SessionModificationResponse:
		w.uint8(ieCause, uint8(m.Cause))
		w.offending(m.Offending)
		w.created(m.Created, nil)
		w.usage(ieUsageModification, m.Usage)
		w.failed(m.Failed)
		w.more(m.MoreUsage)
		w.created(nil, m.Endpoints)
	case *SessionDeletionRequest:
	case *SessionDeletionResponse:
		w.uint8(ieCause, uint8(m.Cause))
		w.offending(m.Offending)
		w.usage(ieUsageDeletion, m.Usage)
		w.more(m.MoreUsage)
	case *SessionReportRequest:
		w.report(m)
	case *SessionReportResponse:
		w.uint8(ieCause, uint8(m.Cause))
		w.offending(m.Offending)
		if m.UpdateBAR != nil {
			w.bar(ieUpdateBARReport, m.UpdateBAR)
		}
		if m.DropBuffered {
			w.uint8(ieSRRspFlags, 1)
		}
		if m.CP != nil {
			w.fseid(*m.CP)
		}
		w.addresses(ieAlternativeSMF, m.Alternative, 2, 1)
	default:
		return false
	}
	return true
}

// more is TS 29.244 §8.2.91: AURI set, the number of the reports to come not known.
func (w *writer) more(yes bool) {
	if yes {
		w.uint16(ieAdditionalReports, 0x8000)
	}
}

func (w *writer) establishment(m *SessionEstablishmentRequest) {
	w.node(m.Node)
	w.fseid(m.CP)
	w.creations(m.PDR, m.FAR, m.URR, m.QER, m.BAR, m.Endpoint)
	w.optional8(iePDNType, m.PDNType)
	w.fqcsids(m.FQCSID)
	if m.Inactivity != 0 {
		w.seconds(ieInactivityTimer, m.Inactivity)
	}
	w.user(m.UserID)
	if m.APN != "" {
		at := w.open(ieAPNDNN)
		w.labelled(m.APN)
		w.close(at)
	}
	if m.Restoration {
		w.uint8(ieSEReqFlags, 1)
	}
	w.snssai(m.SNSSAI)
	w.optionalTime(ieRecoveryTimeStamp, m.RecoveryOfPeer)
}

func (w *writer) creations(p []CreatePDR, f []CreateFAR, u []CreateURR, q []CreateQER, b []CreateBAR,
	e []CreateTrafficEndpoint) {
	for i := range p {
		w.createPDR(&p[i])
	}
	for i := range f {
		w.createFAR(&f[i])
	}
	for i := range u {
		w.urr(ieCreateURR, &u[i])
	}
	for i := range q {
		w.qer(ieCreateQER, &q[i])
	}
	for i := range b {
		w.bar(ieCreateBAR, &b[i])
	}
	for i := range e {
		w.endpoint(ieCreateEndpoint, &e[i])
	}
}

func (w *writer) modification(m *SessionModificationRequest) {
	if m.CP != nil {
		w.fseid(*m.CP)
	}
	w.removals(m)
	w.creations(m.CreatePDR, m.CreateFAR, m.CreateURR, m.CreateQER, m.CreateBAR, m.CreateEndpoint)
	for i := range m.UpdatePDR {
		w.updatePDR(&m.UpdatePDR[i])
	}
	for i := range m.UpdateFAR {
		w.updateFAR(&m.UpdateFAR[i])
	}
	for i := range m.UpdateURR {
		w.urr(ieUpdateURR, &m.UpdateURR[i])
	}
	for i := range m.UpdateQER {
		w.qer(ieUpdateQER, &m.UpdateQER[i])
	}
	for i := range m.UpdateBAR {
		w.bar(ieUpdateBAR, &m.UpdateBAR[i])
	}
	for i := range m.UpdateEndpoint {
		w.endpoint(ieUpdateEndpoint, &m.UpdateEndpoint[i])
	}
	if m.DropBuffered || m.QueryAll || m.EndMarkers {
		w.uint8(ieSMReqFlags, when(m.DropBuffered, smDropBuffered)|when(m.QueryAll, smQueryAll)|when(m.EndMarkers, smEndMarker))
	}
	for _, id := range m.QueryURR {
		at := w.open(ieQueryURR)
		w.uint32(ieURRID, id)
		w.close(at)
	}
	w.fqcsids(m.FQCSID)
	w.optionalSeconds(ieInactivityTimer, m.Inactivity)
	w.optional32(ieQueryReference, m.QueryReference)
	if m.Node != nil {
		w.node(*m.Node)
	}
	w.snssai(m.SNSSAI)
}

func (w *writer) removals(m *SessionModificationRequest) {
	for _, id := range m.RemovePDR {
		at := w.open(ieRemovePDR)
		w.uint16(iePDRID, id)
		w.close(at)
	}
	for _, of := range []struct {
		ie, id uint16
		list   []uint32
	}{{ieRemoveFAR, ieFARID, m.RemoveFAR}, {ieRemoveURR, ieURRID, m.RemoveURR}, {ieRemoveQER, ieQERID, m.RemoveQER}} {
		for _, id := range of.list {
			at := w.open(of.ie)
			w.uint32(of.id, id)
			w.close(at)
		}
	}
	for _, of := range []struct {
		ie, id uint16
		list   []uint8
	}{{ieRemoveBAR, ieBARID, m.RemoveBAR}, {ieRemoveEndpoint, ieEndpointID, m.RemoveEndpoint}} {
		for _, id := range of.list {
			at := w.open(of.ie)
			w.uint8(of.id, id)
			w.close(at)
		}
	}
}

func (w *writer) report(m *SessionReportRequest) {
	w.uint8(ieReportType, when(len(m.DownlinkPDR) > 0, reportDownlink)|when(len(m.Usage) > 0, reportUsage)|
		when(len(m.Errors) > 0, reportErrors)|when(m.Inactive, reportInactive))
	if len(m.DownlinkPDR) > 0 {
		at := w.open(ieDownlinkDataReport)
		for _, id := range m.DownlinkPDR {
			w.uint16(iePDRID, id)
		}
		if m.DSCP != nil || m.DownlinkQFI != 0 {
			service := w.open(ieDownlinkDataService)
			w.b = append(w.b, when(m.DSCP != nil, 1)|when(m.DownlinkQFI != 0, 2))
			if m.DSCP != nil {
				w.b = append(w.b, *m.DSCP)
			}
			if m.DownlinkQFI != 0 {
				w.b = append(w.b, m.DownlinkQFI)
			}
			w.close(service)
		}
		w.close(at)
	}
	w.usage(ieUsageReport, m.Usage)
	if len(m.Errors) > 0 {
		at := w.open(ieErrorIndicationReport)
		for i := range m.Errors {
			w.fteid(&m.Errors[i])
		}
		w.close(at)
	}
	if m.OldCP != nil {
		w.fseid(*m.OldCP)
	}
}
