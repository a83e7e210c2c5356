// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"net/netip"
	"time"
)

// Messages with every IE that we send or take.

func ptr[T any](v T) *T { return &v }

var (
	sampleTime = time.Unix(1764000000, 0).UTC()
	v4a        = netip.MustParseAddr("10.0.0.1")
	v4b        = netip.MustParseAddr("192.0.2.77")
	v6a        = netip.MustParseAddr("2001:db8::1")
	ue6        = netip.MustParsePrefix("2001:db8:1:2::/64")
	nodeName   = NodeID{FQDN: "smf1.isthmus.example"}
	node4      = NodeID{Addr: v4a}
	node6      = NodeID{Addr: v6a}
	csid       = []byte{0x01, 10, 0, 0, 9, 0x12, 0x34}
)

// establishment is the session of the speed rows: 2 PDR, 2 FAR, 1 QER, 1 URR.
func establishment() *SessionEstablishmentRequest {
	return &SessionEstablishmentRequest{
		Node: node4,
		CP:   FSEID{SEID: 0x1122334455667788, IPv4: v4a},
		PDR: []CreatePDR{{
			ID: 1, Precedence: 255,
			PDI: PDI{Source: Access, LocalFTEID: &FTEID{Choose: true, WantIPv4: true}, NetworkInstance: "access",
				UEIP: []UEIP{{IPv4: v4b}}, QFI: []uint8{9}},
			OuterHeaderRemoval: ptr(uint8(0)), FAR: ptr(uint32(1)), URR: []uint32{1}, QER: []uint32{1},
		}, {
			ID: 2, Precedence: 255,
			PDI: PDI{Source: Core, NetworkInstance: "internet", UEIP: []UEIP{{IPv4: v4b, Destination: true}}},
			FAR: ptr(uint32(2)), URR: []uint32{1}, QER: []uint32{1},
		}},
		FAR: []CreateFAR{
			{ID: 1, Action: ActionForward, Forwarding: &Forwarding{Destination: ptr(Core),
				NetworkInstance: ptr("internet")}},
			{ID: 2, Action: ActionForward, Forwarding: &Forwarding{Destination: ptr(Access),
				NetworkInstance: ptr("access"),
				OuterHeader:     &OuterHeader{Description: OuterGTPUIPv4, TEID: 0x01020304, IPv4: v4b}}},
		},
		QER: []CreateQER{{ID: 1, GateUplink: ptr(uint8(0)), GateDownlink: ptr(uint8(0)), MBRUplink: ptr(uint64(100000)),
			MBRDownlink: ptr(uint64(200000)), QFI: ptr(uint8(9))}},
		URR: []CreateURR{{ID: 1, Method: ptr(uint8(2)), Triggers: ptr(uint32(2)),
			VolumeThreshold: &Volumes{Total: ptr(uint64(1 << 30))}}},
		PDNType: ptr(uint8(1)),
	}
}

func richPDI() PDI {
	return PDI{
		Source: Core, LocalFTEID: &FTEID{TEID: 77, IPv4: v4a, IPv6: v6a}, NetworkInstance: "ims.mnc001.mcc001.gprs",
		UEIP: []UEIP{{IPv4: v4b, IPv6: ue6, Destination: true}, {IPv6: netip.MustParsePrefix("2001:db8:9::/56")}},
		SDF: []SDFFilter{
			{Flow: "permit out ip from any to assigned", HasID: true, ID: 5},
			{Flow: "permit out 17 from 10.0.0.0/8 53 to assigned 1000-2000", ToS: 0xb8, Mask: 0xfc, HasToS: true},
			{SPI: 0xdeadbeef, HasSPI: true, FlowLabel: 0xabcde, HasLabel: true},
		},
		Application: "video", QFI: []uint8{1, 63},
		FramedRoutes:  []netip.Prefix{netip.MustParsePrefix("10.99.0.0/24"), netip.MustParsePrefix("2001:db8:77::/48")},
		InterfaceType: ptr(uint8(11)),
	}
}

func richURR(id uint32) CreateURR {
	return CreateURR{
		ID: id, Method: ptr(uint8(7)), Triggers: ptr(uint32(0x1b7ff &^ unservedTriggers)), Period: ptr(time.Minute),
		VolumeThreshold: &Volumes{Total: ptr(uint64(1)), Uplink: ptr(uint64(2)), Downlink: ptr(uint64(3))},
		VolumeQuota:     &Volumes{Total: ptr(uint64(0))}, TimeThreshold: ptr(time.Hour), TimeQuota: ptr(2 * time.Hour),
		EventThreshold: ptr(uint32(9)), EventQuota: ptr(uint32(10)), HoldingTime: ptr(10 * time.Second),
		ValidityTime: ptr(20 * time.Second), InactivityTime: ptr(30 * time.Second), MonitoringTime: ptr(sampleTime),
		SubsequentVolumeThreshold: &Volumes{Uplink: ptr(uint64(5))}, SubsequentTimeThreshold: ptr(time.Second),
		Linked: []uint32{7, 8}, Information: ptr(uint8(0x1a)), QuotaFAR: ptr(uint32(3)),
		DroppedPackets: ptr(uint64(4)), DroppedBytes: ptr(uint64(5)),
	}
}

func richBAR(id uint8) CreateBAR {
	return CreateBAR{ID: id, NotifyDelay: ptr(150 * time.Millisecond), SuggestedPackets: ptr(uint8(20))}
}

func richQER(id uint32) CreateQER {
	return CreateQER{ID: id, Correlation: ptr(uint32(3)), GateUplink: ptr(uint8(1)), GateDownlink: ptr(uint8(0)),
		MBRUplink: ptr(uint64(1<<40 - 1)), MBRDownlink: ptr(uint64(2)), GBRUplink: ptr(uint64(1)),
		GBRDownlink: ptr(uint64(1)),
		QFI:         ptr(uint8(63)), RQI: ptr(true), AveragingWindow: ptr(uint32(2000)), FlowMarking: ptr(uint8(46))}
}

func richForwarding() *Forwarding {
	return &Forwarding{Destination: ptr(Access), NetworkInstance: ptr("access"),
		OuterHeader:      &OuterHeader{Description: OuterGTPUIPv4 | OuterGTPUIPv6, TEID: 9, IPv4: v4b, IPv6: v6a},
		TransportMarking: ptr(uint8(46)), LinkedEndpoint: ptr(uint8(2)), InterfaceType: ptr(uint8(11)),
		Redirect: &Redirect{Type: 4, Address: "192.0.2.1", Other: "2001:db8::2"}}
}

func richEndpoint(id uint8) CreateTrafficEndpoint {
	return CreateTrafficEndpoint{ID: id, LocalFTEID: &FTEID{Choose: true, WantIPv4: true, WantIPv6: true,
		HasChooseID: true,
		ChooseID:    6}, NetworkInstance: "access", UEIP: []UEIP{{ChooseIPv4: true, ChooseIPv6: true,
		ChooseLength: 60}},
		FramedRoutes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, QFI: []uint8{3}}
}

func richUsage(urr uint32) UsageReport {
	return UsageReport{URR: urr, Sequence: 4, Trigger: 0x10382, Start: sampleTime, End: sampleTime.Add(time.Minute),
		Volume: &[3]uint64{300, 100, 200}, Packets: &[3]uint64{3, 1, 2}, Duration: ptr(time.Minute), First: sampleTime,
		Last: sampleTime.Add(time.Second), Query: ptr(uint32(8)), Events: []time.Time{sampleTime},
		Information: 1}
}

func richEstablishment() *SessionEstablishmentRequest {
	return &SessionEstablishmentRequest{
		Node: nodeName, CP: FSEID{SEID: 1, IPv4: v4a, IPv6: v6a},
		PDR: []CreatePDR{{ID: 65535, Precedence: 1, PDI: richPDI(), OuterHeaderRemoval: ptr(uint8(6 | RemoveContainer)),
			FAR: ptr(uint32(1)),
			URR: []uint32{1, 2}, QER: []uint32{1, 2}, ActivatePredefined: []string{"gold"}, Activation: sampleTime,
			Deactivation: sampleTime.Add(time.Hour)},
			{ID: 2, PDI: PDI{TrafficEndpoint: ptr(uint8(2))}, FAR: ptr(uint32(2))}},
		FAR: []CreateFAR{{ID: 1, Action: ActionForward | ActionDuplicate, Forwarding: richForwarding(),
			Duplicating: &Duplicating{Destination: 4, OuterHeader: &OuterHeader{Description: OuterUDPIPv4, IPv4: v4b,
				Port: 4000},
				TransportMarking: ptr(uint8(8))}},
			{ID: 2, Action: ActionBuffer | ActionNotify, BAR: ptr(uint8(1))},
			{ID: 3, Action: ActionForward, Forwarding: &Forwarding{Destination: ptr(Core),
				Redirect: &Redirect{Type: 2, Address: "http://portal.example/"}}}},
		QER: []CreateQER{richQER(1)}, URR: []CreateURR{richURR(1)}, BAR: []CreateBAR{richBAR(1)},
		Endpoint: []CreateTrafficEndpoint{richEndpoint(2)}, PDNType: ptr(uint8(3)), UserID: "001010123456789",
		APN: "internet.mnc001.mcc001.gprs", Inactivity: time.Hour, Restoration: true, FQCSID: [][]byte{csid},
		SNSSAI: "1-010203", RecoveryOfPeer: sampleTime,
	}
}

func richModification() *SessionModificationRequest {
	return &SessionModificationRequest{
		CP: &FSEID{SEID: 2, IPv6: v6a}, RemovePDR: []uint16{1, 2}, RemoveFAR: []uint32{3}, RemoveQER: []uint32{4},
		RemoveURR: []uint32{5}, RemoveBAR: []uint8{6}, RemoveEndpoint: []uint8{7},
		CreatePDR: []CreatePDR{{ID: 8, PDI: richPDI(), FAR: ptr(uint32(3))}},
		CreateFAR: []CreateFAR{{ID: 9, Action: ActionDrop}}, CreateQER: []CreateQER{richQER(9)},
		CreateURR: []CreateURR{richURR(9)}, CreateBAR: []CreateBAR{richBAR(9)},
		CreateEndpoint: []CreateTrafficEndpoint{richEndpoint(9)},
		UpdatePDR: []UpdatePDR{{ID: 10, Precedence: ptr(uint32(3)), PDI: ptr(richPDI()),
			OuterHeaderRemoval: ptr(uint8(2)),
			FAR:                ptr(uint32(3)), URR: &[]uint32{1}, QER: &[]uint32{2, 3},
			ActivatePredefined: []string{"silver"}}},
		UpdateFAR: []UpdateFAR{{ID: 11, Action: ptr(ActionForward), Forwarding: func() *Forwarding {
			f := richForwarding()
			f.SendEndMarker, f.DropBuffered = true, true
			return f
		}(), Duplicating: &Duplicating{Destination: Core}, BAR: ptr(uint8(1))}},
		UpdateQER: []UpdateQER{richQER(12)}, UpdateURR: []UpdateURR{richURR(12)}, UpdateBAR: []UpdateBAR{richBAR(12)},
		UpdateEndpoint: []CreateTrafficEndpoint{richEndpoint(13)},
		QueryURR:       []uint32{14, 15}, QueryAll: true, DropBuffered: true, Inactivity: ptr(time.Minute),
		QueryReference: ptr(uint32(77)), Node: &node6, FQCSID: [][]byte{csid}, EndMarkers: true, SNSSAI: "1-010203",
	}
}

// samples are all messages, both directions; each decodes to itself.
func samples() []Message {
	features := UPFtup | UPUeip | UPEmpu
	accepted := []CreatedPDR{{ID: 1, LocalFTEID: &FTEID{TEID: 5, IPv4: v4a, IPv6: v6a}, UEIP: []UEIP{{IPv4: v4b}}}}
	points := []CreatedEndpoint{{ID: 1, LocalFTEID: &FTEID{TEID: 5, IPv4: v4a}, UEIP: []UEIP{{IPv6: ue6}}}}
	return []Message{
		&HeartbeatRequest{Recovery: sampleTime},
		&HeartbeatRequest{Recovery: sampleTime, Source: v6a},
		&HeartbeatResponse{Recovery: sampleTime},
		&PFDManagementRequest{},
		&PFDManagementRequest{Applications: []ApplicationPFDs{{Application: "video", PFDs: []PFD{
			{Flow: "permit out ip from 198.51.100.0/24 to assigned"},
			{URL: "https://video.example/", Domain: "video.example",
				Custom: "x"}}}, {Application: "gone"}}},
		&PFDManagementResponse{Cause: CauseAccepted},
		&PFDManagementResponse{Cause: CauseMandatoryIEMissing, Offending: ieApplicationID},
		&AssociationSetupRequest{Node: node4, Recovery: sampleTime, Features: CPLoad | CPSset,
			SetID:     "set1.smf.example",
			Retention: &Retention{CPEntities: []netip.Addr{v4a, v6a}}, Addresses: []netip.Addr{v4b, v6a}},
		&AssociationSetupRequest{Node: nodeName, Recovery: sampleTime, FromUP: true, Features: features,
			UEPools: []UEPool{{NetworkInstance: "internet", Pool: "10.45.0.0/16"}}},
		&AssociationSetupResponse{Node: node6, Cause: CauseAccepted, Recovery: sampleTime, FromUP: true,
			Features: features | UPMptcp, Retained: true, UEPools: []UEPool{{Pool: "pool"}}},
		&AssociationSetupResponse{Node: node4, Cause: CauseAccepted, Recovery: sampleTime, Features: CPMpas,
			SetID:     "set1.smf.example",
			Addresses: []netip.Addr{v4b, v6a}},
		&AssociationSetupResponse{Node: node6, Cause: CauseMandatoryIEMissing, Recovery: sampleTime, Offend: ieNodeID},
		&AssociationUpdateRequest{Node: node4, FromUP: true, Features: &features, ReleaseRequest: true,
			GracefulPeriod: 10 * time.Minute},
		&AssociationUpdateRequest{Node: node4, Features: ptr(uint64(0)), Addresses: []netip.Addr{v4b, v6a}},
		&AssociationUpdateResponse{Node: node4, Cause: CauseAccepted, FromUP: true, Features: &features},
		&AssociationReleaseRequest{Node: nodeName},
		&AssociationReleaseResponse{Node: nodeName, Cause: CauseAccepted},
		&VersionNotSupportedResponse{},
		&NodeReportRequest{Node: node4, Failed: []RemotePeer{{Addr: v4b, NetworkInstance: "access",
			Interface: ptr(uint8(0))},
			{Addr: v6a}}, Restored: []RemotePeer{{Addr: v4a}}},
		&NodeReportResponse{Node: node4, Cause: CauseAccepted},
		&SessionSetDeletionRequest{Node: node4, FQCSID: [][]byte{csid}},
		&SessionSetDeletionRequest{Node: node4, FQCSID: [][]byte{append([]byte{0x11}, make([]byte, 18)...)}},
		&SessionSetDeletionResponse{Node: node4, Cause: CauseAccepted},
		establishment(),
		richEstablishment(),
		&SessionEstablishmentResponse{Node: node4, Cause: CauseAccepted, UP: FSEID{SEID: 9, IPv4: v4a},
			Created:   accepted,
			Endpoints: points},
		&SessionEstablishmentResponse{Node: node4, Cause: CauseRuleFailure, Offending: ieSDFFilter,
			Failed: &FailedRule{Type: RulePDR, ID: 7}},
		richModification(),
		&SessionModificationResponse{Cause: CauseAccepted, Created: accepted, Endpoints: points,
			Usage: []UsageReport{richUsage(1), {URR: 2}}, MoreUsage: true},
		&SessionModificationResponse{Cause: CauseRuleFailure, Offending: ieUpdateFAR,
			Failed: &FailedRule{Type: RuleFAR, ID: 9}},
		&SessionModificationResponse{Cause: CauseRuleFailure, Failed: &FailedRule{Type: RuleBAR, ID: 9}},
		&SessionDeletionRequest{},
		&SessionDeletionResponse{Cause: CauseMoreUsageReports, Usage: []UsageReport{richUsage(1)}, MoreUsage: true},
		&SessionReportRequest{DownlinkPDR: []uint16{1, 2}, DownlinkQFI: 9, DSCP: ptr(uint8(46)),
			Usage: []UsageReport{richUsage(3)}, Errors: []FTEID{{TEID: 4, IPv4: v4b}, {TEID: 5, IPv6: v6a}},
			Inactive: true},
		&SessionReportRequest{DownlinkPDR: []uint16{1}},
		&SessionReportRequest{Inactive: true, OldCP: &FSEID{SEID: 7, IPv4: v4a}},
		&SessionReportResponse{Cause: CauseAccepted, CP: &FSEID{SEID: 8, IPv4: v4b, IPv6: v6a}},
		&SessionReportResponse{Cause: CauseRedirectionRequested, Alternative: []netip.Addr{v4a}},
		&SessionReportResponse{Cause: CauseAccepted, DropBuffered: true, UpdateBAR: &UpdateBAR{ID: 1,
			NotifyDelay: ptr(time.Duration(0)), Duration: ptr(20 * time.Second), BufferPackets: ptr(uint16(300)),
			SuggestedPackets: ptr(uint8(1))}},
	}
}
