// SPDX-License-Identifier: Apache-2.0
// NPTv6 (RFC 6296): where it applies.
//
//   written by: the control thread, with release stores; replaced ones are freed after a grace period. Counts: each
//   line by its worker
//   read by: workers, within a walk
#ifndef NPTV6_NPTV6_H
#define NPTV6_NPTV6_H

#include "core/worker.h"
#include "instance/instance.h"
#include "isthmus_api.h"
#include "nptv6/translate.h"
#include "wire/cache_line.h"

struct nptv6_counts {
	uint64_t packets[2][API_NPTV6_PAIRS]; // by direction
} cache_aligned;

struct nptv6 {
	struct nptv6_pair pair[API_NPTV6_PAIRS];
	uint32_t pairs;
	char name[API_NAME];
	struct api_nptv6 want;
	struct nptv6 *next;
	struct nptv6_counts before; // of the same pairs, when they were another object's
	struct nptv6_counts counts[API_MAX_WORKERS];
};

extern struct nptv6_now {
	struct nptv6 *of[MAX_INSTANCES];
	uint32_t count;
} nptv6_now;

static inline int nptv6_anywhere(void)
{
	return __atomic_load_n(&nptv6_now.count, __ATOMIC_RELAXED) != 0;
}

// Of an instance's index, or NULL.
static inline struct nptv6 *nptv6_of(uint16_t instance)
{
	return instance < MAX_INSTANCES ? __atomic_load_n(&nptv6_now.of[instance], __ATOMIC_ACQUIRE) : NULL;
}

// 1 when addresses of packets that leave for a next hop (index) may be translated.
static inline int nptv6_of_hop(uint32_t next_hop)
{
	return nptv6_of(instance_of_hop(next_hop_get(next_hop))) != NULL;
}

#endif
