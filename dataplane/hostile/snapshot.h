// SPDX-License-Identifier: Apache-2.0
// Counters before and after, for every row of hostile input.
#ifndef HOSTILE_SNAPSHOT_H
#define HOSTILE_SNAPSHOT_H

#include "core/engine.h"
#include "testkit/testkit.h"

struct snapshot {
	uint64_t reason[MAX_REASONS];
	struct api_total_row total;
	uint32_t buffers;
};
void snapshot_take(struct snapshot *b);
// `reason` (NULL: none) rose by `count` and no other; buffers are back; the sum holds. Returns nothing: fails the test.
void snapshot_compare(const struct snapshot *b, const char *reason, uint64_t count);
// Tokens that a full limiter of `rate` per second holds, by the rule in core/worker.h: a tenth of a second's worth.
uint32_t burst_of(uint32_t rate);

#endif
