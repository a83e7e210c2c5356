// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"time"

	"github.com/free5gc/pfcp"
	"github.com/free5gc/pfcp/pfcpType"
)

func (s *smf) node() *pfcpType.NodeID {
	return &pfcpType.NodeID{NodeIdType: pfcpType.NodeIdTypeIpv4Address, IP: s.self}
}

func (s *smf) recovery() *pfcpType.RecoveryTimeStamp {
	return &pfcpType.RecoveryTimeStamp{RecoveryTimeStamp: s.start}
}

func (s *smf) fseid() *pfcpType.FSEID {
	return &pfcpType.FSEID{V4: true, Seid: localSEID, Ipv4Address: s.self}
}

func instance() *pfcpType.NetworkInstance {
	return &pfcpType.NetworkInstance{NetworkInstance: "internet"}
}

func urrs() []*pfcpType.URRID { return []*pfcpType.URRID{{UrrIdValue: 1}, {UrrIdValue: 2}} }
func qers() []*pfcpType.QERID { return []*pfcpType.QERID{{QERID: 2}, {QERID: 1}} }

func fars(n uint32) *pfcpType.FARID { return &pfcpType.FARID{FarIdValue: n} }

func (s *smf) up() *pfcp.CreatePDR {
	return &pfcp.CreatePDR{
		PDRID: &pfcpType.PacketDetectionRuleID{RuleId: 1}, Precedence: &pfcpType.Precedence{PrecedenceValue: 255},
		PDI: &pfcp.PDI{
			SourceInterface: &pfcpType.SourceInterface{InterfaceValue: pfcpType.SourceInterfaceAccess},
			LocalFTEID:      &pfcpType.FTEID{V4: true, Teid: 0x11, Ipv4Address: s.n3},
			NetworkInstance: instance(),
			UEIPAddress:     &pfcpType.UEIPAddress{V4: true, Ipv4Address: s.ue},
		},
		OuterHeaderRemoval: &pfcpType.OuterHeaderRemoval{
			OuterHeaderRemovalDescription: pfcpType.OuterHeaderRemovalGtpUUdpIpv4},
		FARID: fars(1), URRID: urrs(), QERID: qers(),
	}
}

func (s *smf) downPDI() *pfcp.PDI {
	return &pfcp.PDI{
		SourceInterface: &pfcpType.SourceInterface{InterfaceValue: pfcpType.SourceInterfaceSgiLanN6Lan},
		NetworkInstance: instance(),
		UEIPAddress:     &pfcpType.UEIPAddress{V4: true, Sd: true, Ipv4Address: s.ue},
	}
}

func (s *smf) down() *pfcp.CreatePDR {
	return &pfcp.CreatePDR{
		PDRID: &pfcpType.PacketDetectionRuleID{RuleId: 2}, Precedence: &pfcpType.Precedence{PrecedenceValue: 255},
		PDI: s.downPDI(), FARID: fars(2), URRID: urrs(), QERID: qers(),
	}
}

// urr measures volume; with a period and a threshold of each direction.
func urr(id uint32, before bool) *pfcp.CreateURR {
	return &pfcp.CreateURR{
		URRID:             &pfcpType.URRID{UrrIdValue: id},
		MeasurementMethod: &pfcpType.MeasurementMethod{Volum: true},
		ReportingTriggers: &pfcpType.ReportingTriggers{Perio: true, Volth: true},
		MeasurementPeriod: &pfcpType.MeasurementPeriod{MeasurementPeriod: 30},
		VolumeThreshold: &pfcpType.VolumeThreshold{Ulvol: true, Dlvol: true, UplinkVolume: 1000,
			DownlinkVolume: 100000},
		MeasurementInformation: &pfcpType.MeasurementInformation{Mnop: true, Mbqe: before},
		QuotaValidityTime:      &pfcpType.QuotaValidityTime{QuotaValidityTime: uint32(time.Hour / time.Second)},
	}
}

func (s *smf) establishment() pfcp.PFCPSessionEstablishmentRequest {
	open := &pfcpType.GateStatus{ULGate: pfcpType.GateOpen, DLGate: pfcpType.GateOpen}
	return pfcp.PFCPSessionEstablishmentRequest{
		NodeID: s.node(), CPFSEID: s.fseid(),
		CreatePDR: []*pfcp.CreatePDR{s.up(), s.down()},
		CreateFAR: []*pfcp.CreateFAR{
			{FARID: fars(1), ApplyAction: &pfcpType.ApplyAction{Forw: true},
				ForwardingParameters: &pfcp.ForwardingParametersIEInFAR{
					DestinationInterface: &pfcpType.DestinationInterface{
						InterfaceValue: pfcpType.DestinationInterfaceSgiLanN6Lan},
					NetworkInstance: instance()}},
			// The gNB's tunnel is not known yet, and the rule forwards to it all the same.
			{FARID: fars(2), ApplyAction: &pfcpType.ApplyAction{Forw: true},
				ForwardingParameters: &pfcp.ForwardingParametersIEInFAR{
					DestinationInterface: &pfcpType.DestinationInterface{
						InterfaceValue: pfcpType.DestinationInterfaceAccess}}},
		},
		CreateURR: []*pfcp.CreateURR{urr(1, true), urr(2, false)},
		CreateQER: []*pfcp.CreateQER{
			{QERID: &pfcpType.QERID{QERID: 1}, GateStatus: open, QoSFlowIdentifier: &pfcpType.QFI{},
				MaximumBitrate: &pfcpType.MBR{ULMBR: 100000, DLMBR: 200000}},
			{QERID: &pfcpType.QERID{QERID: 2}, GateStatus: open, QoSFlowIdentifier: &pfcpType.QFI{QFI: 1}},
		},
		PDNType: &pfcpType.PDNType{PdnType: pfcpType.PDNTypeIpv4},
	}
}

// connection is what activation, handover and release of the radio bearers send: the PDR again, and the FAR with
// its tunnel.
func (s *smf) connection(teid uint32, gnb net.IP, action, flags int) pfcp.PFCPSessionModificationRequest {
	down := s.down()
	return pfcp.PFCPSessionModificationRequest{
		CPFSEID: s.fseid(),
		UpdatePDR: []*pfcp.UpdatePDR{{PDRID: down.PDRID, Precedence: down.Precedence, PDI: down.PDI, FARID: down.FARID,
			URRID: down.URRID, QERID: down.QERID}},
		UpdateFAR: []*pfcp.UpdateFAR{{
			FARID:       fars(2),
			ApplyAction: &pfcpType.ApplyAction{Forw: action&2 != 0, Buff: action&4 != 0, Nocp: action&8 != 0},
			UpdateForwardingParameters: &pfcp.UpdateForwardingParametersIEInFAR{
				DestinationInterface: &pfcpType.DestinationInterface{
					InterfaceValue: pfcpType.DestinationInterfaceAccess},
				NetworkInstance: instance(),
				OuterHeaderCreation: &pfcpType.OuterHeaderCreation{
					OuterHeaderCreationDescription: pfcpType.OuterHeaderCreationGtpUUdpIpv4, Teid: teid,
					Ipv4Address: gnb},
				PFCPSMReqFlags: &pfcpType.PFCPSMReqFlags{Sndem: flags&2 != 0},
			},
		}},
	}
}
