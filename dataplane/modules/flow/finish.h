// SPDX-License-Identifier: Apache-2.0
// The last loop of flow-input and flow-access: what the full nodes check and do behind the session, of a packet whose
// entry was found. Each function returns 0, and has changed nothing, when the full nodes have more to do.
#ifndef FLOW_FINISH_H
#define FLOW_FINISH_H

#include "flow/count.h"
#include "flow/read.h"
#include "instance/instance.h"
#include "nat/nat.h"
#include "path/outer.h"
#include "route/ways.h"
#include "rule/endpoint.h"
#include "rule/session.h"
#include "rule/view.h"
#include <rte_ip.h>

// Edges of both nodes.
enum { FLOW_TX, FLOW_FULL, FLOW_ACCESS, FLOW_EDGES };

#define FLOW_BLOCK 32 // packets of a loop

struct flow_settings {
	uint8_t drop_gtpu; // API_ENGINE_DROP_UE_GTPU
	uint8_t off; // a stage that is not ours stands between the nodes that are left out
};

// `left_out`: the arcs whose stages the node does the work of; one that is not ours would be left out.
static inline struct flow_settings flow_settings(const struct api_engine *e, const char *const *left_out, uint32_t arcs)
{
	struct flow_settings s = {.drop_gtpu = (e->flags & API_ENGINE_DROP_UE_GTPU) != 0};

	for (uint32_t i = 0; i < arcs; i++)
		s.off |= (uint8_t)!arc_is_standard(left_out[i]);
	return s;
}

// ---- 5-tuple entries ------------------------------------------------------------------------------------------------

struct tuple_lookup {
	struct tuple key;
	uint32_t hash;
	const struct tuple *found;
};

// Completes the key by the packet's IP header, and asks for its line. Returns 0 for a packet that has no such key.
static __rte_always_inline int flow_ask_tuple(
	const struct walk *k, const struct lookup *l, struct tuple_lookup *t, const uint8_t *ip)
{
	if (unlikely(!tuple_of_packet(&t->key, ip, l->user.version, l->protocol, l->l4, l->length)))
		return 0;
	t->hash = tuple_hash(&t->key);
	rte_prefetch0(tuple_place(k->tuples, t->hash, 0));
	return 1;
}

// For those that are plain; the others, and those without an entry, are not plain behind it.
static __rte_noinline void flow_find_tuples(
	struct walk *k, struct lookup *lookup, struct tuple_lookup *tuple, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct tuple_lookup *t = &tuple[i];

		if (unlikely(lookup[i].key == 0 || !lookup[i].by_tuple || !lookup[i].plain))
			continue;
		t->found = tuple_find(k->tuples, t->hash, &t->key);
		lookup[i].plain = t->found != NULL;
		if (likely(t->found != NULL))
			rte_prefetch0(&session_pools.state[t->found->state]);
	}
	for (uint16_t i = 0; i < n; i++) {
		struct lookup *l = &lookup[i];

		if (unlikely(l->key == 0 || !l->by_tuple || !l->plain))
			continue;
		struct rule_state *s = tuple_state(k->w, tuple[i].found, k->permitted);
		l->plain = s != NULL;
		if (unlikely(s == NULL))
			continue;
		l->state = s;
		l->list_slot = tuple[i].found->permitted & ((1u << ACL_SLOT_BITS) - 1);
		if (s->urr != RULE_NONE)
			rte_prefetch0(&usage_pools.state[s->urr]);
		if (s->further || (s->flags & FLOW_SUBSCRIBER) == FLOW_SUBSCRIBER)
			rte_prefetch0(&session_pools.rule[s->rule]);
	}
}

// ---- what stands behind the session ---------------------------------------------------------------------------------

// 1 when sessions may send to this destination (rows A11, G13).
static __rte_always_inline int may_send(uint8_t version, const uint8_t *destination)
{
	return !ip_is_local(version, destination) && !instance_guards(version, destination);
}

// The address may be a UE's: ip-forward looks closer.
static int may_be_ue(const struct instances *n, uint8_t version, const uint8_t *destination)
{
	if (instance_by_pool(INSTANCE_NONE, version, destination) != INSTANCE_NONE)
		return 1;
	for (uint8_t i = 0; i < n->lookers; i++)
		if (session_ue_known(n->looker[i], version, destination))
			return 1;
	return 0;
}

enum { NOTE_NONE, NOTE_ROUTED, NOTE_OTHER };

// 1 when nothing but the route decides about a packet of a UE to this destination. The answer stands as long as the
// route, unless sessions decide that have no pools.
static __rte_noinline int note_way(const struct walk *k, struct way *way, uint8_t version, const uint8_t *destination)
{
	int routed = may_send(version, destination) && !address_is_link_local(version, destination) &&
		     !may_be_ue(k->instances, version, destination) &&
		     !(version == 4 && nat_of_hop(way->index) != NULL);

	if (k->instances->lookers == 0)
		way->note = routed ? NOTE_ROUTED : NOTE_OTHER;
	return routed;
}

// NULL: the full nodes have more to do than to send a packet of `length` bytes.
static __rte_always_inline const struct next_hop *hop_of(const struct way *way, uint32_t length)
{
	const struct next_hop *hop = next_hop_get(way->index);

	return likely(way->version != 0 && __atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE) && length <= hop->mtu)
		       ? hop
		       : NULL;
}

// The frame begins with the header of `hop` in front of the IP header at `ip`, `length` bytes long.
static __rte_always_inline void leave(
	struct rte_mbuf *m, const struct next_hop *hop, uint8_t *ip, uint8_t version, uint32_t length)
{
	uint32_t l2 = hop->l2_length;

	next_hop_header_put(hop, ip, version);
	m->data_off = (uint16_t)(ip - (uint8_t *)m->buf_addr - l2);
	m->pkt_len = length + l2;
	m->data_len = (uint16_t)m->pkt_len;
	packet_of(m)->port_out = hop->port;
}

// As ip-forward.
static __rte_noinline void mark_route(const struct walk *k, const struct lookup *l, uint8_t *ip)
{
	const struct rule_state *s = l->state;
	uint8_t version = l->user.version, qfi = s->qfi != GTPU_NO_QFI ? s->qfi : l->user.qfi;
	uint8_t dscp = instance_dscp(k->instances, s->path, s->dscp, qfi);

	if (dscp < 64)
		ip_dscp_set(version, ip, dscp);
}

static __rte_always_inline int flow_route(const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip)
{
	uint8_t version = l->user.version, *destination = ip + (version == 4 ? 16 : 24);
	struct way *way = ways_find(k->ways, k->ways_generation, version, destination, UINT32_MAX);

	if (unlikely(ip[version == 4 ? 8 : 7] <= 1 || address_is_link_local(version, ip + (version == 4 ? 12 : 8)) ||
		     m->data_off + l->user.at < NEXT_HOP_HEADER))
		return 0;
	if (unlikely(way->note != NOTE_ROUTED) && (way->note == NOTE_OTHER || !note_way(k, way, version, destination)))
		return 0;
	const struct next_hop *hop = hop_of(way, l->length);
	if (unlikely(hop == NULL || !flow_count(k->w, l->state, l->length)))
		return 0;
	if (unlikely(l->mark != 0))
		ecn_leave_tunnel(l->mark, version, ip);
	if (likely(version == 4))
		ip4_decrement_ttl(ip);
	else
		ip[7]--;
	if (unlikely(k->instances->marking || l->state->dscp < 64))
		mark_route(k, l, ip);
	leave(m, hop, ip, version, l->length);
	return 1;
}

static inline void finish_ip6(uint8_t *ip, uint32_t length, uint8_t class)
{
	outer_finish_ip6(ip, length, class);
	uint16_t sum = rte_ipv6_udptcp_cksum((const struct rte_ipv6_hdr *)ip, ip + IP6_HEADER);
	memcpy(ip + IP6_HEADER + 6, &sum, 2);
}

// As gtpu-encap. `version`: the path's, a constant.
static __rte_always_inline int encapsulate(
	const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip, const struct path *p, uint8_t version)
{
	const struct rule_state *s = l->state;
	uint8_t qfi = s->qfi, type = s->flags >> FLOW_PDU_SHIFT;

	if (unlikely(m->data_off + l->user.at < OUTER_LENGTH_MAX + NEXT_HOP_HEADER))
		return 0;
	if (unlikely((s->flags & FLOW_UPLINK) && !may_send(l->user.version, ip + (l->user.version == 4 ? 16 : 24))))
		return 0;
	if (likely(!(s->flags & FLOW_WITHOUT_CONTAINER))) {
		qfi = qfi != GTPU_NO_QFI ? qfi : l->user.qfi;
		type = l->user.pdu_type != API_PDU_NONE ? l->user.pdu_type : type;
	}
	int container = qfi != GTPU_NO_QFI && type != API_PDU_NONE;
	uint32_t outer = p->length[container], length = l->length + outer;
	if (unlikely(length > UINT16_MAX))
		return 0;
	const struct next_hop *hop =
		hop_of(ways_find(k->ways, k->ways_generation, version, p->want.peer.bytes, UINT32_MAX), length);
	if (unlikely(hop == NULL || !flow_count(k->w, l->state, l->length)))
		return 0;
	if (unlikely(l->mark != 0))
		ecn_leave_tunnel(l->mark, l->user.version, ip);
	uint8_t ecn = ip_ecn(l->user.version, ip);
	memcpy(ip - OUTER_LENGTH_MAX, p->header[container], OUTER_LENGTH_MAX);
	ip -= outer;
	uint32_t ip_length = version == 4 ? IP4_HEADER : IP6_HEADER;
	uint8_t class = (uint8_t)(path_dscp(p, s->dscp, qfi) << 2 | ecn);
	if (container)
		outer_container(ip + ip_length + 8, type, qfi, s->rqi);
	outer_finish(ip, ip_length, length, s->teid);
	if (likely(version == 4))
		outer_finish_ip4(k->w, ip, p, length, class);
	else
		finish_ip6(ip, length, class);
	leave(m, hop, ip, version, length);
	return 1;
}

static __rte_noinline int encapsulate6(
	const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip, const struct path *p)
{
	return encapsulate(k, l, m, ip, p, 6);
}

static __rte_always_inline int flow_encapsulate(const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip)
{
	const struct path *p = path_get(l->state->path);

	if (unlikely(p == NULL))
		return 0;
	return likely(p->version == 4) ? encapsulate(k, l, m, ip, p, 4) : encapsulate6(k, l, m, ip, p);
}

static __rte_always_inline uint64_t flow_bit(const struct lookup *l)
{
	return 1ull << l->order;
}

// As access-encap.
static __rte_always_inline int flow_to_subscriber(
	const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip)
{
	const struct rule *r = &session_pools.rule[l->state->rule];
	const struct port *p = port_get(r->down.port);
	uint8_t version = l->user.version;

	if (unlikely(l->length > r->mru || p == NULL || m->data_off + l->user.at < ENDPOINT_HEADER_MAX ||
		     !flow_count(k->w, l->state, l->length)))
		return 0;
	if (unlikely(l->mark != 0))
		ecn_leave_tunnel(l->mark, version, ip);
	uint32_t header = endpoint_put(ip, r, p, version, l->length);
	struct packet *pkt = packet_of(m);
	struct session_view *v = session_view_of(m);

	pkt->l3 = (uint16_t)header;
	pkt->l4 = (uint16_t)(header + l->l4);
	pkt->length = l->length;
	pkt->ip_version = version;
	pkt->protocol = l->protocol;
	pkt->fragment = 0;
	pkt->port_out = r->down.port;
	v->rule = (struct rule *)(uintptr_t)r;
	v->pipe = r->down.pipe;
	v->qfi = l->user.qfi;
	v->pdu_type = l->user.pdu_type;
	v->relayed = 0;
	v->uplink = 0;
	v->dscp = version == 4 ? ip[1] >> 2 : (uint8_t)((ip[0] << 2 & 0x3c) | ip[1] >> 6);
	m->data_off = (uint16_t)(ip - (uint8_t *)m->buf_addr - header);
	m->pkt_len = l->length + header;
	m->data_len = (uint16_t)m->pkt_len;
	return 1;
}

static __rte_always_inline rte_edge_t flow_finish_tuple(struct walk *k, struct lookup *l, struct rte_mbuf *m)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, l->user.at);
	int sent = 0, access = 0;

	if (likely(l->plain && (k->full == 0 || !(k->full & flow_bit(l))))) {
		access = (l->state->flags & FLOW_SUBSCRIBER) == FLOW_SUBSCRIBER;
		sent = access                          ? flow_to_subscriber(k, l, m, ip)
		       : l->state->flags & FLOW_TUNNEL ? flow_encapsulate(k, l, m, ip)
						       : flow_route(k, l, m, ip);
	}
	if (unlikely(!sent)) {
		k->full |= flow_bit(l);
		return FLOW_FULL;
	}
	if (k->hits != NULL)
		k->hits[l->list_slot]++;
	return access ? FLOW_ACCESS : FLOW_TX;
}

#endif
