// SPDX-License-Identifier: Apache-2.0
// Headers of synthetic streams against a naive reading of their fields (isthmus_api.h).
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "core/synth.h"
#include <stdio.h>
#include <string.h>

#define GUARD 0xa5

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
	return *seed;
}

static void naive_add(const struct api_synth_template *t, const struct api_synth_field *f, uint32_t flow, uint8_t *to)
{
	uint64_t n = flow / f->divide, value = 0;

	if (f->modulo != 0)
		n %= f->modulo;
	for (uint32_t b = 0; b < f->width; b++)
		value = value << 8 | t->bytes[f->offset + b];
	value += n * f->step;
	for (uint32_t b = 0; b < f->width; b++)
		to[f->offset + b] = (uint8_t)(value >> 8 * (f->width - 1 - b));
}

// RFC 1071, a word at a time.
static void naive_sum(uint8_t *header)
{
	uint32_t sum = 0;

	header[10] = header[11] = 0;
	for (int i = 0; i < 20; i += 2) {
		sum += (uint32_t)(header[i] << 8 | header[i + 1]);
		sum = (sum & 0xffff) + (sum >> 16);
	}
	header[10] = (uint8_t)(~sum >> 8);
	header[11] = (uint8_t)~sum;
}

static void naive_fill(const struct api_synth_template *t, uint32_t flow, uint8_t *to)
{
	memcpy(to, t->bytes, t->length);
	for (uint32_t i = 0; i < t->fields; i++)
		if (t->field[i].type == API_FIELD_ADD)
			naive_add(t, &t->field[i], flow, to);
	for (uint32_t i = 0; i < t->fields; i++)
		if (t->field[i].type == API_FIELD_IP4_SUM)
			naive_sum(to + t->field[i].offset);
}

// Some packets at once, the flow's the last.
static void same(const struct api_synth_template *want, uint32_t flow)
{
	enum { PACKETS = 11 };
	uint8_t expected[API_SYNTH_TEMPLATE], room[PACKETS][API_SYNTH_TEMPLATE + 16];
	uint8_t *to[PACKETS];
	uint32_t flows[PACKETS];
	struct synth_template t;

	assert_null(synth_template_check(want));
	synth_template_prepare(&t, want);
	memset(room, GUARD, sizeof(room));
	for (uint32_t k = 0; k < PACKETS; k++) {
		to[k] = room[(k + 2) % PACKETS];
		flows[k] = k + 1 < PACKETS ? flow / 3 + k * 0x9e3779b9 : flow;
	}
	synth_template_fill(&t, flows, to, PACKETS);
	for (uint32_t k = 0; k < PACKETS; k++) {
		naive_fill(want, flows[k], expected);
		assert_memory_equal(to[k], expected, want->length);
		for (uint32_t i = (want->length + 63u) / 64 * 64; i < sizeof(room[0]); i++)
			assert_int_equal(to[k][i], GUARD); // the header's last 64 bytes, and no more
	}
	memset(t.want.mask, 0xff, sizeof(t.want.mask));
	assert_int_equal(synth_template_differs(&t, flow, expected, want->length), -1);
	uint32_t at = flow % want->length;
	expected[at] ^= 0x10;
	assert_int_equal(synth_template_differs(&t, flow, expected, want->length), at);
	assert_int_equal(synth_template_differs(&t, flow, expected, at), at);
}

// Small numbers, large ones, and neighbours of powers of two, where a division by multiplication could fail.
static uint32_t number(uint64_t *seed)
{
	switch (draw(seed) % 4) {
	case 0:
		return (uint32_t)(draw(seed) % 8);
	case 1:
		return (uint32_t)draw(seed);
	case 2:
		return (1u << draw(seed) % 32) + (uint32_t)(draw(seed) % 3) - 1;
	default:
		return (uint32_t)(draw(seed) % 100000);
	}
}

static void random_field(struct api_synth_template *t, struct api_synth_field *f, uint64_t *seed)
{
	if (t->length >= 20 && draw(seed) % 4 == 0) {
		*f = (struct api_synth_field){
			.type = API_FIELD_IP4_SUM, .offset = (uint16_t)(draw(seed) % (t->length - 19u))};
		return;
	}
	uint8_t width = (uint8_t)(1 + draw(seed) % (t->length < 8 ? t->length : 8u));

	*f = (struct api_synth_field){.type = API_FIELD_ADD,
		.width = width,
		.offset = (uint16_t)(draw(seed) % (t->length - width + 1u)),
		.divide = number(seed),
		.modulo = number(seed),
		.step = number(seed)};
	if (f->divide == 0)
		f->divide = 1;
}

// Every length, every number of fields, also overlapping ones.
static void random_templates(void **state)
{
	uint64_t seed = 88172645463325252ull;

	for (uint32_t round = 0; round < 100u * API_SYNTH_TEMPLATE; round++) {
		struct api_synth_template t = {.length = (uint16_t)(1 + round % API_SYNTH_TEMPLATE)};

		for (uint32_t i = 0; i < API_SYNTH_TEMPLATE; i++)
			t.bytes[i] = (uint8_t)draw(&seed);
		t.fields = (uint16_t)(draw(&seed) % (API_SYNTH_FIELDS + 1));
		for (uint32_t i = 0; i < t.fields; i++)
			random_field(&t, &t.field[i], &seed);
		for (int i = 0; i < 4; i++)
			same(&t, number(&seed));
	}
}

// Sums of 0 and 0xffff, and carries at every fold.
static void checksums(void **state)
{
	static const uint32_t words[] = {0, 1, 0xffff, 0xfffe, 0x8000, 0xff00, 0xff};
	struct api_synth_template t = {.length = 20, .fields = 1, .field = {{.type = API_FIELD_IP4_SUM}}};
	const uint32_t kinds = sizeof(words) / sizeof(words[0]);
	struct synth_template made;
	uint8_t got[API_SYNTH_TEMPLATE], *const to = got;
	const uint32_t flow = 0;

	for (uint32_t fill = 0; fill < kinds; fill++)
		for (uint32_t one = 0; one < kinds; one++)
			for (uint32_t at = 0; at < 10; at++) {
				for (uint32_t i = 0; i < 10; i++) {
					uint32_t word = words[i == at ? one : fill];

					t.bytes[2 * i] = (uint8_t)(word >> 8);
					t.bytes[2 * i + 1] = (uint8_t)word;
				}
				same(&t, 0);
			}
	memset(t.bytes, 0, 20);
	t.bytes[10] = 0x12; // what the template has there does not count
	synth_template_prepare(&made, &t);
	synth_template_fill(&made, &flow, &to, 1);
	assert_int_equal(got[10] << 8 | got[11], 0xffff);
	memset(t.bytes, 0xff, 20);
	synth_template_prepare(&made, &t);
	synth_template_fill(&made, &flow, &to, 1);
	assert_int_equal(got[10] << 8 | got[11], 0);
}

static void refused(const struct api_synth_template *t, const char *part)
{
	const char *why = synth_template_check(t);

	assert_non_null(why);
	assert_non_null(strstr(why, part));
}

static void what_is_refused(void **state)
{
	const struct api_synth_field add = {.type = API_FIELD_ADD, .offset = 16, .width = 4, .divide = 1};
	struct api_synth_template t = {.length = 20, .fields = 1, .field = {add}};

	assert_null(synth_template_check(&t));
	t.field[0].offset = 17;
	refused(&t, "outside");
	t.field[0] = add;
	t.field[0].divide = 0;
	refused(&t, "zero");
	t.field[0] = add;
	t.field[0].width = 9;
	refused(&t, "outside");
	t.field[0] = (struct api_synth_field){.type = API_FIELD_IP4_SUM, .offset = 1};
	refused(&t, "outside");
	t.field[0] = (struct api_synth_field){.type = 99};
	refused(&t, "unknown");
	t.fields = API_SYNTH_FIELDS + 1;
	refused(&t, "too many");
	t.fields = 0;
	t.length = 0;
	refused(&t, "1..192");
	t.length = API_SYNTH_TEMPLATE + 1;
	refused(&t, "1..192");
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(random_templates),
		cmocka_unit_test(checksums),
		cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
