// SPDX-License-Identifier: Apache-2.0
// Time that passed, and buckets, where the clock steps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "clock/clock.h"

static void passed(void **state)
{
	static const struct {
		uint64_t now, then, most, passed;
	} row[] = {{10, 4, 100, 6}, {10, 10, 100, 0}, {10, 11, 100, 0}, {1000, 4, 100, 100}, {0, UINT64_MAX, 100, 1},
		{UINT64_MAX, 0, 100, 0}, {10, 4, 0, 0}, {1ull << 62, 0, UINT64_MAX, 1ull << 62}};

	for (size_t i = 0; i < RTE_DIM(row); i++)
		assert_int_equal(clock_passed(row[i].now, row[i].then, row[i].most), row[i].passed);
}

// For any clock, a bucket lacks at most its depth, and is full again after that time.
static void buckets(void **state)
{
	static const int64_t step[] = {0, -1, 1, -1000, 1000, -1000000, 1000000};

	for (size_t i = 0; i < RTE_DIM(step); i++) {
		uint64_t now = 5000000, full = 0;

		for (int n = 0; n < 10; n++)
			bucket_take(&full, now, 100, 10);
		assert_int_equal(bucket_lack(full, now, 100), 100);
		now += (uint64_t)step[i];
		assert_in_range(bucket_lack(full, now, 100), 0, 100);
		bucket_take(&full, now, 100, 0); // as a packet that finds it so
		assert_int_equal(bucket_lack(full, now + 100, 100), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passed),
		cmocka_unit_test(buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
