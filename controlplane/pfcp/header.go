// SPDX-License-Identifier: Apache-2.0

package pfcp

import (
	"encoding/binary"
	"errors"
)

// What DecodeHeader refuses. Only ErrVersion is answered, by a Version Not Supported Response with the sequence number
// of the returned Header (TS 29.244 §7.6 "Different PFCP Versions", "PFCP Message of Invalid Length").
var (
	ErrShort   = errors.New("shorter than its header")
	ErrVersion = errors.New("PFCP version is not 1")
	ErrLength  = errors.New("header length differs from the datagram's")
)

// What Decode refuses without an answer.
var (
	ErrUnknownMessage = errors.New("unknown message type")            // TS 29.244 §7.6 "Unknown PFCP Message"
	ErrNoSEID         = errors.New("session message without an SEID") // TS 29.244 §7.2.2.4.1
)

const (
	version        = 1
	flagSEID       = 1
	flagPriority   = 2
	nodeHeader     = 8
	sessionHeader  = 16
	uncountedBytes = 4 // the length field counts what follows it
	maxSequence    = 1<<24 - 1
)

// DecodeHeader reads the header of a datagram with one message. Bundled messages (FO) are refused as ErrLength: BUNDL
// is not announced.
func DecodeHeader(b []byte) (Header, error) {
	h, _, err := splitHeader(b)
	return h, err
}

func splitHeader(b []byte) (h Header, body []byte, err error) {
	if len(b) < nodeHeader {
		return h, nil, ErrShort
	}
	h.Type = MessageType(b[1])
	h.HasSEID = b[0]&flagSEID != 0
	size := nodeHeader
	if h.HasSEID {
		size = sessionHeader
		if len(b) < size {
			return h, nil, ErrShort
		}
		h.SEID = binary.BigEndian.Uint64(b[4:])
	}
	h.Sequence = binary.BigEndian.Uint32(b[size-4:]) >> 8
	if b[0]>>5 != version {
		return h, nil, ErrVersion
	}
	if int(binary.BigEndian.Uint16(b[2:]))+uncountedBytes != len(b) {
		return h, nil, ErrLength
	}
	if b[0]&flagPriority != 0 {
		h.Priority = b[size-1] >> 4
	}
	return h, b[size:], nil
}

// ofSession: messages of the type carry an SEID (TS 29.244 §7.3).
func (t MessageType) ofSession() bool { return t >= SessionEstablishmentRequestType }

// Request: the message type expects an answer.
func (t MessageType) Request() bool {
	if t.ofSession() {
		return t%2 == 0
	}
	if t < VersionNotSupportedResponseType {
		return t%2 == 1
	}
	return t%2 == 0
}

// header begins a message; the length is set behind its IEs.
func (w *writer) header(h Header, t MessageType) {
	flags := byte(version << 5)
	if h.Priority != 0 {
		flags |= flagPriority
	}
	if t.ofSession() {
		flags |= flagSEID
	}
	w.b = append(w.b, flags, byte(t), 0, 0)
	if t.ofSession() {
		w.b = binary.BigEndian.AppendUint64(w.b, h.SEID)
	}
	w.b = binary.BigEndian.AppendUint32(w.b, h.Sequence<<8|uint32(h.Priority<<4))
}
