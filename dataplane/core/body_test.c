// SPDX-License-Identifier: Apache-2.0
// Bodies at rest read back unchanged, whatever happens to others; similar ones take only their difference.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/body.h"
#include <stdlib.h>
#include <string.h>

#define BODIES 512u
#define LONGEST 900u
#define KINDS 200u // more than there may be examples

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

// A body of a kind: the kind's bytes, a few of which differ.
static uint8_t *make(uint32_t kind, uint32_t *length)
{
	uint64_t before = seed;
	uint8_t *bytes;

	seed = kind + 1;
	*length = kind % 10 == 0 ? 48 : random_below(LONGEST) + 1;
	bytes = malloc(*length);
	assert_non_null(bytes);
	for (uint32_t i = 0; i < *length; i++)
		bytes[i] = random_below(2) ? (uint8_t)random_below(256) : 0;
	seed = before;
	for (uint32_t i = 0; i < 4; i++)
		bytes[random_below(*length)] = (uint8_t)random_below(256);
	return bytes;
}

static void reads_as_it_came(void **state)
{
	static struct body held[BODIES];
	static uint8_t *was[BODIES];

	seed = 1;
	for (uint32_t round = 0; round < 100000; round++) {
		uint32_t i = random_below(BODIES), length = 0;
		// Kinds come and go, so that examples do.
		uint32_t kind = (round / 5000 * 13 + random_below(40)) % KINDS;
		uint8_t *bytes = random_below(8) ? make(kind, &length) : NULL;

		free(was[i]);
		was[i] = bytes != NULL ? malloc(length) : NULL;
		if (bytes != NULL)
			memcpy(was[i], bytes, length);
		body_hold(&held[i], bytes, length, (int)random_below(16));
		assert_int_equal(held[i].length, length);
		i = random_below(BODIES);
		const uint8_t *is = body_read(&held[i]);
		assert_int_equal(is == NULL, was[i] == NULL);
		if (is != NULL)
			assert_memory_equal(is, was[i], held[i].length);
	}
	for (uint32_t i = 0; i < BODIES; i++) {
		body_hold(&held[i], NULL, 0, 1);
		free(was[i]);
	}
}

static void alike_takes_what_differs(void **state)
{
	static struct body held[1000];
	uint32_t stored = 0, length;

	seed = 2;
	for (uint32_t i = 0; i < 1000; i++) {
		uint8_t *bytes = make(KINDS + 1 + i % 3, &length); // of three kinds

		body_hold(&held[i], bytes, length, 1);
		assert_true(held[i].stored != 0);
		stored += held[i].stored;
	}
	assert_true(stored / 1000 <= 40); // eight bytes in as many places, and long runs of none
	for (uint32_t i = 0; i < 1000; i++)
		body_hold(&held[i], NULL, 0, 1);
}

// Four readings are valid at once; a body that is not packed is returned in place.
static void four_are_read_at_once(void **state)
{
	struct body held[5] = {0};
	const uint8_t *is[5];
	uint32_t length;

	seed = 3;
	for (uint32_t i = 0; i < 5; i++) {
		uint8_t *bytes = make(KINDS + 11, &length);

		bytes[0] = (uint8_t)i;
		body_hold(&held[i], bytes, length, i != 4);
	}
	for (uint32_t i = 0; i < 5; i++)
		is[i] = body_read(&held[i]);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(is[i][0], i);
		body_hold(&held[i], NULL, 0, 1);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(reads_as_it_came),
		cmocka_unit_test(alike_takes_what_differs),
		cmocka_unit_test(four_are_read_at_once),
	};

	return cmocka_run_group_tests(list, NULL, NULL);
}
