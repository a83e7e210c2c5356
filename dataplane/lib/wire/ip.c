// SPDX-License-Identifier: Apache-2.0
// The rare half of the IP decoder: IPv6 extension headers (RFC 8200 §4) and IPv6 addresses that must not appear.
#include "wire/ip.h"

// Bytes of the extension header at p; 8 bytes of it are readable.
static uint32_t extension_length(uint8_t type, const uint8_t *p)
{
	if (type == IP_PROTOCOL_FRAGMENT)
		return 8;
	if (type == IP_PROTOCOL_AH) // RFC 4302 §2.2: in 4-byte words, minus 2
		return (p[1] + 2u) * 4u;
	return (p[1] + 1u) * 8u;
}

enum ip_status ip6_extensions_parse(const uint8_t *p, uint32_t available, struct ip_info *out)
{
	uint32_t at = IP6_HEADER;
	uint8_t next = out->protocol;

	for (unsigned i = 0; ip6_is_extension(next); i++) {
		// RFC 8200 §4.1: hop-by-hop options only right behind the IPv6 header.
		if (i == IP_MAX_EXTENSIONS || (next == IP_PROTOCOL_HOP_BY_HOP && i > 0))
			return IP_EXTENSIONS;
		if (at + 8 > out->length)
			return IP_EXTENSIONS;
		if (at + 8 > available)
			return IP_SHORT;
		uint32_t size = extension_length(next, p + at);
		if (size < 8 || at + size > out->length)
			return IP_EXTENSIONS;
		if (next == IP_PROTOCOL_FRAGMENT) {
			// An atomic fragment (RFC 6946: offset 0, no more) is a whole packet. A second header adds to
			// the first.
			out->fragment |= ip6_fragment(load16(p + at + 2));
		}
		next = p[at];
		at += size;
		if (out->fragment & IP_FRAGMENT_LATER)
			break; // what follows is the middle of something
	}
	if (at > available)
		return IP_SHORT;
	out->protocol = next;
	out->l4 = at;
	return ip_transport_parse(p, available, out);
}

const uint8_t *ip6_fragment_header(const uint8_t *p)
{
	const uint8_t *at = p + IP6_HEADER;

	for (uint8_t next = p[6]; next != IP_PROTOCOL_FRAGMENT && ip6_is_extension(next);) {
		uint32_t size = extension_length(next, at);

		next = at[0];
		at += size;
	}
	return at;
}

static int is_zero(const uint8_t *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i] != 0)
			return 0;
	return 1;
}

// ::, ::1 and ::ffff:0:0/96
static int never_on_the_wire(const uint8_t *a)
{
	if (!is_zero(a, 10))
		return 0;
	if (a[10] == 0xff && a[11] == 0xff)
		return 1;
	return is_zero(a + 10, 5) && a[15] <= 1;
}

const uint8_t ip4_odd_octet[256] = {[0] = 1, [127] = 1, [169] = 1, [224 ... 255] = 1};

unsigned ip6_martian(const uint8_t *source, const uint8_t *destination)
{
	unsigned flags = 0;

	if (source[0] == 0xff || never_on_the_wire(source))
		flags |= IP_MARTIAN_SOURCE;
	if (destination[0] == 0xff)
		flags |= IP_MULTICAST;
	else if (never_on_the_wire(destination))
		flags |= IP_MARTIAN_DESTINATION;
	return flags;
}
