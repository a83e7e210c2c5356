// SPDX-License-Identifier: Apache-2.0
// A packet at all meters of its rule. All are asked before any gives tokens: a packet that one drops costs the others
// nothing, so passing packets may use each in full.
#ifndef METER_SEVERAL_H
#define METER_SEVERAL_H

#include "meter/meter.h"

struct metering {
	const struct policer_profile *profile; // NULL: deleted together with its sessions, under our feet
	struct meter *meter;
	uint64_t *policed; // counter of a meter in common
	enum rte_color came, colour; // that the packet came with; that the meter says
};
#define METERS_MAX (1 + API_PDR_QERS)

// enum api_colour_action. A profile that is gone lets all pass.
static inline uint8_t meter_says(const struct metering *m)
{
	return m->profile != NULL ? m->profile->action[m->colour] : API_COLOUR_PASS;
}

// As little as the fast path needs: with struct metering a packet of three meters took 29 ticks more.
struct metered {
	struct meter *meter;
	uint32_t policer; // index of its profile
};

// Adds the meters of rule_further behind the first `n`. Returns how many there are.
static inline uint8_t meters_of_rule(const struct rule_further *m, uint8_t n, struct metered to[METERS_MAX])
{
	for (uint8_t i = 0; i < m->meters && i < API_PDR_QERS; i++)
		to[n++] = (struct metered){
			.meter = &meter_states[m->meter[i].state].meter, .policer = m->meter[i].policer};
	return n;
}

// The meters of a rule with RULE_FURTHER_METERS and their verdicts on a packet of colour `came`. Returns how many.
// Owner worker.
static inline uint8_t meters_look(
	const struct rule *r, uint64_t time, uint32_t length, enum rte_color came, struct metering to[METERS_MAX])
{
	uint8_t own = (r->action.flags & ACTION_POLICED) != 0;
	struct metered meter[METERS_MAX] = {{.meter = &rule_state_of(r)->meter, .policer = r->action.policer}};
	uint8_t n = meters_of_rule(rule_further_of(r), own, meter);

	for (uint8_t i = 0; i < n; i++) {
		to[i] = (struct metering){
			.profile = policer_profile(meter[i].policer), .meter = meter[i].meter, .came = came};
		if (i >= own)
			to[i].policed = &container_of(meter[i].meter, struct meter_state, meter)->policed;
		if (to[i].profile != NULL)
			to[i].colour = meter_look_at(to[i].profile, to[i].meter, time, length, came).colour;
	}
	return n;
}

static inline int meter_is_again(const struct metered meter[METERS_MAX], uint8_t i)
{
	for (uint8_t j = 0; j < i; j++)
		if (meter[j].meter == meter[i].meter)
			return 1;
	return 0;
}

// meters_look() and meters_pass() for a packet that is green at all `n` meters, where green passes unchanged. Else, and
// where a meter is in the list twice, returns 0 and changes nothing.
static inline int meters_green(const struct metered meter[METERS_MAX], uint8_t n, uint64_t time, uint32_t length)
{
	struct meter after[METERS_MAX];

	for (uint8_t i = 0; i < n; i++) {
		const struct policer_profile *p = policer_profile(meter[i].policer);

		if (unlikely(p == NULL || !p->quick_pass || meter_is_again(meter, i) ||
			     !meter_is_green(p, meter[i].meter, time, length, &after[i])))
			return 0;
	}
	for (uint8_t i = 0; i < n; i++)
		*meter[i].meter = after[i];
	return 1;
}

// The packet passes: its bytes leave the buckets.
static inline void meters_pass(const struct metering meter[METERS_MAX], uint8_t n, uint64_t time, uint32_t length)
{
	for (uint8_t i = 0; i < n; i++) {
		if (meter[i].profile == NULL)
			continue;
		// Looked at again: one meter may be twice in the list.
		struct meter_look l = meter_look_at(meter[i].profile, meter[i].meter, time, length, meter[i].came);
		meter_pass(meter[i].profile, meter[i].meter, time, &l);
	}
}

#endif
