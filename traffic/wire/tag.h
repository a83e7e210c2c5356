// SPDX-License-Identifier: Apache-2.0
// The last 16 bytes of every packet of the tester: which packet of which flow it is and when it was sent.
#ifndef TRAFFIC_TAG_H
#define TRAFFIC_TAG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#define CRC32C_64 _mm_crc32_u64
#define CRC32C_32 _mm_crc32_u32
#else
#include <arm_acle.h>
#define CRC32C_64 __crc32cd
#define CRC32C_32 __crc32cw
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tags are copied as they are in memory");

#define TAG_BYTES 16
#define TAG_FLOWS (1u << 24)
#define TAG_STREAMS 256
#define TAG_SIZES 16
#define TAG_SEQUENCES (1u << 28)

// Little-endian, unaligned in the packet.
struct tag {
	uint64_t identity; // bits 0..23: flow, 24..31: stream, 32..35: index of its size, 36..63: number in the flow
	uint32_t time; // TSC ticks >> TAG_TIME_SHIFT when the packet was made; wraps after seconds
	uint32_t check; // CRC-32C of the above, begun with the run's and the trial's number: ours and no other's
};
#define TAG_TIME_SHIFT 3

static inline uint32_t tag_flow(const struct tag *t)
{
	return (uint32_t)t->identity & (TAG_FLOWS - 1);
}
static inline uint32_t tag_stream(const struct tag *t)
{
	return (uint32_t)(t->identity >> 24) & (TAG_STREAMS - 1);
}
static inline uint32_t tag_size(const struct tag *t)
{
	return (uint32_t)(t->identity >> 32) & (TAG_SIZES - 1);
}
static inline uint32_t tag_sequence(const struct tag *t)
{
	return (uint32_t)(t->identity >> 36);
}
// How far sequence number a is ahead of b, both modulo 2^28.
static inline int32_t tag_distance(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 4) >> 4;
}

static inline uint32_t tag_check(const struct tag *t, uint32_t nonce)
{
	return CRC32C_32((uint32_t)CRC32C_64(nonce, t->identity), t->time);
}

// `time`: ticks >> TAG_TIME_SHIFT.
static inline void tag_make(
	struct tag *t, uint32_t stream, uint32_t flow, uint32_t size, uint32_t sequence, uint32_t time, uint32_t nonce)
{
	t->identity = flow | (uint64_t)(stream | size << 8) << 24 | (uint64_t)sequence << 36;
	t->time = time;
	t->check = tag_check(t, nonce);
}

// Reads a tag. Returns whether it is one of this trial.
static inline bool tag_read(const uint8_t *from, uint32_t nonce, struct tag *t)
{
	memcpy(t, from, sizeof(*t));
	return t->check == tag_check(t, nonce);
}

#endif
