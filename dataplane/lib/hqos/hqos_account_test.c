// SPDX-License-Identifier: Apache-2.0
// Tests of lib/hqos: parameters, places, packet accounting, and odd clocks.
#include "hqos/hqos_test.h"

#include <errno.h>
#include <rte_mbuf.h>
#include <string.h>

#define ROOM 128

static uint64_t total(struct hqos *h, uint64_t *dropped)
{
	uint64_t packets = 0;
	*dropped = 0;
	for (uint32_t c = 0; c < API_TRAFFIC_CLASSES; c++) {
		struct hqos_stats stats;
		assert_int_equal(hqos_subport_stats(h, 0, c, &stats), 0);
		packets += stats.packets;
		*dropped += stats.dropped_packets;
	}
	return packets;
}

void test_overflow(void **state)
{
	struct api_scheduler *s = test_scheduler(1, 4);
	struct rte_mbuf *in[400], *rejected[400];
	struct hqos_stats stats;
	uint64_t dropped;
	s->profile[0].rate = s->profile[1].rate = 10000; // nothing of note leaves while the test runs
	s->profile[0].burst = 0;
	s->queue_size[0] = 16;
	struct hqos *h = test_make(s);
	for (uint32_t i = 0; i < 400; i++)
		in[i] = test_packet(
			i % 50 == 7 ? hqos_place(0, 5, 0, 0) : hqos_place(0, 1, i % 2 ? 0 : 3, i % 4), 1000);
	// Chains and packets that someone else refers to are handed back whole, too.
	for (uint32_t i = 0; i < 400; i += 3) {
		struct rte_mbuf *tail = rte_pktmbuf_alloc(test_pool);
		in[i]->next = tail;
		in[i]->nb_segs = 2;
	}
	rte_mbuf_refcnt_update(in[398], 1);
	rte_mbuf_refcnt_update(in[1], 1);
	uint32_t refused = hqos_enqueue(h, in, 400, TEST_START, rejected);
	// 16 of TC0, 64 each of two best-effort queues, and one passes straight through; 8 have no place.
	uint32_t held = 16 + 64 + 64 + 1;
	assert_int_equal(refused, 400 - held);
	assert_int_equal(hqos_queued(h), held);
	assert_int_equal(hqos_misplaced(h), 8);
	assert_int_equal(total(h, &dropped), held);
	assert_int_equal(dropped, 400 - held - 8);
	for (uint32_t i = 0, at = 0; i < refused; i++, at++) {
		while (at < 400 && in[at] != rejected[i])
			at++;
		assert_true(at < 400); // in their order
		assert_int_equal(in[at]->nb_segs, at % 3 ? 1 : 2);
		assert_int_equal(rte_mbuf_refcnt_read(in[at]), at == 398 || at == 1 ? 2 : 1);
		if (in[at]->next)
			assert_int_equal(rte_mbuf_refcnt_read(in[at]->next), 1);
		rte_pktmbuf_free(rejected[i]);
	}
	assert_int_equal(rte_mbuf_refcnt_read(in[1]), 2);
	assert_int_equal(hqos_pipe_stats(h, 0, 1, 0, &stats), 0);
	assert_int_equal(stats.packets - stats.queued, 0);
	assert_int_equal(stats.queued, 16);
	assert_int_equal(stats.bytes, 16 * 1000);
	assert_int_equal(stats.dropped_packets, 200 - 8 - 16);
	assert_int_equal(hqos_pipe_stats(h, 0, 1, 3, &stats), 0);
	assert_int_equal(stats.packets, held - 16);
	assert_int_equal(stats.dropped_bytes, stats.dropped_packets * 1000);
	rte_pktmbuf_free(in[398]);
	rte_pktmbuf_free(in[1]);
	// Takes back everything: with fast profile the rest leaves.
	assert_int_equal(hqos_pipe_config(h, 0, 1, 2), 0);
	uint32_t left = 0;
	for (uint64_t i = 0; i < 1000000 && left < held; i++) {
		struct rte_mbuf *out[7];
		uint32_t n = hqos_dequeue(h, out, 7, TEST_START + i * TEST_STEP);
		rte_pktmbuf_free_bulk(out, n);
		left += n;
	}
	assert_int_equal(left, held);
	assert_int_equal(hqos_queued(h), 0);
	assert_int_equal(hqos_free(h), 0);
	test_free(s);
	assert_int_equal(rte_mempool_in_use_count(test_pool), 0);
}

// Includes packets that pass straight through: whole frames of any length, at any moment.
void test_pipe_counters(void **state)
{
	struct api_scheduler *s = test_scheduler(1, 4);
	uint64_t bytes[API_TRAFFIC_CLASSES] = {0}, packets[API_TRAFFIC_CLASSES] = {0};
	struct hqos *h = test_make(s);
	struct hqos_stats stats;
	for (uint32_t i = 0; i < 4000; i++) {
		uint32_t c = i % 7 ? 3 : i % 3, length = i % 2 ? UINT16_MAX : 60 + i % 1400;
		struct rte_mbuf *m = test_packet(hqos_place(0, 2, c, 0), length), *out[2], *rejected[1];
		uint64_t now = TEST_START + i * TEST_HZ / 10;
		assert_int_equal(hqos_enqueue(h, &m, 1, now, rejected), 0);
		assert_int_equal(hqos_dequeue(h, out, 2, now), 1);
		rte_pktmbuf_free(out[0]);
		bytes[c] += length;
		packets[c]++;
		assert_int_equal(hqos_pipe_stats(h, 0, 2, c, &stats), 0);
		assert_int_equal(stats.packets, packets[c]);
		assert_int_equal(stats.bytes, bytes[c]);
	}
	assert_int_equal(hqos_free(h), 0);
	test_free(s);
}

void test_free_with_packets(void **state)
{
	struct api_scheduler *s = test_scheduler(1, 4);
	s->profile[0].rate = 1000;
	s->profile[0].burst = 0;
	s->queue_size[1] = 8;
	struct hqos *h = test_make(s);
	uint32_t taken = 0;
	for (uint32_t i = 0; i < 200; i++) {
		struct rte_mbuf *m = test_packet(hqos_place(0, i % 4, i % 3, 0), 500);
		if (hqos_enqueue(h, &m, 1, TEST_START, &m))
			rte_pktmbuf_free(m);
		else
			taken++;
	}
	assert_in_range(taken, 150, 180); // the queues of TC1 are full
	assert_int_equal(hqos_free(h), taken);
	test_free(s);
	assert_int_equal(rte_mempool_in_use_count(test_pool), 0);
}

void test_places(void **state)
{
	assert_int_equal(hqos_place(64, 0, 0, 0), HQOS_PLACE_NONE);
	assert_int_equal(hqos_place(0, 65536, 0, 0), HQOS_PLACE_NONE);
	assert_int_equal(hqos_place(0, 0, 4, 0), HQOS_PLACE_NONE);
	uint32_t place = hqos_place(63, 65535, 3, 2);
	assert_int_equal(hqos_place_subport(place), 63);
	assert_int_equal(hqos_place_pipe(place), 65535);
	assert_int_equal(hqos_place_queue(place), 5);
	for (uint32_t c = 0; c < 4; c++)
		for (uint32_t q = 0; q < 4; q++)
			assert_int_equal(
				hqos_place_class(hqos_place(9, 77, 0, 0), c << 2 | q), hqos_place(9, 77, c, q));
}

// Subports of other workers are not here.
void test_workers(void **state)
{
	struct api_scheduler *s = test_scheduler(4, 10);
	char error[HQOS_ERROR];
	for (uint32_t i = 0; i < 4; i++)
		s->subport[i].worker = i % 2;
	struct hqos_params params = {.scheduler = s, .worker = 1, .socket = SOCKET_ID_ANY, .hz = TEST_HZ};
	struct hqos_stats stats;
	struct hqos *h = hqos_create(&params, error);
	assert_non_null(h);
	assert_int_equal(hqos_pipes(h, 0), 0);
	assert_int_equal(hqos_pipes(h, 1), 16);
	assert_int_equal(hqos_pipes(h, 99), 0);
	assert_int_equal(hqos_pipe_config(h, 0, 1, 0), -EINVAL);
	assert_int_equal(hqos_pipe_config(h, 3, 15, 3), 0);
	assert_int_equal(hqos_pipe_config(h, 3, 16, 3), -EINVAL);
	assert_int_equal(hqos_pipe_config(h, 3, 15, 4), -EINVAL);
	assert_int_equal(hqos_subport_stats(h, 2, 0, &stats), -EINVAL);
	assert_int_equal(hqos_pipe_stats(h, 3, 15, 4, &stats), -EINVAL);
	struct rte_mbuf *m = test_packet(hqos_place(2, 0, 0, 0), 100), *out[4];
	assert_int_equal(hqos_enqueue(h, &m, 1, 0, &m), 1);
	hqos_set_place(m, HQOS_PLACE_NONE);
	assert_int_equal(hqos_enqueue(h, &m, 1, 0, &m), 1);
	hqos_set_place(m, hqos_place(3, 15, 1, 0));
	assert_int_equal(hqos_enqueue(h, &m, 1, 0, &m), 0);
	uint32_t n = hqos_dequeue(h, out, 4, 0);
	assert_int_equal(n, 1);
	assert_ptr_equal(out[0], m);
	rte_pktmbuf_free(m);
	assert_int_equal(hqos_free(h), 0);
	params.worker = 2;
	assert_null(hqos_create(&params, error));
	test_free(s);
}

void test_refused_parameters(void **state)
{
	char error[HQOS_ERROR];
	for (int i = 0; i < 9; i++) {
		struct api_scheduler *s = test_scheduler(2, 4);
		struct hqos_params params = {
			.scheduler = s, .worker = HQOS_ALL_WORKERS, .socket = SOCKET_ID_ANY, .hz = TEST_HZ};
		switch (i) {
		case 0:
			s->subports = 65;
			break;
		case 1:
			s->profiles = 0;
			break;
		case 2:
			s->rate = 1;
			break;
		case 3:
			s->queue_size[2] = 48;
			break;
		case 4:
			s->queue_size[0] = 0;
			break;
		case 5:
			s->profile[3].weight[1] = 0;
			break;
		case 6:
			s->subport[1].pipes = 65536;
			s->subport[0].pipes = 1;
			break;
		case 7:
			s->subport[0].class_rate[1] = 999;
			break;
		case 8:
			params.hz = 0;
			break;
		}
		error[0] = 0;
		assert_null(hqos_create(&params, error));
		assert_true(strlen(error) > 5);
		test_free(s);
	}
}

static uint32_t drain(struct hqos *h, uint64_t now)
{
	struct rte_mbuf *out[ROOM];
	uint32_t total = 0, n;
	while ((n = hqos_dequeue(h, out, ROOM, now))) {
		rte_pktmbuf_free_bulk(out, n);
		total += n;
	}
	return total;
}

// Packets that must wait longer than the wheel is round; long silence; a clock that steps back.
void test_clock_oddities(void **state)
{
	struct api_scheduler *s = test_scheduler(1, 4);
	s->profile[0].rate = 10000;
	s->profile[0].burst = 0;
	struct hqos *h = test_make(s);
	for (int i = 0; i < 4; i++) {
		struct rte_mbuf *m = test_packet(hqos_place(0, 0, 0, 0), 976); // 0.1 s each
		assert_int_equal(hqos_enqueue(h, &m, 1, TEST_START, &m), 0);
	}
	assert_int_equal(drain(h, TEST_START), 1);
	uint32_t left = 0;
	for (uint64_t t = TEST_START; t < TEST_START + TEST_HZ / 10 - 100000; t += 1000000)
		left += drain(h, t);
	assert_int_equal(left, 0);
	assert_int_equal(drain(h, TEST_START + TEST_HZ / 10 + 10000), 1);
	assert_int_equal(drain(h, 0), 0);
	assert_int_equal(drain(h, TEST_START + TEST_HZ / 10 + 20000), 0);
	// A year later: both have long been due, but the bucket holds one.
	uint64_t later = TEST_START + 365 * 86400 * TEST_HZ;
	assert_int_equal(drain(h, later), 1);
	assert_int_equal(drain(h, TEST_START), 0);
	assert_int_equal(drain(h, later + TEST_HZ), 1);
	// An idle pipe after another year is just as it was.
	later += 365 * 86400 * TEST_HZ;
	struct rte_mbuf *m = test_packet(hqos_place(0, 1, 3, 0), 976);
	assert_int_equal(hqos_enqueue(h, &m, 1, later, &m), 0);
	assert_int_equal(drain(h, later), 1);
	assert_int_equal(hqos_free(h), 0);
	test_free(s);
}
