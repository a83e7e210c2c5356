// SPDX-License-Identifier: Apache-2.0
// Counters of several sessions, and watermarks. All of it is the control thread's: workers count in their rules' states
// as ever.
#ifndef COUNTER_COUNTER_H
#define COUNTER_COUNTER_H

#include "isthmus_api.h"
#include "rule/tables.h"

struct counter {
	char name[API_NAME]; // empty: none
	struct api_counter want;
	uint16_t instance; // index of want.instance; INSTANCE_NONE: any
	uint8_t in_force;
	uint8_t told; // of this period
	struct rule_counts sum, before; // since it came; when the period began
	uint64_t began_ns; // CLOCK_MONOTONIC of the period
	uint32_t period; // number of it
	uint32_t sessions;
	uint64_t reached;
};

// What a session, by its index, takes part in.
struct counter_member {
	uint64_t set; // bit n: counters[n]
	struct rule_counts own; // in the period of its counter with `each`
	uint32_t period; // number of that period
	uint8_t each; // 1 + index of that counter; 0: none
	uint8_t told;
};

extern struct counter counters[API_MAX_COUNTERS];
extern struct counter_member *counter_members;

// A session was made (old NULL), changed, or deleted (s NULL), a grace period ago; PDRs' counts were carried over.
void counter_session(const struct session *s, const struct session *old);

// counter.c, for counter_ctl.c
void counter_install(
	struct counter *x, const struct api_counter *want, uint16_t instance); // all sessions are looked at
void counter_remove(struct counter *x);

#endif
