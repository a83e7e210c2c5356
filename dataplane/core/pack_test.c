// SPDX-License-Identifier: Apache-2.0
// Packed bytes unpack unchanged, within the promised room.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/pack.h"
#include <stdlib.h>
#include <string.h>

static void round_trips(void **state)
{
	uint32_t seed = 1;

	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t length = round % 1500;
		uint8_t *from = malloc(length + 1), *to = malloc(PACK_MOST(length)), *back = malloc(length + 1);

		assert_true(from != NULL && to != NULL && back != NULL);
		for (uint32_t i = 0; i < length; i++) {
			seed = seed * 1664525u + 1013904223u;
			// From nearly all zeros to nearly none, in runs.
			from[i] = (seed >> 8) % 100 < round % 100 ? (uint8_t)(seed >> 16)
				  : i != 0 && seed >> 30          ? from[i - 1]
								  : 0;
		}
		uint32_t packed = pack_bytes(to, from, length);
		assert_true(packed <= PACK_MOST(length));
		memset(back, 0xaa, length);
		unpack_bytes(back, length, to, packed);
		assert_memory_equal(back, from, length);
		free(from);
		free(to);
		free(back);
	}
}

static void zeros_cost_nearly_nothing(void **state)
{
	static uint8_t zeros[4096], to[PACK_MOST(4096)];

	assert_true(pack_bytes(to, zeros, sizeof(zeros)) <= 40);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(zeros_cost_nearly_nothing),
	};

	return cmocka_run_group_tests(list, NULL, NULL);
}
