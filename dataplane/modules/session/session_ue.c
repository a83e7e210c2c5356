// SPDX-License-Identifier: Apache-2.0
// session-ue: finds a mobile session by its UE's address: the destination, or the source where the instance emulates a
// radio network. The longest prefix of all sessions wins. A packet without a session is routed, unless its address is
// of the instance's own pools.
#include "core/trace.h"
#include "session/lookup.h"

DROP_REASON(drop_unknown, "ue-unknown",
	"no session has this UE address of the network instance's pools, or of a NAT44 mapping. See show session, "
	"instances[].pools")
DROP_REASON(drop_between, "ue-to-ue",
	"the network instance does not let UEs speak to each other. See ue_to_ue of the network instance")

static uint16_t resume; // edge of handover-rx that leads here

struct side {
	uint16_t instance;
	uint8_t source; // 1: by their source
	uint8_t is_known;
};

static inline void look_at_instance(struct side *side, uint16_t instance)
{
	if (likely(side->is_known && side->instance == instance))
		return;
	const struct instance *n = instance_get(instance);
	side->instance = instance;
	side->source = n != NULL && n->lookup == API_LOOKUP_SOURCE;
	side->is_known = 1;
}

static inline const uint8_t *ue_address(struct rte_mbuf *m, const struct side *side)
{
	const struct packet *pkt = packet_of(m);
	uint16_t at = pkt->ip_version == 4 ? (side->source ? 12 : 16) : (side->source ? 8 : 24);

	return rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3 + at);
}

static __rte_always_inline void ask_key(struct lookup *l, struct rte_mbuf *m, void *own)
{
	struct side *side = own;
	const struct ue_lengths *lengths = __atomic_load_n(&session_tables.lengths, __ATOMIC_ACQUIRE);
	const struct packet *pkt = packet_of(m);
	int six = pkt->ip_version == 6;

	look_at_instance(side, pkt->instance);
	l->key = ue_key((uint8_t)side->instance, side->source, six ? 6 : 4, ue_address(m, side),
		lengths->count[six] ? lengths->prefix[six][0] : 0);
	l->hash = narrow_hash(session_tables.key, l->key);
	narrow_prefetch(session_tables.key, l->hash);
}

// The longest prefix is not found: shorter ones, then PDRs without an instance.
static __rte_noinline uint64_t prefix_fallback(struct rte_mbuf *m, struct side *side)
{
	const struct ue_lengths *lengths = __atomic_load_n(&session_tables.lengths, __ATOMIC_ACQUIRE);
	int six = packet_of(m)->ip_version == 6;

	look_at_instance(side, packet_of(m)->instance);
	const uint8_t *address = ue_address(m, side);
	for (uint8_t i = 0; i < lengths->count[six]; i++)
		for (int any = 0; any < 2; any++) {
			struct lookup l;

			l.key = ue_key(any ? 0xff : (uint8_t)side->instance, side->source, six ? 6 : 4, address,
				lengths->prefix[six][i]);
			l.hash = narrow_hash(session_tables.key, l.key);
			l.value = session_ask_rule(&l, m, side);
			if (l.value != UINT64_MAX)
				return l.value;
		}
	return UINT64_MAX;
}

static __rte_always_inline uint64_t ask_rule(struct lookup *l, struct rte_mbuf *m, void *own)
{
	uint64_t value = session_ask_rule(l, m, own);

	// flow-input looks up destinations, and a session with a longer prefix may come.
	if (unlikely(value == UINT64_MAX || ((const struct side *)own)->source))
		l->key = 0;
	return likely(value != UINT64_MAX) ? value : prefix_fallback(m, own);
}

static rte_edge_t unknown(struct worker *w, struct rte_mbuf *m, struct side *side)
{
	struct packet *pkt = packet_of(m);
	const struct instance *n = instance_get(pkt->instance);

	look_at_instance(side, pkt->instance);
	session_view_of(m)->rule = NULL;
	// A NAT44 mapping is a session's: with the inside address the packet can go nowhere else.
	int mapped = pkt->ip_version == 4 && (pkt->translated & PACKET_DESTINATION_TRANSLATED) != 0;
	if (n == NULL || (!mapped && !instance_owns(n, pkt->ip_version, ue_address(m, side))))
		return SESSION_ASIDE;
	if (!trace_is_hypothetical(m))
		instance_counters[w->id].unknown_ue[pkt->instance]++;
	return packet_leave(m, &drop_unknown, SESSION_DROP);
}

// A packet from another UE has that UE's rule in its session view (ip-forward).
static int between_ues(struct rte_mbuf *m)
{
	const struct instance *n = instance_get(packet_of(m)->instance);

	return session_view_of(m)->rule != NULL && n != NULL && (n->flags & API_INSTANCE_NO_UE_TO_UE);
}

static __rte_always_inline rte_edge_t admit(struct worker *w, struct rte_mbuf *m, const struct rule *first, void *own)
{
	if (unlikely(between_ues(m)))
		return packet_leave(m, &drop_between, SESSION_DROP);
	return likely(first != NULL) ? SESSION_UPLINK : unknown(w, m, own);
}

static uint16_t session_ue(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	static const struct session_way way = {.ask_key = ask_key, .ask_rule = ask_rule, .admit = admit, .entries = 1};
	struct side side = {.is_known = 0};

	return session_run(graph, node, objs, n, &way, &side, resume);
}

static struct rte_node_register session_ue_node = {
	.name = "session-ue",
	.process = session_ue,
	.nb_edges = SESSION_EDGES,
	.next_nodes = {SESSION_NEXT_NODES("ip-forward")},
};
NODE_REGISTER(session_ue_node)
NODE_ARC("lookup-ue", "session-ue")

RTE_INIT(session_ue_resume)
{
	resume = resume_register("session-ue");
}
