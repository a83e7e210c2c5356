// SPDX-License-Identifier: Apache-2.0
// Synthetic streams: packets made from templates, and packets compared with templates. Pure but for memory.
#ifndef CORE_SYNTH_H
#define CORE_SYNTH_H

#include "isthmus_api.h"
#include <rte_reciprocal.h>

struct synth_add {
	uint64_t base, mask; // its value in the template, host order; the bits of its width
	uint32_t step, by_divide, by_modulo; // by_divide 0 or 1: no division; by_modulo 0: none
	uint32_t low; // of a modulo that is a power of two the bits that it keeps; 0: it is none
	struct rte_reciprocal divide, modulo;
	uint16_t offset;
	uint8_t width;
	uint8_t sum, shift; // the checksum that covers it, and where its value stands in words of that
};

// An IPv4 checksum, prepared: made of the values that are written, since a load of several of them together would wait
// until the stores have left the CPU.
struct synth_sum {
	uint64_t base; // of all words but the fields and the checksum
	uint16_t offset; // of the header
	uint8_t from_memory; // fields lie upon each other, or across the header's bounds
};

struct synth_template {
	struct api_synth_template want;
	struct synth_add add[API_SYNTH_FIELDS];
	struct synth_sum sum[API_SYNTH_FIELDS];
	uint32_t adds, sums;
};

// Returns NULL, or what is wrong with the template.
const char *synth_template_check(const struct api_synth_template *t);
void synth_template_prepare(struct synth_template *t, const struct api_synth_template *want);
#define SYNTH_PACKETS 64 // at once
// Writes the headers of flows (want.length bytes each) into rooms of API_SYNTH_TEMPLATE. The bytes behind a header in
// its last 64 bytes are written too.
void synth_template_fill(const struct synth_template *t, const uint32_t *flow, uint8_t *const *to, uint32_t packets);
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
