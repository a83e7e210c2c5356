// SPDX-License-Identifier: Apache-2.0
// A histogram of durations in ticks: exact up to 63, then 32 steps for each doubling (at most 3.2 % wide). Pure.
#ifndef TRAFFIC_HISTOGRAM_H
#define TRAFFIC_HISTOGRAM_H

#include "traffic/job/job.h"

#define HISTOGRAM_STEPS 32 // for each doubling

static inline uint32_t histogram_bucket(uint64_t ticks)
{
	if (ticks < 64)
		return (uint32_t)ticks;
	uint32_t top = 63 - (uint32_t)__builtin_clzll(ticks); // >= 6
	uint32_t bucket = 64 + (top - 6) * HISTOGRAM_STEPS + ((uint32_t)(ticks >> (top - 5)) & (HISTOGRAM_STEPS - 1));

	return bucket < JOB_BUCKETS ? bucket : JOB_BUCKETS - 1;
}

static inline void histogram_add(struct histogram *h, uint64_t ticks)
{
	h->bucket[histogram_bucket(ticks)]++;
	h->count++;
	h->sum += ticks;
	if (ticks > h->max)
		h->max = ticks;
	if (ticks < h->min)
		h->min = ticks;
}

#endif
