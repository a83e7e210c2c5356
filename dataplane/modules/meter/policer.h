// SPDX-License-Identifier: Apache-2.0
// Policer profiles and shared meters, as the session module sees them: a profile is shared and read-mostly. The buckets of a
// PDR's only meter are in the rule's state (rule/rule.h); those that several PDRs or sessions fill in common, and second
// meters of a PDR, are in the pool below.
//
// A profile that is deleted while a session uses it: the session module's verify() refuses the transaction. A profile that
// changes applies to running sessions at their next packet: fill levels stay, cut to the new bursts (when the type changes,
// the buckets count as full), and counters go on.
#ifndef POLICER_POLICER_H
#define POLICER_POLICER_H

#include <rte_common.h>
#include <rte_meter.h>
#include <stdint.h>

#define POLICER_MAX_PROFILES (1u << 21) // a million sessions of N4, each with its own MBR in both directions

struct rule_state;

// Index of a profile as it will be after the open transaction, or -1. Control thread.
int policer_index(const char *name);
// Fills the buckets of a rule; counters are left alone. `now` in TSC ticks (worker.now). Before workers can see the rule.
void policer_state_init(uint32_t profile, struct rule_state *s, uint64_t now);

// ---- meters in common ----------------------------------------------------------------------------------------------------
// Written by the owner worker (tokens), the control thread before the first worker sees it. rule_match.meter[] names them; the
// policer nodes take tokens of all meters of a packet (the rule's own and these) only when none of them drops it.
union meter_tokens {
	struct rte_meter_srtcm srtcm;
	struct rte_meter_trtcm trtcm;
};

struct meter_state {
	union meter_tokens tokens;
	uint64_t policed; // packets that this meter had dropped
} __rte_cache_aligned;
extern struct meter_state *meter_states; // by index; set once at start

// As policer_state_init, for buckets alone.
void meter_tokens_init(uint32_t profile, union meter_tokens *tokens, uint64_t now);

// Who fills the same buckets: PDRs of a session that have one QER (owner = the session's index, qer = the QER's id, shared = 0),
// or sessions with one QER correlation id (owner = api_qer.share, qer = 0, shared = 1). Worker and direction always count.
struct meter_key {
	uint32_t owner;
	uint32_t qer;
	uint8_t shared, worker, uplink;
};

#define METER_NONE UINT32_MAX

// The meter of a key, one reference taken; made with full buckets when nobody has it. METER_NONE when the pool (engine.max_qers)
// is empty. stage() takes, discard() or the release() of the version that took it gives back: so a meter keeps its fill level
// from one version of a session to the next. Control thread.
uint32_t meter_acquire(const struct meter_key *key, uint32_t profile, uint64_t now);
void meter_release(uint32_t meter);

#endif
