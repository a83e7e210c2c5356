// SPDX-License-Identifier: Apache-2.0
// Shared meters: a pool, and a hash from key to meter. Two share a line, of one worker while possible.
#include "core/control.h"
#include "core/lazy.h"
#include "core/object.h"
#include "meter/meter.h"
#include "meter/policer.h"
#include "rule/pool.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct meter_state *meter_states;

struct holder {
	struct meter_key key; // of a spare one, the worker alone
	uint32_t references;
	uint32_t next, prev; // in its bucket, which has no prev; or among its worker's spare ones
};

// Written and read by the control thread.
static struct {
	struct holder *holder; // by index
	uint32_t *bucket;
	uint32_t buckets; // power of two
	struct index_pool pairs; // of which both are free
	uint32_t spare[API_MAX_WORKERS]; // free ones whose neighbour is taken
	uint32_t used, most;
} meters;

static uint32_t *bucket_of(const struct meter_key *k)
{
	uint64_t h = ((uint64_t)k->owner << 32 | k->qer) ^ (uint64_t)k->shared << 61 ^ (uint64_t)k->worker << 24 ^
		     (uint64_t)k->uplink << 62;

	h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u;
	return &meters.bucket[(h >> 32) & (meters.buckets - 1)];
}

static int same(const struct meter_key *a, const struct meter_key *b)
{
	return a->owner == b->owner && a->qer == b->qer && a->shared == b->shared && a->worker == b->worker &&
	       a->uplink == b->uplink;
}

static void spare_add(uint32_t i)
{
	uint32_t *first = &meters.spare[meters.holder[i].key.worker];

	meters.holder[i].prev = METER_NONE;
	meters.holder[i].next = *first;
	if (*first != METER_NONE)
		meters.holder[*first].prev = i;
	*first = i;
}

static void spare_remove(uint32_t i)
{
	const struct holder *h = &meters.holder[i];

	if (h->prev != METER_NONE)
		meters.holder[h->prev].next = h->next;
	else
		meters.spare[h->key.worker] = h->next;
	if (h->next != METER_NONE)
		meters.holder[h->next].prev = h->prev;
}

static uint32_t take(uint8_t worker)
{
	uint32_t i = meters.spare[worker], pair;

	if (meters.used == meters.most)
		return METER_NONE;
	if (i == METER_NONE && (pair = index_pool_take(&meters.pairs)) != INDEX_NONE) {
		meters.holder[2 * pair + 1].key.worker = worker;
		spare_add(2 * pair + 1);
		return 2 * pair;
	}
	for (uint32_t w = 0; i == METER_NONE && w < API_MAX_WORKERS; w++)
		i = meters.spare[w];
	if (i != METER_NONE)
		spare_remove(i);
	return i;
}

static void give(uint32_t i)
{
	meters.used--;
	if (meters.holder[i ^ 1].references != 0) {
		spare_add(i);
		return;
	}
	spare_remove(i ^ 1);
	index_pool_give(&meters.pairs, i / 2);
}

uint32_t meter_acquire(const struct meter_key *key, uint64_t now)
{
	uint32_t *bucket = bucket_of(key), i = *bucket;

	while (i != METER_NONE && !same(&meters.holder[i].key, key))
		i = meters.holder[i].next;
	if (i == METER_NONE) {
		i = take(key->worker);
		if (i == METER_NONE)
			return METER_NONE;
		meters.used++;
		meters.holder[i] = (struct holder){.key = *key, .next = *bucket};
		*bucket = i;
		meter_states[i] = (struct meter_state){.policer = METER_NONE, .shared = key->shared};
		meter_fill(&meter_states[i].meter, now);
	}
	meters.holder[i].references++;
	return i;
}

void meter_release(uint32_t meter)
{
	if (meter == METER_NONE || --meters.holder[meter].references != 0)
		return;
	uint32_t *at = bucket_of(&meters.holder[meter].key);
	while (*at != meter)
		at = &meters.holder[*at].next;
	*at = meters.holder[meter].next;
	give(meter);
}

ENGINE_LIMIT(max_qers, 1, 1u << 25)

// Pages that are not touched cost nothing.
static int start(const struct api_engine *e)
{
	uint32_t n = e->max_qers ? e->max_qers : 2 * e->max_sessions; // a QER has two directions

	meters.most = n;
	n = RTE_ALIGN_CEIL(n, 2);
	meters.buckets = 64;
	while (meters.buckets < n)
		meters.buckets *= 2;
	meter_states = lazy_alloc((size_t)n * sizeof(struct meter_state));
	meters.holder = calloc(n, sizeof(*meters.holder));
	meters.bucket = malloc(meters.buckets * sizeof(*meters.bucket));
	if (meter_states == NULL || meters.holder == NULL || meters.bucket == NULL ||
		index_pool_create(&meters.pairs, n / 2) != 0)
		return object_error(ENOMEM, "no memory for %u meters", n);
	for (uint32_t i = 0; i < meters.buckets; i++)
		meters.bucket[i] = METER_NONE;
	for (uint32_t w = 0; w < API_MAX_WORKERS; w++)
		meters.spare[w] = METER_NONE;
	return 0;
}

RTE_INIT(meters_module)
{
	module_register(start);
}
