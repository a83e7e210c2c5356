// SPDX-License-Identifier: Apache-2.0
// Tests of lib/hqos: random early detection.
#include "hqos/hqos_test.h"

#include <rte_mbuf.h>
#include <rte_red.h>
#include <string.h>

#define LENGTH 1226 // with its overhead 0.1 ms at 100 Mbit/s
#define ONE (TEST_HZ / 10000)
#define HERE hqos_place(0, 0, 3, 1)

static uint32_t marked;

static bool mark_all(struct rte_mbuf *m)
{
	marked++;
	return m != NULL;
}

static bool mark_none(struct rte_mbuf *m)
{
	return m == NULL;
}

struct red_bench {
	struct api_scheduler *s;
	struct hqos *h;
	uint64_t now;
	uint32_t early, full;
};

static struct hqos *create(const struct api_scheduler *s, bool (*mark)(struct rte_mbuf *), char *error)
{
	struct hqos_params params = {.scheduler = s,
		.worker = HQOS_ALL_WORKERS,
		.socket = SOCKET_ID_ANY,
		.hz = TEST_HZ,
		.start = TEST_START,
		.mark = mark};
	return hqos_create(&params, error);
}

static struct red_bench begin(struct api_red red, bool (*mark)(struct rte_mbuf *))
{
	char error[HQOS_ERROR] = "";
	struct red_bench b = {.s = test_scheduler(1, 4), .now = TEST_START};
	b.s->profile[0].burst = 0;
	b.s->queue_size[3] = 16384;
	b.s->red[3] = red;
	b.h = create(b.s, mark, error);
	if (!b.h)
		fail_msg("refused: %s", error);
	rte_red_rand_seed = 7; // the same every time
	rte_red_rand_val = rte_fast_rand();
	marked = 0;
	return b;
}

static void end(struct red_bench *b)
{
	hqos_free(b->h);
	test_free(b->s);
	assert_int_equal(rte_mempool_in_use_count(test_pool), 0);
}

// Whether it was taken.
static bool put(struct red_bench *b, uint32_t place)
{
	struct rte_mbuf *m = test_packet(place, LENGTH);
	if (!hqos_enqueue(b->h, &m, 1, b->now, &m))
		return true;
	b->early += hqos_early(m);
	b->full += !hqos_early(m);
	rte_pktmbuf_free(m);
	return false;
}

static uint32_t queued(struct red_bench *b, uint32_t pipe, uint32_t c)
{
	struct hqos_stats stats;
	assert_int_equal(hqos_pipe_stats(b->h, 0, pipe, c, &stats), 0);
	return stats.queued;
}

static void pass_time(struct red_bench *b, uint64_t ns)
{
	for (uint64_t until = b->now + ns; b->now < until; b->now += TEST_STEP) {
		struct rte_mbuf *out[16];
		uint32_t n;
		while ((n = hqos_dequeue(b->h, out, RTE_DIM(out), b->now)))
			rte_pktmbuf_free_bulk(out, n);
	}
}

// 5 % more than the pipe may send for a second: early drops suffice, and the queue stays between the thresholds. Queues
// of another class or pipe, and one of the same class without overload, lose nothing.
void test_red_average(void **state)
{
	struct red_bench b = begin((struct api_red){.min = 16, .max = 48, .probability = 10, .weight = 6}, NULL);
	uint64_t sum = 0;
	uint32_t samples = 0, refused;
	for (uint32_t i = 0; i < 10000; i++) {
		put(&b, HERE);
		if (i % 20 == 0)
			put(&b, HERE);
		refused = b.early + b.full;
		if (i % 100 == 0) {
			put(&b, hqos_place(0, 0, 3, 2));
			put(&b, hqos_place(0, 0, 0, 0));
		}
		for (int k = 0; i % 100 == 0 && k < 60; k++)
			put(&b, hqos_place(0, 1, 1, 0));
		assert_int_equal(b.early + b.full, refused);
		pass_time(&b, ONE);
		sum += i < 2000 ? 0 : queued(&b, 0, 3);
		samples += i >= 2000;
	}
	assert_in_range(sum / samples, 16, 48);
	assert_in_range(b.early, 300, 900);
	assert_int_equal(b.full, 0);
	end(&b);
}

// The queue is filled up to 40 for half a second; returns how many were taken.
static uint32_t steady(struct red_bench *b)
{
	uint32_t taken = 0;
	for (uint32_t i = 0; i < 5000; i++) {
		for (int tries = 0; tries < 40 && queued(b, 0, 3) < 40; tries++)
			taken += put(b, HERE);
		pass_time(b, ONE);
	}
	return taken;
}

// At a queue of 40 about (40 - 16) / (48 - 16) / 10 of the packets are chosen: marked if possible, else dropped.
void test_red_marks(void **state)
{
	const struct api_red red = {.min = 16, .max = 48, .probability = 10, .weight = 6};
	struct red_bench b = begin(red, mark_all);
	uint32_t taken = steady(&b);
	assert_in_range(taken, 4990, 5050);
	assert_in_range(marked, taken * 5 / 100, taken * 10 / 100);
	assert_int_equal(b.early + b.full, 0);
	// From max on everything is dropped.
	for (int i = 0; i < 400 && b.early == 0; i++)
		put(&b, HERE);
	assert_int_equal(b.early, 1);
	marked = 0;
	for (int i = 0; i < 100; i++)
		assert_false(put(&b, HERE));
	assert_int_equal(marked, 0);
	end(&b);
	bool (*const unable[])(struct rte_mbuf *) = {mark_none, NULL};
	for (uint32_t i = 0; i < RTE_DIM(unable); i++) {
		b = begin(red, unable[i]);
		taken = steady(&b);
		assert_in_range(b.early, taken * 5 / 100, taken * 10 / 100);
		assert_int_equal(b.full, 0);
		end(&b);
	}
}

// The average of a busy time is forgotten as time passes, not at once.
void test_red_idle(void **state)
{
	struct red_bench b = begin((struct api_red){.min = 2, .max = 8, .probability = 1, .weight = 5}, NULL);
	for (uint32_t idle = 0; idle < 2; idle++) {
		for (int i = 0; i < 500; i++) {
			put(&b, HERE);
			put(&b, HERE);
			pass_time(&b, ONE);
		}
		assert_true(b.early > 0);
		while (queued(&b, 0, 3) > 0)
			pass_time(&b, TEST_STEP);
		pass_time(&b, idle ? 300 * ONE : 0);
		b.early = 0;
		for (int i = 0; i < 6; i++)
			put(&b, HERE);
		assert_int_equal(b.early > 0, !idle);
	}
	assert_int_equal(b.full, 0);
	end(&b);
}

// A queue far longer than rte_red's 32 bits can average with this weight, 1,023: nothing wraps, everything above max is
// dropped. An average of lengths capped at 1,023 reaches 512 after 3,364 packets.
void test_red_long_queue(void **state)
{
	struct red_bench b = begin((struct api_red){.min = 511, .max = 512, .probability = 255, .weight = 12}, NULL);
	for (uint32_t i = 0; i < 20000; i++)
		put(&b, HERE);
	assert_in_range(queued(&b, 0, 3), 3300, 3400);
	assert_int_equal(b.full, 0);
	end(&b);
}

void test_red_refused(void **state)
{
	static const struct api_red wrong[] = {
		{.min = 0, .max = 4, .probability = 1, .weight = 1},
		{.min = 4, .max = 4, .probability = 1, .weight = 1},
		{.min = 4, .max = 65, .probability = 1, .weight = 1},
		{.min = 4, .max = 8, .probability = 0, .weight = 1},
		{.min = 4, .max = 8, .probability = 1, .weight = 0},
		{.min = 4, .max = 8, .probability = 1, .weight = 13},
		{.min = 4, .max = 0, .probability = 1, .weight = 1},
		{.weight = 1},
	};
	struct api_scheduler *s = test_scheduler(1, 4);
	char error[HQOS_ERROR] = "";
	for (uint32_t i = 0; i < RTE_DIM(wrong); i++) {
		s->red[2] = wrong[i];
		assert_null(create(s, NULL, error));
		assert_non_null(strstr(error, "random early detection needs 0 < min"));
	}
	s->queue_size[2] = 2048;
	s->red[2] = (struct api_red){.min = 4, .max = 1024, .probability = 1, .weight = 1};
	assert_null(create(s, NULL, error));
	s->red[2].max = 1023;
	// It takes memory for the queues of its classes only.
	struct hqos *with = create(s, NULL, error);
	assert_non_null(with);
	s->red[2] = (struct api_red){0};
	struct hqos *without = create(s, NULL, error);
	assert_int_equal(hqos_memory(with) - hqos_memory(without), 4 * sizeof(struct rte_red));
	hqos_free(with);
	hqos_free(without);
	test_free(s);
}
