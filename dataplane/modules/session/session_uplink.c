// SPDX-License-Identifier: Apache-2.0
// session-uplink: finds the subscriber of a packet from the access side by port, tags, PPPoE session and MAC; strips
// the access encapsulation.
#include "rule/endpoint.h"
#include "session/lookup.h"

DROP_REASON(drop_unknown, "subscriber-unknown",
	"no session has this port, tags, PPPoE session and MAC address. Tags, PPPoE id, MAC address and port must all "
	"fit: see show session, show subscriber")

static uint16_t resume; // edge of handover-rx that leads here

static __rte_always_inline void ask_key(struct lookup *l, struct rte_mbuf *m, void *own)
{
	const struct endpoint_view *e = endpoint_view_of(m);

	endpoint_key(&l->exact, packet_of(m)->port_in, e->s_tag, e->c_tag, e->pppoe_session,
		rte_pktmbuf_mtod(m, const uint8_t *) + 6);
	l->exact_hash = exact_hash(session_tables.endpoint, &l->exact);
	exact_prefetch(session_tables.endpoint, l->exact_hash);
}

static __rte_always_inline uint64_t ask_rule(struct lookup *l, struct rte_mbuf *m, void *own)
{
	uint64_t value;

	if (unlikely(!exact_lookup(session_tables.endpoint, l->exact_hash, &l->exact, &value) ||
		     value == NARROW_RESERVED))
		return UINT64_MAX;
	rte_prefetch0(&session_pools.rule[(uint32_t)value]);
	return value;
}

static __rte_always_inline rte_edge_t admit(struct worker *w, struct rte_mbuf *m, const struct rule *first, void *own)
{
	if (likely(first != NULL))
		return SESSION_UPLINK;
	if (endpoint_signs_in(packet_of(m)->port_in, endpoint_view_of(m)))
		return packet_leave(m, &punt_first_packet, SESSION_PUNT);
	return packet_leave(m, &drop_unknown, SESSION_DROP);
}

static uint16_t session_uplink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	static const struct session_way way = {
		.ask_key = ask_key, .ask_rule = ask_rule, .admit = admit, .echo = 1, .tuples = 1, .endpoint = 1};

	return session_run(graph, node, objs, n, &way, NULL, resume);
}

static struct rte_node_register session_uplink_node = {
	.name = "session-uplink",
	.process = session_uplink,
	.nb_edges = SESSION_EDGES,
	.next_nodes = {SESSION_NEXT_NODES("icmp-echo")},
};
NODE_REGISTER(session_uplink_node)
NODE_ARC("lookup-uplink", "session-uplink")

RTE_INIT(session_uplink_resume)
{
	resume = resume_register("session-uplink");
}
