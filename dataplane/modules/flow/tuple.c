// SPDX-License-Identifier: Apache-2.0
#include "flow/tuple.h"
#include <errno.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <string.h>

struct tuples flow_tuples[API_MAX_WORKERS];
uint64_t flow_tuple_secret[8];

// The places of a key in turn: those of its second group are in use when the first has no empty line.
#define PLACES (2 * TUPLE_WAYS)

static struct tuple *find_in(const struct tuples *t, uint32_t hash, const struct tuple *key, uint32_t way, uint32_t end)
{
	for (; way < end; way++)
		if (tuple_same(tuple_place(t, hash, way), key))
			return tuple_place(t, hash, way);
	return NULL;
}

struct tuple *tuple_find_beside(const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	return find_in(t, hash, key, 1, TUPLE_WAYS);
}

int tuple_group_is_full(const struct tuples *t, uint32_t hash)
{
	for (uint32_t way = 0; way < TUPLE_WAYS; way++)
		if (tuple_place(t, hash, way)->number == 0)
			return 0;
	return 1;
}

struct tuple *tuple_find_far(const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	return find_in(t, hash, key, TUPLE_WAYS, PLACES);
}

struct tuple *tuple_find(const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	struct tuple *found = find_in(t, hash, key, 0, TUPLE_WAYS);

	return found == NULL && tuple_group_is_full(t, hash) ? tuple_find_far(t, hash, key) : found;
}

void tuples_clear(struct tuples *t)
{
	memset(t->line, 0, (size_t)tuples_lines(t) * sizeof(*t->line));
	t->entries = 0;
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

static struct tuple *empty_place(const struct tuples *t, uint32_t hash)
{
	for (uint32_t way = 0; way < PLACES; way++)
		if (tuple_place(t, hash, way)->number == 0)
			return tuple_place(t, hash, way);
	return NULL;
}

// Moves one of the entries in the key's places to another place of its own. Returns what is free then, or NULL.
static struct tuple *make_room(const struct tuples *t, uint32_t hash)
{
	for (uint32_t way = 0; way < PLACES; way++) {
		struct tuple *e = tuple_place(t, hash, way), *other = empty_place(t, tuple_hash(e));

		if (other != NULL) {
			*other = *e;
			e->number = 0;
			return e;
		}
	}
	return NULL;
}

// Where the key is, or what is free, or by the key's hash one of others'.
static struct tuple *place_for(const struct worker *w, const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	struct tuple *found = tuple_find(t, hash, key);

	found = found != NULL ? found : empty_place(t, hash);
	for (uint32_t way = 0; found == NULL && way < PLACES; way++)
		if (!leads_to_rule(w, tuple_place(t, hash, way)))
			found = tuple_place(t, hash, way);
	found = found != NULL ? found : make_room(t, hash);
	return found != NULL ? found
			     : tuple_place(t, hash, hash / TUPLE_WAYS % TUPLE_WAYS); // the high bits are the group's
}

void tuples_put(struct worker *w, struct tuples *t, uint32_t hash, const struct tuple *entry)
{
	struct tuple *e = place_for(w, t, hash, entry);

	t->entries += e->number == 0;
	w->flow_inserts++;
	w->flow_evictions += leads_to_rule(w, e) && !tuple_same(e, entry);
	w->flows = t->entries;
	*e = *entry;
}

// A line at a time, one after the other: what a round costs is the memory that it reads.
void tuples_age(struct worker *w, struct tuples *t, uint32_t lines, uint32_t lifetime)
{
	for (uint32_t i = 0; i < lines; i++) {
		struct tuple *e = &t->line[t->next];

		t->next = t->next + 1 < tuples_lines(t) ? t->next + 1 : 0;
		if (e->number == 0)
			continue;
		e->age += e->age < 15;
		if (e->idle == 0 && (lifetime == 0 || e->age < lifetime)) {
			e->idle = 1;
			continue;
		}
		memset(e, 0, sizeof(*e));
		t->entries--;
	}
	w->flows = t->entries;
}

// Seven lines for four flows: most keys have their own place, and a full table takes 112 bytes a flow.
int tuples_create(uint32_t workers, uint32_t flows)
{
	uint32_t groups = (uint32_t)(((uint64_t)flows * 7 / 4 + TUPLE_WAYS - 1) / TUPLE_WAYS);

	for (uint32_t i = 0; i < RTE_DIM(flow_tuple_secret); i++)
		flow_tuple_secret[i] = rte_rand();
	for (uint32_t i = 0; i < workers; i++) {
		struct tuples *t = &flow_tuples[i];

		t->groups = RTE_MAX(groups, 1u);
		t->line = rte_zmalloc(
			"flow-tuples", (size_t)tuples_lines(t) * sizeof(*t->line), TUPLE_WAYS * sizeof(*t->line));
		t->met = rte_zmalloc("flow-tuples", TUPLE_MARKS, RTE_CACHE_LINE_SIZE);
		if (t->line == NULL || t->met == NULL)
			return ENOMEM;
	}
	return 0;
}
