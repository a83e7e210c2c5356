// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"fmt"
	"sync/atomic"
)

// Recovered counts the panics that Decode caught. Each is a defect of this package: the checks, not the recovery, keep
// bad input out.
var Recovered atomic.Uint64

// Decode reads a datagram of one message. The error is an *Error when the message must be refused: then the header is
// valid, and Respond makes the answer. Other errors are answered as DecodeHeader's comment says, or not at all.
func Decode(b []byte) (h Header, m Message, err error) {
	h, body, err := splitHeader(b)
	if err != nil {
		return h, nil, err
	}
	if h.Type.ofSession() && !h.HasSEID {
		return h, nil, ErrNoSEID
	}
	if h.Type >= messageTypes || messages[h.Type].decode == nil {
		return h, nil, ErrUnknownMessage
	}
	defer func() {
		if p := recover(); p != nil {
			Recovered.Add(1)
			m, err = nil, &Error{Cause: CauseSystemFailure, Text: fmt.Sprint("decoder: ", p)}
		}
	}()
	count := 0
	if refusal := walk(body, 0, &count); refusal != nil {
		return h, nil, refusal
	}
	m, refusal := messages[h.Type].decode(body)
	if refusal != nil {
		return h, nil, refusal
	}
	return h, m, nil
}

// CPSEID is the SEID of the CP F-SEID in a refused message, whatever else is wrong; 0: none before the broken part.
func CPSEID(b []byte) uint64 {
	_, rest, err := splitHeader(b)
	for err == nil && len(rest) > 0 {
		ie, value, behind, refusal := split(rest)
		if refusal != nil {
			return 0
		}
		if limits := lengths[ieFSEID]; ie == ieFSEID && len(value) >= int(limits.min) {
			f, _ := readFSEID(value)
			return f.SEID
		}
		rest = behind
	}
	return 0
}

const messageTypes = 64

// codec is a message's table, in both directions.
type codec struct {
	decode func([]byte) (Message, *Error)
	encode func(*writer, Message)
}

var messages = [messageTypes]codec{
	HeartbeatRequestType:             typed(heartbeatRequest),
	HeartbeatResponseType:            typed(heartbeatResponse),
	PFDManagementRequestType:         typed(pfdManagementRequest),
	PFDManagementResponseType:        typed(pfdManagementResponse),
	AssociationSetupRequestType:      typed(associationSetupRequest),
	AssociationSetupResponseType:     typed(associationSetupResponse),
	AssociationUpdateRequestType:     typed(associationUpdateRequest),
	AssociationUpdateResponseType:    typed(associationUpdateResponse),
	AssociationReleaseRequestType:    typed(associationReleaseRequest),
	AssociationReleaseResponseType:   typed(associationReleaseResponse),
	VersionNotSupportedResponseType:  typed(versionNotSupported),
	NodeReportRequestType:            typed(nodeReportRequest),
	NodeReportResponseType:           typed(nodeReportResponse),
	SessionSetDeletionRequestType:    typed(sessionSetDeletionRequest),
	SessionSetDeletionResponseType:   typed(sessionSetDeletionResponse),
	SessionEstablishmentRequestType:  typed(sessionEstablishmentRequest),
	SessionEstablishmentResponseType: typed(sessionEstablishmentResponse),
	SessionModificationRequestType:   typed(sessionModificationRequest),
	SessionModificationResponseType:  typed(sessionModificationResponse),
	SessionDeletionRequestType:       typed(sessionDeletionRequest),
	SessionDeletionResponseType:      typed(sessionDeletionResponse),
	SessionReportRequestType: {decode: func(b []byte) (Message, *Error) {
		var r reported
		refusal := sessionReportRequest.decode(b, &r)
		return &r.SessionReportRequest, refusal
	}, encode: func(w *writer, m Message) {
		sessionReportRequest.encode(w, &reported{SessionReportRequest: *m.(*SessionReportRequest)})
	}},
	SessionReportResponseType: typed(sessionReportResponse),
}

func typed[T any, P interface {
	*T
	Message
}](g *group[T]) codec {
	return codec{func(b []byte) (Message, *Error) {
		m := new(T)
		refusal := g.decode(b, m)
		return P(m), refusal
	}, func(w *writer, m Message) { g.encode(w, m.(P)) }}
}

// Respond returns the response that refuses a request with e; nil without such an answer in the standard. Heartbeats,
// responses and unserved types (such as Session Set Modification) are discarded. The caller fills in the recovery time
// and features of an Association Setup Response.
func Respond(req MessageType, e *Error, node NodeID) Message {
	switch req {
	case PFDManagementRequestType:
		return &PFDManagementResponse{Cause: e.Cause, Offending: e.Offending}
	case AssociationSetupRequestType:
		return &AssociationSetupResponse{Node: node, Cause: e.Cause, Offend: e.Offending}
	case AssociationUpdateRequestType:
		return &AssociationUpdateResponse{Node: node, Cause: e.Cause}
	case AssociationReleaseRequestType:
		return &AssociationReleaseResponse{Node: node, Cause: e.Cause}
	case NodeReportRequestType:
		return &NodeReportResponse{Node: node, Cause: e.Cause, Offending: e.Offending}
	case SessionSetDeletionRequestType:
		return &SessionSetDeletionResponse{Node: node, Cause: e.Cause, Offending: e.Offending}
	case SessionEstablishmentRequestType:
		return &SessionEstablishmentResponse{Node: node, Cause: e.Cause, Offending: e.Offending, Failed: e.Rule}
	case SessionModificationRequestType:
		return &SessionModificationResponse{Cause: e.Cause, Offending: e.Offending, Failed: e.Rule}
	case SessionDeletionRequestType:
		return &SessionDeletionResponse{Cause: e.Cause, Offending: e.Offending}
	case SessionReportRequestType:
		return &SessionReportResponse{Cause: e.Cause, Offending: e.Offending}
	}
	return nil
}
