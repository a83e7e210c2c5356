// SPDX-License-Identifier: Apache-2.0
// Plain IPv4 headers checked all at once. Most good headers pass; the others are checked field by field (wire/ip.h,
// wire/plain.h). With AVX2 each field's bounds are a 16-bit lane, "at least a, at most b more":
//
//   half 0: outer length, outer source, inner length, inner fragmentation, inner source
//   half 1: outer UDP length, GTP-U length, inner destination, inner UDP length
//
// An address's first octet shows whether a host may have it (ip4_is_host()).
#ifndef WIRE_LANES_H
#define WIRE_LANES_H

#include "wire/ip.h"
#include "wire/tcp.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define LANES_BYTES 32u // readable at both headers

// TCP (RFC 9293 §3.1): the data offset is at least the header's and within `room`. Also excludes SYNs, at no cost:
// their flag makes the header look longer than any here. They are checked more closely.
static inline int lanes_tcp_good(const uint8_t *tcp, uint32_t room)
{
	if (room < TCP_HEADER)
		return 0;
	uint32_t word = load16(tcp + 12) & (0xf000 | TCP_SYN), header = word >> 10 | word << 22;
	return header - TCP_HEADER <= room - TCP_HEADER;
}

// 1 for an IPv6 packet of exactly `rest` bytes from `ip` on, at least a header, with UDP or TCP and no extension
// headers. Its addresses begin with neither 0 nor 0xff, as all of ip6_martian() do. 0: look closer.
static inline int ip6_plain_good(const uint8_t *ip, uint32_t rest)
{
	const uint8_t *transport = ip + IP6_HEADER;
	uint32_t room = rest - IP6_HEADER;

	if (ip[0] >> 4 != 6 || load16(ip + 4) != room || (uint8_t)(ip[8] - 1) >= 0xfe || (uint8_t)(ip[24] - 1) >= 0xfe)
		return 0;
	if (ip[6] == IP_PROTOCOL_UDP)
		return room >= 8 && (uint32_t)load16(transport + 4) - 8 <= room - 8;
	return ip[6] == IP_PROTOCOL_TCP && lanes_tcp_good(transport, room);
}

#ifdef __AVX2__

// Inner headers' bytes to their lanes; 128: none.
#define LANES_INNER                                                                                                    \
	_mm256_setr_epi8(-128, -128, -128, -128, 3, 2, 7, 6, 12, -128, -128, -128, -128, -128, -128, -128, -128, -128, \
		-128, -128, 0, -128, 9, 8, -128, -128, -128, -128, -128, -128, -128, -128)
#define LANES_OUTER                                                                                                    \
	_mm256_setr_epi8(3, 2, 12, -128, -128, -128, -128, -128, -128, -128, -128, -128, -128, -128, -128, -128, 9, 8, \
		15, 14, -128, -128, -128, -128, -128, -128, -128, -128, -128, -128, -128, -128)

// 1 when all lanes of v are good; of `lengths` those in `mask_a` and `mask_b` count towards a and b. The last lane
// matters for UDP alone.
static inline int lanes_good(__m256i v, __m256i lengths, __m256i mask_a, __m256i a, __m256i b, int udp)
{
	const __m256i fields = _mm256_setr_epi16(-1, -1, -1, 0x3fff, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	const __m256i mask_b = _mm256_setr_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0);
	const __m256i loopback = _mm256_setr_epi16(-1, 127, -1, -1, 127, -1, -1, -1, -1, -1, 127, -1, -1, -1, -1, -1);

	v = _mm256_and_si256(v, fields);
	a = _mm256_add_epi16(_mm256_and_si256(lengths, mask_a), a);
	b = _mm256_add_epi16(_mm256_and_si256(lengths, mask_b), b);
	__m256i more = _mm256_sub_epi16(v, a);
	__m256i good = _mm256_cmpeq_epi16(_mm256_min_epu16(more, b), more);
	uint32_t all = (uint32_t)_mm256_movemask_epi8(_mm256_andnot_si256(_mm256_cmpeq_epi16(v, loopback), good));

	return (all | (udp ? 0 : 3u << 22)) == UINT32_MAX;
}

// 1 for an IPv4 packet that fills the `rest` bytes from `ip` on: whole, between hosts, of UDP or TCP. It begins with
// 0x45, which the caller knows; 0: look closer.
static inline int lanes_ip4_good(const uint8_t *ip, uint32_t rest)
{
	const __m256i mask_a = _mm256_setr_epi16(0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	const __m256i a = _mm256_setr_epi16(0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0);
	const __m256i b = _mm256_setr_epi16(0, 0, 0, 0, 222, 0, 0, 0, 0, 0, 222, -28, 0, 0, 0, 0);
	__m256i v = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)ip), LANES_INNER);
	int udp = ip[9] == IP_PROTOCOL_UDP;

	return rest >= IP4_HEADER + 8 &&
	       (udp || (ip[9] == IP_PROTOCOL_TCP && lanes_tcp_good(ip + IP4_HEADER, rest - IP4_HEADER))) &&
	       lanes_good(v, _mm256_set1_epi16((short)rest), mask_a, a, b, udp);
}

// The same of the packet in a G-PDU that fills the `length` bytes from `outer` on, with the outer lengths and source.
static inline int lanes_gpdu_good(const uint8_t *outer, uint32_t length, const uint8_t *ip)
{
	const __m256i mask_a = _mm256_setr_epi16(-1, 0, -1, 0, 0, 0, 0, 0, -1, -1, 0, 0, 0, 0, 0, 0);
	const __m256i a = _mm256_setr_epi16(0, 1, 0, 0, 1, 0, 0, 0, -20, -36, 1, 8, 0, 0, 0, 0);
	const __m256i b = _mm256_setr_epi16(0, 222, 0, 0, 222, 0, 0, 0, 0, 0, 222, -28, 0, 0, 0, 0);
	uint32_t header = (uint32_t)(ip - outer), rest = length - header;
	__m256i v = _mm256_or_si256(_mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)outer), LANES_OUTER),
		_mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)ip), LANES_INNER));
	// Lanes 2 and 3 of both halves from the inner packet's.
	__m256i lengths = _mm256_blend_epi16(_mm256_set1_epi16((short)length), _mm256_set1_epi16((short)rest), 0x0c);
	int udp = ip[9] == IP_PROTOCOL_UDP;

	return length >= header + IP4_HEADER + 8 &&
	       (udp || (ip[9] == IP_PROTOCOL_TCP && lanes_tcp_good(ip + IP4_HEADER, rest - IP4_HEADER))) &&
	       lanes_good(v, lengths, mask_a, a, b, udp);
}

#else // the same without a branch for each field: what differs is gathered

// 1 unless between 1 and 223 and not 127.
static inline uint32_t lanes_no_host(uint8_t octet)
{
	return (uint32_t)((uint8_t)(octet - 1) > 222) | (octet == 127);
}

// Of the packet that fills `rest` bytes. 0: good.
static inline uint32_t lanes_ip4_differs(const uint8_t *ip, uint32_t rest)
{
	return (load16(ip + 2) ^ rest) | (load16(ip + 6) & 0x3fff) | lanes_no_host(ip[12]) | lanes_no_host(ip[16]);
}

static inline int lanes_transport_good(const uint8_t *ip, uint32_t rest)
{
	if (ip[9] == IP_PROTOCOL_UDP)
		return load16(ip + IP4_HEADER + 4) - 8u <= rest - IP4_HEADER - 8;
	return ip[9] == IP_PROTOCOL_TCP && lanes_tcp_good(ip + IP4_HEADER, rest - IP4_HEADER);
}

static inline int lanes_ip4_good(const uint8_t *ip, uint32_t rest)
{
	return rest >= IP4_HEADER + 8 && lanes_ip4_differs(ip, rest) == 0 && lanes_transport_good(ip, rest);
}

static inline int lanes_gpdu_good(const uint8_t *outer, uint32_t length, const uint8_t *ip)
{
	uint32_t header = (uint32_t)(ip - outer), rest = length - header;
	uint32_t differs = (load16(outer + 2) ^ length) | (load16(outer + IP4_HEADER + 4) ^ (length - IP4_HEADER)) |
			   (load16(outer + IP4_HEADER + 10) ^ (length - IP4_HEADER - 16)) | lanes_no_host(outer[12]);

	return length >= header + IP4_HEADER + 8 && (differs | lanes_ip4_differs(ip, rest)) == 0 &&
	       lanes_transport_good(ip, rest);
}

#endif
#endif
