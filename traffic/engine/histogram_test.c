// SPDX-License-Identifier: Apache-2.0
// Histograms: no gap and no overlap between buckets, sums against the values.
#include "traffic/engine/histogram.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// Lowest and highest ticks of a bucket, as lab/tester/histogram.go has them.
static uint64_t histogram_low(uint32_t bucket)
{
	if (bucket < 64)
		return bucket;

	uint32_t top = 6 + (bucket - 64) / HISTOGRAM_STEPS, step = (bucket - 64) % HISTOGRAM_STEPS;

	return (uint64_t)(HISTOGRAM_STEPS + step) << (top - 5);
}

static uint64_t histogram_high(uint32_t bucket)
{
	return bucket + 1 < JOB_BUCKETS ? histogram_low(bucket + 1) - 1 : UINT64_MAX;
}

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

static void adds_up(void **state)
{
	static struct histogram h = {.min = UINT64_MAX};
	uint64_t seed = 7, sum = 0, least = UINT64_MAX, most = 0, in_buckets = 0;

	for (uint32_t i = 0; i < 10007; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint64_t value = (seed >> 33) >> (seed >> 59); // from tens to thousands of millions

		sum += value;
		least = value < least ? value : least;
		most = value > most ? value : most;
		histogram_add(&h, value);
	}
	for (uint32_t b = 0; b < JOB_BUCKETS; b++)
		in_buckets += h.bucket[b];
	assert_true(h.min == least && h.max == most && h.count == 10007 && h.sum == sum && in_buckets == 10007);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_join_up),
		cmocka_unit_test(adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
