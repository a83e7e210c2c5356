// SPDX-License-Identifier: Apache-2.0
// Addresses and prefixes of both families. Pure.
#ifndef ROUTE_ADDRESS_H
#define ROUTE_ADDRESS_H

#include "isthmus_api.h"
#include "wire/ip.h"
#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <stdint.h>
#include <string.h>

// An address in one form for both families: IPv4 as ::ffff:a.b.c.d (RFC 4291 §2.5.5.2).
struct ip_address {
	uint8_t bytes[16];
};

// `family` is 4 or 6 and addresses are their 4 or 16 bytes in network order, except where struct ip_address is named.
struct ip_address ip_address_of(uint8_t family, const uint8_t *address);
// Its family, and its 4 or 16 bytes.
uint8_t ip_address_family(const struct ip_address *a);
static inline const uint8_t *ip_address_bytes(const struct ip_address *a, uint8_t family)
{
	return a->bytes + (family == 4 ? 12 : 0);
}
static inline int ip_in_prefix(const struct api_address *prefix, uint8_t family, const uint8_t *address)
{
	uint32_t a, b;

	if (prefix->family != family)
		return 0;
	if (unlikely(family != 4))
		return ip_prefix_equal(prefix->bytes, address, prefix->prefix);
	memcpy(&a, prefix->bytes, 4);
	memcpy(&b, address, 4);
	return (uint64_t)rte_be_to_cpu_32(a ^ b) >> (32 - prefix->prefix) == 0; // 64 bits: a prefix of 0 moves all out
}

static inline uint32_t address_length(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

// 1 when family and prefix length fit each other and the bytes behind the address are zero.
int address_valid(const struct api_address *a);
// 1 when no bit is set behind the prefix.
int prefix_canonical(const struct api_address *a);
// 1 when an interface may have this address (RFC 1122 §3.2.1.3, RFC 4291 §2.5).
int address_assignable(const struct api_address *a);
static inline int address_is_link_local(uint8_t family, const uint8_t *a)
{
	if (family == 4)
		return a[0] == 169 && a[1] == 254; // RFC 3927 §2.7
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80; // RFC 4291 §2.5.6
}
// "10.0.0.1" or "2001:db8::1" as a host's prefix; family 0: it is none.
struct api_address address_of_text(const char *text);
// Order of the route table: family, bytes, prefix length.
int prefix_compare(const struct api_address *a, const struct api_address *b);
const char *address_text(const struct api_address *a, char text[64]); // "10.0.0.0/8"; without length for host prefixes

// Of addresses: nearly all that are not in it are found by a bit map of 1024 hashes.
struct ip_filter {
	uint64_t bits[16];
};
static inline uint32_t ip_filter_bit(uint8_t family, const uint8_t *address)
{
	uint64_t low = 0;

	memcpy(&low, address + (family == 4 ? 0 : 12), 4);
	return (uint32_t)(low * 0x9e3779b97f4a7c15ull >> 54);
}

#endif
