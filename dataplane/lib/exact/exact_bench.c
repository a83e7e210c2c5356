// SPDX-License-Identifier: Apache-2.0
// Cost of a look-up and an addition, beside rte_hash with the same keys in the same run: exact-bench [largest table]
//
// Keys are drawn at random from all keys of the table, for each run. Runs alternate; results are medians in TSC ticks
// per key. rte_hash gets its CRC hash and its bulk data look-up. "lf" is rte_hash with lock-free readers, which gives
// the exact table's guarantees. Plain rte_hash guarantees nothing while a writer works.
#include "exact/exact.h"
#include "testkit/bench.h"
#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS 21
#define LOOKUPS (1u << 16)
#define MAX_BULK RTE_HASH_LOOKUP_BULK_MAX

enum measure {
	EXACT_8,
	EXACT_16,
	EXACT_TWO,
	EXACT_MISS,
	EXACT_HASH,
	PLAIN_16,
	PLAIN_64,
	PLAIN_ONE,
	PLAIN_MISS,
	LF_64,
	MEASURES,
};

struct bench {
	uint32_t entries;
	struct exact *exact;
	struct rte_hash *plain, *lf;
	struct exact_key *key; // LOOKUPS
	const void **pointer; // to each
	double sample[MEASURES][RUNS];
	uint64_t sum; // of values, so that no look-up is optimised away
};

// An IPv4 5-tuple with tunnel id, as the flow table has it, from a number.
static struct exact_key key_of(uint32_t id)
{
	struct exact_key k = {{0}};
	uint32_t address = 0x0a000000 + id / 32, remote = 0xc0000200 + id % 32;
	uint16_t port = (uint16_t)(1024 + id % 7919);
	memcpy(k.bytes, &id, 4);
	memcpy(k.bytes + 4, &address, 4);
	memcpy(k.bytes + 20, &remote, 4);
	memcpy(k.bytes + 36, &port, 2);
	k.bytes[40] = 17;
	return k;
}

static void draw_keys(struct bench *b, uint32_t offset)
{
	static uint64_t x = 88172645463325252u;
	for (uint32_t i = 0; i < LOOKUPS; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		b->key[i] = key_of(offset + (uint32_t)(((x >> 32) * b->entries) >> 32));
	}
}

static __rte_always_inline void run_exact(struct bench *b, uint32_t window)
{
	uint32_t hash[16];
	uint64_t value = 0, sum = 0;

	for (uint32_t i = 0; i < window; i++) {
		hash[i] = exact_hash(b->exact, &b->key[i]);
		exact_prefetch(b->exact, hash[i]);
	}
	for (uint32_t i = 0; i < LOOKUPS; i++) {
		uint32_t ahead = i + window, now = hash[i % window];
		if (likely(ahead < LOOKUPS)) {
			hash[i % window] = exact_hash(b->exact, &b->key[ahead]);
			exact_prefetch(b->exact, hash[i % window]);
		}
		if (exact_lookup(b->exact, now, &b->key[i], &value))
			sum += value;
	}
	b->sum += sum;
}

// Window 32, with the second step half way.
static void run_exact_two(struct bench *b)
{
	const struct exact *t = b->exact;
	uint32_t hash[32];
	uint64_t value = 0, sum = 0;

	for (uint32_t i = 0; i < 32; i++) {
		hash[i] = exact_hash(t, &b->key[i]);
		exact_prefetch(t, hash[i]);
	}
	for (uint32_t i = 0; i < LOOKUPS; i++) {
		uint32_t ahead = RTE_MIN(i + 32, LOOKUPS - 1), now = hash[i % 32];
		exact_prefetch_displaced(t, hash[(i + 16) % 32]);
		hash[i % 32] = exact_hash(t, &b->key[ahead]);
		exact_prefetch(t, hash[i % 32]);
		if (exact_lookup(t, now, &b->key[i], &value))
			sum += value;
	}
	b->sum += sum;
}

static void run_hash(struct bench *b)
{
	for (uint32_t i = 0; i < LOOKUPS; i++)
		b->sum += exact_hash(b->exact, &b->key[i]);
}

static void run_bulk(struct bench *b, const struct rte_hash *h, uint32_t bulk)
{
	void *data[MAX_BULK];
	uint64_t hits, sum = 0;

	for (uint32_t i = 0; i < LOOKUPS; i += bulk) {
		rte_hash_lookup_bulk_data(h, &b->pointer[i], bulk, &hits, data);
		for (uint32_t j = 0; j < bulk; j++)
			if (hits >> j & 1)
				sum += (uintptr_t)data[j];
	}
	b->sum += sum;
}

static void run_one(struct bench *b)
{
	void *data = NULL;
	for (uint32_t i = 0; i < LOOKUPS; i++)
		if (rte_hash_lookup_data(b->plain, &b->key[i], &data) >= 0)
			b->sum += (uintptr_t)data;
}

static double run(struct bench *b, enum measure m)
{
	draw_keys(b, m == EXACT_MISS || m == PLAIN_MISS ? b->entries : 0);
	uint64_t start = rte_rdtsc_precise();
	switch (m) {
	case EXACT_8:
		run_exact(b, 8);
		break;
	case EXACT_16:
	case EXACT_MISS:
		run_exact(b, 16);
		break;
	case EXACT_TWO:
		run_exact_two(b);
		break;
	case EXACT_HASH:
		run_hash(b);
		break;
	case PLAIN_16:
		run_bulk(b, b->plain, 16);
		break;
	case PLAIN_64:
	case PLAIN_MISS:
		run_bulk(b, b->plain, 64);
		break;
	case PLAIN_ONE:
		run_one(b);
		break;
	case LF_64:
		if (b->lf == NULL)
			return 0;
		run_bulk(b, b->lf, 64);
		break;
	case MEASURES:
		break;
	}
	return (double)(rte_rdtsc_precise() - start) / LOOKUPS;
}

static struct rte_hash *make_rte_hash(const char *name, uint32_t entries, uint8_t flags)
{
	struct rte_hash_parameters p = {.name = name,
		.entries = entries,
		.key_len = EXACT_KEY,
		.hash_func = rte_hash_crc,
		.socket_id = 0,
		.extra_flag = flags};
	return rte_hash_create(&p);
}

// Ids in an order that is not that of memory; each once, because the multiplier is odd and entries a power of two.
static uint32_t shuffled(const struct bench *b, uint32_t i)
{
	return (i * 2654435761u) & (b->entries - 1);
}

static double fill_exact(struct bench *b)
{
	uint32_t failed = 0;
	uint64_t start = rte_rdtsc_precise();
	for (uint32_t i = 0; i < b->entries; i++) {
		struct exact_key k = key_of(shuffled(b, i));
		failed += exact_add(b->exact, exact_hash(b->exact, &k), &k, i) != 0;
	}
	double ticks = (double)(rte_rdtsc_precise() - start) / b->entries;
	if (failed != 0)
		printf("exact: %u of %u additions failed\n", failed, b->entries);
	return ticks;
}

static double fill_rte_hash(struct bench *b, struct rte_hash *h)
{
	uint32_t failed = 0;
	uint64_t start = rte_rdtsc_precise();
	for (uint32_t i = 0; i < b->entries; i++) {
		struct exact_key k = key_of(shuffled(b, i));
		failed += rte_hash_add_key_data(h, &k, (void *)(uintptr_t)i) != 0;
	}
	double ticks = (double)(rte_rdtsc_precise() - start) / b->entries;
	if (failed != 0)
		printf("rte_hash: %u of %u additions failed\n", failed, b->entries);
	return ticks;
}

static void free_tables(struct bench *b)
{
	exact_free(b->exact);
	rte_hash_free(b->plain);
	rte_hash_free(b->lf);
}

static int bench_size(struct bench *b)
{
	double add_exact[RUNS], add_plain[RUNS], m[MEASURES];
	uint32_t fills = b->entries > 1 << 16 ? 1 : 7;

	for (uint32_t i = 0; i < fills; i++) {
		if (i > 0)
			free_tables(b);
		b->exact = exact_create("bench", b->entries, 0);
		b->plain = make_rte_hash("bench", b->entries, 0);
		b->lf = b->entries > 1 << 20
				? NULL
				: make_rte_hash("bench-lf", b->entries, RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF);
		if (b->exact == NULL || b->plain == NULL) {
			printf("| %8u | not enough memory |\n", b->entries);
			free_tables(b);
			return 1;
		}
		add_exact[i] = fill_exact(b);
		add_plain[i] = fill_rte_hash(b, b->plain);
	}
	if (b->lf != NULL)
		fill_rte_hash(b, b->lf);
	for (uint32_t r = 0; r < RUNS; r++)
		for (enum measure i = 0; i < MEASURES; i++)
			b->sample[i][r] = run(b, i);
	for (enum measure i = 0; i < MEASURES; i++)
		m[i] = kit_median(b->sample[i], RUNS);
	double best = RTE_MIN(m[PLAIN_16], m[PLAIN_64]);
	printf("| %8u | %5.1f | %5.1f | %5.1f | %5.1f | %5.1f | %5.1f | %5.1f | %5.1f | %5.1f | %5.1f | %4.2f | %5.0f "
	       "| %5.0f |\n",
		b->entries, m[EXACT_HASH], m[EXACT_8], m[EXACT_16], m[EXACT_TWO], m[EXACT_MISS], m[PLAIN_16],
		m[PLAIN_64], m[LF_64], m[PLAIN_ONE], m[PLAIN_MISS], best / RTE_MIN(m[EXACT_16], m[EXACT_TWO]),
		kit_median(add_exact, fills), kit_median(add_plain, fills));
	free_tables(b);
	return 0;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {1 << 10, 1 << 16, 1 << 20, 1 << 23};
	char *huge[] = {
		"exact-bench", "--in-memory", "--no-pci", "--no-telemetry", "-l", "0", "--log-level", "lib.eal:error"};
	uint32_t largest = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : sizes[RTE_DIM(sizes) - 1];
	static struct bench b;

	if (rte_eal_init(RTE_DIM(huge), huge) < 0)
		return 1;
	b.key = calloc(LOOKUPS, sizeof(*b.key));
	b.pointer = calloc(LOOKUPS, sizeof(*b.pointer));
	if (b.key == NULL || b.pointer == NULL)
		return 1;
	for (uint32_t i = 0; i < LOOKUPS; i++)
		b.pointer[i] = &b.key[i];
	printf("TSC %" PRIu64 " MHz; ticks per key, medians of %d\n", rte_get_tsc_hz() / 1000000, RUNS);
	printf("|  entries | hash | exact window 8 | window 16 | two steps | miss | rte_hash bulk 16 | bulk 64 | lf "
	       "bulk 64 | single | miss "
	       "bulk 64 | gain | exact add | rte_hash add "
	       "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (uint32_t i = 0; i < RTE_DIM(sizes) && sizes[i] <= largest; i++) {
		b.entries = sizes[i];
		if (bench_size(&b) != 0)
			break;
	}
	return b.sum == 1;
}
