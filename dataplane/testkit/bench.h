// SPDX-License-Identifier: Apache-2.0
// What a fast path costs a packet.
#ifndef TESTKIT_BENCH_H
#define TESTKIT_BENCH_H

#include <stdint.h>

#define KIT_BENCH_ROUNDS 2000 // at most

// Sorts the samples; the middle one.
double kit_median(double *sample, uint32_t n);

// Lets `send` send `packets` packets in each round, a vector, and prints the median of the node's TSC ticks per packet.
// After two rounds none may reach the node `full` (NULL: they may), else the figure would be another's.
void kit_bench(const char *name, const char *node, const char *full, uint32_t rounds, uint32_t packets,
	void (*send)(const void *argument), const void *argument);

#endif
