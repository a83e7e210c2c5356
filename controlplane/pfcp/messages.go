// SPDX-License-Identifier: Apache-2.0

package pfcp

func (*HeartbeatRequest) MessageType() MessageType            { return HeartbeatRequestType }
func (*HeartbeatResponse) MessageType() MessageType           { return HeartbeatResponseType }
func (*PFDManagementRequest) MessageType() MessageType        { return PFDManagementRequestType }
func (*PFDManagementResponse) MessageType() MessageType       { return PFDManagementResponseType }
func (*AssociationSetupRequest) MessageType() MessageType     { return AssociationSetupRequestType }
func (*AssociationSetupResponse) MessageType() MessageType    { return AssociationSetupResponseType }
func (*AssociationUpdateRequest) MessageType() MessageType    { return AssociationUpdateRequestType }
func (*AssociationUpdateResponse) MessageType() MessageType   { return AssociationUpdateResponseType }
func (*AssociationReleaseRequest) MessageType() MessageType   { return AssociationReleaseRequestType }
func (*AssociationReleaseResponse) MessageType() MessageType  { return AssociationReleaseResponseType }
func (*VersionNotSupportedResponse) MessageType() MessageType { return VersionNotSupportedResponseType }
func (*NodeReportRequest) MessageType() MessageType           { return NodeReportRequestType }
func (*NodeReportResponse) MessageType() MessageType          { return NodeReportResponseType }
func (*SessionSetDeletionRequest) MessageType() MessageType   { return SessionSetDeletionRequestType }
func (*SessionSetDeletionResponse) MessageType() MessageType  { return SessionSetDeletionResponseType }
func (*SessionEstablishmentRequest) MessageType() MessageType { return SessionEstablishmentRequestType }
func (*SessionEstablishmentResponse) MessageType() MessageType {
	return SessionEstablishmentResponseType
}
func (*SessionModificationRequest) MessageType() MessageType  { return SessionModificationRequestType }
func (*SessionModificationResponse) MessageType() MessageType { return SessionModificationResponseType }
func (*SessionDeletionRequest) MessageType() MessageType      { return SessionDeletionRequestType }
func (*SessionDeletionResponse) MessageType() MessageType     { return SessionDeletionResponseType }
func (*SessionReportRequest) MessageType() MessageType        { return SessionReportRequestType }
func (*SessionReportResponse) MessageType() MessageType       { return SessionReportResponseType }
