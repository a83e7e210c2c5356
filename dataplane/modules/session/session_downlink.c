// SPDX-License-Identifier: Apache-2.0
// session-downlink: finds the wireline session of a G-PDU by its F-TEID. Strips the outer headers.
#include "session/lookup.h"

static uint16_t resume; // edge of handover-rx that leads here

// gtpu-control answers an unknown F-TEID with an Error Indication, and counts it. A known F-TEID without a PDR for the
// packet gets no answer, which would kill a live bearer (row G16).
static __rte_always_inline rte_edge_t admit(struct worker *w, struct rte_mbuf *m, const struct rule *first, void *own)
{
	return likely(first != NULL) ? SESSION_UPLINK : SESSION_ASIDE;
}

static uint16_t session_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	static const struct session_way way = {
		.ask_key = session_ask_fteid, .ask_rule = session_ask_rule, .admit = admit, .tunnel = 1, .tuples = 1};

	return session_run(graph, node, objs, n, &way, NULL, resume);
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
