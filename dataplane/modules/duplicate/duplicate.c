// SPDX-License-Identifier: Apache-2.0
// duplicate: copies a rule's packets by its duplicating parameters (TS 29.244 §5.2.3, DUPL), in GTP-U or unchanged, and
// by mirrors. The original goes on to the policer.
#include "core/node.h"
#include "core/trace.h"
#include "forward/tunnel.h"
#include "mirror/mirror.h"
#include "rule/far_more.h"
#include "rule/view.h"

DROP_REASON(drop_copy, "duplicate-impossible",
	"the copy of a packet could not be sent: its path is gone, or it is too long with outer headers. See the path "
	"of the duplicating parameters, MTU")

enum { EDGE_UPLINK, EDGE_DOWNLINK, EDGE_FORWARD, EDGE_OUTPUT, EDGE_PORT, EDGE_DROP, EDGE_COUNT };

// Copies that were not made since there were no packet buffers are no packets, and so in no sum; see `show node`.
static rte_edge_t send_copy(struct worker *w, struct rte_mbuf *copy, const struct far_more *more)
{
	// No session's packet from here on: the subscriber gets no ICMP error about it.
	session_view_of(copy)->rule = NULL;
	if (more->duplicate_outer == API_OUTER_NONE)
		return EDGE_FORWARD;
	return tunnel_copy(w, copy, &more->copy) ? EDGE_OUTPUT : packet_leave(copy, &drop_copy, EDGE_DROP);
}

static uint16_t duplicate(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	static const rte_edge_t edge_of[] = {
		[MIRROR_PORT] = EDGE_PORT, [MIRROR_IP] = EDGE_OUTPUT, [MIRROR_FAILED] = EDGE_DROP};
	struct worker *w = worker_self();

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];
		const struct far_more *more = far_more_of(session_view_of(m)->rule);
		struct rte_mbuf *copy =
			more == NULL || !more->duplicate ? NULL : rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);

		if (copy != NULL) {
			packet_originate_like(w, copy, m);
			rte_node_enqueue_x1(graph, node, send_copy(w, copy, more), copy);
		}
		enum mirror_way way = mirror_copy(w, m, &copy);
		if (way != MIRROR_NONE)
			rte_node_enqueue_x1(graph, node, edge_of[way], copy);
		rte_node_enqueue_x1(graph, node, session_view_of(m)->uplink ? EDGE_UPLINK : EDGE_DOWNLINK, m);
	}
	return n;
}

// Mirrors are not asked: which packet they copy depends on those before it.
static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct far_more *more = far_more_of(session_view_of(m)->rule);

	if (more == NULL || !more->duplicate)
		trace_say(to, "a mirror may copy it");
	else
		trace_say(to, "a copy is sent %s", more->duplicate_outer == API_OUTER_NONE ? "as IP" : "by GTP-U");
	return session_view_of(m)->uplink ? EDGE_UPLINK : EDGE_DOWNLINK;
}

TRACE_STAGE("duplicate", .foresee = foresee)

static struct rte_node_register duplicate_node = {
	.name = "duplicate",
	.process = duplicate,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_UPLINK] = "@uplink",
		[EDGE_DOWNLINK] = "@downlink",
		[EDGE_FORWARD] = "ip-forward",
		[EDGE_OUTPUT] = "ip-output",
		[EDGE_PORT] = "port-tx",
		[EDGE_DROP] = "drop"},
};
NODE_REGISTER(duplicate_node)
