// SPDX-License-Identifier: Apache-2.0
// gtpu-encap: IP/UDP/GTP-U (TS 29.281) with the PDU Session Container (TS 38.415) in front of a subscriber's packet:
// the path's template in one 64-byte store, then lengths, TEID, QFI and checksum.
#include "core/node.h"
#include "path/outer.h"
#include "rule/rule.h"
#include "rule/view.h"
#include "wire/ecn.h"
#include <rte_ip.h>
#include <string.h>

DROP_REASON(drop_no_path, "gtpu-path-gone", "the GTP-U path of the session does not exist any more")
DROP_REASON(drop_room, "gtpu-headroom", "there is no room in front of the packet for the outer headers")
DROP_REASON(drop_long, "gtpu-too-long", "the packet with its outer headers is longer than 65535 bytes")

enum { EDGE_OUTPUT, EDGE_DROP, EDGE_COUNT };

static void finish_ip6(struct rte_mbuf *m, uint8_t *ip, uint32_t length, uint8_t class)
{
	outer_finish_ip6(ip, length, class);
	uint16_t sum = rte_ipv6_udptcp_cksum_mbuf(m, (const struct rte_ipv6_hdr *)ip, IP6_HEADER);
	memcpy(ip + IP6_HEADER + 6, &sum, 2);
}

// What is not in the path's template, of the outer headers at `ip`, and the metadata that ip-output needs. `length` of
// the whole.
static __rte_always_inline rte_edge_t finish(
	struct worker *w, struct rte_mbuf *m, const struct path *p, uint8_t *ip, uint32_t length, uint8_t class)
{
	struct packet *pkt = packet_of(m);
	uint32_t ip_length = path_ip_length(p);
	outer_finish(ip, ip_length, length, session_view_of(m)->rule->teid);
	if (likely(p->version == 4))
		outer_finish_ip4(w, ip, p->index, p->ip4_sum, length, class);
	else
		finish_ip6(m, ip, length, class);
	pkt->l3 = 0;
	pkt->l4 = (uint16_t)ip_length;
	pkt->ip_version = p->version;
	pkt->vrf = path_vrf(p);
	pkt->protocol = 17;
	pkt->fragment = 0;
	pkt->translated = 0;
	pkt->length = length;
	return EDGE_OUTPUT;
}

// From tunnel to tunnel, with more in the header that came than a QFI (SGW-U, UPF on N9, indirect forwarding at a
// handover): TS 29.244
// §8.2.64 and §8.2.56, notes 1. That header still lies in front of the packet.
static __rte_noinline rte_edge_t relay(
	struct worker *w, struct rte_mbuf *m, const struct rule *r, const struct path *p, uint8_t class, uint8_t octet)
{
	uint32_t came = session_view_of(m)->relayed, ip_length = path_ip_length(p);

	if (rte_pktmbuf_headroom(m) < OUTER_LENGTH_MAX + came)
		return packet_leave(m, &drop_room, EDGE_DROP);
	uint32_t gtpu = gtpu_relay(rte_pktmbuf_mtod(m, uint8_t *), came,
		r->pdu_type == API_PDU_NONE ? GTPU_NO_QFI : octet, outer_wire_type(r->pdu_type), r->without_container);
	uint32_t length = packet_of(m)->length + ip_length + 8 + gtpu;
	if (length > UINT16_MAX)
		return packet_leave(m, &drop_long, EDGE_DROP);
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)(ip_length + 8 + gtpu));
	memcpy(ip, path_header(p, 0), ip_length + 8);
	return finish(w, m, p, ip, length, class);
}

static __rte_always_inline rte_edge_t gtpu_encap_packet(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	struct session_view *v = session_view_of(m);
	const struct rule *r = v->rule;
	const struct path *p = path_get(r->path);
	uint8_t qfi = r->qfi, type = r->pdu_type;

	// TS 23.501 §5.7.1.1: the QFI goes along on N3 and N9. Where no QER sets one, it is the one that came in, if
	// any did.
	if (likely(!r->without_container)) {
		qfi = qfi != GTPU_NO_QFI ? qfi : v->qfi;
		type = v->pdu_type != API_PDU_NONE ? v->pdu_type : type;
	}
	pkt->shaped = r->up.shaped;
	if (unlikely(r->up.shaped != 0)) // ip-output, where the frame is whole, gives it to the scheduler
		v->pipe = session_pools.match[rule_index(r)].pipe;
	int container = qfi != GTPU_NO_QFI && type != API_PDU_NONE;

	if (unlikely(p == NULL))
		return packet_leave(m, &drop_no_path, EDGE_DROP);
	uint32_t outer = p->length[container], length = pkt->length + outer;
	if (unlikely(rte_pktmbuf_headroom(m) < OUTER_LENGTH_MAX))
		return packet_leave(m, &drop_room, EDGE_DROP);
	if (unlikely(length > UINT16_MAX))
		return packet_leave(m, &drop_long, EDGE_DROP);
	// RFC 6040 §4.1: the congestion field goes along, the DSCP is the path's or the FAR's.
	uint8_t class = (uint8_t)(path_dscp(p, r->dscp, qfi) << 2 |
				  ip_ecn(pkt->ip_version, rte_pktmbuf_mtod(m, const uint8_t *)));
	if (unlikely(v->relayed != 0) && !r->no_relay)
		return relay(w, m, r, p, class, qfi == GTPU_NO_QFI ? qfi : outer_qfi(type, qfi, r->rqi));
	memcpy(rte_pktmbuf_mtod(m, uint8_t *) - OUTER_LENGTH_MAX, p->header[container], OUTER_LENGTH_MAX);
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)outer);
	if (likely(container))
		outer_container(ip + path_ip_length(p) + 8, type, qfi, r->rqi);
	return finish(w, m, p, ip, length, class);
}

static uint16_t gtpu_encap(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, gtpu_encap_packet);
}

static struct rte_node_register gtpu_encap_node = {
	.name = "gtpu-encap",
	.process = gtpu_encap,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_OUTPUT] = "ip-output", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(gtpu_encap_node)
