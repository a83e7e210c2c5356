// SPDX-License-Identifier: Apache-2.0
// Bodies of objects at rest. Most of a million sessions are alike: for these only the difference from an example is
// kept (pack.h). A body without a similar example becomes one; it stays while others refer to it.
//
//   written and read by: the control thread
#ifndef CORE_BODY_H
#define CORE_BODY_H

#include <stdint.h>

struct body {
	uint8_t *bytes; // NULL: none
	uint32_t length;
	uint32_t stored : 24; // packed bytes; 0: as they came
	uint32_t example : 8; // 1 + the number of its example
};

// Replaces the held bytes by `bytes` (malloc'ed, or NULL) and owns them. `packed`: worth packing.
void body_hold(struct body *b, void *bytes, uint32_t length, int packed);
// Writes b->length bytes.
void body_copy(const struct body *b, void *to);
// Valid until the fourth call after this one, or until the body is freed. NULL: empty, or no memory.
const void *body_read(const struct body *b);

#endif
