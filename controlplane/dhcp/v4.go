// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"isthmus/controlplane/access"
)

const (
	serverPort4, clientPort4 = 67, 68
	mostHops                 = 16 // RFC 1542 §4.1.1
	magic                    = 0x63825363
)

// v4 is DHCPv4 of a subscriber.
type v4 struct{ *subscriber }

// lease4 is what a subscriber was assigned.
type lease4 struct {
	expires time.Time
	bound   bool   // else offered
	lent    *loan4 // nil: by a pool of ours
}

// loan4 is an upstream server's lease to us.
type loan4 struct {
	server      netip.AddrPort
	id          netip.Addr           // what that server calls itself
	held, renew time.Time            // how long the address stays ours (proxy)
	xid         dhcpv4.TransactionID // whose offer was taken
}

func (l *lease4) loan() (none loan4) {
	if l.lent != nil {
		return *l.lent
	}
	return none
}

// request4 is a message of a client.
type request4 struct {
	*dhcpv4.DHCPv4
	kind     dhcpv4.MessageType
	from, to netip.Addr
	agent    access.Agent
}

// client and wanted are ciaddr and option 50; invalid: none.
func (r *request4) client() netip.Addr { return address4(r.ClientIPAddr) }
func (r *request4) wanted() netip.Addr {
	return address4(r.Options.Get(dhcpv4.OptionRequestedIPAddress))
}
func (r *request4) server() netip.Addr { return address4(r.Options.Get(dhcpv4.OptionServerIdentifier)) }

func address4(b []byte) netip.Addr {
	a, ok := netip.AddrFromSlice(b)
	if a = a.Unmap(); !ok || !a.Is4() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// sound: a DHCPv4 message is well-formed. The codec accepts an option without a length byte, and a message without a
// type (row B6).
func sound(b []byte, op byte) bool {
	if len(b) < 241 || b[0] != op || b[1] != 1 || b[2] != 6 ||
		binary.BigEndian.Uint32(b[236:]) != magic {
		return false
	}
	typed := false
	for b = b[240:]; len(b) > 0; {
		switch {
		case b[0] == 0:
			b = b[1:]
			continue
		case b[0] == 255:
			return typed
		case len(b) < 2 || len(b) < 2+int(b[1]):
			return false
		case b[0] == 53:
			if typed || b[1] != 1 || b[2] < 1 || b[2] > 8 {
				return false
			}
			typed = true
		case (b[0] == 50 || b[0] == 54) && b[1] != 4:
			return false
		}
		b = b[2+int(b[1]):]
	}
	return typed // without the End option (RFC 2132 §3.2), which some clients forget
}

// decode4 reads a sound message; options behind End are ignored.
func decode4(b []byte) (*dhcpv4.DHCPv4, error) { return dhcpv4.FromBytes(append(slices.Clip(b), 255)) }

// parse4 reads a frame's payload, which the request keeps.
func (s *Server) parse4(p *Port, b []byte) (r *request4, w why, ok bool) {
	d, ok := ipv4(b)
	if !ok || d.dest != serverPort4 || !sound(d.body, 1) {
		return r, malformed, false
	}
	m, err := decode4(d.body)
	if err != nil {
		return r, malformed, false
	}
	r = &request4{DHCPv4: m, kind: m.MessageType(), from: d.from, to: d.to}
	option := m.Options.Get(dhcpv4.OptionRelayAgentInformation)
	switch {
	case m.HopCount > mostHops:
		return r, tooManyHops, false
	case address4(m.GatewayIPAddr).IsValid(): // relays stand behind us, access nodes are none (RFC 3046 §2.1)
		return r, giaddr, false
	case option != nil && !p.Trusted: // RFC 3046 §2.1
		return r, untrusted, false
	case option != nil:
		if r.agent, ok = agent82(option); !ok {
			return r, malformed, false
		}
	}
	return r, 0, true
}

// frame4 is a DHCPv4 message from a line.
func (s *Server) frame4(p *Port, f *access.Frame) {
	if !p.V4 {
		s.count(disabled)
		return
	}
	r, w, ok := s.parse4(p, bytes.Clone(f.Payload))
	if ok && [6]byte(r.ClientHWAddr) != f.Line.MAC {
		w, ok = foreignMAC, false
	}
	if !ok {
		s.reject(access.IPoE4, f, w)
		return
	}
	n := known
	if r.kind == dhcpv4.MessageTypeDiscover || r.kind == dhcpv4.MessageTypeRequest {
		n = begun
	}
	u := s.find(p, &access.Request{Kind: access.IPoE4, Line: f.Line, Agent: r.agent}, n)
	if u == nil {
		if n == known {
			s.count(notTheirs)
		}
		return
	}
	if len(p.Upstream) > 0 {
		v4{u}.relay(p, r)
		return
	}
	v4{u}.serve(r)
}

func (u v4) request(r *request4) *access.Request {
	hint := r.client()
	if !hint.IsValid() {
		hint = r.wanted()
	}
	return &access.Request{Kind: access.IPoE4, Agent: r.agent, HostName: r.HostName(),
		Hint: access.Addresses{IPv4: hint}, ClientID: r.Options.Get(dhcpv4.OptionClientIdentifier)}
}

// serve is RFC 2131 §4.3. r is kept while something must be waited for.
func (u v4) serve(r *request4) {
	four := access.Families{V4: true}
	rapid := false
	switch r.kind {
	case dhcpv4.MessageTypeDiscover:
		rapid = u.s.c.RapidCommit && r.Options.Has(dhcpv4.GenericOptionCode(80))
		u.waiting4 = r
		if !u.ready(four, rapid, u.request(r)) {
			return
		}
	case dhcpv4.MessageTypeRequest:
		if !u.forUs(r) {
			return
		}
		u.waiting4 = r
		if !u.ready(four, false, u.request(r)) {
			return
		}
		if w := claim(r); w.IsValid() && w != u.session.Grant().Addresses.IPv4 {
			u.waiting4 = nil
			u.s.count(notTheirs)
			u.deny(r)
			return
		}
		if !u.ready(four, true, u.request(r)) {
			return
		}
	case dhcpv4.MessageTypeDecline, dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeInform:
		u.leaving(r)
		return
	default: // messages of servers
		u.s.count(malformed)
		return
	}
	u.waiting4 = nil
	if !u.session.Grant().Addresses.IPv4.IsValid() {
		u.s.count(noAddress)
		u.sleep()
		return
	}
	if r.kind == dhcpv4.MessageTypeDiscover && !rapid {
		u.offer(r)
		return
	}
	u.acknowledge(r, rapid)
}

// claim is the address that a REQUEST is about (RFC 2131 §4.3.2).
func claim(r *request4) netip.Addr {
	if a := r.wanted(); a.IsValid() {
		return a
	}
	return r.client()
}

// forUs: a REQUEST is ours to answer.
func (u v4) forUs(r *request4) bool {
	if id := r.server(); id.IsValid() {
		if u.session == nil || u.id() != id {
			u.s.count(otherServer)
			if u.session == nil && u.cancel == nil && !u.denied && u.s.c.Authoritative {
				u.deny(r) // our offer was lost with a restart: it begins again at once
			}
			return false
		}
		return true
	}
	if !claim(r).IsValid() {
		u.s.count(malformed)
		return false
	}
	return true
}

// leaving concerns a lease of the line itself; leases of others are ignored (row B10).
func (u v4) leaving(r *request4) {
	if u.session == nil || u.busy {
		u.s.count(notTheirs)
		return
	}
	mine, id := u.session.Grant().Addresses, r.server()
	switch {
	case r.kind == dhcpv4.MessageTypeInform:
		if mine.IPv4.IsValid() && u.passing.V4 && r.client() == mine.IPv4 {
			u.inform(r)
			return
		}
	case id != u.id() && id.IsValid():
	case r.kind == dhcpv4.MessageTypeRelease && r.client() == mine.IPv4 && mine.IPv4.IsValid():
		u.four = lease4{}
		u.drop(access.Families{V4: true}, access.UserRequest)
		return
	case r.kind == dhcpv4.MessageTypeDecline && r.wanted() == mine.IPv4 && mine.IPv4.IsValid():
		u.declines++
		u.restart(access.UserError)
		return
	}
	u.s.count(notTheirs)
}

func slice4(a netip.Addr) net.IP {
	if !a.IsValid() {
		return nil
	}
	return a.AsSlice()
}

// id is what we call ourselves to a subscriber.
func (u v4) id() netip.Addr {
	if a := u.session.Grant().Addresses.Gateway; a.IsValid() && !u.port().Proxy {
		return a
	}
	return u.s.c.Address.Addr
}
