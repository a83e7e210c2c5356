// SPDX-License-Identifier: Apache-2.0
// Synthetic streams: packets made from templates, and packets compared with templates. Pure but for memory.
#ifndef CORE_SYNTH_H
#define CORE_SYNTH_H

#include "isthmus_api.h"
#include <rte_reciprocal.h>

// A template with the arithmetic of its fields prepared.
struct synth_template {
	struct api_synth_template want;
	struct rte_reciprocal divide[API_SYNTH_FIELDS], modulo[API_SYNTH_FIELDS];
	uint64_t base[API_SYNTH_FIELDS]; // value of an ADD field in the template, host order
};

// Returns NULL, or what is wrong with the template.
const char *synth_template_check(const struct api_synth_template *t);
void synth_template_prepare(struct synth_template *t, const struct api_synth_template *want);
// Writes the header of `flow` (want.length bytes) to `to`, which has room for API_SYNTH_TEMPLATE: what is behind the header in its last
// 64 bytes is written as well.
void synth_template_fill(const struct synth_template *t, uint32_t flow, uint8_t *to);
// Compares under the mask. Returns -1 when equal, else the offset of the first difference. `length` bytes are readable.
int synth_template_differs(const struct synth_template *t, uint32_t flow, const uint8_t *frame, uint32_t length);

// What ends the payload of a checked packet.
struct synth_tag {
	uint32_t magic, flow;
	uint64_t sequence;
};
#define SYNTH_TAG_MAGIC 0x49535448u

// Fills and checks the payload between header and tag: byte i is sequence + i.
void synth_payload_fill(uint8_t *to, uint32_t length, uint64_t sequence);
int synth_payload_differs(const uint8_t *payload, uint32_t length, uint64_t sequence);

#endif
