// SPDX-License-Identifier: Apache-2.0
// Forwarding tables against a list that is searched from end to end, on random prefixes of both families.
#include "route/tables.h"
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

static void model_compare(const struct model *m, uint8_t family)
{
	for (int i = 0; i < 2000; i++) {
		struct api_address a = random_prefix(family);

		// Half of them are near a prefix that is there.
		if (m->count > 0 && i % 2 == 0)
			memcpy(a.bytes, m->prefix[(uint32_t)rand() % m->count].bytes, 16);
		a.bytes[address_length(family) - 1] ^= (uint8_t)(rand() % 3);
		assert_int_equal(fib_lookup(table_of(0, family), a.bytes), model_lookup(m, a.bytes));
	}
}

static void model_add(struct model *m, uint8_t family)
{
	struct api_address p = random_prefix(family);
	int at = model_find(m, &p);
	uint32_t n = rib_ensure(table_of(0, family), &p);

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
	m->prefix[at] = p;
	m->next_hop[at] = rib[n].hop;
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

static int start(void **state)
{
	kit_start(NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fib4_is_like_the_model),
		cmocka_unit_test(fib6_is_like_the_model),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
