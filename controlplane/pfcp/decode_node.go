// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"net/netip"
	"time"
)

// Tables of the node messages (TS 29.244 §7.4), in the standard's order.

var heartbeatRequest = newGroup([]field[HeartbeatRequest]{
	need(value(ieRecoveryTimeStamp, readTime, func(m *HeartbeatRequest) *time.Time { return &m.Recovery })),
	value(ieSourceAddress, readSource, func(m *HeartbeatRequest) *netip.Addr { return &m.Source }),
}, nil)

// readSource is TS 29.244 §8.2.145: an address, or with MPL the prefix of several, of which the address counts.
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
	need(value(ieRecoveryTimeStamp, readTime, func(m *HeartbeatResponse) *time.Time { return &m.Recovery })),
}, nil)

var retention = newGroup([]field[Retention]{
	{ie: ieCPEntityAddress, many: true, read: func(v []byte, r *Retention) *Error {
		return appendAddresses(&r.CPEntities, v, 2, 1)
	}},
}, nil)

func appendAddresses(places *[]netip.Addr, v []byte, m4, m6 byte) *Error {
	addrs, refusal := readAddresses(v, m4, m6)
	if refusal == nil {
		*places = append(*places, addrs...)
	}
	return refusal
}

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
	need(value(iePoolIdentity, readPool, func(p *UEPool) *string { return &p.Pool })),
	value(ieNetworkInstance, name, func(p *UEPool) *string { return &p.NetworkInstance }),
}, nil)

// readSet is TS 29.244 §8.2.131: a spare octet, then an FQDN as labels. Versions of go-pfcp leave the octet out: then the first is
// the length of a label.
func readSet(v []byte) (string, *Error) {
	if set, ok := labels(v); ok {
		return set, nil
	}
	return name(v[1:])
}

var associationSetupRequest = newGroup([]field[AssociationSetupRequest]{
	need(value(ieNodeID, readNodeID, func(m *AssociationSetupRequest) *NodeID { return &m.Node })),
	need(value(ieRecoveryTimeStamp, readTime, func(m *AssociationSetupRequest) *time.Time { return &m.Recovery })),
	{ie: ieUPFeatures, read: func(v []byte, m *AssociationSetupRequest) *Error {
		m.FromUP, m.Features = true, flags(v)
		return nil
	}},
	{ie: ieCPFeatures, read: func(v []byte, m *AssociationSetupRequest) *Error {
		if !m.FromUP {
			m.Features = flags(v)
		}
		return nil
	}},
	{ie: ieAlternativeSMF, many: true, read: func(v []byte, m *AssociationSetupRequest) *Error {
		return appendAddresses(&m.Addresses, v, 2, 1)
	}},
	value(ieSMFSetID, readSet, func(m *AssociationSetupRequest) *string { return &m.SetID }),
	inner(ieSessionRetention, retention, func(m *AssociationSetupRequest) **Retention { return &m.Retention }),
	each(iePoolInformation, pool, func(m *AssociationSetupRequest) *[]UEPool { return &m.UEPools }),
}, nil)

var associationSetupResponse = newGroup([]field[AssociationSetupResponse]{
	need(value(ieNodeID, readNodeID, func(m *AssociationSetupResponse) *NodeID { return &m.Node })),
	need(value(ieCause, readCause, func(m *AssociationSetupResponse) *Cause { return &m.Cause })),
	need(value(ieRecoveryTimeStamp, readTime, func(m *AssociationSetupResponse) *time.Time { return &m.Recovery })),
	{ie: ieUPFeatures, read: func(v []byte, m *AssociationSetupResponse) *Error {
		m.FromUP, m.Features = true, flags(v)
		return nil
	}},
	{ie: ieCPFeatures, read: func(v []byte, m *AssociationSetupResponse) *Error {
		if !m.FromUP {
			m.Features = flags(v)
		}
		return nil
	}},
	{ie: ieASRspFlags, read: func(v []byte, m *AssociationSetupResponse) *Error {
		m.Retained = v[0]&1 != 0 // PSREI
		return nil
	}},
	value(ieOffendingIE, readUint16, func(m *AssociationSetupResponse) *uint16 { return &m.Offend }),
	{ie: ieAlternativeSMF, many: true, read: func(v []byte, m *AssociationSetupResponse) *Error {
		return appendAddresses(&m.Addresses, v, 2, 1)
	}},
	value(ieSMFSetID, readSet, func(m *AssociationSetupResponse) *string { return &m.SetID }),
	each(iePoolInformation, pool, func(m *AssociationSetupResponse) *[]UEPool { return &m.UEPools }),
}, nil)

var associationUpdateRequest = newGroup([]field[AssociationUpdateRequest]{
	need(value(ieNodeID, readNodeID, func(m *AssociationUpdateRequest) *NodeID { return &m.Node })),
	{ie: ieUPFeatures, read: func(v []byte, m *AssociationUpdateRequest) *Error {
		n := flags(v)
		m.FromUP, m.Features = true, &n
		return nil
	}},
	{ie: ieCPFeatures, read: func(v []byte, m *AssociationUpdateRequest) *Error {
		if n := flags(v); !m.FromUP {
			m.Features = &n
		}
		return nil
	}},
	{ie: ieAssociationRelease, read: func(v []byte, m *AssociationUpdateRequest) *Error {
		m.ReleaseRequest = v[0]&1 != 0 // SARR
		return nil
	}},
	{ie: ieAlternativeSMF, many: true, read: func(v []byte, m *AssociationUpdateRequest) *Error {
		return appendAddresses(&m.Addresses, v, 2, 1)
	}},
	value(ieGracefulPeriod, readTimer, func(m *AssociationUpdateRequest) *time.Duration { return &m.GracefulPeriod }),
}, nil)

var associationUpdateResponse = newGroup([]field[AssociationUpdateResponse]{
	need(value(ieNodeID, readNodeID, func(m *AssociationUpdateResponse) *NodeID { return &m.Node })),
	need(value(ieCause, readCause, func(m *AssociationUpdateResponse) *Cause { return &m.Cause })),
	{ie: ieUPFeatures, read: func(v []byte, m *AssociationUpdateResponse) *Error {
		n := flags(v)
		m.FromUP, m.Features = true, &n
		return nil
	}},
	{ie: ieCPFeatures, read: func(v []byte, m *AssociationUpdateResponse) *Error {
		if n := flags(v); !m.FromUP {
			m.Features = &n
		}
		return nil
	}},
}, nil)

var associationReleaseRequest = newGroup([]field[AssociationReleaseRequest]{
	need(value(ieNodeID, readNodeID, func(m *AssociationReleaseRequest) *NodeID { return &m.Node })),
}, nil)

var associationReleaseResponse = newGroup([]field[AssociationReleaseResponse]{
	need(value(ieNodeID, readNodeID, func(m *AssociationReleaseResponse) *NodeID { return &m.Node })),
	need(value(ieCause, readCause, func(m *AssociationReleaseResponse) *Cause { return &m.Cause })),
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
	return newGroup([]field[NodeReportRequest]{need(list(ieRemotePeer, readPeer, at))}, nil)
}

var (
	failedPeers   = peers(func(m *NodeReportRequest) *[]RemotePeer { return &m.Failed })
	restoredPeers = peers(func(m *NodeReportRequest) *[]RemotePeer { return &m.Restored })
)

var nodeReportRequest = newGroup([]field[NodeReportRequest]{
	need(value(ieNodeID, readNodeID, func(m *NodeReportRequest) *NodeID { return &m.Node })),
	need(field[NodeReportRequest]{ie: ieNodeReportType, read: func(v []byte, _ *NodeReportRequest) *Error {
		if v[0]&0x0f == 0 { // UPFR UPRR CKDR GPQR (§8.2.69)
			return incorrect("node report of no type")
		}
		return nil
	}}),
	{ie: iePathFailureReport, read: failedPeers.decode},
	{ie: iePathRecoveryReport, read: restoredPeers.decode},
}, nil).checked(func(m *NodeReportRequest) *Error {
	if len(m.Failed)+len(m.Restored) == 0 { // clock drift and QoS of paths are reports of functions, not to them
		return absent(iePathFailureReport, "report of no path")
	}
	return nil
})

var nodeReportResponse = newGroup([]field[NodeReportResponse]{
	need(value(ieNodeID, readNodeID, func(m *NodeReportResponse) *NodeID { return &m.Node })),
	need(value(ieCause, readCause, func(m *NodeReportResponse) *Cause { return &m.Cause })),
	value(ieOffendingIE, readUint16, func(m *NodeReportResponse) *uint16 { return &m.Offending }),
}, nil)

var sessionSetDeletionRequest = newGroup([]field[SessionSetDeletionRequest]{
	need(value(ieNodeID, readNodeID, func(m *SessionSetDeletionRequest) *NodeID { return &m.Node })),
	list(ieFQCSID, readFQCSID, func(m *SessionSetDeletionRequest) *[][]byte { return &m.FQCSID }),
}, nil).checked(func(m *SessionSetDeletionRequest) *Error {
	if len(m.FQCSID) == 0 {
		return absent(ieFQCSID, "no FQ-CSID: whose sessions?")
	}
	return nil
})

var sessionSetDeletionResponse = newGroup([]field[SessionSetDeletionResponse]{
	need(value(ieNodeID, readNodeID, func(m *SessionSetDeletionResponse) *NodeID { return &m.Node })),
	need(value(ieCause, readCause, func(m *SessionSetDeletionResponse) *Cause { return &m.Cause })),
	value(ieOffendingIE, readUint16, func(m *SessionSetDeletionResponse) *uint16 { return &m.Offending }),
}, nil)
