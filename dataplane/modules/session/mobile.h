// SPDX-License-Identifier: Apache-2.0
// What session-tunnel and session-ue have in common: from the first rule of a key to the packet's way on.
//
// A batch of packets goes through four stages, each asking for the line that the next one reads:
//   0 ask for the key's line (which the fast path of plain G-PDUs has asked for already, gtpu/plain.h)
//   1 look up, ask for the first rule's   2 ask for the flow's line, or for what the policer will read   3 decide
#ifndef SESSION_MOBILE_H
#define SESSION_MOBILE_H

#include "core/control.h"
#include "core/node.h"
#include "instance/instance.h"
#include "path/path.h"
#include "session/match.h"
#include "usage/usage.h"

#define MOBILE_BATCH 64

// Edges of both nodes; their own ones follow.
enum {
	MOBILE_UPLINK,
	MOBILE_DOWNLINK,
	MOBILE_BUFFER,
	MOBILE_DUPLICATE,
	MOBILE_REDIRECT,
	MOBILE_DROP,
	MOBILE_UNKNOWN, // gtpu-control, or ip-forward
	MOBILE_GONE,
	MOBILE_EDGES = MOBILE_GONE,
};
#define MOBILE_NEXT_NODES                                                                                              \
	[MOBILE_UPLINK] = "@uplink", [MOBILE_DOWNLINK] = "@downlink", [MOBILE_BUFFER] = "buffer",                      \
	[MOBILE_DUPLICATE] = "duplicate", [MOBILE_REDIRECT] = "redirect", [MOBILE_DROP] = "drop"

// A packet on its way through the stages.
struct mobile_lookup {
	uint64_t key; // of the session
	uint64_t hash;
	uint64_t value; // of the key; UINT64_MAX: unknown
	struct rule *first; // NULL: unknown
	struct exact_key flow;
	uint32_t flow_hash;
	uint8_t has_flow;
};

// Flows of a session with several PDRs are known by the first rule of the key: its index says instance, TEID and local address.
#define MOBILE_FLOW UINT16_C(0xffff)

static __rte_always_inline uint64_t mobile_ask_rule(const struct mobile_lookup *l)
{
	uint64_t value;

	if (unlikely(!narrow_lookup(session_tables.key, l->hash, l->key, &value)))
		return UINT64_MAX;
	rte_prefetch0(&session_pools.rule[(uint32_t)value]);
	return value;
}

static __rte_always_inline void mobile_ask_flow(
	struct worker *w, struct mobile_lookup *l, struct rte_mbuf *m, uint8_t qfi)
{
	struct rule *r = l->value == UINT64_MAX ? NULL : rule_of_key(l->value);

	l->first = r;
	l->has_flow = 0;
	if (unlikely(r == NULL || r->worker != w->id))
		return;
	if (likely(!(r->flags & RULE_SEVERAL_PDRS))) {
		usage_prefetch(r);
		return;
	}
	if (r->chain & CHAIN_PER_PACKET)
		return;
	const struct packet *pkt = packet_of(m);
	const struct exact *flows = session_tables.flow[w->id];
	flow_key(&l->flow, rule_index(r), MOBILE_FLOW, qfi, pkt, rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3));
	l->flow_hash = exact_hash(flows, &l->flow);
	l->has_flow = 1;
	exact_prefetch(flows, l->flow_hash);
}

// What is left of a removed outer header.
struct mobile_came {
	uint16_t relayed;
	uint8_t qfi, pdu_type; // see session_view
};

// The rule of a packet whose key has several PDRs, or NULL and *why.
struct rule *mobile_classify(struct worker *w, struct mobile_lookup *l, const struct packet *pkt, const uint8_t *ip,
	uint8_t qfi, enum session_why *why);
// What few packets need: a rule with RULE_SLOW_PATH, or without RULE_FORWARD. Takes the place of mobile_strip().
rte_edge_t mobile_slow_path(struct rte_mbuf *m, const struct rule *r, int tunnel, struct mobile_came came);
// What a UE may not send: to our own addresses (row A11), GTP-U under engine.drop_ue_gtpu, multicast that would have to be routed.
// MOBILE_GONE, or MOBILE_DROP with the reason.
rte_edge_t mobile_guard(struct rte_mbuf *m, const struct rule *r, const uint8_t *ip);

static inline uint8_t mobile_dscp(uint8_t version, const uint8_t *ip)
{
	return version == 4 ? ip[1] >> 2 : (uint8_t)((ip[0] << 2 & 0x3c) | ip[1] >> 6);
}

// TS 29.281 §5.2.1: an end point must know extension headers that a node between two tunnels passes on.
static inline int mobile_is_endpoint(const struct rule *r)
{
	return (r->flags & RULE_FORWARD) && r->outer != API_OUTER_GTPU;
}

// Strips what is in front of the packet at l3, and leaves the metadata for the nodes behind.
static __rte_always_inline void mobile_strip(
	struct rte_mbuf *m, const struct rule *r, const uint8_t *ip, struct mobile_came came)
{
	struct packet *pkt = packet_of(m);
	struct session_view *v = session_view_of(m);
	uint16_t l3 = pkt->l3;

	v->rule = (struct rule *)(uintptr_t)r;
	v->qfi = came.qfi;
	v->pdu_type = came.pdu_type;
	v->relayed = came.relayed;
	v->uplink = (r->flags & RULE_UPLINK) != 0;
	v->dscp = mobile_dscp(pkt->ip_version, ip);
	rte_pktmbuf_adj(m, l3);
	pkt->l3 = 0;
	pkt->l4 -= l3;
}

// Stage 3 for a packet whose key is known and whose session lives on this worker.
static __rte_always_inline rte_edge_t mobile_decide(
	struct worker *w, struct mobile_lookup *l, struct rte_mbuf *m, uint8_t qfi, int tunnel)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	struct rule *r = l->first;

	if (unlikely(r->flags & RULE_SEVERAL_PDRS)) {
		enum session_why why;

		r = mobile_classify(w, l, pkt, ip, qfi, &why);
		if (unlikely(r == NULL))
			return packet_leave(m, session_reason(why, (l->first->flags & RULE_UPLINK) != 0), MOBILE_DROP);
	}
	int uplink = (r->flags & RULE_UPLINK) != 0;
	uint32_t ue = pkt->ip_version == 4 ? (uplink ? 12 : 16) : (uplink ? 8 : 24);
	// Rows G8, G11, G12: of the session's IP type, from or to the UE's address.
	if (unlikely(!rule_ue_matches(r, pkt->ip_version, ip + ue)))
		return packet_leave(m, session_reason(WHY_SPOOFED, uplink), MOBILE_DROP);
	if (uplink) {
		rte_edge_t guard = mobile_guard(m, r, ip);

		if (unlikely(guard != MOBILE_GONE))
			return guard;
	}
	struct mobile_came came = {.qfi = r->qfi};
	if (tunnel) {
		struct tunnel_view *t = tunnel_view_of(m);

		came = (struct mobile_came){.qfi = qfi, .pdu_type = t->pdu_type};
		if (unlikely(t->more != 0)) {
			came.relayed = t->header_length;
			if ((t->more & GTPU_ENDPOINT) && mobile_is_endpoint(r)) {
				t->header_length = 0; // not understood: gtpu-control tells the sender
				return MOBILE_UNKNOWN;
			}
		}
	}
	if (unlikely((r->flags & (RULE_SLOW_PATH | RULE_FORWARD)) != RULE_FORWARD))
		return mobile_slow_path(m, r, tunnel, came);
	mobile_strip(m, r, ip, came);
	return uplink ? MOBILE_UPLINK : MOBILE_DOWNLINK;
}

// The stages over a vector. What the nodes do differently are functions that are always inlined here, so none is called through a
// pointer; `own` is the node's, for the vector. `qfi_of` is that of the tunnel, 0xff without one; `fallback` may look for a
// shorter prefix.
static __rte_always_inline void mobile_run(struct worker *w, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next,
	void *own, void (*ask_key)(struct mobile_lookup *, struct rte_mbuf *, void *own),
	uint64_t (*fallback)(struct rte_mbuf *, void *own), uint8_t (*qfi_of)(struct rte_mbuf *),
	rte_edge_t (*decide)(struct worker *, struct mobile_lookup *, struct rte_mbuf *, void *own))
{
	struct mobile_lookup lookup[MOBILE_BATCH];

	for (uint16_t base = 0; base < n; base += MOBILE_BATCH) {
		uint16_t count = RTE_MIN(n - base, MOBILE_BATCH);

		for (uint16_t i = 0; i < count; i++)
			ask_key(&lookup[i], pkts[base + i], own);
		for (uint16_t i = 0; i < count; i++) {
			lookup[i].value = mobile_ask_rule(&lookup[i]);
			if (unlikely(lookup[i].value == UINT64_MAX))
				lookup[i].value = fallback(pkts[base + i], own);
		}
		for (uint16_t i = 0; i < count; i++)
			mobile_ask_flow(w, &lookup[i], pkts[base + i], qfi_of(pkts[base + i]));
		for (uint16_t i = 0; i < count; i++)
			next[base + i] = decide(w, &lookup[i], pkts[base + i], own);
	}
}

#endif
