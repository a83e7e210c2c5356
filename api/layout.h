// SPDX-License-Identifier: Apache-2.0
// The layout of each part of a message, as HELLO compares it: layout.inc, which check.sh makes, as tables.
#ifndef ISTHMUS_API_LAYOUT_H
#define ISTHMUS_API_LAYOUT_H

#include <stdint.h>

// After each field: the bytes of the struct up to its end, and the digest of the layout until there.
struct api_layout_step {
	uint32_t size, digest;
};

struct api_layout_part {
	const char *name;
	const struct api_layout_step *step;
	uint16_t part, steps;
};

#define STEP(size, digest) {size, digest},
#define PART(name, number, fields) static const struct api_layout_step name##_steps[] = {fields};
#include "layout.inc"
#undef PART
#define PART(name, number, fields) {#name, name##_steps, number, sizeof(name##_steps) / sizeof(name##_steps[0])},
static const struct api_layout_part api_layout_parts[] = {
#include "layout.inc"
};
#undef PART
#undef STEP

#endif
