// SPDX-License-Identifier: Apache-2.0
// The policer nodes' words for traced packets: colour and tokens of each meter, quotas. A hypothetical packet takes no
// tokens and is not counted.
#include "rule/words.h"
#include "core/node.h"
#include "meter/several.h"
#include "policer/policer_node.h"
#include "rule/view.h"
#include "usage/usage.h"

static const char *const colour_name[RTE_COLORS] = {"green", "yellow", "red"};
static const char *const action_name[] = {
	[API_COLOUR_PASS] = "pass", [API_COLOUR_DROP] = "drop", [API_COLOUR_REMARK] = "remark"};

// Bytes that a bucket holds.
static uint64_t tokens(const struct meter_bucket *b, uint64_t lack)
{
	return b->cost == 0 ? 0
			    : (uint64_t)(((unsigned __int128)(b->burst - RTE_MIN(lack, b->burst)) << METER_COST_SHIFT) /
					 b->cost);
}

static int say_meter(struct trace_text *to, const struct policer_profile *p, const struct meter *meter,
	struct worker *w, struct rte_mbuf *m)
{
	struct meter_look l = meter_look_at(
		p, meter, w->now << METER_TIME_SHIFT, packet_of(m)->length, meter_came(session_view_of(m)->dscp));

	trace_say(to, "; meter: %s, %s; %lu bytes of committed and %lu of %s tokens for a packet of %u",
		colour_name[l.colour], action_name[p->action[l.colour]], tokens(&p->committed, l.lack[0]),
		tokens(&p->peak, l.lack[1]), p->type == API_SRTCM ? "excess" : "peak", packet_of(m)->length);
	return p->action[l.colour] == API_COLOUR_DROP;
}

// 1 when a meter drops it.
static int say_meters(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const struct rule *r)
{
	struct metering meter[METERS_MAX];
	int drops = 0;

	if (!(r->flags & RULE_FURTHER_METERS)) {
		const struct policer_profile *p = policer_profile(r->action.policer);

		return (r->action.flags & ACTION_POLICED) && p != NULL &&
		       say_meter(to, p, &rule_state_of(r)->meter, w, m);
	}
	uint8_t n = meters_look(
		r, w->now << METER_TIME_SHIFT, packet_of(m)->length, meter_came(session_view_of(m)->dscp), meter);
	for (uint8_t i = 0; i < n; i++)
		drops |= meter[i].profile != NULL && say_meter(to, meter[i].profile, meter[i].meter, w, m);
	return drops;
}

static int say_quota(struct trace_text *to, const struct rule *r)
{
	int blocked =
		r->flags & RULE_FURTHER_METERS ? usage_rule_blocked(r) : r->urr != RULE_NONE && usage_blocked(r->urr);

	if (r->urr == RULE_NONE)
		trace_say(to, "; no URR");
	else if (blocked)
		trace_say(to, "; the quota of a URR is used up");
	else
		trace_say(to, "; URRs count it");
	return blocked;
}

static void before(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;

	trace_say(to, "PDR %u", session_pools.match[rule_index(r)].pdr);
	if (!(r->action.flags & ACTION_POLICED) && !(r->flags & RULE_FURTHER_METERS))
		trace_say(to, "; no meter");
	say_meters(to, w, m, r);
	say_quota(to, r);
}

static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m, int uplink)
{
	const struct rule *r = session_view_of(m)->rule;
	struct trace_text unsaid = {0};

	// As the node: of several meters and URRs, the quotas first.
	if ((r->flags & RULE_FURTHER_METERS) && usage_rule_blocked(r))
		return policer_leave_quota(m);
	if (say_meters(&unsaid, w, m, r))
		return policer_leave(m, uplink);
	if (say_quota(&unsaid, r))
		return policer_leave_quota(m);
	return session_exit(m);
}

static int foresee_uplink(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(to, w, m, 1);
}

static int foresee_downlink(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(to, w, m, 0);
}

TRACE_STAGE("policer-uplink", .before = before, .foresee = foresee_uplink, .single = 1)
TRACE_STAGE("policer-downlink", .before = before, .foresee = foresee_downlink, .single = 1)
