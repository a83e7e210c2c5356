// SPDX-License-Identifier: Apache-2.0
// Draws flows by Zipf's law: rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate
// variates from monotone discrete distributions", ACM TOMACS 6(3), 1996), beforehand, because a draw costs more than
// a packet.
#include "traffic/engine/order.h"
#include <math.h>
#include <stdlib.h>

#define DRAWS_MIN (1u << 20)
#define DRAWS_MAX (1u << 24)

// The integral of x^-s, and its inverse, both without the constant.
static double integral(double s, double x)
{
	return fabs(1 - s) < 1e-9 ? log(x) : (pow(x, 1 - s) - 1) / (1 - s);
}

static double inverse(double s, double y)
{
	return fabs(1 - s) < 1e-9 ? exp(y) : pow(fmax(1 + y * (1 - s), 1e-300), 1 / (1 - s));
}

static double uniform(uint64_t *state)
{
	return (order_random(state) + 0.5) / 4294967296.0;
}

// A rank from 1 to n.
static uint32_t draw(double s, uint32_t n, uint64_t *state)
{
	double low = integral(s, 1.5) - 1, high = integral(s, n + 0.5);

	for (;;) {
		double u = low + uniform(state) * (high - low);
		double x = inverse(s, u), k = floor(x + 0.5);

		if (k < 1)
			k = 1;
		if (k > n)
			k = n;
		if (u >= integral(s, k + 0.5) - pow(k, -s))
			return (uint32_t)k;
	}
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int order_init(struct order *o, enum flow_order kind, uint32_t flows, double exponent, uint64_t seed)
{
	*o = (struct order){.flows = flows, .random = seed * 0x9e3779b97f4a7c15ull, .kind = kind};
	if (kind != ORDER_ZIPF)
		return 0;
	o->draws = flows > DRAWS_MAX / 4 ? DRAWS_MAX : flows * 4 < DRAWS_MIN ? DRAWS_MIN : flows * 4;
	o->drawn = malloc(o->draws * sizeof(*o->drawn));
	if (o->drawn == NULL)
		return -1;
	// Scatters the frequent flows: rank -> rank * step mod flows is one to one when step has no common divisor.
	uint64_t step = 2654435761u % flows;

	while (step == 0 || divisor(step, flows) != 1)
		step++;
	for (uint32_t i = 0; i < o->draws; i++)
		o->drawn[i] = (uint32_t)((draw(exponent, flows, &o->random) - 1) * step % flows);
	return 0;
}

void order_free(struct order *o)
{
	free(o->drawn);
	o->drawn = NULL;
}
