// SPDX-License-Identifier: Apache-2.0
// Tests of lib/hqos: rates, priorities, weights and isolation, one simulated second each, on a virtual clock.
#include "hqos/hqos_test.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <string.h>

#define FLOWS 512
#define ROOM 128

struct rte_mempool *test_pool;

struct api_scheduler *test_scheduler(uint32_t subports, uint32_t pipes)
{
	struct api_scheduler *s = test_calloc(1, sizeof(*s));
	s->subports = subports;
	s->rate = 10000 * MBIT;
	s->frame_overhead = 24;
	s->profiles = 4;
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		s->queue_size[c] = 64;
	for (uint32_t i = 0; i < subports; i++)
		s->subport[i] = (struct api_subport){.rate = 1000 * MBIT, .burst = 100000, .pipes = pipes};
	for (uint32_t i = 0; i < s->profiles; i++)
		s->profile[i] = (struct api_pipe_profile){.rate = 100 * MBIT, .burst = 20000, .weight = {1, 1, 1, 1}};
	return s;
}

struct hqos *test_make(const struct api_scheduler *s)
{
	char error[HQOS_ERROR] = "";
	struct hqos_params params = {.scheduler = s,
		.worker = HQOS_ALL_WORKERS,
		.socket = SOCKET_ID_ANY,
		.hz = TEST_HZ,
		.start = TEST_START};
	struct hqos *h = hqos_create(&params, error);
	if (!h)
		fail_msg("refused: %s", error);
	return h;
}

struct rte_mbuf *test_packet(uint32_t place, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool);
	assert_non_null(m);
	m->pkt_len = length; // without data: nothing here reads it
	hqos_set_place(m, place);
	return m;
}

struct flow {
	uint32_t place, length;
	uint64_t rate; // offered, bytes per second with overhead
	double due; // bytes owed so far
	uint64_t bytes, packets, refused; // that left (with overhead), and that were handed back; while measuring
};

struct bench {
	struct hqos *h;
	struct flow flow[FLOWS];
	uint32_t flows;
	uint64_t now;
};

static void add(struct bench *b, uint32_t place, uint32_t length, uint64_t rate)
{
	assert_true(b->flows < FLOWS);
	b->flow[b->flows++] = (struct flow){.place = place, .length = length, .rate = rate};
}

static void offer(struct bench *b, bool measure)
{
	for (uint32_t i = 0; i < b->flows; i++) {
		struct flow *f = &b->flow[i];
		f->due += f->rate * (TEST_STEP / 1e9);
		while (f->due >= f->length + 24) {
			f->due -= f->length + 24;
			struct rte_mbuf *m = test_packet(f->place, f->length);
			m->packet_type = i;
			if (hqos_enqueue(b->h, &m, 1, b->now, &m)) {
				f->refused += measure;
				rte_pktmbuf_free(m);
			}
		}
	}
}

static void run(struct bench *b, uint64_t ns, bool measure)
{
	for (uint64_t end = b->now + ns; b->now < end; b->now += TEST_STEP) {
		struct rte_mbuf *out[ROOM];
		uint32_t n;
		offer(b, measure);
		while ((n = hqos_dequeue(b->h, out, ROOM, b->now)))
			for (uint32_t i = 0; i < n; i++) {
				struct flow *f = &b->flow[out[i]->packet_type];
				f->bytes += measure ? out[i]->pkt_len + 24 : 0;
				f->packets += measure;
				rte_pktmbuf_free(out[i]);
			}
	}
}

// Runs until the bursts are used up, then measures one second, then stops.
static void one_second(struct bench *b, const struct api_scheduler *s)
{
	b->h = test_make(s);
	b->now = TEST_START;
	run(b, TEST_HZ / 5, false);
	run(b, TEST_HZ, true);
	hqos_free(b->h);
	test_free((void *)s);
	assert_int_equal(rte_mempool_in_use_count(test_pool), 0);
}

static uint64_t bytes_of(const struct bench *b, uint32_t first, uint32_t count)
{
	uint64_t sum = 0;
	for (uint32_t i = first; i < first + count; i++)
		sum += b->flow[i].bytes;
	return sum;
}

static void assert_near(uint64_t value, double expected, double share)
{
	if (value < expected * (1 - share) || value > expected * (1 + share))
		fail_msg("%llu is not within %.1f %% of %.0f", (unsigned long long)value, share * 100, expected);
}

static void pipe_rate(void **state)
{
	static const uint64_t rates[] = {64000 / 8, MBIT, 50 * MBIT, 937 * MBIT};
	for (uint32_t i = 0; i < RTE_DIM(rates); i++) {
		struct bench b = {0};
		struct api_scheduler *s = test_scheduler(1, 4);
		s->profile[0].rate = rates[i];
		s->profile[0].burst = i ? 3000 : 300;
		// Beside another, idle pipe's traffic, in two classes that together offer twice the rate.
		add(&b, hqos_place(0, 1, 0, 0), i ? 1000 : 40, rates[i]);
		add(&b, hqos_place(0, 1, 3, 2), i ? 400 : 40, rates[i]);
		one_second(&b, s);
		assert_near(bytes_of(&b, 0, 2), rates[i], 0.01);
	}
}

static void class_rate(void **state)
{
	for (uint32_t c = 0; c < API_TRAFFIC_CLASSES; c++) {
		struct bench b = {0};
		struct api_scheduler *s = test_scheduler(1, 4);
		s->profile[0].class_rate[c] = 20 * MBIT;
		add(&b, hqos_place(0, 2, c, 1), 700, 90 * MBIT);
		one_second(&b, s);
		assert_near(bytes_of(&b, 0, 1), 20 * MBIT, 0.01);
	}
}

// A capped class leaves the rest of the pipe to the lower ones.
static void class_rest(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(1, 4);
	s->profile[0].class_rate[0] = 30 * MBIT;
	s->profile[0].class_rate[1] = 25 * MBIT;
	for (uint32_t c = 0; c < API_TRAFFIC_CLASSES; c++)
		add(&b, hqos_place(0, 0, c, 0), 500, 60 * MBIT);
	one_second(&b, s);
	assert_near(b.flow[0].bytes, 30 * MBIT, 0.01);
	assert_near(b.flow[1].bytes, 25 * MBIT, 0.01);
	assert_near(b.flow[2].bytes, 45 * MBIT, 0.01);
	assert_true(b.flow[3].bytes < MBIT / 10);
}

static void subport_rate(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(2, 32);
	s->subport[1].rate = 321 * MBIT;
	for (uint32_t p = 0; p < 32; p++)
		add(&b, hqos_place(1, p, p % 4, 0), 300 + 30 * p, 50 * MBIT);
	one_second(&b, s);
	assert_near(bytes_of(&b, 0, 32), 321 * MBIT, 0.01);
	// All pipes of an oversubscribed subport have the same share, for any class or length.
	for (uint32_t p = 0; p < 32; p++)
		assert_near(b.flow[p].bytes, 321.0 * MBIT / 32, 0.01);
}

static void subport_class_rate(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(1, 32);
	s->subport[0].class_rate[1] = 100 * MBIT;
	for (uint32_t p = 0; p < 32; p++)
		add(&b, hqos_place(0, p, 1, 0), 300 + 30 * p, 20 * MBIT);
	// One pipe with best effort beside: the class does not delay it, and helps it little.
	add(&b, hqos_place(0, 0, 3, 0), 1000, 60 * MBIT);
	one_second(&b, s);
	assert_near(bytes_of(&b, 0, 32), 100 * MBIT, 0.01);
	for (uint32_t p = 1; p < 32; p++)
		assert_near(b.flow[p].bytes, 100.0 * MBIT / 32, 0.01);
	// Its overdraft of one frame a turn is also repaid from its best effort.
	assert_near(b.flow[0].bytes, 100.0 * MBIT / 32, 0.12);
	assert_near(b.flow[32].bytes, 60 * MBIT, 0.01);
}

// Pipes that wait for a class of the subport, beside pipes that keep the subport itself busy.
static void subport_class_among_others(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(1, 64);
	s->subport[0].class_rate[0] = 300 * MBIT;
	for (uint32_t p = 0; p < 32; p++)
		add(&b, hqos_place(0, p, 0, 0), 600, 40 * MBIT);
	for (uint32_t p = 32; p < 64; p++)
		add(&b, hqos_place(0, p, 3, 0), 1200, 40 * MBIT);
	one_second(&b, s);
	assert_near(bytes_of(&b, 0, 32), 300 * MBIT, 0.01);
	assert_near(bytes_of(&b, 32, 32), 700 * MBIT, 0.01);
}

static void port_rate(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(3, 16);
	s->rate = 600 * MBIT;
	s->subport[1].rate = 500 * MBIT;
	s->subport[2].rate = 100 * MBIT;
	for (uint32_t i = 0; i < 48; i++)
		add(&b, hqos_place(i / 16, i % 16, 3, i % 4), 900, 70 * MBIT);
	one_second(&b, s);
	assert_near(bytes_of(&b, 0, 48), 600 * MBIT, 0.01);
	// In proportion to the subports' rates.
	assert_near(bytes_of(&b, 0, 16), 375 * MBIT, 0.01);
	assert_near(bytes_of(&b, 16, 16), 187.5 * MBIT, 0.01);
	assert_near(bytes_of(&b, 32, 16), 37.5 * MBIT, 0.01);
}

static void strict_priority(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(1, 4);
	add(&b, hqos_place(0, 0, 3, 0), 1400, 200 * MBIT);
	add(&b, hqos_place(0, 0, 2, 0), 1400, 40 * MBIT);
	add(&b, hqos_place(0, 0, 1, 0), 200, 30 * MBIT);
	add(&b, hqos_place(0, 0, 0, 0), 100, 20 * MBIT);
	one_second(&b, s);
	assert_near(b.flow[3].bytes, 20 * MBIT, 0.001);
	assert_near(b.flow[2].bytes, 30 * MBIT, 0.001);
	assert_near(b.flow[1].bytes, 40 * MBIT, 0.001);
	assert_near(b.flow[0].bytes, 10 * MBIT, 0.01);
	assert_int_equal(b.flow[1].refused + b.flow[2].refused + b.flow[3].refused, 0);
}

static void weights(void **state)
{
	static const uint8_t sets[][4] = {
		{1, 1, 1, 1}, {1, 2, 4, 8}, {10, 20, 30, 40}, {255, 1, 16, 100}, {7, 255, 255, 3}};
	static const uint32_t lengths[] = {1500, 64, 577, 1024};
	for (uint32_t k = 0; k < RTE_DIM(sets); k++) {
		struct bench b = {0};
		struct api_scheduler *s = test_scheduler(1, 1);
		double sum = 0;
		s->profile[0].rate = 400 * MBIT;
		s->queue_size[3] = 256;
		memcpy(s->profile[0].weight, sets[k], 4);
		for (uint32_t q = 0; q < 4; q++) {
			sum += sets[k][q];
			add(&b, hqos_place(0, 0, 3, q), lengths[(q + k) % 4], 600 * MBIT);
		}
		one_second(&b, s);
		for (uint32_t q = 0; q < 4; q++)
			assert_near(b.flow[q].bytes, 400 * MBIT * sets[k][q] / sum, 0.01);
	}
}

// In an oversubscribed subport, a subscriber that offers less than its share loses nothing to a flooding one.
static void isolation(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(1, 64);
	s->profile[0].rate = 1000 * MBIT;
	s->subport[0].rate = 200 * MBIT;
	add(&b, hqos_place(0, 63, 0, 0), 100, 1000 * MBIT); // greedy, in the highest class
	add(&b, hqos_place(0, 62, 3, 0), 1500, 1000 * MBIT);
	for (uint32_t p = 0; p < 60; p++)
		add(&b, hqos_place(0, p, 3, p % 4), 800, 2 * MBIT);
	one_second(&b, s);
	for (uint32_t i = 2; i < b.flows; i++) {
		assert_near(b.flow[i].bytes, 2 * MBIT, 0.01);
		assert_int_equal(b.flow[i].refused, 0);
	}
	assert_near(b.flow[0].bytes, 40 * MBIT, 0.01);
	assert_near(b.flow[1].bytes, 40 * MBIT, 0.01);
}

// Packets that pass straight through take nothing from waiting ones, even if they always come first.
static void isolation_from_passing(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(2, 32);
	s->profile[0].rate = 1000 * MBIT;
	add(&b, hqos_place(0, 31, 3, 0), 76, 750 * MBIT);
	for (uint32_t p = 0; p < 19; p++)
		add(&b, hqos_place(0, p, 3, 0), 76, 100 * MBIT);
	one_second(&b, s);
	for (uint32_t i = 0; i < b.flows; i++)
		assert_near(b.flow[i].bytes, 50 * MBIT, 0.01);
}

// The same where it is a class of the subport that is short, and where it is the port.
static void isolation_from_passing_elsewhere(void **state)
{
	for (int where = 0; where < 2; where++) {
		struct bench b = {0};
		struct api_scheduler *s = test_scheduler(2, 32);
		s->profile[0].rate = 1000 * MBIT;
		if (where == 0)
			s->subport[0].class_rate[3] = 500 * MBIT;
		else
			s->rate = 1000 * MBIT;
		add(&b, hqos_place(0, 31, 3, 0), 76, 400 * MBIT);
		add(&b, hqos_place(0, 30, 3, 0), 76, 400 * MBIT);
		for (uint32_t p = 0; p < 18; p++)
			add(&b, hqos_place(where, p, 3, 0), 76, 100 * MBIT);
		one_second(&b, s);
		assert_near(bytes_of(&b, 0, 2), where ? 500 * MBIT : 50 * MBIT, 0.01);
		assert_near(bytes_of(&b, 2, 18), where ? 500 * MBIT : 450 * MBIT, 0.01);
	}
}

// The same between subports of an oversubscribed port.
static void isolation_of_subports(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(3, 16);
	s->rate = 300 * MBIT;
	for (uint32_t p = 0; p < 16; p++) {
		add(&b, hqos_place(0, p, 0, 0), 1500, 60 * MBIT);
		add(&b, hqos_place(1, p, 3, 0), 300, 4 * MBIT);
		add(&b, hqos_place(2, p, 3, 0), 700, 4 * MBIT);
	}
	one_second(&b, s);
	for (uint32_t i = 0; i < b.flows; i++)
		if (i % 3) {
			assert_near(b.flow[i].bytes, 4 * MBIT, 0.01);
			assert_int_equal(b.flow[i].refused, 0);
		}
}

static void reconfigure(void **state)
{
	struct bench b = {0};
	struct api_scheduler *s = test_scheduler(1, 4);
	s->profile[1].rate = 10 * MBIT;
	s->profile[2].rate = 1000;
	b.h = test_make(s);
	b.now = TEST_START;
	add(&b, hqos_place(0, 3, 3, 1), 1000, 200 * MBIT);
	static const uint32_t profiles[] = {2, 1, 0, 2, 0};
	for (uint32_t i = 0; i < RTE_DIM(profiles); i++) {
		assert_int_equal(hqos_pipe_config(b.h, 0, 3, profiles[i]), 0);
		run(&b, TEST_HZ / 10, false);
		b.flow[0].bytes = 0;
		run(&b, TEST_HZ, true);
		if (profiles[i] != 2)
			assert_near(b.flow[0].bytes, s->profile[profiles[i]].rate, 0.01);
	}
	hqos_free(b.h);
	test_free(s);
}

int main(int argc, char **argv)
{
	char *eal[] = {"hqos-test", "--no-huge", "-m", "128", "--no-pci", "--no-telemetry", "--no-shconf", "-l", "0",
		"--log-level", "error"};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_refused_parameters),
		cmocka_unit_test(test_workers),
		cmocka_unit_test(pipe_rate),
		cmocka_unit_test(class_rate),
		cmocka_unit_test(class_rest),
		cmocka_unit_test(subport_rate),
		cmocka_unit_test(subport_class_rate),
		cmocka_unit_test(subport_class_among_others),
		cmocka_unit_test(port_rate),
		cmocka_unit_test(strict_priority),
		cmocka_unit_test(weights),
		cmocka_unit_test(isolation),
		cmocka_unit_test(isolation_from_passing),
		cmocka_unit_test(isolation_from_passing_elsewhere),
		cmocka_unit_test(isolation_of_subports),
		cmocka_unit_test(test_pipe_counters),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_free_with_packets),
		cmocka_unit_test(test_clock_oddities),
		cmocka_unit_test(reconfigure),
		cmocka_unit_test(test_red_average),
		cmocka_unit_test(test_red_marks),
		cmocka_unit_test(test_red_idle),
		cmocka_unit_test(test_red_long_queue),
		cmocka_unit_test(test_red_refused),
		cmocka_unit_test(test_differential),
	};
	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		return 1;
	test_pool = rte_pktmbuf_pool_create("hqos_test", 32767, 0, 0, 0, SOCKET_ID_ANY);
	if (!test_pool)
		return 1;
	int status = cmocka_run_group_tests_name(argc > 1 ? argv[1] : "hqos", tests, NULL, NULL);
	rte_eal_cleanup();
	return status;
}
