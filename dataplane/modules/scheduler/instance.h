// SPDX-License-Identifier: Apache-2.0
// Inside of the scheduler module: which instance of lib/hqos serves a port on a worker.
#ifndef SCHEDULER_INSTANCE_H
#define SCHEDULER_INSTANCE_H

#include "core/hold.h"
#include "core/port.h"
#include "hqos/hqos.h"
#include "wire/cache_line.h"

struct rte_ring;

// A port's scheduler: one instance of lib/hqos per worker, with the subports that the worker owns.
//   Written by: the control thread; replaced as a whole; the old one is freed after a grace period.
//   Instances: used by their worker only, from the moment that the scheduler is published
struct scheduler {
	char name[API_NAME]; // the port's
	uint16_t port;
	struct api_scheduler want;
	struct hqos *instance[API_MAX_WORKERS]; // NULL where the worker has no subport here
	struct {
		uint32_t buffers; // that the worker's instance holds
	} cache_aligned held[API_MAX_WORKERS];
};

extern struct holder scheduler_holder;

struct scheduler *scheduler_of(uint16_t port); // NULL when the port has none; workers
uint64_t scheduler_ports(void); // bit i: port i has a scheduler; workers
// Marks a packet as having met congestion; false: its sender does not know ECN, or its header cannot be written.
bool scheduler_mark(struct rte_mbuf *m);
// The edge behind the scheduler for a packet whose port has none on this worker; -1: it has one. Workers.
int scheduler_passes(const struct worker *w, struct rte_mbuf *m);
// Changes that wait for worker `id`, of pipes and of what it holds: taken by it between two vectors.
void scheduler_apply_changes(uint32_t id);

#endif
