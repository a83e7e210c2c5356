// SPDX-License-Identifier: Apache-2.0
#include "flow/tuple.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <string.h>

struct tuples flow_tuples[API_MAX_WORKERS];
uint64_t flow_tuple_secret[8];

// The lines of a key in turn: those of its second group are for overflow.
#define PLACES (2 * TUPLE_WAYS)

// ---- lines --------------------------------------------------------------------------------------------------------

// Its entries, at most two. Returns how many.
static uint32_t entries_of(struct tuple_line *l, struct tuple_entry *to[2])
{
	uint32_t n = 0;

	if (l->slot[0].number != 0)
		to[n++] = &l->slot[0];
	if (n == 1 && tuple_is_wide(&l->slot[0]))
		return n;
	if (l->slot[1].number != 0)
		to[n++] = &l->slot[1];
	return n;
}

static struct tuple_entry *room_in(struct tuple_line *l, int wide)
{
	struct tuple_entry *e[2];
	uint32_t n = entries_of(l, e);

	if (n == 0)
		return &l->slot[0];
	if (wide || n == 2 || tuple_is_wide(e[0]))
		return NULL;
	return e[0] == &l->slot[0] ? &l->slot[1] : &l->slot[0];
}

static void copy(struct tuple_entry *to, const struct tuple_entry *from)
{
	memcpy(to, from, tuple_is_wide(from) ? sizeof(struct tuple) : sizeof(*from));
}

static void clear(struct tuple_entry *e)
{
	memset(e, 0, tuple_is_wide(e) ? sizeof(struct tuple) : sizeof(*e));
}

// ---- look-up ------------------------------------------------------------------------------------------------------

static struct tuple_entry *find_in(
	const struct tuples *t, uint32_t hash, const struct tuple *key, uint32_t way, uint32_t end)
{
	struct tuple_entry *found = NULL;

	for (; way < end && found == NULL; way++)
		found = tuple_in_line(tuple_place(t, hash, way), key);
	return found;
}

struct tuple_entry *tuple_find_beside(const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	return find_in(t, hash, key, 1, TUPLE_WAYS);
}

int tuple_group_is_full(const struct tuples *t, uint32_t hash, int wide)
{
	for (uint32_t way = 0; way < TUPLE_WAYS; way++)
		if (room_in(tuple_place(t, hash, way), wide) != NULL)
			return 0;
	return 1;
}

struct tuple_entry *tuple_find_far(const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	return find_in(t, hash, key, TUPLE_WAYS, PLACES);
}

struct tuple_entry *tuple_find(const struct tuples *t, uint32_t hash, const struct tuple *key)
{
	struct tuple_entry *found = find_in(t, hash, key, 0, TUPLE_WAYS);

	return found == NULL && tuple_group_is_full(t, hash, tuple_is_wide(&key->first)) ? tuple_find_far(t, hash, key)
											 : found;
}

// ---- changes ------------------------------------------------------------------------------------------------------

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

// For any list: an entry of another list is written again, or overwritten by a key of this place.
static int leads_to_rule(const struct worker *w, const struct tuple_entry *e)
{
	return tuple_state(w, e, e->permitted) != NULL;
}

// But in line `but`; NULL: anywhere.
static struct tuple_entry *empty_place(const struct tuples *t, uint32_t hash, int wide, const struct tuple_line *but)
{
	struct tuple_entry *room = NULL;

	for (uint32_t way = 0; way < PLACES && room == NULL; way++)
		if (tuple_place(t, hash, way) != but)
			room = room_in(tuple_place(t, hash, way), wide);
	return room;
}

// Clears a line for an entry: removes one of two narrow ones, by the hash, or all.
static struct tuple_entry *clear_line(struct worker *w, struct tuples *t, struct tuple_line *l, uint32_t hash, int wide)
{
	struct tuple_entry *e[2] = {&l->slot[0]};
	uint32_t n = entries_of(l, e);

	if (n == 2 && !wide)
		e[0] = e[hash >> 31], n = 1;
	for (uint32_t i = 0; i < n; i++) {
		w->flow_evictions += (uint32_t)leads_to_rule(w, e[i]);
		t->entries--;
		clear(e[i]);
	}
	return wide ? &l->slot[0] : e[0];
}

// The place of an entry without a valid rule, or NULL; for wide keys, a line without others.
static struct tuple_entry *invalid_place(struct worker *w, struct tuples *t, uint32_t hash, int wide)
{
	for (uint32_t way = 0; way < PLACES; way++) {
		struct tuple_line *l = tuple_place(t, hash, way);
		struct tuple_entry *e[2];
		uint32_t n = entries_of(l, e), valid = 0;

		for (uint32_t i = 0; i < n; i++)
			valid |= (uint32_t)leads_to_rule(w, e[i]) << i;
		if (valid == 0)
			return clear_line(w, t, l, 0, wide);
		if (!wide && n == 2 && valid != 3)
			return clear_line(w, t, l, valid == 1 ? 1u << 31 : 0, 0);
	}
	return NULL;
}

// Moves an entry in the key's places to another of its own places. Returns the freed place, or NULL.
static struct tuple_entry *make_room(const struct tuples *t, uint32_t hash, int wide)
{
	for (uint32_t way = 0; way < PLACES; way++) {
		struct tuple_line *l = tuple_place(t, hash, way);
		struct tuple_entry *e[2], *other;
		uint32_t n = entries_of(l, e);

		for (uint32_t i = 0; i < n && !(wide && n == 2); i++) {
			struct tuple key = {.first = *e[i]};

			copy(&key.first, e[i]);
			other = empty_place(t, tuple_hash(&key), tuple_is_wide(e[i]), l);
			if (other == NULL)
				continue;
			copy(other, e[i]);
			clear(e[i]);
			return wide ? &l->slot[0] : e[i];
		}
	}
	return NULL;
}

// The key's place, or a free one, or by the key's hash another key's, which is removed.
static struct tuple_entry *place_for(struct worker *w, struct tuples *t, uint32_t hash, const struct tuple *key)
{
	int wide = tuple_is_wide(&key->first);
	struct tuple_entry *found = tuple_find(t, hash, key);

	found = found != NULL ? found : empty_place(t, hash, wide, NULL);
	found = found != NULL ? found : invalid_place(w, t, hash, wide);
	found = found != NULL ? found : make_room(t, hash, wide);
	if (found != NULL)
		return found;
	// The high bits are the group's.
	return clear_line(w, t, tuple_place(t, hash, hash / TUPLE_WAYS % TUPLE_WAYS), hash << 27, wide);
}

void tuples_put(struct worker *w, struct tuples *t, uint32_t hash, const struct tuple *entry)
{
	struct tuple_entry *e = place_for(w, t, hash, entry);

	t->entries += e->number == 0;
	w->flow_inserts++;
	w->flows = t->entries;
	copy(e, &entry->first);
}

// Line after line: a round costs the memory that it reads.
void tuples_age(struct worker *w, struct tuples *t, uint32_t lines, uint32_t lifetime)
{
	for (uint32_t i = 0; i < lines; i++) {
		struct tuple_entry *e[2];
		uint32_t n = entries_of(&t->line[t->next], e);

		t->next = t->next + 1 < tuples_lines(t) ? t->next + 1 : 0;
		for (uint32_t k = 0; k < n; k++) {
			e[k]->age += e[k]->age < 15;
			if (e[k]->idle == 0 && (lifetime == 0 || e[k]->age < lifetime)) {
				e[k]->idle = 1;
				continue;
			}
			clear(e[k]);
			t->entries--;
		}
	}
	w->flows = t->entries;
}

// Seven lines for six flows, 75 bytes each: 11 of 12 narrow entries are in their own place, and wide ones have room.
int tuples_create(uint32_t workers, uint32_t flows)
{
	uint32_t groups = (uint32_t)(((uint64_t)flows * 7 / 6 + TUPLE_WAYS - 1) / TUPLE_WAYS);

	for (uint32_t i = 0; i < RTE_DIM(flow_tuple_secret); i++)
		flow_tuple_secret[i] = rte_rand();
	for (uint32_t i = 0; i < workers; i++) {
		struct tuples *t = &flow_tuples[i];

		t->groups = RTE_MAX(groups, 1u);
		t->is_large = tuples_lines(t) > TUPLES_LARGE;
		t->line = rte_zmalloc(
			"flow-tuples", (size_t)tuples_lines(t) * sizeof(*t->line), TUPLE_WAYS * sizeof(*t->line));
		t->met = rte_zmalloc("flow-tuples", TUPLE_MARKS, CACHE_LINE);
		if (t->line == NULL || t->met == NULL)
			return ENOMEM;
	}
	return 0;
}
