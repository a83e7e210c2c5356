// SPDX-License-Identifier: Apache-2.0
// session-downlink: finds the wireline session of a G-PDU. First an exact match on TEID and inner 5-tuple in this
// worker's flow table; a miss goes by F-TEID to the session's PDRs, and the decision is installed as a flow. Strips
// the outer headers.
#include "session/lookup.h"

static uint16_t resume; // edge of handover-rx that leads here

static __rte_always_inline void ask_key(struct lookup *l, struct rte_mbuf *m, void *own)
{
	const struct tunnel_view *t = tunnel_view_of(m);

	session_flow_key(l, own, m, t->teid, t->local, t->qfi);
}

static __rte_always_inline uint64_t ask_rule(struct lookup *l, struct rte_mbuf *m, void *own)
{
	uint64_t value;

	if (unlikely(!exact_lookup(own, l->exact_hash, &l->exact, &value)))
		return UINT64_MAX;
	rte_prefetch0(&session_pools.rule[(uint32_t)value]);
	return value;
}

// An unknown F-TEID is answered with an Error Indication, and counted, by gtpu-control. One that is known and has no
// PDR for the packet is not answered: it would kill a live bearer (row G16).
static __rte_always_inline rte_edge_t admit(struct worker *w, struct rte_mbuf *m, const struct rule *first, void *own)
{
	return likely(first != NULL) ? SESSION_UPLINK : SESSION_ASIDE;
}

static uint16_t session_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	static const struct session_way way = {
		.ask_key = ask_key, .ask_rule = ask_rule, .admit = admit, .tunnel = 1, .by_flow = 1, .tuples = 1};

	return session_run(graph, node, objs, n, &way, session_tables.flow[worker_self()->id], resume);
}

static struct rte_node_register session_downlink_node = {
	.name = "session-downlink",
	.process = session_downlink,
	.nb_edges = SESSION_EDGES,
	.next_nodes = {SESSION_NEXT_NODES("gtpu-control")},
};
NODE_REGISTER(session_downlink_node)
NODE_ARC("lookup-downlink", "session-downlink")

RTE_INIT(session_downlink_resume)
{
	resume = resume_register("session-downlink");
}
