// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"isthmus/api"
)

// A routing daemon changes 100,000 routes a second and more: messages of routes have a decoder of their own, which
// allocates nothing. All others are the library's.

// message is what counts of RTM_NEWROUTE and RTM_DELROUTE (linux/rtnetlink.h). Slices are the buffer's.
type message struct {
	family, bits, tos    uint8
	table                uint32
	protocol, kind       uint8 // kind: RTN_
	flags, metric        uint32
	destination, gateway []byte
	device               uint32
	paths                []byte // RTA_MULTIPATH
	foreign              bool   // RTA_VIA: a gateway of another family
}

const (
	attributeHead = 4      // struct rtattr
	typeMask      = 0x3fff // of its type: without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	pathHead      = 8      // struct rtnexthop
)

// chunk takes what a length says from a list whose entries are padded to 4 bytes; nil: the list is malformed.
func chunk(b []byte, length, least int) (one, rest []byte) {
	if length < least || length > len(b) {
		return nil, nil
	}
	return b[:length], b[min((length+3)&^3, len(b)):]
}

// eachAttribute calls fn with every attribute; false: malformed.
func eachAttribute(b []byte, fn func(kind uint16, value []byte)) bool {
	for len(b) >= attributeHead {
		one, rest := chunk(b, int(binary.NativeEndian.Uint16(b)), attributeHead)
		if one == nil {
			return false
		}
		fn(binary.NativeEndian.Uint16(b[2:])&typeMask, one[attributeHead:])
		b = rest
	}
	return true
}

func number(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

// decode reads what follows the netlink header; false: malformed.
func (m *message) decode(b []byte) bool {
	if len(b) < unix.SizeofRtMsg {
		return false
	}
	*m = message{family: b[0], bits: b[1], tos: b[3], table: uint32(b[4]), protocol: b[5], kind: b[7],
		flags: binary.NativeEndian.Uint32(b[8:])}
	return eachAttribute(b[unix.SizeofRtMsg:], func(kind uint16, value []byte) {
		switch kind {
		case unix.RTA_DST:
			m.destination = value
		case unix.RTA_GATEWAY:
			m.gateway = value
		case unix.RTA_VIA:
			m.foreign = true
		case unix.RTA_OIF:
			m.device = number(value)
		case unix.RTA_PRIORITY:
			m.metric = number(value)
		case unix.RTA_TABLE:
			m.table = number(value)
		case unix.RTA_MULTIPATH:
			m.paths = value
		}
	})
}

// prefix is the destination; false: none of IPv4 or IPv6.
func (m *message) prefix() (Prefix, bool) {
	p := Prefix{bits: m.bits, four: m.family == unix.AF_INET}
	length := net.IPv6len
	if p.four {
		length = net.IPv4len
		p.address[10], p.address[11] = 0xff, 0xff
	} else if m.family != unix.AF_INET6 {
		return Prefix{}, false
	}
	if len(m.destination) != 0 && len(m.destination) != length || int(m.bits) > 8*length {
		return Prefix{}, false
	}
	copy(p.address[net.IPv6len-length:], m.destination)
	return p, true
}

// hops are the next hops that a route has.
type nextHops struct {
	list  [1 + api.RouteFurther]Hop
	count int
}

// add takes one over if the data plane can have it: by a clone, beside gateways a gateway, once.
func (n *nextHops) add(t *table, device uint32, gateway []byte, foreign bool) {
	l, known := t.links[int(device)]
	if !known || foreign || n.count == len(n.list) {
		return
	}
	via, _ := netip.AddrFromSlice(gateway)
	hop := Hop{via.Unmap(), l.of}
	if n.count > 0 && (!hop.Via.IsValid() || !n.list[0].Via.IsValid() || slices.Contains(n.list[:n.count], hop)) {
		return
	}
	n.list[n.count] = hop
	n.count++
}

// hopsOf gathers a message's next hops.
func (t *table) hopsOf(m *message) (n nextHops) {
	if len(m.paths) == 0 {
		n.add(t, m.device, m.gateway, m.foreign)
		return n
	}
	for b := m.paths; len(b) >= pathHead; {
		one, rest := chunk(b, int(binary.NativeEndian.Uint16(b)), pathHead)
		if one == nil {
			break
		}
		var gateway []byte
		foreign := false
		eachAttribute(one[pathHead:], func(kind uint16, value []byte) {
			switch kind {
			case unix.RTA_GATEWAY:
				gateway = value
			case unix.RTA_VIA:
				foreign = true
			}
		})
		n.add(t, number(one[4:]), gateway, foreign)
		b = rest
	}
	return n
}

// candidateOf returns what counts of a route: unicast, of the main table, by a clone, not the configuration's own. Of
// several next hops those that do, whatever their weights; without a gateway, the first alone.
func (t *table) candidateOf(m *message) (Prefix, candidate, bool) {
	prefix, ok := m.prefix()
	if !ok || m.kind != unix.RTN_UNICAST || m.table != unix.RT_TABLE_MAIN || m.protocol == uint8(protocol) ||
		m.flags&unix.RTM_F_CLONED != 0 {
		return prefix, candidate{}, false
	}
	n := t.hopsOf(m)
	if n.count == 0 {
		return prefix, candidate{}, false
	}
	return prefix, candidate{RouteBy(n.list[:n.count]...), m.metric, m.tos}, true
}

// eachMessage calls fn with the messages of a datagram: type, flags, what follows the header.
func eachMessage(b []byte, fn func(kind, flags uint16, body []byte)) {
	for len(b) >= unix.SizeofNlMsghdr {
		one, rest := chunk(b, int(number(b)), unix.SizeofNlMsghdr)
		if one == nil {
			return
		}
		fn(binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]), one[unix.SizeofNlMsghdr:])
		b = rest
	}
}
