// SPDX-License-Identifier: Apache-2.0

package ppp

import "encoding/binary"

// Protocols (PPP DLL protocol numbers).
const (
	IPv4   = 0x0021
	IPv6   = 0x0057
	IPCP   = 0x8021
	IPv6CP = 0x8057
	LCP    = 0xc021
	PAP    = 0xc023
	CHAP   = 0xc223
)

// Codes of LCP and of network control protocols (RFC 1661 §5, RFC 1570).
const (
	configureRequest = 1 + iota
	configureAck
	configureNak
	configureReject
	terminateRequest
	terminateAck
	codeReject
	protocolReject
	echoRequest
	echoReply
	discardRequest
	identification
	timeRemaining
)

const (
	head       = 4  // code, identifier, length
	maxOptions = 32 // in a packet; more are hostile
	maxPacket  = 1500
)

// packet is one of LCP, of a network control protocol, of PAP or CHAP: code, identifier, length, data.
type packet []byte

func (p packet) code() uint8  { return p[0] }
func (p packet) id() uint8    { return p[1] }
func (p packet) data() []byte { return p[head:] }

// parse checks the length, and cuts off padding (RFC 1661 §5). A packet above any MRU here would not fit into
// Config.Buffer when it is sent back.
func parse(b []byte) (packet, bool) {
	if len(b) < head {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n < head || n > len(b) || n > maxPacket {
		return nil, false
	}
	return b[:n], true
}

// options are those of a Configure packet: type, length (of all three), value. Options of a packet that passed sound
// are well formed.
type options []byte

// sound: every option's length is right (RFC 1661 §6).
func (o options) sound() bool {
	for n := 0; len(o) > 0; n++ {
		if len(o) < 2 || o[1] < 2 || int(o[1]) > len(o) || n == maxOptions {
			return false
		}
		o = o[o[1]:]
	}
	return true
}

// next splits off the first option: whole is all of it, value its content.
func (o options) next() (kind uint8, value, whole []byte, rest options) {
	n := int(o[1])
	return o[0], o[2:n:n], o[:n:n], o[n:]
}

// has looks for an option.
func (o options) has(kind uint8) bool {
	for len(o) > 0 {
		if o[0] == kind {
			return true
		}
		_, _, _, o = o.next()
	}
	return false
}

func option(b []byte, kind uint8, value ...byte) []byte {
	return append(append(b, kind, uint8(2+len(value))), value...)
}
