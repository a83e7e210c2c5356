// SPDX-License-Identifier: Apache-2.0
// gtpu-input: UDP port 2152 of our tunnel endpoints. Checks UDP, GTP-U with its extension headers, and the inner IP
// header. A G-PDU leaves with l3 at its inner header: to session-tunnel if the endpoint is a network instance's, else
// to the firewall of wireline sessions. Other messages go to gtpu-control.
#include "core/node.h"
#include "instance/instance.h"
#include "path/local.h"
#include "path/udp_sum.h"
#include "route/deliver.h"
#include "route/route.h"
#include "rule/view.h"
#include "wire/ecn.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#include <string.h>

DROP_REASON(drop_endpoint, "gtpu-not-endpoint",
	"GTP-U to an address or interface that is no tunnel endpoint. See paths, instances[].endpoints and the "
	"interface")
DROP_REASON(drop_udp, "gtpu-udp-length",
	"the UDP length does not fit the IP packet. Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_sum, "gtpu-udp-checksum",
	"the UDP checksum of the tunnel packet is wrong, or none over IPv6 (RFC 1122, RFC 8200). Capture it; see "
	"engine.tunnel_checksums")
DROP_REASON(drop_short, "gtpu-short", "the GTP-U header is cut short. Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_version, "gtpu-version",
	"GTP version is not 1, or the protocol is GTP' (TS 29.281 §5.1). Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_length, "gtpu-length",
	"the GTP-U length does not fit the UDP payload. Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_extension, "gtpu-extension",
	"an extension header is malformed, or one too many. Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_inner, "gtpu-inner-malformed",
	"the inner IP header is malformed, or its lengths do not fit the tunnel packet. What UEs or hosts send: see "
	"the peer's anti-spoofing")
DROP_REASON(drop_inner_sum, "gtpu-inner-checksum",
	"the inner IPv4 header checksum is wrong (RFC 1812 §5.2.2). Broken packets, or checksums left to a card: "
	"ethtool -K DEVICE tx off")
DROP_REASON(drop_inner_version, "gtpu-inner-version",
	"the inner packet is neither IPv4 nor IPv6. What UEs or hosts send: see the peer's anti-spoofing")
DROP_REASON(drop_ecn, "gtpu-inner-ecn",
	"the tunnel packet was marked for congestion, the packet in it is not ECN-capable (RFC 6040). Congestion on "
	"the way to us")
DROP_REASON(drop_martian, "gtpu-inner-martian",
	"the inner source or destination address may not be used. What UEs or hosts send: see the peer's anti-spoofing")

enum { EDGE_DOWNLINK, EDGE_TUNNEL, EDGE_CONTROL, EDGE_DROP, EDGE_COUNT };

// The last endpoint looked up; most packets of a vector share it.
struct last {
	uint32_t interface;
	uint16_t local, instance;
	uint8_t version;
	uint8_t address[16];
};

static uint16_t find_endpoint(struct last *last, uint8_t version, const uint8_t *address, uint32_t interface)
{
	uint32_t n = version == 4 ? 4 : 16;

	if (likely(last->version == version && last->interface == interface && memcmp(last->address, address, n) == 0))
		return last->local;
	last->version = version;
	last->interface = interface;
	memcpy(last->address, address, n);
	// Row G20: an endpoint serves only the interface that has its address.
	last->local = ip_is_local_on(version, address, interface) ? path_local_id(version, address) : PATH_LOCAL_NONE;
	last->instance = instance_of_local(last->local);
	return last->local;
}

// Stores the header's fields for later nodes. `at`: offset of the GTP-U header; the packet's l3 is still the outer one.
static inline void gtpu_arrived(struct rte_mbuf *m, const struct gtpu_info *gtpu, uint8_t outer_version,
	uint16_t outer_l3, uint16_t at, uint16_t local)
{
	struct tunnel_view *t = tunnel_view_of(m);

	t->teid = gtpu->teid;
	t->permitted = 0;
	t->header_length = gtpu->header_length;
	t->sequence = gtpu->sequence;
	t->message = gtpu->message;
	t->qfi = gtpu->qfi;
	t->has_sequence = gtpu->has_sequence;
	t->outer_version = outer_version;
	t->outer_l3 = outer_l3;
	t->gtpu = at;
	t->local = local;
	t->more = gtpu->more;
	t->pdu_type = (uint8_t)(gtpu->pdu_type + (gtpu->qfi != GTPU_NO_QFI)); // API_PDU_NONE, _DL, _UL
}

enum gtpu_inner {
	GTPU_INNER_OK,
	GTPU_INNER_VERSION,
	GTPU_INNER_CHECKSUM,
	GTPU_INNER_MALFORMED,
	GTPU_INNER_MARTIAN,
	GTPU_INNER_ECN,
};

// Checks the inner IP packet at offset `at`, which must fill the rest of `total` bytes, and moves the metadata to it.
// `ecn` is the outer header's; a congestion mark is copied to the inner one (RFC 6040 §4.2). Writes nothing unless
// GTPU_INNER_OK.
static inline enum gtpu_inner gtpu_inner_enter(struct rte_mbuf *m, uint32_t at, uint32_t total, uint8_t ecn, int mobile)
{
	struct packet *pkt = packet_of(m);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, at);
	struct ip_info info;
	enum ip_status status = ip_check(ip, rte_pktmbuf_data_len(m) - at, total, &info);

	// Inside a tunnel there is no padding: a packet shorter than its tunnel packet is malformed too (row G6).
	if (unlikely(status != IP_OK || info.length != total))
		return status == IP_VERSION ? GTPU_INNER_VERSION
		       : status == IP_SUM   ? GTPU_INNER_CHECKSUM
					    : GTPU_INNER_MALFORMED;
	unsigned martian = ip_martian(info.version, info.source, info.destination);
	// Router solicitations and the like pass on to a further tunnel, but are not routed (session-tunnel).
	if (unlikely((martian & (mobile ? ~(unsigned)IP_MULTICAST : ~0u)) != 0))
		return GTPU_INNER_MARTIAN;
	if (unlikely(ecn_acts(ecn, ip_ecn(info.version, ip))) && !ecn_leave_tunnel(ecn, info.version, ip))
		return GTPU_INNER_ECN;
	pkt->l3 = (uint16_t)at;
	pkt->l4 = (uint16_t)(at + info.l4);
	pkt->ip_version = info.version;
	pkt->protocol = info.protocol;
	pkt->fragment = info.fragment;
	pkt->length = info.length;
	return GTPU_INNER_OK;
}

static rte_edge_t malformed(struct rte_mbuf *m, enum gtpu_status status)
{
	static const struct reason *const reasons[] = {
		[GTPU_SHORT] = &drop_short,
		[GTPU_VERSION] = &drop_version,
		[GTPU_LENGTH] = &drop_length,
		[GTPU_EXTENSION] = &drop_extension,
	};

	return packet_leave(m, reasons[status], EDGE_DROP);
}

static rte_edge_t inner(struct rte_mbuf *m, uint32_t at, uint32_t total, uint8_t ecn, int mobile)
{
	static const struct reason *const reasons[] = {
		[GTPU_INNER_VERSION] = &drop_inner_version,
		[GTPU_INNER_CHECKSUM] = &drop_inner_sum,
		[GTPU_INNER_MALFORMED] = &drop_inner,
		[GTPU_INNER_MARTIAN] = &drop_martian,
		[GTPU_INNER_ECN] = &drop_ecn,
	};
	enum gtpu_inner status = gtpu_inner_enter(m, at, total, ecn, mobile);

	if (unlikely(status != GTPU_INNER_OK))
		return packet_leave(m, reasons[status], EDGE_DROP);
	return mobile ? EDGE_TUNNEL : EDGE_DOWNLINK;
}

static rte_edge_t gtpu_input_packet(struct rte_mbuf *m, struct last *last)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *udp = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l4);
	const uint8_t *outer = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	uint32_t room = pkt->length - (pkt->l4 - pkt->l3), length = load16(udp + 4); // ip-input checked 8 bytes of UDP
	uint32_t at = pkt->l4 + 8u;
	struct gtpu_info gtpu;

	if (unlikely(length != room || rte_pktmbuf_data_len(m) < at))
		return packet_leave(m, &drop_udp, EDGE_DROP);
	if (unlikely(!udp_sum_good(m, pkt->ip_version, pkt->l3, pkt->l4)))
		return packet_leave(m, &drop_sum, EDGE_DROP);
	uint16_t local =
		find_endpoint(last, pkt->ip_version, pkt->ip_version == 4 ? outer + 16 : outer + 24, pkt->interface);
	if (unlikely(local == PATH_LOCAL_NONE))
		return packet_leave(m, &drop_endpoint, EDGE_DROP);
	enum gtpu_status status = gtpu_parse(udp + 8, rte_pktmbuf_data_len(m) - at, length - 8, &gtpu);
	if (unlikely(status != GTPU_OK && status != GTPU_REQUIRED))
		return malformed(m, status);
	// An extension header is unknown that must be understood, at least by an end point. The session of a network
	// instance's packet decides whether it enters another tunnel.
	int mobile = last->instance != INSTANCE_NONE;
	if (unlikely(
		    status == GTPU_REQUIRED || ((gtpu.more & GTPU_ENDPOINT) && (gtpu.message != GTPU_GPDU || !mobile))))
		gtpu.header_length = 0;
	gtpu_arrived(m, &gtpu, pkt->ip_version, pkt->l3, (uint16_t)at, local);
	if (unlikely(gtpu.message != GTPU_GPDU || gtpu.header_length == 0))
		return EDGE_CONTROL;
	pkt->instance = last->instance;
	return inner(m, at + gtpu.header_length, length - 8 - gtpu.header_length, ip_ecn(pkt->ip_version, outer),
		last->instance != INSTANCE_NONE);
}

static uint16_t gtpu_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct last last = {0};
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i++)
			next[i] = gtpu_input_packet(objs[base + i], &last);
		node_dispatch(graph, node, objs + base, next, count);
	}
	return n;
}

static struct rte_node_register gtpu_input_node = {
	.name = "gtpu-input",
	.process = gtpu_input,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_DOWNLINK] = "@lookup-downlink",
		[EDGE_TUNNEL] = "@lookup-tunnel",
		[EDGE_CONTROL] = "gtpu-control",
		[EDGE_DROP] = "drop"},
};
NODE_REGISTER(gtpu_input_node)
NODE_ARC("input-gtpu", "gtpu-input")

RTE_INIT(gtpu_input_local)
{
	ip_local_register_udp(GTPU_PORT, "@input-gtpu");
}
