// SPDX-License-Identifier: Apache-2.0
// policer-uplink and policer-downlink: the rule's meter, its colour actions, and the counters of the rule.
//
// Every packet passes, policed or not, because this is where a rule's packets and bytes are counted: what is forwarded, in
// bytes of IP packets as packet.length says.
#include "core/node.h"
#include "policer/meter.h"
#include "policer/policer.h"
#include "session/session.h"

// The first three are values of enum api_outer: the rule's outer header names the way on.
enum { EDGE_IP, EDGE_GTPU, EDGE_ACCESS, EDGE_DROP, EDGE_COUNT };
static_assert(
	(int)EDGE_IP == API_OUTER_NONE && (int)EDGE_GTPU == API_OUTER_GTPU && (int)EDGE_ACCESS == API_OUTER_ENDPOINT,
	"edges are numbered as outer headers");

DROP_REASON(drop_uplink, "policer-uplink", "the uplink policer drops packets of this colour")
DROP_REASON(drop_downlink, "policer-downlink", "the downlink policer drops packets of this colour")

// Returns 0 when the packet is to be dropped.
static __rte_always_inline int police(struct worker *w, struct rte_mbuf *m, const struct rule *r, struct rule_state *s)
{
	const struct policer_profile *p = policer_profile(r->policer);
	struct packet *pkt = packet_of(m);

	if (unlikely(p == NULL))
		return 1; // deleted together with its sessions, under our feet
	enum rte_color colour = meter_colour(p, s, w->now, pkt->length);
	if (likely(p->action[colour] == API_COLOUR_PASS))
		return 1;
	if (p->action[colour] == API_COLOUR_DROP)
		return 0;
	meter_remark(rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3), pkt->ip_version, p->dscp[colour]);
	session_view_of(m)->dscp = p->dscp[colour];
	return 1;
}

static __rte_always_inline rte_edge_t run(struct worker *w, struct rte_mbuf *m, const struct reason *reason)
{
	const struct rule *r = session_view_of(m)->rule;
	struct rule_state *s = rule_state_of(r);

	if ((r->flags & RULE_POLICED) && unlikely(!police(w, m, r, s))) {
		s->policed++;
		return packet_leave(m, reason, EDGE_DROP);
	}
	s->packets++;
	s->bytes += packet_of(m)->length;
	return r->outer;
}

static __rte_always_inline rte_edge_t run_uplink(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return run(w, m, &drop_uplink);
}

static __rte_always_inline rte_edge_t run_downlink(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return run(w, m, &drop_downlink);
}

static uint16_t process_uplink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, run_uplink);
}

static uint16_t process_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, run_downlink);
}

static struct rte_node_register policer_uplink = {
	.name = "policer-uplink",
	.process = process_uplink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_IP] = "ip-forward",
		[EDGE_GTPU] = "gtpu-encap",
		[EDGE_ACCESS] = "access-encap",
		[EDGE_DROP] = "drop"},
};
NODE_REGISTER(policer_uplink)

static struct rte_node_register policer_downlink = {
	.name = "policer-downlink",
	.process = process_downlink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_IP] = "ip-forward",
		[EDGE_GTPU] = "gtpu-encap",
		[EDGE_ACCESS] = "access-encap",
		[EDGE_DROP] = "drop"},
};
NODE_REGISTER(policer_downlink)
