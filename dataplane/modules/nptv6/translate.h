// SPDX-License-Identifier: Apache-2.0
// Addresses of one prefix become addresses of another with the same checksum (RFC 6296 §3). Pure.
#ifndef NPTV6_TRANSLATE_H
#define NPTV6_TRANSLATE_H

#include "wire/checksum.h"
#include "wire/icmp.h"

enum nptv6_direction { NPTV6_OUT, NPTV6_IN };

struct nptv6_pair {
	uint64_t mask; // of an address's first eight bytes, as on the wire, as the prefixes
	uint64_t prefix[2]; // [NPTV6_OUT]: inside; by what is translated in that direction
	uint16_t adjustment[2]; // of that direction, as on the wire (§3.1)
	uint8_t in_subnet; // prefixes of 48 bits or less
};

static inline uint64_t nptv6_head(const uint8_t *address)
{
	uint64_t head;

	memcpy(&head, address, 8);
	return head;
}

// §3.1. `length` up to 64; no bit is set behind it.
static inline void nptv6_pair_set(struct nptv6_pair *p, const uint8_t *inside, const uint8_t *outside, uint32_t length)
{
	const uint16_t sum[2] = {checksum_fold(checksum_add(0, inside, 8)), checksum_fold(checksum_add(0, outside, 8))};

	*p = (struct nptv6_pair){.mask = __builtin_bswap64(length == 0 ? 0 : UINT64_MAX << (64 - length)),
		.prefix = {nptv6_head(inside), nptv6_head(outside)},
		.in_subnet = length <= 48};
	for (int d = 0; d < 2; d++)
		p->adjustment[d] = checksum_fold((uint64_t)sum[d] + (uint16_t)~sum[!d]);
}

// The pair whose prefix holds the address, or -1.
static inline int nptv6_find(
	const struct nptv6_pair *pair, uint32_t count, enum nptv6_direction d, const uint8_t *address)
{
	uint64_t head = nptv6_head(address);

	for (uint32_t i = 0; i < count; i++)
		if (((head ^ pair[i].prefix[d]) & pair[i].mask) == 0)
			return (int)i;
	return -1;
}

// Translates an address of the pair's prefix. 0, and unchanged: it has no counterpart: subnet 0xffff (§3.4), or an
// interface identifier of all ones (§3.7; for its "all-zeros" see RFC erratum 8757).
static inline int nptv6_map(const struct nptv6_pair *p, enum nptv6_direction d, uint8_t *address)
{
	uint8_t *at = address + (p->in_subnet ? 6 : 8), *end = address + (p->in_subnet ? 8 : 16);
	uint16_t word = 0xffff;

	for (; at < end; at += 2) {
		memcpy(&word, at, 2);
		if (word != 0xffff)
			break;
	}
	if (word == 0xffff)
		return 0;
	word = checksum_fold((uint64_t)word + p->adjustment[d]);
	word = word == 0xffff ? 0 : word;
	memcpy(at, &word, 2);
	uint64_t head = (nptv6_head(address) & ~p->mask) | p->prefix[!d];
	memcpy(address, &head, 8);
	return 1;
}

// The address that is translated in the packet that an ICMPv6 error quotes, which went the other way; NULL: it quotes
// none. `room`: bytes from the ICMPv6 header on.
static inline uint8_t *nptv6_quoted(uint8_t *icmp, uint32_t room, enum nptv6_direction d)
{
	uint8_t *quoted = icmp + ICMP_HEADER;

	if (room < ICMP_HEADER + IP6_HEADER || icmp[0] >= 128 || quoted[0] >> 4 != 6) // RFC 4443 §2.1
		return NULL;
	return quoted + (d == NPTV6_OUT ? 24 : 8);
}

#endif
