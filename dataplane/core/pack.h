// SPDX-License-Identifier: Apache-2.0
// Bodies of objects at rest: zero bytes, of which fixed layouts are full, are counted instead of kept. A million
// sessions are held.
#ifndef CORE_PACK_H
#define CORE_PACK_H

#include <stdint.h>

// Most bytes that `length` bytes need.
#define PACK_MOST(length) ((length) + ((length) / 255 + 1) * 2 + 2)

// Returns the number of bytes written to `to`, which has room for PACK_MOST(length).
uint32_t pack_bytes(uint8_t *to, const void *from, uint32_t length);
// Writes `length` bytes, those that were packed.
void unpack_bytes(void *to, uint32_t length, const uint8_t *from, uint32_t packed);

#endif
