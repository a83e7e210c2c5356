// SPDX-License-Identifier: Apache-2.0
// Exact-match table for keys of 64 bits, four entries per cache line: a million keys take 32 MB (struct exact: 128 MB),
// and a look-up is one cold line. Used for F-TEIDs and UE addresses.
//
// One writer, many readers, as struct exact. A key is in one of two blocks of four, the first unless it is full. When
// both are full, one of their keys moves from its first block to its other. A key without a place goes to a small
// struct exact.
//
// A reader during a change misses or finds, but never mixes entries. The writer clears the key, then stores the value,
// then the key, each visible before the next; the reader checks the key again after the value. Before a deleted key is
// added again, a grace period must pass (a transaction has one). Else a reader in between could see a third key's
// value.
#ifndef EXACT_NARROW_H
#define EXACT_NARROW_H

#include "exact/exact.h"
#include "wire/cache_line.h"

#define NARROW_BLOCK 4
#define NARROW_RESERVED UINT64_MAX // value of a key that has its place and is not found yet

struct narrow_entry {
	uint64_t key; // 0: free
	uint64_t value;
};

struct narrow_block {
	struct narrow_entry entry[NARROW_BLOCK];
} cache_aligned;
_Static_assert(sizeof(struct narrow_block) == CACHE_LINE, "a block is one cache line");

struct narrow {
	struct narrow_block *block;
	uint64_t seed[2]; // secret: collisions cannot be constructed without it
	uint32_t mask; // blocks - 1
	uint32_t capacity;
	struct exact *spill;
	uint32_t count cache_aligned; // spilled ones included
	uint32_t spilled;
} cache_aligned;

// Room for `capacity` keys at three quarters' load or less. NULL when memory is short. socket: NUMA node.
struct narrow *narrow_create(const char *name, uint32_t capacity, int socket);
void narrow_free(struct narrow *t);

// Both blocks of a key, 32 bits each. Two folded products: after one, keys at a fixed distance (TEIDs, prefixes) spread
// unevenly under one secret in three hundred.
static inline uint64_t narrow_hash(const struct narrow *t, uint64_t key)
{
	unsigned __int128 product = (unsigned __int128)(key ^ t->seed[0]) * t->seed[1];
	uint64_t x = (uint64_t)product ^ (uint64_t)(product >> 64);

	product = (unsigned __int128)x * 0x9e3779b97f4a7c15ull;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline struct narrow_block *narrow_block(const struct narrow *t, uint64_t hash)
{
	return &t->block[hash & t->mask];
}

static inline struct narrow_block *narrow_other(const struct narrow *t, uint64_t hash)
{
	return &t->block[hash >> 32 & t->mask];
}

static inline void narrow_prefetch(const struct narrow *t, uint64_t hash)
{
	rte_prefetch0(narrow_block(t, hash));
}

// Bits of the entries with this key: at most one. Branchless: which of the four matches is unpredictable.
static inline uint32_t narrow_match(const struct narrow_block *b, uint64_t key)
{
#ifdef __AVX512F__
	const __mmask8 keys = 0x55; // the even words
	uint32_t words = _mm512_mask_cmpeq_epi64_mask(keys, _mm512_load_si512(b), _mm512_set1_epi64((long long)key));

	return words;
#else
	uint32_t words = 0;

	for (unsigned i = 0; i < NARROW_BLOCK; i++)
		words |= (uint32_t)(__atomic_load_n(&b->entry[i].key, __ATOMIC_RELAXED) == key) << 2 * i;
	return words;
#endif
}

static inline int narrow_find(const struct narrow_block *b, uint64_t key, uint64_t *value)
{
	uint32_t words = narrow_match(b, key);

	if (unlikely(words == 0))
		return 0;
	const struct narrow_entry *e = &b->entry[__builtin_ctz(words) / 2];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	uint64_t v = __atomic_load_n(&e->value, __ATOMIC_ACQUIRE);
	if (unlikely(__atomic_load_n(&e->key, __ATOMIC_RELAXED) != key || v == NARROW_RESERVED))
		return 0;
	*value = v;
	return 1;
}

// The rest of a look-up whose key is not in its first block.
int narrow_lookup_further(const struct narrow *t, uint64_t hash, uint64_t key, uint64_t *value);

// Returns 1 and the value, or 0. `key` is not 0.
static inline int narrow_lookup(const struct narrow *t, uint64_t hash, uint64_t key, uint64_t *value)
{
	if (likely(narrow_find(narrow_block(t, hash), key, value)))
		return 1;
	return narrow_lookup_further(t, hash, key, value);
}

// Writer. Adds or replaces. Returns 0, or ENOSPC when `capacity` keys are held, or there is no place; never for a key
// that is held or reserved. `key` is not 0, `value` not NARROW_RESERVED.
int narrow_add(struct narrow *t, uint64_t key, uint64_t value);
// Writer. Reserves a place for a new key: 1. Returns 0 when the key exists, or -1 without a place. An unused
// reservation is returned by narrow_delete(), with a grace period behind it.
int narrow_reserve(struct narrow *t, uint64_t key);
// Writer. Returns 1 when it was there.
int narrow_delete(struct narrow *t, uint64_t key);
uint32_t narrow_count(const struct narrow *t);
uint32_t narrow_capacity(const struct narrow *t);

#endif
