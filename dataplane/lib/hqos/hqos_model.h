// SPDX-License-Identifier: Apache-2.0
// A simple model of the scheduler for tests: token buckets in floating point, plain queues. It does not predict the
// order of packets, which the engine may choose within the rules. It judges every departure: was it allowed, the head
// of its queue, and its turn? It judges every silence: should a packet have left?
#ifndef HQOS_MODEL_H
#define HQOS_MODEL_H

#include "hqos/hqos.h"

struct model;

// Times in nanoseconds. The scheduler's pipes are on profile 0 until model_profile.
struct model *model_create(const struct api_scheduler *scheduler, uint64_t start);
void model_free(struct model *m);
void model_profile(struct model *m, uint32_t subport, uint32_t pipe, uint32_t profile, uint64_t now);

// Each returns NULL, or what is wrong.
const char *model_enqueued(
	struct model *m, struct rte_mbuf *packet, uint32_t place, uint8_t precedence, uint64_t now, bool accepted);
const char *model_left(struct model *m, struct rte_mbuf *packet, uint64_t now);
const char *model_silent(struct model *m, uint64_t now); // nothing more leaves at this time: is that right?

// Packets reported by model_enqueued from here on arrive together, after all earlier ones.
void model_burst(struct model *m);
uint32_t model_held(const struct model *m);

#endif
