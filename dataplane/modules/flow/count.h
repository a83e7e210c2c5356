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
	const struct policer_profile *p = policer_profile(s->action.policer);
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

static __rte_always_inline int is_green(
	uint32_t policer, const struct meter *meter, uint64_t time, uint32_t length, struct meter *after)
{
	const struct policer_profile *p = policer_profile(policer);

	return likely(p != NULL && p->quick_pass) && meter_is_green(p, meter, time, length, after);
}

// Green at the state's own meter and at one or two further ones, which are not the same (meters_of() in flow.c). Returns
// 0, and has changed nothing, for any other packet. Without a list of them: that took 70 instructions more.
static __rte_always_inline int all_green(
	struct rule_state *s, const struct state_meters *m, uint64_t time, uint32_t length)
{
	struct meter_state *first = &meter_states[m->index[0]], *second = NULL;
	struct meter own = s->meter, after[2];

	if (m->index[1] != STATE_METER_NONE)
		second = &meter_states[m->index[1]];
	if (unlikely(((s->action.flags & ACTION_POLICED) &&
			     !is_green(s->action.policer, &s->meter, time, length, &own)) ||
		     !is_green(first->policer, &first->meter, time, length, &after[0]) ||
		     (second != NULL && !is_green(second->policer, &second->meter, time, length, &after[1]))))
		return 0;
	s->meter = own;
	first->meter = after[0];
	if (second != NULL)
		second->meter = after[1];
	return 1;
}

// The same where rule_further says which meters there are.
static __rte_noinline int all_green_of_rule(struct rule_state *s, uint64_t time, uint32_t length)
{
	uint8_t own = (s->action.flags & ACTION_POLICED) != 0;
	struct metered meter[METERS_MAX] = {{.meter = &s->meter, .policer = s->action.policer}};

	return meters_green(meter, meters_of_rule(&session_pools.further[s->rule], own, meter), time, length);
}

// police() for a rule with several meters.
static __rte_noinline int police_several(
	const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, const uint8_t *ip)
{
	const struct state_meters m = rule_state_meters(s);
	uint64_t time = w->now << METER_TIME_SHIFT;

	if (likely(m.index[0] != STATE_METER_NONE) ? likely(all_green(s, &m, time, length))
						   : all_green_of_rule(s, time, length))
		return 1;
	return police_all_closely(&session_pools.rule[s->rule], time, length, ip_traffic_class(version, ip));
}

// More credit. A routed packet of no session has all that it wants.
static __rte_noinline int borrow(struct rule_state *s, uint32_t length)
{
	if (s->rule != RULE_NONE)
		return usage_borrow(&session_pools.rule[s->rule], length, (s->action.flags & ACTION_UPLINK) != 0);
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
	} else if ((s->action.flags & ACTION_POLICED) && unlikely(!police(w, s, length, version, ip))) {
		return 0;
	}
	rule_state_pay(s, w->now, length, version);
	return 1;
}

#endif
