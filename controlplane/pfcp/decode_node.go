// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"net/netip"
	"time"
)

// Tables of the node messages (TS 29.244 §7.4), in the standard's order.

var heartbeatRequest = newGroup([]field[HeartbeatRequest]{
	recoveryRow(func(m *HeartbeatRequest) *time.Time { return &m.Recovery }),
	value(ieSourceAddress, readSource, (*writer).source, func(m *HeartbeatRequest) *netip.Addr { return &m.Source }),
}, nil)

// readSource is TS 29.244 §8.2.145: an address, or with MPL a prefix, of which the address counts.
func readSource(v []byte) (netip.Addr, *Error) {
	c := cursor{b: v[1:]}
	a4, a6 := c.pair(v[0]&2 != 0, v[0]&1 != 0)
	if v[0]&4 != 0 {
		c.byte()
	}
	if refusal := c.end(ieSourceAddress, len(v)); refusal != nil {
		return a4, refusal
	}
	if a6.IsValid() {
		return a6, control(a6)
	}
	if !a4.IsValid() {
		return a4, incorrect("no source address")
	}
	return a4, control(a4)
}

var heartbeatResponse = newGroup([]field[HeartbeatResponse]{
	recoveryRow(func(m *HeartbeatResponse) *time.Time { return &m.Recovery }),
}, nil)

var retention = newGroup([]field[Retention]{
	addressRow(ieCPEntityAddress, func(r *Retention) *[]netip.Addr { return &r.CPEntities }),
}, nil)

// readPool is TS 29.244 §8.2.128: a length of two octets and the pool's name.
func readPool(v []byte) (string, *Error) {
	c := cursor{b: v}
	text := c.text()
	if refusal := c.end(iePoolIdentity, len(v)); refusal != nil {
		return "", refusal
	}
	return readName([]byte(text))
}

var pool = newGroup([]field[UEPool]{
	need(always(iePoolIdentity, readPool, (*writer).pool, func(p *UEPool) *string { return &p.Pool })),
	value(ieNetworkInstance, name, (*writer).instance, func(p *UEPool) *string { return &p.NetworkInstance }),
}, nil)

// readSet is TS 29.244 §8.2.131: a spare octet, then an FQDN as labels. Versions of go-pfcp leave the octet out: then
// the first is the length of a label.
func readSet(v []byte) (string, *Error) {
	if set, ok := labels(v); ok {
		return set, nil
	}
	return name(v[1:])
}

var associationSetupRequestUP, associationSetupRequestCP = featureRows(
	func(m *AssociationSetupRequest) *bool { return &m.FromUP },
	func(m *AssociationSetupRequest) *uint64 { return &m.Features },
	func(m *AssociationSetupRequest, f *uint64) { m.Features = *f })

var associationSetupRequest = newGroup([]field[AssociationSetupRequest]{
	nodeRow(func(m *AssociationSetupRequest) *NodeID { return &m.Node }),
	recoveryRow(func(m *AssociationSetupRequest) *time.Time { return &m.Recovery }),
	associationSetupRequestUP, associationSetupRequestCP,
	addressRow(ieAlternativeSMF, func(m *AssociationSetupRequest) *[]netip.Addr { return &m.Addresses }),
	setRow(func(m *AssociationSetupRequest) *string { return &m.SetID }),
	inner(ieSessionRetention, retention, func(m *AssociationSetupRequest) **Retention { return &m.Retention }),
	poolRow(func(m *AssociationSetupRequest) *[]UEPool { return &m.UEPools }),
}, nil)

var associationSetupResponseUP, associationSetupResponseCP = featureRows(
	func(m *AssociationSetupResponse) *bool { return &m.FromUP },
	func(m *AssociationSetupResponse) *uint64 { return &m.Features },
	func(m *AssociationSetupResponse, f *uint64) { m.Features = *f })

var associationSetupResponse = newGroup([]field[AssociationSetupResponse]{
	nodeRow(func(m *AssociationSetupResponse) *NodeID { return &m.Node }),
	causeRow(func(m *AssociationSetupResponse) *Cause { return &m.Cause }),
	recoveryRow(func(m *AssociationSetupResponse) *time.Time { return &m.Recovery }),
	associationSetupResponseUP, associationSetupResponseCP,
	flagRow(ieASRspFlags, func(m *AssociationSetupResponse) *bool { return &m.Retained }), // PSREI
	offendingRow(func(m *AssociationSetupResponse) *uint16 { return &m.Offend }),
	addressRow(ieAlternativeSMF, func(m *AssociationSetupResponse) *[]netip.Addr { return &m.Addresses }),
	setRow(func(m *AssociationSetupResponse) *string { return &m.SetID }),
	poolRow(func(m *AssociationSetupResponse) *[]UEPool { return &m.UEPools }),
}, nil)

var associationUpdateRequestUP, associationUpdateRequestCP = featureRows(
	func(m *AssociationUpdateRequest) *bool { return &m.FromUP },
	func(m *AssociationUpdateRequest) *uint64 { return m.Features },
	func(m *AssociationUpdateRequest, f *uint64) { m.Features = f })

var associationUpdateRequest = newGroup([]field[AssociationUpdateRequest]{
	nodeRow(func(m *AssociationUpdateRequest) *NodeID { return &m.Node }),
	associationUpdateRequestUP, associationUpdateRequestCP,
	flagRow(ieAssociationRelease, func(m *AssociationUpdateRequest) *bool { return &m.ReleaseRequest }), // SARR
	addressRow(ieAlternativeSMF, func(m *AssociationUpdateRequest) *[]netip.Addr { return &m.Addresses }),
	value(ieGracefulPeriod, readTimer, (*writer).timer,
		func(m *AssociationUpdateRequest) *time.Duration { return &m.GracefulPeriod }),
}, nil)

var associationUpdateResponseUP, associationUpdateResponseCP = featureRows(
	func(m *AssociationUpdateResponse) *bool { return &m.FromUP },
	func(m *AssociationUpdateResponse) *uint64 { return m.Features },
	func(m *AssociationUpdateResponse, f *uint64) { m.Features = f })

var associationUpdateResponse = newGroup([]field[AssociationUpdateResponse]{
	nodeRow(func(m *AssociationUpdateResponse) *NodeID { return &m.Node }),
	causeRow(func(m *AssociationUpdateResponse) *Cause { return &m.Cause }),
	associationUpdateResponseUP, associationUpdateResponseCP,
}, nil)

var associationReleaseRequest = newGroup([]field[AssociationReleaseRequest]{
	nodeRow(func(m *AssociationReleaseRequest) *NodeID { return &m.Node }),
}, nil)

var associationReleaseResponse = newGroup([]field[AssociationReleaseResponse]{
	nodeRow(func(m *AssociationReleaseResponse) *NodeID { return &m.Node }),
	causeRow(func(m *AssociationReleaseResponse) *Cause { return &m.Cause }),
}, nil)

var versionNotSupported = newGroup([]field[VersionNotSupportedResponse]{}, nil)

// readPeer is TS 29.244 §8.2.70.
func readPeer(v []byte) (RemotePeer, *Error) {
	c := cursor{b: v[1:]}
	var p RemotePeer
	a4, a6 := c.pair(v[0]&2 != 0, v[0]&1 != 0)
	if v[0]&4 != 0 { // DI
		if value := c.take(int(c.uint16())); len(value) == 1 {
			n := value[0] & 15
			p.Interface = &n
		} else {
			return p, badLength(ieRemotePeer, len(v))
		}
	}
	if v[0]&8 != 0 { // NI
		text, refusal := name(c.take(int(c.uint16())))
		if refusal != nil && !c.short {
			return p, refusal
		}
		p.NetworkInstance = text
	}
	if refusal := c.end(ieRemotePeer, len(v)); refusal != nil {
		return p, refusal
	}
	if p.Addr = a4; a6.IsValid() {
		p.Addr = a6
	}
	if !p.Addr.IsValid() || a4.IsValid() && a6.IsValid() {
		return p, incorrect("a GTP-U peer has one address")
	}
	return p, unicast(p.Addr)
}

func peers(at func(*NodeReportRequest) *[]RemotePeer) *group[NodeReportRequest] {
	return newGroup([]field[NodeReportRequest]{need(list(ieRemotePeer, readPeer, (*writer).peer, at))}, nil)
}

var (
	failedPeers   = peers(func(m *NodeReportRequest) *[]RemotePeer { return &m.Failed })
	restoredPeers = peers(func(m *NodeReportRequest) *[]RemotePeer { return &m.Restored })
)

var nodeReportRequest = newGroup([]field[NodeReportRequest]{
	nodeRow(func(m *NodeReportRequest) *NodeID { return &m.Node }),
	need(field[NodeReportRequest]{ie: ieNodeReportType, read: func(v []byte, _ *NodeReportRequest) *Error {
		if v[0]&0x0f == 0 { // UPFR UPRR CKDR GPQR (§8.2.69)
			return incorrect("node report of no type")
		}
		return nil
	}, write: func(w *writer, m *NodeReportRequest) {
		w.uint8(ieNodeReportType, when(len(m.Failed) > 0, 1)|when(len(m.Restored) > 0, 2))
	}}),
	{ie: iePathFailureReport, read: failedPeers.decode, write: func(w *writer, m *NodeReportRequest) {
		if len(m.Failed) > 0 {
			w.group(iePathFailureReport, func() { failedPeers.encode(w, m) })
		}
	}},
	{ie: iePathRecoveryReport, read: restoredPeers.decode, write: func(w *writer, m *NodeReportRequest) {
		if len(m.Restored) > 0 {
			w.group(iePathRecoveryReport, func() { restoredPeers.encode(w, m) })
		}
	}},
}, nil).checked(func(m *NodeReportRequest) *Error {
	if len(m.Failed)+len(m.Restored) == 0 { // clock drift and QoS of paths are reports of functions, not to them
		return absent(iePathFailureReport, "report of no path")
	}
	return nil
})

var nodeReportResponse = newGroup([]field[NodeReportResponse]{
	nodeRow(func(m *NodeReportResponse) *NodeID { return &m.Node }),
	causeRow(func(m *NodeReportResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *NodeReportResponse) *uint16 { return &m.Offending }),
}, nil)

var sessionSetDeletionRequest = newGroup([]field[SessionSetDeletionRequest]{
	nodeRow(func(m *SessionSetDeletionRequest) *NodeID { return &m.Node }),
	list(ieFQCSID, readFQCSID, (*writer).fqcsid, func(m *SessionSetDeletionRequest) *[][]byte { return &m.FQCSID }),
}, nil).checked(func(m *SessionSetDeletionRequest) *Error {
	if len(m.FQCSID) == 0 {
		return absent(ieFQCSID, "no FQ-CSID: whose sessions?")
	}
	return nil
})

var sessionSetDeletionResponse = newGroup([]field[SessionSetDeletionResponse]{
	nodeRow(func(m *SessionSetDeletionResponse) *NodeID { return &m.Node }),
	causeRow(func(m *SessionSetDeletionResponse) *Cause { return &m.Cause }),
	offendingRow(func(m *SessionSetDeletionResponse) *uint16 { return &m.Offending }),
}, nil)
