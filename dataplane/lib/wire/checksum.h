// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071): IPv4 header, transport with pseudo-header, and the update of one field (RFC 1624).
//
// Sums are as on the wire: 16-bit words as loaded. Functions that store or return a checksum say its order. Spans may
// be given in pieces, of even length but for the last.
#ifndef WIRE_CHECKSUM_H
#define WIRE_CHECKSUM_H

#include "wire/bytes.h"

static inline uint16_t checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

// checksum_finish() of a sum of few words.
static inline uint16_t checksum_finish32(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

// Sum of `length` bytes, added to `sum`. Start with 0 or checksum_pseudo().
uint64_t checksum_add(uint64_t sum, const void *p, uint32_t length);

// Value for a checksum field (memcpy, no byte swap) that was 0 in the sum. A receiver's sum over a good packet gives 0.
static inline uint16_t checksum_finish(uint64_t sum)
{
	return (uint16_t)~checksum_fold(sum);
}

// Sum of the pseudo-header (RFC 768, RFC 9293 §3.1, RFC 8200 §8.1). version 4 or 6; addresses as on the wire; length of
// the transport header and data.
static inline uint64_t checksum_pseudo(
	uint8_t version, const uint8_t *source, const uint8_t *destination, uint8_t protocol, uint32_t length)
{
	unsigned size = version == 4 ? 4 : 16;
	uint8_t tail[8];

	store32(tail, length);
	store32(tail + 4, protocol);
	return checksum_add(checksum_add(checksum_add(0, source, size), destination, size), tail, 8);
}

static inline uint64_t checksum_word(const uint8_t *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static inline uint64_t ip4_sum20(const uint8_t *p)
{
	return checksum_word(p) + checksum_word(p + 4) + checksum_word(p + 8) + checksum_word(p + 12) +
	       checksum_word(p + 16);
}

static inline void ip4_checksum_set(uint8_t *p)
{
	uint16_t sum;

	memset(p + 10, 0, 2);
	sum = checksum_finish(ip4_sum20(p));
	memcpy(p + 10, &sum, 2);
}

// 1 when the checksum of an IPv4 header without options is right: its sum is -0, which is a multiple of 65535.
static inline int ip4_checksum_ok20(const uint8_t *p)
{
	uint64_t sum, more;
	uint32_t last;

	memcpy(&sum, p, sizeof(sum));
	memcpy(&more, p + 8, sizeof(more));
	memcpy(&last, p + 16, sizeof(last));
	sum += more;
	sum += sum < more; // the carry: 2^64 is a multiple of 65535 and 1
	sum += last;
	sum += sum < last;
	return sum % 0xffff == 0;
}

// 1 when the checksum of the IPv4 header at p is right. The header's IHL bytes are readable (ip_parse checked them).
static inline int ip4_checksum_ok(const uint8_t *p)
{
	uint32_t length = (p[0] & 15) * 4u;

	if (__builtin_expect(length == 20, 1))
		return ip4_checksum_ok20(p);
	return checksum_finish(checksum_add(0, p, length)) == 0;
}

// RFC 1624 eqn. 3: the checksum field at `sum` (as on the wire) after a 16-bit word that it covers went from `from` to
// `to` (both as loaded by memcpy).
static inline void checksum_update16(uint8_t *sum, uint16_t from, uint16_t to)
{
	uint16_t old, fresh;

	memcpy(&old, sum, 2);
	fresh = (uint16_t)~checksum_fold((uint64_t)(uint16_t)~old + (uint16_t)~from + to);
	memcpy(sum, &fresh, 2);
}

// The same for 32 bits (an IPv4 address).
static inline void checksum_update32(uint8_t *sum, uint32_t from, uint32_t to)
{
	uint16_t old, fresh;

	memcpy(&old, sum, 2);
	from = ~from;
	fresh = (uint16_t)~checksum_fold(
		(uint64_t)(uint16_t)~old + (from & 0xffff) + (from >> 16) + (to & 0xffff) + (to >> 16));
	memcpy(sum, &fresh, 2);
}

// Decrements the TTL (> 0) of the IPv4 header at p and updates the checksum (RFC 1141, RFC 1624).
static inline void ip4_decrement_ttl(uint8_t *p)
{
	uint16_t sum;

	memcpy(&sum, p + 10, 2);
	sum = (uint16_t)(sum + 1 + (sum >= 0xfffe)); // the TTL is the low octet of a word as loaded
	p[8]--;
	memcpy(p + 10, &sum, 2);
}

#endif
