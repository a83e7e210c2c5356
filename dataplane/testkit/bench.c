// SPDX-License-Identifier: Apache-2.0
#include "testkit/bench.h"
#include "testkit/testkit.h"
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM 1000u // rounds at most until all entries are made

static uint64_t ticks(const char *node)
{
	uint32_t count;
	const struct api_node_row *row = kit_rows(API_TABLE_NODE, "", sizeof(*row), &count);

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(row[i].name, node) == 0)
			return row[i].ticks;
	return 0;
}

static int ascending(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

double kit_median(double *sample, uint32_t n)
{
	qsort(sample, n, sizeof(*sample), ascending);
	return sample[n / 2];
}

void kit_bench(const char *name, const char *node, const char *full, uint32_t rounds, uint32_t packets,
	void (*send)(const void *argument), const void *argument)
{
	static double of[KIT_BENCH_ROUNDS];
	uint32_t warm = 0;

	rounds = RTE_MIN(RTE_MAX(rounds, 1u), (uint32_t)KIT_BENCH_ROUNDS);
	for (uint32_t round = 0; round < rounds;) {
		uint64_t before = ticks(node), slow = full != NULL ? kit_node_packets(full) : 0;

		send(argument);
		kit_advance(1000);
		kit_clear();
		int is_warm = warm >= 2 && (full == NULL || kit_node_packets(full) == slow);
		if (!is_warm && (round > 0 || warm == WARM)) {
			fprintf(stderr, "%s: packets took the full nodes\n", name);
			exit(1);
		}
		if (is_warm)
			of[round++] = (double)(ticks(node) - before) / packets;
		else
			warm++;
	}
	double median = kit_median(of, rounds);
	printf("%-10s %6.1f  (%.1f .. %.1f)\n", name, median, of[0], of[rounds * 9 / 10]);
}
