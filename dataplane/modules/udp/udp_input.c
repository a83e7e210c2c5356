// SPDX-License-Identifier: Apache-2.0
// udp-input: outer UDP/IP header removal (TS 29.244 §8.2.64). Packets to our address and the UDP port of their
// interface's network instance go to session-ue with l3 at the inner header.
#include "core/node.h"
#include "core/trace.h"
#include "instance/instance.h"
#include "path/udp_sum.h"
#include "route/deliver.h"
#include "wire/ecn.h"
#include "wire/ip.h"

DROP_REASON(drop_port, "udp-not-endpoint",
	"the UDP port is that of another network instance's tunnels. See udp_port of the network instances")
DROP_REASON(drop_udp, "udp-length",
	"the length of the UDP tunnel packet does not fit its IP packet. Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_sum, "udp-checksum",
	"the UDP checksum of the tunnel packet is wrong, or none over IPv6 (RFC 1122, RFC 8200). Capture it; see "
	"engine.tunnel_checksums")
DROP_REASON(drop_inner_sum, "udp-inner-checksum",
	"the inner IPv4 header checksum is wrong (RFC 1812 §5.2.2). Broken packets, or checksums left to a card: "
	"ethtool -K DEVICE tx off")
DROP_REASON(drop_inner, "udp-inner-malformed",
	"the IP packet in the UDP tunnel is malformed, or its lengths do not fit. What UEs or hosts send: see the "
	"peer's anti-spoofing")
DROP_REASON(drop_martian, "udp-inner-martian",
	"an address of the packet in the UDP tunnel may not be used. What UEs or hosts send: see the peer's "
	"anti-spoofing")

DROP_REASON(drop_ecn, "udp-inner-ecn",
	"the tunnel packet was marked for congestion, the packet in it is not ECN-capable (RFC 6040). Congestion on "
	"the way to us")

enum { EDGE_SESSION, EDGE_DROP, EDGE_COUNT };

static rte_edge_t udp_input_packet(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *udp = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l4);
	uint32_t room = pkt->length - (pkt->l4 - pkt->l3), length = load16(udp + 4); // ip-input checked 8 bytes of UDP
	uint32_t at = pkt->l4 + 8u;
	struct ip_info info;

	if (unlikely(instance_udp_port(pkt->interface) != load16(udp + 2)))
		return packet_leave(m, &drop_port, EDGE_DROP);
	if (unlikely(length != room || rte_pktmbuf_data_len(m) < at))
		return packet_leave(m, &drop_udp, EDGE_DROP);
	if (unlikely(!udp_sum_good(m, pkt->ip_version, pkt->l3, pkt->l4)))
		return packet_leave(m, &drop_sum, EDGE_DROP);
	enum ip_status status = ip_check(udp + 8, rte_pktmbuf_data_len(m) - at, length - 8, &info);
	if (status != IP_OK || info.length != length - 8)
		return packet_leave(m, status == IP_SUM ? &drop_inner_sum : &drop_inner, EDGE_DROP);
	if (ip_martian(info.version, info.source, info.destination) != 0)
		return packet_leave(m, &drop_martian, EDGE_DROP);
	uint8_t *inner = rte_pktmbuf_mtod_offset(m, uint8_t *, at);
	uint8_t ecn = ip_ecn(pkt->ip_version, rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3));
	if (ecn_acts(ecn, ip_ecn(info.version, inner)) && !ecn_leave_tunnel(ecn, info.version, inner))
		return packet_leave(m, &drop_ecn, EDGE_DROP);
	pkt->instance = instance_of_interface(pkt->interface);
	pkt->l3 = (uint16_t)at;
	pkt->l4 = (uint16_t)(at + info.l4);
	pkt->ip_version = info.version;
	pkt->protocol = info.protocol;
	pkt->fragment = info.fragment;
	pkt->length = info.length;
	return EDGE_SESSION;
}

NODE_EACH(udp_input, udp_input_packet)

TRACE_STAGE("udp-input", .pure = 1)

static struct rte_node_register udp_input_node = {
	.name = "udp-input",
	.process = udp_input,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_SESSION] = "@lookup-ue", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(udp_input_node)

RTE_INIT(udp_input_local)
{
	ip_local_register_udp_map(instance_udp_open, "udp-input");
}
