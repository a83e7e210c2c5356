// SPDX-License-Identifier: Apache-2.0
#include "forward/account.h"

int account_meters(const struct rule *r, uint64_t time, uint32_t length, uint8_t *dscp, int counts)
{
	struct metering meter[METERS_MAX];
	uint8_t n = meters_look(r, time, length, meter_came(*dscp), meter);

	for (uint8_t i = 0; i < n; i++) {
		if (meter_says(&meter[i]) != API_COLOUR_DROP)
			continue;
		if (counts && meter[i].policed != NULL)
			++*meter[i].policed;
		return 0;
	}
	meters_pass(meter, n, time, length);
	for (uint8_t i = 0; i < n; i++)
		if (meter_says(&meter[i]) == API_COLOUR_REMARK)
			*dscp = meter[i].profile->dscp[meter[i].colour];
	return 1;
}

int account_closely(struct rule_state *s, uint64_t time, uint32_t length, uint8_t version, uint8_t *ip)
{
	const struct policer_profile *p = policer_profile(s->action.policer);

	if (p == NULL)
		return 0;
	enum rte_color came = meter_came(ip_traffic_class(version, ip) >> 2);
	struct meter_look look = meter_look_at(p, &s->meter, time, length, came);

	if (p->action[look.colour] == API_COLOUR_DROP)
		return 0;
	meter_pass(p, &s->meter, time, &look);
	if (p->action[look.colour] == API_COLOUR_REMARK)
		ip_dscp_set(version, ip, p->dscp[look.colour]);
	return 1;
}

static __rte_always_inline int is_green(
	uint32_t policer, const struct meter *meter, uint64_t time, uint32_t length, struct meter *after)
{
	const struct policer_profile *p = policer_profile(policer);

	return likely(p != NULL && p->quick_pass) && meter_is_green(p, meter, time, length, after);
}

// Green at the state's own meter and at one or two different further ones (rule_state_meters()). Else returns 0 and
// changes nothing. A list of them took 70 instructions more.
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

static __rte_noinline int all_closely(
	const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, uint8_t *ip)
{
	uint8_t dscp = ip_traffic_class(version, ip) >> 2, mark = dscp;

	if (!account_meters(&session_pools.rule[s->rule], w->now << METER_TIME_SHIFT, length, &mark, 0))
		return 0;
	if (mark != dscp)
		ip_dscp_set(version, ip, mark);
	return 1;
}

int account_several(const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, uint8_t *ip)
{
	const struct state_meters m = rule_state_meters(s);
	uint64_t time = w->now << METER_TIME_SHIFT;

	if (likely(m.index[0] != STATE_METER_NONE) ? likely(all_green(s, &m, time, length))
						   : all_green_of_rule(s, time, length))
		return 1;
	return all_closely(w, s, length, version, ip);
}

int account_borrow(struct rule_state *s, uint32_t length)
{
	if (s->rule != RULE_NONE)
		return usage_borrow(&session_pools.rule[s->rule], length, (s->action.flags & ACTION_UPLINK) != 0);
	s->credit = UINT32_MAX;
	return 1;
}
