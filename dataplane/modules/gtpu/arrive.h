// SPDX-License-Identifier: Apache-2.0
// What gtpu-input and the fast path of plain G-PDUs (plain.h) share: the metadata of a tunnel packet, and its inner packet.
#ifndef GTPU_ARRIVE_H
#define GTPU_ARRIVE_H

#include "core/packet.h"
#include "rule/view.h"
#include "wire/ecn.h"
#include "wire/gtpu.h"
#include "wire/ip.h"

// Leaves what the header said for the nodes behind. `at`: offset of the GTP-U header; the packet's l3 is still the outer one.
static __rte_always_inline void gtpu_arrived(struct rte_mbuf *m, const struct gtpu_info *gtpu, uint8_t outer_version,
	uint16_t outer_l3, uint16_t at, uint16_t local)
{
	struct tunnel_view *t = tunnel_view_of(m);

	t->teid = gtpu->teid;
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

enum gtpu_inner { GTPU_INNER_OK, GTPU_INNER_VERSION, GTPU_INNER_MALFORMED, GTPU_INNER_MARTIAN, GTPU_INNER_ECN };

// Checks the inner IP packet at offset `at`, which fills the `total` bytes of the tunnel packet's rest, and moves the metadata to
// it. `ecn` is the outer header's, of which the inner one keeps a congestion mark (RFC 6040 §4.2). Nothing is written unless it is
// GTPU_INNER_OK.
static __rte_always_inline enum gtpu_inner gtpu_inner_enter(
	struct rte_mbuf *m, uint32_t at, uint32_t total, uint8_t ecn, int mobile)
{
	struct packet *pkt = packet_of(m);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, at);
	struct ip_info info;
	enum ip_status status = ip_parse(ip, rte_pktmbuf_data_len(m) - at, total, &info);

	// Inside a tunnel there is no padding: a packet shorter than its tunnel packet is malformed too (row G6).
	if (unlikely(status != IP_OK || info.length != total))
		return status == IP_VERSION ? GTPU_INNER_VERSION : GTPU_INNER_MALFORMED;
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

#endif
