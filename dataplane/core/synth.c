// SPDX-License-Identifier: Apache-2.0
// Templates of synthetic streams.
#include "core/synth.h"
#include <rte_byteorder.h>
#include <string.h>

const char *synth_template_check(const struct api_synth_template *t)
{
	if (t->length == 0 || t->length > API_SYNTH_TEMPLATE)
		return "a template has 1..192 bytes";
	if (t->fields > API_SYNTH_FIELDS)
		return "a template has too many fields";
	for (uint32_t i = 0; i < t->fields; i++) {
		const struct api_synth_field *f = &t->field[i];

		if (f->type == API_FIELD_IP4_SUM) {
			if (f->offset + 20u > t->length)
				return "an IPv4 checksum field lies outside the template";
		} else if (f->type == API_FIELD_ADD) {
			if (f->width < 1 || f->width > 8 || f->offset + f->width > t->length)
				return "a field lies outside the template";
			if (f->divide == 0)
				return "a field divides by zero";
		} else {
			return "a field has an unknown type";
		}
	}
	return NULL;
}

void synth_template_prepare(struct synth_template *t, const struct api_synth_template *want)
{
	t->want = *want;
	for (uint32_t i = 0; i < want->fields; i++) {
		t->divide[i] = rte_reciprocal_value(want->field[i].divide ? want->field[i].divide : 1);
		t->modulo[i] = rte_reciprocal_value(want->field[i].modulo ? want->field[i].modulo : 1);
		t->base[i] = 0;
		for (uint32_t b = 0; want->field[i].type == API_FIELD_ADD && b < want->field[i].width; b++)
			t->base[i] = t->base[i] << 8 | want->bytes[want->field[i].offset + b];
	}
}

static uint32_t divided(uint32_t a, uint32_t by, struct rte_reciprocal r)
{
	return by <= 1 ? a : rte_reciprocal_divide(a, r);
}

// Low `width` bytes of the value, most significant first. The widths that protocols have are one store.
static inline void put_value(uint8_t *to, uint32_t width, uint64_t value)
{
	uint64_t wire = rte_cpu_to_be_64(value);

	if (width == 4)
		memcpy(to, (const uint8_t *)&wire + 4, 4);
	else if (width == 2)
		memcpy(to, (const uint8_t *)&wire + 6, 2);
	else
		for (uint32_t b = width; b-- > 0; value >>= 8)
			to[b] = (uint8_t)value;
}

static inline void put_field(const struct synth_template *t, uint32_t i, uint32_t flow, uint8_t *to)
{
	const struct api_synth_field *f = &t->want.field[i];
	uint32_t n = divided(flow, f->divide, t->divide[i]);

	if (f->modulo != 0)
		n -= divided(n, f->modulo, t->modulo[i]) * f->modulo;
	put_value(to + f->offset, f->width, t->base[i] + (uint64_t)n * f->step);
}

// RFC 1071: the sum of the words as they lie in memory is the checksum as it lies in memory.
static inline void put_ip4_sum(uint8_t *header)
{
	uint32_t w[5];
	uint64_t sum = 0;
	uint16_t wire;

	// The field counts as 0: taken out of what was read, as a store before the load would make it wait.
	memcpy(w, header, sizeof(w));
	w[2] &= rte_cpu_to_be_32(0xffff0000);
	for (int i = 0; i < 5; i++)
		sum += w[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	wire = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	memcpy(header + 10, &wire, 2);
}

void synth_template_fill(const struct synth_template *t, uint32_t flow, uint8_t *to)
{
	for (uint32_t at = 0; at < t->want.length; at += 64) // whole lines: no call
		memcpy(to + at, t->want.bytes + at, 64);
	for (uint32_t i = 0; i < t->want.fields; i++)
		if (t->want.field[i].type == API_FIELD_ADD)
			put_field(t, i, flow, to);
	for (uint32_t i = 0; i < t->want.fields; i++)
		if (t->want.field[i].type == API_FIELD_IP4_SUM)
			put_ip4_sum(to + t->want.field[i].offset);
}

int synth_template_differs(const struct synth_template *t, uint32_t flow, const uint8_t *frame, uint32_t length)
{
	uint8_t expected[API_SYNTH_TEMPLATE];

	synth_template_fill(t, flow, expected);
	for (uint32_t i = 0; i < t->want.length; i++)
		if (i >= length || ((expected[i] ^ frame[i]) & t->want.mask[i]) != 0)
			return (int)i;
	return -1;
}

void synth_payload_fill(uint8_t *to, uint32_t length, uint64_t sequence)
{
	for (uint32_t i = 0; i < length; i++)
		to[i] = (uint8_t)(sequence + i);
}

int synth_payload_differs(const uint8_t *payload, uint32_t length, uint64_t sequence)
{
	for (uint32_t i = 0; i < length; i++)
		if (payload[i] != (uint8_t)(sequence + i))
			return (int)i;
	return -1;
}
