// SPDX-License-Identifier: Apache-2.0
// Plain headers: the first bytes of an example frame for comparison, and the checks that remain for equal ones.
#ifndef WIRE_PLAIN_H
#define WIRE_PLAIN_H

#include "wire/checksum.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <string.h>

#define PLAIN_OUTER 28u // IPv4 and UDP in front of GTP-U
#define PLAIN_OUTER6 48u // IPv6 and UDP
#define PLAIN_BYTES                                                                                                    \
	64 // compared, with one tag or none: to the first byte of the user's packet over IPv4, to UDP over IPv6

struct plain_bytes {
	uint8_t want[PLAIN_BYTES], mask[PLAIN_BYTES];
} __attribute__((aligned(64)));

// Extracts the bytes to compare from the example frame, of at least PLAIN_BYTES: Ethernet destination, type and VLAN
// ids. With `outer` 4 or 6 (l3 at most 18) also IP's destination and the fields of plain_to_gtpu(). With IPv4 also
// GTP-U version, protocol type and message (plain_is_gpdu()).
void plain_bytes_set(struct plain_bytes *to, const uint8_t *frame, uint16_t l3, uint8_t outer);

typedef uint64_t plain_part __attribute__((vector_size(16), aligned(1), may_alias)); // a register of NEON or SSE2

// PLAIN_BYTES may be read at `frame`.
static inline int plain_bytes_same(const struct plain_bytes *p, const uint8_t *frame)
{
#ifdef __AVX2__
	const __m256i *want = (const __m256i *)p->want, *mask = (const __m256i *)p->mask;
	const __m256i *is = (const __m256i *)frame;
	__m256i low = (_mm256_loadu_si256(is) ^ want[0]) & mask[0];
	__m256i high = (_mm256_loadu_si256(is + 1) ^ want[1]) & mask[1];

	return _mm256_testz_si256(low | high, low | high);
#else
	plain_part differs = {0};

	for (int i = 0; i < PLAIN_BYTES; i += (int)sizeof(plain_part))
		differs |= (*(const plain_part *)(frame + i) ^ *(const plain_part *)(p->want + i)) &
			   *(const plain_part *)(p->mask + i);
	return (differs[0] | differs[1]) == 0;
#endif
}

// The same of an example without `outer`, of which the link layer is compared, at most 24 bytes.
static inline int plain_bytes_same_link(const struct plain_bytes *p, const uint8_t *frame)
{
#ifdef __AVX2__
	__m256i differs = _mm256_loadu_si256((const __m256i *)frame) ^ *(const __m256i *)p->want;

	return _mm256_testz_si256(differs, *(const __m256i *)p->mask);
#else
	uint64_t is[3], want[3], mask[3];

	memcpy(is, frame, sizeof(is));
	memcpy(want, p->want, sizeof(want));
	memcpy(mask, p->mask, sizeof(mask));
	return (((is[0] ^ want[0]) & mask[0]) | ((is[1] ^ want[1]) & mask[1]) | ((is[2] ^ want[2]) & mask[2])) == 0;
#endif
}

// IPv4 without options, or IPv6 without extension headers, by `version`, with UDP to GTP-U's port. 24 bytes are
// readable, of IPv6 44.
static inline int plain_to_gtpu(uint8_t version, const uint8_t *ip)
{
	if (version == 4)
		return ip[0] == 0x45 && ip[9] == IP_PROTOCOL_UDP && load16(ip + 22) == GTPU_PORT;
	return ip[0] >> 4 == 6 && ip[6] == IP_PROTOCOL_UDP && load16(ip + IP6_HEADER + 2) == GTPU_PORT;
}

// Over IPv4, not a fragment, and a G-PDU of version 1 (TS 29.281 §5.1). 30 bytes are readable.
static inline int plain_is_gpdu(const uint8_t *ip)
{
	return plain_to_gtpu(4, ip) && (load16(ip + 6) & 0x3fff) == 0 && (ip[28] & 0xf0) == 0x30 && ip[29] == GTPU_GPDU;
}

// Checks the fields of ip-input that differ between G-PDUs with the same first bytes: both lengths fit `length` bytes
// at ip, the header's checksum is right, the source is allowed. The caller checks the UDP checksum.
static inline int plain_outer_good(uint8_t version, const uint8_t *ip, uint32_t length)
{
	if (version == 6)
		return load16(ip + 4) == length - IP6_HEADER && load16(ip + IP6_HEADER + 4) == length - IP6_HEADER &&
		       !(ip6_martian(ip + 8, ip + 24) & IP_MARTIAN_SOURCE);
	return load16(ip + 2) == length && load16(ip + IP4_HEADER + 4) == length - IP4_HEADER &&
	       ip4_checksum_ok20(ip) && ip4_is_host(load32(ip + 12));
}

#endif
