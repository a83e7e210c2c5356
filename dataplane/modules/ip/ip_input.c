// SPDX-License-Identifier: Apache-2.0
// ip-input: is it a proper IP packet, and is it for us? Local packets go to the node that registered for them; others
// are forwarded, on interfaces of network instances after a look for the UE that they are from or to.
//
// Checks are in memory-safety order (wire/ip.h), which covers RFC 1812 §5.2.2 and RFC 8200 §3.
#include "core/node.h"
#include "host/clone.h"
#include "host/host.h"
#include "instance/instance.h"
#include "neighbour/neighbour.h"
#include "route/deliver.h"
#include "route/route.h"
#include "rule/view.h"
#include "wire/checksum.h"
#include "wire/ip.h"
#include <string.h>

DROP_REASON(drop_short, "ip-short",
	"the packet ends within its IP or transport header. Cut-off frames: see MTU, buffer_size, limits of "
	"net_af_packet")
DROP_REASON(drop_version, "ip-version",
	"the packet's IP version differs from what its frame announces. Broken packets: capture them")
DROP_REASON(drop_header, "ip-header-length",
	"the IPv4 header length is below 20 bytes or past the packet. Broken packets: capture them")
DROP_REASON(drop_length, "ip-length",
	"the IP length field does not fit the frame. Cut-off frames: see MTU, buffer_size, limits of net_af_packet")
DROP_REASON(drop_extensions, "ip-extension-headers",
	"IPv6 extension headers are truncated, out of order or too many. Broken packets: capture them")
DROP_REASON(drop_transport, "ip-transport-header",
	"the transport header is truncated or has an impossible length. Broken packets: capture them")
DROP_REASON(drop_checksum, "ip-checksum",
	"the IPv4 header checksum is wrong. Broken packets, or checksums left to a card: ethtool -K DEVICE tx off")
DROP_REASON(drop_source, "ip-martian-source",
	"the source address must not appear on the wire. See what neighbours send, and their anti-spoofing")
DROP_REASON(drop_destination, "ip-martian-destination",
	"the destination address must not appear on the wire. See what neighbours send, and their anti-spoofing")
DROP_REASON(drop_rpf, "ip-reverse-path",
	"no route leads back to the packet's source, or none by its interface (RFC 3704). See reverse_path: forged, or "
	"ways there and back differ (loose)")
DROP_REASON(drop_multicast, "ip-multicast",
	"nothing here listens to that multicast or broadcast address. See what neighbours send, and their "
	"anti-spoofing")
DROP_REASON(drop_protocol, "ip-protocol-unreachable",
	"sent to one of our addresses with a protocol that is not served. A scan of protocols")
DROP_REASON(drop_redirect, "ip-redirect",
	"a router does not follow redirects. See what neighbours send, and their anti-spoofing")

enum { EDGE_FORWARD, EDGE_UE, EDGE_REASSEMBLY, EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

static uint16_t ip_input_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n);

static struct rte_node_register ip_input_node = {
	.name = "ip-input",
	.process = ip_input_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_FORWARD] = "ip-forward",
		[EDGE_UE] = "@lookup-ue",
		[EDGE_REASSEMBLY] = "reassembly",
		[EDGE_PUNT] = "punt",
		[EDGE_DROP] = "drop",
		[EDGE_COUNT + MAX_LOCAL_NODES] = NULL},
};
NODE_REGISTER(ip_input_node)
NODE_ARC("input-ip", "ip-input")

RTE_INIT(ip_input_deliver)
{
	ip_deliver_from(&ip_input_node);
}

static rte_edge_t malformed(struct rte_mbuf *m, enum ip_status status)
{
	static const struct reason *const reason[] = {
		[IP_SHORT] = &drop_short,
		[IP_VERSION] = &drop_version,
		[IP_HEADER] = &drop_header,
		[IP_LENGTH] = &drop_length,
		[IP_EXTENSIONS] = &drop_extensions,
		[IP_TRANSPORT] = &drop_transport,
		[IP_SUM] = &drop_checksum,
	};

	return packet_leave(m, reason[status], EDGE_DROP);
}

static rte_edge_t discovery(struct rte_mbuf *m, uint8_t type)
{
	if (type == 137)
		return packet_leave(m, &drop_redirect, EDGE_DROP);
	return packet_leave(m, type <= 134 ? &punt_router_discovery : &punt_nd, EDGE_PUNT);
}

static inline rte_edge_t deliver(struct rte_mbuf *m, const struct ip_info *ip)
{
	const struct ip_deliveries *d = &ip_deliveries;

	if (unlikely(ip->fragment != 0))
		return EDGE_REASSEMBLY;
	if (likely(ip->protocol == IP_PROTOCOL_UDP)) {
		for (uint16_t i = 0; i < d->udp_count; i++)
			if (likely(d->udp[i].port == ip->destination_port))
				return (rte_edge_t)(EDGE_COUNT - 1 + d->udp[i].node);
		uint16_t port = ip->destination_port;
		if (d->open != NULL && (__atomic_load_n(&d->open[port / 64], __ATOMIC_RELAXED) >> port % 64 & 1) != 0)
			return (rte_edge_t)(EDGE_COUNT - 1 + d->open_node);
		return packet_leave(m, host_reason_to_us(ip), EDGE_PUNT);
	}
	if (d->protocol[ip->protocol] != 0)
		return (rte_edge_t)(EDGE_COUNT - 1 + d->protocol[ip->protocol]);
	if (ip->protocol == IP_PROTOCOL_TCP || ip->protocol == IP_PROTOCOL_SCTP)
		return packet_leave(m, host_reason_to_us(ip), EDGE_PUNT);
	if (clone_exists(packet_of(m)->interface) && host_is_routing(ip))
		return packet_leave(m, &punt_routing, EDGE_PUNT);
	// Also tunnels that are not configured (CVE-2020-10136, row G27).
	return packet_leave(m, &drop_protocol, EDGE_DROP);
}

// RFC 3704 §2.2, §2.4. Link-local sources are on the link.
static __rte_noinline int is_from_elsewhere(const struct packet *pkt, const struct ip_info *ip)
{
	if (address_is_link_local(ip->version, ip->source))
		return 0;
	const struct next_hop *hop = next_hop_get(ip_route_lookup(pkt->vrf, ip->version, ip->source));
	return !instance_source_routed(hop, pkt->rpf, pkt->interface, pkt->vrf, ip->version, ip->source);
}

// Only the kernel's programs listen to groups, on interfaces with a clone.
static __rte_noinline rte_edge_t to_group(struct rte_mbuf *m, const struct ip_info *ip)
{
	const struct reason *r = clone_exists(packet_of(m)->interface) ? host_reason_of_group(ip) : NULL;

	return r == NULL ? packet_leave(m, &drop_multicast, EDGE_DROP) : packet_leave(m, r, EDGE_PUNT);
}

// The last destination, and whether it is ours: most packets of a vector share it.
struct last {
	uint64_t high, low;
	uint8_t version;
	uint8_t vrf;
	uint8_t is_local;
};

static inline int is_local(struct last *last, uint8_t vrf, const struct ip_info *ip)
{
	uint64_t high = 0, low = 0;

	if (likely(ip->version == 4)) {
		memcpy(&low, ip->destination, 4);
	} else {
		memcpy(&high, ip->destination, 8);
		memcpy(&low, ip->destination + 8, 8);
	}
	if (unlikely(last->low != low || last->high != high || last->version != ip->version || last->vrf != vrf)) {
		*last = (struct last){.high = high, .low = low, .version = ip->version, .vrf = vrf};
		last->is_local = (uint8_t)ip_is_local(vrf, ip->version, ip->destination);
	}
	return last->is_local;
}

static inline rte_edge_t ip_input(struct rte_mbuf *m, struct last *last)
{
	struct packet *pkt = packet_of(m);
	uint32_t readable = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m);
	const uint8_t *packet = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	struct ip_info ip;

	if (unlikely(pkt->l3 > readable))
		return malformed(m, IP_SHORT);
	enum ip_status status = ip_check(packet, readable - pkt->l3, total - pkt->l3, &ip);
	if (unlikely(status != IP_OK))
		return malformed(m, status);
	if (unlikely(pkt->ip_version != 0 && ip.version != pkt->ip_version))
		return malformed(m, IP_VERSION);
	if (unlikely(pkt->l3 + ip.length < total) && rte_pktmbuf_trim(m, (uint16_t)(total - pkt->l3 - ip.length)) != 0)
		return malformed(m, IP_LENGTH); // padding of more than a whole segment
	pkt->ip_version = ip.version;
	pkt->protocol = ip.protocol;
	pkt->fragment = ip.fragment;
	pkt->l4 = (uint16_t)(pkt->l3 + ip.l4);
	pkt->length = ip.length;
	session_view_of(m)->rule = NULL;
	if (unlikely(ip_is_discovery(packet, &ip))) // before the addresses: much of it is multicast
		return discovery(m, packet[ip.l4]);
	unsigned martian = ip_martian(ip.version, ip.source, ip.destination);
	if (unlikely(martian & IP_MARTIAN_SOURCE))
		return packet_leave(m, &drop_source, EDGE_DROP);
	if (unlikely(martian & IP_MARTIAN_DESTINATION))
		return packet_leave(m, &drop_destination, EDGE_DROP);
	if (unlikely(pkt->rpf != 0 && is_from_elsewhere(pkt, &ip)))
		return packet_leave(m, &drop_rpf, EDGE_DROP);
	if (unlikely(martian & IP_MULTICAST))
		return to_group(m, &ip);
	if (is_local(last, pkt->vrf, &ip))
		return deliver(m, &ip);
	pkt->instance = instance_of_lookup(pkt->interface);
	return pkt->instance == INSTANCE_NONE ? EDGE_FORWARD : EDGE_UE;
}

static uint16_t ip_input_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct last last = {0};
	rte_edge_t next[NODE_CHUNK];

	if (likely(n <= NODE_CHUNK)) {
		for (uint16_t i = 0; i < n; i++)
			next[i] = ip_input(objs[i], &last);
		node_dispatch(graph, node, objs, next, n);
		return n;
	}
	for (uint16_t i = 0; i < n; i++)
		rte_node_enqueue_x1(graph, node, ip_input(objs[i], &last), objs[i]);
	return n;
}
