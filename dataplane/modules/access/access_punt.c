// SPDX-License-Identifier: Apache-2.0
// access-punt: what access ports have for the control plane, as much of it as the limits allow.
#include "core/trace.h"
#include "host/host.h"
#include "rule/endpoint.h"
#include "rule/session.h"

enum { EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

// Without a look-up where the reason says it: access-input and session-uplink have asked, and newcomers are nobody yet.
static int is_known(struct rte_mbuf *m)
{
	const struct endpoint_view *e = endpoint_view_of(m);
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;
	uint16_t reason = packet_of(m)->reason, port = packet_of(m)->port_in;

	if (reason == punt_ppp_control.id)
		return 1;
	if (reason == punt_first_packet.id || (reason == punt_pppoe_discovery.id && e->pppoe_session == 0))
		return 0;
	return session_endpoint_known(port, e, mac) || host_ppp_begins(port, e, mac);
}

static rte_edge_t limit(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return host_within_limits(w, m, is_known(m)) ? EDGE_PUNT : EDGE_DROP;
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
