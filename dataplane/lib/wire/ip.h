// SPDX-License-Identifier: Apache-2.0
// IPv4 (RFC 791) and IPv6 (RFC 8200) headers up to the transport header, in one decoder.
//
// A packet may be shorter than the rest of its frame (Ethernet padding): `length` is its own.
#ifndef WIRE_IP_H
#define WIRE_IP_H

#include "wire/checksum.h"

#define IP4_HEADER 20
#define IP6_HEADER 40
#define IP_MAX_EXTENSIONS 8

#define IP_PROTOCOL_HOP_BY_HOP 0
#define IP_PROTOCOL_ICMP 1
#define IP_PROTOCOL_TCP 6
#define IP_PROTOCOL_UDP 17
#define IP_PROTOCOL_IPV6 41
#define IP_PROTOCOL_ROUTING 43
#define IP_PROTOCOL_FRAGMENT 44
#define IP_PROTOCOL_GRE 47
#define IP_PROTOCOL_ESP 50
#define IP_PROTOCOL_AH 51
#define IP_PROTOCOL_ICMP6 58
#define IP_PROTOCOL_NONE 59
#define IP_PROTOCOL_DESTINATION 60
#define IP_PROTOCOL_DCCP 33
#define IP_PROTOCOL_SCTP 132
#define IP_PROTOCOL_MOBILITY 135
#define IP_PROTOCOL_HIP 139
#define IP_PROTOCOL_UDPLITE 136
#define IP_PROTOCOL_SHIM6 140

// Transport protocols whose header begins with a source and a destination port.
static inline int ip_has_ports(uint8_t protocol)
{
	return protocol == IP_PROTOCOL_TCP || protocol == IP_PROTOCOL_UDP || protocol == IP_PROTOCOL_SCTP ||
	       protocol == IP_PROTOCOL_DCCP || protocol == IP_PROTOCOL_UDPLITE;
}

#define IP_FRAGMENT_LATER 1u // not the first fragment: no transport header
#define IP_FRAGMENT_MORE 2u // more fragments follow
#define IP_FRAGMENT_FOLLOWS 4u // of packet.fragment alone: see reassembly/follow.h

// Of the flags and offset in an IPv4 header, and in an IPv6 fragment header.
static inline uint8_t ip4_fragment(uint16_t field)
{
	return (field & 0x1fff ? IP_FRAGMENT_LATER : 0) | (field >> 12 & IP_FRAGMENT_MORE);
}

static inline uint8_t ip6_fragment(uint16_t field)
{
	return (field & 0xfff8 ? IP_FRAGMENT_LATER : 0) | (field & 1 ? IP_FRAGMENT_MORE : 0);
}

enum ip_status {
	IP_OK,
	IP_SHORT, // ends before the header does
	IP_VERSION, // neither 4 nor 6
	IP_HEADER, // IHL below 5 or past the packet
	IP_LENGTH, // length field past the frame or below the header; IPv6 payload length 0 with a next header
	IP_EXTENSIONS, // IPv6 extension headers truncated, out of order, or more than IP_MAX_EXTENSIONS
	IP_TRANSPORT, // transport header truncated, or its own length is impossible
	IP_SUM, // of the IPv4 header; of ip_check() alone
};

struct ip_info {
	uint8_t version;
	uint8_t protocol; // transport, after IPv6 extension headers
	uint8_t dscp;
	uint8_t ttl;
	uint8_t fragment; // IP_FRAGMENT_*, 0: whole
	uint16_t l4; // offset of the transport header
	uint16_t source_port; // host order; 0 when the protocol has none or in a later fragment
	uint16_t destination_port; // the same
	uint32_t length; // bytes of the packet, as its header says
	const uint8_t *source; // 4 or 16 bytes in the packet
	const uint8_t *destination;
};

// 1 when the first `bits` bits of two addresses are equal.
static inline int ip_prefix_equal(const uint8_t *a, const uint8_t *b, uint32_t bits)
{
	uint32_t bytes = bits / 8, rest = bits % 8;

	if (memcmp(a, b, bytes) != 0)
		return 0;
	return rest == 0 || ((a[bytes] ^ b[bytes]) >> (8 - rest)) == 0;
}

// Checks the transport header at out->l4 and fills in the ports. Part of ip_parse.
static inline enum ip_status ip_transport_parse(const uint8_t *p, uint32_t available, struct ip_info *out)
{
	uint32_t room = out->length - out->l4;
	uint32_t readable = available - out->l4;
	const uint8_t *t = p + out->l4;

	out->source_port = 0;
	out->destination_port = 0;
	if (__builtin_expect(out->fragment & IP_FRAGMENT_LATER, 0))
		return IP_OK;
	if (out->protocol == IP_PROTOCOL_UDP) {
		if (__builtin_expect(room < 8, 0))
			return IP_TRANSPORT;
		if (__builtin_expect(readable < 8, 0))
			return IP_SHORT;
		uint16_t length = load16(t + 4);
		// RFC 768. The first fragment's UDP length covers the later ones too.
		if (__builtin_expect(length < 8 || (length > room && out->fragment == 0), 0))
			return IP_TRANSPORT;
	} else if (out->protocol == IP_PROTOCOL_TCP) {
		if (__builtin_expect(room < 20, 0))
			return IP_TRANSPORT;
		if (__builtin_expect(readable < 20, 0))
			return IP_SHORT;
		uint32_t header = (t[12] >> 4) * 4u;
		// RFC 9293 §3.1. Also in a first fragment: cutting the TCP header is an attack (RFC 1858 §3).
		if (__builtin_expect(header < 20 || header > room, 0))
			return IP_TRANSPORT;
	} else if (out->protocol == IP_PROTOCOL_SCTP) {
		if (room < 12)
			return IP_TRANSPORT;
		if (readable < 12)
			return IP_SHORT;
	} else {
		uint8_t icmp = out->version == 4 ? IP_PROTOCOL_ICMP : IP_PROTOCOL_ICMP6;
		if (out->protocol != icmp)
			return IP_OK;
		if (room < 8)
			return IP_TRANSPORT;
		return readable < 8 ? IP_SHORT : IP_OK;
	}
	out->source_port = load16(t);
	out->destination_port = load16(t + 2);
	return IP_OK;
}

// IPv6 with extension headers: walks them and then checks the transport. Part of ip_parse, rare.
enum ip_status ip6_extensions_parse(const uint8_t *p, uint32_t available, struct ip_info *out);

// The fragment header of an IPv6 packet that ip_parse() read and found to be a fragment.
const uint8_t *ip6_fragment_header(const uint8_t *p);

static inline int ip6_is_extension(uint8_t next)
{
	const uint64_t low = 1ull << IP_PROTOCOL_HOP_BY_HOP | 1ull << IP_PROTOCOL_ROUTING |
			     1ull << IP_PROTOCOL_FRAGMENT | 1ull << IP_PROTOCOL_AH | 1ull << IP_PROTOCOL_DESTINATION;
	if (next < 64)
		return low >> next & 1;
	return next == IP_PROTOCOL_MOBILITY || next == IP_PROTOCOL_HIP || next == IP_PROTOCOL_SHIM6;
}

// Reads the packet at p. `available` bytes may be read (first segment); the frame holds `total` bytes from p on, never
// fewer than `available`. *out is valid only after IP_OK. The IPv4 header checksum is for ip_check().
static inline enum ip_status ip_parse(const uint8_t *p, uint32_t available, uint32_t total, struct ip_info *out)
{
	if (__builtin_expect(available < IP4_HEADER, 0))
		return available > 0 && p[0] >> 4 != 4 && p[0] >> 4 != 6 ? IP_VERSION : IP_SHORT;
	if (__builtin_expect(p[0] >> 4 == 4, 1)) {
		uint32_t header = (p[0] & 15) * 4u;
		uint32_t length = load16(p + 2);
		if (__builtin_expect(header < IP4_HEADER || header > total, 0))
			return IP_HEADER;
		if (__builtin_expect(length < header || length > total, 0))
			return IP_LENGTH;
		if (__builtin_expect(header > available, 0))
			return IP_SHORT;
		out->version = 4;
		out->protocol = p[9];
		out->dscp = p[1] >> 2;
		out->ttl = p[8];
		out->fragment = ip4_fragment(load16(p + 6));
		out->l4 = header;
		out->length = length;
		out->source = p + 12;
		out->destination = p + 16;
		return ip_transport_parse(p, available, out);
	}
	if (__builtin_expect(p[0] >> 4 != 6, 0))
		return IP_VERSION;
	if (__builtin_expect(available < IP6_HEADER, 0))
		return IP_SHORT;
	out->version = 6;
	out->protocol = p[6];
	out->dscp = (p[0] << 2 & 0x3c) | p[1] >> 6;
	out->ttl = p[7];
	out->fragment = 0;
	out->l4 = IP6_HEADER;
	out->length = IP6_HEADER + (uint32_t)load16(p + 4);
	out->source = p + 8;
	out->destination = p + 24;
	if (__builtin_expect(out->length > total, 0))
		return IP_LENGTH;
	// A payload length of 0 is a jumbogram (RFC 2675), which nothing here carries, or a packet without content.
	if (__builtin_expect(out->length == IP6_HEADER && out->protocol != IP_PROTOCOL_NONE, 0))
		return IP_LENGTH;
	if (__builtin_expect(ip6_is_extension(out->protocol), 0))
		return ip6_extensions_parse(p, available, out);
	return ip_transport_parse(p, available, out);
}

// ip_parse() of another host's packet: also checks its IPv4 header checksum (RFC 1812 §5.2.2).
static inline enum ip_status ip_check(const uint8_t *p, uint32_t available, uint32_t total, struct ip_info *out)
{
	enum ip_status status = ip_parse(p, available, total, out);

	if (__builtin_expect(status == IP_OK && out->version == 4 && !ip4_checksum_ok(p), 0))
		return IP_SUM;
	return status;
}

// 1 for neighbour discovery (RFC 4861 types 133 to 137). `p` is the packet that ip_parse() read.
static inline int ip_is_discovery(const uint8_t *p, const struct ip_info *ip)
{
	return ip->version == 6 && ip->protocol == IP_PROTOCOL_ICMP6 && ip->fragment == 0 && p[ip->l4] >= 133 &&
	       p[ip->l4] <= 137;
}

// Addresses that no forwarded packet may carry (RFC 1812 §5.3.7, RFC 4291 §2.5, row G24).
enum ip_martian {
	IP_MARTIAN_NONE = 0,
	IP_MARTIAN_SOURCE = 1, // source: unspecified, loopback, multicast, broadcast, class E, v4-mapped
	IP_MARTIAN_DESTINATION = 2, // destination: unspecified, 0/8, loopback, class E, v4-mapped
	IP_MULTICAST = 4, // flag beside the others: the destination is multicast or broadcast; the caller decides
};

unsigned ip6_martian(const uint8_t *source, const uint8_t *destination);

// 1 for an address that a host may have (a is in host order): not 0/8, loopback, multicast, class E, limited broadcast.
static inline int ip4_is_host(uint32_t a)
{
	return a - 0x01000000u < 0xdf000000u && a >> 24 != 127;
}

// 1: addresses with this first octet need a closer look before forwarding: not a host's (ip4_is_host()), or possibly
// link-local (RFC 3927).
extern const uint8_t ip4_odd_octet[256];

// Multicast, or the limited broadcast.
static inline int ip_is_group(uint8_t version, const uint8_t *address)
{
	if (version != 4)
		return address[0] == 0xff;
	return address[0] >> 4 == 0xe || load32(address) == 0xffffffffu;
}

// Flags of enum ip_martian. The pointers are to 4 or 16 bytes.
static inline unsigned ip_martian(uint8_t version, const uint8_t *source, const uint8_t *destination)
{
	unsigned flags = 0;

	if (__builtin_expect(version != 4, 0))
		return ip6_martian(source, destination);
	uint32_t s = load32(source), d = load32(destination);
	if (__builtin_expect(!ip4_is_host(s), 0))
		flags |= IP_MARTIAN_SOURCE;
	if (__builtin_expect(!ip4_is_host(d), 0)) {
		if (ip_is_group(4, destination))
			flags |= IP_MULTICAST;
		else
			flags |= IP_MARTIAN_DESTINATION;
	}
	return flags;
}

#endif
