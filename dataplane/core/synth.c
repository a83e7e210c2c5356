// SPDX-License-Identifier: Apache-2.0
// Templates of synthetic streams.
#include "core/synth.h"
#include "wire/cache_line.h"
#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_common.h>
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

#define NO_SUM 0xff // covers a field

// Sum of a header's words beside fields and checksum. Returns 0 when field values do not determine the rest.
static int prepare_sum(struct synth_template *t, uint32_t index)
{
	struct synth_sum *s = &t->sum[index];
	uint8_t rest[20], of_field[20] = {[10] = 1, [11] = 1};

	memcpy(rest, t->want.bytes + s->offset, sizeof(rest));
	for (uint32_t i = 0; i < t->sums; i++) // another one's checksum in this header
		for (int at = t->sum[i].offset + 10 - s->offset; i != index && at < t->sum[i].offset + 12 - s->offset;
			at++)
			if (at >= 0 && at < 20)
				return 0;
	for (uint32_t i = 0; i < t->adds; i++) {
		struct synth_add *f = &t->add[i];
		int first = f->offset - s->offset, end = first + f->width;

		if (end <= 0 || first >= 20)
			continue;
		if (first < 0 || end > 20 || f->width > 6 || f->sum != NO_SUM)
			return 0;
		for (int at = first; at < end; at++)
			if (of_field[at]++ != 0)
				return 0;
	}
	for (uint32_t i = 0; i < 20; i++)
		s->base += of_field[i] ? 0 : (uint64_t)rest[i] << (i % 2 ? 0 : 8);
	for (uint32_t i = 0; i < t->adds; i++) {
		struct synth_add *f = &t->add[i];

		if (f->offset >= s->offset && f->offset < s->offset + 20) {
			f->sum = (uint8_t)index;
			f->shift = (f->offset + f->width - s->offset) % 2 ? 8 : 0;
		}
	}
	return 1;
}

void synth_template_prepare(struct synth_template *t, const struct api_synth_template *want)
{
	*t = (struct synth_template){.want = *want};
	for (uint32_t i = 0; i < want->fields; i++) {
		const struct api_synth_field *from = &want->field[i];

		if (from->type == API_FIELD_IP4_SUM) {
			t->sum[t->sums++].offset = from->offset;
			continue;
		}
		struct synth_add *f = &t->add[t->adds++];

		*f = (struct synth_add){.step = from->step,
			.by_divide = from->divide,
			.by_modulo = from->modulo,
			.low = from->modulo > 1 && rte_is_power_of_2(from->modulo) ? from->modulo - 1 : 0,
			.divide = rte_reciprocal_value(from->divide ? from->divide : 1),
			.modulo = rte_reciprocal_value(from->modulo ? from->modulo : 1),
			.offset = from->offset,
			.width = from->width,
			.sum = NO_SUM};
		for (uint32_t b = 0; b < f->width; b++) {
			f->base = f->base << 8 | want->bytes[f->offset + b];
			f->mask = f->mask << 8 | 0xff;
		}
	}
	for (uint32_t i = 0; i < t->sums; i++)
		t->sum[i].from_memory = !prepare_sum(t, i);
}

typedef uint8_t line __attribute__((vector_size(64), aligned(1)));
typedef uint64_t lanes __attribute__((vector_size(64)));
#define LANES 8

// Writes one field of many packets, the low `width` bytes of its values, most significant first, and adds them to the
// checksums. Its properties are compile-time constants: a packet takes few instructions.
static __rte_always_inline void column(const struct synth_add *of, uint32_t width, int wraps, const uint32_t *number,
	uint8_t *const *to, uint32_t packets, uint64_t *sum)
{
	const struct synth_add f = *of; // the bytes that are written might be meant else

	for (uint32_t i = 0; i < packets; i++) {
		uint32_t n = number[i];

		if (wraps)
			n = f.low != 0 ? n & f.low : n - rte_reciprocal_divide(n, f.modulo) * f.by_modulo;
		uint64_t value = f.base + (uint64_t)n * f.step, wire = rte_cpu_to_be_64(value);

		memcpy(to[i] + f.offset, (const uint8_t *)&wire + 8 - width, width);
		if (sum != NULL)
			sum[i] += (value & f.mask) << f.shift;
	}
}

static __rte_always_inline void put_column(
	const struct synth_add *f, const uint32_t *number, uint8_t *const *to, uint32_t packets, uint64_t *sum)
{
	int wraps = f->by_modulo != 0;

	if (f->width == 4 && !wraps)
		column(f, 4, 0, number, to, packets, sum);
	else if (f->width == 2 && !wraps)
		column(f, 2, 0, number, to, packets, sum);
	else if (f->width == 2)
		column(f, 2, 1, number, to, packets, sum);
	else if (f->width == 6 && !wraps)
		column(f, 6, 0, number, to, packets, sum);
	else if (f->width == 1)
		column(f, 1, wraps, number, to, packets, sum);
	else
		column(f, f->width, wraps, number, to, packets, sum);
}

// The checksums of words that add up to that, as they are on the wire. RFC 1071.
static inline void checksums(uint64_t *sum, uint32_t packets)
{
	for (uint32_t k = 0; k < packets; k += LANES) {
		lanes s = *(lanes *)(sum + k);

		s = (s & 0xffffffff) + (s >> 32);
		s = (s & 0xffff) + (s >> 16);
		s = (s & 0xffff) + (s >> 16);
		s = ~((s & 0xffff) + (s >> 16));
		*(lanes *)(sum + k) = (s & 0xff) << 8 | (s >> 8 & 0xff);
	}
}

static uint64_t sum_from_memory(const uint8_t *header)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 20; i++)
		sum += i == 10 || i == 11 ? 0 : (uint64_t)header[i] << (i % 2 ? 0 : 8);
	return sum;
}

// Field after field, each in all packets.
void synth_template_fill(const struct synth_template *t, const uint32_t *flow, uint8_t *const *to, uint32_t packets)
{
	uint64_t sum[API_SYNTH_FIELDS][SYNTH_PACKETS] cache_aligned;
	uint32_t divided[SYNTH_PACKETS], by = 1; // neighbours often divide by the same

	for (uint32_t i = 0; i < t->sums; i++)
		for (uint32_t k = 0; k < packets; k += LANES)
			*(lanes *)(sum[i] + k) = t->sum[i].base - (lanes){0};
	for (uint32_t at = 0; at < t->want.length; at += 64) { // whole lines: no call
		line part = *(const line *)(t->want.bytes + at);

		for (uint32_t k = 0; k < packets; k++)
			*(line *)(to[k] + at) = part;
	}
	for (uint32_t i = 0; i < t->adds; i++) {
		const struct synth_add *f = &t->add[i];

		for (uint32_t k = 0; f->by_divide > 1 && f->by_divide != by && k < packets; k++)
			divided[k] = rte_reciprocal_divide(flow[k], f->divide);
		by = f->by_divide > 1 ? f->by_divide : by;
		const uint32_t *number = f->by_divide > 1 ? divided : flow;

		if (f->sum == NO_SUM)
			put_column(f, number, to, packets, NULL);
		else
			put_column(f, number, to, packets, sum[f->sum]);
	}
	for (uint32_t i = 0; i < t->sums; i++) {
		uint32_t header = t->sum[i].offset;

		for (uint32_t k = 0; unlikely(t->sum[i].from_memory) && k < packets; k++)
			sum[i][k] = sum_from_memory(to[k] + header);
		checksums(sum[i], packets);
		for (uint32_t k = 0; k < packets; k++)
			memcpy(to[k] + header + 10, &sum[i][k], 2);
	}
}

int synth_template_differs(const struct synth_template *t, uint32_t flow, const uint8_t *frame, uint32_t length)
{
	uint8_t expected[API_SYNTH_TEMPLATE], *to = expected;

	synth_template_fill(t, &flow, &to, 1);
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
