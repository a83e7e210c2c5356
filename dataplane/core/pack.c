// SPDX-License-Identifier: Apache-2.0
// Pairs of counts, each followed by bytes: so many zeros, so many literal bytes.
#include "core/pack.h"
#include <string.h>

// Zeros worth a new pair; fewer are kept as they are.
#define FEW 3u

static uint32_t zeros_at(const uint8_t *p, uint32_t at, uint32_t length)
{
	uint32_t n = 0;

	for (uint64_t word; n + 8 <= 255 && at + n + 8 <= length; n += 8) {
		memcpy(&word, p + at + n, 8);
		if (word != 0)
			break;
	}
	while (at + n < length && n < 255 && p[at + n] == 0)
		n++;
	return n;
}

static uint32_t others_at(const uint8_t *p, uint32_t at, uint32_t length)
{
	uint32_t n = 0;

	while (at + n < length && n < 255) {
		uint32_t zeros = p[at + n] != 0 ? 0 : zeros_at(p, at + n, length);

		if (zeros >= FEW || (zeros != 0 && at + n + zeros == length))
			break;
		n += zeros == 0 || n + zeros > 255 ? 1 : zeros;
	}
	return n;
}

uint32_t pack_bytes(uint8_t *to, const void *from, uint32_t length)
{
	const uint8_t *p = from;
	uint32_t out = 0;

	for (uint32_t at = 0; at < length;) {
		uint32_t zeros = zeros_at(p, at, length);
		uint32_t others = others_at(p, at + zeros, length);

		to[out++] = (uint8_t)zeros;
		to[out++] = (uint8_t)others;
		memcpy(to + out, p + at + zeros, others);
		out += others;
		at += zeros + others;
	}
	return out;
}

void unpack_bytes(void *to, uint32_t length, const uint8_t *from, uint32_t packed)
{
	uint8_t *p = to;
	uint32_t at = 0;

	memset(p, 0, length);
	for (uint32_t i = 0; i + 2 <= packed;) {
		uint32_t zeros = from[i], others = from[i + 1];

		if (zeros + others > length - at || others > packed - i - 2)
			return; // not what was packed
		memcpy(p + at + zeros, from + i + 2, others);
		at += zeros + others;
		i += 2 + others;
	}
}
