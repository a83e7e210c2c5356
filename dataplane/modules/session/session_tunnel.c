// SPDX-License-Identifier: Apache-2.0
// session-tunnel: finds the mobile session of a G-PDU by its F-TEID, and the PDR among those of the F-TEID; strips the outer
// headers.
#include "rule/view.h"
#include "session/mobile.h"

static uint16_t resume; // edge of handover-rx that leads here

// Row G14: an unknown F-TEID is answered with an Error Indication within the rate limit, and counted, by gtpu-control. One that is
// known and has no PDR for the packet is not answered: it would kill a live bearer (row G16).
static rte_edge_t unknown(struct worker *w, struct rte_mbuf *m)
{
	uint16_t instance = packet_of(m)->instance;

	if (instance < MAX_INSTANCES)
		instance_counters[w->id].unknown_teid[instance]++;
	return MOBILE_UNKNOWN;
}

static __rte_always_inline rte_edge_t decide(struct worker *w, struct mobile_lookup *l, struct rte_mbuf *m, void *own)
{
	if (unlikely(l->first == NULL))
		return unknown(w, m);
	if (unlikely(l->first->worker != w->id)) {
		worker_hand_over(w, l->first->worker, resume, m);
		return MOBILE_GONE;
	}
	return mobile_decide(w, l, m, tunnel_view_of(m)->qfi, 1);
}

static __rte_always_inline void ask_key(struct mobile_lookup *l, struct rte_mbuf *m, void *own)
{
	const struct tunnel_view *t = tunnel_view_of(m);

	l->key = fteid_key(t->teid, t->local);
	l->hash = narrow_hash(session_tables.key, l->key);
	narrow_prefetch(session_tables.key, l->hash);
}

// An F-TEID is there or not.
static __rte_always_inline uint64_t prefix_fallback(struct rte_mbuf *m, void *own)
{
	return UINT64_MAX;
}

static __rte_always_inline uint8_t qfi_of(struct rte_mbuf *m)
{
	return tunnel_view_of(m)->qfi;
}

static uint16_t session_tunnel(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		mobile_run(worker_self(), (struct rte_mbuf **)objs + base, count, next, NULL, ask_key, prefix_fallback,
			qfi_of, decide);
		node_dispatch_except(graph, node, objs + base, next, count, MOBILE_GONE);
	}
	return n;
}

static struct rte_node_register session_tunnel_node = {
	.name = "session-tunnel",
	.process = session_tunnel,
	.nb_edges = MOBILE_EDGES,
	.next_nodes = {MOBILE_NEXT_NODES, [MOBILE_UNKNOWN] = "gtpu-control"},
};
NODE_REGISTER(session_tunnel_node)
NODE_ARC("lookup-tunnel", "session-tunnel")

RTE_INIT(session_tunnel_resume)
{
	resume = resume_register("session-tunnel");
}
