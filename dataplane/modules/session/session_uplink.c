// SPDX-License-Identifier: Apache-2.0
// session-uplink: finds the subscriber of a packet from the access side by port, tags, PPPoE session and MAC, hands it to
// the subscriber's worker, checks the inner source address, and strips the access encapsulation.
#include "core/control.h"
#include "core/node.h"
#include "route/route.h"
#include "session/match.h"

DROP_REASON(drop_unknown, "subscriber-unknown", "no session has this port, tags, PPPoE session and MAC address")

enum { EDGE_UPLINK, EDGE_ECHO, EDGE_DROP, EDGE_GONE, EDGE_COUNT };

#define WINDOW 8 // packets between asking for a line and using it

static struct {
	uint16_t resume; // edge of handover-rx
	int drop_gtpu;
} uplink;

static struct rule *classify(struct rule *first, const struct packet *pkt, const uint8_t *ip, int *spoofed)
{
	*spoofed = 0;
	return likely(!(first->flags & RULE_SEVERAL_PDRS)) ? first : rule_classify(first, pkt, ip, 0xff, spoofed);
}

// To ourselves: only echo to the gateway address that the access port shows (rows G9, G10, A11).
static rte_edge_t to_gateway(struct rte_mbuf *m, const struct packet *pkt, const uint8_t *ip)
{
	const uint8_t *destination = pkt->ip_version == 4 ? ip + 16 : ip + 24;
	int icmp = pkt->protocol == IP_PROTOCOL_ICMP || pkt->protocol == IP_PROTOCOL_ICMP6;

	if (icmp && ip_is_gateway(pkt->ip_version, destination, pkt->port_in))
		return EDGE_ECHO;
	return packet_leave(m, session_reason(WHY_GATEWAY, 1), EDGE_DROP);
}

static rte_edge_t decide(struct worker *w, struct rte_mbuf *m, struct rule *first)
{
	struct packet *pkt = packet_of(m);
	struct endpoint_view *e = endpoint_view_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);

	if (unlikely(first == NULL))
		return packet_leave(m, &drop_unknown, EDGE_DROP);
	if (unlikely(first->worker != w->id)) {
		worker_hand_over(w, first->worker, uplink.resume, m);
		return EDGE_GONE;
	}
	int spoofed;
	struct rule *r = classify(first, pkt, ip, &spoofed);
	// Rows G11, G12: the source is the UE's IPv4 address or lies in its IPv6 prefix.
	if (unlikely(spoofed ||
		     (r != NULL && !rule_ue_matches(r, pkt->ip_version, ip + (pkt->ip_version == 4 ? 12 : 8)))))
		return packet_leave(m, session_reason(WHY_SPOOFED, 1), EDGE_DROP);
	if (unlikely(r == NULL))
		return packet_leave(m, session_reason(WHY_NO_PDR, 1), EDGE_DROP);
	if (unlikely((r->flags & (RULE_FORWARD | RULE_GATE_CLOSED)) != RULE_FORWARD))
		return packet_leave(m, session_reason(r->flags & RULE_GATE_CLOSED ? WHY_GATE : WHY_FAR, 1), EDGE_DROP);
	if (unlikely(uplink.drop_gtpu && pkt->protocol == IP_PROTOCOL_UDP && !(pkt->fragment & IP_FRAGMENT_LATER) &&
		     ip[pkt->l4 - pkt->l3 + 2] == 2152 >> 8 && ip[pkt->l4 - pkt->l3 + 3] == (2152 & 0xff)))
		return packet_leave(m, session_reason(WHY_GTPU, 1), EDGE_DROP);
	rte_prefetch0(rule_state_of(r)); // for the policer, a vector later
	uint16_t l2 = e->l2_length;
	struct session_view *v = session_view_of(m); // takes the endpoint view's place
	v->rule = r;
	v->qfi = r->qfi;
	v->pdu_type = API_PDU_NONE;
	v->relayed = 0;
	v->uplink = 1;
	v->dscp = pkt->ip_version == 4 ? ip[1] >> 2 : (uint8_t)((ip[0] << 2 & 0x3c) | ip[1] >> 6);
	rte_pktmbuf_adj(m, l2);
	pkt->l3 -= l2;
	pkt->l4 -= l2;
	if (unlikely(ip_is_local(pkt->ip_version, pkt->ip_version == 4 ? ip + 16 : ip + 24)))
		return to_gateway(m, pkt, ip);
	return EDGE_UPLINK;
}

static uint32_t ask_endpoint(struct rte_mbuf *m, struct exact_key *k)
{
	const struct endpoint_view *e = endpoint_view_of(m);

	endpoint_key(k, packet_of(m)->port_in, e->s_tag, e->c_tag, e->pppoe_session,
		rte_pktmbuf_mtod(m, const uint8_t *) + 6);
	uint32_t hash = exact_hash(session_tables.endpoint, k);
	exact_prefetch(session_tables.endpoint, hash);
	return hash;
}

static struct rule *ask_rule(uint32_t hash, const struct exact_key *k)
{
	uint64_t value;

	if (unlikely(!exact_lookup(session_tables.endpoint, hash, k, &value) || value == NARROW_RESERVED))
		return NULL;
	rte_prefetch0(&session_pools.rule[(uint32_t)value]);
	return &session_pools.rule[(uint32_t)value];
}

// Three stages WINDOW packets apart: ask for the table's line; look up and ask for the rule's; decide. Packet i is in the
// first stage while i - WINDOW is in the second.
static void run_vector(struct worker *w, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next)
{
	struct exact_key key[WINDOW];
	uint32_t hash[WINDOW];
	struct rule *rule[2 * WINDOW];

	for (uint32_t i = 0; i < n + 2u * WINDOW; i++) {
		if (i >= 2 * WINDOW) {
			uint32_t k = i - 2 * WINDOW;

			next[k] = decide(w, pkts[k], rule[k % (2 * WINDOW)]);
		}
		if (i >= WINDOW && i - WINDOW < n) {
			uint32_t k = i - WINDOW;

			rule[k % (2 * WINDOW)] = ask_rule(hash[k % WINDOW], &key[k % WINDOW]);
		}
		if (i < n)
			hash[i % WINDOW] = ask_endpoint(pkts[i], &key[i % WINDOW]);
	}
}

static uint16_t session_uplink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		run_vector(worker_self(), (struct rte_mbuf **)objs + base, count, next);
		node_dispatch_except(graph, node, objs + base, next, count, EDGE_GONE);
	}
	return n;
}

static struct rte_node_register session_uplink_node = {
	.name = "session-uplink",
	.process = session_uplink,
	.nb_edges = EDGE_GONE,
	.next_nodes = {[EDGE_UPLINK] = "@uplink", [EDGE_ECHO] = "icmp-echo", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(session_uplink_node)
NODE_ARC("lookup-uplink", "session-uplink")

static int start(const struct api_engine *e)
{
	uplink.drop_gtpu = (e->flags & API_ENGINE_DROP_UE_GTPU) != 0;
	return 0;
}

RTE_INIT(session_uplink_start)
{
	uplink.resume = resume_register("session-uplink");
	module_register("session-uplink", start);
}
