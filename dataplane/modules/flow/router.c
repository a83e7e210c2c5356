// SPDX-License-Identifier: Apache-2.0
// Packets that are only routed, where no UEs are. A block goes through three small loops, without the work for
// sessions; the tables' lines are fetched side by side, not packet by packet.
#include "flow/finish.h"
#include "route/ways.h"

struct routed {
	uint16_t length;
	uint8_t l3, version;
};

static __rte_always_inline uint32_t destination_at(uint8_t version)
{
	return version == 4 ? 16 : 24;
}

// ---- 0: headers ---------------------------------------------------------------------------------------------------

// What ip-input and ip-forward check: of any packet.
static __rte_noinline int looks_plain(
	const struct walk *k, const struct example *e, struct routed *r, const uint8_t *ip, uint32_t rest)
{
	uint8_t version = e->version;
	const uint8_t *destination = ip + destination_at(version);
	struct parsed l = {.user = e->user};

	if (rest < (version == 4 ? IP4_HEADER : IP6_HEADER) || !read_outside(k, &l, version, ip, rest) ||
		route_hops(version, ip) <= 1 || route_is_of_link(version, ip) ||
		instance_by_pool(INSTANCE_NONE, e->vrf, version, destination) != INSTANCE_NONE)
		return 0;
	r->length = l.length;
	return 1;
}

// The same of UDP and TCP in a packet that fills the frame; 0: look closer.
static __rte_always_inline int is_plain4(const struct instances *s, const uint8_t *ip, uint32_t rest)
{
	const uint8_t *transport = ip + IP4_HEADER;
	uint32_t room = rest - IP4_HEADER;

	if (ip[0] != 0x45 || load16(ip + 2) != rest || rest < IP4_HEADER + 8 || (load16(ip + 6) & 0x3fff) != 0 ||
		ip[8] <= 1 || (ip4_odd_octet[ip[12]] | ip4_odd_octet[ip[16]]) != 0 || !ip4_checksum_ok20(ip) ||
		pool_filter_has(&s->pools[0], 4, ip + 16))
		return 0;
	if (ip[9] == IP_PROTOCOL_UDP)
		return (uint32_t)load16(transport + 4) - 8 <= room - 8;
	return ip[9] == IP_PROTOCOL_TCP && lanes_tcp_good(transport, room);
}

static __rte_always_inline int is_plain6(const struct instances *s, const uint8_t *ip, uint32_t rest)
{
	return rest >= IP6_HEADER && ip6_plain_good(ip, rest) && ip[7] > 1 && ip[8] != 0xfe && ip[24] != 0xfe &&
	       !pool_filter_has(&s->pools[1], 6, ip + 24);
}

static __rte_always_inline int read_packet(
	const struct walk *k, const struct example *e, struct routed *r, const uint8_t *ip, uint32_t rest)
{
	r->length = (uint16_t)rest;
	if (likely(e->version == 4))
		return (likely(is_plain4(k->instances, ip, rest)) || looks_plain(k, e, r, ip, rest)) &&
		       route_may_send(e->vrf, 4, ip + 16);
	return (likely(is_plain6(k->instances, ip, rest)) || looks_plain(k, e, r, ip, rest)) &&
	       route_may_send(e->vrf, 6, ip + 24);
}

// An example of the same VRF, or NULL. A G-PDU to us has another one.
static __rte_noinline const struct example *other_example(
	struct walk *k, struct rte_mbuf *m, const struct example *than)
{
	const struct example *e = example_find(&k->examples, k->w, m);

	if (e == NULL || !e->alone || e->routed->key == 0 || (than != NULL && e->vrf != than->vrf))
		return NULL;
	k->last = e;
	return e;
}

static __rte_noinline uint32_t read_packets(
	struct walk *k, struct rte_mbuf **pkts, uint32_t n, struct routed *routed, struct way_ask *ask)
{
	const struct example *e = NULL;
	const uint32_t *root = NULL;

	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
		uint32_t total = rte_pktmbuf_data_len(m);

		if (unlikely(total < FRAME_READ && (total < FRAME_MIN || m->data_off + FRAME_READ > m->buf_len)))
			return i;
		if (unlikely(e == NULL || !plain_bytes_same_link(&e->bytes, frame) ||
			     packet_of(m)->port_in != e->port_in)) {
			e = other_example(k, m, e);
			if (e == NULL)
				return i;
			root = ways_root(e->vrf, e->version);
		}
		const uint8_t *ip = frame + e->l3;
		if (unlikely(total != rte_pktmbuf_pkt_len(m) || m->data_off < NEXT_HOP_HEADER ||
			     !read_packet(k, e, &routed[i], ip, total - e->l3)))
			return i;
		routed[i].l3 = (uint8_t)e->l3;
		routed[i].version = e->version;
		ask[i] = (struct way_ask){.destination = ip + destination_at(e->version), .root = root};
	}
	return n;
}

// ---- 2: out -------------------------------------------------------------------------------------------------------

// Where the next hop is an attached network or several of equal cost; NULL: none that can be sent to.
static __rte_noinline const struct next_hop *closer_hop(
	const struct walk *k, const struct next_hop *hop, const struct routed *r, const uint8_t *ip)
{
	uint32_t index = (uint32_t)(hop - next_hop_get(0));

	if (hop->kind == NEXT_HOP_GLEAN)
		index = ways_find(k->ways, k->ways_generation, way_table(k->last->vrf), r->version,
			ip + destination_at(r->version), UINT32_MAX)
				->index;
	return route_hop(index, ip, r->length, r->length, &hop) ? hop : NULL;
}

static __rte_always_inline int send_packet(const struct walk *k, struct rte_mbuf *m, const struct routed *r,
	const struct next_hop *hop, uint8_t *ip, uint8_t version)
{
	if (unlikely(!__atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE))) {
		hop = closer_hop(k, hop, r, ip);
		if (hop == NULL)
			return 0;
	}
	if (unlikely(r->length > hop->mtu))
		return 0;
	route_count_hop(version, ip);
	next_hop_header_put(hop, ip, version);
	leave(m, m->data_off + r->l3, hop->l2_length, r->length, hop->port);
	return 1;
}

static __rte_noinline uint32_t send_packets(const struct walk *k, struct rte_mbuf **pkts, uint32_t n,
	const struct routed *routed, const struct way_ask *ask)
{
	struct rule_state *s = k->last->routed;
	uint32_t bytes = 0, i;

	for (i = 0; i < n; i++) {
		const struct routed *r = &routed[i];
		uint8_t *destination = (uint8_t *)(uintptr_t)ask[i].destination;

		if (!(likely(r->version == 4) ? send_packet(k, pkts[i], r, ask[i].hop, destination - 16, 4)
					      : send_packet(k, pkts[i], r, ask[i].hop, destination - 24, 6)))
			break;
		bytes += r->length;
	}
	s->credit = (s->credit < bytes ? UINT32_MAX : s->credit) - bytes; // no session's
	s->taken += i;
	s->last = k->w->now;
	return i;
}

static_assert(FLOW_BLOCK <= WAY_ASKS, "a block is one look-up");
uint16_t flow_route(struct walk *k, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next)
{
	struct routed routed[WAY_ASKS];
	struct way_ask ask[WAY_ASKS];

	if (k->held || (k->last != NULL && !k->last->alone)) // held: some wait behind others that take the full nodes
		return 0;
	n = (uint16_t)read_packets(k, pkts, n, routed, ask);
	if (n == 0)
		return 0;
	ways_look_up_many(ask, n);
	n = (uint16_t)send_packets(k, pkts, n, routed, ask);
	for (uint16_t i = 0; i < n; i++)
		next[i] = FLOW_TX;
	return n;
}
