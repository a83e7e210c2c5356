// SPDX-License-Identifier: Apache-2.0

package pppoe

import (
	"bytes"
	"encoding/binary"

	"isthmus/controlplane/access"
)

// Codes (RFC 2516 §5) and tags (appendix A, RFC 4638, TR-101 §3.9.2).
const (
	PADI = 0x09
	PADO = 0x07
	PADR = 0x19
	PADS = 0x65
	PADT = 0xa7

	TagEnd          = 0x0000
	TagService      = 0x0101
	TagName         = 0x0102
	TagHostUniq     = 0x0103
	TagCookie       = 0x0104
	TagVendor       = 0x0105
	TagRelay        = 0x0110
	TagMaxPayload   = 0x0120
	TagServiceError = 0x0201
	TagSystemError  = 0x0202
	TagGenericError = 0x0203
)

const (
	headerSize   = 6 // version and type, code, session id, length
	versionType  = 0x11
	maxTags      = 32                      // in a packet
	maxEchoed    = 256                     // octets of a tag that is sent back: Service-Name, Relay-Session-Id
	maxHostUniq  = 1024                    // of Host-Uniq, which some fill
	maxAllEchoed = maxHostUniq + maxEchoed // so that a PADO fits a frame
	ownTags      = 120                     // of a PADO: AC-Name, AC-Cookie, PPP-Max-Payload, the heads of all
	plainMTU     = 1492
	largestMTU   = 1500
	broadband    = 0x0de9 // the Broadband Forum's enterprise number
)

// Header splits a packet of PPPoE (RFC 2516 §4): octets behind the stated length are padding.
func Header(b []byte) (code uint8, id uint16, payload []byte, ok bool) {
	if len(b) < headerSize || b[0] != versionType {
		return 0, 0, nil, false
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n > len(b)-headerSize {
		return 0, 0, nil, false
	}
	return b[1], binary.BigEndian.Uint16(b[2:]), b[headerSize : headerSize+n], true
}

// Tags of a discovery packet; nil: not there. They are parts of the frame.
type Tags struct {
	Service, Name, HostUniq, Cookie, Relay []byte
	Vendor                                 []byte // of the Broadband Forum, behind its number
	MaxPayload                             uint16 // 0: not there
	Error                                  []byte // text of any error tag; nil without one
}

// ParseTags checks every length (row B1). Of a repeated tag the first counts.
func ParseTags(b []byte) (t Tags, ok bool) {
	for n := 0; len(b) > 0; n++ {
		if len(b) < 4 || n == maxTags {
			return t, false
		}
		kind, size := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if kind == TagEnd {
			break
		}
		if size > len(b)-4 {
			return t, false
		}
		if !t.set(kind, b[4:4+size:4+size]) {
			return t, false
		}
		b = b[4+size:]
	}
	return t, len(t.Service)+len(t.HostUniq)+len(t.Relay) <= maxAllEchoed
}

func (t *Tags) set(kind uint16, value []byte) bool {
	to := place(t, kind)
	switch {
	case (kind == TagService || kind == TagRelay) && len(value) > maxEchoed,
		kind == TagHostUniq && len(value) > maxHostUniq:
		return false
	case to != nil && *to == nil:
		*to = value
	case kind == TagVendor && t.Vendor == nil && len(value) >= 4 && binary.BigEndian.Uint32(value) == broadband:
		t.Vendor = value[4:]
	case kind == TagMaxPayload && t.MaxPayload == 0 && len(value) == 2:
		t.MaxPayload = binary.BigEndian.Uint16(value)
	}
	return true
}

// place is where a tag's value is kept as it is.
func place(t *Tags, kind uint16) *[]byte {
	switch kind {
	case TagService:
		return &t.Service
	case TagName:
		return &t.Name
	case TagHostUniq:
		return &t.HostUniq
	case TagCookie:
		return &t.Cookie
	case TagRelay:
		return &t.Relay
	case TagServiceError, TagSystemError, TagGenericError:
		return &t.Error
	}
	return nil
}

// Sub-options of the vendor tag (TR-101 §3.9.2, §3.9.3).
const (
	subCircuit   = 0x01
	subRemote    = 0x02
	maxLineIdent = 63 // TR-101 §3.9.2
)

// agent is the access node's tag; false: malformed, so none of it counts. Copied.
func agent(b []byte) (a access.Agent, ok bool) {
	ok = access.Options(bytes.Clone(b), func(code byte, value []byte) bool {
		switch code {
		case subCircuit:
			a.CircuitID = value
			return len(value) <= maxLineIdent
		case subRemote:
			a.RemoteID = value
			return len(value) <= maxLineIdent
		}
		return a.Characteristic(code, value)
	})
	if !ok {
		return access.Agent{}, false
	}
	return a, true
}

// AppendHeader begins a packet, Finish writes its length.
func AppendHeader(b []byte, code uint8, id uint16) []byte {
	return append(b, versionType, code, byte(id>>8), byte(id), 0, 0)
}

// AppendTag adds a tag to a discovery packet; nil: none.
func AppendTag(b []byte, kind uint16, value []byte) []byte {
	if value == nil {
		return b
	}
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}

// Finish writes the length of a packet that begins at b's beginning.
func Finish(b []byte) []byte {
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-headerSize))
	return b
}
