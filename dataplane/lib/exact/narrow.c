// SPDX-License-Identifier: Apache-2.0
// Table of 64-bit keys: the writer's half, and look-ups beyond the first block.
#include "exact/narrow.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <sys/random.h>

#define MIN_BLOCKS 16
#define MAX_CAPACITY (1u << 30)
// Keys without a place in either block, and none to be made: at three quarters' load one in 6,000, at half none.
#define SPILL 1024
#define SPILL_SHARE 2048

struct narrow *narrow_create(const char *name, uint32_t capacity, int socket)
{
	if (capacity > MAX_CAPACITY)
		return NULL;
	uint32_t blocks = RTE_MAX(rte_align32pow2(capacity / (NARROW_BLOCK - 1)), (uint32_t)MIN_BLOCKS);
	struct narrow *t = rte_zmalloc_socket(name, sizeof(*t), CACHE_LINE, socket);
	if (t == NULL)
		return NULL;
	t->block = rte_zmalloc_socket(name, blocks * sizeof(struct narrow_block), CACHE_LINE, socket);
	t->spill = exact_create(name, RTE_MAX(capacity / SPILL_SHARE, (uint32_t)SPILL), socket);
	if (t->block == NULL || t->spill == NULL) {
		narrow_free(t);
		return NULL;
	}
	t->mask = blocks - 1;
	t->capacity = capacity;
	if (getrandom(t->seed, sizeof(t->seed), GRND_NONBLOCK) != sizeof(t->seed))
		for (unsigned int i = 0; i < RTE_DIM(t->seed); i++)
			t->seed[i] = rte_rand();
	t->seed[1] |= 1;
	return t;
}

void narrow_free(struct narrow *t)
{
	if (t == NULL)
		return;
	exact_free(t->spill);
	rte_free(t->block);
	rte_free(t);
}

uint32_t narrow_count(const struct narrow *t)
{
	return __atomic_load_n(&t->count, __ATOMIC_RELAXED);
}

uint32_t narrow_capacity(const struct narrow *t)
{
	return t->capacity;
}

static void spill_key(struct exact_key *k, uint64_t key)
{
	exact_key_set(k, key, 0, 0, 0, 0, 0);
}

int narrow_lookup_further(const struct narrow *t, uint64_t hash, uint64_t key, uint64_t *value)
{
	struct exact_key k;

	__atomic_thread_fence(__ATOMIC_ACQUIRE); // a key that left the first block is in the other
	if (narrow_find(narrow_other(t, hash), key, value))
		return 1;
	if (likely(__atomic_load_n(&t->spilled, __ATOMIC_ACQUIRE) == 0))
		return 0;
	spill_key(&k, key);
	return exact_lookup(t->spill, exact_hash(t->spill, &k), &k, value) && *value != NARROW_RESERVED;
}

// The entry of a key (0: a free one) in a block, or NULL.
static struct narrow_entry *entry_of(struct narrow_block *b, uint64_t key)
{
	for (unsigned i = 0; i < NARROW_BLOCK; i++)
		if (b->entry[i].key == key)
			return &b->entry[i];
	return NULL;
}

// Into an entry that was another key's until now, perhaps: its readers see that key go before they see this value.
static void fill(struct narrow_entry *e, uint64_t key, uint64_t value)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&e->value, value, __ATOMIC_RELAXED);
	__atomic_store_n(&e->key, key, __ATOMIC_RELEASE);
}

// Moves the key of a full block, which is its first, to its other block, and returns the place. Readers look into the
// first block before the other, so they find the key in one of them.
static struct narrow_entry *make_room(struct narrow *t, struct narrow_block *b)
{
	for (unsigned i = 0; i < NARROW_BLOCK; i++) {
		struct narrow_entry *from = &b->entry[i];
		uint64_t hash = narrow_hash(t, from->key);
		struct narrow_entry *to = narrow_block(t, hash) == b ? entry_of(narrow_other(t, hash), 0) : NULL;

		if (to == NULL)
			continue;
		fill(to, from->key, from->value);
		__atomic_store_n(&from->key, 0, __ATOMIC_RELEASE);
		return from;
	}
	return NULL;
}

static void count(struct narrow *t, int difference)
{
	__atomic_store_n(&t->count, t->count + (uint32_t)difference, __ATOMIC_RELAXED);
}

static int add_spilled(struct narrow *t, uint64_t key, uint64_t value)
{
	struct exact_key k;
	uint32_t before = exact_count(t->spill);

	spill_key(&k, key);
	if (exact_add(t->spill, exact_hash(t->spill, &k), &k, value) != 0)
		return ENOSPC;
	count(t, (int)(exact_count(t->spill) - before));
	__atomic_store_n(&t->spilled, exact_count(t->spill), __ATOMIC_RELEASE);
	return 0;
}

static struct narrow_entry *held_entry(const struct narrow *t, uint64_t hash, uint64_t key)
{
	struct narrow_entry *e = entry_of(narrow_block(t, hash), key);

	return e != NULL ? e : entry_of(narrow_other(t, hash), key);
}

static int is_spilled(const struct narrow *t, uint64_t key)
{
	struct exact_key k;
	uint64_t value;

	if (likely(t->spilled == 0))
		return 0;
	spill_key(&k, key);
	return exact_lookup(t->spill, exact_hash(t->spill, &k), &k, &value);
}

int narrow_reserve(struct narrow *t, uint64_t key)
{
	if (held_entry(t, narrow_hash(t, key), key) != NULL || is_spilled(t, key))
		return 0;
	return narrow_add(t, key, NARROW_RESERVED) == 0 ? 1 : -1;
}

int narrow_add(struct narrow *t, uint64_t key, uint64_t value)
{
	uint64_t hash = narrow_hash(t, key);
	struct narrow_block *first = narrow_block(t, hash), *other = narrow_other(t, hash);
	struct narrow_entry *e = held_entry(t, hash, key);

	if (e != NULL) {
		__atomic_store_n(&e->value, value, __ATOMIC_RELEASE);
		return 0;
	}
	if (is_spilled(t, key))
		return add_spilled(t, key, value);
	if (t->count >= t->capacity)
		return ENOSPC;
	e = entry_of(first, 0);
	if (e == NULL)
		e = entry_of(other, 0);
	if (e == NULL)
		e = make_room(t, first);
	if (e == NULL)
		e = make_room(t, other);
	if (e == NULL)
		return add_spilled(t, key, value);
	fill(e, key, value);
	count(t, 1);
	return 0;
}

int narrow_delete(struct narrow *t, uint64_t key)
{
	uint64_t hash = narrow_hash(t, key);
	struct narrow_entry *e = held_entry(t, hash, key);
	struct exact_key k;

	if (e != NULL) {
		__atomic_store_n(&e->key, 0, __ATOMIC_RELEASE);
		count(t, -1);
		return 1;
	}
	if (likely(t->spilled == 0))
		return 0;
	spill_key(&k, key);
	if (!exact_delete(t->spill, exact_hash(t->spill, &k), &k))
		return 0;
	__atomic_store_n(&t->spilled, exact_count(t->spill), __ATOMIC_RELEASE);
	count(t, -1);
	return 1;
}
