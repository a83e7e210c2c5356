// SPDX-License-Identifier: Apache-2.0
// Memory cost per packet of many flows: reads and writes the lines of flow-input, in its order and block size, and
// nothing else. Usage: flow-lines-bench [FLOWS [SESSIONS]] (16777216, 262144); medians, TSC ticks a packet.
#include "core/lazy.h"
#include "flow/tuple.h"
#include "meter/policer.h"
#include "testkit/bench.h"
#include "wire/cache_line.h"
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 64u
#define BLOCKS 40000u
#define ROUNDS 7u
#define DISPLACED 12u // one of so many 5-tuples is not in its own place
#define STAGES 4u

struct region {
	uint8_t *line;
	uint32_t lines;
};

struct packet_lines {
	uint8_t *tuple, *state, *meter;
	uint8_t is_displaced;
};

static const char *const stages[STAGES] = {"5-tuple asked", "read, state asked", "read, meter asked", "written"};
static uint64_t seed = 88172645463325252ull;

static uint64_t draw(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed >> 8;
}

static struct region region(uint64_t lines)
{
	struct region r = {.line = lazy_alloc(lines * CACHE_LINE), .lines = (uint32_t)lines};

	if (r.line == NULL) {
		fprintf(stderr, "no memory for %lu lines\n", lines);
		exit(1);
	}
	memset(r.line, 1, lines * CACHE_LINE);
	return r;
}

static uint8_t *any(const struct region *r)
{
	return r->line + draw() % r->lines * CACHE_LINE;
}

static void touch(uint8_t *line)
{
	++*(volatile uint64_t *)line;
}

static uint64_t look(const uint8_t *line)
{
	return *(const volatile uint64_t *)line;
}

// The other lines of its group.
static void displaced(const struct packet_lines *p, int ask)
{
	for (uintptr_t way = 1; way < TUPLE_WAYS; way++) {
		uint8_t *line = (uint8_t *)((uintptr_t)p->tuple ^ way * CACHE_LINE);

		if (ask)
			rte_prefetch0(line);
		else
			look(line);
	}
}

static void block(const struct packet_lines *p, uint64_t spent[STAGES])
{
	uint64_t at[STAGES + 1] = {rte_rdtsc()};

	for (uint32_t i = 0; i < BLOCK; i++)
		rte_prefetch0(p[i].tuple);
	at[1] = rte_rdtsc();
	for (uint32_t i = 0; i < BLOCK; i++) {
		look(p[i].tuple);
		if (p[i].is_displaced)
			displaced(&p[i], 1);
		else
			rte_prefetch0(p[i].state);
	}
	for (uint32_t i = 0; i < BLOCK; i++)
		if (p[i].is_displaced) {
			displaced(&p[i], 0);
			rte_prefetch0(p[i].state);
		}
	at[2] = rte_rdtsc();
	for (uint32_t i = 0; i < BLOCK; i++) {
		look(p[i].state);
		rte_prefetch0(p[i].meter);
	}
	at[3] = rte_rdtsc();
	for (uint32_t i = 0; i < BLOCK; i++) {
		touch(p[i].state);
		touch(p[i].meter);
	}
	at[4] = rte_rdtsc();
	for (uint32_t s = 0; s < STAGES; s++)
		spent[s] += at[s + 1] - at[s];
}

// Reads and writes a random line of the table, as `isthmus bench` does beside the flows.
static uint64_t one_line(const struct packet_lines *p)
{
	uint64_t began = rte_rdtsc();

	for (uint32_t i = 0; i < BLOCK; i++)
		rte_prefetch0(p[i].tuple);
	for (uint32_t i = 0; i < BLOCK; i++)
		touch(p[i].tuple);
	return rte_rdtsc() - began;
}

int main(int argc, char **argv)
{
	uint64_t flows = argc > 1 ? strtoull(argv[1], NULL, 10) : 1u << 24;
	uint64_t sessions = argc > 2 ? strtoull(argv[2], NULL, 10) : 1u << 18;
	// As tuples_create(); four rules a session, two directions' meters in a line.
	struct region tuples = region(flows * 7 / 6 / TUPLE_WAYS * TUPLE_WAYS), states = region(4 * sessions),
		      meters = region(sessions);
	double ticks[STAGES + 1][ROUNDS], sum = 0;

	for (uint32_t r = 0; r < ROUNDS; r++) {
		uint64_t spent[STAGES] = {0}, line = 0;

		for (uint32_t b = 0; b < 2 * BLOCKS; b++) {
			struct packet_lines p[BLOCK];

			for (uint32_t i = 0; i < BLOCK; i++)
				p[i] = (struct packet_lines){
					any(&tuples), any(&states), any(&meters), draw() % DISPLACED == 0};
			if (b & 1)
				line += one_line(p);
			else
				block(p, spent);
		}
		for (uint32_t s = 0; s < STAGES; s++)
			ticks[s][r] = (double)spent[s] / BLOCKS / BLOCK;
		ticks[STAGES][r] = (double)line / BLOCKS / BLOCK;
	}
	for (uint32_t s = 0; s < STAGES; s++) {
		double median = kit_median(ticks[s], ROUNDS);

		sum += median;
		printf("%-20s %6.1f\n", stages[s], median);
	}
	double line = kit_median(ticks[STAGES], ROUNDS);
	printf("%-20s %6.1f, %.2f times one random line (%.1f)\n", "all", sum, sum / line, line);
	return 0;
}
