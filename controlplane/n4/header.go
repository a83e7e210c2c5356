// SPDX-License-Identifier: Apache-2.0

package n4

import (
	"errors"

	"isthmus/controlplane/pfcp"
)

// direction of a message type, seen from a UP function.
type direction uint8

const (
	unknownType direction = iota
	nodeRequest
	sessionRequest
	response
	notForUs // a request for CP functions only, or of a feature that we do not announce
)

var directions = [256]direction{
	pfcp.HeartbeatRequestType:               nodeRequest,
	pfcp.HeartbeatResponseType:              response,
	pfcp.PFDManagementRequestType:           nodeRequest,
	pfcp.PFDManagementResponseType:          notForUs,
	pfcp.AssociationSetupRequestType:        nodeRequest,
	pfcp.AssociationSetupResponseType:       response,
	pfcp.AssociationUpdateRequestType:       nodeRequest,
	pfcp.AssociationUpdateResponseType:      response,
	pfcp.AssociationReleaseRequestType:      nodeRequest,
	pfcp.AssociationReleaseResponseType:     notForUs,
	pfcp.VersionNotSupportedResponseType:    response,
	pfcp.NodeReportRequestType:              notForUs,
	pfcp.NodeReportResponseType:             response,
	pfcp.SessionSetDeletionRequestType:      nodeRequest,
	pfcp.SessionSetDeletionResponseType:     notForUs,
	pfcp.SessionSetModificationRequestType:  notForUs,
	pfcp.SessionSetModificationResponseType: notForUs,
	pfcp.SessionEstablishmentRequestType:    sessionRequest,
	pfcp.SessionEstablishmentResponseType:   notForUs,
	pfcp.SessionModificationRequestType:     sessionRequest,
	pfcp.SessionModificationResponseType:    notForUs,
	pfcp.SessionDeletionRequestType:         sessionRequest,
	pfcp.SessionDeletionResponseType:        notForUs,
	pfcp.SessionReportRequestType:           notForUs,
	pfcp.SessionReportResponseType:          response,
}

// peek reads the header alone, which is all that sorting, rate limits and retransmissions need. It returns why the
// message is no PFCP message of ours, or accepted.
func peek(b []byte) (h pfcp.Header, why reject) {
	h, err := pfcp.DecodeHeader(b)
	switch {
	case errors.Is(err, pfcp.ErrVersion):
		return h, rejectVersion
	case errors.Is(err, pfcp.ErrLength):
		return h, rejectLength
	case err != nil:
		return h, rejectShort // TS 29.244 §7.6.2: silently discarded
	case directions[h.Type] == unknownType:
		return h, rejectUnknownType // §7.6.3
	case directions[h.Type] == notForUs:
		return h, rejectUnexpectedType
	case h.HasSEID != (h.Type >= pfcp.SessionEstablishmentRequestType):
		return h, rejectHeader // §7.2.2.2: the S flag is set in session messages, and in no others
	}
	return h, accepted
}
