// SPDX-License-Identifier: Apache-2.0
// Policer profiles and shared meters, as the session module uses them. A profile is shared and read-mostly. The buckets
// of a PDR's only meter are in the rule's state (rule/rule.h). Meters of several PDRs or sessions, and second meters of
// a PDR, are in the pool below.
//
// Deletion of a profile in use is refused by the session module's verify(). A changed profile applies from the next
// packet: times until full stay, cut to the new bursts, and counters continue.
#ifndef POLICER_POLICER_H
#define POLICER_POLICER_H

#include "rule/rule.h"
#include <assert.h>
#include <rte_common.h>
#include <stdint.h>

#define POLICER_MAX_PROFILES (1u << 21) // a million sessions of N4, each with its own MBR in both directions

// Index of a profile as it will be after the open transaction, or -1. Control thread.
int policer_index(const char *name);
// What was asked for, or NULL. Control thread.
const struct api_policer *policer_body(uint32_t index);
// Written by the owner worker (meter); by the control thread before the first worker sees it. Named by
// rule_further.meter[]. The policer nodes take tokens of all meters of a packet (the rule's own and these) only if none
// drops it.
#define METER_NONE UINT32_MAX
struct meter_state {
	struct meter meter;
	uint64_t policed; // packets that this meter had dropped
	// The profile that fast path entries police by, which the owner worker notes (flow/flow.c); METER_NONE: none.
	uint32_t policer;
	uint8_t shared; // as in meter_key
} __rte_aligned(32); // two in a line: of a million half as many pages
static_assert(sizeof(struct meter_state) == 32, "two in a line");
extern struct meter_state *meter_states; // by index; set once at start

// Members that share buckets: PDRs of a session with one QER (owner = the session's index, qer = the QER's id, shared =
// 0). Or sessions with one QER correlation id (owner = api_qer.share, qer = 0, shared = 1). Worker and direction always
// count.
struct meter_key {
	uint32_t owner;
	uint32_t qer;
	uint8_t shared, worker, uplink;
};

// The meter of a key, with one reference more; a new one has full buckets. METER_NONE when the pool (engine.max_qers)
// is empty. Taken in stage(); given back by discard() or by release() of the version that took it. So a meter keeps its
// level from one version of a session to the next. Control thread.
uint32_t meter_acquire(const struct meter_key *key, uint64_t now);
void meter_release(uint32_t meter);

#endif
