// SPDX-License-Identifier: Apache-2.0
// session-tunnel: finds the mobile session of a G-PDU by its F-TEID; strips the outer headers.
#include "core/trace.h"
#include "session/lookup.h"

static uint16_t resume; // edge of handover-rx that leads here

// Row G14: gtpu-control answers an unknown F-TEID with an Error Indication within the rate limit, and counts it. A
// known F-TEID without a PDR for the packet gets no answer, which would kill a live bearer (row G16).
static __rte_always_inline rte_edge_t admit(struct worker *w, struct rte_mbuf *m, const struct rule *first, void *own)
{
	if (likely(first != NULL))
		return SESSION_UPLINK;
	if (packet_of(m)->instance < MAX_INSTANCES && !trace_is_hypothetical(m))
		instance_counters[w->id].unknown_teid[packet_of(m)->instance]++;
	return SESSION_ASIDE;
}

static uint16_t session_tunnel(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	static const struct session_way way = {
		.ask_key = session_ask_fteid, .ask_rule = session_ask_rule, .admit = admit, .tunnel = 1, .entries = 1};

	return session_run(graph, node, objs, n, &way, NULL, resume);
}

static struct rte_node_register session_tunnel_node = {
	.name = "session-tunnel",
	.process = session_tunnel,
	.nb_edges = SESSION_EDGES,
	.next_nodes = {SESSION_NEXT_NODES("gtpu-control")},
};
NODE_REGISTER(session_tunnel_node)
NODE_ARC("lookup-tunnel", "session-tunnel")

RTE_INIT(session_tunnel_resume)
{
	resume = resume_register("session-tunnel");
}
