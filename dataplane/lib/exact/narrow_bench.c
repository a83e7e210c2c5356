// SPDX-License-Identifier: Apache-2.0
// Cost of looking up a 64-bit key here, in struct exact and in rte_hash (bulk of 64, lock-free readers), with the same
// keys in alternating runs: narrow-bench [largest table]. Medians, TSC ticks per key, random order, full tables.
#include "exact/narrow.h"
#include "testkit/bench.h"
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS 15
#define LOOKUPS (1u << 16)
#define WINDOW 16

struct bench {
	struct narrow *narrow;
	struct exact *exact;
	struct rte_hash *rte;
	uint64_t key[LOOKUPS + WINDOW];
	uint64_t sum;
};

static uint64_t key_of(uint32_t id)
{
	return (uint64_t)id * 2654435761u % 4294967291u | 1ull << 62;
}

static void wide_key(struct exact_key *k, uint64_t key)
{
	exact_key_set(k, key, 0, 0, 0, 0, 0);
}

static void run_narrow(struct bench *b)
{
	uint64_t hash[2 * WINDOW], value = 0;

	for (uint32_t i = 0; i < LOOKUPS + WINDOW; i++) {
		if (i >= WINDOW &&
			narrow_lookup(b->narrow, hash[(i - WINDOW) % (2 * WINDOW)], b->key[i - WINDOW], &value))
			b->sum += value;
		hash[i % (2 * WINDOW)] = narrow_hash(b->narrow, b->key[i]);
		narrow_prefetch(b->narrow, hash[i % (2 * WINDOW)]);
	}
}

static void run_exact(struct bench *b)
{
	struct exact_key k[2 * WINDOW];
	uint32_t hash[2 * WINDOW];
	uint64_t value = 0;

	for (uint32_t i = 0; i < LOOKUPS + WINDOW; i++) {
		uint32_t at = i % (2 * WINDOW), old = (i - WINDOW) % (2 * WINDOW);

		if (i >= WINDOW && exact_lookup(b->exact, hash[old], &k[old], &value))
			b->sum += value;
		wide_key(&k[at], b->key[i]);
		hash[at] = exact_hash(b->exact, &k[at]);
		exact_prefetch(b->exact, hash[at]);
	}
}

static void run_rte(struct bench *b)
{
	const void *keys[64];
	void *data[64];
	uint64_t hits;

	for (uint32_t i = 0; i < LOOKUPS; i += 64) {
		for (uint32_t k = 0; k < 64; k++)
			keys[k] = &b->key[i + k];
		b->sum += (uint64_t)rte_hash_lookup_bulk_data(b->rte, keys, 64, &hits, data);
	}
}

static int fill(struct bench *b, uint32_t entries)
{
	struct rte_hash_parameters p = {.name = "narrow-bench",
		.entries = entries,
		.key_len = 8,
		.hash_func = rte_hash_crc,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF};
	struct exact_key k;
	int refused = 0;

	b->narrow = narrow_create("n", entries, SOCKET_ID_ANY);
	b->exact = exact_create("e", entries, SOCKET_ID_ANY);
	b->rte = rte_hash_create(&p);
	if (b->narrow == NULL || b->exact == NULL || b->rte == NULL)
		return -1;
	for (uint32_t id = 0; id < entries; id++) {
		uint64_t key = key_of(id);

		wide_key(&k, key);
		if (narrow_add(b->narrow, key, id) != 0 || exact_add(b->exact, exact_hash(b->exact, &k), &k, id) != 0)
			return -1;
		refused += rte_hash_add_key_data(b->rte, &key, (void *)(uintptr_t)id) != 0;
	}
	if (refused != 0)
		printf("rte_hash refused %d of %u keys\n", refused, entries);
	return 0;
}

static int measure(uint32_t entries)
{
	static struct bench b;
	static void (*const run[])(struct bench *) = {run_narrow, run_exact, run_rte};
	double sample[3][RUNS], median_of[3];

	if (fill(&b, entries) != 0)
		return -1;
	for (int r = 0; r < RUNS; r++) {
		for (uint32_t i = 0; i < LOOKUPS + WINDOW; i++)
			b.key[i] = key_of((uint32_t)(((uint64_t)rand() << 16 ^ (uint64_t)rand()) % entries));
		for (int m = 0; m < 3; m++) {
			uint64_t start = rte_rdtsc_precise();
			run[m](&b);
			sample[m][r] = (double)(rte_rdtsc_precise() - start) / LOOKUPS;
		}
	}
	for (int m = 0; m < 3; m++)
		median_of[m] = kit_median(sample[m], RUNS);
	printf("| %u | %.1f | %.1f | %.1f | %u |\n", entries, median_of[0], median_of[1], median_of[2],
		b.narrow->spilled);
	narrow_free(b.narrow);
	exact_free(b.exact);
	rte_hash_free(b.rte);
	return 0;
}

int main(int argc, char **argv)
{
	char *args[] = {
		"narrow-bench", "--in-memory", "--no-pci", "--no-telemetry", "-l", "0", "--log-level", "lib.eal:error"};
	uint32_t most = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1u << 21;

	if (rte_eal_init(RTE_DIM(args), args) < 0)
		return 1;
	printf("TSC %lu MHz\n| entries | narrow | exact | rte_hash bulk 64 | spilled |\n|---|---|---|---|---|\n",
		rte_get_tsc_hz() / 1000000);
	for (uint32_t entries = 1024; entries <= most; entries *= entries < 65536 ? 64 : 32)
		if (measure(entries) != 0)
			return 1;
	return 0;
}
