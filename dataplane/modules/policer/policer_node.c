// SPDX-License-Identifier: Apache-2.0
// policer-uplink and policer-downlink: the rule's meters, their colour actions, and the counters of the rule and its
// URRs.
//
// Every packet passes, policed or not: packets and bytes (packet.length, IP) are counted here. One meter and one URR
// are the straight way; more are one branch away (RULE_FURTHER_METERS).
#include "policer/policer_node.h"
#include "core/node.h"
#include "forward/account.h"
#include "meter/policer.h"
#include "rule/view.h"
#include "usage/usage.h"

enum { EDGE_DROP = SESSION_EXIT_COUNT, EDGE_COUNT };

DROP_REASON(drop_uplink, "policer-uplink",
	"the uplink policer drops packets of this colour. See show rule, columns MBR and DROPPED: the subscriber's "
	"rate")
DROP_REASON(drop_downlink, "policer-downlink",
	"the downlink policer drops packets of this colour. See show rule, columns MBR and DROPPED: the subscriber's "
	"rate")

rte_edge_t policer_leave(struct rte_mbuf *m, int uplink)
{
	return packet_leave(m, uplink ? &drop_uplink : &drop_downlink, EDGE_DROP);
}

rte_edge_t policer_leave_quota(struct rte_mbuf *m)
{
	return packet_leave(m, usage_quota_reason(), EDGE_DROP);
}

static rte_edge_t stopped(struct rte_mbuf *m, const struct rule *r)
{
	rule_account_of(r)->dropped++;
	return policer_leave_quota(m);
}

static void remark(struct rte_mbuf *m, uint8_t dscp)
{
	struct packet *pkt = packet_of(m);

	ip_dscp_set(pkt->ip_version, rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3), dscp);
	session_view_of(m)->dscp = dscp;
}

// Returns 0 when the packet is to be dropped.
static __rte_always_inline int police(struct worker *w, struct rte_mbuf *m, const struct rule *r, struct rule_state *s)
{
	const struct policer_profile *p = policer_profile(r->action.policer);

	if (unlikely(p == NULL))
		return 1; // deleted together with its sessions, under our feet
	enum rte_color colour =
		meter_colour(p, &s->meter, w->now, packet_of(m)->length, meter_came(session_view_of(m)->dscp));
	if (likely(p->action[colour] == API_COLOUR_PASS))
		return 1;
	if (p->action[colour] == API_COLOUR_DROP)
		return 0;
	remark(m, p->dscp[colour]);
	return 1;
}

// Returns 0 when the packet is to be dropped.
static int police_all(struct worker *w, struct rte_mbuf *m, const struct rule *r)
{
	uint8_t dscp = session_view_of(m)->dscp, mark = dscp;

	if (!account_meters(r, w->now << METER_TIME_SHIFT, packet_of(m)->length, &mark, 1))
		return 0;
	if (mark != dscp)
		remark(m, mark);
	return 1;
}

// On the fast path's loan: else each new flow of a session would call back the loans of all its rules.
static rte_edge_t pay(struct worker *w, struct rte_mbuf *m, const struct rule *r)
{
	usage_pay(w, r, packet_of(m)->length, packet_of(m)->ip_version);
	return r->outer; // session_exit()
}

static __rte_noinline rte_edge_t run_more(
	struct worker *w, struct rte_mbuf *m, const struct rule *r, const struct reason *reason, int uplink)
{
	struct rule_account *a = rule_account_of(r);
	uint32_t length = packet_of(m)->length;
	int pays = usage_may_pay(r, length, uplink);

	if (!pays && usage_rule_blocked(r))
		return stopped(m, r);
	if (!pays)
		usage_rule_add(w, r, length, uplink, 1);
	if (!police_all(w, m, r)) {
		if (pays)
			usage_before_qos(w, r, length);
		usage_dropped(r, 1, length);
		return packet_leave(m, reason, EDGE_DROP);
	}
	if (pays)
		return pay(w, m, r);
	usage_rule_add(w, r, length, uplink, 0);
	rule_count(a, packet_of(m)->ip_version, length);
	return r->outer; // session_exit()
}

static __rte_always_inline rte_edge_t run(struct worker *w, struct rte_mbuf *m, const struct reason *reason, int uplink)
{
	struct rule *r = session_view_of(m)->rule;
	struct rule_account *a = rule_account_of(r);
	uint32_t length = packet_of(m)->length;

	if (unlikely(r->flags & RULE_FURTHER_METERS))
		return run_more(w, m, r, reason, uplink);
	if ((r->action.flags & ACTION_POLICED) && unlikely(!police(w, m, r, rule_state_of(r)))) {
		usage_dropped(r, 1, length);
		return packet_leave(m, reason, EDGE_DROP);
	}
	if (r->urr != RULE_NONE && usage_is_lent(r->urr) && usage_may_pay(r, length, uplink))
		return pay(w, m, r);
	if (r->urr != RULE_NONE && unlikely(!usage_count(w, r->urr, length, uplink)))
		return stopped(m, r);
	rule_count(a, packet_of(m)->ip_version, length);
	return r->outer; // session_exit()
}

static __rte_always_inline rte_edge_t run_uplink(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return run(w, m, &drop_uplink, 1);
}

static __rte_always_inline rte_edge_t run_downlink(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return run(w, m, &drop_downlink, 0);
}

NODE_EACH(process_uplink, run_uplink)

NODE_EACH(process_downlink, run_downlink)

static struct rte_node_register policer_uplink = {
	.name = "policer-uplink",
	.process = process_uplink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {SESSION_EXITS("uplink"), "drop"},
};
NODE_STAGE(policer_uplink, "uplink", .standard = 1)

static struct rte_node_register policer_downlink = {
	.name = "policer-downlink",
	.process = process_downlink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {SESSION_EXITS("downlink"), "drop"},
};
NODE_STAGE(policer_downlink, "downlink", .standard = 1)
