// SPDX-License-Identifier: Apache-2.0
// Random traffic through random schedulers; the model (hqos_model.h) judges each packet and each silence. Environment:
// HQOS_SEED, HQOS_ROUNDS.
#include "hqos/hqos_model.h"
#include "hqos/hqos_test.h"

#include <rte_mbuf.h>
#include <stdlib.h>

struct chance {
	uint64_t x;
};

static uint32_t roll(struct chance *c, uint32_t below)
{
	c->x ^= c->x << 13;
	c->x ^= c->x >> 7;
	c->x ^= c->x << 17;
	return (c->x >> 20) % below;
}

static uint64_t any_rate(struct chance *c, uint64_t low, uint64_t high)
{
	uint64_t rate = low;
	while (rate < high && roll(c, 4))
		rate *= 2;
	return rate + roll(c, low);
}

// A small scheduler with rates such that any level may limit.
static struct api_scheduler *any_scheduler(struct chance *c)
{
	uint32_t subports = 1 + roll(c, 4);
	struct api_scheduler *s = test_scheduler(subports, 1);
	s->rate = any_rate(c, 20 * MBIT, 2000 * MBIT);
	s->frame_overhead = roll(c, 30);
	for (int k = 0; k < API_TRAFFIC_CLASSES; k++)
		s->queue_size[k] = 1u << roll(c, 7);
	for (int k = 0; k < 2 * API_TRAFFIC_CLASSES; k++)
		s->precedence_size[k / 4][k % 4] = roll(c, 2) ? 0 : 1 + roll(c, s->queue_size[k % 4]);
	for (uint32_t i = 0; i < subports; i++) {
		struct api_subport *p = &s->subport[i];
		p->pipes = 1u << roll(c, 5);
		p->rate = any_rate(c, 5 * MBIT, 1000 * MBIT);
		p->burst = roll(c, 100000);
		for (int k = 0; k < API_TRAFFIC_CLASSES; k++)
			p->class_rate[k] = roll(c, 2) ? 0 : any_rate(c, MBIT, 500 * MBIT);
	}
	for (uint32_t i = 0; i < s->profiles; i++) {
		struct api_pipe_profile *p = &s->profile[i];
		p->rate = any_rate(c, MBIT / 4, 500 * MBIT);
		p->burst = roll(c, 30000);
		for (int k = 0; k < API_TRAFFIC_CLASSES; k++) {
			p->class_rate[k] = roll(c, 2) ? 0 : any_rate(c, MBIT / 8, 200 * MBIT);
			p->weight[k] = 1 + roll(c, 20);
		}
	}
	return s;
}

#define CHECK(call, step)                                                                                              \
	do {                                                                                                           \
		const char *wrong = (call);                                                                            \
		if (wrong)                                                                                             \
			fail_msg("round %u step %u: %s", round, (unsigned)(step), wrong);                              \
	} while (0)

static uint32_t random_burst(
	struct chance *c, const struct api_scheduler *s, struct rte_mbuf **in, uint32_t *place, uint8_t *precedence)
{
	uint32_t n = roll(c, 3) ? roll(c, 8) : roll(c, 33);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t subport = roll(c, s->subports);
		place[i] = hqos_place(subport, roll(c, s->subport[subport].pipes), roll(c, 4), roll(c, 4));
		if (i && !roll(c, 3))
			place[i] = place[i - 1];
		precedence[i] = (uint8_t)roll(c, 3);
		in[i] = test_packet(place[i], 40 + roll(c, roll(c, 4) ? 1460 : 9000));
		hqos_set_place_of(in[i], place[i], precedence[i]);
	}
	return n;
}

static void differential_round(struct chance *c, uint32_t round, uint32_t steps, uint64_t *in_all, uint64_t *silences)
{
	struct api_scheduler *s = any_scheduler(c);
	struct hqos *h = test_make(s);
	struct model *model = model_create(s, TEST_START);
	uint64_t now = TEST_START, out_all = 0, refused_all = 0, offered = 0;
	uint32_t pause = 1u << (8 + roll(c, 20));
	for (uint32_t step = 0; step < steps; step++) {
		struct rte_mbuf *in[64], *rejected[64], *out[80];
		uint8_t precedence[64];
		uint32_t place[64], n = random_burst(c, s, in, place, precedence);
		now += roll(c, 100) ? roll(c, pause) : roll(c, 30000000);
		if (!roll(c, 500)) {
			uint32_t subport = roll(c, s->subports), pipe = roll(c, s->subport[subport].pipes),
				 profile = roll(c, 4);
			// At the time of the engine's last call, as it sees it.
			CHECK(hqos_dequeue(h, out, 0, now) ? "sent into no room" : NULL, step);
			assert_int_equal(hqos_pipe_config(h, subport, pipe, profile), 0);
			model_profile(model, subport, pipe, profile, now);
		}
		model_burst(model);
		uint32_t refused = hqos_enqueue(h, in, n, now, rejected);
		for (uint32_t i = 0, r = 0; i < n; i++) {
			bool accepted = r == refused || in[i] != rejected[r];
			CHECK(model_enqueued(model, in[i], place[i], precedence[i], now, accepted), step);
			if (!accepted)
				rte_pktmbuf_free(rejected[r++]);
		}
		offered += n;
		refused_all += refused;
		// Now and then the worker has room only for as many as may have passed straight through, or few more.
		bool tight = !roll(c, 5);
		uint32_t room = tight ? n + roll(c, 4) : 1 + roll(c, 64);
		for (uint32_t nothing = 0; nothing < 3;) {
			uint32_t left = hqos_dequeue(h, out, room, now);
			nothing = tight ? 3 : left ? 0 : nothing + 1;
			for (uint32_t i = 0; i < left; i++)
				CHECK(model_left(model, out[i], now), step);
			rte_pktmbuf_free_bulk(out, left);
			out_all += left;
		}
		CHECK(tight ? NULL : model_silent(model, now), step);
		*silences += hqos_queued(h) > 0;
		CHECK(hqos_queued(h) != model_held(model) ? "the number held is wrong" : NULL, step);
		CHECK(offered != out_all + refused_all + hqos_queued(h) ? "packets do not add up" : NULL, step);
	}
	*in_all += offered;
	assert_int_equal(hqos_free(h), offered - out_all - refused_all);
	model_free(model);
	test_free(s);
	assert_int_equal(rte_mempool_in_use_count(test_pool), 0);
}

void test_differential(void **state)
{
	const char *seed = getenv("HQOS_SEED"), *rounds = getenv("HQOS_ROUNDS");
	struct chance c = {.x = seed ? strtoull(seed, NULL, 0) : 20240607};
	uint64_t packets = 0, silences = 0;
	for (uint32_t round = 0; round < (rounds ? strtoul(rounds, NULL, 0) : 200); round++)
		differential_round(&c, round, 5000, &packets, &silences);
	print_message("%llu packets judged, %llu silences with packets held\n", (unsigned long long)packets,
		(unsigned long long)silences);
}
