// SPDX-License-Identifier: Apache-2.0
// Writes the headers of one packet from a compiled template, and names the field of a header byte.
#include "traffic/wire/stack.h"
#include "traffic/wire/tag.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define IPV4_BYTES 20 // templates have no options

static uint32_t load(const uint8_t *from, uint32_t width)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < width; i++)
		number = number << 8 | from[i];
	return number;
}

static void store(uint8_t *to, uint32_t width, uint32_t number)
{
	for (uint32_t i = width; i-- > 0; number >>= 8)
		to[i] = (uint8_t)number;
}

// One's complement sum of bytes in memory order (RFC 1071 §2), an odd last byte padded with zero.
static uint64_t sum_bytes(uint64_t sum, const uint8_t *from, size_t n)
{
	uint32_t word;
	uint16_t half;

	for (; n >= 4; n -= 4, from += 4) {
		memcpy(&word, from, 4);
		sum += word;
	}
	if (n >= 2) {
		memcpy(&half, from, 2);
		sum += half;
		from += 2;
	}
	if (n & 1) {
		uint8_t last[2] = {*from, 0};

		memcpy(&half, last, 2);
		sum += half;
	}
	return sum;
}

static uint16_t fold(uint64_t sum)
{
	sum = (sum >> 32) + (uint32_t)sum;
	sum = (sum >> 32) + (uint32_t)sum;
	sum = (sum >> 16) + (uint16_t)sum;
	sum = (sum >> 16) + (uint16_t)sum;
	return (uint16_t)((sum >> 16) + (uint16_t)sum);
}

static void write_sum(
	const struct template *t, const struct template_sum *s, uint32_t frame, uint64_t payload, uint8_t *to)
{
	uint64_t sum;
	uint16_t check = 0;

	memcpy(to + s->offset, &check, 2);
	if (s->kind == SUM_IPV4_HEADER) {
		sum = sum_bytes(0, to + s->start, IPV4_BYTES);
	} else {
		// All headers have an even number of bytes, so the payload's words are the segment's.
		sum = sum_bytes(payload, to + s->start, (size_t)(t->length - s->start));
		if (s->address_bytes)
			sum = sum_bytes(sum, to + s->addresses, s->address_bytes) + htons(s->protocol) +
			      htons((uint16_t)(frame - s->start));
	}
	check = (uint16_t)~fold(sum);
	if (s->udp && check == 0)
		check = 0xffff; // RFC 768: zero would say that there is none
	memcpy(to + s->offset, &check, 2);
}

void template_write(const struct template *t, uint32_t flow, uint32_t frame, const uint8_t *payload, uint8_t *to)
{
	uint64_t sum = 0;

	memcpy(to, t->bytes, t->length);
	for (uint32_t i = 0; i < t->fields; i++) {
		const struct template_field *f = &t->field[i];
		uint32_t k = f->count ? flow / f->each % f->count : flow / f->each;

		store(to + f->offset, f->width, load(to + f->offset, f->width) + f->step * k);
	}
	for (uint32_t i = 0; i < t->lengths; i++)
		store(to + t->size[i].offset, 2, frame - t->size[i].less);
	if (payload && frame > (uint32_t)t->length + TAG_BYTES && template_payload_sum(t))
		sum = sum_bytes(0, payload, frame - t->length - TAG_BYTES);
	for (uint32_t i = 0; i < t->sums; i++)
		write_sum(t, &t->sum[i], frame, sum, to);
}

const struct template_sum *template_payload_sum(const struct template *t)
{
	for (uint32_t i = 0; i < t->sums; i++)
		if (t->sum[i].kind == SUM_L4)
			return &t->sum[i];
	return NULL;
}

void template_name(const struct template *t, uint16_t offset, char *to, size_t n)
{
	uint32_t index = 0, start = 0;
	const struct layer *l = t->stack.layer;
	const struct layer_form *form;
	size_t used;
	bool more = false;

	if (offset >= t->length) {
		snprintf(to, n, "payload");
		return;
	}
	for (; offset >= start + layer_bytes(l); l++, index++)
		start += layer_bytes(l);
	form = layer_form(l->kind);
	offset = (uint16_t)(offset - start);
	snprintf(to, n, "%s%s", layer_rank(&t->stack, index), form->name);
	for (uint32_t i = 0; i < form->fields; i++) {
		const struct field_form_of *f = &form->field[i];

		if (f->bit < 0 || f->bit >= (offset + 1) * 8 || f->bit + f->bits <= offset * 8)
			continue;
		used = strlen(to);
		snprintf(to + used, n - used, "%s%s", more ? "/" : ".", f->name);
		more = true;
	}
	if (!more) {
		used = strlen(to);
		snprintf(to + used, n - used, ".extensions");
	}
}
