// SPDX-License-Identifier: Apache-2.0
// Cost of a packet's cache lines alone, in the order and batches of mobile.h: the lower bound of a look-up among so
// many sessions on this machine. Usage: session-lines-bench [sessions]; medians, TSC ticks per packet, random order.
#include "testkit/bench.h"
#include "wire/cache_line.h"
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS 9
#define BATCH 64
#define BATCHES 8192

// A session's lines that one direction's packets touch, and the distance between them.
enum { KEY, RULE, STATE, URR, LINES };
static const struct {
	const char *name;
	uint32_t stride;
} line[LINES] = {[KEY] = {"key", 64}, [RULE] = {"rule", 128}, [STATE] = {"rule state", 128}, [URR] = {"URR", 64}};

static volatile uint64_t *at(uint8_t *const base[LINES], int l, uint32_t session)
{
	return (volatile uint64_t *)(base[l] + (size_t)session * line[l].stride);
}

static void ask(uint8_t *const base[LINES], int l, const uint32_t *session)
{
	for (int i = 0; i < BATCH; i++)
		rte_prefetch0(at(base, l, session[i]));
}

// Reads a line and prefetches the next, as session-tunnel does; rule state and URR are fetched together, and written.
static uint64_t batch(uint8_t *const base[LINES], int lines, const uint32_t *session)
{
	uint64_t sum = 0;

	ask(base, KEY, session);
	for (int i = 0; i < BATCH; i++) {
		sum += *at(base, KEY, session[i]);
		if (lines > RULE)
			rte_prefetch0(at(base, RULE, session[i]));
	}
	for (int i = 0; i < BATCH && lines > RULE; i++) {
		sum += *at(base, RULE, session[i]);
		for (int l = STATE; l < lines; l++)
			rte_prefetch0(at(base, l, session[i]));
	}
	for (int l = STATE; l < lines; l++)
		for (int i = 0; i < BATCH; i++)
			++*at(base, l, session[i]);
	return sum;
}

static double run(uint8_t *const base[LINES], int lines, uint32_t sessions, uint64_t *random)
{
	uint32_t session[BATCH];
	uint64_t sum = 0, start = rte_rdtsc_precise();

	for (int b = 0; b < BATCHES; b++) {
		for (int i = 0; i < BATCH; i++) {
			*random = *random * 6364136223846793005ull + 1442695040888963407ull;
			session[i] = (uint32_t)((*random >> 32) * sessions >> 32);
		}
		sum += batch(base, lines, session);
	}
	double ticks = (double)(rte_rdtsc_precise() - start) / ((double)BATCH * BATCHES);
	return sum == 1 ? 0 : ticks; // the sum is used, so that reads stay
}

int main(int argc, char **argv)
{
	char *args[] = {"session-lines-bench", "--in-memory", "--no-pci", "--no-telemetry", "-l", "0", "--log-level",
		"lib.eal:error"};
	uint32_t sessions = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1u << 20;
	uint64_t random = 1;
	uint8_t *base[LINES];

	if (sessions == 0 || rte_eal_init(RTE_DIM(args), args) < 0)
		return 1;
	for (int l = 0; l < LINES; l++) {
		base[l] = rte_zmalloc("lines", (size_t)sessions * line[l].stride, CACHE_LINE);
		if (base[l] == NULL) {
			fprintf(stderr, "no memory for %u sessions\n", sessions);
			return 1;
		}
	}
	printf("TSC %lu MHz, %u sessions\n| lines | ticks |\n|---|---|\n", rte_get_tsc_hz() / 1000000, sessions);
	for (int lines = 1; lines <= LINES; lines++) {
		double sample[RUNS];

		for (int r = 0; r < RUNS; r++)
			sample[r] = run(base, lines, sessions, &random);
		printf("| %s%s | %.1f |\n", lines > 1 ? "and " : "", line[lines - 1].name, kit_median(sample, RUNS));
	}
	return 0;
}
