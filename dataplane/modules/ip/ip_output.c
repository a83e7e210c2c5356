// SPDX-License-Identifier: Apache-2.0
// ip-output: the way to the destination of the packet at l3, and the Ethernet header for it.
//
// Traffic of a vector mostly goes to one destination, so the last answer is kept and compared. The header is stored as 24
// bytes that end where the IP header begins, whatever its length: what lies before it is headroom.
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
DROP_REASON(drop_version, "output-no-packet", "there is no IP packet to send")
DROP_REASON(drop_room, "headroom", "there is no room for an Ethernet header in front of the packet")

enum { EDGE_TX, EDGE_FRAGMENT, EDGE_ERROR, EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

struct last {
	uint64_t high, low;
	uint32_t index;
	uint8_t version;
	const struct next_hop *hop;
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
		return packet_leave(m, &drop_own, EDGE_DROP);
	return packet_leave(m, &punt_resolve, EDGE_PUNT);
}

// RFC 1191, RFC 4443 §3.2: routers fragment IPv4 without DF, and anyone fragments what he sends himself (the outer packet
// of GTP-U, TS 29.281 §4.2.2); for the rest, the sender is told.
static rte_edge_t too_big(struct rte_mbuf *m, const uint8_t *packet, uint32_t mtu)
{
	const struct packet *pkt = packet_of(m);

	if ((pkt->ip_version == 4 && !(packet[6] & 0x40)) || is_own(pkt, packet))
		return EDGE_FRAGMENT;
	return tell_source(m, ICMP_PROBLEM_TOO_BIG, mtu);
}

static inline const struct next_hop *look_up(struct last *last, const struct packet *pkt, const uint8_t *destination)
{
	uint64_t high = 0, low = 0;

	if (likely(pkt->ip_version == 4)) {
		memcpy(&low, destination, 4);
	} else {
		memcpy(&high, destination, 8);
		memcpy(&low, destination + 8, 8);
	}
	if (unlikely(last->low != low || last->high != high || last->version != pkt->ip_version)) {
		last->high = high;
		last->low = low;
		last->index = ip_route_of(pkt->ip_version, destination, pkt->interface);
		last->hop = next_hop_get(last->index);
		// What depends on more than the destination is not kept.
		last->version = address_is_link_local(pkt->ip_version, destination) ? 0 : pkt->ip_version;
	}
	return last->hop;
}

static inline rte_edge_t ip_output(struct rte_mbuf *m, struct last *last)
{
	struct packet *pkt = packet_of(m);
	uint8_t *packet = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);
	uint16_t type;

	if (unlikely((pkt->ip_version != 4 && pkt->ip_version != 6) ||
		     pkt->l3 + (pkt->ip_version == 4 ? 20u : 40u) > rte_pktmbuf_data_len(m)))
		return packet_leave(m, &drop_version, EDGE_DROP);
	const uint8_t *destination = packet + (pkt->ip_version == 4 ? 16 : 24);
	const struct next_hop *hop = look_up(last, pkt, destination);
	session_view_of(m)->next_hop = last->index;
	if (unlikely(!__atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE)))
		return unresolved(m, hop, packet, destination);
	if (unlikely(pkt->length > hop->mtu))
		return too_big(m, packet, hop->mtu);
	if (unlikely(m->data_off + pkt->l3 < NEXT_HOP_HEADER))
		return packet_leave(m, &drop_room, EDGE_DROP);
	memcpy(packet - 24, hop->header, 16);
	memcpy(packet - 8, hop->header + 16, 8);
	type = pkt->ip_version == 4 ? rte_cpu_to_be_16(ETH_TYPE_IP4) : rte_cpu_to_be_16(ETH_TYPE_IP6);
	memcpy(packet - 2, &type, 2);
	// What was before the IP header goes, the new header comes.
	int grow = (int)hop->l2_length - (int)pkt->l3;
	m->data_off = (uint16_t)(m->data_off - grow);
	m->data_len = (uint16_t)(m->data_len + grow);
	m->pkt_len = (uint32_t)((int)m->pkt_len + grow);
	pkt->l4 = (uint16_t)(pkt->l4 + grow);
	pkt->l3 = hop->l2_length;
	pkt->port_out = hop->port;
	return EDGE_TX;
}

static uint16_t ip_output_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct last last = {0};
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
