// SPDX-License-Identifier: Apache-2.0
// Histograms: no gap and no overlap between buckets, quantiles against sorted values, joining.
#include "traffic/engine/histogram.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void buckets_join_up(void **state)
{
	assert_int_equal(histogram_low(0), 0);
	for (uint32_t b = 0; b < JOB_BUCKETS; b++) {
		uint64_t low = histogram_low(b), high = histogram_high(b);

		assert_true(low <= high);
		assert_int_equal(histogram_bucket(low), b);
		assert_int_equal(histogram_bucket(high), b);
		if (b + 1 < JOB_BUCKETS) {
			assert_true(histogram_low(b + 1) == high + 1);
			// At most 1/32 wide.
			assert_true(high - low <= low / 32);
		}
	}
	assert_int_equal(histogram_bucket(UINT64_MAX), JOB_BUCKETS - 1);
	assert_true(histogram_low(JOB_BUCKETS - 1) > 1ull << 39);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void quantiles(void **state)
{
	enum { N = 10007 };
	static const double parts[] = {0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 1.0};
	static uint64_t value[N];
	struct histogram *h = calloc(1, sizeof(*h));
	uint64_t seed = 7, sum = 0;

	histogram_clear(h);
	assert_true(histogram_quantile(h, 0.5) == 0);
	for (uint32_t i = 0; i < N; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		value[i] = (seed >> 33) >> (seed >> 59); // from tens to thousands of millions
		sum += value[i];
		histogram_add(h, value[i]);
	}
	qsort(value, N, sizeof(value[0]), by_value);
	for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint32_t rank = (uint32_t)(parts[i] * N);

		if (rank < parts[i] * N)
			rank++;
		uint64_t exact = value[rank ? rank - 1 : 0], got = histogram_quantile(h, parts[i]);

		assert_true(got >= exact && got <= exact + exact / 32);
	}
	assert_true(histogram_quantile(h, 1) == value[N - 1]);
	assert_true(h->min == value[0] && h->max == value[N - 1] && h->count == N && h->sum == sum);
	free(h);
}

static void joined(void **state)
{
	struct histogram *all = calloc(1, sizeof(*all)), *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct histogram *zeros = calloc(1, sizeof(*zeros));

	histogram_clear(all);
	histogram_clear(a);
	histogram_clear(b);
	for (uint64_t i = 1; i < 5000; i++) {
		histogram_add(all, i * i);
		histogram_add(i % 3 ? a : b, i * i);
	}
	histogram_join(a, b);
	assert_memory_equal(a, all, sizeof(*all));
	// Empty ones change nothing, be they cleared or zeros.
	histogram_clear(b);
	histogram_join(a, b);
	histogram_join(a, zeros);
	assert_memory_equal(a, all, sizeof(*all));
	// And take over what is joined to them.
	histogram_join(b, all);
	assert_memory_equal(b, all, sizeof(*all));
	histogram_join(zeros, all);
	assert_memory_equal(zeros, all, sizeof(*all));
	free(all);
	free(a);
	free(b);
	free(zeros);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_join_up),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
