// SPDX-License-Identifier: Apache-2.0
// The Internet checksum over any span.
#include "wire/checksum.h"

typedef uint64_t lanes __attribute__((vector_size(32)));

// Of whole lanes; 2^32 steps do not overflow them.
static uint64_t add_lanes(const uint8_t *p, uint32_t count)
{
	lanes sum = {0};

	for (uint32_t i = 0; i < count; i++, p += sizeof(lanes)) {
		lanes v;
		memcpy(&v, p, sizeof(v));
		sum += (v & 0xffffffffu) + (v >> 32);
	}
	return sum[0] + sum[1] + sum[2] + sum[3];
}

uint64_t checksum_add(uint64_t sum, const void *data, uint32_t length)
{
	const uint8_t *p = data;
	uint32_t whole = length / sizeof(lanes);

	if (whole > 2) {
		sum += add_lanes(p, whole);
		p += whole * sizeof(lanes);
		length %= sizeof(lanes);
	}
	for (; length >= 8; length -= 8, p += 8) {
		uint64_t v;
		memcpy(&v, p, 8);
		sum += (v & 0xffffffffu) + (v >> 32); // at most 2^33 a step: no overflow below 2^34 bytes
	}
	if (length >= 4) {
		uint32_t v;
		memcpy(&v, p, 4);
		sum += v;
		p += 4;
		length -= 4;
	}
	if (length >= 2) {
		uint16_t v;
		memcpy(&v, p, 2);
		sum += v;
		p += 2;
		length -= 2;
	}
	if (length) { // RFC 1071: an odd byte is padded with zero behind it
		uint8_t pad[2] = {*p, 0};
		uint16_t v;
		memcpy(&v, pad, 2);
		sum += v;
	}
	return sum;
}
