// SPDX-License-Identifier: Apache-2.0
// Plain headers: the first bytes of a frame as an example that others are compared with, and what is to be checked of
// those that are like it.
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
#define PLAIN_BYTES 64 // compared: to the first byte of the user's packet in a tunnel, with one tag or none

struct plain_bytes {
	uint8_t want[PLAIN_BYTES], mask[PLAIN_BYTES];
} __attribute__((aligned(64)));

// The frame as the example: Ethernet destination, type and VLAN ids; with `gpdu` (l3 at most 18, plain_is_gpdu()) of
// IPv4 version, header length, fragmentation, protocol and destination, of UDP the destination port, of GTP-U version,
// protocol type and message. The frame has PLAIN_BYTES or more.
void plain_bytes_set(struct plain_bytes *to, const uint8_t *frame, uint16_t l3, int gpdu);

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
	uint64_t differs = 0;

	for (int i = 0; i < PLAIN_BYTES; i += 8) {
		uint64_t is, want, mask;

		memcpy(&is, frame + i, 8);
		memcpy(&want, p->want + i, 8);
		memcpy(&mask, p->mask + i, 8);
		differs |= (is ^ want) & mask;
	}
	return differs == 0;
#endif
}

// IPv4 without options that carries UDP to the port of GTP-U. 24 bytes are readable.
static inline int plain_to_gtpu(const uint8_t *ip)
{
	return ip[0] == 0x45 && ip[9] == IP_PROTOCOL_UDP && load16(ip + 22) == GTPU_PORT;
}

// The same, not a fragment, and a G-PDU of version 1 (TS 29.281 §5.1). 30 bytes are readable.
static inline int plain_is_gpdu(const uint8_t *ip)
{
	return plain_to_gtpu(ip) && (load16(ip + 6) & 0x3fff) == 0 && (ip[28] & 0xf0) == 0x30 && ip[29] == GTPU_GPDU;
}

// What differs between G-PDUs with the same first bytes and ip-input checks: both lengths are as they must be for
// `length` bytes at ip, the header's checksum is right, the source may be one.
static inline int plain_outer_good(const uint8_t *ip, uint32_t length)
{
	return load16(ip + 2) == length && load16(ip + IP4_HEADER + 4) == length - IP4_HEADER &&
	       ip4_checksum_ok20(ip) && ip4_is_host(load32(ip + 12));
}

#endif
