// SPDX-License-Identifier: Apache-2.0
// Reading and writing big-endian numbers at any address. Callers check lengths before.
#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

#include <stdint.h>
#include <string.h>

// Here and where a union names one half of a word (rule/rule.h). The contract's messages are in the machine's order.
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "for little-endian machines alone: x86-64, arm64");

static inline uint16_t load16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t load32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline void store16(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

#endif
