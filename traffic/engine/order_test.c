// SPDX-License-Identifier: Apache-2.0
// The order of flows: each kind visits the flows that it promises, and a seed always gives the same order.
#include "traffic/engine/order.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void in_turn(void **state)
{
	struct order o;

	assert_int_equal(order_init(&o, ORDER_TURN, 3, 1, 1), 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(order_next(&o), i % 3);
	order_free(&o);
}

static void random_is_even(void **state)
{
	enum { FLOWS = 64, DRAWS = 64 * 1000 };
	uint32_t seen[FLOWS] = {0};
	struct order o;
	double chi = 0;

	assert_int_equal(order_init(&o, ORDER_RANDOM, FLOWS, 1, 7), 0);
	for (uint32_t i = 0; i < DRAWS; i++)
		seen[order_next(&o)]++;
	for (uint32_t i = 0; i < FLOWS; i++)
		chi += pow(seen[i] - 1000.0, 2) / 1000;
	// 63 degrees of freedom: 99.9 % of fair draws are below 103, and above 34.
	assert_true(chi < 103 && chi > 34);
	order_free(&o);
}

static int descending(const void *a, const void *b)
{
	return (int)*(const uint32_t *)b - (int)*(const uint32_t *)a;
}

static void zipf_follows_its_law(void **state)
{
	enum { FLOWS = 1000, DRAWS = 1 << 20 };
	static const double exponents[] = {0.5, 1.0, 1.3};

	for (size_t e = 0; e < 3; e++) {
		uint32_t *seen = calloc(FLOWS, sizeof(*seen));
		double sum = 0;
		struct order o;

		assert_int_equal(order_init(&o, ORDER_ZIPF, FLOWS, exponents[e], 3), 0);
		for (uint32_t i = 0; i < DRAWS; i++)
			seen[order_next(&o)]++;
		for (uint32_t k = 1; k <= FLOWS; k++)
			sum += pow(k, -exponents[e]);
		qsort(seen, FLOWS, sizeof(*seen), descending);
		for (uint32_t k = 1; k <= 16; k *= 2) {
			double expected = DRAWS * pow(k, -exponents[e]) / sum;

			assert_true(fabs(seen[k - 1] - expected) < 0.08 * expected);
		}
		free(seen);
		order_free(&o);
	}
}

// The most frequent flows are not neighbours, or tables would be warmer than they seem.
static void zipf_scatters(void **state)
{
	enum { FLOWS = 1 << 16 };
	struct order o;
	uint32_t *seen = calloc(FLOWS, sizeof(*seen)), top = 0, second = 1;

	assert_int_equal(order_init(&o, ORDER_ZIPF, FLOWS, 1, 3), 0);
	for (uint32_t i = 0; i < 1 << 18; i++)
		seen[order_next(&o)]++;
	for (uint32_t i = 0; i < FLOWS; i++) {
		if (seen[i] > seen[top]) {
			second = top;
			top = i;
		} else if (i != top && seen[i] > seen[second]) {
			second = i;
		}
	}
	assert_true(abs((int)top - (int)second) > 16);
	free(seen);
	order_free(&o);
}

static void a_seed_repeats(void **state)
{
	enum { FLOWS = 1 << 16 };
	static const enum flow_order kinds[] = {ORDER_RANDOM, ORDER_ZIPF};

	for (size_t k = 0; k < 2; k++) {
		struct order a, b, c;
		int differ = 0;

		assert_int_equal(order_init(&a, kinds[k], FLOWS, 1, 5), 0);
		assert_int_equal(order_init(&b, kinds[k], FLOWS, 1, 5), 0);
		assert_int_equal(order_init(&c, kinds[k], FLOWS, 1, 6), 0);
		for (int i = 0; i < 1000; i++) {
			uint32_t flow = order_next(&a);

			assert_int_equal(flow, order_next(&b));
			assert_true(flow < FLOWS);
			differ += flow != order_next(&c);
		}
		assert_true(differ > 500);
		order_free(&a);
		order_free(&b);
		order_free(&c);
	}
}

static void one_flow(void **state)
{
	static const enum flow_order kinds[] = {ORDER_TURN, ORDER_RANDOM, ORDER_ZIPF};

	for (size_t k = 0; k < 3; k++) {
		struct order o;

		assert_int_equal(order_init(&o, kinds[k], 1, 1, 5), 0);
		for (int i = 0; i < 10; i++)
			assert_int_equal(order_next(&o), 0);
		order_free(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turn),
		cmocka_unit_test(random_is_even),
		cmocka_unit_test(zipf_follows_its_law),
		cmocka_unit_test(zipf_scatters),
		cmocka_unit_test(a_seed_repeats),
		cmocka_unit_test(one_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
