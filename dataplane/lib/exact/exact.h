// SPDX-License-Identifier: Apache-2.0
// Exact-match table: fixed capacity, 64-byte entries with the key inline, one cold cache line per look-up.
//
// One writer, many readers: look-ups may run on other threads while the writer adds and deletes. They see an entry
// whole or not at all, by its sequence number. Memory is allocated once. Keys have up to EXACT_KEY bytes; the caller
// pads them with zeros. Used for access endpoints (writer: the control thread).
//
// A key has a home slot and may lie in any of EXACT_PROBES slots from there. First come the eight of the home's aligned
// block of 512 bytes, because the neighbour line usually arrives with the first; then scattered slots. Each slot keeps,
// as a home, a bit map of the probes that hold its keys. A look-up touches only lines that may match, and a miss is
// mostly one line. A deletion clears one bit: no tombstones, and entries never move.
#ifndef EXACT_EXACT_H
#define EXACT_EXACT_H

#include "wire/cache_line.h"
#include "wire/unguarded.h"
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_memory.h>
#include <rte_prefetch.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define EXACT_KEY 44
#define EXACT_WORDS (EXACT_KEY / 4)
#define EXACT_PROBES 32 // bits of exact_entry.probes
#define EXACT_BLOCK 8 // slots of the home's block: the first probes

struct exact_key {
	uint8_t bytes[EXACT_KEY];
} __attribute__((aligned(4)));

// Bits of exact_entry.sequence; the rest counts changes.
#define EXACT_WRITING 1u
#define EXACT_USED 2u
#define EXACT_CHANGE 4u

// Written by the writer.
struct exact_entry {
	struct exact_key key;
	uint32_t probes; // bit i: probe i of this slot (as a home) holds one of its keys
	uint64_t value;
	uint32_t sequence; // EXACT_*: readers compare it before and after
} cache_aligned;
_Static_assert(sizeof(struct exact_entry) == CACHE_LINE, "an entry is one cache line");

// The first line never changes after exact_create; the second belongs to the writer.
struct exact {
	struct exact_entry *entries;
	uint64_t seed[6]; // secret: collisions cannot be constructed without it
	uint32_t mask; // slots - 1
	uint32_t capacity;
	uint32_t count cache_aligned;
} cache_aligned;

// Rounds capacity up so that the table is at most half full. NULL when memory is short. socket: NUMA node.
struct exact *exact_create(const char *name, uint32_t capacity, int socket);
void exact_free(struct exact *t);

// Words 0..4 of a key, native order.
static inline uint64_t exact_word(const struct exact_key *k, unsigned i)
{
	uint64_t w;
	memcpy(&w, k->bytes + 8 * i, sizeof(w));
	return w;
}

// The whole key: five words and a half.
static inline void exact_key_set(
	struct exact_key *k, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4, uint32_t last)
{
	COPY_FIXED(k->bytes, &w0, 8);
	COPY_FIXED(k->bytes + 8, &w1, 8);
	COPY_FIXED(k->bytes + 16, &w2, 8);
	COPY_FIXED(k->bytes + 24, &w3, 8);
	COPY_FIXED(k->bytes + 32, &w4, 8);
	COPY_FIXED(k->bytes + 40, &last, 4);
}

// NH (RFC 4418 §5.2.2, 64-bit words) under the table's secret, then a mix. Unlike with a seeded CRC, keys that collide
// under one seed differ under another: an attacker on the network learns nothing useful.
//
// Write keys in 64-bit words (exact_key_set) just before: a read wider than the preceding writes waits until all reach
// the cache (no store forwarding), 20 ticks and more.
static inline uint32_t exact_hash(const struct exact *t, const struct exact_key *k)
{
	uint32_t last;
	memcpy(&last, k->bytes + 40, sizeof(last));
	unsigned __int128 sum = (unsigned __int128)(exact_word(k, 0) + t->seed[0]) * (exact_word(k, 1) + t->seed[1]);
	sum += (unsigned __int128)(exact_word(k, 2) + t->seed[2]) * (exact_word(k, 3) + t->seed[3]);
	sum += (unsigned __int128)(exact_word(k, 4) + t->seed[4]) * (last + t->seed[5]);
	uint64_t x = (uint64_t)sum ^ (uint64_t)(sum >> 64);
	x = (x ^ (x >> 32)) * (t->seed[0] | 1);
	return (uint32_t)(x >> 32);
}

// Asks for the line where a look-up of this hash begins.
static inline void exact_prefetch(const struct exact *t, uint32_t hash)
{
	rte_prefetch0(&t->entries[hash & t->mask]);
}

static inline uint32_t exact_probe(const struct exact *t, uint32_t home, uint32_t i)
{
	if (i < EXACT_BLOCK)
		return home ^ i;
	uint32_t stride = (home * 0x9e3779b1u) | 1;
	return (home + (i - EXACT_BLOCK + 1) * stride) & t->mask;
}

// Optional second step, half a window later, when the first line has arrived. Prefetches the line of this home's first
// key that lies elsewhere in its block, if any. A full table has a quarter of its keys there; worth it when the table
// exceeds the cache.
static inline void exact_prefetch_displaced(const struct exact *t, uint32_t hash)
{
	uint32_t home = hash & t->mask;
	uint32_t probes = __atomic_load_n(&t->entries[home].probes, __ATOMIC_RELAXED);
	uint32_t first = (uint32_t)__builtin_ctz((probes & ~1u) | 1u << EXACT_BLOCK);
	rte_prefetch0(&t->entries[home ^ (first % EXACT_BLOCK)]); // no branch: the home itself when there is none
}

// The words of the key, compared without a branch each. May race with the writer: the caller checks the sequence.
static inline int exact_same(const struct exact_entry *e, const struct exact_key *k)
{
#ifdef __AVX512F__
	const __mmask16 words = (1u << EXACT_WORDS) - 1;
	__m512i have = _mm512_load_si512(e);
	__m512i want = _mm512_maskz_loadu_epi32(words, k);
	return _mm512_mask_cmpneq_epi32_mask(words, have, want) == 0;
#else
	uint64_t a[5], b[5];
	uint32_t a5, b5;
	memcpy(a, e->key.bytes, sizeof(a));
	memcpy(b, k->bytes, sizeof(b));
	memcpy(&a5, e->key.bytes + sizeof(a), sizeof(a5));
	memcpy(&b5, k->bytes + sizeof(b), sizeof(b5));
	return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]) | (a5 ^ b5)) == 0;
#endif
}

// 1 when the entry is in use, holds the key, and did not change while we looked.
static inline int exact_match(const struct exact_entry *e, const struct exact_key *k, uint64_t *value)
{
	uint32_t before = __atomic_load_n(&e->sequence, __ATOMIC_ACQUIRE);
	int same = exact_same(e, k);
	uint64_t v = __atomic_load_n(&e->value, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	uint32_t after = __atomic_load_n(&e->sequence, __ATOMIC_RELAXED);
	if (!same || before != after || (before & (EXACT_USED | EXACT_WRITING)) != EXACT_USED)
		return 0;
	*value = v;
	return 1;
}

// The rest of a look-up whose key is not in its home slot.
int exact_lookup_displaced(const struct exact *t, uint32_t home, const struct exact_key *k, uint64_t *value);

// Returns 1 and the value, or 0. Bounded number of probes. A look-up that runs into a change misses or finds, never
// mixes.
static inline int exact_lookup(const struct exact *t, uint32_t hash, const struct exact_key *k, uint64_t *value)
{
	uint32_t home = hash & t->mask;
	const struct exact_entry *e = &t->entries[home];
	if (likely(exact_match(e, k, value)))
		return 1;
	if (likely((__atomic_load_n(&e->probes, __ATOMIC_ACQUIRE) & ~1u) == 0))
		return 0;
	return exact_lookup_displaced(t, home, k, value);
}

// Writer. Adds or replaces. Returns 0, or ENOSPC: `capacity` keys are held, or (about once in 10^8 additions to a table
// that is at its capacity) all probes of this key are taken.
int exact_add(struct exact *t, uint32_t hash, const struct exact_key *k, uint64_t value);
// Writer. Returns 1 when it was there.
int exact_delete(struct exact *t, uint32_t hash, const struct exact_key *k);
uint32_t exact_count(const struct exact *t);
uint32_t exact_capacity(const struct exact *t);

#endif
