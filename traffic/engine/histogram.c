// SPDX-License-Identifier: Apache-2.0
// Histograms of durations: clearing, joining and quantiles (the hot part, adding, is in the header).
#include "traffic/engine/histogram.h"
#include <math.h>
#include <string.h>

void histogram_clear(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void histogram_join(struct histogram *to, const struct histogram *from)
{
	for (uint32_t b = 0; b < JOB_BUCKETS; b++)
		to->bucket[b] += from->bucket[b];
	to->count += from->count;
	to->sum += from->sum;
	// A struct of zeros is an empty histogram too, and its min says nothing.
	if (from->count && (to->count == from->count || from->min < to->min))
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
}

uint64_t histogram_low(uint32_t bucket)
{
	if (bucket < 64)
		return bucket;

	uint32_t top = 6 + (bucket - 64) / HISTOGRAM_STEPS, step = (bucket - 64) % HISTOGRAM_STEPS;

	return (uint64_t)(HISTOGRAM_STEPS + step) << (top - 5);
}

uint64_t histogram_high(uint32_t bucket)
{
	return bucket + 1 < JOB_BUCKETS ? histogram_low(bucket + 1) - 1 : UINT64_MAX;
}

uint64_t histogram_quantile(const struct histogram *h, double part)
{
	double wanted = ceil(part * (double)h->count);
	uint64_t below = 0, want = wanted < 1 ? 1 : (uint64_t)wanted;

	for (uint32_t b = 0; b < JOB_BUCKETS; b++) {
		below += h->bucket[b];
		if (h->bucket[b] && below >= want) {
			uint64_t high = histogram_high(b);

			return high < h->max ? high : h->max;
		}
	}
	return h->max;
}
