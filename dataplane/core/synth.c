// SPDX-License-Identifier: Apache-2.0
// Templates of synthetic streams.
#include "core/synth.h"
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
	}
}

static uint32_t divided(uint32_t a, uint32_t by, struct rte_reciprocal r)
{
	return by <= 1 ? a : rte_reciprocal_divide(a, r);
}

static void put_field(const struct synth_template *t, uint32_t i, uint32_t flow, uint8_t *to)
{
	const struct api_synth_field *f = &t->want.field[i];
	uint32_t n = divided(flow, f->divide, t->divide[i]);
	uint64_t value = 0;

	if (f->modulo != 0)
		n -= divided(n, f->modulo, t->modulo[i]) * f->modulo;
	for (uint32_t b = 0; b < f->width; b++)
		value = value << 8 | t->want.bytes[f->offset + b];
	value += (uint64_t)n * f->step;
	for (uint32_t b = f->width; b-- > 0; value >>= 8)
		to[f->offset + b] = (uint8_t)value;
}

static void put_ip4_sum(uint8_t *header)
{
	uint32_t sum = 0;

	header[10] = header[11] = 0;
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	header[10] = (uint8_t)(sum >> 8);
	header[11] = (uint8_t)sum;
}

void synth_template_fill(const struct synth_template *t, uint32_t flow, uint8_t *to)
{
	memcpy(to, t->want.bytes, t->want.length);
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
