// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"isthmus/controlplane/access"
)

const (
	serverPort6, clientPort6 = 547, 546
	mostRelays               = 8  // HOP_COUNT_LIMIT (RFC 8415 §7.6)
	mostIAs                  = 16 // of a message
)

// kinds of leases.
const (
	address = iota // IA_NA
	prefix         // IA_PD
	kinds
)

var relaysAndServers = netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 13: 1, 15: 2})

// v6 is DHCPv6 of a subscriber, and its router advertisements.
type v6 struct{ *subscriber }

// lease6 is one IA. A zero time: none.
type lease6 struct {
	iaid    [4]byte
	expires time.Time
}

func (u v6) bound(kind int) bool { return !u.leased[kind].expires.IsZero() }

// unleased is what need not pass any more without a lease: the /64 is used by SLAAC, too.
func (u v6) unleased(kind int) access.Families {
	return access.Families{V6: kind == address && !u.slaac, Delegated: kind == prefix}
}

// wrapping is a Relay-Forward around a message.
type wrapping struct {
	head [34]byte // type, hop count, link-address, peer-address
	id   []byte   // Interface-Id, option 18; nil: none
}

type request6 struct {
	*dhcpv6.Message
	from, to netip.Addr
	port     uint16 // to answer to
	body     []byte // as it came, with its relays
	client   []byte // DUID
	server   []byte
	relays   []wrapping // outermost first
	agent    access.Agent
}

// each16 walks options of DHCPv6.
func each16(b []byte, fn func(code uint16, v []byte) bool) bool {
	for len(b) > 0 {
		if len(b) < 4 {
			return false
		}
		n := 4 + int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < n || !fn(binary.BigEndian.Uint16(b), b[4:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// soundIA checks an IA: the head, then options, of which addresses and prefixes have one, too.
func soundIA(v []byte, head int) bool {
	inner := func(uint16, []byte) bool { return true }
	return len(v) >= head && each16(v[head:], func(code uint16, v []byte) bool {
		switch code {
		case 5:
			return len(v) >= 24 && each16(v[24:], inner)
		case 26:
			return len(v) >= 25 && v[8] <= 128 && each16(v[25:], inner)
		}
		return true
	})
}

// unwrap removes Relay-Forwards (RFC 8415 §19.1, LDRA: RFC 6221), or Relay-Replies. The innermost relay is the access
// node.
func (r *request6) unwrap(kind dhcpv6.MessageType, most int, b []byte) (inner []byte, w why, ok bool) {
	for len(b) > 0 && b[0] == byte(kind) {
		if len(b) < 34 {
			return nil, malformed, false
		}
		if len(r.relays) == most || int(b[1]) >= most {
			return nil, tooManyHops, false
		}
		one := wrapping{head: [34]byte(b)}
		var next []byte
		r.agent = access.Agent{}
		if !each16(b[34:], func(code uint16, v []byte) bool {
			switch code {
			case 9:
				next = v
			case 18:
				one.id, r.agent.CircuitID = v, v
			case 37:
				if len(v) < 4 {
					return false
				}
				r.agent.RemoteID = v[4:]
			}
			return true
		}) || next == nil {
			return nil, malformed, false
		}
		r.relays, b = append(r.relays, one), next
	}
	return b, 0, true
}

// wrap is what unwrap undoes, with Relay-Replies.
func (r *request6) wrap(b []byte) []byte {
	for i := len(r.relays) - 1; i >= 0; i-- {
		one := &r.relays[i]
		out := append([]byte{byte(dhcpv6.MessageTypeRelayReply)}, one.head[1:]...)
		if one.id != nil {
			out = option16(out, 18, one.id)
		}
		b = option16(out, 9, b)
	}
	return b
}

func option16(b []byte, code uint16, v []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, code)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(v))), v...)
}

// parse6 reads a datagram, whose body the request keeps.
func parse6(trusted bool, d *datagram) (r *request6, w why, ok bool) {
	r = &request6{from: d.from, to: d.to, port: clientPort6, body: d.body}
	if d.dest != serverPort6 || !d.from.IsLinkLocalUnicast() {
		return r, malformed, false
	}
	b, w, ok := r.unwrap(dhcpv6.MessageTypeRelayForward, mostRelays, d.body)
	switch {
	case !ok:
		return r, w, false
	case len(r.relays) > 0 && !trusted:
		return r, untrusted, false
	case len(r.relays) > 0:
		r.port = serverPort6
	}
	return r, malformed, r.read(b)
}

// read takes the message itself.
func (r *request6) read(b []byte) bool {
	ias := 0
	if len(b) < 4 || !each16(b[4:], func(code uint16, v []byte) bool {
		switch code {
		case 1:
			r.client = v
			return len(v) >= 3 && len(v) <= 130 // RFC 8415 §11.1
		case 2:
			r.server = v
		case 3, 25:
			ias++
			return ias <= mostIAs && soundIA(v, 12)
		case 4: // no T1, T2
			ias++
			return ias <= mostIAs && soundIA(v, 4)
		}
		return true
	}) {
		return false
	}
	m, err := dhcpv6.MessageFromBytes(b)
	r.Message = m
	return err == nil
}

// frame6 is DHCPv6 or a router solicitation from a line.
func (s *Server) frame6(p *Port, f *access.Frame) {
	if !p.V6 || f.EtherType != ethernetIPv6 {
		s.count(disabled)
		return
	}
	d, ok := ipv6(bytes.Clone(f.Payload))
	if !ok {
		s.reject(access.IPoE6, f, malformed)
		return
	}
	if d.protocol == protocolICMP {
		if !solicitation(&d) {
			s.reject(access.IPoE6, f, malformed)
		} else if u := s.find(p, &access.Request{Kind: access.IPoE6, Line: f.Line}, begun); u != nil {
			v6{u}.hears(d.from)
			v6{u}.solicited()
		}
		return
	}
	r, w, ok := parse6(p.Trusted, &d)
	if ok {
		w, ok = s.valid6(r, len(p.Upstream6) > 0)
	}
	if !ok {
		s.reject(access.IPoE6, f, w)
		return
	}
	n := made
	switch r.MessageType {
	case dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline, dhcpv6.MessageTypeConfirm:
		n = known
	case dhcpv6.MessageTypeSolicit:
		n = begun
	}
	u := s.find(p, &access.Request{Kind: access.IPoE6, Line: f.Line, Agent: r.agent}, n)
	if u == nil {
		if n == known {
			s.count(notTheirs)
		}
		return
	}
	v6{u}.hears(r.from)
	v6{u}.message(r)
}

func (u v6) hears(from netip.Addr) {
	if from.IsLinkLocalUnicast() {
		u.peer = from
	}
}

// valid6 is RFC 8415 §16: messages that must name a server, and must not. A relay accepts any server.
func (s *Server) valid6(r *request6, relays bool) (w why, ok bool) {
	ours := relays || bytes.Equal(r.server, s.c.ServerID)
	switch r.MessageType {
	case dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeRebind:
		return malformed, r.client != nil && r.server == nil && r.to == relaysAndServers
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		if r.client == nil || r.server == nil {
			return malformed, false
		}
		return otherServer, ours
	case dhcpv6.MessageTypeInformationRequest:
		ias := len(r.Options.IANA()) + len(r.Options.IAPD()) + len(r.Options.IATA())
		if ias > 0 || r.to != relaysAndServers {
			return malformed, false
		}
		return otherServer, r.server == nil || ours
	}
	return malformed, false
}
