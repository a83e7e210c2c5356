// SPDX-License-Identifier: Apache-2.0
// What the two engines of lib/hqos share: the head of an instance, which the interface in hqos.c dispatches on.
#ifndef HQOS_PRIVATE_H
#define HQOS_PRIVATE_H

#include "hqos/hqos.h"

struct hqos_ops {
	void (*free)(struct hqos *h);
	int (*pipe_config)(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t profile);
	uint32_t (*enqueue)(
		struct hqos *h, struct rte_mbuf **packets, uint32_t n, uint64_t now, struct rte_mbuf **rejected);
	uint32_t (*dequeue)(struct hqos *h, struct rte_mbuf **out, uint32_t n, uint64_t now);
	uint32_t (*queued)(const struct hqos *h);
	uint32_t (*push_out)(struct hqos *h, struct rte_mbuf **out, uint32_t n); // NULL: it cannot
	uint32_t (*longest)(const struct hqos *h);
	void (*subport_stats)(struct hqos *h, uint32_t subport, uint32_t traffic_class, struct hqos_stats *stats);
	void (*pipe_stats)(
		struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t traffic_class, struct hqos_stats *stats);
};

// First member of each engine's own struct. Written at creation, but for `misplaced` (the owner).
struct hqos {
	const struct hqos_ops *ops;
	uint64_t misplaced;
	size_t memory;
	uint32_t profiles;
	uint32_t total_pipes;
	uint32_t pipes[API_MAX_SUBPORTS]; // 0: not here
	uint32_t first[API_MAX_SUBPORTS]; // index of pipe 0 among all pipes of the instance
};

// Whether the place exists in this instance.
static inline bool hqos_place_valid(const struct hqos *h, uint32_t place)
{
	uint32_t subport = hqos_place_subport(place);
	return subport < API_MAX_SUBPORTS && hqos_place_pipe(place) < h->pipes[subport] &&
	       hqos_place_queue(place) < HQOS_QUEUES;
}

// The engines' constructors: parameters are checked, `head` is filled but for ops and memory.
struct hqos *hqos_own_create(const struct hqos_params *params, const struct hqos *head, char *error);
struct hqos *hqos_rte_create(const struct hqos_params *params, const struct hqos *head, char *error);

#endif
