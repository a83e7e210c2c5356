// SPDX-License-Identifier: Apache-2.0
// ip-output: the way to the destination of the packet at l3, and the Ethernet header for it.
//
// Traffic of a vector mostly goes to one destination, so the last answer is kept and compared. The header is stored as
// 24 bytes that end where the IP header begins, whatever its length: what lies before it is headroom.
#include "core/control.h"
#include "core/node.h"
#include "icmp/icmp.h"
#include "ip/tables.h"
#include "neighbour/neighbour.h"
#include "wire/eth.h"
#include "wire/ip.h"
#include <string.h>

DROP_REASON(drop_no_route, "no-route", "no route leads to the destination")
DROP_REASON(drop_own, "output-to-ourselves", "the packet was to be sent to one of our own addresses")
DROP_REASON(
	drop_hops, "output-hops", "the packet went from us to ourselves too often: sessions send it round in a circle")
DROP_REASON(drop_version, "output-no-packet", "there is no IP packet to send")
DROP_REASON(drop_room, "headroom", "there is no room for an Ethernet header in front of the packet")

enum { EDGE_TX, EDGE_INPUT, EDGE_FRAGMENT, EDGE_ERROR, EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

// The answer for the last destination, in the shape in which it is used. It lives for one vector, that is within a
// walk, so nothing that it was copied from changes meanwhile.
struct last {
	uint64_t high, low; // destination as loaded
	uint8_t version; // 0: none yet
	uint8_t l2_length;
	uint16_t port;
	uint32_t mtu; // 0: the header is not valid
	uint32_t index;
	const struct next_hop *hop;
	uint8_t header[NEXT_HOP_HEADER]; // with the ethertype of `version`
};

static int is_own(const struct packet *pkt, const uint8_t *packet)
{
	return pkt->port_in == PORT_NONE || ip_is_local(pkt->ip_version, packet + (pkt->ip_version == 4 ? 12 : 8));
}

static rte_edge_t tell_source(struct rte_mbuf *m, enum icmp_problem problem, uint32_t mtu)
{
	icmp_error_request_problem(m, problem, mtu);
	return EDGE_ERROR;
}

// One process may be both ends of a tunnel (SGW-U and PGW-U, UPF and UPF): what we send to ourselves comes in again. Strangers'
// packets do not.
static rte_edge_t to_ourselves(struct rte_mbuf *m, const uint8_t *packet, const uint8_t *destination)
{
	struct packet *pkt = packet_of(m);

	if (!is_own(pkt, packet))
		return packet_leave(m, &drop_own, EDGE_DROP);
	if (++pkt->hops > PACKET_HOPS)
		return packet_leave(m, &drop_hops, EDGE_DROP);
	pkt->interface = ip_local_interface(pkt->ip_version, destination);
	return pkt->interface == UINT32_MAX ? packet_leave(m, &drop_own, EDGE_DROP) : EDGE_INPUT;
}

static rte_edge_t unresolved(
	struct rte_mbuf *m, const struct next_hop *hop, const uint8_t *packet, const uint8_t *destination)
{
	struct packet *pkt = packet_of(m);

	if (hop->kind == NEXT_HOP_NOWHERE) {
		if (is_own(pkt, packet))
			return packet_leave(m, &drop_no_route, EDGE_DROP);
		return tell_source(m, ICMP_PROBLEM_NO_ROUTE, 0); // RFC 1812 §5.2.7.1
	}
	if (ip_is_local(pkt->ip_version, destination))
		return to_ourselves(m, packet, destination);
	return packet_leave(m, &punt_resolve, EDGE_PUNT);
}

// RFC 1191, RFC 4443 §3.2: routers fragment IPv4 without DF, and anyone fragments what he sends himself (the outer
// packet of GTP-U, TS 29.281 §4.2.2); for the rest, the sender is told.
static rte_edge_t too_big(struct rte_mbuf *m, const uint8_t *packet, const struct last *last)
{
	const struct packet *pkt = packet_of(m);

	if ((pkt->ip_version == 4 && !(packet[6] & 0x40)) || is_own(pkt, packet)) {
		session_view_of(m)->next_hop = last->index;
		return EDGE_FRAGMENT;
	}
	return tell_source(m, ICMP_PROBLEM_TOO_BIG, last->mtu);
}

static void look_up(struct last *last, const struct packet *pkt, const uint8_t *destination)
{
	uint8_t version = pkt->ip_version;

	last->index = ip_route_of(version, destination, pkt->interface);
	last->hop = next_hop_get(last->index);
	last->l2_length = last->hop->l2_length;
	last->port = last->hop->port;
	last->mtu = 0;
	if (__atomic_load_n(&last->hop->resolved, __ATOMIC_ACQUIRE)) {
		last->mtu = last->hop->mtu;
		memcpy(last->header, last->hop->header, sizeof(last->header));
		store16(last->header + NEXT_HOP_HEADER - 2, version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	}
	// What depends on more than the destination is not kept.
	last->version = address_is_link_local(version, destination) ? 0 : version;
}

static __rte_always_inline int same(struct last *last, uint8_t version, uint64_t high, uint64_t low)
{
	if (likely(last->low == low && last->high == high && last->version == version))
		return 1;
	last->low = low;
	last->high = high;
	return 0;
}

// Makes `last` the answer for this packet. Returns 0 when there is no packet.
static __rte_always_inline int find_way(
	struct last *last, const struct rte_mbuf *m, const struct packet *pkt, const uint8_t *packet)
{
	uint64_t high = 0, low = 0;

	if (likely(pkt->ip_version == 4)) {
		if (unlikely(pkt->l3 + 20u > m->data_len))
			return 0;
		memcpy(&low, packet + 16, 4);
		if (unlikely(!same(last, 4, 0, low)))
			look_up(last, pkt, packet + 16);
		return 1;
	}
	if (unlikely(pkt->ip_version != 6 || pkt->l3 + 40u > m->data_len))
		return 0;
	memcpy(&high, packet + 24, 8);
	memcpy(&low, packet + 32, 8);
	if (unlikely(!same(last, 6, high, low)))
		look_up(last, pkt, packet + 24);
	return 1;
}

static __rte_always_inline rte_edge_t ip_output(struct rte_mbuf *m, struct last *last)
{
	struct packet *pkt = packet_of(m);
	uint8_t *packet = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);

	if (unlikely(!find_way(last, m, pkt, packet)))
		return packet_leave(m, &drop_version, EDGE_DROP);
	if (unlikely(pkt->length > last->mtu)) {
		if (last->mtu == 0)
			return unresolved(m, last->hop, packet, packet + (pkt->ip_version == 4 ? 16 : 24));
		return too_big(m, packet, last);
	}
	if (unlikely(m->data_off + pkt->l3 < NEXT_HOP_HEADER))
		return packet_leave(m, &drop_room, EDGE_DROP);
	memcpy(packet - 24, last->header, 16);
	memcpy(packet - 8, last->header + 16, 8);
	// What was before the IP header goes, the new header comes.
	int grow = (int)last->l2_length - (int)pkt->l3;
	m->data_off = (uint16_t)(m->data_off - grow);
	m->data_len = (uint16_t)(m->data_len + grow);
	m->pkt_len = (uint32_t)((int)m->pkt_len + grow);
	pkt->l4 = (uint16_t)(pkt->l4 + grow);
	pkt->l3 = last->l2_length;
	pkt->port_out = last->port;
	return EDGE_TX;
}

static uint16_t ip_output_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct last last = {.version = 0};
	rte_edge_t next[NODE_CHUNK];

	if (likely(n <= NODE_CHUNK)) {
		for (uint16_t i = 0; i < n; i++)
			next[i] = ip_output(objs[i], &last);
		node_dispatch(graph, node, objs, next, n);
		return n;
	}
	for (uint16_t i = 0; i < n; i++)
		rte_node_enqueue_x1(graph, node, ip_output(objs[i], &last), objs[i]);
	return n;
}

static struct rte_node_register ip_output_node = {
	.name = "ip-output",
	.process = ip_output_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "port-tx",
		[EDGE_INPUT] = "ip-input",
		[EDGE_FRAGMENT] = "fragment-core",
		[EDGE_ERROR] = "icmp-error",
		[EDGE_PUNT] = "punt",
		[EDGE_DROP] = "drop"},
};
NODE_REGISTER(ip_output_node)

RTE_INIT(ip_output_start)
{
	resume_register("ip-output"); // packets that waited for a neighbour
}
