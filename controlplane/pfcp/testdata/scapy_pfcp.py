# SPDX-License-Identifier: Apache-2.0
"""Prints "NAME HEX" of messages that scapy's contrib layer builds, for scapy_test.go."""
from scapy.contrib.pfcp import *

NODE = IE_NodeId(id_type="FQDN", id="smf1.isthmus.example")
STAMP = IE_RecoveryTimeStamp(timestamp=1764000000 + 2208988800)


def session():
    """2 PDR, 2 FAR, 1 QER, 1 URR."""
    pdi = IE_PDI(IE_list=[IE_SourceInterface(interface=0), IE_FTEID(CH=1, V4=1), IE_NetworkInstance(instance="access"),
                          IE_UE_IP_Address(V4=1, ipv4="192.0.2.77"), IE_QFI(QFI=9),
                          IE_SDF_Filter(FD=1, flow_description="permit out ip from any to assigned")])
    down = IE_PDI(IE_list=[IE_SourceInterface(interface=1), IE_NetworkInstance(instance="internet.example"),
                           IE_UE_IP_Address(V4=1, SD=1, ipv4="192.0.2.77")])
    tunnel = IE_OuterHeaderCreation(GTPUUDPIPV4=1, TEID=0x1234, ipv4="192.0.2.77")
    return [
        NODE, IE_FSEID(v4=1, seid=5, ipv4="10.0.0.1"),
        IE_CreatePDR(IE_list=[IE_PDR_Id(id=1), IE_Precedence(precedence=255), pdi, IE_OuterHeaderRemoval(header=0),
                              IE_FAR_Id(id=1), IE_URR_Id(id=1), IE_QER_Id(id=1)]),
        IE_CreatePDR(IE_list=[IE_PDR_Id(id=2), IE_Precedence(precedence=255), down, IE_FAR_Id(id=2)]),
        IE_CreateFAR(IE_list=[IE_FAR_Id(id=1), IE_ApplyAction(FORW=1),
                              IE_ForwardingParameters(IE_list=[IE_DestinationInterface(interface=1)])]),
        IE_CreateFAR(IE_list=[IE_FAR_Id(id=2), IE_ApplyAction(FORW=1), IE_ForwardingParameters(
            IE_list=[IE_DestinationInterface(interface=0), tunnel])]),
        IE_CreateQER(IE_list=[IE_QER_Id(id=1), IE_GateStatus(ul=0, dl=1), IE_MBR(ul=1000, dl=2000)]),
        IE_CreateURR(IE_list=[IE_URR_Id(id=1), IE_MeasurementMethod(VOLUM=1), IE_ReportingTriggers(volume_threshold=1),
                              IE_VolumeThreshold(TOVOL=1, total=1 << 30)]),
        IE_PDNType(pdn_type=1), IE_APN_DNN(apn_dnn="internet"),
    ]


def messages():
    yield "heartbeat", PFCP(S=0, seq=1) / PFCPHeartbeatRequest(IE_list=[STAMP])
    yield ("setup", PFCP(S=0, seq=2)
           / PFCPAssociationSetupRequest(IE_list=[NODE, STAMP, IE_CPFunctionFeatures(OVRL=1, LOAD=1)]))
    yield "release", PFCP(S=1, seid=8, seq=3) / PFCPAssociationReleaseRequest(IE_list=[NODE])
    yield ("establishment", PFCP(S=1, MP=1, priority=7, seid=0, seq=4)
           / PFCPSessionEstablishmentRequest(IE_list=session()))
    yield "modification", PFCP(S=1, seid=9, seq=5) / PFCPSessionModificationRequest(IE_list=[
        IE_RemovePDR(IE_list=[IE_PDR_Id(id=3)]),
        IE_UpdateFAR(IE_list=[IE_FAR_Id(id=2), IE_ApplyAction(BUFF=1, NOCP=1)]),
        IE_QueryURR(IE_list=[IE_URR_Id(id=1)])])
    yield "deletion", PFCP(S=1, seid=9, seq=6) / PFCPSessionDeletionRequest()
    yield "report", PFCP(S=1, seid=9, seq=7) / PFCPSessionReportResponse(IE_list=[IE_Cause(cause=1)])


for name, packet in messages():
    print(name, bytes(packet).hex())
