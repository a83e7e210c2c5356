// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"hash/maphash"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"isthmus/api"
)

// A routing daemon changes 100,000 routes a second and more: our decoder of route messages allocates nothing. So does
// that of next hop objects (nexthop.go); links, addresses and neighbours are the library's.

// message is what counts of RTM_NEWROUTE and RTM_DELROUTE (linux/rtnetlink.h). Slices are the buffer's.
type message struct {
	family, bits, tos    uint8
	fromBits             uint8 // of the source that it is for
	table                uint32
	protocol, scope      uint8
	kind                 uint8 // RTN_
	flags, metric        uint32
	destination, gateway []byte
	source, metrics      []byte // that packets have; RTA_METRICS
	device, nextHop      uint32
	paths                []byte // RTA_MULTIPATH
	foreign              bool   // a gateway of a family that we do not know
	tunnel               bool   // RTA_ENCAP
}

const (
	attributeHead = 4      // struct rtattr
	typeMask      = 0x3fff // of its type: without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	pathHead      = 8      // struct rtnexthop
)

// chunk splits an entry of its length off a list padded to 4 bytes; nil: the list is malformed.
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
	*m = message{family: b[0], bits: b[1], fromBits: b[2], tos: b[3], table: uint32(b[4]),
		protocol: b[5], scope: b[6], kind: b[7], flags: binary.NativeEndian.Uint32(b[8:])}
	return eachAttribute(b[unix.SizeofRtMsg:], func(kind uint16, value []byte) {
		switch kind {
		case unix.RTA_DST:
			m.destination = value
		case unix.RTA_GATEWAY:
			m.gateway = value
		case unix.RTA_VIA:
			m.gateway, m.foreign = viaOf(value)
		case unix.RTA_ENCAP:
			m.tunnel = true
		case unix.RTA_PREFSRC:
			m.source = value
		case unix.RTA_METRICS:
			m.metrics = value
		case attributeNextHop:
			m.nextHop = number(value)
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

// viaOf reads struct rtvia: the gateway of another family than the destination's; foreign: not IPv6.
func viaOf(value []byte) (gateway []byte, foreign bool) {
	if len(value) != 2+net.IPv6len || binary.NativeEndian.Uint16(value) != unix.AF_INET6 {
		return nil, true
	}
	return value[2:], false
}

// pathOf is a next hop as the kernel has it.
type pathOf struct {
	gateway         []byte
	device, flags   uint32
	tunnel, foreign bool
}

// pathsOf lists a message's next hops. room may hold them.
func (m *message) pathsOf(room []pathOf) []pathOf {
	if len(m.paths) == 0 {
		return append(room, pathOf{m.gateway, m.device, m.flags, m.tunnel, m.foreign})
	}
	for b := m.paths; len(b) >= pathHead; {
		one, rest := chunk(b, int(binary.NativeEndian.Uint16(b)), pathHead)
		if one == nil {
			break
		}
		p := pathOf{device: number(one[4:]), flags: uint32(one[2])}
		eachAttribute(one[pathHead:], func(kind uint16, value []byte) {
			switch kind {
			case unix.RTA_GATEWAY:
				p.gateway = value
			case unix.RTA_VIA:
				p.gateway, p.foreign = viaOf(value)
			case unix.RTA_ENCAP:
				p.tunnel = true
			}
		})
		room = append(room, p)
		b = rest
	}
	return room
}

// along is the route by these next hops: those that are not dead, by clones, whatever their weights. The kernel uses
// links without a carrier if it has no others, unless configured not to: then they are dead.
func (t *table) along(paths []pathOf) Route {
	var g, unlinked gathered
	for i := range paths {
		p := &paths[i]
		via, _ := netip.AddrFromSlice(p.gateway)
		hop := Hop{Via: via.Unmap(), Interface: t.links[int(p.device)].of}
		switch {
		case p.foreign:
			g.leave(BadGateway, hop.Via, p.device)
		case hop.Interface == "":
			g.leave(NoClone, hop.Via, p.device)
		case p.tunnel:
			g.leave(Encapsulated, hop.Via, p.device)
		case p.flags&unix.RTNH_F_DEAD != 0:
			g.leave(Dead, hop.Via, p.device)
		case p.flags&unix.RTNH_F_LINKDOWN != 0:
			unlinked.add(hop, p.device)
		default:
			g.add(hop, p.device)
		}
	}
	if g.count > 0 {
		for range unlinked.count {
			g.leave(Dead, unlinked.list[0].Via, 0)
		}
		return g.route()
	}
	if g.left.hops > 0 {
		unlinked.left = g.left
	}
	return unlinked.route()
}

// discards are the types of routes at which packets end. Of RTN_THROW nothing is behind the main table.
var discards = [unix.RTN_XRESOLVE + 1]uint32{unix.RTN_BLACKHOLE: api.DiscardBlackhole,
	unix.RTN_UNREACHABLE: api.DiscardUnreachable, unix.RTN_PROHIBIT: api.DiscardProhibit,
	unix.RTN_THROW: api.DiscardUnreachable}

// fateOf is what becomes of packets to a message's destination.
func (t *table) fateOf(m *message) Route {
	switch {
	case m.kind < uint8(len(discards)) && discards[m.kind] != api.DiscardNone:
		return Discarding(discards[m.kind])
	case m.kind != unix.RTN_UNICAST:
		return routeOf(&fate{left: left{reason: OtherType}})
	case m.nextHop != 0:
		return t.byNextHop(m.nextHop)
	}
	var room [mostHops]pathOf
	paths := m.pathsOf(room[:0])
	if len(paths) != 1 {
		return t.along(paths)
	}
	via, _ := netip.AddrFromSlice(paths[0].gateway)
	key := pathKey{via, paths[0].device, paths[0].flags, paths[0].tunnel, paths[0].foreign}
	r, known := t.made[key]
	if !known {
		if len(t.made) == mostMade {
			clear(t.made)
		}
		r = t.along(paths)
		t.made[key] = r
	}
	return r
}

// pathKey names a single next hop: nearly all routes have one of a few. table.made has their Routes, until devices
// change.
type pathKey struct {
	via             netip.Addr
	device, flags   uint32
	tunnel, foreign bool
}

const mostMade = 4096

// candidateOf returns a relevant route: of the main table, not the configuration's own, nor the kernel's own for links
// and groups.
func (t *table) candidateOf(m *message) (Prefix, candidate, bool) {
	p, ok := m.prefix()
	if !ok || m.protocol == uint8(protocol) || m.flags&unix.RTM_F_CLONED != 0 || m.table == unix.RT_TABLE_LOCAL ||
		p.ofLink() || m.protocol == unix.RTPROT_KERNEL && m.kind != unix.RTN_UNICAST {
		return p, candidate{}, false
	}
	if why := m.elsewhere(); why != Followed {
		return p, candidate{why: why}, true
	}
	c := candidate{metric: m.metric, nextHop: m.nextHop, identity: m.identity()}
	c.by(t.fateOf(m))
	// Such of IPv6 are next hops of one route (rt6_qualify_for_ecmp).
	c.sibling = !p.four && m.nextHop == 0 && m.kind == unix.RTN_UNICAST && m.protocol != unix.RTPROT_RA &&
		(len(m.gateway) > 0 || len(m.paths) > 0)
	return p, c, true
}

var identitySeed = maphash.MakeSeed()

// identity distinguishes routes of a prefix and metric as the kernel does (struct fib_info): not by later changes of
// their next hops.
func (m *message) identity() uint32 {
	var h maphash.Hash
	h.SetSeed(identitySeed)
	h.Write([]byte{m.protocol, m.scope, m.kind})
	h.Write(m.source)
	h.Write(m.metrics)
	if m.nextHop != 0 {
		maphash.WriteComparable(&h, m.nextHop)
		return uint32(h.Sum64())
	}
	h.Write(m.gateway)
	maphash.WriteComparable(&h, m.device)
	for b := m.paths; len(b) >= pathHead; {
		one, rest := chunk(b, int(binary.NativeEndian.Uint16(b)), pathHead)
		if one == nil {
			break
		}
		h.Write(one[:2])
		h.Write(one[3:]) // but for its flags
		b = rest
	}
	return uint32(h.Sum64())
}

// elsewhere is why a route is outside of the compared tables.
func (m *message) elsewhere() Reason {
	switch {
	case m.table != unix.RT_TABLE_MAIN:
		return OtherTable
	case m.tos != 0:
		return ForTOS
	case m.fromBits != 0:
		return ForSource
	}
	return Followed
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
