// SPDX-License-Identifier: Apache-2.0
// Policer profiles, as the session module sees them: a profile is shared and read-mostly, the buckets are in the rule's
// state (session/session.h).
//
// A profile that is deleted while a session uses it: the session module's verify() refuses the transaction. A profile that
// changes applies to running sessions at their next packet: fill levels stay, cut to the new bursts (when the type changes,
// the buckets count as full), and counters go on.
#ifndef POLICER_POLICER_H
#define POLICER_POLICER_H

#include <stdint.h>

#define POLICER_MAX_PROFILES 1024

struct rule_state;

// Index of a profile as it will be after the open transaction, or -1. Control thread.
int policer_index(const char *name);
// Fills the buckets of a rule; counters are left alone. `now` in TSC ticks (worker.now). Before workers can see the rule.
void policer_state_init(uint16_t profile, struct rule_state *s, uint64_t now);

#endif
