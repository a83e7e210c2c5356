// SPDX-License-Identifier: Apache-2.0

// Package pfcp converts PFCP (TS 29.244) between octets and typed messages. Decode works by tables of the standard. It
// refuses, with the standard's cause and the offending IE, a missing mandatory IE, a wrong length, or a value that is
// not served. Callers see validated values only: no raw IE, no nil where a value must be. Tests compare with
// wmnsk/go-pfcp, scapy and tshark.
//
// All functions are pure and may be called from any goroutine.
package pfcp

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Port is where PFCP entities listen (TS 29.244 §6.1).
const Port = 8805

// Cause is TS 29.244 §8.2.1.
type Cause uint8

const (
	CauseAccepted               Cause = 1
	CauseMoreUsageReports       Cause = 2
	CauseAcceptedPartially      Cause = 3
	CauseRejected               Cause = 64
	CauseContextNotFound        Cause = 65
	CauseMandatoryIEMissing     Cause = 66
	CauseConditionalIEMissing   Cause = 67
	CauseInvalidLength          Cause = 68
	CauseMandatoryIEIncorrect   Cause = 69
	CauseInvalidForwarding      Cause = 70
	CauseInvalidFTEIDAllocation Cause = 71
	CauseNoAssociation          Cause = 72
	CauseRuleFailure            Cause = 73
	CauseCongestion             Cause = 74
	CauseNoResources            Cause = 75
	CauseServiceNotSupported    Cause = 76
	CauseSystemFailure          Cause = 77
	CauseRedirectionRequested   Cause = 78
	CauseAllDynamicAddresses    Cause = 79
)

// Error is why a message is refused. It becomes the response's Cause, Offending IE and Failed Rule ID.
type Error struct {
	Cause     Cause
	Offending uint16      // IE type; 0: none
	Rule      *FailedRule // nil: none
	Text      string      // for the log
}

func (e *Error) Error() string {
	text := fmt.Sprintf("cause %d: %s", e.Cause, e.Text)
	if e.Offending != 0 {
		text += fmt.Sprintf(" (IE %d)", e.Offending)
	}
	return text
}

// MessageType is TS 29.244 §7.3.
type MessageType uint8

const (
	HeartbeatRequestType               MessageType = 1
	HeartbeatResponseType              MessageType = 2
	PFDManagementRequestType           MessageType = 3
	PFDManagementResponseType          MessageType = 4
	AssociationSetupRequestType        MessageType = 5
	AssociationSetupResponseType       MessageType = 6
	AssociationUpdateRequestType       MessageType = 7
	AssociationUpdateResponseType      MessageType = 8
	AssociationReleaseRequestType      MessageType = 9
	AssociationReleaseResponseType     MessageType = 10
	VersionNotSupportedResponseType    MessageType = 11
	NodeReportRequestType              MessageType = 12
	NodeReportResponseType             MessageType = 13
	SessionSetDeletionRequestType      MessageType = 14
	SessionSetDeletionResponseType     MessageType = 15
	SessionSetModificationRequestType  MessageType = 16
	SessionSetModificationResponseType MessageType = 17
	SessionEstablishmentRequestType    MessageType = 50
	SessionEstablishmentResponseType   MessageType = 51
	SessionModificationRequestType     MessageType = 52
	SessionModificationResponseType    MessageType = 53
	SessionDeletionRequestType         MessageType = 54
	SessionDeletionResponseType        MessageType = 55
	SessionReportRequestType           MessageType = 56
	SessionReportResponseType          MessageType = 57
)

// Header is what every message begins with (TS 29.244 §7.2.2).
type Header struct {
	Type     MessageType
	HasSEID  bool
	SEID     uint64
	Sequence uint32 // 24 bits
	Priority uint8  // message priority, 0 without
}

// Message is one of the typed messages below, as a pointer.
type Message interface {
	MessageType() MessageType
}

// NodeID is TS 29.244 §8.2.38: an address or a name.
type NodeID struct {
	Addr netip.Addr
	FQDN string
}

// ParseNodeID is String's inverse.
func ParseNodeID(text string) NodeID {
	if a, err := netip.ParseAddr(text); err == nil {
		return NodeID{Addr: a}
	}
	return NodeID{FQDN: text}
}

func (n NodeID) String() string {
	if n.Addr.IsValid() {
		return n.Addr.String()
	}
	return n.FQDN
}

// FSEID is TS 29.244 §8.2.37.
type FSEID struct {
	SEID       uint64
	IPv4, IPv6 netip.Addr
}

// ---- node messages
// ---------------------------------------------------------------------------------------------------

// Lax is part of messages with optional IEs that may be unreadable. Such an IE counts as absent (TS 29.244 §7.6): a
// peer with a wrong encoding loses that IE only.
type Lax struct {
	Unread []uint16 // types of the IEs that could not be read, each once
}

func (l *Lax) skip(ie uint16) {
	if !slices.Contains(l.Unread, ie) {
		l.Unread = append(l.Unread, ie)
	}
}

// Unreadable lists the IEs that could not be read of an accepted message.
func (l *Lax) Unreadable() []uint16 { return l.Unread }

type HeartbeatRequest struct {
	Lax
	Recovery time.Time // whole seconds
	Source   netip.Addr
}

type HeartbeatResponse struct{ Recovery time.Time }

// Feature bits: octet 5 in bits 0..7, octet 6 in 8..15 and so on (TS 29.244 §8.2.25 UP, §8.2.58 CP).
const (
	UPBucp  uint64 = 1 << 0  // downlink buffering in the CP function
	UPDdnd  uint64 = 1 << 1  // BAR: downlink data notification delay
	UPDlbd  uint64 = 1 << 2  // BAR: downlink buffering duration
	UPTrst  uint64 = 1 << 3  // traffic steering
	UPFtup  uint64 = 1 << 4  // F-TEID allocation in the UP function
	UPPfdm  uint64 = 1 << 5  // PFD management
	UPHeeu  uint64 = 1 << 6  // header enrichment
	UPTreu  uint64 = 1 << 7  // traffic redirection enforcement
	UPEmpu  uint64 = 1 << 8  // end marker packets
	UPPdiu  uint64 = 1 << 9  // PDI optimisation
	UPQuoac uint64 = 1 << 11 // quota action
	UPFrrt  uint64 = 1 << 13 // framed routing
	UPUeip  uint64 = 1 << 18 // UE address allocation
	UPSset  uint64 = 1 << 19 // SMF sets
	UPMnop  uint64 = 1 << 20 // packets measured
	UPBundl uint64 = 1 << 22
	UPMpas  uint64 = 1 << 24 // several associations of one SMF set
	UPVtime uint64 = 1 << 26 // quota validity time
	UPIP6pl uint64 = 1 << 29 // IPv6 prefixes other than /64
	UPMptcp uint64 = 1 << 31

	CPLoad uint64 = 1 << 0
	CPOvrl uint64 = 1 << 1
	CPSset uint64 = 1 << 3
	CPMpas uint64 = 1 << 5
)

// UEPool is part of TS 29.244 §7.4.4.1: UE address pools of a network instance.
type UEPool struct {
	NetworkInstance string
	Pool            string
}

type AssociationSetupRequest struct {
	Lax
	Node      NodeID
	Recovery  time.Time
	FromUP    bool         // the sender is a UP function
	Features  uint64       // of the sender: UP* when it is a UP function, CP* when it is a CP function
	SetID     string       // FQDN of the SMF set; empty: none
	Retention *Retention   // sessions that the sender asks us to keep (TS 29.244 §5.22)
	Addresses []netip.Addr // alternative SMF addresses
	UEPools   []UEPool     // UP function with UPUeip: what it allocates from
}

// Retention is TS 29.244 §7.4.4.1.1-2 (PFCP Session Retention Information); without addresses: of all.
type Retention struct{ CPEntities []netip.Addr }

type AssociationSetupResponse struct {
	Lax
	Node      NodeID
	Cause     Cause
	Recovery  time.Time
	FromUP    bool // the sender is a UP function
	Features  uint64
	Retained  bool // UP function: sessions were kept (Session Retention Information accepted, PSREI)
	Offend    uint16
	SetID     string // as in the request; so are the next two
	Addresses []netip.Addr
	UEPools   []UEPool
}

type AssociationUpdateRequest struct {
	Lax
	Node           NodeID
	FromUP         bool // the features are those of a UP function
	Features       *uint64
	ReleaseRequest bool          // the UP function asks for the release
	GracefulPeriod time.Duration // 0: none
	Addresses      []netip.Addr  // alternative SMF addresses; none: unchanged
}

type AssociationUpdateResponse struct {
	Lax
	Node     NodeID
	Cause    Cause
	FromUP   bool
	Features *uint64
}

type AssociationReleaseRequest struct{ Node NodeID }
type AssociationReleaseResponse struct {
	Node  NodeID
	Cause Cause
}

// RemotePeer is a GTP-U peer of a Node Report (TS 29.244 §8.2.70).
type RemotePeer struct {
	Addr            netip.Addr
	NetworkInstance string
	Interface       *uint8 // destination interface
}

type NodeReportRequest struct {
	Node     NodeID
	Failed   []RemotePeer // user plane path failure
	Restored []RemotePeer // user plane path recovery
}

type NodeReportResponse struct {
	Node      NodeID
	Cause     Cause
	Offending uint16
}

type SessionSetDeletionRequest struct {
	Node   NodeID
	FQCSID [][]byte // raw values of the FQ-CSIDs named, at least one
}

type SessionSetDeletionResponse struct {
	Node      NodeID
	Cause     Cause
	Offending uint16
}

// PFD is one packet flow description (TS 29.244 §8.2.39). What is empty does not constrain.
type PFD struct {
	Flow   string // IPFilterRule
	URL    string
	Domain string
	Custom string
}

// ApplicationPFDs replaces all PFDs of an application; none: they are removed.
type ApplicationPFDs struct {
	Application string
	PFDs        []PFD
}

type PFDManagementRequest struct {
	Applications []ApplicationPFDs // none: all PFDs of all applications are removed
}

type PFDManagementResponse struct {
	Cause     Cause
	Offending uint16
}

type VersionNotSupportedResponse struct{}

// ---- sessions
// --------------------------------------------------------------------------------------------------------

// Interface is TS 29.244 §8.2.2 and §8.2.24.
type Interface uint8

const (
	Access Interface = 0
	Core   Interface = 1
	SGiLAN Interface = 2
	CPSide Interface = 3
)

// FTEID is TS 29.244 §8.2.3. With Choose, WantIPv4 and WantIPv6 are the families to allocate; with HasChooseID, PDRs of
// one ChooseID share the F-TEID. Without Choose, a ChooseID is the id of the allocation.
type FTEID struct {
	TEID        uint32
	IPv4, IPv6  netip.Addr
	Choose      bool
	WantIPv4    bool
	WantIPv6    bool
	HasChooseID bool
	ChooseID    uint8
}

// Same: two chosen F-TEIDs are equal.
func (f *FTEID) Same(o FTEID) bool { return f.TEID == o.TEID && f.IPv4 == o.IPv4 && f.IPv6 == o.IPv6 }

// UEIP is TS 29.244 §8.2.62.
type UEIP struct {
	IPv4         netip.Addr
	IPv6         netip.Prefix // /64, or by the prefix length
	Destination  bool         // S/D flag
	ChooseIPv4   bool         // CHV4
	ChooseIPv6   bool         // CHV6
	ChooseLength uint8        // prefix length asked for with CHV6; 0: 64
}

// SDFFilter is TS 29.244 §8.2.5, decoded but not compiled.
type SDFFilter struct {
	Flow      string // IPFilterRule; empty: none
	ToS, Mask uint8
	HasToS    bool
	SPI       uint32
	HasSPI    bool
	FlowLabel uint32 // 20 bits
	HasLabel  bool
	ID        uint32 // with an id alone, a filter refers to a bidirectional one defined elsewhere in the session
	HasID     bool
}

// PDI is TS 29.244 §7.5.2.2-2.
type PDI struct {
	Source          Interface
	LocalFTEID      *FTEID
	NetworkInstance string
	UEIP            []UEIP
	TrafficEndpoint *uint8
	SDF             []SDFFilter
	Application     string
	QFI             []uint8
	FramedRoutes    []netip.Prefix // IPv4 and IPv6
	InterfaceType   *uint8         // 3GPP interface type (§8.2.118)
}

// RemoveContainer is set in an Outer Header Removal whose GTP-U extension header deletion has the PDU Session Container
// (TS 29.244 table 8.2.64-2); descriptions are below it.
const RemoveContainer = 0x80

type CreatePDR struct {
	ID                 uint16
	Precedence         uint32
	PDI                PDI
	OuterHeaderRemoval *uint8 // §8.2.64, with RemoveContainer
	FAR                *uint32
	URR                []uint32
	QER                []uint32
	ActivatePredefined []string
	Activation         time.Time // zero: at once
	Deactivation       time.Time
}

// UpdatePDR: nil is unchanged.
type UpdatePDR struct {
	ID                 uint16
	Precedence         *uint32
	PDI                *PDI
	OuterHeaderRemoval *uint8
	FAR                *uint32
	URR                *[]uint32
	QER                *[]uint32
	ActivatePredefined []string
}

// ApplyAction is TS 29.244 §8.2.26: octet 5 in bits 0..7, octet 6 in 8..15.
type ApplyAction uint16

const (
	ActionDrop      ApplyAction = 1 << 0
	ActionForward   ApplyAction = 1 << 1
	ActionBuffer    ApplyAction = 1 << 2
	ActionNotify    ApplyAction = 1 << 3
	ActionDuplicate ApplyAction = 1 << 4
)

// OuterHeader is TS 29.244 §8.2.56. Description is octet 5 in bits 8..15 and octet 6 in 0..7, as on the wire.
type OuterHeader struct {
	Description uint16
	TEID        uint32
	IPv4, IPv6  netip.Addr
	Port        uint16
}

const (
	OuterGTPUIPv4 uint16 = 0x0100
	OuterGTPUIPv6 uint16 = 0x0200
	OuterUDPIPv4  uint16 = 0x0400
	OuterUDPIPv6  uint16 = 0x0800
	OuterIPv4     uint16 = 0x1000
	OuterIPv6     uint16 = 0x2000
)

// Redirect is TS 29.244 §8.2.20. Type: 0 IPv4, 1 IPv6, 2 URL, 3 SIP URI, 4 IPv4 and IPv6.
type Redirect struct {
	Type    uint8
	Address string
	Other   string
}

// Forwarding is (Update) Forwarding Parameters (TS 29.244 §7.5.2.3-2). In an update, nil is unchanged.
type Forwarding struct {
	Destination      *Interface
	NetworkInstance  *string
	OuterHeader      *OuterHeader
	TransportMarking *uint8 // DSCP
	Redirect         *Redirect
	Policy           string
	LinkedEndpoint   *uint8
	InterfaceType    *uint8 // Destination Interface Type (§8.2.118)
	SendEndMarker    bool   // PFCPSMReq-Flags SNDEM
	DropBuffered     bool   // PFCPSMReq-Flags DROBU, of the session wherever it stands
}

// Duplicating is TS 29.244 §7.5.2.3-3.
type Duplicating struct {
	Destination      Interface
	OuterHeader      *OuterHeader
	TransportMarking *uint8
}

type CreateFAR struct {
	ID          uint32
	Action      ApplyAction
	Forwarding  *Forwarding
	Duplicating *Duplicating
	BAR         *uint8
}

type UpdateFAR struct {
	ID          uint32
	Action      *ApplyAction
	Forwarding  *Forwarding
	Duplicating *Duplicating
	BAR         *uint8
}

// CreateQER and UpdateQER: nil is absent (unchanged). Rates are kilobits per second (TS 29.244 §8.2.8, §8.2.9).
type CreateQER struct {
	ID              uint32
	Correlation     *uint32
	GateUplink      *uint8 // 0 open, 1 closed; mandatory in a creation
	GateDownlink    *uint8
	MBRUplink       *uint64
	MBRDownlink     *uint64
	GBRUplink       *uint64
	GBRDownlink     *uint64
	QFI             *uint8
	RQI             *bool
	AveragingWindow *uint32 // milliseconds
	FlowMarking     *uint8  // DSCP of the UE's downlink packets
}

type UpdateQER = CreateQER

// Volumes is a volume threshold or quota; nil is absent.
type Volumes struct{ Total, Uplink, Downlink *uint64 }

// CreateURR and UpdateURR: nil is absent (unchanged). Triggers and methods have the bits of api/isthmus_api.h.
type CreateURR struct {
	ID                        uint32
	Method                    *uint8  // bit 0 DURAT, 1 VOLUM, 2 EVENT, as on the wire
	Triggers                  *uint32 // octet 5 in bits 0..7, octet 6 in 8..15, octet 7 in 16..23
	Period                    *time.Duration
	VolumeThreshold           *Volumes
	VolumeQuota               *Volumes
	TimeThreshold             *time.Duration
	TimeQuota                 *time.Duration
	EventThreshold            *uint32
	EventQuota                *uint32
	HoldingTime               *time.Duration // quota holding time
	ValidityTime              *time.Duration // quota validity time
	InactivityTime            *time.Duration // inactivity detection time
	MonitoringTime            *time.Time
	SubsequentVolumeThreshold *Volumes
	SubsequentTimeThreshold   *time.Duration
	Linked                    []uint32
	Information               *uint8 // measurement information (§8.2.68): MBQE INAM RADI ISTM MNOP ... from bit 0
	QuotaFAR                  *uint32
	DroppedPackets            *uint64 // dropped DL traffic threshold
	DroppedBytes              *uint64
}

type UpdateURR = CreateURR

// CreateBAR and UpdateBAR: nil is absent.
type CreateBAR struct {
	ID               uint8
	NotifyDelay      *time.Duration // steps of 50 ms
	SuggestedPackets *uint8
	Duration         *time.Duration // DL buffering duration, in a report's response
	BufferPackets    *uint16        // DL buffering suggested packet count
}

type UpdateBAR = CreateBAR

// CreateTrafficEndpoint is TS 29.244 §7.5.2.7: PDI optimisation.
type CreateTrafficEndpoint struct {
	ID              uint8
	LocalFTEID      *FTEID
	NetworkInstance string
	UEIP            []UEIP
	FramedRoutes    []netip.Prefix
	QFI             []uint8
}

type SessionEstablishmentRequest struct {
	Node           NodeID
	CP             FSEID
	PDR            []CreatePDR
	FAR            []CreateFAR
	QER            []CreateQER
	URR            []CreateURR
	BAR            []CreateBAR
	Endpoint       []CreateTrafficEndpoint
	PDNType        *uint8
	UserID         string // IMSI or another User ID, for display
	APN            string
	Inactivity     time.Duration // user plane inactivity timer; 0: none
	Restoration    bool          // PFCPSEReq-Flags RESTI: the F-TEIDs given were ours before we restarted
	FQCSID         [][]byte
	SNSSAI         string
	RecoveryOfPeer time.Time
}

// Created answers what we chose for a PDR or a traffic endpoint.
type Created[ID uint8 | uint16] struct {
	ID         ID
	LocalFTEID *FTEID
	UEIP       []UEIP
}

type (
	CreatedPDR      = Created[uint16]
	CreatedEndpoint = Created[uint8]
)

type SessionEstablishmentResponse struct {
	Node      NodeID
	Cause     Cause
	Offending uint16
	Failed    *FailedRule
	UP        FSEID // valid when accepted
	Created   []CreatedPDR
	Endpoints []CreatedEndpoint
	Text      string // why it is refused: for the log, not on the wire
}

// SessionModificationRequest: the removals, creations and updates are one change, applied whole or not at all.
type SessionModificationRequest struct {
	CP             *FSEID
	RemovePDR      []uint16
	RemoveFAR      []uint32
	RemoveQER      []uint32
	RemoveURR      []uint32
	RemoveBAR      []uint8
	RemoveEndpoint []uint8
	CreatePDR      []CreatePDR
	CreateFAR      []CreateFAR
	CreateQER      []CreateQER
	CreateURR      []CreateURR
	CreateBAR      []CreateBAR
	CreateEndpoint []CreateTrafficEndpoint
	UpdatePDR      []UpdatePDR
	UpdateFAR      []UpdateFAR
	UpdateQER      []UpdateQER
	UpdateURR      []UpdateURR
	UpdateBAR      []UpdateBAR
	UpdateEndpoint []CreateTrafficEndpoint
	QueryURR       []uint32
	QueryAll       bool           // QAURR
	QueryReference *uint32        // goes into the usage reports that answer the query
	DropBuffered   bool           // DROBU
	EndMarkers     bool           // SNDEM, of every FAR that the message gives another tunnel
	Inactivity     *time.Duration // nil: unchanged
	Node           *NodeID        // a new CP entity of an SMF set took the session over
	FQCSID         [][]byte       // the session's FQ-CSIDs from now on; none: unchanged
	SNSSAI         string         // empty: unchanged
}

type SessionModificationResponse struct {
	Cause     Cause
	Offending uint16
	Failed    *FailedRule
	Created   []CreatedPDR
	Endpoints []CreatedEndpoint
	Usage     []UsageReport
	MoreUsage bool
	Text      string // why it is refused: for the log, not on the wire
}

type SessionDeletionRequest struct{}

type SessionDeletionResponse struct {
	Cause     Cause
	Offending uint16
	Usage     []UsageReport
	MoreUsage bool
	Text      string // why it is refused: for the log, not on the wire
}

// UsageReport is TS 29.244 §7.5.8.3. What the URR did not measure is nil.
type UsageReport struct {
	URR         uint32
	Sequence    uint32
	Trigger     uint32 // octet 5 in bits 0..7, 6 in 8..15, 7 in 16..23
	Start, End  time.Time
	Volume      *[3]uint64 // total, uplink, downlink, bytes
	Packets     *[3]uint64
	Duration    *time.Duration
	First, Last time.Time // of a packet; zero: none
	Query       *uint32   // query URR reference
	Events      []time.Time
	Information uint8 // usage information (§8.2.59), 0: none
}

// SessionReportRequest is one report to the CP function; what is nil or empty is not reported.
type SessionReportRequest struct {
	DownlinkPDR []uint16 // DLDR: PDRs whose packets wait
	DownlinkQFI uint8    // paging policy: of the first packet; 0: none
	DSCP        *uint8
	Usage       []UsageReport
	Errors      []FTEID // ERIR: remote F-TEIDs that the peer does not know
	Inactive    bool    // UPIR
	OldCP       *FSEID  // of the session, for another member of the SMF set; then the header's SEID is 0
}

// SessionReportResponse may change the BAR (§7.5.9).
type SessionReportResponse struct {
	Lax
	Cause        Cause
	Offending    uint16
	UpdateBAR    *UpdateBAR
	DropBuffered bool
	CP           *FSEID       // for what follows: another member of the SMF set took the session over
	Alternative  []netip.Addr // with cause 78: the member to ask
}
