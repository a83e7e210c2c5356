// SPDX-License-Identifier: Apache-2.0

package ppp

import "encoding/binary"

// Options of IPCP (RFC 1332, RFC 1877) and of IPv6CP (RFC 5072); all others are rejected.
const (
	optAddress = 3
	optDNS1    = 129
	optDNS2    = 131
	optID      = 1
)

const (
	askAddress = 1 << iota // also the interface identifier
	askDNS1
	askDNS2
)

type ipcp struct{ *Link }

type addressOption struct {
	ask, kind uint8
	ours      *[4]byte
}

// wishes are the options that our Configure-Request may have.
func (l ipcp) wishes() [3]addressOption {
	n := &l.network
	return [...]addressOption{{askAddress, optAddress, &n.Local},
		{askDNS1, optDNS1, &n.DNS[0]}, {askDNS2, optDNS2, &n.DNS[1]}}
}

func (l ipcp) request(b []byte) []byte {
	asks := l.layers[nIPCP].asks
	for _, o := range l.wishes() {
		if asks&o.ask != 0 {
			b = option(b, o.kind, o.ours[:]...)
		}
	}
	return b
}

// ours is the peer's required value of an option, nil without one.
func (l ipcp) ours(kind uint8) *[4]byte {
	n := &l.network
	switch {
	case kind == optAddress:
		return &n.Remote
	case kind == optDNS1 && n.DNS[0] != [4]byte{}:
		return &n.DNS[0]
	case kind == optDNS2 && n.DNS[1] != [4]byte{}:
		return &n.DNS[1]
	}
	return nil
}

func (l ipcp) judge(kind uint8, value, b []byte) (grade, []byte) {
	if l.role == Client {
		if kind == optAddress && len(value) == 4 && [4]byte(value) != [4]byte{} {
			return good, b
		}
		return never, b
	}
	ours := l.ours(kind)
	switch {
	case ours == nil || len(value) != 4:
		return never, b
	case [4]byte(value) != *ours:
		return bad, option(b, kind, ours[:]...)
	}
	return good, b
}

// missing: a peer without the option may not know that it can have an address (RFC 1332 §3.3). A peer that insists has
// a static address, and the data plane passes only the assigned one.
func (l ipcp) missing(in options, b []byte) []byte {
	if l.role == Server && !in.has(optAddress) {
		b = option(b, optAddress, l.network.Remote[:]...)
	}
	return b
}

func (l ipcp) accept(in options) {
	for l.role == Client && len(in) > 0 {
		var kind uint8
		var value []byte
		kind, value, _, in = in.next()
		if kind == optAddress {
			l.network.Remote = [4]byte(value)
		}
	}
}

// learn: a client takes the assigned value; a server's address is not the peer's to choose.
func (l ipcp) learn(kind uint8, value []byte, reject bool) {
	for _, o := range l.wishes() {
		switch {
		case o.kind != kind:
		case reject:
			l.layers[nIPCP].asks &^= o.ask
			if kind != optAddress {
				*o.ours = [4]byte{}
			}
		case l.role == Client && len(value) == 4:
			*o.ours = [4]byte(value)
		}
	}
}

type ipv6cp struct{ *Link }

func (l ipv6cp) request(b []byte) []byte {
	if l.layers[nIPv6CP].asks&askAddress != 0 {
		b = binary.BigEndian.AppendUint64(append(b, optID, 10), l.network.LocalID)
	}
	return b
}

// judge: a peer may choose its identifier, unless the plan has another (RFC 5072 §4.1).
func (l ipv6cp) judge(kind uint8, value, b []byte) (grade, []byte) {
	if kind != optID || len(value) != 8 {
		return never, b
	}
	id := binary.BigEndian.Uint64(value)
	n := &l.network
	switch {
	case l.role == Client && id != 0:
		return good, b
	case id == 0 || id == l.network.LocalID || n.Fixed && id != n.RemoteID:
		return bad, l.missing(nil, b)
	}
	return good, b
}

func (l ipv6cp) missing(in options, b []byte) []byte {
	if l.role == Server && !in.has(optID) {
		b = binary.BigEndian.AppendUint64(append(b, optID, 10), l.network.RemoteID)
	}
	return b
}

func (l ipv6cp) accept(in options) {
	for len(in) > 0 {
		var value []byte
		_, value, _, in = in.next()
		l.network.RemoteID = binary.BigEndian.Uint64(value)
	}
}

func (l ipv6cp) learn(kind uint8, value []byte, reject bool) {
	switch {
	case kind != optID:
	case reject:
		l.layers[nIPv6CP].asks &^= askAddress
	case l.role == Client && len(value) == 8:
		l.network.LocalID = binary.BigEndian.Uint64(value)
	}
}
