// SPDX-License-Identifier: Apache-2.0

package pfcp

// IE types (TS 29.244 §8.1.2).
const (
	ieCreatePDR                 uint16 = 1
	iePDI                       uint16 = 2
	ieCreateFAR                 uint16 = 3
	ieForwardingParameters      uint16 = 4
	ieDuplicatingParameters     uint16 = 5
	ieCreateURR                 uint16 = 6
	ieCreateQER                 uint16 = 7
	ieCreatedPDR                uint16 = 8
	ieUpdatePDR                 uint16 = 9
	ieUpdateFAR                 uint16 = 10
	ieUpdateForwarding          uint16 = 11
	ieUpdateBARReport           uint16 = 12
	ieUpdateURR                 uint16 = 13
	ieUpdateQER                 uint16 = 14
	ieRemovePDR                 uint16 = 15
	ieRemoveFAR                 uint16 = 16
	ieRemoveURR                 uint16 = 17
	ieRemoveQER                 uint16 = 18
	ieCause                     uint16 = 19
	ieSourceInterface           uint16 = 20
	ieFTEID                     uint16 = 21
	ieNetworkInstance           uint16 = 22
	ieSDFFilter                 uint16 = 23
	ieApplicationID             uint16 = 24
	ieGateStatus                uint16 = 25
	ieMBR                       uint16 = 26
	ieGBR                       uint16 = 27
	ieQERCorrelationID          uint16 = 28
	iePrecedence                uint16 = 29
	ieTransportLevelMarking     uint16 = 30
	ieVolumeThreshold           uint16 = 31
	ieTimeThreshold             uint16 = 32
	ieMonitoringTime            uint16 = 33
	ieSubsequentVolumeThreshold uint16 = 34
	ieSubsequentTimeThreshold   uint16 = 35
	ieInactivityDetectionTime   uint16 = 36
	ieReportingTriggers         uint16 = 37
	ieRedirectInformation       uint16 = 38
	ieReportType                uint16 = 39
	ieOffendingIE               uint16 = 40
	ieForwardingPolicy          uint16 = 41
	ieDestinationInterface      uint16 = 42
	ieUPFeatures                uint16 = 43
	ieApplyAction               uint16 = 44
	ieDownlinkDataService       uint16 = 45
	ieNotificationDelay         uint16 = 46
	ieBufferingDuration         uint16 = 47
	ieBufferingPacketCount      uint16 = 48
	ieSMReqFlags                uint16 = 49
	ieSRRspFlags                uint16 = 50
	iePDRID                     uint16 = 56
	ieFSEID                     uint16 = 57
	ieApplicationPFDs           uint16 = 58
	iePFDContext                uint16 = 59
	ieNodeID                    uint16 = 60
	iePFDContents               uint16 = 61
	ieMeasurementMethod         uint16 = 62
	ieUsageReportTrigger        uint16 = 63
	ieMeasurementPeriod         uint16 = 64
	ieFQCSID                    uint16 = 65
	ieVolumeMeasurement         uint16 = 66
	ieDurationMeasurement       uint16 = 67
	ieTimeOfFirstPacket         uint16 = 69
	ieTimeOfLastPacket          uint16 = 70
	ieQuotaHoldingTime          uint16 = 71
	ieDroppedThreshold          uint16 = 72
	ieVolumeQuota               uint16 = 73
	ieTimeQuota                 uint16 = 74
	ieStartTime                 uint16 = 75
	ieEndTime                   uint16 = 76
	ieQueryURR                  uint16 = 77
	ieUsageModification         uint16 = 78
	ieUsageDeletion             uint16 = 79
	ieUsageReport               uint16 = 80
	ieURRID                     uint16 = 81
	ieLinkedURRID               uint16 = 82
	ieDownlinkDataReport        uint16 = 83
	ieOuterHeaderCreation       uint16 = 84
	ieCreateBAR                 uint16 = 85
	ieUpdateBAR                 uint16 = 86
	ieRemoveBAR                 uint16 = 87
	ieBARID                     uint16 = 88
	ieCPFeatures                uint16 = 89
	ieUsageInformation          uint16 = 90
	ieUEIP                      uint16 = 93
	iePacketRate                uint16 = 94
	ieOuterHeaderRemoval        uint16 = 95
	ieRecoveryTimeStamp         uint16 = 96
	ieFlowLevelMarking          uint16 = 97
	ieHeaderEnrichment          uint16 = 98
	ieErrorIndicationReport     uint16 = 99
	ieMeasurementInformation    uint16 = 100
	ieNodeReportType            uint16 = 101
	iePathFailureReport         uint16 = 102
	ieRemotePeer                uint16 = 103
	ieURSEQN                    uint16 = 104
	ieUpdateDuplicating         uint16 = 105
	ieActivatePredefined        uint16 = 106
	ieDeactivatePredefined      uint16 = 107
	ieFARID                     uint16 = 108
	ieQERID                     uint16 = 109
	ieAssociationRelease        uint16 = 111
	ieGracefulPeriod            uint16 = 112
	iePDNType                   uint16 = 113
	ieFailedRuleID              uint16 = 114
	ieTimeQuotaMechanism        uint16 = 115
	ieInactivityTimer           uint16 = 117
	ieAggregatedURRs            uint16 = 118
	ieSubsequentVolumeQuota     uint16 = 121
	ieSubsequentTimeQuota       uint16 = 122
	ieRQI                       uint16 = 123
	ieQFI                       uint16 = 124
	ieQueryReference            uint16 = 125
	ieAdditionalReports         uint16 = 126
	ieCreateEndpoint            uint16 = 127
	ieCreatedEndpoint           uint16 = 128
	ieUpdateEndpoint            uint16 = 129
	ieRemoveEndpoint            uint16 = 130
	ieEndpointID                uint16 = 131
	ieEthernetPacketFilter      uint16 = 132
	ieProxying                  uint16 = 137
	ieSuggestedPackets          uint16 = 140
	ieUserID                    uint16 = 141
	ieEthernetSession           uint16 = 142
	ieEthernetInactivity        uint16 = 146
	ieAdditionalMonitoring      uint16 = 147
	ieEventQuota                uint16 = 148
	ieEventThreshold            uint16 = 149
	ieSubsequentEventQuota      uint16 = 150
	ieSubsequentEventThreshold  uint16 = 151
	ieTraceInformation          uint16 = 152
	ieFramedRoute               uint16 = 153
	ieFramedRouting             uint16 = 154
	ieFramedIPv6Route           uint16 = 155
	ieEventTimeStamp            uint16 = 156
	ieAveragingWindow           uint16 = 157
	iePagingPolicy              uint16 = 158
	ieAPNDNN                    uint16 = 159
	ieInterfaceType             uint16 = 160
	ieActivationTime            uint16 = 163
	ieDeactivationTime          uint16 = 164
	ieCreateMAR                 uint16 = 165
	ieRemoveMAR                 uint16 = 168
	ieUpdateMAR                 uint16 = 169
	ieMARID                     uint16 = 170
	iePoolIdentity              uint16 = 177
	ieAlternativeSMF            uint16 = 178
	iePacketReplication         uint16 = 179
	ieSMFSetID                  uint16 = 180
	ieQuotaValidityTime         uint16 = 181
	ieNumberOfReports           uint16 = 182
	ieSessionRetention          uint16 = 183
	ieASRspFlags                uint16 = 184
	ieCPEntityAddress           uint16 = 185
	ieSEReqFlags                uint16 = 186
	iePathRecoveryReport        uint16 = 187
	ieIPMulticast               uint16 = 188
	ieSourceAddress             uint16 = 192
	iePacketRateStatus          uint16 = 193
	ieCreateBridge              uint16 = 194
	ieTSCManagement             uint16 = 199
	ieRemoveSRR                 uint16 = 211
	ieCreateSRR                 uint16 = 212
	ieUpdateSRR                 uint16 = 213
	ieAccessAvailability        uint16 = 216
	ieAccessInformation         uint16 = 219
	ieATSSSControl              uint16 = 220
	ieDNAI                      uint16 = 232
	iePoolInformation           uint16 = 233
	ieMTEDTControl              uint16 = 249
	ieQERControl                uint16 = 251
	ieEthernetContext           uint16 = 254
	ieRedundantTransmission     uint16 = 255
	ieSNSSAI                    uint16 = 257
	ieRDSConfiguration          uint16 = 261
	ieQueryPacketRate           uint16 = 263
	ieMPTCPApplicable           uint16 = 265
	ieRedundantForwarding       uint16 = 270
	ieTransportDelay            uint16 = 271

	ieLimit uint16 = 272 // above, we know none
)

// bounds are the lengths of an IE's value that Decode lets through to its reader.
type bounds struct{ min, max uint16 }

// noMax is the upper bound of IEs of variable length, and of flags, which newer peers send longer: unknown octets are
// ignored (TS 29.244 §8.1.1, "extendable").
const noMax = 0xffff

// lengths are the bounds of every accepted IE (TS 29.244 §8.2). Purely numeric IEs are never longer than the
// standard's: in practice a longer one is a mistake, not an extension. {0, 0} marks grouped IEs.
var lengths = [ieLimit]bounds{
	ieCause: {1, 1}, ieSourceInterface: {1, 1}, ieFTEID: {1, 25}, ieNetworkInstance: {0, noMax}, ieSDFFilter: {2,
		noMax},
	ieApplicationID: {1, noMax}, ieGateStatus: {1, 1}, ieMBR: {10, 10}, ieGBR: {10, 10}, ieQERCorrelationID: {4, 4},
	iePrecedence: {4, 4}, ieTransportLevelMarking: {2, 2}, ieVolumeThreshold: {1, 25}, ieTimeThreshold: {4, 4},
	ieMonitoringTime: {4, 4}, ieSubsequentVolumeThreshold: {1, 25}, ieSubsequentTimeThreshold: {4, 4},
	ieInactivityDetectionTime: {4, 4}, ieReportingTriggers: {2, noMax}, ieRedirectInformation: {3, noMax},
	ieReportType: {1, noMax}, ieOffendingIE: {2, 2}, ieForwardingPolicy: {1, 256}, ieDestinationInterface: {1, 1},
	ieUPFeatures: {2, noMax}, ieApplyAction: {1, noMax}, ieDownlinkDataService: {1, 3}, ieNotificationDelay: {1, 1},
	ieBufferingDuration: {1, 1}, ieBufferingPacketCount: {1, 2}, ieSMReqFlags: {1, noMax}, ieSRRspFlags: {1, noMax},
	iePDRID: {2, 2}, ieFSEID: {9, 29}, ieNodeID: {2, 256}, iePFDContents: {2, noMax}, ieMeasurementMethod: {1, noMax},
	ieUsageReportTrigger: {2, noMax}, ieMeasurementPeriod: {4, 4}, ieFQCSID: {7, 48}, ieVolumeMeasurement: {1, 49},
	ieDurationMeasurement: {4, 4}, ieTimeOfFirstPacket: {4, 4}, ieTimeOfLastPacket: {4, 4}, ieQuotaHoldingTime: {4, 4},
	ieDroppedThreshold: {1, 17}, ieVolumeQuota: {1, 25}, ieTimeQuota: {4, 4}, ieStartTime: {4, 4}, ieEndTime: {4, 4},
	ieUsageInformation: {1, noMax}, ieURRID: {4, 4}, ieLinkedURRID: {4, 4}, ieOuterHeaderCreation: {2, 34},
	ieBARID: {1, 1}, ieCPFeatures: {1, noMax},
	ieUEIP: {1, 23}, ieOuterHeaderRemoval: {1, 2}, ieRecoveryTimeStamp: {4, 4}, ieMeasurementInformation: {1, noMax},
	ieNodeReportType: {1, noMax}, ieRemotePeer: {1, noMax}, ieURSEQN: {4, 4}, ieActivatePredefined: {1, noMax},
	ieFARID: {4, 4}, ieQERID: {4, 4}, ieAssociationRelease: {1, noMax}, ieGracefulPeriod: {1, 1}, iePDNType: {1, 1},
	ieFailedRuleID: {2, 5}, ieInactivityTimer: {4, 4}, ieRQI: {1, 1}, ieQFI: {1, 1}, ieQueryReference: {4, 4},
	ieAdditionalReports: {2, 2}, ieEndpointID: {1, 1}, ieSuggestedPackets: {1, 1}, ieUserID: {1, noMax},
	ieEventQuota: {4, 4}, ieEventThreshold: {4, 4}, ieFramedRoute: {1, 512}, ieFramedRouting: {4, 4},
	ieFramedIPv6Route: {1, 512}, ieEventTimeStamp: {4, 4}, ieAveragingWindow: {4, 4}, ieAPNDNN: {0, 256},
	ieInterfaceType: {1, 1}, ieActivationTime: {4, 4}, ieDeactivationTime: {4, 4}, ieAlternativeSMF: {5, 21},
	ieSMFSetID: {2, 257}, ieQuotaValidityTime: {4, 4}, ieASRspFlags: {1, noMax}, ieCPEntityAddress: {5, 21},
	ieSEReqFlags: {1, noMax}, ieSourceAddress: {5, 22}, ieSNSSAI: {4, 4}, iePoolIdentity: {2, noMax},
	ieFlowLevelMarking: {1, 5},
}

// grouped are the IEs that hold IEs, served or not: they are walked before any value is read (TS 29.244 §8.1.1).
var grouped = func() (set [ieLimit]bool) {
	for _, ie := range []uint16{ieCreatePDR, iePDI, ieCreateFAR, ieForwardingParameters, ieDuplicatingParameters,
		ieCreateURR, ieCreateQER, ieCreatedPDR, ieUpdatePDR, ieUpdateFAR, ieUpdateForwarding, ieUpdateBARReport,
		ieUpdateURR, ieUpdateQER, ieRemovePDR, ieRemoveFAR, ieRemoveURR, ieRemoveQER, ieApplicationPFDs, iePFDContext,
		ieQueryURR, ieUsageModification, ieUsageDeletion, ieUsageReport, ieDownlinkDataReport, ieCreateBAR, ieUpdateBAR,
		ieRemoveBAR, ieErrorIndicationReport, iePathFailureReport, ieUpdateDuplicating, ieCreateEndpoint,
		ieCreatedEndpoint, ieUpdateEndpoint, ieRemoveEndpoint, ieEthernetPacketFilter, ieSessionRetention,
		iePathRecoveryReport, iePoolInformation} {
		set[ie] = true
	}
	return set
}()
