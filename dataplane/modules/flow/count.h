// SPDX-License-Identifier: Apache-2.0
// Meters, URRs and counters of a packet that takes the fast path: it passes all of them as it is, or none is touched and
// the full nodes decide. Owner worker.
#ifndef FLOW_COUNT_H
#define FLOW_COUNT_H

#include "flow/flow.h"
#include "meter/several.h"
#include "usage/usage.h"

// A packet that is not green, or whose meter is an srTCM.
static __rte_noinline int police_closely(
	const struct policer_profile *p, struct meter *meter, uint64_t time, uint32_t length, uint8_t traffic_class)
{
	struct meter_look look = meter_look_at(p, meter, time, length, meter_came(traffic_class >> 2));

	if (p->action[look.colour] != API_COLOUR_PASS)
		return 0;
	meter_pass(p, meter, time, &look);
	return 1;
}

// 1: the packet passes, and is not marked.
static __rte_always_inline int police(
	const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, const uint8_t *ip)
{
	const struct policer_profile *p = policer_profile(s->policer);
	uint64_t time = w->now << METER_TIME_SHIFT;

	if (unlikely(p == NULL))
		return 0;
	if (likely(p->quick_pass && meter_green(p, &s->meter, time, length)))
		return 1;
	return police_closely(p, &s->meter, time, length, ip_traffic_class(version, ip));
}

// A packet that some meter of several does not call green, or that has one twice.
static __rte_noinline int police_all_closely(
	const struct rule *r, uint64_t time, uint32_t length, uint8_t traffic_class)
{
	struct metering meter[METERS_MAX];
	uint8_t n = meters_look(r, time, length, meter_came(traffic_class >> 2), meter);

	for (uint8_t i = 0; i < n; i++)
		if (meter[i].profile == NULL || meter[i].profile->action[meter[i].colour] != API_COLOUR_PASS)
			return 0;
	meters_pass(meter, n, time, length);
	return 1;
}

// The meters of a state with RULE_STATE_FURTHER. Returns how many.
static inline uint8_t meters_of_state(struct rule_state *s, struct metered to[METERS_MAX])
{
	const struct state_meters m = rule_state_meters(s);
	uint8_t n = 0;

	if (s->flags & FLOW_POLICED)
		to[n++] = (struct metered){.meter = &s->meter, .policer = s->policer};
	if (unlikely(m.index[0] == STATE_METER_NONE))
		return meters_of_rule(&session_pools.further[s->rule], n, to);
	for (uint32_t i = 0; i < RTE_DIM(m.index) && m.index[i] != STATE_METER_NONE; i++) {
		struct meter_state *shared = &meter_states[m.index[i]];

		to[n++] = (struct metered){.meter = &shared->meter, .policer = shared->policer};
	}
	return n;
}

// police() for a rule with several meters.
static __rte_noinline int police_several(
	const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, const uint8_t *ip)
{
	uint64_t time = w->now << METER_TIME_SHIFT;
	struct metered meter[METERS_MAX];
	uint8_t n = meters_of_state(s, meter);

	return likely(meters_green(meter, n, time, length)) ||
	       police_all_closely(&session_pools.rule[s->rule], time, length, ip_traffic_class(version, ip));
}

// More credit. A routed packet of no session has all that it wants.
static __rte_noinline int borrow(struct rule_state *s, uint32_t length)
{
	if (s->rule != RULE_NONE)
		return usage_borrow(&session_pools.rule[s->rule], length, (s->flags & FLOW_UPLINK) != 0);
	s->credit = UINT32_MAX;
	return 1;
}

// Meter, URR and counters of a packet that nothing stops, whose IP header is at `ip`. Returns 0, and has changed
// nothing, when one of them has more to do.
static __rte_always_inline int flow_count(
	struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, const uint8_t *ip)
{
	if (unlikely((s->bits & RULE_STATE_LOOK) != 0 || s->credit < length) && !borrow(s, length))
		return 0;
	if (unlikely(s->bits & RULE_STATE_FURTHER)) {
		if (!police_several(w, s, length, version, ip))
			return 0;
	} else if ((s->flags & FLOW_POLICED) && unlikely(!police(w, s, length, version, ip))) {
		return 0;
	}
	rule_state_pay(s, w->now, length, version);
	return 1;
}

#endif
