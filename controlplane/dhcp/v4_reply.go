// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"isthmus/controlplane/access"
)

// The largest reply without a client's limit (RFC 2131 §2): 576 bytes of IP.
const mostReply = 576 - 28

// reply4 has the common part of all answers. RFC 6842: the client identifier is returned; so is option 82 (RFC 3046
// §2.2).
func reply4(r *request4, kind dhcpv4.MessageType, server netip.Addr) *dhcpv4.DHCPv4 {
	m := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootReply, HWType: r.HWType, TransactionID: r.TransactionID,
		Flags: r.Flags, ClientHWAddr: r.ClientHWAddr, Options: make(dhcpv4.Options, 12)}
	m.Options[53] = []byte{byte(kind)}
	if server.IsValid() {
		m.Options[54] = server.AsSlice()
	}
	for _, code := range []uint8{61, 82} {
		if v, ok := r.Options[code]; ok {
			m.Options[code] = v
		}
	}
	return m
}

// configure adds the network options for a subscriber.
func (u v4) configure(m *dhcpv4.DHCPv4, r *request4, a *access.Addresses) {
	m.Options[1] = net.CIDRMask(a.Mask, 32)
	gateway := a.Gateway.AsSlice()
	if a.Gateway.IsValid() {
		m.Options[3] = gateway
	}
	for _, d := range a.DNS {
		if d.Is4() && len(m.Options[6]) < 12 {
			m.Options[6] = append(m.Options[6], d.AsSlice()...)
		}
	}
	asked := r.Options[55]
	asks := func(code byte) bool { return bytes.IndexByte(asked, code) >= 0 }
	if u.s.c.Domain != "" && (asks(15) || asked == nil) {
		m.Options[15] = []byte(u.s.c.Domain)
	}
	if u.s.c.MTU != 0 && asks(26) {
		m.Options[26] = binary.BigEndian.AppendUint16(nil, u.s.c.MTU)
	}
	if asks(121) && a.Gateway.IsValid() { // with it a client ignores the router option (RFC 3442)
		routes := append([]byte{0}, gateway...)
		for _, one := range u.s.c.Routes {
			via := one.Via.Addr
			if !via.IsValid() {
				via = a.Gateway
			}
			routes = append(routes, byte(one.Prefix.Bits()))
			routes = append(routes, one.Prefix.Masked().Addr().AsSlice()[:(one.Prefix.Bits()+7)/8]...)
			routes = append(routes, via.AsSlice()...)
		}
		if !netip.PrefixFrom(a.IPv4, a.Mask).Contains(a.Gateway) { // it is on the link itself
			routes = append(append([]byte{32}, gateway...), append([]byte{0, 0, 0, 0}, routes...)...)
		}
		m.Options[121] = routes
	}
}

func seconds(m *dhcpv4.DHCPv4, code byte, d time.Duration) {
	m.Options[code] = binary.BigEndian.AppendUint32(nil, uint32(d/time.Second))
}

// times are those of RFC 2131 §4.4.5.
func times(m *dhcpv4.DHCPv4, lease time.Duration) {
	seconds(m, 51, lease)
	seconds(m, 58, lease/2)
	seconds(m, 59, lease*7/8)
}

func (u v4) offer(r *request4) {
	a := u.session.Grant().Addresses
	m := reply4(r, dhcpv4.MessageTypeOffer, u.id())
	m.YourIPAddr = slice4(a.IPv4)
	u.configure(m, r, a)
	times(m, min(u.s.c.Lease, u.left()))
	if !u.four.bound {
		u.four.expires = u.s.host.Now().Add(u.s.c.Limits.Offer)
	}
	u.sleep()
	u.s.count(offers)
	u.send(r, m)
}

func (u v4) acknowledge(r *request4, rapid bool) {
	a := u.session.Grant().Addresses
	m := reply4(r, dhcpv4.MessageTypeAck, u.id())
	m.YourIPAddr, m.ClientIPAddr = slice4(a.IPv4), r.ClientIPAddr
	u.configure(m, r, a)
	lease := u.s.c.Lease
	// A proxy's lease is at most as long as the upstream server's.
	if held := u.four.loan().held; held.After(u.s.host.Now()) {
		lease = min(lease, held.Sub(u.s.host.Now())).Truncate(time.Second)
	}
	times(m, min(lease, u.left())) // the session's end is no lease's
	if rapid {
		m.Options[80] = nil
	}
	u.acknowledged(u.s.host.Now().Add(lease))
	u.keep(u.passing)
	u.sleep()
	u.s.count(acks)
	u.send(r, m)
}

// acknowledged: a client that renews a lease kept for a while declines nothing. It may decline at its first
// acknowledgement, and at a repetition of that.
func (u v4) acknowledged(expires time.Time) {
	if u.four.bound && expires.Sub(u.four.expires) >= u.s.c.Limits.Offer {
		u.declines = 0
	}
	u.four.bound, u.four.expires = true, expires
}

// inform answers a client that has an address and wants the options (RFC 2131 §4.3.5).
func (u v4) inform(r *request4) {
	a := u.session.Grant().Addresses
	m := reply4(r, dhcpv4.MessageTypeAck, u.id())
	m.ClientIPAddr = r.ClientIPAddr
	u.configure(m, r, a)
	u.s.count(acks)
	u.send(r, m)
}

// denyWaiting denies what waits, where it is about an address: a DISCOVER is answered by silence.
func (u v4) denyWaiting() {
	if r := u.waiting4; r.kind == dhcpv4.MessageTypeRequest {
		u.deny(r)
	}
}

func (u v4) deny(r *request4) {
	if !u.s.c.Authoritative {
		return
	}
	id := r.server()
	if !id.IsValid() && u.session != nil {
		id = u.id()
	}
	if !id.IsValid() && r.to != broadcast {
		id = r.to
	}
	if !id.IsValid() {
		id = u.s.c.Address.Addr
	}
	if !id.IsValid() { // RFC 2131 table 3: a DHCPNAK names its server
		return
	}
	m := reply4(r, dhcpv4.MessageTypeNak, id)
	u.s.count(naks)
	u.send(r, m)
}

// send sends to the destination of RFC 2131 §4.1; the frame goes to the subscriber's MAC address anyhow.
func (u v4) send(r *request4, m *dhcpv4.DHCPv4) {
	to := broadcast
	switch {
	case m.Options[53][0] == byte(dhcpv4.MessageTypeNak):
	case r.client().IsValid():
		to = r.client()
	case r.Flags&0x8000 == 0 && address4(m.YourIPAddr).IsValid():
		to = address4(m.YourIPAddr)
	}
	most := mostReply
	if v := r.Options[57]; len(v) == 2 {
		most = max(most, min(int(binary.BigEndian.Uint16(v)), 1500)-28)
	}
	body := m.ToBytes()
	for _, code := range []uint8{121, 15, 26} { // access nodes take option 82 off again
		if len(body)-len(m.Options[82]) <= most {
			break
		}
		delete(m.Options, code)
		body = m.ToBytes()
	}
	from := address4(m.Options[54])
	if !from.IsValid() {
		from = netip.IPv4Unspecified()
	}
	u.deliver(from, to, body)
}

func (u v4) deliver(from, to netip.Addr, body []byte) {
	d := datagram{from: from, to: to, source: serverPort4, dest: clientPort4, protocol: protocolUDP, body: body}
	u.s.host.Send(&access.Frame{Line: u.line, EtherType: ethernetIPv4, Payload: d.packet()})
}
