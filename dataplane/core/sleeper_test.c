// SPDX-License-Identifier: Apache-2.0
// Ends of a sleep: a descriptor, a giver, time; no gift is missed. A sleep that should end by another cause than time
// is an hour long, so a fault times out.
#include "core/sleeper.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_NS 3600000000000ull
#define GIFTS 200000u

static struct sleeper sleeper;

static int setup(void **state)
{
	return sleeper_open(&sleeper);
}

static int teardown(void **state)
{
	sleeper_close(&sleeper);
	return 0;
}

static void ends_with_time(void **state)
{
	struct pollfd fds[1];

	sleeper_listen(&sleeper);
	sleeper_sleep(&sleeper, fds, 1, 1000);
	assert_true(sleeper_listens(&sleeper));
}

static void ends_with_a_descriptor(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	struct pollfd fds[2] = {[1] = {.fd = ends[0], .events = POLLIN}};
	assert_int_equal(write(ends[1], "x", 1), 1);
	sleeper_listen(&sleeper);
	sleeper_sleep(&sleeper, fds, 2, HOUR_NS);
	assert_int_equal(fds[1].revents, POLLIN);
	close(ends[0]);
	close(ends[1]);
}

static void woken_before_it_sleeps(void **state)
{
	struct pollfd fds[1];

	sleeper_listen(&sleeper);
	sleeper_wake(&sleeper);
	assert_false(sleeper_listens(&sleeper));
	sleeper_sleep(&sleeper, fds, 1, HOUR_NS);
	// Heard: the next sleep is a whole one.
	sleeper_sleep(&sleeper, fds, 1, 1000);
	assert_int_equal(fds[0].revents, 0);
}

static void not_rung_when_it_has_work(void **state)
{
	struct pollfd fds[1];

	sleeper_listen(&sleeper);
	sleeper_up(&sleeper);
	sleeper_wake(&sleeper);
	sleeper_sleep(&sleeper, fds, 1, 1000);
	assert_int_equal(fds[0].revents, 0);
}

static uint32_t given;

static void *give(void *arg)
{
	for (uint32_t i = 0; i < GIFTS; i++) {
		__atomic_store_n(&given, i + 1, __ATOMIC_RELAXED);
		sleeper_wake(&sleeper);
	}
	return NULL;
}

// Whenever the giver stops, the last gift has been taken: a sleeper that missed it would sleep for an hour.
static void no_gift_is_missed(void **state)
{
	struct pollfd fds[1];
	pthread_t giver;
	uint32_t taken = 0, now;

	given = 0;
	assert_int_equal(pthread_create(&giver, NULL, give, NULL), 0);
	while (taken < GIFTS) {
		sleeper_listen(&sleeper);
		now = __atomic_load_n(&given, __ATOMIC_RELAXED);
		if (now == taken)
			sleeper_sleep(&sleeper, fds, 1, HOUR_NS);
		taken = now;
	}
	pthread_join(giver, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ends_with_time, setup, teardown),
		cmocka_unit_test_setup_teardown(ends_with_a_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(woken_before_it_sleeps, setup, teardown),
		cmocka_unit_test_setup_teardown(not_rung_when_it_has_work, setup, teardown),
		cmocka_unit_test_setup_teardown(no_gift_is_missed, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
