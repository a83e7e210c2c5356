// SPDX-License-Identifier: Apache-2.0
// ip-output: the way to the destination of the packet at l3, and the Ethernet header for it.
//
#include "core/control.h"
#include "core/node.h"
#include "forward/route.h"
#include "icmp/icmp.h"
#include "neighbour/neighbour.h"
#include "route/ways.h"
#include "rule/view.h"
#include "wire/ip.h"
#include <string.h>

DROP_REASON(drop_no_route, "no-route", "no route leads to the destination. See show route, show route --ignored")
DROP_REASON(drop_blackhole, "route-blackhole",
	"a blackhole route leads to the destination. See show route: a discard route")
DROP_REASON(drop_unreachable, "route-unreachable",
	"an unreachable route leads to the destination of a packet of our own. See show route: a discard route")
DROP_REASON(drop_prohibit, "route-prohibit",
	"a prohibit route leads to the destination of a packet of our own. See show route: a discard route")
DROP_REASON(drop_unassigned, "route-unassigned",
	"no subscriber has the address, whose prefix is a pool's or NAT44's. Scans, or homes that went: see show route")
DROP_REASON(drop_own, "output-to-ourselves",
	"the packet was to be sent to one of our own addresses. See show route: a route leads to our own address")
DROP_REASON(drop_hops, "output-hops",
	"the packet went from us to ourselves too often: sessions send it round in a circle. See show rule of both "
	"sessions: their FARs")
DROP_REASON(drop_version, "output-no-packet", "there is no IP packet to send. Report it with show drop -j")
DROP_REASON(drop_room, "headroom",
	"there is no room for an Ethernet header in front of the packet. Report it with show drop -j")

enum { EDGE_TX, EDGE_SCHEDULER, EDGE_INPUT, EDGE_FRAGMENT, EDGE_ERROR, EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

static int is_own(const struct packet *pkt, const uint8_t *packet)
{
	return pkt->port_in == PORT_NONE ||
	       ip_is_local(pkt->vrf, pkt->ip_version, packet + (pkt->ip_version == 4 ? 12 : 8));
}

static rte_edge_t tell_source(struct rte_mbuf *m, enum icmp_problem problem, uint32_t mtu)
{
	icmp_error_request_problem(m, problem, mtu);
	return EDGE_ERROR;
}

// One process may be both ends of a tunnel (SGW-U and PGW-U, UPF and UPF): our own packets to ourselves re-enter.
// Others' packets do not.
static rte_edge_t to_ourselves(struct rte_mbuf *m, const uint8_t *packet, const uint8_t *destination)
{
	struct packet *pkt = packet_of(m);

	if (!is_own(pkt, packet))
		return packet_leave(m, &drop_own, EDGE_DROP);
	pkt->shaped = pkt->rpf = 0;
	if (++pkt->hops > PACKET_HOPS)
		return packet_leave(m, &drop_hops, EDGE_DROP);
	pkt->interface = ip_local_interface(pkt->vrf, pkt->ip_version, destination);
	return pkt->interface == UINT32_MAX ? packet_leave(m, &drop_own, EDGE_DROP) : EDGE_INPUT;
}

// RFC 1191, RFC 4443 §3.2: routers fragment IPv4 without DF; every host fragments its own packets (the outer packet of
// GTP-U, TS 29.281 §4.2.2). All others: the sender gets an error.
static int may_fragment(const struct packet *pkt, const uint8_t *packet)
{
	return (pkt->ip_version == 4 && !(packet[6] & 0x40)) || is_own(pkt, packet);
}

// The sender's error: for no route (RFC 1812 §5.2.7.1, RFC 4443 §3.1), or by enum api_discard.
static rte_edge_t lead_nowhere(struct rte_mbuf *m, const struct next_hop *hop, int own)
{
	static const struct {
		struct reason *drop;
		enum icmp_problem problem;
	} what[] = {
		[API_DISCARD_NONE] = {&drop_no_route, ICMP_PROBLEM_NO_ROUTE},
		[API_DISCARD_BLACKHOLE] = {&drop_blackhole, ICMP_PROBLEM_COUNT},
		[API_DISCARD_UNREACHABLE] = {&drop_unreachable, ICMP_PROBLEM_REJECTED},
		[API_DISCARD_PROHIBIT] = {&drop_prohibit, ICMP_PROBLEM_PROHIBITED},
		[API_DISCARD_UNASSIGNED] = {&drop_unassigned, ICMP_PROBLEM_COUNT},
	};

	if (own || what[hop->discard].problem == ICMP_PROBLEM_COUNT)
		return packet_leave(m, what[hop->discard].drop, EDGE_DROP);
	return tell_source(m, what[hop->discard].problem, 0);
}

static rte_edge_t unresolved(
	struct rte_mbuf *m, const struct next_hop *hop, const uint8_t *packet, const uint8_t *destination)
{
	const struct packet *pkt = packet_of(m);

	if (ip_is_local(pkt->vrf, pkt->ip_version, destination))
		return to_ourselves(m, packet, destination);
	if (!next_hop_leads(hop))
		return lead_nowhere(m, hop, is_own(pkt, packet));
	// Now, while we know whose it is.
	if (pkt->length > hop->mtu && !may_fragment(pkt, packet))
		return tell_source(m, ICMP_PROBLEM_TOO_BIG, hop->mtu);
	return packet_leave(m, &punt_resolve, EDGE_PUNT);
}

static rte_edge_t too_big(struct rte_mbuf *m, const uint8_t *packet, uint32_t index, uint32_t mtu)
{
	if (may_fragment(packet_of(m), packet)) {
		session_view_of(m)->next_hop = index;
		return EDGE_FRAGMENT;
	}
	return tell_source(m, ICMP_PROBLEM_TOO_BIG, mtu);
}

static __rte_always_inline rte_edge_t ip_output(struct rte_mbuf *m, struct ways *ways, uint32_t generation)
{
	struct packet *pkt = packet_of(m);
	uint8_t *packet = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);
	int four = pkt->ip_version == 4;
	const uint8_t *destination = packet + (four ? 16 : 24);

	if (unlikely((!four && pkt->ip_version != 6) || pkt->l3 + (four ? 20u : 40u) > m->data_len))
		return packet_leave(m, &drop_version, EDGE_DROP);
	uint32_t index =
		ways_find(ways, generation, way_table(pkt->vrf), pkt->ip_version, destination, pkt->interface)->index;
	const struct next_hop *hop;
	if (unlikely(!route_hop(index, packet, m->data_len - pkt->l3, m->pkt_len - pkt->l3, &hop)))
		return unresolved(m, hop, packet, destination);
	if (unlikely(pkt->length > hop->mtu))
		return too_big(m, packet, (uint32_t)(hop - next_hop_get(0)), hop->mtu);
	if (unlikely(m->data_off + pkt->l3 < NEXT_HOP_HEADER))
		return packet_leave(m, &drop_room, EDGE_DROP);
	next_hop_header_put(hop, packet, pkt->ip_version);
	// The new header replaces all before the IP header.
	int grow = (int)hop->l2_length - (int)pkt->l3;
	m->data_off = (uint16_t)(m->data_off - grow);
	m->data_len = (uint16_t)(m->data_len + grow);
	m->pkt_len = (uint32_t)((int)m->pkt_len + grow);
	pkt->l4 = (uint16_t)(pkt->l4 + grow);
	pkt->l3 = hop->l2_length;
	pkt->port_out = hop->port;
	return likely(pkt->shaped != hop->port + 1) ? EDGE_TX : EDGE_SCHEDULER;
}

static uint16_t ip_output_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	// Before any table is read: results of older tables are not kept beyond this vector.
	uint32_t generation = __atomic_load_n(&ip_ways_generation, __ATOMIC_ACQUIRE);
	struct ways *ways = ways_of(worker_self());
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i++)
			next[i] = ip_output(objs[base + i], ways, generation);
		node_dispatch(graph, node, objs + base, next, count);
	}
	return n;
}

static struct rte_node_register ip_output_node = {
	.name = "ip-output",
	.process = ip_output_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "@output-core",
		[EDGE_SCHEDULER] = "scheduler",
		[EDGE_INPUT] = "@input-ip",
		[EDGE_FRAGMENT] = "fragment-core",
		[EDGE_ERROR] = "@error",
		[EDGE_PUNT] = "punt",
		[EDGE_DROP] = "drop"},
};
NODE_REGISTER(ip_output_node)
NODE_ARC("output-core", "port-tx")
NODE_ARC("output-ip", "ip-output")

RTE_INIT(ip_output_start)
{
	resume_register("ip-output"); // packets that waited for a neighbour
}
