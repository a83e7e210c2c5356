// SPDX-License-Identifier: Apache-2.0
// Sleep on a link: what ends it, no missed frame, and what a hostile peer can do. A sleep that should end by another
// cause than time is an hour long, so a fault times out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "share/share_kit.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rte_pause.h>
#include <stdlib.h>
#include <sys/socket.h>

#define HOUR_MS 3600000
#define ROUNDS 100000u

static struct side a, b;

static int setup(void **state)
{
	a = side_open(true);
	b = side_open(false);
	return 0;
}

static int teardown(void **state)
{
	die(&a);
	die(&b);
	return 0;
}

static void sends(struct side *s, int link, uint8_t fill)
{
	assert_int_equal(send_one(s->link[link], frame(share_pool(s->share), 60, fill)), 1);
}

static void receives(struct side *s, int link, uint8_t fill)
{
	struct rte_mbuf *m = receive_one(s->link[link]);

	assert_frame(m, 60, fill);
	rte_pktmbuf_free(m);
}

// Goes to sleep, and returns whether something rang.
static bool rung(struct share_link *l)
{
	int fd;

	assert_true(share_sleep(l, &fd));
	assert_true(fd >= 0);
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

static bool rings(int fd)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

static void a_frame_ends_it(void **state)
{
	int fd;

	connect_both(&a, &b);
	for (uint8_t i = 0; i < 100; i++) {
		assert_true(share_sleep(b.link[0], &fd));
		assert_false(rings(fd));
		sends(&a, 0, i);
		assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, HOUR_MS), 1);
		receives(&b, 0, i);
		assert_null(receive_one(a.link[0])); // takes back
	}
	// Heard: the next sleep is a whole one.
	assert_false(rung(b.link[0]));
	// Once each sleep.
	for (uint8_t i = 0; i < 20; i++)
		sends(&a, 0, i);
	char byte;

	assert_int_equal(recv(b.link[0]->fd, &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(recv(b.link[0]->fd, &byte, 1, MSG_DONTWAIT), -1);
}

static void frames_that_are_there_prevent_it(void **state)
{
	int fd;

	connect_both(&a, &b);
	sends(&a, 0, 1);
	assert_false(share_sleep(b.link[0], &fd));
	receives(&b, 0, 1);
	assert_true(share_sleep(b.link[0], &fd));
}

static void nobody_rings_who_works(void **state)
{
	char byte;

	connect_both(&a, &b);
	sends(&a, 0, 1);
	assert_int_equal(recv(b.link[0]->fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void a_link_that_is_down_has_no_descriptor(void **state)
{
	int fd;

	assert_true(share_sleep(a.link[0], &fd));
	assert_int_equal(fd, -1);
	connect_both(&a, &b);
	assert_true(share_sleep(a.link[0], &fd));
	assert_true(fd >= 0);
	die(&b);
	assert_true(rings(fd));
	share_poll(a.share);
	assert_true(share_sleep(a.link[0], &fd));
	assert_int_equal(fd, -1);
	b = side_open(false);
	connect_both(&a, &b);
	assert_false(rung(a.link[0])); // of a new session
	assert_passes(&a, &b);
}

// A death behind an unread ring is seen.
static void a_ring_does_not_hide_a_death(void **state)
{
	connect_both(&a, &b);
	assert_false(rung(a.link[0]));
	sends(&b, 0, 1);
	die(&b);
	share_poll(a.share);
	assert_false(share_up(a.link[0]));
	b = side_open(false);
}

// A sleeper's other threads send: buffers come back before they run out of them.
static void buffers_that_are_given_back_end_it(void **state)
{
	struct rte_mbuf *m[BUFFERS / 2 - 1];
	uint32_t n = 0;
	int fd;

	connect_both(&a, &b);
	for (; n < RTE_DIM(m); n++) {
		sends(&a, 0, 1);
		assert_non_null(m[n] = receive_one(b.link[0]));
	}
	assert_true(share_sleep(a.link[0], &fd));
	rte_pktmbuf_free_bulk(m, 3);
	assert_false(rings(fd));
	rte_pktmbuf_free_bulk(m + 3, n - 3);
	assert_true(rings(fd));
	assert_int_equal(share_lent(a.share), n);
	assert_true(share_sleep(a.link[0], &fd));
	assert_int_equal(share_lent(a.share), 0);
}

static uint32_t received;

static void *send_rounds(void *arg)
{
	uint32_t random = 1;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct rte_mbuf *m = NULL;

		while ((m = rte_pktmbuf_alloc(share_pool(a.share))) == NULL || rte_pktmbuf_append(m, 60) == NULL)
			share_rx(a.link[0], &m, 1);
		while (share_tx(a.link[0], &m, 1) == 0)
			rte_pause();
		share_rx(a.link[0], &m, 1);
		// The next frame is sent a bit after this one arrived, when the receiver is about to sleep.
		while (__atomic_load_n(&received, __ATOMIC_ACQUIRE) <= i)
			rte_pause();
		random = random * 1103515245 + 12345;
		for (uint32_t wait = random >> 27; wait > 0; wait--)
			rte_pause();
	}
	return NULL;
}

// Both run as they like. A sleeper that missed a frame would sleep for an hour.
static void no_frame_is_missed(void **state)
{
	pthread_t sender;
	int fd;

	connect_both(&a, &b);
	received = 0;
	assert_int_equal(pthread_create(&sender, NULL, send_rounds, NULL), 0);
	while (received < ROUNDS) {
		struct rte_mbuf *m = receive_one(b.link[0]);

		if (m != NULL) {
			rte_pktmbuf_free(m);
			__atomic_store_n(&received, received + 1, __ATOMIC_RELEASE);
		} else if (share_sleep(b.link[0], &fd)) {
			poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, HOUR_MS);
		}
	}
	pthread_join(sender, NULL);
}

// It rings until no more rings fit, with messages of any size and with files. Frames still arrive, and each sleep
// removes some rings.
static void rings_without_reason(void **state)
{
	char large[3000] = {0};
	uint32_t sent = 0, sleeps = 0;

	connect_both(&a, &b);
	for (size_t n = 0; send(b.link[0]->fd, large, n, MSG_DONTWAIT) >= 0; n = (n + 997) % sizeof(large))
		sent++;
	assert_true(sent > 20);
	sends(&b, 0, 3); // nor does the ring of an honest thread wait for room
	receives(&a, 0, 3);
	while (rung(a.link[0]) && sleeps < 10000)
		sleeps++;
	assert_in_range(sleeps, 1, sent);
	assert_passes(&b, &a);
	share_poll(a.share);
	assert_true(share_up(a.link[0]));
}

// It claims to sleep all the time, and reads no ring: the sender does not wait.
static void sleeps_without_end(void **state)
{
	connect_both(&a, &b);
	for (uint32_t i = 0; i < 10000; i++) {
		b.link[0]->mine->sleeps = i * 0x9e3779b9u;
		assert_passes(&a, &b);
		assert_null(receive_one(a.link[0]));
	}
	share_poll(a.share);
	assert_true(share_up(a.link[0]));
}

static void shuts_one_direction(void **state)
{
	int fd;

	connect_both(&a, &b);
	assert_true(share_sleep(a.link[0], &fd));
	assert_int_equal(shutdown(b.link[0]->fd, SHUT_WR), 0);
	assert_true(rings(fd));
	assert_true(share_sleep(a.link[0], &fd)); // which does not hear the end for ever
	share_poll(a.share);
	assert_false(share_up(a.link[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_frame_ends_it, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_that_are_there_prevent_it, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_rings_who_works, setup, teardown),
		cmocka_unit_test_setup_teardown(a_link_that_is_down_has_no_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(a_ring_does_not_hide_a_death, setup, teardown),
		cmocka_unit_test_setup_teardown(buffers_that_are_given_back_end_it, setup, teardown),
		cmocka_unit_test_setup_teardown(no_frame_is_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(rings_without_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(sleeps_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(shuts_one_direction, setup, teardown),
	};
	if (kit_start() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
