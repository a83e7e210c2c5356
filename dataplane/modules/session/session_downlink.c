// SPDX-License-Identifier: Apache-2.0
// session-downlink: finds the session of a packet from the core side. First an exact match on TEID and inner 5-tuple in this
// worker's flow table; a miss goes by F-TEID to the session's PDRs, and the decision is installed as a flow. Strips the
// outer headers.
#include "core/control.h"
#include "core/node.h"
#include "session/match.h"

enum { EDGE_DOWNLINK, EDGE_CONTROL, EDGE_DROP, EDGE_GONE, EDGE_COUNT };

#define WINDOW 8

static struct {
	uint16_t resume;
} downlink;

static void install(struct worker *w, uint32_t hash, const struct exact_key *k, const struct rule *r)
{
	struct exact *flows = session_tables.flow[w->id];
	uint64_t value = rule_value(rule_index(r));
	int evicted;

	if (unlikely(!flow_worthy(value)))
		return;
	exact_add_evict(flows, hash, k, value, (uint32_t)(w->now >> 20), &evicted);
	w->flow_inserts++;
	w->flow_evictions += (uint32_t)evicted;
	w->flows = exact_count(flows);
}

// The flow is new, or its rule has changed. *known says whether the F-TEID exists: an unknown one is answered with an Error
// Indication, a known one without a matching PDR is not (it would kill a live bearer, row G16).
static struct rule *slow_path(struct worker *w, struct rte_mbuf *m, const uint8_t *ip, int *known, struct rule **first)
{
	const struct tunnel_view *t = tunnel_view_of(m);
	uint64_t key = fteid_key(t->teid, t->local);
	uint64_t value;
	int stranger;

	*known = narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value);
	if (!*known)
		return NULL;
	*first = &session_pools.rule[(uint32_t)value];
	if ((*first)->worker != w->id)
		return NULL;
	return rule_classify(*first, packet_of(m), ip, t->qfi, &stranger);
}

static rte_edge_t leave(struct worker *w, struct rte_mbuf *m, int known, const struct rule *first)
{
	if (!known)
		return EDGE_CONTROL; // gtpu-control answers with an Error Indication and counts
	if (first->worker != w->id) {
		worker_hand_over(w, first->worker, downlink.resume, m);
		return EDGE_GONE;
	}
	return packet_leave(m, session_reason(WHY_NO_PDR, 0), EDGE_DROP);
}

static rte_edge_t decide(struct worker *w, struct rte_mbuf *m, struct rule *r, uint32_t hash, const struct exact_key *k)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);

	if (unlikely(r == NULL)) {
		struct rule *first = NULL;
		int known;

		r = slow_path(w, m, ip, &known, &first);
		if (r == NULL)
			return leave(w, m, known, first);
		install(w, hash, k, r);
	}
	if (unlikely((r->flags & (RULE_FORWARD | RULE_GATE_CLOSED)) != RULE_FORWARD))
		return packet_leave(m, session_reason(r->flags & RULE_GATE_CLOSED ? WHY_GATE : WHY_FAR, 0), EDGE_DROP);
	rte_prefetch0(rule_state_of(r)); // for the policer, a vector later
	uint16_t outer = pkt->l3;
	uint8_t qfi = tunnel_view_of(m)->qfi;
	struct session_view *v = session_view_of(m); // takes the tunnel view's place
	v->rule = r;
	v->qfi = qfi;
	v->pdu_type = API_PDU_NONE;
	v->relayed = 0; // the tunnel ends here
	v->uplink = 0;
	v->dscp = pkt->ip_version == 4 ? ip[1] >> 2 : (uint8_t)((ip[0] << 2 & 0x3c) | ip[1] >> 6);
	rte_pktmbuf_adj(m, outer);
	pkt->l3 = 0;
	pkt->l4 -= outer;
	return EDGE_DOWNLINK;
}

static uint32_t ask_flow(const struct exact *flows, struct rte_mbuf *m, struct exact_key *k)
{
	const struct tunnel_view *t = tunnel_view_of(m);
	const struct packet *pkt = packet_of(m);

	flow_key(k, t->teid, t->local, t->qfi, pkt, rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3));
	uint32_t hash = exact_hash(flows, k);
	exact_prefetch(flows, hash);
	return hash;
}

static uint64_t ask_rule(const struct exact *flows, uint32_t hash, const struct exact_key *k)
{
	uint64_t value;

	if (unlikely(!exact_lookup(flows, hash, k, &value)))
		return UINT64_MAX;
	rte_prefetch0(&session_pools.rule[(uint32_t)value]);
	return value;
}

// As in session-uplink, with one stage more: the rule's generation is known only when its line is here.
static void run_vector(struct worker *w, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next)
{
	const struct exact *flows = session_tables.flow[w->id];
	struct exact_key key[NODE_CHUNK];
	uint32_t hash[NODE_CHUNK];
	uint64_t value[NODE_CHUNK];

	for (uint32_t i = 0; i < n + 2u * WINDOW; i++) {
		if (i >= 2 * WINDOW) {
			uint32_t k = i - 2 * WINDOW;
			struct rule *r = value[k] == UINT64_MAX ? NULL : rule_of_value(value[k]);

			next[k] = decide(w, pkts[k], r, hash[k], &key[k]);
		}
		if (i >= WINDOW && i - WINDOW < n)
			value[i - WINDOW] = ask_rule(flows, hash[i - WINDOW], &key[i - WINDOW]);
		if (i < n)
			hash[i] = ask_flow(flows, pkts[i], &key[i]);
	}
}

static uint16_t session_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		run_vector(worker_self(), (struct rte_mbuf **)objs + base, count, next);
		node_dispatch_except(graph, node, objs + base, next, count, EDGE_GONE);
	}
	return n;
}

static struct rte_node_register session_downlink_node = {
	.name = "session-downlink",
	.process = session_downlink,
	.nb_edges = EDGE_GONE,
	.next_nodes = {[EDGE_DOWNLINK] = "@downlink", [EDGE_CONTROL] = "gtpu-control", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(session_downlink_node)
NODE_ARC("lookup-downlink", "session-downlink")

RTE_INIT(session_downlink_resume)
{
	downlink.resume = resume_register("session-downlink");
}
