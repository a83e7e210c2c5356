// SPDX-License-Identifier: Apache-2.0
// Descriptors that end sleeps: believed while they bring something, sought out less and less when they do not. A sleep
// that a descriptor must end is an hour long.
#include "core/watch.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_NS 3600000000000ull
#define QUEUES 100u
#define LONGEST_NS 50000000u // a worker's longest sleep

static struct sleeper sleeper;
static struct watch *watch;
static int ends[2];

static int setup(void **state)
{
	watch = watch_new(QUEUES);
	return watch == NULL || sleeper_open(&sleeper) != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0;
}

static int teardown(void **state)
{
	sleeper_close(&sleeper);
	free(watch);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

// A sleep on one descriptor, as of an idle worker. Returns its planned length, ns; `alarm`: it was listened to and
// reported something.
static uint64_t sleep_on(int fd, bool *alarm)
{
	watch_judge(watch, false);
	uint64_t ns = RTE_MIN(watch_add(watch, 7, fd), LONGEST_NS);

	*alarm = watch->count == 2;
	if (*alarm) {
		watch->poll[1].revents = 0;
		watch_sleep(watch, &sleeper, 1000);
		*alarm = watch->poll[1].revents != 0;
	}
	return *alarm ? 0 : ns;
}

// Sleeps until a second has passed, if those that the descriptor ends have no length.
static uint32_t sleeps_in_a_second(int fd)
{
	uint64_t passed = 0;
	uint32_t sleeps = 0;
	bool alarm;

	while (passed < 1000000000u && sleeps < 1000000) {
		passed += sleep_on(fd, &alarm);
		sleeps++;
	}
	return sleeps;
}

static void dead_one_does_not_keep_awake(void **state)
{
	bool alarm;

	close(ends[1]); // POLLHUP and POLLIN, for ever
	sleep_on(ends[0], &alarm);
	assert_true(alarm);
	assert_in_range(sleeps_in_a_second(ends[0]), 2, 100);
	assert_in_range(sleeps_in_a_second(ends[0]), 40, 50);
	ends[1] = -1;
}

static void no_descriptor_at_all_does_not_keep_awake(void **state)
{
	close(ends[0]);
	close(ends[1]);
	assert_in_range(sleeps_in_a_second(ends[0]), 2, 100); // POLLNVAL
	ends[0] = ends[1] = -1;
}

// A descriptor that rings again each time it was read.
static void rung_for_nothing(void **state)
{
	uint32_t sleeps = 0;
	uint64_t passed = 0;
	char byte;

	while (passed < 1000000000u && sleeps < 1000000) {
		bool alarm;

		assert_int_equal(write(ends[1], "x", 1), 1);
		passed += sleep_on(ends[0], &alarm);
		sleeps++;
		assert_int_equal(read(ends[0], &byte, 1), 1);
	}
	assert_in_range(sleeps, 2, 100);
}

static void believed_when_silent(void **state)
{
	bool alarm;
	char byte;

	assert_int_equal(write(ends[1], "x", 1), 1);
	sleeps_in_a_second(ends[0]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	for (int i = 0; i < 2; i++) { // it may be left out of one of them
		sleep_on(ends[0], &alarm);
		assert_false(alarm);
	}
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(sleep_on(ends[0], &alarm), LONGEST_NS);
	assert_int_equal(watch->count, 2);
}

static void believed_when_it_brings_something(void **state)
{
	bool alarm;

	assert_int_equal(write(ends[1], "x", 1), 1);
	for (int i = 0; i < 100; i++) {
		sleep_on(ends[0], &alarm);
		assert_true(alarm);
		watch_judge(watch, true);
	}
}

static void error_of_a_socket_is_reported_once(void **state)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(to);

	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &n), 0);
	close(fd); // the port has no peer
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	watch_add(watch, 0, fd);
	watch_sleep(watch, &sleeper, HOUR_NS);
	assert_true((watch->poll[1].revents & POLLERR) != 0);
	watch_sleep(watch, &sleeper, 1000);
	assert_int_equal(watch->poll[1].revents, 0);
	close(fd);
}

static void too_many_are_polled(void **state)
{
	for (uint16_t i = 0; i < WATCHED_MAX; i++)
		assert_true(watch_add(watch, i, ends[0]) > POLLED_NS);
	assert_int_equal(watch_add(watch, WATCHED_MAX, ends[0]), POLLED_NS);
	assert_int_equal(watch->count, WATCHED_MAX + 1);
	watch_sleep(watch, &sleeper, 1000);
	watch_judge(watch, false);
	assert_int_equal(watch_add(watch, 0, -1), POLLED_NS);
	assert_int_equal(watch->count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dead_one_does_not_keep_awake, setup, teardown),
		cmocka_unit_test_setup_teardown(no_descriptor_at_all_does_not_keep_awake, setup, teardown),
		cmocka_unit_test_setup_teardown(rung_for_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(believed_when_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(believed_when_it_brings_something, setup, teardown),
		cmocka_unit_test_setup_teardown(error_of_a_socket_is_reported_once, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_are_polled, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
