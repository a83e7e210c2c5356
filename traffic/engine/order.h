// SPDX-License-Identifier: Apache-2.0
// Order of a stream's flows. Seeded: the same profile gives the same order. One thread.
#ifndef TRAFFIC_ORDER_H
#define TRAFFIC_ORDER_H

#include <stdint.h>

enum flow_order { ORDER_TURN, ORDER_RANDOM, ORDER_ZIPF };

struct order {
	uint32_t flows, turn;
	uint64_t random;
	enum flow_order kind;
	uint32_t *drawn; // ORDER_ZIPF: a long sequence drawn beforehand, walked again and again
	uint32_t draws;
};

// Returns 0, or -1 without memory.
int order_init(struct order *o, enum flow_order kind, uint32_t flows, double exponent, uint64_t seed);
void order_free(struct order *o);

// A counter and a mix (wyrand): unlike in a shift register, a number does not depend on its predecessor.
static inline uint32_t order_random(uint64_t *state)
{
	*state += 0xa0761d6478bd642full;
	unsigned __int128 product = (unsigned __int128)*state * (*state ^ 0xe7037ed1a0b428dbull);

	return (uint32_t)((uint64_t)product ^ (uint64_t)(product >> 64));
}

static inline uint32_t order_next(struct order *o)
{
	uint32_t flow;

	switch (o->kind) {
	case ORDER_RANDOM:
		return (uint32_t)((uint64_t)order_random(&o->random) * o->flows >> 32);
	case ORDER_ZIPF:
		flow = o->drawn[o->turn];
		o->turn = o->turn + 1 < o->draws ? o->turn + 1 : 0;
		return flow;
	default:
		flow = o->turn;
		o->turn = flow + 1 < o->flows ? flow + 1 : 0;
		return flow;
	}
}

#endif
