// SPDX-License-Identifier: Apache-2.0

package ppp

import (
	"encoding/binary"
	"slices"

	"isthmus/api"
	"isthmus/controlplane/access"
)

// Options of LCP (RFC 1661 §6); all others are rejected, so packets come without compressed fields.
const (
	optMRU   = 1
	optAuth  = 3
	optMagic = 5
)

const (
	askMRU = 1 << iota
	askAuth
	askMagic
)

const loopedBack = "the line is looped back: our own magic number comes in"

const defaultMRU = 1500

// Methods in the Authentication-Protocol option: the protocol, of CHAP the algorithm.
var methodOption = [...][]byte{
	access.PAP:      {0xc0, 0x23},
	access.CHAP:     {0xc2, 0x23, 5},
	access.MSCHAPv2: {0xc2, 0x23, 0x81},
}

// methodOf is access.None for unknown ones.
func methodOf(value []byte) access.Method {
	for m, known := range methodOption {
		if known != nil && string(known) == string(value) {
			return access.Method(m)
		}
	}
	return access.None
}

type lcp struct{ *Link }

func (l lcp) request(b []byte) []byte {
	asks := l.layers[nLCP].asks
	if asks&askMRU != 0 {
		b = option(b, optMRU, byte(l.mru>>8), byte(l.mru))
	}
	if asks&askAuth != 0 {
		b = option(b, optAuth, methodOption[l.config.Methods[l.method-1]]...)
	}
	if asks&askMagic != 0 {
		b = binary.BigEndian.AppendUint32(append(b, optMagic, 6), l.magic)
	}
	return b
}

func (l lcp) judge(kind uint8, value, b []byte) (grade, []byte) {
	switch {
	case kind == optMRU && len(value) == 2:
		mru := binary.BigEndian.Uint16(value)
		// RFC 2516 §7: no more than the line carries.
		if right := min(max(mru, api.MRUMin), l.mru); right != mru {
			return bad, option(b, optMRU, byte(right>>8), byte(right))
		}
		return good, b
	case kind == optAuth && l.role == Client && len(l.config.Methods) > 0:
		if m := methodOf(value); m == access.None || !slices.Contains(l.config.Methods, m) {
			return bad, option(b, optAuth, methodOption[l.config.Methods[0]]...)
		}
		return good, b
	case kind == optMagic && len(value) == 4:
		if m := binary.BigEndian.Uint32(value); m == 0 || m == l.magic {
			other := uint32(l.config.Random()) | 1
			return bad, binary.BigEndian.AppendUint32(append(b, optMagic, 6), other)
		}
		return good, b
	}
	return never, b
}

func (l lcp) missing(_ options, b []byte) []byte { return b }

func (l lcp) accept(in options) {
	l.peerMRU, l.peerMagic = defaultMRU, 0
	if l.role == Client {
		l.method = uint8(access.None)
	}
	for len(in) > 0 {
		var kind uint8
		var value []byte
		kind, value, _, in = in.next()
		switch kind {
		case optMRU:
			l.peerMRU = binary.BigEndian.Uint16(value)
		case optAuth:
			l.method = uint8(methodOf(value))
		case optMagic:
			l.peerMagic = binary.BigEndian.Uint32(value)
		}
	}
}

func (l lcp) learn(kind uint8, value []byte, reject bool) {
	asks := &l.layers[nLCP].asks
	switch {
	case kind == optMRU && reject:
		*asks &^= askMRU
	case kind == optMRU && len(value) == 2:
		if mru := binary.BigEndian.Uint16(value); mru >= api.MRUMin && mru < l.mru {
			l.mru = mru
		}
	case kind == optAuth && reject:
		if l.loops > 0 { // refused by us
			l.Close(access.LostCarrier, loopedBack)
		}
		l.Close(access.UserError, "the peer refuses to authenticate")
	case kind == optAuth:
		l.otherMethod(methodOf(value))
	case kind == optMagic && reject:
		*asks &^= askMagic
		l.magic = 0 // RFC 1661 §5.8
	case kind == optMagic:
		l.newMagic()
	}
}

// otherMethod offers what the peer suggests, if that is allowed, else the next one in order.
func (l lcp) otherMethod(suggested access.Method) {
	methods := l.config.Methods
	if at := slices.Index(methods, suggested); at >= 0 && at != int(l.method)-1 {
		l.method = uint8(at) + 1
		return
	}
	if int(l.method) >= len(methods) {
		l.Close(access.UserError, "the peer wants none of the methods of authentication that are allowed")
		return
	}
	l.method++
}

// up is "this layer up".
func (l lcp) up() {
	l.loops = 0
	if l.role == Client || !l.admitted {
		l.beginAuth()
	}
	if l.admitted {
		l.openNetwork()
	}
}

// down is "this layer down": all above begins again. An authenticated peer cannot: it signs in on another link.
func (l lcp) down() {
	for _, n := range []int{nIPCP, nIPv6CP} {
		l.control(n).run(down, nil, nil)
	}
	switch {
	case l.layers[nLCP].state == closing || l.layers[nLCP].state == stopping:
	case l.role == Server && (l.proven || l.auth != nil && l.auth.judged && l.auth.method != access.None):
		l.Close(access.UserError, "the peer negotiates anew")
		return
	case l.role == Client:
		l.admitted = false
	}
	if l.auth != nil && !l.auth.judged {
		l.auth = nil
	}
}

// looped counts our own magic numbers that come in, and returns true above the bound (RFC 1661 §6.4).
func (l lcp) looped(in options) bool {
	for len(in) > 0 {
		var kind uint8
		var value []byte
		kind, value, _, in = in.next()
		if kind == optMagic && len(value) == 4 && l.magic != 0 && binary.BigEndian.Uint32(value) == l.magic {
			l.loops++
		}
	}
	return l.loops > 3
}

// only takes Protocol-Reject, echoes, and what RFC 1570 adds.
func (l lcp) only(p packet) Discard {
	if p.code() != protocolReject {
		if p.code() <= echoReply && len(p.data()) < 4 {
			return Malformed
		}
		l.control(nLCP).run(echo, p, nil)
		return Taken
	}
	if len(p.data()) < 2 {
		return Malformed
	}
	if l.layers[nLCP].state != opened {
		return Unexpected // RFC 1661 §5.7
	}
	switch binary.BigEndian.Uint16(p.data()) {
	case LCP:
		l.blame(access.UserError, "the peer rejects LCP")
		l.control(nLCP).run(fatal, p, nil)
	case PAP, CHAP:
		l.Close(access.UserError, "the peer refuses the method of authentication")
	case IPCP, IPv4:
		l.control(nIPCP).run(fatal, p, nil)
	case IPv6CP, IPv6:
		l.control(nIPv6CP).run(fatal, p, nil)
	}
	return Taken
}
