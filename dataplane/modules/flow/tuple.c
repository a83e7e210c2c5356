// SPDX-License-Identifier: Apache-2.0
#include "flow/tuple.h"
#include <errno.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <string.h>

struct tuples flow_tuples[API_MAX_WORKERS];
uint64_t flow_tuple_secret[8];

const struct tuple *tuple_find_displaced(const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	for (uint32_t way = 1; way < TUPLE_WAYS; way++) {
		const struct tuple *e = tuple_place(t, hash, way);

		if (tuple_same(e, key))
			return e;
	}
	return NULL;
}

void tuples_clear(struct tuples *t)
{
	memset(t->line, 0, (size_t)(t->mask + 1) * sizeof(*t->line));
}

uint32_t tuples_number(struct tuples *t)
{
	if (unlikely(++t->number == 0)) {
		tuples_clear(t);
		t->number = 1;
	}
	t->is_used = 1;
	return t->number;
}

// Whatever its list: one of another list is written again, or overwritten by a key of this place.
static int leads_to_rule(const struct worker *w, const struct tuple *e)
{
	return tuple_state(w, e, e->permitted) != NULL;
}

// Where the key is, or what is free, or by the key's hash one of others'.
static struct tuple *place_for(const struct worker *w, const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	struct tuple *found = NULL;

	for (uint32_t way = 0; way < TUPLE_WAYS; way++) {
		struct tuple *e = tuple_place(t, hash, way);

		if (tuple_same(e, key))
			return e;
		if (e->number == 0 && found == NULL)
			found = e;
	}
	for (uint32_t way = 0; found == NULL && way < TUPLE_WAYS; way++)
		if (!leads_to_rule(w, tuple_place(t, hash, way)))
			found = tuple_place(t, hash, way);
	return found != NULL ? found : tuple_place(t, hash, hash >> 30);
}

void tuples_put(const struct worker *w, struct tuples *t, uint32_t hash, const struct tuple *entry)
{
	*place_for(w, t, hash, entry) = *entry;
}

// Twice as many lines as flows: nearly every key has its own place.
int tuples_create(uint32_t workers, uint32_t flows)
{
	uint32_t lines = rte_align32pow2(RTE_MAX(2 * flows, TUPLE_WAYS));

	for (uint32_t i = 0; i < RTE_DIM(flow_tuple_secret); i++)
		flow_tuple_secret[i] = rte_rand();
	for (uint32_t i = 0; i < workers; i++) {
		struct tuples *t = &flow_tuples[i];

		t->line = rte_zmalloc("flow-tuples", (size_t)lines * sizeof(*t->line), TUPLE_WAYS * sizeof(*t->line));
		t->met = rte_zmalloc("flow-tuples", TUPLE_MARKS, RTE_CACHE_LINE_SIZE);
		if (t->line == NULL || t->met == NULL)
			return ENOMEM;
		t->mask = lines - 1;
	}
	return 0;
}

static_assert(TUPLE_WAYS == 4, "hash >> 30 is one of them");
