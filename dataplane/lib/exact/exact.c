// SPDX-License-Identifier: Apache-2.0
// Exact-match table: the writer's half, and look-ups beyond the home slot. See exact.h for the layout.
//
// Why concurrent look-ups are safe: an entry's key changes only between two changes of its sequence number, and a value
// is replaced by one 64-bit store. A reader that sees the sequence change, or the entry unused, treats it as absent.
// This is true at some moment of its look-up, because entries never move. So readers neither wait nor retry.
#include "exact/exact.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <sys/random.h>

#define MIN_SLOTS 64
#define MAX_CAPACITY (1u << 30)

struct exact *exact_create(const char *name, uint32_t capacity, int socket)
{
	if (capacity > MAX_CAPACITY)
		return NULL;
	uint32_t slots = RTE_MAX(rte_align32pow2(capacity * 2), (uint32_t)MIN_SLOTS);
	struct exact *t = rte_zmalloc_socket(name, sizeof(*t), CACHE_LINE, socket);
	if (t == NULL)
		return NULL;
	// Aligned to a block, so that the eight first probes never leave a page.
	t->entries = rte_zmalloc_socket(
		name, slots * sizeof(struct exact_entry), EXACT_BLOCK * sizeof(struct exact_entry), socket);
	if (t->entries == NULL) {
		rte_free(t);
		return NULL;
	}
	t->mask = slots - 1;
	t->capacity = capacity;
	if (getrandom(t->seed, sizeof(t->seed), GRND_NONBLOCK) != sizeof(t->seed))
		for (unsigned int i = 0; i < RTE_DIM(t->seed); i++)
			t->seed[i] = rte_rand();
	return t;
}

void exact_free(struct exact *t)
{
	if (t == NULL)
		return;
	rte_free(t->entries);
	rte_free(t);
}

uint32_t exact_count(const struct exact *t)
{
	return __atomic_load_n(&t->count, __ATOMIC_RELAXED);
}

uint32_t exact_capacity(const struct exact *t)
{
	return t->capacity;
}

int exact_lookup_displaced(const struct exact *t, uint32_t home, const struct exact_key *k, uint64_t *value)
{
	uint32_t probes = __atomic_load_n(&t->entries[home].probes, __ATOMIC_ACQUIRE) & ~1u;
	for (; probes != 0; probes &= probes - 1) {
		uint32_t slot = exact_probe(t, home, (uint32_t)__builtin_ctz(probes));
		if (exact_match(&t->entries[slot], k, value))
			return 1;
	}
	return 0;
}

static int is_used(const struct exact_entry *e)
{
	return (e->sequence & EXACT_USED) != 0;
}

// The probe that holds the key, or -1.
static int find(const struct exact *t, uint32_t home, const struct exact_key *k)
{
	for (uint32_t probes = t->entries[home].probes; probes != 0; probes &= probes - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(probes);
		if (exact_same(&t->entries[exact_probe(t, home, i)], k))
			return (int)i;
	}
	return -1;
}

// Puts a key that the table does not hold into probe i, which is free.
static void fill(struct exact *t, uint32_t home, uint32_t i, const struct exact_key *k, uint64_t value)
{
	struct exact_entry *e = &t->entries[exact_probe(t, home, i)];
	struct exact_entry *h = &t->entries[home];
	uint32_t sequence = e->sequence;

	__atomic_store_n(&e->sequence, sequence | EXACT_WRITING, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); // no part of the key is seen before the mark
	memcpy(&e->key, k, sizeof(*k));
	__atomic_store_n(&e->value, value, __ATOMIC_RELAXED);
	__atomic_store_n(&e->sequence, (sequence + EXACT_CHANGE) | EXACT_USED, __ATOMIC_RELEASE);
	__atomic_store_n(&h->probes, h->probes | 1u << i, __ATOMIC_RELEASE);
	__atomic_store_n(&t->count, t->count + 1, __ATOMIC_RELAXED);
}

static void clear(struct exact *t, uint32_t home, uint32_t i)
{
	struct exact_entry *e = &t->entries[exact_probe(t, home, i)];
	struct exact_entry *h = &t->entries[home];

	__atomic_store_n(&h->probes, h->probes & ~(1u << i), __ATOMIC_RELEASE);
	__atomic_store_n(&e->sequence, (e->sequence + EXACT_CHANGE) & ~EXACT_USED, __ATOMIC_RELEASE);
	__atomic_store_n(&t->count, t->count - 1, __ATOMIC_RELAXED);
}

// The first free probe of a home, or -1.
static int find_free(const struct exact *t, uint32_t home)
{
	for (uint32_t i = 0; i < EXACT_PROBES; i++)
		if (!is_used(&t->entries[exact_probe(t, home, i)]))
			return (int)i;
	return -1;
}

int exact_add(struct exact *t, uint32_t hash, const struct exact_key *k, uint64_t value)
{
	uint32_t home = hash & t->mask;
	int i = find(t, home, k);
	if (i >= 0) {
		__atomic_store_n(&t->entries[exact_probe(t, home, (uint32_t)i)].value, value, __ATOMIC_RELEASE);
		return 0;
	}
	if (t->count >= t->capacity || (i = find_free(t, home)) < 0)
		return ENOSPC;
	fill(t, home, (uint32_t)i, k, value);
	return 0;
}

int exact_delete(struct exact *t, uint32_t hash, const struct exact_key *k)
{
	uint32_t home = hash & t->mask;
	int i = find(t, home, k);
	if (i < 0)
		return 0;
	clear(t, home, (uint32_t)i);
	return 1;
}
