// SPDX-License-Identifier: Apache-2.0
// Buckets of equal-cost next hops: equal shares; a lost one's flows move alone, and return to it.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "route/tables.h"
#include <rte_jhash.h>
#include <string.h>

static struct hop_buckets made(uint32_t members, uint32_t first)
{
	struct hop_buckets b = {.members = members};

	for (uint32_t m = 0; m < members; m++) {
		b.member[m] = (uint16_t)(10 + first + m);
		b.identity[m] = rte_jhash_1word(first + m, 7);
	}
	hop_buckets_share(&b);
	hop_buckets_settle(&b, 0);
	return b;
}

static void shares_are_equal(void **state)
{
	for (uint32_t members = 1; members <= HOPS_MAX; members++) {
		struct hop_buckets b = made(members, 0);
		uint32_t of[HOPS_MAX] = {0};

		for (uint32_t n = 0; n < HOP_BUCKETS; n++)
			of[b.hop[n] - 10]++;
		for (uint32_t m = 0; m < members; m++)
			assert_in_range(of[m], HOP_BUCKETS / members, HOP_BUCKETS / members + 1);
	}
}

static void what_is_lost_moves_alone(void **state)
{
	for (uint32_t members = 2; members <= HOPS_MAX; members++)
		for (uint32_t lost = 1; lost < 1u << members; lost++) {
			struct hop_buckets b = made(members, 0), before = b;
			int all = lost == (1u << members) - 1;

			hop_buckets_settle(&b, lost);
			for (uint32_t n = 0; n < HOP_BUCKETS; n++) {
				assert_true(all || !(lost >> (b.hop[n] - 10) & 1));
				if (all || !(lost >> (before.hop[n] - 10) & 1))
					assert_int_equal(b.hop[n], before.hop[n]);
			}
			hop_buckets_settle(&b, 0);
			assert_memory_equal(b.hop, before.hop, sizeof(b.hop));
		}
}

// One more or less in the configuration: few flows of the others move.
static void a_change_moves_few(void **state)
{
	for (uint32_t members = 2; members < HOPS_MAX; members++) {
		struct hop_buckets few = made(members, 0), more = made(members + 1, 0);
		uint32_t moved = 0;

		for (uint32_t n = 0; n < HOP_BUCKETS; n++)
			moved += more.hop[n] != few.hop[n] && more.hop[n] != 10 + members;
		assert_true(moved < HOP_BUCKETS / 4);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(shares_are_equal),
		cmocka_unit_test(what_is_lost_moves_alone),
		cmocka_unit_test(a_change_moves_few),
	};

	return cmocka_run_group_tests(list, NULL, NULL);
}
