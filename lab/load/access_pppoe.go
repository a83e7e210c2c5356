// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"net/netip"
	"time"

	"isthmus/controlplane/access"
	"isthmus/controlplane/checksum"
	"isthmus/controlplane/ppp"
	"isthmus/controlplane/pppoe"
	"isthmus/lab/dialer"
)

// crowd as dialer.Env.

// Send is dialer.Env's.
func (c *crowd) Send(d *dialer.Client, etherType uint16, payload []byte) {
	broadcast := etherType == pppoe.EtherDiscovery && len(payload) > 1 && payload[1] == pppoe.PADI
	c.send(c.index[d], broadcast, etherType, payload)
}

// Wake is dialer.Env's.
func (c *crowd) Wake(d *dialer.Client, at time.Duration) { c.wake(c.index[d], at) }

// Up is dialer.Env's. The prefix comes by router advertisement.
func (c *crowd) Up(d *dialer.Client, f access.Families) {
	if f.V4 {
		n := d.Link.Network()
		c.got(c.index[d], netip.AddrFrom4(n.Local), netip.Prefix{})
		var names []netip.Addr
		for _, one := range n.DNS {
			if one != [4]byte{} {
				names = append(names, netip.AddrFrom4(one))
			}
		}
		c.names(true, names)
	}
}

// Packet is dialer.Env's.
func (c *crowd) Packet(d *dialer.Client, ipv6 []byte) {
	p, names, fault := advertised(ipv6)
	if fault != "" {
		c.wrong(fault)
	}
	if p.IsValid() {
		c.got(c.index[d], netip.Addr{}, p)
		c.names(false, names)
	}
}

// Ended is dialer.Env's. What the crowd hangs up itself, it does when it is closed.
func (c *crowd) Ended(d *dialer.Client, _ access.Cause, why string) { c.ended(c.index[d], why) }

// advertised is the prefix in a router advertisement (RFC 4861 §4.2, §4.6.2), invalid in any other packet, the name
// servers (RFC 8106 §5.1), and any fault.
func advertised(p []byte) (prefix netip.Prefix, names []netip.Addr, fault string) {
	if len(p) < 56 || p[0]>>4 != 6 || p[6] != 58 || p[40] != 134 || binary.BigEndian.Uint16(p[46:]) == 0 {
		return prefix, nil, ""
	}
	o := p[56:]
	for ; len(o) >= 8 && o[1] > 0 && int(o[1])*8 <= len(o); o = o[int(o[1])*8:] {
		switch {
		case o[0] == 3 && o[1] == 4:
			valid, preferred := binary.BigEndian.Uint32(o[4:]), binary.BigEndian.Uint32(o[8:])
			a := netip.AddrFrom16([16]byte(o[16:32]))
			prefix = netip.PrefixFrom(a, int(o[2]))
			if !prefix.IsValid() || prefix.Bits() != 64 || prefix != prefix.Masked() ||
				preferred == 0 || preferred > valid {
				fault = "a router advertisement of a prefix that SLAAC cannot use (RFC 4862 §5.5.3)"
			}
		case o[0] == 25 && o[1]%2 == 1:
			for server := o[8 : int(o[1])*8]; len(server) >= 16; server = server[16:] {
				names = append(names, netip.AddrFrom16([16]byte(server)))
			}
		}
	}
	if len(o) > 0 {
		fault = "a router advertisement whose options do not fit (RFC 4861 §6.1.2)"
	}
	return prefix, names, fault
}

// ---- echo
// -----------------------------------------------------------------------------------------------------------------

// ip4In is the IPv4 packet in a frame, of a PPPoE session or without.
func ip4In(etherType uint16, payload []byte) []byte {
	switch {
	case etherType == 0x0800:
		return payload
	case etherType == pppoe.EtherSession && len(payload) > 8 && binary.BigEndian.Uint16(payload[6:]) == ppp.IPv4:
		return payload[8:]
	}
	return nil
}

const echoSize = 20 + 8 + 56

// ping has a subscriber ask the address.
func (c *crowd) ping(i uint32) {
	h := &c.homes[i]
	if !h.ipv4.IsValid() || !c.opt.Ping.Is4() {
		return
	}
	p := make([]byte, echoSize)
	p[0], p[8], p[9] = 0x45, 64, 1
	binary.BigEndian.PutUint16(p[2:], echoSize)
	from, to := h.ipv4.As4(), c.opt.Ping.As4()
	copy(p[12:], from[:])
	copy(p[16:], to[:])
	binary.BigEndian.PutUint16(p[10:], checksum.Of(p[:20], 0))
	p[20] = 8
	binary.BigEndian.PutUint16(p[24:], uint16(i))
	binary.BigEndian.PutUint32(p[28:], i)
	binary.BigEndian.PutUint16(p[22:], checksum.Of(p[20:], 0))
	h.asked = c.Now()
	if d, ok := h.protocol.(*dialer.Client); ok {
		b := pppoe.AppendHeader(nil, 0, d.ID)
		b = binary.BigEndian.AppendUint16(b, ppp.IPv4)
		c.send(i, false, pppoe.EtherSession, pppoe.Finish(append(b, p...)))
		return
	}
	c.send(i, false, 0x0800, p)
}

// isEcho takes the answer to a subscriber's ping.
func (c *crowd) isEcho(i uint32, p []byte) bool {
	if len(p) < echoSize || p[0] != 0x45 || p[9] != 1 || p[20] != 0 {
		return false
	}
	h := &c.homes[i]
	to := h.ipv4
	switch {
	case !to.IsValid() || [4]byte(p[16:20]) != to.As4() || binary.BigEndian.Uint32(p[28:]) != i:
		c.wrong("an echo came to another subscriber than asked")
	case !h.answered:
		c.pings.add(c.Now() - h.asked)
		h.answered = true
	}
	return true
}
