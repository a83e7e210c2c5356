// SPDX-License-Identifier: Apache-2.0
// Forwarding tables against a linear list, on random prefixes of both families: single destinations, and blocks.
#include "route/tables.h"
#include "route/ways.h"
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "testkit/testkit.h"
#include <stdlib.h>
#include <string.h>

#define MODEL_MAX 3000

struct model {
	struct api_address prefix[MODEL_MAX];
	uint32_t next_hop[MODEL_MAX];
	uint32_t count;
};

static uint32_t model_lookup(const struct model *m, const uint8_t *destination)
{
	int best = -1;

	for (uint32_t i = 0; i < m->count; i++)
		if (ip_prefix_equal(m->prefix[i].bytes, destination, m->prefix[i].prefix) &&
			(best < 0 || m->prefix[i].prefix > m->prefix[best].prefix))
			best = (int)i;
	return best < 0 ? NEXT_HOP_NONE : m->next_hop[best];
}

static void random_bytes(uint8_t *to, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint8_t)(rand() >> 7);
}

// Prefixes share their first bits, so that they nest; of all lengths, 0 too.
static struct api_address random_prefix(uint8_t family)
{
	uint32_t bits = 8 * address_length(family);
	struct api_address a = {.family = family, .prefix = (uint8_t)((uint32_t)rand() % (bits + 1))};

	if (family == 6 && rand() % 3 == 0)
		a.prefix = (uint8_t)(14 + rand() % 20); // where prefixes become a number of slots
	random_bytes(a.bytes, address_length(family));
	a.bytes[0] = family == 4 ? 10 : 0x20;
	a.bytes[1] &= 3;
	a.bytes[2] &= 3;
	a.bytes[3] &= family == 4 ? 0xff : 3;
	for (uint32_t bit = a.prefix; bit < 128; bit++)
		a.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	return a;
}

static int model_find(const struct model *m, const struct api_address *prefix)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (prefix_compare(&m->prefix[i], prefix) == 0)
			return (int)i;
	return -1;
}

// A block of destinations at once: each result equals the list's.
struct block {
	struct way_ask ask[WAY_ASKS];
	uint8_t destination[WAY_ASKS][16];
	uint32_t expected[WAY_ASKS];
	uint16_t count;
};

static void block_add(struct block *b, uint8_t family, const uint8_t *destination, uint32_t expected)
{
	uint8_t *own = b->destination[b->count];

	assert_int_equal(fib_lookup(table_of(0, family), destination), expected);
	memset(own, 0xa5, 16);
	memcpy(own, destination, address_length(family)); // no byte behind it counts
	b->ask[b->count] = (struct way_ask){.destination = own, .root = ways_root(0, family)};
	b->expected[b->count++] = expected;
}

static void block_look_up(struct block *b)
{
	ways_look_up_many(b->ask, b->count);
	for (uint16_t i = 0; i < b->count; i++)
		assert_int_equal(b->ask[i].hop - next_hop_get(0), b->expected[i]);
	b->count = 0;
}

static void random_destination(const struct model *m, uint8_t family, uint8_t *destination)
{
	struct api_address a = random_prefix(family);

	// Half of them are near a prefix that is there.
	if (m->count > 0 && rand() % 2 == 0)
		memcpy(a.bytes, m->prefix[(uint32_t)rand() % m->count].bytes, 16);
	a.bytes[address_length(family) - 1] ^= (uint8_t)(rand() % 3);
	memcpy(destination, a.bytes, 16);
}

// In blocks of all sizes, of one family or of both.
static void models_compare(const struct model *m4, const struct model *m6)
{
	struct block b = {.count = 0};
	uint32_t size = 1 + (uint32_t)rand() % WAY_ASKS;

	for (int i = 0; i < 2000; i++) {
		uint8_t family = m6 == NULL || (m4 != NULL && rand() % 2) ? 4 : 6, destination[16];
		const struct model *m = family == 4 ? m4 : m6;

		random_destination(m, family, destination);
		block_add(&b, family, destination, model_lookup(m, destination));
		if (b.count < size)
			continue;
		block_look_up(&b);
		size = 1 + (uint32_t)rand() % WAY_ASKS;
	}
	block_look_up(&b);
}

static void model_compare(const struct model *m, uint8_t family)
{
	models_compare(family == 4 ? m : NULL, family == 6 ? m : NULL);
}

static void model_add_prefix(struct model *m, const struct api_address *p)
{
	int at = model_find(m, p);
	uint32_t n = rib_ensure(table_of(0, p->family), p);

	assert_int_not_equal(n, 0);
	assert_int_equal(at >= 0, (rib[n].flags & RIB_PRESENT) != 0);
	rib[n].hop = (uint16_t)(1 + rand() % (MAX_NEXT_HOPS - 1));
	if (at < 0) {
		at = (int)m->count++;
		rib_present(n, 1);
		fib_add(n);
	} else {
		fib_replace(n);
	}
	m->prefix[at] = *p;
	m->next_hop[at] = rib[n].hop;
}

static void model_add(struct model *m, uint8_t family)
{
	struct api_address p = random_prefix(family);

	model_add_prefix(m, &p);
}

static void model_delete(struct model *m, uint32_t at)
{
	uint32_t n = rib_find(table_of(0, m->prefix[at].family), &m->prefix[at]);

	rib_present(n, 0);
	fib_delete(n);
	rib_free(n);
	m->count--;
	m->prefix[at] = m->prefix[m->count];
	m->next_hop[at] = m->next_hop[m->count];
}

static void fib_is_like_the_model(uint8_t family)
{
	struct model *m = calloc(1, sizeof(*m));
	uint32_t groups = fib_groups_used();

	assert_int_equal(fib_open(table_of(0, family)), 0);
	srand(family);
	for (int round = 0; round < 12; round++) {
		for (int i = 0; i < 200; i++)
			model_add(m, family);
		model_compare(m, family);
		for (uint32_t i = round == 11 ? m->count : m->count / 2; i > 0; i--)
			model_delete(m, (uint32_t)rand() % m->count);
		fib_settle();
		model_compare(m, family);
	}
	assert_int_equal(m->count, 0);
	assert_int_equal(fib_groups_used(), groups); // nothing is left behind
	free(m);
}

static void fib4_is_like_the_model(void **state)
{
	fib_is_like_the_model(4);
}

static void fib6_is_like_the_model(void **state)
{
	fib_is_like_the_model(6);
}

// Tables of a default route alone, of one host route, and of neighbouring host routes below a default route. Looked up
// are each one's neighbours and the most distant addresses, after each change.
static void few_routes(uint8_t family)
{
	static const uint8_t ends[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
	uint8_t bits = (uint8_t)(8 * address_length(family)), last = (uint8_t)(address_length(family) - 1);
	struct model *m = calloc(1, sizeof(*m));
	struct api_address host = {.family = family, .prefix = bits}, all = {.family = family};

	memset(host.bytes, 0xff, address_length(family));
	assert_int_equal(fib_open(table_of(0, family)), 0);
	models_compare(family == 4 ? m : NULL, family == 6 ? m : NULL); // none
	for (uint32_t shape = 0; shape < 1u << sizeof(ends); shape++) {
		while (m->count > 0)
			model_delete(m, 0);
		fib_settle();
		for (uint32_t i = 0; i < sizeof(ends); i++)
			if (shape >> i & 1) {
				host.bytes[last] = ends[i];
				model_add_prefix(m, i == 3 ? &all : &host);
			}
		for (int changed = 0; changed < 2; changed++) {
			struct block b = {.count = 0};
			uint8_t destination[16];

			for (uint32_t i = 0; i < WAY_ASKS; i++) {
				memset(destination, i % 3 == 0 ? 0 : 0xff, sizeof(destination));
				if (i % 3 == 2) // shares all but one byte
					destination[(uint32_t)rand() % last] ^= 1;
				destination[last] = (uint8_t)(ends[i % sizeof(ends)] + rand() % 2);
				block_add(&b, family, destination, model_lookup(m, destination));
			}
			block_look_up(&b);
			if (m->count > 0)
				model_delete(m, (uint32_t)rand() % m->count);
		}
	}
	while (m->count > 0)
		model_delete(m, 0);
	fib_settle();
	free(m);
}

static void few_routes_of_both_families(void **state)
{
	srand(1);
	few_routes(4);
	few_routes(6);
}

static void blocks_of_both_families(void **state)
{
	struct model *m4 = calloc(1, sizeof(*m4)), *m6 = calloc(1, sizeof(*m6));

	srand(2);
	for (int i = 0; i < 300; i++) {
		model_add(m4, 4);
		model_add(m6, 6);
	}
	models_compare(m4, m6);
	while (m4->count > 0)
		model_delete(m4, 0);
	models_compare(m4, m6); // one of them is empty
	while (m6->count > 0)
		model_delete(m6, 0);
	fib_settle();
	free(m4);
	free(m6);
}

// A VRF that never had a route.
static void no_table(void **state)
{
	static const uint8_t destination[16] = {10, 1, 2, 3};
	struct way_ask ask[2] = {{.destination = destination, .root = ways_root(MAX_VRFS - 1, 4)},
		{.destination = destination, .root = ways_root(MAX_VRFS - 1, 6)}};

	ways_look_up_many(ask, 2);
	assert_ptr_equal(ask[0].hop, next_hop_get(NEXT_HOP_NONE));
	assert_ptr_equal(ask[1].hop, next_hop_get(NEXT_HOP_NONE));
	ways_look_up_many(ask, 0);
}

static int start(void **state)
{
	kit_start(NULL);
	return next_hops_start();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fib4_is_like_the_model),
		cmocka_unit_test(fib6_is_like_the_model),
		cmocka_unit_test(few_routes_of_both_families),
		cmocka_unit_test(blocks_of_both_families),
		cmocka_unit_test(no_table),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
