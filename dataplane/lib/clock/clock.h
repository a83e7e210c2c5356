// SPDX-License-Identifier: Apache-2.0
// Elapsed time by a clock that may step: the TSC steps when a machine migrates or wakes up, and may differ between
// CPUs.
#ifndef CLOCK_CLOCK_H
#define CLOCK_CLOCK_H

#include <rte_common.h>
#include <stdint.h>
#include <time.h>

// Does not step.
static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// How much later `now` is than `then`: never negative, at most `most`.
static inline uint64_t clock_passed(uint64_t now, uint64_t then, uint64_t most)
{
	uint64_t passed = now - then;

	return (int64_t)passed < 0 ? 0 : RTE_MIN(passed, most);
}

// A token bucket as the time at which it is full: taking tokens postpones it. `depth`: the time to fill an empty one. A
// later time counts as an empty bucket: the clock has stepped back, or is another CPU's.
static inline uint64_t bucket_lack(uint64_t full, uint64_t now, uint64_t depth)
{
	return clock_passed(full, now, depth);
}

static inline void bucket_take(uint64_t *full, uint64_t now, uint64_t depth, uint64_t cost)
{
	*full = now + bucket_lack(*full, now, depth) + cost;
}

#endif
