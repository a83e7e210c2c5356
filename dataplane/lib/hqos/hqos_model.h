// SPDX-License-Identifier: Apache-2.0
// A slow and obvious model of the scheduler for tests: plain token buckets in floating point, plain queues. It does not
// predict the order of packets (that is the engine's choice within the rules) but judges every packet that leaves, and
// every silence: was it allowed, was it the head of its queue, should another have gone first, should anything have
// gone?
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

// The packets that model_enqueued is told of from here on arrive together, after all earlier ones.
void model_burst(struct model *m);
uint32_t model_held(const struct model *m);

#endif
