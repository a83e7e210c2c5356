// SPDX-License-Identifier: Apache-2.0
// access-punt: what access ports have for the control plane, as much of it as the limits allow.
#include "core/trace.h"
#include "host/host.h"
#include "rule/session.h"
#include "rule/view.h"

enum { EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

static rte_edge_t limit(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct endpoint_view *e = endpoint_view_of(m);
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;
	uint16_t port = packet_of(m)->port_in;
	int known = session_endpoint_known(port, e, mac) || host_ppp_begins(port, e, mac);

	return host_within_limits(w, m, known) ? EDGE_PUNT : EDGE_DROP;
}

static uint16_t access_punt(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, limit);
}

static struct rte_node_register access_punt_node = {
	.name = "access-punt",
	.process = access_punt,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_PUNT] = "punt", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(access_punt_node)

TRACE_STAGE("access-punt", .pure = 1)
