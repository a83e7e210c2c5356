// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"net/netip"

	"isthmus/controlplane/checksum"
)

const (
	ethernetIPv4 = 0x0800
	ethernetARP  = 0x0806
	ethernetIPv6 = 0x86dd
	protocolUDP  = 17
	protocolICMP = 58
	hops         = 255 // of router advertisements (RFC 4861 §4.2)

	neighbourSolicitation = 135
)

var (
	broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	allNodes  = netip.AddrFrom16([16]byte{0: 0xff, 1: 0x02, 15: 1})
)

// datagram is a UDP datagram, or an ICMPv6 message, as it came.
type datagram struct {
	from, to        netip.Addr
	source, dest    uint16
	protocol, limit uint8
	body            []byte // behind the UDP header; of ICMPv6 with its header
}

func pseudo(from, to []byte, protocol uint8, length int) uint32 {
	return checksum.Sum(to, checksum.Sum(from, uint32(protocol)+uint32(length)))
}

// ipv4 reads UDP over IPv4; false: malformed, or a fragment (RFC 2131 §4.1: a server need not reassemble).
func ipv4(b []byte) (d datagram, ok bool) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return d, false
	}
	ihl, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	fragment := binary.BigEndian.Uint16(b[6:])&0x3fff != 0
	if ihl < 20 || total < ihl || total > len(b) || fragment || b[9] != protocolUDP {
		return d, false
	}
	d.from, d.to = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	return d, d.udp(b[ihl:total], b[12:20])
}

// udp reads a datagram; addresses are those of the IP header, for the checksum (0 with IPv4: none, RFC 768).
func (d *datagram) udp(b, addresses []byte) bool {
	if len(b) < 8 {
		return false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < 8 || length > len(b) {
		return false
	}
	if b[6]|b[7] != 0 || len(addresses) == 32 {
		if checksum.Of(b[:length], checksum.Sum(addresses, protocolUDP+uint32(length))) != 0 {
			return false
		}
	}
	d.protocol, d.source, d.dest = protocolUDP, binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	d.body = b[8:length]
	return true
}

// ipv6 reads UDP or ICMPv6 right behind the IPv6 header: neither DHCPv6 clients nor router solicitations send
// extension headers (RFC 6980 forbids fragments of the latter).
func ipv6(b []byte) (d datagram, ok bool) {
	if len(b) < 40 || b[0]>>4 != 6 {
		return d, false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length > len(b)-40 {
		return d, false
	}
	d.from, d.to, d.limit = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), b[7]
	body := b[40 : 40+length]
	switch b[6] {
	case protocolUDP:
		return d, d.udp(body, b[8:40])
	case protocolICMP:
		d.protocol, d.body = protocolICMP, body
		return d, len(body) >= 8 && checksum.Of(body, pseudo(b[8:24], b[24:40], protocolICMP, len(body))) == 0
	}
	return d, false
}

// packet makes an IP packet of UDP or ICMPv6.
func (d *datagram) packet() []byte {
	head := 0
	if d.protocol == protocolUDP {
		head = 8
	}
	length := head + len(d.body)
	ip := 40
	if d.from.Is4() {
		ip = 20
	}
	b := make([]byte, ip+length)
	from, to := d.from.AsSlice(), d.to.AsSlice()
	if ip == 20 {
		b[0], b[1], b[8], b[9] = 0x45, 0xc0, 64, d.protocol // CS6: network control
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		copy(b[12:], from)
		copy(b[16:], to)
		binary.BigEndian.PutUint16(b[10:], checksum.Of(b[:20], 0))
	} else {
		b[0], b[1], b[6], b[7] = 0x6c, 0, d.protocol, hops
		binary.BigEndian.PutUint16(b[4:], uint16(length))
		copy(b[8:], from)
		copy(b[24:], to)
	}
	body := b[ip:]
	copy(body[head:], d.body)
	at := 2 // of the checksum
	if head > 0 {
		binary.BigEndian.PutUint16(body, d.source)
		binary.BigEndian.PutUint16(body[2:], d.dest)
		binary.BigEndian.PutUint16(body[4:], uint16(length))
		at = 6
	}
	check := checksum.Of(body, pseudo(from, to, d.protocol, length))
	if check == 0 {
		check = 0xffff
	}
	binary.BigEndian.PutUint16(body[at:], check)
	return b
}
