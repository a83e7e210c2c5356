// SPDX-License-Identifier: Apache-2.0
// How every session node finds a packet's rule. An endpoint, an F-TEID or a UE's address leads to a key; behind the key
// all packets are treated alike.
//
// A batch of packets goes through four stages; each prefetches the next one's line.
//   0 prefetch the key's line
//   1 look up, prefetch the first rule's line
//   2 prefetch the flow's line, or the policer's
//   3 decide
#ifndef SESSION_LOOKUP_H
#define SESSION_LOOKUP_H

#include "core/control.h"
#include "core/node.h"
#include "flow/flow.h"
#include "flow/tuple.h"
#include "forward/route.h"
#include "path/path.h"
#include "rule/engine.h"
#include "rule/view.h"
#include "session/match.h"
#include "usage/usage.h"

#define SESSION_BATCH 64

enum {
	SESSION_UPLINK,
	SESSION_DOWNLINK,
	SESSION_BUFFER,
	SESSION_DUPLICATE,
	SESSION_REDIRECT,
	SESSION_DROP,
	SESSION_ASIDE, // of the node's own: icmp-echo, gtpu-control, ip-forward
	SESSION_PUNT, // session-uplink: access-punt
	SESSION_GONE,
	SESSION_EDGES = SESSION_GONE,
};
#define SESSION_NEXT_NODES(aside)                                                                                      \
	[SESSION_UPLINK] = "@uplink", [SESSION_DOWNLINK] = "@downlink", [SESSION_BUFFER] = "buffer",                   \
	[SESSION_DUPLICATE] = "duplicate", [SESSION_REDIRECT] = "redirect", [SESSION_DROP] = "drop",                   \
	[SESSION_ASIDE] = (aside), [SESSION_PUNT] = "access-punt"

struct lookup {
	uint64_t key, hash; // in session_tables.key; behind ask_rule() a key of 0 is not one of a flow entry
	uint64_t value; // of the key; UINT64_MAX: unknown
	struct rule *first; // of the key; NULL: unknown
	struct exact_key exact; // of the endpoint
	struct tuple tuple; // the flow's key
	uint32_t exact_hash, tuple_hash;
	uint8_t has_flow; // the key has several PDRs, which may differ by `tuple`
	uint8_t is_new; // it has begun a flow (new_flows.h)
};

// Differences between the nodes. A constant of each node, with inlined functions: no call through a pointer. `own`: the
// node's data for a vector.
struct session_way {
	void (*ask_key)(struct lookup *l, struct rte_mbuf *m, void *own);
	uint64_t (*ask_rule)(struct lookup *l, struct rte_mbuf *m, void *own); // the value, UINT64_MAX: none
	// For a packet whose key has no session (first NULL); SESSION_UPLINK: continue with the others.
	rte_edge_t (*admit)(struct worker *w, struct rte_mbuf *m, const struct rule *first, void *own);
	uint8_t tunnel; // packets have a tunnel_view
	uint8_t endpoint; // packets have an endpoint_view
	uint8_t entries; // flow-input takes plain packets with this key (flow/flow.h)
	uint8_t tuples; // flow-input or flow-access takes plain packets with this 5-tuple
	uint8_t echo; // packets to the gateway address of their port are answered (SESSION_ASIDE)
};

// ask_key() of an F-TEID; ask_rule() of it and of UE addresses.
static __rte_always_inline void session_ask_fteid(struct lookup *l, struct rte_mbuf *m, void *own)
{
	const struct tunnel_view *t = tunnel_view_of(m);

	l->key = fteid_key(t->teid, t->local);
	l->hash = narrow_hash(session_tables.key, l->key);
	narrow_prefetch(session_tables.key, l->hash);
}

static __rte_always_inline uint64_t session_ask_rule(struct lookup *l, struct rte_mbuf *m, void *own)
{
	uint64_t value;

	if (unlikely(!narrow_lookup(session_tables.key, l->hash, l->key, &value)))
		return UINT64_MAX;
	rte_prefetch0(&session_pools.rule[(uint32_t)value]);
	return value;
}

// The packet is to a wireline subscriber by its address.
static __rte_always_inline int session_is_home(const struct lookup *l, const struct session_way *way)
{
	return way->entries && !way->tunnel && flow_is_home(l->first);
}

// Plain packets of the key are known by their 5-tuple.
static __rte_always_inline int session_has_tuples(const struct lookup *l, const struct session_way *way)
{
	return way->tuples || session_is_home(l, way);
}

// The packet's key in the table of 5-tuples, and asks for its line. Returns 0 for a packet that has none.
int session_ask_tuple(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way);

static __rte_always_inline void session_ask_flow(
	struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way)
{
	struct rule *r = NULL;

	l->has_flow = l->is_new = 0;
	if (likely(l->value != UINT64_MAX))
		r = rule_of_key(l->value);
	l->first = r;
	if (unlikely(r == NULL || r->worker != w->id))
		return;
	if (likely(!(r->flags & RULE_SEVERAL_PDRS))) {
		usage_prefetch(r);
		return;
	}
	if (r->chain == 0)
		l->has_flow = (uint8_t)session_ask_tuple(w, l, m, way);
}

// What is left of a removed outer header.
struct removed_header {
	uint16_t relayed;
	uint8_t qfi, pdu_type; // see session_view
};

// The rule of a packet whose key does not determine it, or NULL and *why.
struct rule *session_classify(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way,
	const uint8_t *ip, uint8_t qfi, enum session_why *why);
// For few packets: a rule with RULE_SLOW_PATH, or without RULE_FORWARD. Replaces session_strip(). `on`: the next edge.
rte_edge_t session_slow_path(
	struct rte_mbuf *m, const struct rule *r, int tunnel, struct removed_header came, rte_edge_t on);

// The packet's key belongs to another worker's session. The packet goes there. This worker's fast path learns the
// owner, and so does that of the worker that handed the packet over.
void session_give(
	struct worker *w, const struct lookup *l, struct rte_mbuf *m, const struct session_way *way, uint16_t resume);

// A fragment whose key has several PDRs. SESSION_UPLINK: its ports are known, and its tuple in *l, or they do not
// matter.
rte_edge_t session_follow(
	struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way, uint16_t resume);

// Offers a packet's rule to the fast path. SESSION_DROP: it would begin one flow too many; else `on`.
rte_edge_t session_learn(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct rule *r,
	const struct session_way *way, rte_edge_t on);

// Of a rule that the fast path does not learn, where flows are 5-tuples: knows the packet's flow from now on, for
// the full nodes. SESSION_DROP: it would begin one flow too many; else `on`.
rte_edge_t session_meet(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct rule *r,
	const struct session_way *way, rte_edge_t on);

// Strips what is in front of the packet at l3, and leaves the metadata for the nodes behind.
static __rte_always_inline void session_strip(
	struct rte_mbuf *m, const struct rule *r, const uint8_t *ip, struct removed_header came)
{
	struct packet *pkt = packet_of(m);
	struct session_view *v = session_view_of(m); // replaces the view that it came with
	uint16_t l3 = pkt->l3;

	v->rule = (struct rule *)(uintptr_t)r;
	v->qfi = came.qfi;
	v->pdu_type = came.pdu_type;
	v->relayed = came.relayed;
	v->uplink = (r->flags & RULE_UPLINK) != 0;
	v->dscp = ip_traffic_class(pkt->ip_version, ip) >> 2;
	rte_pktmbuf_adj(m, l3);
	pkt->l3 = 0;
	pkt->l4 -= l3;
}

// Where subscribers may not send to (rows A11, G9, G10, G24). SESSION_UPLINK: they may.
rte_edge_t session_guard_destination(struct rte_mbuf *m, const struct rule *r, const uint8_t *destination, int echo);
extern int session_drop_gtpu;

static __rte_always_inline rte_edge_t session_guard(
	struct rte_mbuf *m, const struct rule *r, const uint8_t *ip, const struct session_way *way)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *destination = ip + (pkt->ip_version == 4 ? 16 : 24);

	// In any VRF: which it is, is asked of the few.
	if (likely(route_may_send(VRF_ANY, pkt->ip_version, destination) && !session_drop_gtpu &&
		    destination[0] < 0xe0))
		return SESSION_UPLINK;
	return session_guard_destination(m, r, destination, way->echo);
}

// A packet that matches no rule of the session. A link-local source is valid on its link (RFC 4291 §2.5.6): its ICMPv6
// questions to the router go aside.
rte_edge_t session_refuse(struct rte_mbuf *m, const struct rule *r, const uint8_t *ip, const struct session_way *way,
	enum session_why why);

// 1: the packet's hop limit is decremented, by ip-forward or here, as for a UE's packet. 0: ip-forward sends an ICMP
// error.
int session_route_home(struct rte_mbuf *m);

// For a packet whose key is known and whose session is on this worker.
static __rte_always_inline rte_edge_t session_decide(
	struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way, uint16_t resume)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	uint8_t qfi = way->tunnel ? tunnel_view_of(m)->qfi : 0xff;
	struct rule *r = l->first;

	if (unlikely(r->flags & RULE_SEVERAL_PDRS)) {
		rte_edge_t known = SESSION_UPLINK;
		enum session_why why;

		if (unlikely(pkt->fragment != 0))
			known = session_follow(w, l, m, way, resume);
		if (unlikely(known != SESSION_UPLINK))
			return known;
		r = session_classify(w, l, m, way, ip, qfi, &why);
		if (unlikely(r == NULL))
			return session_refuse(m, l->first, ip, way, why);
	}
	int uplink = (r->flags & RULE_UPLINK) != 0;
	uint32_t ue = pkt->ip_version == 4 ? (uplink ? 12 : 16) : (uplink ? 8 : 24);
	// Rows G8, G11, G12: of the session's IP type, from or to the UE's address.
	if (unlikely(!rule_ue_matches(r, pkt->ip_version, ip + ue)))
		return session_refuse(m, r, ip, way, WHY_SPOOFED);
	rte_edge_t on = uplink ? session_guard(m, r, ip, way) : SESSION_DOWNLINK;
	if (unlikely(on == SESSION_DROP))
		return on;
	struct removed_header came = {.qfi = r->action.qfi};
	if (way->tunnel) {
		struct tunnel_view *t = tunnel_view_of(m);

		came = (struct removed_header){.qfi = qfi, .pdu_type = t->pdu_type};
		if (unlikely(t->more != 0)) {
			came.relayed = t->header_length;
			// TS 29.281 §5.2.1: an end point must know extension headers that a node between two tunnels
			// passes on.
			if ((t->more & GTPU_ENDPOINT) && (r->flags & RULE_FORWARD) &&
				(r->outer != API_OUTER_GTPU || r->no_relay)) {
				t->header_length = 0; // not understood: gtpu-control answers the sender
				return SESSION_ASIDE;
			}
		}
	}
	// Packets to a wireline subscriber's addresses are routed to it (RFC 1812 §5.3.1).
	if (unlikely(session_is_home(l, way)) && !session_route_home(m))
		return SESSION_ASIDE;
	int tuples = session_has_tuples(l, way);
	if (unlikely((r->flags & (RULE_SLOW_PATH | RULE_FORWARD)) != RULE_FORWARD)) {
		if (tuples)
			on = session_meet(w, l, m, r, way, on);
		return on == SESSION_DROP ? on : session_slow_path(m, r, way->tunnel, came, on);
	}
	if (((way->entries && likely(l->key != 0)) || tuples) && likely(flow_may_learn(l->first, r, tuples)) &&
		likely(on != SESSION_ASIDE))
		on = session_learn(w, l, m, r, way, on);
	else if (tuples)
		on = session_meet(w, l, m, r, way, on);
	if (unlikely(on == SESSION_DROP))
		return on;
	session_strip(m, r, ip, came);
	return on;
}

static __rte_always_inline void session_batch(struct worker *w, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next,
	const struct session_way *way, void *own, uint16_t resume)
{
	struct lookup lookup[SESSION_BATCH];

	for (uint16_t i = 0; i < n; i++)
		way->ask_key(&lookup[i], pkts[i], own);
	for (uint16_t i = 0; i < n; i++)
		lookup[i].value = way->ask_rule(&lookup[i], pkts[i], own);
	for (uint16_t i = 0; i < n; i++)
		session_ask_flow(w, &lookup[i], pkts[i], way);
	for (uint16_t i = 0; i < n; i++) {
		const struct rule *first = lookup[i].first;

		next[i] = way->admit(w, pkts[i], first, own);
		if (unlikely(next[i] != SESSION_UPLINK))
			continue;
		if (unlikely(first->worker != w->id)) {
			session_give(w, &lookup[i], pkts[i], way, resume);
			next[i] = SESSION_GONE;
			continue;
		}
		next[i] = session_decide(w, &lookup[i], pkts[i], way, resume);
	}
}

// `resume`: the edge of handover-rx that leads to the node.
static __rte_always_inline uint16_t session_run(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n,
	const struct session_way *way, void *own, uint16_t resume)
{
	struct worker *w = worker_self();
	rte_edge_t next[SESSION_BATCH];

	for (uint16_t base = 0; base < n; base += SESSION_BATCH) {
		uint16_t count = RTE_MIN(n - base, SESSION_BATCH);

		session_batch(w, (struct rte_mbuf **)objs + base, count, next, way, own, resume);
		node_dispatch_except(graph, node, objs + base, next, count, SESSION_GONE);
	}
	return n;
}

#endif
