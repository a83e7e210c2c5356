// SPDX-License-Identifier: Apache-2.0
// Makes a G-PDU of a user's packet (TS 29.281, TS 38.415), by an action: for gtpu-encap, the fast path, copies, and
// devices.
#ifndef FORWARD_TUNNEL_H
#define FORWARD_TUNNEL_H

#include "path/path.h"
#include "rule/action.h"
#include "wire/checksum.h"
#include "wire/ecn.h"
#include "wire/ip.h"
#include <rte_byteorder.h>
#include <string.h>

static_assert(ACTION_NO_QFI == GTPU_NO_QFI, "an action's QFI is a container's");

// A PDU Session Container (TS 38.415 §5.5.2).
struct container {
	uint8_t qfi; // GTPU_NO_QFI: none
	uint8_t pdu_type; // enum api_pdu_type
};

// `came`: the received container; API_PDU_NONE: none. Returns 1: *goes is sent; 0: none is sent, though goes->qfi may
// be a QFI.
static __rte_always_inline int tunnel_container(const struct action *a, struct container came, struct container *goes)
{
	uint8_t qfi = a->qfi, type = a->flags >> ACTION_PDU_SHIFT;

	// TS 23.501 §5.7.1.1: the QFI is sent on N3 and N9. Without a QER's QFI it is the received one.
	if (likely(!(a->flags & ACTION_WITHOUT_CONTAINER))) {
		qfi = qfi != GTPU_NO_QFI ? qfi : came.qfi;
		type = came.pdu_type != API_PDU_NONE ? came.pdu_type : type;
	}
	*goes = (struct container){.qfi = qfi, .pdu_type = type};
	return qfi != GTPU_NO_QFI && type != API_PDU_NONE;
}

static inline uint8_t tunnel_wire_type(uint8_t pdu_type)
{
	return pdu_type == API_PDU_UL ? GTPU_PDU_UL : GTPU_PDU_DL;
}

// The container's octet with the QFI; only downlink ones have the reflective QoS indicator (TS 38.415 §5.5.2.1,
// §5.5.2.2).
static inline uint8_t tunnel_qfi_octet(const struct action *a, struct container c)
{
	return (uint8_t)(c.qfi | (a->rqi & (c.pdu_type == API_PDU_DL)) << 6);
}

// DSCP << 2 of the outer header of a packet with this QFI. `p`: the path of `o`.
static __rte_always_inline uint8_t tunnel_class(
	const struct action *a, const struct outer *o, const struct path *p, uint8_t qfi)
{
	return likely(a->dscp == ACTION_NO_DSCP && !o->by_qfi) ? o->class : (uint8_t)(path_dscp(p, a->dscp, qfi) << 2);
}

typedef uint8_t tunnel_piece __attribute__((vector_size(32), aligned(1), may_alias));

// Puts the last `bytes` of the template in front of `end`, where the user's packet begins, and the container in them.
static __rte_always_inline void tunnel_put(
	uint8_t *end, const struct outer *o, uint32_t bytes, const struct action *a, int container, struct container c)
{
	const tunnel_piece *from = (const tunnel_piece *)(o->header[container] + OUTER_BYTES - bytes);
	tunnel_piece *to = (tunnel_piece *)(end - bytes);

	for (uint32_t i = 0; i < bytes / sizeof(tunnel_piece); i++)
		to[i] = from[i];
	// TS 38.415 §5.5.2. Without a container, the TEID is written over it.
	store16(end - GTPU_HEADER_CONTAINER + 13,
		(uint16_t)(tunnel_wire_type(c.pdu_type) << 12 | tunnel_qfi_octet(a, c)));
}

// UDP length, GTP-U length and TEID; `length` of the whole packet whose IP header of ip_length bytes is at `ip`.
static __rte_always_inline void tunnel_lengths(uint8_t *ip, uint32_t ip_length, uint32_t length, uint32_t teid)
{
	uint8_t *udp = ip + ip_length, *gtpu = udp + 8;

	store16(udp + 4, (uint16_t)(length - ip_length));
	store16(gtpu + 2, (uint16_t)(length - ip_length - 16));
	store32(gtpu + 4, teid);
}

// `class`: DSCP << 2 | ECN; `id`: of worker_identify(). DF is clear: routers with smaller links may fragment (TS 29.281
// §4.2.2).
static __rte_always_inline void tunnel_ip4(uint8_t *ip, uint32_t ip4_sum, uint16_t id, uint32_t length, uint8_t class)
{
	uint16_t sum, wire_length = rte_cpu_to_be_16((uint16_t)length);

	ip[1] = class;
	memcpy(ip + 2, &wire_length, 2);
	memcpy(ip + 4, &id, 2);
	sum = checksum_finish32(ip4_sum + ((uint32_t) class << 8) + wire_length + id);
	memcpy(ip + 10, &sum, 2);
}

// RFC 8200 §8.1: over IPv6 a UDP checksum is owed (RFC 6936 lets tunnels do without only where both ends agree); it
// covers the packet. The data of an `m` of several segments begins at `ip`.
void tunnel_ip6(struct rte_mbuf *m, uint8_t *ip, uint32_t length, uint8_t class);

// Fills in the fields of the outer headers at `ip` that no template has.
static __rte_always_inline void tunnel_finish(struct worker *w, struct rte_mbuf *m, uint8_t *ip, const struct outer *o,
	const struct action *a, uint32_t length, uint8_t class)
{
	if (likely(o->version == 4)) {
		tunnel_lengths(ip, IP4_HEADER, length, a->teid);
		tunnel_ip4(ip, o->ip4_sum, worker_identify(w, a->path), length, class);
	} else {
		tunnel_lengths(ip, IP6_HEADER, length, a->teid);
		tunnel_ip6(m, ip, length, class);
	}
}

enum tunnel_result { TUNNEL_MADE, TUNNEL_NO_PATH, TUNNEL_NO_ROOM, TUNNEL_TOO_LONG };

// The packet at the data start of m, with the metadata that ip-output needs; but for TUNNEL_MADE it is as before. `p`:
// the action's path.
static __rte_always_inline enum tunnel_result tunnel_encap(
	struct worker *w, struct rte_mbuf *m, const struct path *p, const struct action *a, struct container came)
{
	struct packet *pkt = packet_of(m);
	uint8_t *end = rte_pktmbuf_mtod(m, uint8_t *);
	struct container c;
	int container = tunnel_container(a, came, &c);

	if (unlikely(p == NULL))
		return TUNNEL_NO_PATH;
	uint32_t header = p->outer.length[container], length = pkt->length + header;
	if (unlikely(rte_pktmbuf_headroom(m) < OUTER_LENGTH_MAX))
		return TUNNEL_NO_ROOM;
	if (unlikely(length > UINT16_MAX))
		return TUNNEL_TOO_LONG;
	// RFC 6040 §4.1: the congestion field is copied; the DSCP is the path's or the FAR's.
	uint8_t class = tunnel_class(a, &p->outer, p, c.qfi) | ip_ecn(pkt->ip_version, end);
	rte_pktmbuf_prepend(m, (uint16_t)header);
	tunnel_put(end, &p->outer, OUTER_LENGTH_MAX, a, container, c);
	tunnel_finish(w, m, end - header, &p->outer, a, length, class);
	path_describe(pkt, path_vrf(p), p->outer.version, length);
	return TUNNEL_MADE;
}

// The same for a copy, by its action alone. Returns 0 when it is impossible.
int tunnel_copy(struct worker *w, struct rte_mbuf *m, const struct action *a);

#endif
