// SPDX-License-Identifier: Apache-2.0
// The fast path of plain G-PDUs: what core-input, ip-input and gtpu-input find out about one of a vector holds for those whose
// first bytes are the same, and what differs from packet to packet is checked at once. Saves a half of the three nodes' ticks.
//
// Plain is: no padding; no tag or one; outer IPv4 without options, not a fragment; UDP to a tunnel endpoint that the interface has;
// a G-PDU. Whatever is not plain, or wrong in any way, takes the full parse, which names the reason. The plain packets of a tunnel
// all take the fast path, or the first of a vector do and the rest the full parse, so that none overtakes another.
#ifndef GTPU_PLAIN_H
#define GTPU_PLAIN_H

#include "gtpu/arrive.h"
#include "instance/instance.h"
#include "path/local.h"
#include "rule/tables.h"
#include "wire/plain.h"

#define PLAIN_LENGTH_MIN 64 // of a frame's first segment; one with an inner packet is longer
#define PLAIN_LOOKS                                                                                                    \
	8 // most packets of a vector that are looked at: others are IP packets, or take turns between endpoints

// What the last plain packet taught. Lives for one vector, within a walk, so nothing that it was looked up in changes meanwhile.
struct plain {
	struct plain_bytes bytes;
	uint32_t interface;
	uint16_t port_in;
	uint16_t l3;
	uint16_t local, instance;
	uint8_t known;
	uint8_t looked; // times
};

enum plain_way { PLAIN_NOT, PLAIN_TUNNEL, PLAIN_FIREWALL };

// Takes the packet as the example that the next ones are compared with, when it is one: returns 1. core-input has checked its
// Ethernet header: pkt->interface, l3 and ip_version are valid.
int plain_learn(struct plain *p, struct rte_mbuf *m);

// PLAIN_NOT: not plain, nothing but scratch metadata was written. Else the metadata is as gtpu-input leaves it.
static __rte_always_inline enum plain_way plain_take(const struct plain *p, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *), *ip = frame + p->l3, *udp = ip + IP4_HEADER;
	uint32_t readable = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m), length = total - p->l3;
	uint16_t at = (uint16_t)(p->l3 + IP4_HEADER + 8);
	int mobile = p->instance != INSTANCE_NONE;
	struct gtpu_info gtpu;

	if (unlikely(!p->known || readable < PLAIN_LENGTH_MIN || pkt->port_in != p->port_in ||
		     !plain_bytes_same(&p->bytes, frame)))
		return PLAIN_NOT;
	if (unlikely(!plain_outer_good(ip, length)))
		return PLAIN_NOT;
	if (unlikely(gtpu_parse(udp + 8, readable - at, total - at, &gtpu) != GTPU_OK ||
		     ((gtpu.more & GTPU_ENDPOINT) && !mobile)))
		return PLAIN_NOT;
	if (unlikely(gtpu_inner_enter(m, at + gtpu.header_length, total - at - gtpu.header_length, ip_ecn(4, ip),
			     mobile) != GTPU_INNER_OK))
		return PLAIN_NOT;
	pkt->interface = p->interface;
	pkt->instance = p->instance;
	gtpu_arrived(m, &gtpu, 4, p->l3, at, p->local);
	if (mobile) { // session-tunnel will look for it, when the rest of the vector has been here
		uint64_t key = fteid_key(gtpu.teid, p->local);

		narrow_prefetch(session_tables.key, narrow_hash(session_tables.key, key));
	}
	return mobile ? PLAIN_TUNNEL : PLAIN_FIREWALL;
}

#endif
