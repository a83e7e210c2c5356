// SPDX-License-Identifier: Apache-2.0
// Bodies of objects at rest. A million sessions are held, of which most are like others: of those only what differs
// from an example is kept (pack.h). An example is a body that came when none was alike; it stays while others are held
// by it.
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

// Takes over `bytes`, which were malloc'ed, or NULL, in place of what is held. `packed`: worth the work.
void body_hold(struct body *b, void *bytes, uint32_t length, int packed);
// Writes b->length bytes.
void body_copy(const struct body *b, void *to);
// Valid until the fourth call after this one, or until the body goes. NULL: there is none, or no memory.
const void *body_read(const struct body *b);

#endif
